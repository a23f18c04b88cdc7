"""What is done on the page, by the requests of its forms: held, undone, recorded, beside REVIEW.md."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import APPROVED, PENDING, REJECTED, ProposalLog
from memory_pipeline.proposals.review import decide, now_utc, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.web.memory import memory_sections, retirement
from memory_pipeline.web.review import requested_step, review_screen
from memory_pipeline.web.review_session import RETIRED, ReviewSession
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import (
    day_after,
    fixable,
    observation,
    proposal,
    put,
    rule_pattern,
    say,
    workspace,
)
from memory_pipeline_tests.web.serving import served

LINES = {
    1: "Never use npm in this repository.",
    2: "Deploy on Fridays only after the tests.",
    3: "Write all times in UTC.",
    4: "Branch names start with the ticket.",
    5: "The staging database is read-only.",
    6: "Run the linter before each commit.",
}


def p(number: int) -> str:
    return f"p-20250305-{number:03d}"


def filled(folder: Path, **settings: object) -> tuple[Settings, Lake]:
    made, lake = workspace(folder, **settings)
    say(lake, "s1", *(f"user: {line}" for line in LINES.values()))
    for number, line in LINES.items():
        put(lake, "observations", observation(line))
        span = {"message_id": f"s1-05-09:00-{number - 1}", "start": 0, "end": len(line)}
        put(lake, "proposals", proposal(number, line, evidence=[span], projects=["kiln"] if number % 2 else None))
    return made, lake


def status(lake: Lake) -> dict[str, str]:
    return dict(ProposalLog(lake).status)


def step(review_session: ReviewSession, number: int, do: str, **fields: str) -> None:
    made = requested_step(review_session, {"do": do, "id": p(number), **fields})
    assert made is not None
    review_session.take(made)


def test_a_step_is_recorded_with_the_next_one_and_can_be_undone_until_then(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    with ReviewSession(settings, held_seconds=3600) as review_session:
        step(review_session, 1, "approve")
        assert status(lake)[p(1)] == PENDING
        undone = review_session.undo()
        assert undone is not None and undone.proposal_id == p(1)
        step(review_session, 1, "reject")
        step(review_session, 2, "approve", section="Patterns")
        review_session.wait()
        assert status(lake)[p(1)] == REJECTED
        assert status(lake)[p(2)] == PENDING
        assert review_session.undo() is not None
        assert review_session.undo() is None
        step(review_session, 3, "edit", text="  Write all times\r\nin UTC, with the offset. ", section="Hard Rules")
    text = settings.memory_file.read_text("utf-8")
    assert "Write all times in UTC, with the offset." in text
    assert status(lake) == {p(n): {1: REJECTED, 3: APPROVED}.get(n, PENDING) for n in LINES}
    row = ProposalLog(lake).rows([p(3)])[p(3)]
    assert (row["surface"], row["decided_text"]) == ("page", "Write all times in UTC, with the offset.")


def test_after_a_while_it_is_recorded_and_both_files_say_so(tmp_path: Path) -> None:
    settings, _ = filled(tmp_path)
    with ReviewSession(settings, held_seconds=0.05) as review_session:
        review_session.look()
        step(review_session, 2, "approve", section="Patterns")
        deadline = time.monotonic() + 60
        while review_session.under_way():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        review_session.wait()
        memory, review = (path.read_text("utf-8") for path in (settings.memory_file, settings.review_file))
        assert re.search(r"## Patterns\n- \(2025-03-05\) Deploy on Fridays[^\n]* <!-- p-20250305-002 -->", memory)
        assert p(2) not in review
        assert p(1) in review


def test_marks_in_review_md_are_read_when_the_page_is(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    with served(settings) as page:
        own = page.enter()
        assert LINES[1] in page.ask("GET", "/review", own).text
        text = settings.review_file.read_text("utf-8")
        settings.review_file.write_text(text.replace(f"- [ ] `{p(1)}`", f"- [x] `{p(1)}`"), "utf-8")
        shown = page.ask("GET", "/review", own).text
        assert f'id="{p(1)}"' not in shown
        assert f"{p(1)} was approved in REVIEW.md." in shown
    assert status(lake)[p(1)] == APPROVED


def test_what_was_decided_elsewhere_meanwhile_is_told_and_not_decided_twice(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    with served(settings) as page:
        page.change("/review", do="approve", id=p(1))
        decide(Workspace(settings, lake), {p(1): REJECTED}, now_utc())
        page.change("/review", do="later", id=p(2))
        page.review_session.wait()
        shown = page.ask("GET", "/review", page.enter()).text
        assert f"{p(1)} is already rejected, and a decision is final." in shown
    assert status(lake)[p(1)] == REJECTED
    assert not settings.memory_file.exists() or LINES[1] not in settings.memory_file.read_text("utf-8")


def test_a_page_that_ends_records_what_it_held(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    with served(settings) as page:
        answer = page.change("/review", do="approve", id=p(4), back="project=kiln")
        assert (answer.status, answer.headers["location"]) == (303, "/review?project=kiln")
        assert status(lake)[p(4)] == PENDING
    assert status(lake)[p(4)] == APPROVED
    assert LINES[4] in settings.memory_file.read_text("utf-8")


def test_filters_and_order(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path, pending_limit=4)
    put(lake, "proposals", proposal(9, "An old line of kiln.", day=day_after(-60), projects=["kiln"]))
    with ReviewSession(settings, held_seconds=3600) as review_session:

        def ids(**asked: str) -> list[str]:
            return [each.shown.card.proposal_id for each in review_screen(review_session, asked)["cards"]]

        first = review_screen(review_session, {})
        assert (len(first["cards"]), first["total"], first["more"]) == (4, 7, 4)
        assert set(ids()) | set(ids(**{"from": "4"})) == {*map(p, LINES), "p-20250104-009"}
        assert set(ids(project="kiln")) == {p(1), p(3), p(5), "p-20250104-009"}
        assert ids(project="sloop") == []
        assert first["projects"] == {"kiln": 4, "no project": 3}
        last = ids(**{"from": "4"})[-1]
        put_off = requested_step(review_session, {"do": "later", "id": (top := ids()[0])})
        assert put_off is not None
        review_session.take(put_off)
        assert top not in ids()
        assert ids(**{"from": "4"})[-2:] == [last, top]
        review_session.undo()
        assert ids()[0] == top


def test_a_card_has_what_was_said_around_it(tmp_path: Path) -> None:
    settings, _ = filled(tmp_path)
    with ReviewSession(settings, held_seconds=3600) as review_session:
        card = next(c for c in review_screen(review_session, {})["cards"] if c.shown.card.proposal_id == p(3))
    assert [turn["text"] for turn in card.shown.turns] == list(LINES.values())
    assert (card.shown.message_id, card.shown.start, card.shown.end) == ("s1-05-09:00-2", 0, len(LINES[3]))


def test_fixes_stand_with_their_change_and_lead_to_what_their_target_says(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    put(lake, "friction_clusters", rule_pattern(1, "Always use uv, never pip."), fixable(2, "CI fails on formatting"))
    with served(settings) as page:
        own = page.enter()
        shown = page.ask("GET", "/review", own).text
        assert '<span class="adds">+ Always use uv, never pip.</span>' in shown
        assert "Say in AGENTS.md how to avoid this: CI fails on formatting" in shown
        page.change("/review", do="approve", id="f-20250305-001")
        page.change("/review", do="approve", id="f-20250305-002")
        page.review_session.record_held()
        page.review_session.wait()
        assert "make this change in AGENTS.md" in page.ask("GET", "/review", own).text
    assert "Always use uv, never pip." in settings.memory_file.read_text("utf-8")


def test_a_retired_line_is_struck_through_and_nothing_else_changes(tmp_path: Path) -> None:
    settings, lake = filled(tmp_path)
    decide(Workspace(settings, lake), {p(1): APPROVED, p(2): APPROVED}, now_utc())
    reconcile(Workspace(settings, lake), now_utc())
    before = settings.memory_file.read_text("utf-8") + "\n## Mine\n* By hand,\n  over two lines.\n"
    settings.memory_file.write_text(before, "utf-8")
    with ReviewSession(settings, held_seconds=3600) as review_session:
        for id_, section, text in ((p(1), "Hard Rules", LINES[1]), ("", "Mine", "By hand, over two lines.")):
            made = retirement(review_session, {"id": id_, "section": section, "text": text})
            assert made is not None and made.done == RETIRED
            review_session.take(made)
            assert text not in [each.text for section in memory_sections(review_session) for each in section.lines]
        assert retirement(review_session, {"id": p(3), "section": "Hard Rules", "text": LINES[3]}) is None
    after = settings.memory_file.read_text("utf-8")
    assert re.search(
        r"- ~~\(2025-03-05\) Never use npm[^\n]*~~ \(retired, \d{4}-\d\d-\d\d\) <!-- p-20250305-001 -->", after
    )
    assert re.search(r"\* ~~By hand,~~\n  ~~over two lines.~~ \(retired, \d{4}-\d\d-\d\d\)\n", after)
    assert re.sub(r"~~| \(retired, [\d-]+\)", "", after) == before
    assert status(lake)[p(1)] == APPROVED  # it was decided once; that it holds no more is what the file says


STEPS = st.tuples(
    st.sampled_from(["page", "page", "mark", "edit", "reconcile", "undo", "wait"]),
    st.integers(1, len(LINES)),
    st.sampled_from(["approve", "reject", "later", "edit"]),
)


def review_by_hand(settings: Settings, number: int, mark: str, *, edited: bool) -> None:
    """A mark in the file as it is, and where asked other words."""
    if not settings.review_file.exists():
        return
    text = settings.review_file.read_text("utf-8")
    line = re.search(rf"- \[.\] `{p(number)}` (.*)", text)
    if line:
        words = f"{line[1]} As edited." if edited else line[1]
        settings.review_file.write_text(text.replace(line[0], f"- [{mark}] `{p(number)}` {words}"), "utf-8")


@pytest.mark.slow
@given(st.lists(STEPS, min_size=4, max_size=14))
def test_the_page_and_review_md_in_turn_give_each_proposal_one_end(steps: list[tuple[str, int, str]]) -> None:
    alternate(steps)


def test_one_long_turn_of_both(tmp_path: Path) -> None:
    """The same without Hypothesis, so that the quick tests have it once."""
    kinds = ["page", "mark", "reconcile", "page", "edit", "undo", "page", "wait"]
    marks = ["approve", "reject", "edit", "later"]
    alternate([(kinds[n % 8], n % 6 + 1, marks[n * 3 % 4]) for n in range(16)])


def alternate(steps: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings, lake = filled(Path(folder))
        decided: dict[str, str] = {}
        with ReviewSession(settings, held_seconds=3600) as review_session:
            review_session.look()
            for surface, number, do in steps:
                if surface == "page":
                    if made := requested_step(
                        review_session, {"do": do, "id": p(number), "text": f"{LINES[number]} Edited."}
                    ):
                        review_session.take(made)
                elif surface in ("mark", "edit"):
                    review_by_hand(settings, number, "-" if do == "reject" else "x", edited=surface == "edit")
                elif surface == "reconcile":
                    reconcile(Workspace(settings, lake), now_utc())
                elif surface == "undo":
                    review_session.undo()
                else:
                    review_session.look()
                    review_session.wait()
                now = {i: s for i, s in status(lake).items() if s != PENDING}
                assert decided.items() <= now.items()  # what ended once ends in no other way
                decided = now
        reconcile(Workspace(settings, lake), now_utc())
        log = ProposalLog(lake)
        ends = log.decisions["proposal_id"].to_list()
        assert len(ends) == len(set(ends))
        memory = settings.memory_file.read_text("utf-8") if settings.memory_file.exists() else ""
        review = settings.review_file.read_text("utf-8")
        for number in LINES:
            end = log.status[p(number)]
            assert end in (PENDING, APPROVED, REJECTED)
            assert memory.count(f"<!-- {p(number)} -->") == (end == APPROVED)
            assert review.count(f"`{p(number)}`") == (end == PENDING)
