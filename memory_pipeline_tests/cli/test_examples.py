"""`memory run` on a machine without sessions: the bundled examples, end to end, then a review by hand.

One run in a process of its own; every test looks at what it left.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.prepared import copied, made_once
from memory_pipeline_tests.rows import stable_bytes
from memory_pipeline_tests.typed import misfits

FAKE_SECRETS = ("ghp_M4deUpT0kenN0tRea11234567890abcdefgh", "n0t-a-real-pw-7731")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The home after the first run, with what it printed."""

    def first_run(folder: Path) -> None:
        result = memory(folder / "home", "run")
        assert result.returncode == 0, result.stderr
        (folder / "out").write_text(result.stdout, "utf-8")
        (folder / "err").write_text(result.stderr, "utf-8")

    folder = made_once(tmp_path_factory, "demo", first_run)
    return folder / "home", (folder / "out").read_text("utf-8"), (folder / "err").read_text("utf-8")


@pytest.fixture
def home(demo: tuple[Path, str, str], tmp_path: Path) -> Path:
    """A copy of that home to change."""
    return copied(demo[0], tmp_path / "home")


def workspace(home: Path) -> Path:
    return home / ".memory-pipeline" / "examples"


def files(root: Path) -> dict[str, bytes]:
    """Every file of the workspace but Dagster's own records, which tell when runs happened."""
    found = (p for p in sorted(root.rglob("*")) if p.is_file() and "dagster" not in p.relative_to(root).parts)
    return {str(p.relative_to(root)): stable_bytes(p) for p in found}


def rows(home: Path, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memory_json(home, "sql", query)
    return found


def test_the_summary_says_what_came_of_it(demo: tuple[Path, str, str]) -> None:
    _, out, err = demo
    assert "bundled examples are used" in err
    assert re.search(r"^days +4 \(2026-03-02 to 2026-03-05\)$", out, re.M)
    assert re.search(r"^sessions +11$", out, re.M)
    assert re.search(r"^messages +\d+, 95 of them typed by a person$", out, re.M)
    assert re.search(r"^observations +🔴 [1-9]\d* high", out, re.M)
    assert re.search(r"^checks +76 passed, 0 failed$", out, re.M)
    assert re.search(r"^model +none: finds 56 % of .*`memory setup`$", out, re.M)
    assert re.search(r"^money spent +\$0\.00$", out, re.M)
    assert "`memory ui`" in out


def shown_in_the_readme(what: str) -> list[str]:
    """The lines of the block below this comment."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    block = readme.partition(f"<!-- {what} -->\n```")[2].partition("\n```")[0]
    return [line for line in block.splitlines()[1:] if line]


def test_the_readme_shows_just_this_summary(demo: tuple[Path, str, str]) -> None:
    """All of it but the places, which begin with the person's home."""
    readme = shown_in_the_readme("output of `make run`")
    shown = [line for line in demo[1].splitlines() if "/" not in line and line]
    assert len(shown) > 8
    assert [line for line in shown if line not in readme] == []


def test_the_readme_shows_what_becomes_of_the_examples(home: Path) -> None:
    """Lines as they stand in REVIEW.md, and in MEMORY.md once those are approved."""
    review = (workspace(home) / "REVIEW.md").read_text("utf-8").splitlines()
    shown = shown_in_the_readme("of REVIEW.md of the examples")
    assert len(shown) > 3 and [line for line in shown if line not in review] == []
    shown = shown_in_the_readme("of MEMORY.md of the examples, once the lines are approved")
    approved = [option for line in shown for p in re.findall(r"<!-- (p-\S+) -->", line) for option in ("--approve", p)]
    assert len(approved) > 2 and memory(home, "review", *approved).returncode == 0
    written = (workspace(home) / "MEMORY.md").read_text("utf-8").splitlines()
    assert [line for line in shown if line not in written] == []


def test_nothing_is_written_outside_of_the_workspace(demo: tuple[Path, str, str]) -> None:
    home = demo[0]
    assert {p.name for p in home.iterdir()} == {".memory-pipeline"}
    assert {p.name for p in (home / ".memory-pipeline").iterdir()} == {"examples"}
    made = {p.name for p in workspace(home).iterdir()}
    assert made == {"REVIEW.md", "memory", "lake", "index", "dagster", "backups", "sessions"}


def test_what_a_run_writes_is_private(demo: tuple[Path, str, str]) -> None:
    made = demo[0] / ".memory-pipeline"
    bundled = made / "examples/sessions"  # copied as they were installed; nobody has said that
    files = [path for path in (made, *made.rglob("*")) if bundled not in (path, *path.parents)]
    assert not [path for path in files if path.stat().st_mode & 0o077]


def test_the_sessions_that_are_read_are_copies_of_the_bundled_ones(demo: tuple[Path, str, str]) -> None:
    copies = workspace(demo[0]) / "sessions"
    assert files(copies) == files(EXAMPLES)
    named = {r["source_file"] for r in rows(demo[0], "select distinct source_file from messages")}
    assert len(named) == 11 and all(Path(name).is_relative_to(copies) for name in named)


def test_the_planted_secrets_reach_no_file(demo: tuple[Path, str, str]) -> None:
    """None but the sessions that are read, which the test above holds to be the bundled ones."""
    planted = "\n".join(p.read_text("utf-8") for p in EXAMPLES.rglob("*.jsonl"))
    read = workspace(demo[0]) / "sessions"
    for secret in FAKE_SECRETS:
        assert secret in planted
        holding = [p for p in demo[0].rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
        assert [p for p in holding if not p.is_relative_to(read)] == []
    assert rows(demo[0], "select count(*) n from messages where text like '%[redacted:%'")[0]["n"] >= 2


@pytest.mark.parametrize(
    "words",
    [
        "decision: we use Postgres LISTEN/NOTIFY for status events, not Redis, because at 40 changes a minute",
        "always use uv, never pip install",
        "i prefer small commits, and the message says why the change was made",
        "production migrations always use create index concurrently",
    ],
)
def test_what_was_laid_down_is_a_high_observation(demo: tuple[Path, str, str], words: str) -> None:
    found = rows(demo[0], f"select priority from observations where contains(text, '{words}')")
    assert [r["priority"] for r in found] == ["high"]


def test_what_was_asked_or_guessed_is_no_high_observation(demo: tuple[Path, str, str]) -> None:
    high = [r["text"] for r in rows(demo[0], "select text from observations where priority = 'high'")]
    assert not any("kubernetes" in text for text in high)
    assert not any(text.rstrip().endswith("?") for text in high)
    assert not any("retries its webhook because our endpoint answers too slowly" in text for text in high)


def test_what_the_model_found_is_kept_and_not_high(demo: tuple[Path, str, str]) -> None:
    cause = "Root cause of the double mails: the notifier runs uvicorn with `--workers 2`"
    (found,) = rows(demo[0], f"select priority, kind from observations where contains(text, '{cause}')")
    assert found == {"priority": "medium", "kind": "root_cause"}


def test_a_session_over_midnight_lies_in_two_days(demo: tuple[Path, str, str]) -> None:
    query = "select day from windows where observed group by session_id, day having count(*) > 0 order by day"
    assert rows(demo[0], query)
    both = rows(demo[0], "select session_id from sessions group by session_id having count(distinct day) = 2")
    assert len(both) == 1


def test_a_compaction_has_a_window_of_its_own(demo: tuple[Path, str, str]) -> None:
    found = rows(demo[0], "select user_messages, observed from windows where trigger = 'compaction'")
    assert found == [{"user_messages": 7, "observed": True}]


def test_the_port_of_two_sessions_is_one_friction_pattern(demo: tuple[Path, str, str]) -> None:
    query = "select sessions, kind, adds from friction_clusters where contains(title, 'port 5433')"
    (found,) = rows(demo[0], query)
    assert (found["sessions"], found["kind"]) == (2, "configuration_drift")
    assert "`docker rm -f $(docker ps -q --filter publish=5433)` helped" in found["adds"]


def test_the_run_ends_with_three_commands_that_tell_its_story(home: Path, demo: tuple[Path, str, str]) -> None:
    """The rule of three days is approved and reaches the next session, and the newer of two decisions comes first."""
    approve, context, recall = (shlex.split(line)[1:] for line in re.findall(r"^  (memory .+?)  ", demo[1], re.M))
    assert memory(home, *approve).stdout.splitlines()[-1].startswith("25 pending.")  # with a fix of friction
    assert memory(home, *context).stdout == ""  # an agent, which has no terminal, is not told examples
    told = memory(home, *context, "--project", "parcel-tracker")
    assert "Showing the bundled examples" in told.stderr
    assert "no, don't run pip install, use uv add [p-20260302-004]" in told.stdout
    assert "`pip install` is never run; `uv` is; would have stopped 3 of" in memory(home, "agents", "rules").stdout
    first, _, rest = memory(home, *recall).stdout.partition("[2]")
    assert "180 days instead of 90" in first and "keep tracking events for 90 days" in rest


def test_an_image_leaves_a_mark_and_no_base64(demo: tuple[Path, str, str]) -> None:
    assert rows(demo[0], "select count(*) n from messages where contains(text, '[image: image/png')")[0]["n"] == 1
    assert rows(demo[0], "select count(*) n from messages where contains(text, 'iVBORw0KGgo')")[0]["n"] == 0


def test_a_run_reconciles_once_after_all_its_days(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of its days, REVIEW.md is read and MEMORY.md written by the last run alone."""
    import dagster as dg

    monkeypatch.setenv("DAGSTER_HOME", str(workspace(home) / "dagster"))
    with dg.DagsterInstance.get() as instance:
        made = instance.fetch_materializations(dg.AssetKey("memory_file"), limit=10).records
        reported = instance.fetch_materializations(dg.AssetKey("proposals"), limit=1000).records
    proposed = [record for record in reported if record.run_id]  # those of empty days have none
    assert [instance_job(record) for record in made] == ["review_job"]
    assert len(proposed) == 4 and made[0].timestamp >= max(record.timestamp for record in proposed)


def instance_job(record: Any) -> str:
    return str(record.event_log_entry.job_name)


@pytest.mark.slow
def test_a_second_run_changes_no_byte(home: Path) -> None:
    assert memory(home, "run").returncode == 0  # the copy's session files lie elsewhere
    before = files(workspace(home))
    result = memory(home, "run")
    assert result.returncode == 0
    assert "all up to date" in result.stderr
    assert files(workspace(home)) == before


@pytest.mark.slow
def test_a_review_by_hand_and_by_command_ends_in_memory_md_once(home: Path) -> None:
    """Approve, edit, reject and delete in REVIEW.md, approve and reject by command, with a person's own text around."""
    root = workspace(home)
    pending = memory_json(home, "review")["pending"]
    approved, edited, rejected, deleted, by_command, against = [p["proposal_id"] for p in pending[:6]]
    texts = {p["proposal_id"]: p["text"] for p in pending}
    review = (root / "REVIEW.md").read_text("utf-8")
    review = review.replace(f"- [ ] `{approved}`", f"- [x] `{approved}`")
    review = review.replace(f"- [ ] `{edited}` {texts[edited]}", f"- [x] `{edited}` {texts[edited]} (as I put it)")
    review = review.replace(f"- [ ] `{rejected}`", f"- [-] `{rejected}`")
    review = re.sub(rf"- \[ \] `{deleted}`.*\n.*\n", "", review) + "\nMy note on the review.\n"
    (root / "REVIEW.md").write_text(review, "utf-8")
    (root / "MEMORY.md").write_text("# My memory\n\nI wrote this.\n", "utf-8")
    log = root / "memory" / "2026-03-02.md"
    log.write_text(log.read_text("utf-8") + "\nMy own line.\n", "utf-8")

    run = memory(home, "run")
    assert run.returncode == 0
    assert "REVIEW.md: 2 approved, 2 rejected\n" in run.stdout
    decided = memory(home, "review", "--approve", by_command, "--reject", against, "--list")
    assert decided.returncode == 0, decided.stderr

    memory_md = (root / "MEMORY.md").read_text("utf-8")
    assert memory_md.startswith("# My memory\n\nI wrote this.\n")
    for proposal_id, text in [(approved, texts[approved]), (edited, "(as I put it)"), (by_command, texts[by_command])]:
        assert memory_md.count(f"<!-- {proposal_id} -->") == 1
        assert text in memory_md
    for proposal_id in (rejected, deleted, against):
        assert proposal_id not in memory_md
    fixes = [p for p in texts if p.startswith("f-")]
    status = memory_json(home, "status")
    assert sum(status["friction_fixes"].values()) == len(fixes)
    decided = {state: count for state, count in status["proposals"].items() if state != "superseded"}  # by a fix
    assert decided == {"approved": 3, "pending": len(pending) - len(fixes) - 6, "rejected": 3}

    before = files(root)
    again = memory(home, "run", "--all")
    assert again.returncode == 0 and "REVIEW.md: " not in again.stdout
    assert memory(home, "review").returncode == 0
    assert files(root) == before
    assert "My note on the review." in (root / "REVIEW.md").read_text("utf-8")
    assert "My own line." in log.read_text("utf-8")


def test_why_leads_back_to_the_words_and_the_file(demo: tuple[Path, str, str]) -> None:
    home = demo[0]
    proposal = next(p for p in memory_json(home, "review")["pending"] if "404, not 403" in p["text"])
    found = memory_json(home, "why", proposal["proposal_id"])
    said = found["said"][0]
    path, line = said["source"].rsplit(":", 1)
    assert "404, not 403" in said["quote"]
    assert said["role"] == "user"
    assert "404, not 403" in Path(path).read_text("utf-8").splitlines()[int(line) - 1]
    reflection, observation = found["row"]["sources"][:2]
    for identifier in (
        reflection,
        observation,
        rows(home, "select pattern_id from friction_clusters")[0]["pattern_id"],
    ):
        assert memory_json(home, "why", identifier)["said"]


def test_every_row_is_what_its_type_says(demo: tuple[Path, str, str]) -> None:
    """Also where no value may be missing, which the types of columns do not tell."""
    lake = Lake(workspace(demo[0]) / "lake")
    assert {t for t in TABLES if lake.read(t).height} >= {
        "files",
        "messages",
        "observations",
        "proposals",
        "supports",
    }
    assert misfits(lake) == set()
