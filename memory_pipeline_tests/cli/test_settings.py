"""`memory settings` shows what holds and where it is set, and changes settings.toml without spoiling it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memory_pipeline.cli.main import app
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.settings.sources import settings_of
from memory_pipeline_tests.cli.command import memory


def call(*args: str) -> Result:
    return CliRunner().invoke(app, ["settings", *args])


def done(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 2
    return result.stderr


def rows() -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in json.loads(done("--json"))}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "workspace/settings.toml"


def test_what_holds_is_shown_with_where_it_is_set(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir()
    file.write_text('# mine\nuser_name = "Mira"\n[observer]\nmodel = "openai:gpt-5-mini"\n')
    monkeypatch.setenv("MEMORY_PENDING_LIMIT", "5")
    pi = Path.home() / ".pi/agent/memory.json"
    pi.parent.mkdir(parents=True)
    pi.write_text('{"reflector": {"observationTokenThreshold": 9000}}')
    shown = rows()
    assert shown["user_name"] == {
        **{"key": "user_name", "variable": "MEMORY_USER_NAME", "value": "Mira", "from": f"{file}:2", "front": True},
        **{"default": "User", "meaning": "The title of the first section of MEMORY.md."},
    }
    where = {key: (row["value"], row["from"]) for key, row in shown.items()}
    assert where["observer.model"] == ("openai:gpt-5-mini", f"{file}:4")
    assert where["pending_limit"] == ("5", "MEMORY_PENDING_LIMIT")
    assert where["advanced.reflect_early_tokens"] == ("9000", str(pi))
    assert where["advanced.idle_minutes"] == ("10", "default")
    fronts = [row["front"] for row in shown.values()]
    assert fronts == sorted(fronts, reverse=True)
    text = done()
    assert "settings.toml:2)" in text and text.index("user_name") < text.index("idle_minutes")


def test_what_the_workspace_was_made_with_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "lake").mkdir(parents=True)
    (file.parent / "lake/timezone").write_text("UTC\n")
    (file.parent / "lake/start_date").write_text("2024-02-03\n")
    for name in ("MEMORY_TIMEZONE", "MEMORY_START_DATE"):
        monkeypatch.delenv(name)
    shown = rows()
    assert (shown["start_date"]["value"], shown["start_date"]["from"]) == ("2024-02-03", "kept by the workspace")
    assert (shown["timezone"]["value"], shown["timezone"]["from"]) == ("UTC", "kept by the workspace")


def test_no_secret_is_shown(file: Path) -> None:
    told = [done("set", "todoist.api_token", "t0k3n-0815"), done("set", "qdrant.api_key", "k3y-0815")]
    told += [done("set", "reflector.base_url", "http://me:hunter2hunter2@localhost/v1")]
    told += [done(), done("--json")]
    assert not any(secret in text for text in told for secret in ("t0k3n", "k3y-0815", "hunter2"))
    assert rows()["todoist.api_token"]["value"] == "(set, not shown)" and rows()["todoist.enabled"]["value"] == "false"
    assert load_settings().todoist.api_token == "t0k3n-0815"
    assert file.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (file.parent / "backups").glob("settings.toml.*Z"))
    assert not (file.parent / "lake").exists()


def test_a_value_is_written_with_comments_and_order_kept(file: Path) -> None:
    file.parent.mkdir()
    before = '# Mine.\nuser_name = "Mira"  # that is me\n\n[advanced]  # asks\nobserver_temperature = 0.1\n# the end\n'
    file.write_text(before)
    done("set", "observer.temperature", "0.5")
    assert file.read_text() == before.replace("0.1", "0.5")
    done("set", "idle_minutes", "20")
    done("set", "OBSERVER_MODEL", "pi -p --no-session")
    done("set", "MEMORY_TODOIST", "true")
    settings = load_settings()
    assert (settings.idle_minutes, settings.observer.temperature, settings.todoist.enabled) == (20, 0.5, True)
    assert (settings.user_name, settings.observer.model) == ("Mira", "pi -p --no-session")
    assert "# that is me" in file.read_text() and "# the end" in file.read_text()
    done("unset", "OBSERVER_MODEL")
    done("unset", "user_name")
    assert load_settings().observer.model is None and load_settings().user_name == "User"
    assert "# Mine." in file.read_text() and "observer_temperature = 0.5" in file.read_text()


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("user_name", "5", 'user_name = "5"'),
        ("idle_minutes", "5", "idle_minutes = 5"),
        ("daily_budget_usd", "2.50", "daily_budget_usd = 2.5"),
        ("redact", "off", "redact = false"),
        ("observer.price", "0.25/2", 'price = "0.25/2"'),
        ("auto_promote", "off", 'auto_promote = "off"'),
        ("start_date", "2024-02-29", "start_date = 2024-02-29"),
        ("identity.directory", "~/agents", 'directory = "~/agents"'),
        ("identity.links", "~/a.md:/b c/d.md", 'links = ["~/a.md", "/b c/d.md"]'),
        ("session_dirs", "x:~/y", f'session_dirs = ["{os.getcwd()}/x", "~/y"]'),  # noqa: PTH109
    ],
)
def test_a_value_is_written_as_a_person_would(key: str, value: str, line: str, file: Path) -> None:
    done("set", key, value)
    assert line in file.read_text().splitlines()
    load_settings()


def test_a_former_key_is_replaced_by_the_new_one(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("idle_minutes = 5\n\n[pack]\ntokens = 900\n")
    done("set", "idle_minutes", "20")
    assert file.read_text().count("idle_minutes") == 1 and load_settings().idle_minutes == 20
    done("unset", "pack.tokens")
    assert "[pack]\ntokens" not in file.read_text()
    assert "owner is no longer a setting: a workspace is the memory of one person." in refused("set", "owner", "ada")


def test_what_was_there_is_backed_up(file: Path) -> None:
    done("set", "user_name", "Mira")
    done("set", "user_name", "Ann")
    (backup,) = (file.parent / "backups").glob("settings.toml.*Z")
    assert 'user_name = "Mira"' in backup.read_text()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["set", "observer.temperature", "hot"], "advanced.observer_temperature='hot': should be a valid number"),
        (["set", "idle_minutes", "-1"], "advanced.idle_minutes='-1': should be greater than or equal to 0"),
        (["set", "observr.model", "a:b"], "observr.model is not a setting; the nearest is observer.model."),
        (["set", "MEMORY_USER_NMAE", "a"], "the nearest is"),
        (["set", "proposal_warning_days", "3"], "is no longer a setting: it follows from proposal_expiry_days"),
        (["set", "workspace", "/x"], "The workspace is named by MEMORY_WORKSPACE"),
        (["set", "identity.directory", "agents"], "expected absolute paths or ones that begin with ~"),
        (["unset", "user_name"], "user_name is not set in"),
    ],
)
def test_what_would_be_wrong_is_not_written(args: list[str], sentence: str, file: Path) -> None:
    assert sentence in refused(*args)
    assert not file.parent.exists()
    done("set", "markers", "words")
    before = file.read_bytes()
    assert sentence in refused(*args)
    assert file.read_bytes() == before


def test_another_zone_than_the_workspaces_is_not_written(file: Path) -> None:
    (file.parent / "lake").mkdir(parents=True)
    (file.parent / "lake/timezone").write_text("UTC\n")
    assert "was made with UTC; keep that zone" in refused("set", "timezone", "Asia/Tokyo")
    assert not file.exists()


def test_a_file_with_a_wrong_name_can_be_put_right(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('user_nmae = "Mira"\nidle_minutes = 5\n[obsever]\nmodel = "a:b"\n')
    assert "user_nmae is not a setting; the nearest is user_name" in refused()
    assert "obsever.model is not a setting" in refused("unset", "user_nmae")  # one of two is not enough
    file.write_text('user_nmae = "Mira"\nidle_minutes = 5\n')
    done("unset", "user_nmae")
    assert file.read_text() == "idle_minutes = 5\n"


@pytest.mark.parametrize("text", ["user_name = Mira\n", 'observer = "a:b"\n'])
def test_a_file_that_cannot_be_changed_is_left_as_it_is(text: str, file: Path) -> None:
    file.parent.mkdir()
    file.write_text(text)
    assert str(file) in refused("set", "observer.model", "a:b")
    assert file.read_text() == text


def test_a_variable_that_counts_more_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVER_MODEL", "a:b")
    assert (
        "OBSERVER_MODEL is set in this environment and takes precedence." in call("set", "observer.model", "c:d").stderr
    )
    assert "takes precedence" not in call("set", "reflector.model", "c:d").stderr
    assert (load_settings().observer.model, load_settings().reflector.model) == ("a:b", "c:d")


def test_what_a_running_ui_has_read_already_is_pointed_out() -> None:
    assert "must be restarted" in call("set", "start_date", "2024-02-29").stderr
    assert "must be restarted" not in call("set", "user_name", "Mira").stderr


def test_another_process_reads_what_was_set(tmp_path: Path) -> None:
    result = memory(tmp_path, "settings", "set", "user_name", "Mira")
    assert result.returncode == 0, result.stderr
    shown = memory(tmp_path, "settings")
    width = max(len(s.key) for s in settings_of(Settings).values() if not s.is_hidden) + 2
    assert f"  {'user_name':<{width}}Mira  (settings.toml:2)" in shown.stdout
    assert memory(tmp_path, "settings", env={"MEMORY_TIMEZNOE": "UTC"}).returncode == 2
