"""Which reflections are offered for MEMORY.md: what lasts, each once, with its evidence."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.proposals.cards import evidence_lines
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.offering import NEXT_TIME, line_score
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import (
    DAY,
    Opened,
    Row,
    day_after,
    observation,
    observation_id,
    proposal,
    put,
    reflection,
    say,
    workspace,
)

SEVEN = [
    "Never deploy on a Friday.",
    "Always squash before a merge.",
    "Tests must run without a network.",
    "Invoices must be rounded to cents.",
    "Never log the token of a customer.",
    "Every migration has to be reversible.",
    "Always write dates in UTC.",
]
UV, FRIDAY, TABS = "Use uv for Python.", "Never deploy on a Friday.", "Indent Makefiles with tabs."


@dataclass
class Work(Opened):
    def reflect(self, text: str, *, day: date = DAY, session: str = "s1", **other: Any) -> None:
        """The text was observed on the day and reflected on it."""
        put(self.lake, "observations", observation(text, day=day, session=session))
        sources = [observation_id(text, day, session)]
        put(self.lake, "reflections", reflection(text, day=day, **{"sources": sources} | other))

    def run(self, day: date = DAY) -> dict[str, str]:
        """Bring the day up to date; returns the ends of its ids with their texts."""
        bring_up_to_date(ProposalsStage(self.workspace), self.lake, day)
        return {p["proposal_id"]: p["text"] for p in self.rows(day)}

    def rows(self, day: date = DAY) -> list[Row]:
        return self.lake.read("proposals", [day]).to_dicts()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path))


def test_a_rule_is_offered_with_everything_that_it_came_from(work: Work) -> None:
    again = observation("Take uv, not pip.", day=day_after(-1), session="s2")
    put(work.lake, "observations", again)
    work.reflect(UV, sources=[observation_id(UV), again["observation_id"]], support=2, sessions=2)
    work.run()
    (row,) = work.rows()
    line = work.lake.read("reflections").to_dicts()[0]
    assert row["proposal_id"] == "p-20250305-001"
    assert (row["section"], row["text"], row["priority"], row["support"]) == ("Hard Rules", UV, "high", 2)
    assert row["sources"] == [line["reflection_id"], observation_id(UV), again["observation_id"]]
    (first,) = observation(UV)["evidence"]
    assert row["evidence"] == [first, *again["evidence"]]


@pytest.mark.parametrize(
    ("line", "is_offered"),
    [
        ({"priority": "high"}, True),
        ({"priority": "medium"}, True),  # of a kind that lasts: notable
        ({"priority": "medium", "kind": "statement", "sessions": 2}, True),  # said again: notable
        ({"priority": "medium", "kind": "statement", "sessions": 1, "support": 5}, False),  # in one session is once
        ({"priority": "medium", "kind": "state_change"}, False),
        ({"priority": "low", "sessions": 9}, False),
        ({"kind": "preference"}, True),
        ({"kind": "decision"}, True),
        ({"kind": "correction"}, True),
        ({"kind": "root_cause"}, True),
        ({"kind": "convention"}, True),
        ({"kind": "progress"}, False),  # does not last
        ({"kind": "statement"}, True),
        ({"kind": "state_change"}, True),
    ],
)
def test_what_of_a_model_is_worth_offering(work: Work, line: dict[str, Any], is_offered: bool) -> None:
    work.reflect(UV, reflector="openai:gpt", **line)
    assert bool(work.run()) is is_offered


@pytest.mark.parametrize("kind", ["rule", "preference", "decision", "correction"])
def test_what_a_user_laid_down_is_offered_without_a_model(work: Work, kind: str) -> None:
    work.reflect(UV, kind=kind)
    work.reflect(FRIDAY, kind=kind, priority="medium", sessions=6)  # not in explicit words, however often it was said
    assert list(work.run().values()) == [UV]


@pytest.mark.parametrize(
    ("line", "observed", "is_offered"),
    [
        ({"kind": "statement"}, {}, False),
        ({"kind": "root_cause"}, {}, False),
        ({"kind": "state_change"}, {}, False),
        ({}, {"trust": "assistant"}, False),
        ({"kind": "decision"}, {"trust": "assistant"}, False),
        ({"priority": "low"}, {}, False),
        ({"kind": "root_cause", "sessions": 2}, {"trust": "assistant"}, False),  # said again
        ({"kind": "statement", "sessions": 2, "priority": "medium"}, {}, False),
        ({}, {"observer": "openai:gpt", "trust": "assistant"}, True),  # a model made the words
    ],
)
def test_without_a_model_all_else_stays_an_observation(
    work: Work, line: dict[str, Any], observed: dict[str, Any], is_offered: bool
) -> None:
    put(work.lake, "observations", observation(UV, **observed))
    put(work.lake, "reflections", reflection(UV, **line))
    assert bool(work.run()) is is_offered


def test_no_more_than_the_best_five_that_a_model_made_of_a_session_are_offered(work: Work) -> None:
    for number, text in enumerate(SEVEN):
        work.reflect(text, support=number, reflector="openai:gpt")
    assert list(work.run().values()) == SEVEN[:1:-1]
    work.reflect(UV, support=9, reflector="openai:gpt")
    assert list(work.run().values()) == SEVEN[:1:-1]  # also where the day is made anew with more


@pytest.mark.parametrize("made", [{"session": "notes", "reflector": "openai:gpt"}, {}])
def test_notes_of_the_users_and_their_quoted_rules_are_offered_however_many(work: Work, made: dict[str, str]) -> None:
    for text in SEVEN:
        work.reflect(text, **made)
    assert len(work.run()) == 7


def test_only_what_this_day_said_is_offered_on_it(work: Work) -> None:
    """Reflections look back a week; their days have offered what is theirs."""
    put(work.lake, "observations", observation(UV, day=day_after(-1)))
    work.reflect(UV, sources=[observation_id(UV, day_after(-1))])
    assert work.run() == {}


def test_ids_stay_when_a_day_is_built_again_with_more(work: Work) -> None:
    work.reflect(UV)
    first = work.run()
    work.reflect(FRIDAY, support=9, sessions=9)  # would have come first
    assert work.run() == first | {"p-20250305-002": FRIDAY}


def test_what_was_offered_stays_also_when_its_reflection_is_gone(work: Work) -> None:
    work.reflect(UV)
    first = work.run()
    work.lake.replace("reflections", work.lake.read("reflections")[:0], [DAY])
    work.reflect(FRIDAY)
    assert work.run() == first | {"p-20250305-002": FRIDAY}


def test_what_comes_from_the_same_words_is_not_offered_again_however_it_is_put(work: Work) -> None:
    source = observation_id(UV)
    put(work.lake, "proposals", proposal(1, "Entirely other wording.", day=day_after(1), sources=["r-1", source]))
    work.reflect(UV)
    assert work.run() == {}


def test_the_reviewer_sees_who_said_it_when_and_where(work: Work) -> None:
    say(work.lake, "s1", f"user: {UV}")
    say(work.lake, "s2", f"user: {UV}", day=day_after(-1))
    other = observation(UV, day=day_after(-1), session="s2")
    put(work.lake, "observations", other)
    work.reflect(UV, sources=[observation_id(UV), other["observation_id"]], support=2, sessions=2)
    work.reflect(FRIDAY)
    work.run()
    log = ProposalLog(work.lake)
    lines = evidence_lines(Workspace(work.settings, work.lake), log, log.pending())
    assert lines == {
        "p-20250305-001": "2025-03-05 09:00 · you in “session s1” · said 2 times in 2 sessions",
        "p-20250305-002": "2025-03-05 09:00 · you in “session s1”",
    }


CHANGED = "Added `region.py`, `depot.py` and `parcel.py` in src/parcels/domain of version 2.0."
RUN_LINT = "Before a commit, run the linter and then the tests."


def order(work: Work, *lines: tuple[str, str, dict[str, Any]]) -> list[str]:
    """The words with which a day's proposals begin, best first; of each line its text, whose it is, and the rest."""
    for text, trust, line in lines:
        put(work.lake, "observations", observation(text, trust=trust, **{"kind": line.pop("seen_as", line["kind"])}))
        given = {"section": "Patterns", "reflector": "openai:gpt", "sources": [observation_id(text)]}
        put(work.lake, "reflections", reflection(text, **given | line))
    bring_up_to_date(ProposalsStage(work.workspace), work.lake, DAY)
    return [row["text"].split()[0] for row in ProposalLog(work.lake).pending()]


def test_of_a_model_what_to_do_next_time_comes_before_what_was_changed(work: Work) -> None:
    found = order(
        work,
        (CHANGED, "assistant", {"kind": "state_change", "section": "System Architecture"}),
        (RUN_LINT, "assistant", {"kind": "convention", "priority": "medium"}),
        ("Stashing was rejected by the person.", "assistant", {"kind": "statement", "seen_as": "rule"}),
        ("Docs repeat nothing of docs/review.md.", "assistant", {"kind": "statement", "section": "Hard Rules"}),
        ("The `lock` of src/worker.py was stale.", "assistant", {"kind": "root_cause"}),
    )
    assert found == ["Docs", "Stashing", "The", "Before", "Added"]


def test_what_a_page_tells_to_do_does_not_come_first(work: Work) -> None:
    """A convention that only the result of a tool has is worth what it was."""
    shown = "The tool `mise` in .ci/run lists tasks of mise.toml."
    said = "The tests of `mise` in .ci/run go first in mise.toml."
    lines = [(text, trust, {"kind": "convention"}) for text, trust in ((shown, "tool"), (said, "assistant"))]
    order(work, *lines)
    values = {row["text"]: row["worth"] for row in work.rows()}
    assert values[said] == pytest.approx(values[shown] + NEXT_TIME)


def test_what_is_quoted_keeps_its_order(work: Work) -> None:
    """Without a model every line is the words of somebody, and the order was chosen for these."""
    put(work.lake, "observations", observation(UV))
    put(work.lake, "reflections", reflection(UV))
    bring_up_to_date(ProposalsStage(work.workspace), work.lake, DAY)
    assert work.rows()[0]["worth"] == line_score(UV, "rule", "user", "high")
