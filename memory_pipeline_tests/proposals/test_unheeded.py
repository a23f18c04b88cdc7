"""Approved lines that agents were told three times and broke again: offered to be struck, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_pipeline.friction.observed import SHOWN
from memory_pipeline.proposals.cards import cards_of
from memory_pipeline.proposals.events import PENDING, ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.recall.origin import origin
from memory_pipeline_tests.rows import Opened, at, day_after, say, workspace

RULE, FIX = "p-20250301-001", "f-20250306-901"
LINE = "Never run `git push --force`."
PUSH, DONE = "tool: Bash(command=git push --force)", "tool: done"
NOW = at("18:00", day_after(1))


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    settings, lake = workspace(tmp_path)
    settings.memory_file.write_text(f"# Memory\n\n## Hard Rules\n\n- {LINE} <!-- {RULE} -->\n- Glaze twice.\n")
    return Opened(settings, lake)


def tell(opened: Opened, sessions: int, *, breaks_again: bool = True) -> None:
    """Sessions in which a hook told the rule at the first push, and that pushed again if they did not heed it."""
    folder = opened.settings.actions_dir
    folder.mkdir(parents=True)
    lines = []
    for n in range(sessions):
        day = day_after(n - sessions + 1)
        say(opened.lake, f"s{n}", "user: Go.", PUSH, DONE, *((PUSH, DONE) if breaks_again else ()), day=day)
        entry = {"at": f"{at('09:01', day):%Y-%m-%dT%H:%M:%SZ}", "session": f"s{n}", "id": RULE, "as": "hint"}
        lines.append(json.dumps(entry) + "\n")
    (folder / SHOWN).write_text("".join(lines))


def review(opened: Opened, **decisions: str) -> str:
    taken = {p.replace("_", "-"): decision for p, decision in decisions.items()}
    decide(opened.workspace, taken, NOW)
    reconcile(opened.workspace, NOW)
    return opened.settings.review_file.read_text() if opened.settings.review_file.exists() else ""


def test_a_line_that_was_ignored_three_times_is_offered_to_be_struck(opened: Opened) -> None:
    tell(opened, 3)
    text = review(opened)
    assert f"- [ ] `{FIX}` **Agents were told this 3 times in vain; to keep and enforce it" in text
    assert f"> - {LINE}" in text and f"`memory agents rules set {RULE} deny`" in text
    assert "3 times in 3 sessions since 2025-03-03" in text and "git push --force)” · last on 2025-03-05" in text
    (card,) = cards_of(opened.workspace, ProposalLog(opened.lake).pending())
    assert card.quotes[0][0] == "“Bash(command=git push --force)”"
    assert origin(opened.settings, FIX) is not None
    review(opened, f_20250306_901="approved")
    memory = opened.settings.memory_file.read_text()
    assert f"~~{LINE}~~" in memory and "- Glaze twice.\n" in memory


def test_a_line_that_is_kept_is_not_offered_again(opened: Opened) -> None:
    tell(opened, 3)
    review(opened)
    before = opened.settings.memory_file.read_bytes()
    review(opened, f_20250306_901="rejected")
    assert LINE not in review(opened) and PENDING not in ProposalLog(opened.lake).status.values()
    assert opened.settings.memory_file.read_bytes() == before


@pytest.mark.parametrize("case", ["twice", "heeded", "struck", "unreadable modes"])
def test_no_line_is_offered_without_reason(opened: Opened, case: str) -> None:
    tell(opened, 2 if case == "twice" else 3, breaks_again=case != "heeded")
    if case == "struck":
        opened.settings.memory_file.write_text(f"- ~~{LINE}~~ <!-- {RULE} -->\n")
    if case == "unreadable modes":
        (opened.settings.workspace / "connections" / "rules.json").write_text("[")
    review(opened)
    assert ProposalLog(opened.lake).fixes == {}
