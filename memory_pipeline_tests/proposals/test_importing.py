"""An imported line is offered once, for ever, and waits where it crowds out nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.cards import as_offered, cards_of
from memory_pipeline.proposals.events import APPROVED, REJECTED, ProposalLog
from memory_pipeline.proposals.remembering import ImportLine, Judged, judged, offer, remember
from memory_pipeline.proposals.review import decide, on_display, reconcile
from memory_pipeline.recall.briefing import brief_at
from memory_pipeline.recall.folders import place_of_folder
from memory_pipeline.recall.origin import origin
from memory_pipeline.reflections.types import ARCHITECTURE
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import at, proposal, put, workspace

NOW = at("18:00")
RULE = "Never fire the kiln above cone six."
FIRST = "p-20250305-10001"


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return Workspace(*workspace(tmp_path))


def line(text: str = RULE, **other: object) -> ImportLine:
    given = {"origin": "Codex's memory", "path": Path("/m/MEMORY.md"), "number": 3, "position": ARCHITECTURE} | other
    return ImportLine(text, **given)  # type: ignore[arg-type]


def known(opened: Workspace, *texts: str, project: str | None = None) -> list[str]:
    return [one.known for one in judged(opened, [line(text, project=project) for text in texts])]


def test_it_is_a_proposal_that_says_where_it_stood(opened: Workspace) -> None:
    assert offer(opened, [line(project="kiln")], NOW) == [Judged(line(project="kiln"), "", FIRST)]
    log = ProposalLog(opened.lake)
    (shown,) = as_offered(opened, log, log.pending())
    assert (shown.section, shown.text) == ("Hard Rules", RULE)
    assert shown.evidence == "2025-03-05 18:00 · from Codex's memory, /m/MEMORY.md:3 · project: kiln"
    (card,) = cards_of(opened, log.pending())
    assert card.evidence == shown.evidence
    found = origin(opened.settings, FIRST)
    assert [(said["quote"], said["source"]) for said in found["said"]] == [(RULE, "/m/MEMORY.md:3")]
    assert found["history"][0]["detail"] == "Hard Rules, from Codex's memory, /m/MEMORY.md:3"


def test_what_was_ever_offered_is_known_whatever_became_of_it(opened: Workspace) -> None:
    offer(opened, [line()], NOW)
    assert known(opened, RULE, "never fire the kiln above cone six") == ["pending"] * 2
    reconcile(opened, NOW)
    decide(opened, {FIRST: APPROVED}, NOW, texts={FIRST: "Cone six is the most that our kiln bears."})
    reconcile(opened, NOW)
    assert known(opened, RULE, "Cone six is the most that our kiln bears.") == ["approved"] * 2
    opened.settings.memory_file.write_text("# Memory\n")
    assert known(opened, RULE, "Cone six is the most that our kiln bears.") == ["approved"] * 2
    assert [one.known for one in offer(opened, [line()], NOW)] == ["approved"]


def test_what_was_rejected_or_asked_for_is_known(opened: Workspace) -> None:
    put(opened.lake, "proposals", proposal(1, RULE))
    decide(opened, {"p-20250305-001": REJECTED}, NOW)
    remember(opened, "Bake the tiles at noon.", NOW)
    assert known(opened, RULE, "Bake the tiles at noon.") == ["rejected", "pending"]


def test_a_line_of_the_users_own_hand_is_known_also_struck_through(opened: Workspace) -> None:
    opened.settings.memory_file.write_text(f"- {RULE}\n- ~~(2025-03-01) Use npm for bricks.~~ (retired, 2025-03-02)\n")
    assert known(opened, RULE, "Use npm for bricks.") == ["in MEMORY.md", "struck through in MEMORY.md"]


def test_two_lines_that_say_the_same_are_offered_once(opened: Workspace) -> None:
    assert known(opened, RULE, f"**{RULE}**", "Retry three times.") == ["", "above", ""]


def test_what_differs_in_a_number_or_says_the_contrary_is_new(opened: Workspace) -> None:
    offer(
        opened, [line("Retry the upload of the charts 3 times."), line("Always use tabs in our recipes of make.")], NOW
    )
    assert known(opened, "Retry the upload of the charts 5 times.", "Never use tabs in our recipes of make.") == [
        "",
        "",
    ]


def test_what_holds_for_one_project_is_offered_for_another(opened: Workspace) -> None:
    offer(opened, [line(project="kiln")], NOW)
    assert known(opened, RULE, project="oven") == [""]
    assert known(opened, RULE, project="kiln") == known(opened, RULE) == ["pending"]


def test_the_words_the_heading_or_the_kind_of_memory_choose_the_section(opened: Workspace) -> None:
    cases = {
        line(): "Hard Rules",
        line("The charts are drawn with gnuplot."): "System Architecture",
        line("Run the linter before you commit."): "Hard Rules",
        line("The charts are drawn with gnuplot.", heading="patterns"): "Patterns",
        line("Prefer short answers."): "User",
    }
    assert {one: one.section(opened.settings) for one in cases} == cases


def test_imported_lines_take_at_most_half_of_the_places(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path, pending_limit=6)
    opened = Workspace(settings, lake)
    said = [proposal(n, f"Brick {n} is laid in row {n} by hand.", last_seen=NOW - timedelta(days=90)) for n in range(9)]
    put(lake, "proposals", *said)
    reconcile(opened, NOW)
    offer(opened, [line(f"Never lay tile {n} in row {n} of the oven.") for n in range(50)], NOW)
    reconcile(opened, NOW)
    log = ProposalLog(lake)
    shown = [row["proposal_id"] for row in on_display(opened, log)]
    assert (len(shown), sum(int(p.rpartition("-")[2]) > 10_000 for p in shown)) == (6, 3)
    assert len(log.pending()) == 59


def test_no_agent_is_told_before_the_user_has_approved_it(opened: Workspace, tmp_path: Path) -> None:
    offer(opened, [line()], NOW)
    reconcile(opened, NOW)
    assert RULE not in brief_at(opened.settings, place_of_folder(tmp_path)).text
