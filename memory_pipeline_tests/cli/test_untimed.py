"""Sessions that nobody timed, through the whole chain: no clock stands anywhere, and what stands instead says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.llm.openai_server import Asked, openai_server
from memory_pipeline_tests.sessions.untimed import CLOCKS, untimed_sessions

_CLOCK = re.compile(r"\b\d{1,2}:\d\d\b")


def texts_of(lake: Lake) -> dict[str, list[str]]:
    """Every text of every table that was made from what was said."""
    left_out = {"ledger"}  # when we ourselves asked
    found: dict[str, list[str]] = {}
    for table in TABLES.keys() - left_out:
        for row in lake.read(table).to_dicts():
            found.setdefault(table, []).extend(value for value in row.values() if isinstance(value, str))
    return found


def blocks(log: str) -> str:
    """What was observed; decisions below it bear the time at which they were made."""
    return "\n".join(re.findall(r"<!-- memory:observations:.*?<!-- /memory:observations", log, re.S))


@pytest.mark.slow
def test_no_clock_stands_anywhere_for_sessions_without_times(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    assert len(untimed_sessions(sessions)) == 5
    env = {"MEMORY_TIMEZONE": "UTC", "MEMORY_WORKSPACE": str(tmp_path / "ws")}
    summary = memory_json(tmp_path, "run", "--all", "--sessions", str(sessions), env=env)
    assert summary["failure"] is None
    lake = Lake(tmp_path / "ws" / "lake")
    messages, observations = lake.read("messages"), lake.read("observations")
    assert messages["session_id"].n_unique() == 5 and observations["session_id"].n_unique() == 5
    assert set(messages["untimed"]) == set(observations["untimed"]) == {"early in session"}

    (log,) = (tmp_path / "ws" / "memory").glob("2025-03-05.md")
    observed = blocks(log.read_text("utf-8"))
    assert observed.count("(early in session)") == observations.height and not _CLOCK.search(observed)
    offered = lake.read("proposals")["proposal_id"].to_list()
    review = (tmp_path / "ws" / "REVIEW.md").read_text("utf-8")
    assert offered and offered[0] in review and "early in session" in review
    evidence = [line for line in review.splitlines() if "_Last updated" not in line]
    shown = [memory(tmp_path, "why", offered[0], env=env).stdout.partition("\n\n")[2]]
    shown += [memory(tmp_path, "show", "2025-03-05", env=env).stdout.partition("### Decisions")[0]]
    done = memory(tmp_path, "review", "--approve", offered[0], env=env)
    assert done.returncode == 0, done.stderr
    shown += [*evidence, (tmp_path / "ws" / "MEMORY.md").read_text("utf-8")]
    for text in [*shown, *(text for texts in texts_of(lake).values() for text in texts)]:
        assert not _CLOCK.search(text), text
    assert not [clock for clock in CLOCKS if any(clock in text for text in shown)]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_is_shown_no_clock_and_may_not_give_one(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    untimed_sessions(sessions)

    def clocked(asked: Asked) -> str:
        said = re.findall(r"^\[#(\d+) [^\]]*user\]\n([^\n]{20,200})", asked.prompt, re.M)
        facts = "\n".join(f"* 🔴 rule (07:43) [#{number}] {words} It was 08:57." for number, words in said)
        return f"<observations>\n{facts}\n</observations>\n<current-task>Wait until 07:43.</current-task>"

    with openai_server(clocked) as server:
        model = {"OBSERVER_MODEL": "openai:gpt-5-mini", "OBSERVER_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        env = model | {"MEMORY_TIMEZONE": "UTC", "MEMORY_WORKSPACE": str(tmp_path / "ws"), "MEMORY_MODEL_RETRIES": "0"}
        summary = memory_json(tmp_path, "run", "--all", "--sessions", str(sessions), env=env)
        prompts = [asked.prompt for asked in server.requests]
    assert len(prompts) == 5
    assert all("[#1 early in session user]" in prompt and not _CLOCK.search(prompt) for prompt in prompts)
    assert summary["failure"] is None  # what was made up is not stored, so it need not stop what comes after
    assert summary["checks"]["failing"]["observations/hallucinated_timestamps"] == ["2025-03-05"]
    lake = Lake(tmp_path / "ws" / "lake")
    assert lake.read("proposals").height
    assert lake.read("observations").height >= 15  # some are too long for the budget
    assert not [text for texts in texts_of(lake).values() for text in texts if _CLOCK.search(text)]
    log = blocks((tmp_path / "ws" / "memory" / "2025-03-05.md").read_text("utf-8"))
    assert "(early in session)" in log and not _CLOCK.search(log)
