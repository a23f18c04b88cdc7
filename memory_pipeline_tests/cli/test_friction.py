"""`memory friction`: the patterns that live, those that ended, and one with all that it rests on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memory_pipeline.cli.console import FAILED, MISUSED
from memory_pipeline.cli.main import app
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.config import NO_MODEL_FOR_FRICTION
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.recall.friction import summarize_patterns
from memory_pipeline.settings import load_settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, Row, at, day_after, observation, pattern, put, say

UV, NPM = "No, use uv, not pip.", "Never use npm in the shop."
EVIL = "use uv\x1b]52;c;ZXZpbA==\x07\x1b[2J not pip \u202egnp.exe\r\nf-20990101-001  a line of nobody"


@pytest.fixture
def lake() -> Lake:
    settings = load_settings()
    return Lake(settings.lake_dir)


def spans(*messages: Row) -> list[Row]:
    return [{"message_id": m["message_id"], "start": 0, "end": len(m["text"])} for m in messages]


@pytest.fixture
def patterns(lake: Lake) -> Lake:
    """One over two projects that grew on the second day and has a pending fix, one that is small, one that ended."""
    first = say(lake, "s1", f"user: {UV}", "assistant: I ran pip install.", day=day_after(-1))
    second = say(lake, "s2", f"user: {UV}", f"user: {NPM}")
    put(
        lake,
        "sessions",
        {"day": DAY, "session_id": "s9", "project": "shop"},
        {"day": DAY, "session_id": "s8", "project": "kiln"},
    )
    weeks = [{"week": day_after(n), "occurrences": times} for n, times in ((-16, 1), (-2, 2))]
    uv = pattern(
        1, UV, day=day_after(-1), by_week=weeks, projects=["kiln", "shop"], minutes=64.0, evidence=spans(first[0])
    )
    again = {
        "day": DAY,
        "last_day": DAY,
        "occurrences": 3,
        "sessions": 3,
        "severity": 30.0,
        "evidence": spans(second[0]),
    }
    npm = pattern(1, NPM, kind="rule_violated", projects=["shop"], minutes=0.5, evidence=spans(second[1]))
    old = pattern(1, "Old.", day=day_after(-9), ended_on=day_after(-2), last_day=day_after(-9))
    put(lake, "friction_clusters", uv, uv | again, npm, old | {"day": day_after(-2)})
    reconcile(Workspace(load_settings(), lake), at("18:00"))  # offers what would end them
    return lake


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["friction", *args], prog_name="memory")


def shown(*args: str) -> list[str]:
    done = run(*args)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def as_json(*args: str) -> Any:
    done = run(*args, "--json")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return json.loads(done.stdout)


def listed(*args: str) -> list[str]:
    return [p["id"] for p in as_json(*args)["patterns"]]


def test_the_patterns_that_live_are_told_with_all_that_says_how_bad_they_are(patterns: Lake) -> None:
    lines = shown()
    assert lines == [
        f"f-20250304-001  {UV}",
        "repeated correction · general, from kiln, shop · 3 times in 3 sessions · 1 h 04 min lost · "
        "by week ▅▁█ 1 0 2 · fix pending",
        f"MEMORY.md: Add under Hard Rules: “{UV}”",
        f"f-20250305-001  {NPM}",
        "rule exists, still violated · project: shop · 2 times in 2 sessions · less than a minute lost · fix pending",
        f"MEMORY.md: Add under Hard Rules: “{NPM}”",
        "2 patterns in 3 indexed texts of the 7 days to 2025-03-05; `memory friction ID` explains one.",
    ]


def test_those_that_ended_are_told_with_their_day(patterns: Lake) -> None:
    lines = shown("--ended")
    assert lines[0] == "f-20250224-001  Old." and lines[1].endswith("· ended on 2025-03-03")
    assert lines[-1] == "1 pattern that ended by 2025-03-05; `memory friction ID` explains one."


U, N, OLD = "f-20250304-001", "f-20250305-001", "f-20250224-001"


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        ((), [U, N]),
        (("--project", "shop"), [U, N]),
        (("--project", "KILN"), [U]),
        (("--kind", "rule_violated"), [N]),
        (("--kind", "Rule exists"), [N]),
        (("--kind", "repeated correction", "--kind", "rule_violated"), [U, N]),
        (("--kind", "missing_skill"), []),
        (("--ended",), [OLD]),
    ],
)
def test_the_list_can_be_narrowed(patterns: Lake, tmp_path: Path, args: tuple[str, ...], ids: list[str]) -> None:
    assert listed(*args) == ids


def test_one_is_explained_with_its_change_its_days_and_every_word(patterns: Lake) -> None:
    decide(Workspace(load_settings(), patterns), {U: "approved"}, at("19:00"))
    lines = shown(U)
    assert lines[0] == f"{U}  {UV}"
    assert "severity 30.0, confidence 0.50; first on 2025-03-04, last on 2025-03-05" in lines
    assert lines[lines.index("Change in MEMORY.md, section Hard Rules:") + 1] == f"+ {UV}"
    assert f"Add under Hard Rules: “{UV}”" not in lines  # the same once more
    assert "2025-03-03  2" in lines  # the week
    assert any(line.endswith("fix approved (command)") for line in lines)
    told = lines[lines.index("Evidence:") + 1 :]
    assert told == [
        "2025-03-04 09:00  user in pi session “session s1”",
        f"“{UV}”",
        "after: I ran pip install.",
        "/sessions/s1.jsonl:1",
        "2025-03-05 09:00  user in pi session “session s2”",
        f"“{UV}”",
        f"after: {NPM}",
        "/sessions/s2.jsonl:1",
    ]


def test_one_that_ended_says_when_and_a_message_that_is_gone_is_told(patterns: Lake) -> None:
    put(patterns, "friction_clusters", pattern(7, "Gone.", evidence=[{"message_id": "m-0", "start": 0, "end": 4}]))
    assert "message m-0 is no longer in the tables" in shown("f-20250305-007")
    assert any(line.endswith("ended on 2025-03-03") for line in shown(OLD))
    assert "No message supports it." in shown(OLD)


def test_a_change_that_is_a_diff_keeps_its_lines(patterns: Lake) -> None:
    diff = '--- a/.claude/settings.json\n+++ b/.claude/settings.json\n-  "a": 1\n+  "a": 2'
    put(patterns, "friction_clusters", pattern(8, "Drift.", change=diff, adds=None, replaces='  "a": 1', section=None))
    out = run("f-20250305-008").stdout
    assert "\n".join(f"  {line}" for line in diff.splitlines()) in out
    assert 'Change in MEMORY.md:\n  - "a": 1\n' in out


def test_json_has_all_of_it(patterns: Lake) -> None:
    found = as_json(U)
    assert (found["fix"], found["kind_in_words"], found["minutes"]) == ("pending", "repeated correction", 64.0)
    assert [day["day"] for day in found["days"]] == ["2025-03-04", "2025-03-05"]
    assert [said["quote"] for said in found["said"]] == [UV, UV]
    assert [said["session_id"] for said in found["said"]] == ["s1", "s2"]
    assert [week["occurrences"] for week in found["by_week"]] == [1, 0, 2]


def test_nothing_of_what_was_said_reaches_the_terminal_as_an_order(lake: Lake) -> None:
    said = say(lake, "s1", f"user: {EVIL}")
    row = pattern(1, EVIL, target_file=EVIL, replaces=EVIL, projects=[EVIL], section=EVIL, evidence=spans(*said))
    put(lake, "friction_clusters", row)
    vector = {"day": DAY, "source_id": "o-1", "point_id": "1", "model": EVIL, "dimension": 384}
    put(lake, "embeddings", vector)
    put(lake, "observations", observation("Use uv."))
    for args in ((), (U.replace("04", "05", 1),), ("--json",), (row["pattern_id"], "--json")):
        done = run(*args)
        out = done.stdout + done.stderr
        assert not {c for c in out if (ord(c) < 32 and c != "\n") or c in "\u202e\x7f\x9b"}, args
        assert not [line for line in out.splitlines() if line.startswith("f-2099")], args
    json.loads(run("--json").stdout)


def test_secrets_stay_the_marks_that_they_became(lake: Lake) -> None:
    said = say(lake, "s1", "user: use [redacted: token] and not pip")
    put(lake, "friction_clusters", pattern(1, "Token.", evidence=spans(*said)))
    assert "“use [redacted: token] and not pip”" in shown("f-20250305-001")


def test_what_was_said_is_clipped_and_whole_in_json(lake: Lake) -> None:
    said = say(lake, "s1", f"user: {'uv! ' * 400}")
    put(lake, "friction_clusters", pattern(1, "Long.", evidence=spans(*said)))
    quote = next(line for line in shown("f-20250305-001") if line.startswith("“uv!"))
    assert len(quote) <= 602 and quote.endswith("…”")
    found = as_json("f-20250305-001")
    assert len(found["said"][0]["quote"]) == 1600


def test_where_there_is_nothing_one_sentence_says_why(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown() == ["No day has been searched yet; `memory run` does that."]
    assert shown("--ended") == ["No day has been searched yet; `memory run` does that."]
    lake.replace("friction_clusters", lake.read("friction_clusters"), [DAY])
    few = "Not enough yet: 12 of 100 indexed texts in the last 7 days (to 2025-03-05)."
    say(lake, "s1", *["user: Hello."] * 12)
    assert shown() == [few]
    assert shown("--ended") == ["No pattern has ended."]
    found = as_json()
    assert (found["points"], found["points_needed"], found["patterns"], found["why"]) == (12, 100, [], few)
    say(lake, "s2", *["user: Hello."] * 88)
    nothing = "Nothing recurs in the last 7 days (to 2025-03-05)."
    assert shown() == [nothing, NO_MODEL_FOR_FRICTION]
    monkeypatch.setenv("REFLECTOR_MODEL", "openai:gpt-5-mini")
    assert shown() == [nothing]


def test_what_was_asked_for_may_be_none_of_those_that_live(patterns: Lake) -> None:
    asked = ("--kind", "missing_skill")
    assert shown(*asked) == ["2 patterns are active, but none of them matches the filters."]
    assert shown("--ended", *asked) == ["1 pattern has ended, but it does not match the filters."]


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("f-20250305-999",), FAILED, "There is no friction pattern f-20250305-999; `memory friction` lists"),
        (
            ("p-20250305-001",),
            MISUSED,
            "not the id of a friction pattern; such ids look like f-20260305-001. `memory why p-2",
        ),
        (("nonsense\x1b[2J",), MISUSED, "not the id of a friction pattern"),
        (("f-1",), MISUSED, "`memory friction` lists them."),
        ((U, "--ended"), MISUSED, "ID selects one pattern"),
        (("--kind", "typo"), MISUSED, "'typo' is not a kind of friction; expected one of repeated_correction, "),
        (("--project", "nowhere"), MISUSED, "No session of a project 'nowhere' was read; known are kiln, shop."),
    ],
)
def test_a_wrong_call_is_one_sentence(
    patterns: Lake, tmp_path: Path, args: tuple[str, ...], code: int, sentence: str
) -> None:
    done = run(*args)
    assert (done.exit_code, done.stdout) == (code, "")
    assert sentence in " ".join(done.stderr.split()) and "\x1b[2J" not in done.stderr
    assert "Traceback" not in done.stderr


def test_it_imports_neither_dagster_nor_a_model(tmp_path: Path) -> None:
    code = (
        "import sys, memory_pipeline.cli.friction\n"
        "print([m for m in ('dagster', 'torch', 'sklearn', 'PIL', 'numpy', 'qdrant_edge') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("title", [UV, EVIL])
def test_status_tells_how_many_live_and_which_is_the_worst(patterns: Lake, title: str) -> None:
    put(patterns, "friction_clusters", pattern(2, title, severity=99.0, sessions=7))
    lines = CliRunner().invoke(app, ["status"]).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("friction "))
    assert lines[start].split(maxsplit=1)[1] == "3 active patterns, the worst first: `memory friction`"
    assert lines[start + 1].split(maxsplit=1)[0] == "f-20250305-002" and lines[start + 1].endswith(" (7 sessions)")
    found = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert [p["id"] for p in found["friction"]] == ["f-20250305-002", U, N]


def test_status_says_why_there_is_none(lake: Lake) -> None:
    lines = CliRunner().invoke(app, ["status"]).stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("friction ")] == [
        "No day has been searched yet; `memory run` does that."
    ]


def test_the_summary_of_a_run_tells_what_lived_on_its_last_day(patterns: Lake) -> None:
    put(patterns, "friction_clusters", pattern(9, "Later.", day=day_after(3), severity=99.0))
    settings = load_settings()
    assert [p["id"] for p in summarize_patterns(settings, DAY)["friction"]] == [U, N]
    assert [p["id"] for p in summarize_patterns(settings)["friction"]] == ["f-20250308-009", U, N]
    assert summarize_patterns(settings, day_after(-30)) == {
        "friction": [],
        "no_friction": "2025-02-03 has not been searched yet; `memory run` does that.",
    }
