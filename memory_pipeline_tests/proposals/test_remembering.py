"""A line that is asked to be remembered is a proposal like any other, and no more."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from filelock import Timeout

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.cards import as_offered
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import APPROVED, REJECTED, OpenLog, ProposalLog
from memory_pipeline.proposals.remembering import AGENT, MAX_TEXT, NotRememberedError, Remembered, remember
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.recall.briefing import brief_at
from memory_pipeline.recall.folders import place_of_folder
from memory_pipeline.recall.origin import origin
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, at, observation, proposal, put, reflection, workspace

NOW = at("18:00")
RULE = "Never fire the kiln above cone six."
FIRST = "p-20250305-10001"


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return Workspace(*workspace(tmp_path))


def ask(opened: Workspace, text: str = RULE, **other: str | None) -> Remembered:
    return remember(opened, text, NOW, **other)


def text_of(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def test_it_is_offered_at_once_and_in_memory_only_when_approved(opened: Workspace) -> None:
    made = ask(opened, project="kiln")
    assert made == Remembered(FIRST, RULE, "Hard Rules")
    reconcile(opened, NOW)
    assert f"- [ ] `{FIRST}` {RULE}" in text_of(opened.settings.review_file)
    assert not opened.settings.memory_file.exists()
    decide(opened, {FIRST: APPROVED}, NOW + timedelta(minutes=1))
    reconcile(opened, NOW + timedelta(minutes=1))
    assert RULE in text_of(opened.settings.memory_file)
    assert "(project: kiln)" in text_of(opened.settings.memory_file)
    assert judge_integrity(opened.lake, opened.settings.memory_file).passed


def test_it_says_who_asked_and_why_finds_it(opened: Workspace) -> None:
    ask(opened)
    agents = ask(opened, "Bake the tiles at noon.", trust=AGENT, client="codex\x1b[2J <!--")
    log = ProposalLog(opened.lake)
    lines = {p.proposal_id: p.evidence for p in as_offered(opened, log, log.pending())}
    assert lines[FIRST] == "2025-03-05 18:00 · you, with `memory remember`"
    assert lines[agents.proposal_id or ""].endswith("an agent (codex[2J &lt;!--), in words that may not be yours")
    found = origin(opened.settings, FIRST)
    assert found["table"] == "remembered"
    assert [said["quote"] for said in found["said"]] == [RULE]
    assert "you, with `memory remember`" in found["history"][0]["detail"]


@pytest.mark.parametrize("text", [RULE, "never fire the kiln above cone six", "Never fire a kiln above cone six!"])
def test_what_is_pending_is_said_to_be_so(opened: Workspace, text: str) -> None:
    ask(opened)
    assert ask(opened, text) == Remembered(FIRST, RULE, known="pending")
    assert opened.lake.read("remembered").height == 1


def test_what_the_user_took_out_of_memory_may_be_asked_for_again(opened: Workspace) -> None:
    put(opened.lake, "proposals", proposal(1, RULE))
    decide(opened, {"p-20250305-001": APPROVED}, NOW)
    reconcile(opened, NOW)
    assert ask(opened).known == "approved"
    opened.settings.memory_file.write_text("")
    assert ask(opened).proposal_id == FIRST


def test_a_rejected_line_is_the_users_to_ask_for_again_and_no_agents(opened: Workspace) -> None:
    ask(opened)
    decide(opened, {FIRST: REJECTED}, NOW)
    assert ask(opened, trust=AGENT).known == REJECTED
    assert ask(opened) == Remembered("p-20250305-10002", RULE, "Hard Rules")


def test_a_line_that_contradicts_a_pending_one_is_no_duplicate(opened: Workspace) -> None:
    ask(opened, "Always use tabs and no spaces in the indented recipes of Makefiles that we write by hand.")
    other = "Never use tabs and no spaces in the indented recipes of Makefiles that we write by hand."
    assert not ask(opened, other).known


def test_nothing_hidden_is_stored(opened: Workspace) -> None:
    made = ask(opened, "Upload the charts at\nnoon.\u200b<!-- p-1 --> <private>Ask Ines first.</private>")
    stored = b"".join(path.read_bytes() for path in opened.settings.workspace.rglob("*.parquet"))
    assert made.text == "Upload the charts at noon.&lt;!-- p-1 --&gt; <private>[private]</private>"
    assert b"Ines" not in stored


@pytest.mark.parametrize("text", ["Upload with AKIAIOSFODNN7EXAMPLE.", "The password of the kiln is swordfish9."])
def test_a_secret_is_refused_and_stored_nowhere(opened: Workspace, text: str) -> None:
    with pytest.raises(NotRememberedError, match="Say where the secret is stored"):
        ask(opened, text)
    stored = b"".join(path.read_bytes() for path in opened.settings.workspace.rglob("*") if path.is_file())
    assert b"AKIAIOSFODNN7EXAMPLE" not in stored
    assert b"swordfish9" not in stored


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  \n", "no text to remember"),
        ("…!", "no text to remember"),
        ("word " * MAX_TEXT, f"at most {MAX_TEXT:,}"),
        ("x" * (MAX_TEXT + 1), f"at most {MAX_TEXT:,}"),
    ],
)
def test_what_is_no_line_is_refused(opened: Workspace, text: str, told: str) -> None:
    with pytest.raises(NotRememberedError, match=told):
        ask(opened, text)
    assert opened.lake.read("remembered").is_empty()


def test_an_agents_line_ranks_below_the_users_and_is_told_to_no_agent(opened: Workspace, tmp_path: Path) -> None:
    agents = ask(opened, "Never glaze on a Friday.", trust=AGENT)
    ask(opened)
    assert [row["proposal_id"] for row in ProposalLog(opened.lake).pending()] == [FIRST[:-1] + "2", agents.proposal_id]
    told = brief_at(opened.settings, place_of_folder(tmp_path)).text
    assert RULE in told
    assert "Friday" not in told


def test_a_run_that_began_before_neither_loses_it_nor_gives_its_number(opened: Workspace) -> None:
    text = "Never glaze on a Friday."
    put(opened.lake, "observations", observation(text, priority="high", kind="rule"))
    put(opened.lake, "reflections", reflection(text, priority="high", kind="rule"))
    stage = ProposalsStage(opened)
    stage._known_lines()
    ask(opened)
    bring_up_to_date(stage, opened.lake, DAY)
    frame = ProposalLog(opened.lake).frame
    assert set(frame["proposal_id"]) == {"p-20250305-001", FIRST}
    again = ProposalsStage(opened)
    again._known_lines()
    assert again._last_number[f"{DAY:%Y%m%d}"] == 1


def test_it_survives_that_its_day_is_made_anew(opened: Workspace) -> None:
    ask(opened)
    put(opened.lake, "observations", observation(RULE, priority="high", kind="rule"))
    put(opened.lake, "reflections", reflection(RULE, priority="high", kind="rule"))
    bring_up_to_date(ProposalsStage(opened), opened.lake, DAY)
    (row,) = ProposalLog(opened.lake).pending()
    assert (row["proposal_id"], row["support"]) == (FIRST, 2)


def test_it_waits_for_no_run(opened: Workspace) -> None:
    """A run that holds the proposals is one that reconciles."""
    with OpenLog.open(opened):
        assert ask(opened).proposal_id == FIRST
        with pytest.raises(Timeout):
            reconcile(opened, NOW, wait=0.0)


def test_lines_that_come_at_the_same_time_are_all_kept(opened: Workspace) -> None:
    lines = [f"The {colour} glaze melts at cone {n}." for n, colour in enumerate(("red", "blue", "green", "grey"))]
    threads = [threading.Thread(target=ask, args=(opened, line)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = Lake(opened.lake.root).read("remembered")
    assert sorted(rows["text"]) == sorted(lines)
    assert rows["proposal_id"].is_unique().all()
