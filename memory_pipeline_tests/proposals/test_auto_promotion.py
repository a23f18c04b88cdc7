"""Promoting without asking: never by surprise, first in shadow, only what was earned, and taken back by a key press."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.defs.proposals import memory_file_asset
from memory_pipeline.proposals.automatic import report, retracted
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.review import Reconciled, UnknownProposalError, decide, reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import part
from memory_pipeline_tests.proposals.test_acceptance import LONG_AGO, history
from memory_pipeline_tests.proposals.test_crashes import Killed, die_at
from memory_pipeline_tests.rows import (
    DAY,
    at,
    bytes_of,
    day_after,
    events,
    observation,
    proposal,
    put,
    record_showings,
    workspace,
)

NOW = at("18:00")
UV, FRIDAY = "p-20250305-001", "p-20250305-002"
TEXTS = {UV: "Use uv for Python.", FRIDAY: "Never deploy on a Friday."}
BY_HAND = "# Memory\n\nBy hand.\n\n## Hard Rules\n- Be kind\n"


class Weeks:
    """A workspace whose person has decided before, with two lines of theirs in REVIEW.md since `NOW`."""

    def __init__(self, folder: Path, mode: str, ends: str = "a" * 40, *, shadow: bool = True, **row: Any) -> None:
        self.settings, self.lake = workspace(folder, auto_promote=mode, **row.pop("settings", {}))
        self.workspace = Workspace(self.settings, self.lake)
        history(self.lake, ends, row.pop("in_section", "Hard Rules"), shadow=shadow)
        said = row.pop("said", {})
        put(self.lake, "observations", *(observation(text) | said for text in TEXTS.values()))
        put(self.lake, "proposals", *(proposal(n, text, **row) for n, text in enumerate(TEXTS.values(), 1)))
        self.review, self.memory = self.settings.review_file, self.settings.memory_file
        self.memory.write_text(BY_HAND, "utf-8")
        reconcile(self.workspace, NOW)

    def run(self, days: float = 1) -> Reconciled:
        now = NOW + timedelta(days=days)
        return reconcile(self.workspace, now)

    def mark(self, proposal_id: str, mark: str) -> None:
        text = self.review.read_text("utf-8")
        assert f"- [ ] `{proposal_id}`" in text
        self.review.write_text(text.replace(f"- [ ] `{proposal_id}`", f"- [{mark}] `{proposal_id}`"), "utf-8")

    def status(self) -> list[str]:
        found = dict(ProposalLog(self.lake).frame.select("proposal_id", "status").iter_rows())
        return [found[p] for p in TEXTS]

    def noted(self) -> list[str]:
        return events(self.lake, "would_promote").filter(pl.col("day") > LONG_AGO)["proposal_id"].to_list()

    def tables(self) -> dict[str, object]:
        """Everything but what shadow mode notes, and backups."""
        files = bytes_of(self.settings.workspace)
        other = self.lake.read("events").filter(pl.col("kind") != "would_promote")
        return {k: v for k, v in files.items() if not k.startswith(("backups/", "lake/events/"))} | {
            "events": other.drop("already_there").to_dicts()
        }


# --- off and shadow ---


def test_off_is_the_default_and_notes_nothing(tmp_path: Path) -> None:
    assert workspace(tmp_path / "plain")[0].auto_promote == "off"
    week = Weeks(tmp_path / "off", "off")
    week.run(1)
    week.run(2)
    assert (week.noted(), report(Workspace(week.settings, week.lake), ProposalLog(week.lake))) == ([], [])
    assert week.memory.read_text("utf-8") == BY_HAND


def test_shadow_changes_no_byte_but_its_own_events(tmp_path: Path) -> None:
    off, shadow = Weeks(tmp_path / "off", "off"), Weeks(tmp_path / "shadow", "shadow")
    for days in (0.5, 1, 2, 6, 7, 9):
        off.run(days)
        shadow.run(days)
        assert shadow.tables() == off.tables()
        assert shadow.memory.read_text("utf-8") == BY_HAND
    assert shadow.noted() == [UV, FRIDAY]


def test_shadow_notes_each_line_once_with_the_reason(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "shadow")
    for days in (1, 1.5, 3):
        week.run(days)
    rows = events(week.lake, "would_promote").filter(pl.col("day") > LONG_AGO).to_dicts()
    assert [row["proposal_id"] for row in rows] == [UV, FRIDAY]
    assert {row["happened_at"] for row in rows} == {NOW + timedelta(days=1)}
    took = "you approved as offered 40 of 40 (at least 0.91)"
    assert (rows[0]["section"], rows[0]["reason"]) == ("Hard Rules", took)


def test_what_a_person_then_decides_is_told_beside_it(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "shadow", "a" * 11 + "r")
    week.run()
    assert report(Workspace(week.settings, week.lake), ProposalLog(week.lake)) == [
        "Hard Rules: you approved as offered 11 of 12 (20 are needed); "
        "of the lines that it would have promoted, you approved 11 of 12 (20 are needed); not trusted"
    ]


# --- which lines ---


@each(
    ("row", "days"),
    [
        ({}, 0.9),  # the person has a day to decide first
        ({"priority": "medium"}, 1),
        ({"section": "Patterns"}, 1),
        ({"supersedes": ["p-20250104-001"]}, 1),
        ({"said": {"trust": "assistant"}}, 1),
        ({"said": {"trust": "tool"}}, 1),
        ({"said": {"flags": ["no_cues"]}}, 1),
        ({"sources": ["r-1"]}, 1),
        ({"sources": ["r-1", "o-gone"]}, 1),
        ({"ends": "a" * 34}, 1),
        ({"ends": "a" * 40 + "r"}, 1),
        ({"ends": "a" * 40 + "e"}, 1),
        ({"ends": "a" * 40 + "x"}, 1),
    ],
)
def test_any_other_line_waits_for_the_person(tmp_path: Path, row: dict[str, Any], days: float) -> None:
    """Without any of these the two lines are noted, as above."""
    week = Weeks(tmp_path, "shadow", **row)
    week.run(days)
    assert week.noted() == []


def test_a_line_that_memory_says_already_waits_for_the_person(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    week.memory.write_text(BY_HAND + "- Use uv for Python.\n", "utf-8")
    assert week.run().automatic == [FRIDAY]
    assert week.status() == ["pending", "approved"]


# --- on ---


@each(
    ("shadow", "why"),
    [("", "0 of 0 (20 are needed)"), ("a" * 19, "19 of 19 (20 are needed)"), ("a" * 20, "20 of 20 (at least 0.84)")],
)
def test_on_without_enough_of_a_shadow_stays_in_shadow_and_says_so(tmp_path: Path, shadow: str, why: str) -> None:
    week = Weeks(tmp_path, "on", "", shadow=False)
    history(week.lake, shadow, shadow=True)
    history(week.lake, "a" * 40, start=101)
    assert week.run().automatic == []
    assert week.noted() == [UV, FRIDAY]
    assert week.memory.read_text("utf-8") == BY_HAND
    (sentence,) = report(Workspace(week.settings, week.lake), ProposalLog(week.lake))
    assert sentence.endswith(f"you approved {why}; trusted, in shadow")


def test_on_promotes_what_was_earned_as_any_approval_is(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    assert week.run().automatic == [UV, FRIDAY]
    rows = events(week.lake, "decided").filter(day=day_after(1)).to_dicts()
    assert [(r["decision"], r["surface"], r["text"]) for r in rows] == [
        ("approved", "auto", text) for text in TEXTS.values()
    ]
    assert week.memory.read_text("utf-8") == BY_HAND + "".join(
        f"- (2025-03-05) {text} <!-- {p} -->\n" for p, text in TEXTS.items()
    )
    assert judge_integrity(week.lake, week.memory).passed
    assert report(Workspace(week.settings, week.lake), ProposalLog(week.lake))[0].endswith("; on")
    before = bytes_of(tmp_path)
    assert week.run(1.1).automatic == []
    assert bytes_of(tmp_path) == before


def test_the_log_and_review_name_what_was_promoted_automatically(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    week.review.write_text(week.review.read_text("utf-8").replace("# Pending", "# My pending"), "utf-8")
    week.run()
    log = week.settings.daily_log(day_after(1)).read_text("utf-8")
    assert f"approved `{UV}` Use uv for Python. (approved automatically; undo its change" in log
    notice = (
        f"_Approved automatically: `{UV}`, `{FRIDAY}`. To take one back, undo its change in the file; `memory why ID` "
        "shows it._\n"
    )
    text = week.review.read_text("utf-8")
    assert text.count(notice) == 1 and f"{notice}_Last updated: " in text and text.startswith("# My pending")
    week.memory.write_text(BY_HAND + f"- (2025-03-05) Use uv for Python. <!-- {UV} -->\n", "utf-8")
    week.run(2)
    assert f"_Approved automatically: `{UV}`. To take" in week.review.read_text("utf-8")
    week.run(9)
    assert week.review.read_text("utf-8") == text.replace(notice, "")  # after a week it goes


def test_what_a_person_decides_in_time_counts(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    week.mark(UV, "-")
    settled = week.run()
    assert (settled.rejected, settled.automatic) == ([UV], [])  # and this rejection takes the section's trust
    assert week.status() == ["rejected", "pending"]
    assert week.memory.read_text("utf-8") == BY_HAND


def test_a_line_that_is_taken_back_ends_it_for_the_section(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    week.run()
    week.memory.write_text(BY_HAND, "utf-8")
    later = proposal(3, "Indent Makefiles with tabs.", day=DAY)
    put(week.lake, "observations", observation("Indent Makefiles with tabs.", session="s2"))
    put(week.lake, "proposals", later)
    week.run(2)
    assert week.run(4).automatic == []
    assert ProposalLog(week.lake).frame.filter(proposal_id=later["proposal_id"])["status"].to_list() == ["pending"]
    assert week.memory.read_text("utf-8") == BY_HAND  # and it does not come back
    (sentence,) = report(Workspace(week.settings, week.lake), ProposalLog(week.lake))
    assert sentence.startswith("Hard Rules: you approved as offered 40 of 42") and sentence.endswith("not trusted")


def test_a_review_file_that_cannot_be_read_may_hold_the_decision(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    week.review.unlink()
    settled = week.run()
    assert settled.damaged and settled.automatic == []
    assert week.run(1.1).automatic == [UV, FRIDAY]


def test_what_is_a_task_waits_until_the_tasks_are_read(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on", settings={"todoist": True})
    record_showings(Workspace(week.settings, week.lake), {UV: "task 1"}, NOW, surface="todoist")
    assert week.run().automatic == [FRIDAY]
    now = NOW + timedelta(days=1.1)
    assert reconcile(Workspace(week.settings, week.lake), now, tasks_are_read=True).automatic == [UV]


def test_who_decides_too_late_is_told_how_to_take_it_back(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    open_in_an_editor = week.review.read_text("utf-8").replace(f"- [ ] `{UV}`", f"- [-] `{UV}`")
    week.run()
    with pytest.raises(UnknownProposalError, match="is already approved"):
        decide(Workspace(week.settings, week.lake), {UV: "rejected"}, NOW + timedelta(days=1))
    week.review.write_text(open_in_an_editor, "utf-8")
    settled = week.run(1.1)
    assert settled.already[UV] == "approved automatically" and settled.ignored == []
    assert week.status() == ["approved", "approved"]
    assert not judge_integrity(week.lake, week.memory).offenders


def test_a_crash_at_any_write_changes_nothing_about_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def state(week: Weeks) -> dict[str, object]:
        return week.tables() | {"noted": events(week.lake, "would_promote").to_dicts()}

    whole = Weeks(tmp_path / "whole", "on")
    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        whole.run()
    assert {"2025-03-06.parquet", "2025-03-06.md", "REVIEW.md", "MEMORY.md"} <= set(seen)
    for number in part(range(1, len(seen) + 1), 3):
        for before in (True, False):
            week = Weeks(tmp_path / f"{number}{before}", "on")
            with monkeypatch.context() as patch:
                die_at(patch, number, before=before)
                with pytest.raises(Killed):
                    week.run()
            week.run()
            assert state(week) == state(whole), f"killed {'before' if before else 'after'} {seen[number - 1]}"


def test_the_asset_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    week = Weeks(tmp_path / "on", "on", shadow=False)
    for days in range(1, 7):
        week.run(days)
    record_showings(
        Workspace(week.settings, week.lake), {UV: None}, datetime(2025, 3, 6).astimezone(), surface="command"
    )
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{week.settings.workspace}")
    monkeypatch.setenv("MEMORY_TIMEZONE", "UTC")
    monkeypatch.setenv("MEMORY_AUTO_PROMOTE", "on")
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [memory_file_asset(Placement(week.settings))],
            instance=instance,
            resources={"workspace": WorkspaceResource()},
        )
    (event,) = result.asset_materializations_for_node("memory_file")
    assert "; not trusted" in str(event.metadata["auto_promotion"].value)  # both expired meanwhile
    assert event.metadata["promoted_automatically"].value == 0


def test_a_memory_that_is_gone_takes_no_line_back(tmp_path: Path) -> None:
    week = Weeks(tmp_path, "on")
    assert week.run().automatic == [UV, FRIDAY]
    week.memory.unlink()
    assert retracted(Workspace(week.settings, week.lake), ProposalLog(week.lake)) == set()
