"""`memory setup` offers what the machine has, tries what is chosen on a bundled example, and sets what works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memory_pipeline.cli.estimate import Outlook, estimate_outlook
from memory_pipeline.cli.main import app
from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm import found
from memory_pipeline.llm.agents import BY_NAME
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cli.terminal import Terminal
from memory_pipeline_tests.llm.loopback import serving
from memory_pipeline_tests.llm.machine import emptied, program
from memory_pipeline_tests.llm.openai_server import Asked, openai_server

SECRET = "sk-secret-0123456789"
QUOTING = """
import pathlib, re, sys
asked = sys.stdin.read()
with open(pathlib.Path(__file__).with_name("asked"), "a") as file:
    file.write(asked)
said = re.findall(r"^\\[#(\\d+) \\d\\d:\\d\\d user\\]\\n([^\\n]{20,200})", asked, re.M)
marks = {True: "\\U0001f534", False: "\\U0001f7e2"}
facts = "\\n".join(f"* {marks[not re.search('add GET|what does|how long|commit|maybe', words)]} rule [#{n}] {words}"
                  for n, words in said)
numbers = re.findall(r"^\\[#(\\d+) ", asked, re.M)
print(f'<observations><segment from="#{numbers[0]}" to="#{numbers[-1]}"><title>Rules</title>'
      f"<narrative>Rules were laid down.</narrative><facts>\\n{facts}\\n</facts></segment></observations>")
"""
"""An agent that answers in the format, with what the user said."""


def mark(words: str) -> str:
    return "🟢" if re.search("add GET|what does|how long|commit|maybe", words) else "🔴"


def quoting(asked: Asked) -> str:
    said = re.findall(r"^\[#(\d+) \d\d:\d\d user\]\n([^\n]{20,200})", asked.prompt, re.M)
    facts = "\n".join(f"* {mark(words)} rule [#{n}] {words}" for n, words in said)
    return f"<observations><facts>\n{facts}\n</facts></observations>"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return emptied(tmp_path, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "workspace/settings.toml"


def call(*args: str) -> Result:
    return CliRunner().invoke(app, ["setup", *args])


def done(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 0, result.output
    return result.output


def refused(code: int, *args: str) -> str:
    result = call(*args)
    assert result.exit_code == code, result.output
    return result.stderr


def on_server(monkeypatch: pytest.MonkeyPatch, answers: Any, context: int | None = None) -> Callable[[], Any]:
    """Choices as a server at the address of the scripted one would give them."""
    choice = found.Choice("openai:local", "server", "Somebody", "openai:local", answers.url, "0/0", 1, context)
    monkeypatch.setattr("memory_pipeline.cli.setup.choices", lambda: [choice])
    return lambda: choice


# --- what is offered ---


def test_without_a_terminal_it_lists_and_sets_nothing(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder, "codex", QUOTING)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(EXAMPLES))
    told = done()
    assert "model                   none: finds 56 % of the facts a reader would keep" in told
    assert re.search(r"^4 days have sessions\. One takes about [1-9][\d,]+ tokens in and [1-9][\d,]+ out", told, re.M)
    assert re.search(r"^  1  anthropic:claude-haiku-4-5  ANTHROPIC_API_KEY is set$", told, re.M)
    assert re.search(r"^ +a day: 0\.0[1-9] USD; all days: 0\.\d\d USD$", told, re.M)
    assert re.search(
        r"^  2  codex +on PATH$\n +no login found; run `codex login`$\n +a day: price not known", told, re.M
    )
    assert told.endswith("Nothing was set. `memory setup --yes --model NAME` examines one and sets it.\n")
    assert SECRET not in told and not file.exists() and not (folder / "asked").exists()


def test_what_it_would_cost_is_what_the_estimate_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(EXAMPLES))
    outlook = estimate_outlook(load_settings())
    assert isinstance(outlook, Outlook)
    monkeypatch.setenv("OBSERVER_MODEL", "nobody -p")
    estimated = json.loads(CliRunner().invoke(app, ["run", "--estimate", "--all", "--json"]).stdout)["stages"][
        "observations"
    ]
    assert (outlook.looked_at, outlook.days) == (4, 4)
    for name in ("calls", "input_tokens", "output_tokens"):
        assert abs(getattr(outlook.backlog, name) - estimated[name]) <= 4  # of rounding the mean
    assert estimated["input_tokens"] > 10_000


def test_the_time_of_a_day_is_that_of_its_tokens() -> None:
    outlook = Outlook(Estimate(input_tokens=50_000, output_tokens=4_000), looked_at=3, days=10)
    assert outlook.time(50) == "at this speed a day takes about 18 minutes, all days 3 hours"
    assert outlook.time(5_000) == "at this speed a day takes about a minute, all days 2 minutes"


def test_a_model_that_is_set_is_shown(folder: Path, file: Path) -> None:
    file.parent.mkdir()
    file.write_text('[observer]\nmodel = "ask --key ghp_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"\n')
    told = done()
    assert f"({file}:2)" in told and "Ab3dEf6hIj9l" not in told and ".58" not in told


def test_a_run_and_the_status_say_in_one_line_what_no_model_costs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith("model ") and "`memory setup`" in line]

    (line,) = lines(CliRunner().invoke(app, ["status"]).stdout)
    assert all(f"{figure} %" in line for figure in (56, 88))
    monkeypatch.setenv("OBSERVER_MODEL", "ask --key ghp_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j")
    told = CliRunner().invoke(app, ["status"]).stdout
    assert lines(told) == [] and "model                   ask --key " in told and "Ab3dEf6hIj9l" not in told


# --- what is set ---


def test_an_agent_is_tried_and_set(folder: Path, file: Path) -> None:
    program(folder, "codex", QUOTING)
    file.parent.mkdir()
    file.write_text('# Mine.\nuser_name = "Mira"  # that is me\n\n[observer]\ntemperature = 0.1\n')
    before = file.read_text()
    told = done("--yes", "--model", "codex")

    assert "codex passed the examination: recall 0." in told
    assert "price not known" in told and f"{file} now has this setting" in told
    asked = (folder / "asked").read_text()
    assert "You keep the memory of a person" in asked and asked.count("parcel") > 3
    settings = load_settings()
    assert settings.observer.model == BY_NAME["codex"].command
    assert (settings.user_name, settings.observer.temperature) == ("Mira", 0.1)
    assert file.read_text().startswith(before)
    (backup,) = (file.parent / "backups").glob("settings.toml.*Z")
    assert backup.read_text() == before
    ledger = Lake(settings.lake_dir).read("ledger")
    assert ledger["stage"].to_list() == ["observations"] and ledger["state"].to_list() == ["done"]

    done("--yes", "--model", "codex")
    assert (folder / "asked").read_text() == asked * 2  # what was answered before proves nothing
    assert {p.name for p in file.parent.iterdir()} == {"settings.toml", "examinations.json", "backups", "lake"}
    assert list(Path.home().iterdir()) == []


def test_a_local_server_is_set_with_its_address_price_and_context(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai_server(quoting) as server:
        on_server(monkeypatch, server, context=16_384)
        told = done("--yes", "--model", "openai:local")
    assert [asked.body["model"] for asked in server.requests] == ["local"] * 3  # with so little context, by topic
    settings = load_settings()
    assert (settings.observer.model, settings.observer.base_url) == ("openai:local", server.url)
    assert (settings.observer.price, settings.effective_context) == ("0/0", 16_384)
    assert "0.0000 USD" in told and "300 tokens in, 30 out" in told


def test_another_model_does_not_keep_address_and_price_of_the_one_before(folder: Path, file: Path) -> None:
    program(folder, "llm", QUOTING)
    file.parent.mkdir()
    file.write_text('[observer]\nbase_url = "http://127.0.0.1:1/v1"  # local\nprice = "0/0"\nmodel = "openai:local"\n')
    done("--yes", "--model", "llm")
    observer = load_settings().observer
    assert (observer.model, observer.base_url, observer.price) == (BY_NAME["llm"].command, None, None)


def test_a_price_that_was_set_by_hand_for_it_stays(folder: Path, file: Path) -> None:
    """Where money is limited, nothing is asked whose price is not known."""
    program(folder, "codex", QUOTING)
    file.parent.mkdir()
    file.write_text("daily_budget_usd = 0.5\n")
    assert "set OBSERVER_PRICE" in refused(1, "--yes", "--model", "codex")
    file.write_text('daily_budget_usd = 0.5\n[observer]\nprice = "0/0"\n')
    assert "0.0000 USD" in done("--yes", "--model", "codex")
    done("--yes", "--model", "codex")
    assert load_settings().observer.price == "0/0"


def test_any_other_command_or_model_may_be_named(folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(folder, "mine", QUOTING)
    done("--yes", "--model", f"{path} -p")
    assert load_settings().observer.model == f"{path} -p"
    with openai_server(quoting) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done("--yes", "--model", "openai:gpt-5-mini")
    assert load_settings().observer.model == "openai:gpt-5-mini" and len(server.requests) == 1


def test_ollama_is_set_with_the_context_that_it_runs_the_model_with(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ollama(context: int) -> dict[str, Any]:
        return {"/api/ps": {"models": [{"name": "qwen3:8b", "context_length": context}]}}

    with openai_server(quoting) as server:
        for context, code in ((4_096, 1), (32_768, 0)):
            with serving(ollama(context)) as port:
                choice = found.Choice("ollama:qwen3:8b", "server", "Ollama", "ollama:qwen3:8b", server.url, None, port)
                monkeypatch.setattr("memory_pipeline.cli.setup.choices", lambda choice=choice: [choice])
                result = call("--yes", "--model", "ollama:qwen3:8b")
            assert result.exit_code == code, result.output
            assert ("OLLAMA_CONTEXT_LENGTH=32768" in result.stderr) == bool(code)
            assert file.exists() == (not code)
    assert load_settings().effective_context == 32_768


# --- what is not set ---


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('not logged in')", "`codex`: ended with code 1: not logged in"),
        ("print('I cannot help with that.')", "Its answer cannot be used"),
        ("print('<observations></observations>')", "Its answer has no facts"),
        (
            "print('<observations><facts>\\n* \\U0001f534 rule [#1] Zebras eat hay.\\n</facts></observations>')",
            "Its answer has facts, but the session supports none of them.",
        ),
    ],
    ids=["failed", "prose", "empty", "made up"],
)
def test_what_does_not_work_is_told_and_not_set(code: str, said: str, folder: Path, file: Path) -> None:
    program(folder, "codex", f"import sys; sys.stdin.read()\n{code}")
    file.parent.mkdir()
    file.write_text('[observer]\nmodel = "openai:gpt-5-mini"\n')
    told = refused(1, "--yes", "--model", "codex")
    assert said in told and "(no login found; run `codex login`)" in told
    assert told.endswith("Nothing was changed.\n")
    assert file.read_text() == '[observer]\nmodel = "openai:gpt-5-mini"\n'
    assert not list((file.parent / "backups").glob("settings.toml.*"))


def test_a_server_with_too_little_context_is_not_asked(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai_server(quoting) as server:
        on_server(monkeypatch, server, context=4_096)
        assert "a context of 4,096 tokens; at least 8,000 are needed" in refused(1, "--yes", "--model", "openai:local")
    assert server.requests == [] and not file.exists()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--yes"], 2, "--yes needs --model NAME"),
        (["--yes", "--model", "chatgpt"], 2, "--model 'chatgpt': expected provider:model"),
        (["--yes", "--model", "codex"], 1, "codex is not on PATH; install it first."),
        (["--yes", "--model", "no-such-program -p"], 1, "that does not exist or cannot be run"),
    ],
)
def test_a_wrong_call_is_one_sentence(args: list[str], code: int, said: str, folder: Path, file: Path) -> None:
    assert said in refused(code, *args)
    assert not file.exists()


def test_what_the_environment_would_overrule_is_not_tried(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder, "codex", QUOTING)
    monkeypatch.setenv("OBSERVER_MODEL", "a:b")
    told = refused(2, "--yes", "--model", "codex")
    assert told.startswith("OBSERVER_MODEL in this environment would take precedence")
    assert not file.exists() and not (folder / "asked").exists()


def test_a_file_of_settings_that_is_wrong_costs_no_request(folder: Path, file: Path) -> None:
    program(folder, "codex", QUOTING)
    file.parent.mkdir()
    file.write_text("user_nmae = 5\n")
    assert "user_nmae is not a setting" in refused(2, "--yes", "--model", "codex")
    assert not (folder / "asked").exists()


# --- at a terminal ---


def at_terminal(tmp_path: Path, folder: Path) -> Terminal:
    env = {"PATH": str(folder), "MEMORY_WORKSPACE": str(tmp_path / "workspace"), "MEMORY_DEFAULT_SESSION_DIRS": "false"}
    return Terminal(
        tmp_path / "home", "setup", env=env | {"CODEX_API_KEY": SECRET, "MEMORY_SESSION_DIRS": str(EXAMPLES)}
    )


def test_it_asks_once_and_sets_what_was_named(tmp_path: Path, folder: Path, file: Path) -> None:
    program(folder, "codex", QUOTING)
    with at_terminal(tmp_path, folder) as terminal:
        terminal.sees("1  codex")
        terminal.sees("Which one?")
        terminal.press("77\n")
        terminal.sees("Expected a number from 1 to")
        terminal.sees("Which one?")
        terminal.press("1\n")
        terminal.sees("At this speed a day takes about")
        terminal.sees("now has this setting")
        assert terminal.process.wait(60) == 0
    assert "codex exec" in file.read_text() and SECRET not in terminal.text


def test_nothing_is_set_by_just_enter(tmp_path: Path, folder: Path, file: Path) -> None:
    program(folder, "codex", QUOTING)
    with at_terminal(tmp_path, folder) as terminal:
        terminal.sees("Which one?")
        terminal.press("\n")
        terminal.sees("Nothing was changed.")
        assert terminal.process.wait(60) == 0
    assert not file.exists() and not (folder / "asked").exists()
