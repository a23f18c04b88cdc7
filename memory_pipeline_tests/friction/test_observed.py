"""Violations that the hooks of tool calls recorded: each counts once, on the day of its call."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from memory_pipeline.actions.rules import ApprovedLine, rules_of
from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.observed import SHOWN, ShownLine, violations_in, with_violations
from memory_pipeline.friction.rules import Rule, memory_lines
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.shown_to_agents import approved_rules
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event, turns
from memory_pipeline_tests.rows import DAY, Opened, Row, at, changed, day_after, say, workspace

P = "p-20250301-001"
LINE = "Never run `git push --force`."
RULE = Rule("MEMORY.md", LINE, day_after(-4), line_id=P)
PUSH, TEST = "call: Bash(command=git push --force)", "call: Bash(command=npm test)"
NO = "Never run git push --force, please."


def shown(minute: float, shown_as: str = "observe", line_id: str = P) -> ShownLine:
    return ShownLine(at() + timedelta(minutes=minute), "s1", line_id, shown_as, "before")


@each(
    ("lines", "records", "calls"),
    [
        (("user: Go.", PUSH, "result: ok"), [shown(1)], ["s1-1"]),
        (("user: Go.", PUSH, "result: ok", PUSH, "result: ok"), [shown(1), shown(3)], ["s1-1", "s1-3"]),
        (("user: Go.", PUSH, "result: ok", TEST, "result: ok"), [shown(3)], ["s1-1"]),  # a call that takes long
        (("user: Go.", PUSH, "result: ok"), [shown(1), shown(1)], ["s1-1"]),  # two hooks at once
        (("user: Go.", TEST, "result: ok"), [shown(1)], []),  # the call is in no transcript
        (("user: Go.", PUSH, "result: ok"), [shown(1, line_id="f-20250301-001")], []),  # no rule
        (("user: Go.", PUSH, "fails: ask", PUSH, "result: ok"), [shown(1, "ask"), shown(3, "ask")], ["s1-1"]),
        (("user: Go.", PUSH, "fails: no", PUSH, "fails: no"), [shown(1, "deny"), shown(3, "deny")], ["s1-1", "s1-3"]),
        (("user: Go.", PUSH, "result: ok"), [], []),  # no hook saw it
    ],
)
def test_a_recorded_violation_is_its_call(lines: tuple[str, ...], records: list[ShownLine], calls: list[str]) -> None:
    found = list(violations_in(Session(turns(*lines), "/src/kiln", "kiln"), records, {P: [RULE]}))
    assert [violation.event.event_id for violation in found] == calls


@each(("shown_as", "stopped"), [("hint", None), ("observe", None), ("ask", "s1-2"), ("deny", "s1-2")])
def test_only_a_call_that_was_held_has_no_result_of_its_own(shown_as: str, stopped: str | None) -> None:
    (found,) = violations_in(Session(turns("user: Go.", PUSH, "fails: x")), [shown(1, shown_as)], {P: [RULE]})
    assert found.stopped == stopped


@each(
    ("minute", "ids"),
    [(0, [f"{NO}/s1/0", "s1-1", "s2-1"]), (5, ["s1-1", "s2-1"])],  # said before the call: the rule is broken again
)
def test_a_remark_after_the_call_is_about_the_same_violation(minute: int, ids: list[str]) -> None:
    calls = []
    for session in ("s1", "s2"):
        lines = turns("user: Go.", PUSH, "result: ok", session=session)
        calls += violations_in(Session(lines), [shown(1)], {P: [RULE]})
    remark = replace(event(NO, "s1"), at=at() + timedelta(minutes=minute))
    members = with_violations({RULE: [remark]}, calls)[RULE]
    assert sorted(member.event_id for member in members) == sorted(ids)
    assert remark.evidence[0] in [span for member in members for span in member.evidence]


def test_one_session_is_no_pattern() -> None:
    lines = turns("user: Go.", PUSH, "result: ok", PUSH, "result: ok")
    assert with_violations({}, list(violations_in(Session(lines), [shown(1), shown(3)], {P: [RULE]}))) == {}


@each(
    "line",
    [
        f"- (2025-03-01) {LINE} <!-- {P} -->",
        f"- {LINE}",
        f"* (2025-03-01) {LINE} Ask first. (project: kiln)",
        f"1. {LINE} **Please** be careful.",
    ],
)
def test_hooks_and_friction_name_a_line_alike(line: str, tmp_path: Path) -> None:
    (known,) = lines_of(f"## Hard Rules\n\n{line}\n".encode())
    (rule,) = rules_of(Settings(workspace=tmp_path), [ApprovedLine(known.proposal_id, known.text, known.project, None)])
    found = {said.proposal_id or said.handwritten_id for said in memory_lines(f"## Hard Rules\n\n{line}\n", {})}
    assert found == {rule.rule_id}


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """A rule of four days ago, and a session of today and of yesterday that broke it."""
    settings, lake = workspace(tmp_path)
    opened = Opened(changed(settings, friction_min_points=0), lake)
    settings.memory_file.write_text(f"## Hard Rules\n\n- ({day_after(-4)}) {LINE} <!-- {P} -->\n")
    moment = time.mktime(day_after(-4).timetuple())
    os.utime(settings.memory_file, (moment, moment))
    for session, day in (("s1", day_after(-1)), ("s2", DAY)):
        say(lake, session, "user: Go.", "tool: Bash(command=git push --force)", f"tool!: Error: {LINE}", day=day)
    return opened


def record(opened: Opened, session: str, day: date, shown_as: str) -> None:
    folder = opened.settings.actions_dir
    folder.mkdir(parents=True, exist_ok=True)
    moment = f"{at('09:01', day):%Y-%m-%dT%H:%M:%SZ}"
    with (folder / SHOWN).open("a") as file:
        file.write(json.dumps({"at": moment, "session": session, "id": P, "as": shown_as, "event": "before"}) + "\n")


def found(opened: Opened) -> list[Row]:
    bring_up_to_date(FrictionStage(opened.workspace), opened.lake, DAY)
    return opened.lake.read("friction_clusters", [DAY]).to_dicts()


@pytest.mark.parametrize(("shown_as", "is_held"), [("deny", True), ("observe", False)])
def test_observed_violations_count_by_week_and_a_call_that_was_denied_is_no_failure(
    opened: Opened, shown_as: str, is_held: bool
) -> None:
    (before,) = found(opened)
    assert before["kind"] in ("recurring_failure", "tool_misuse")
    record(opened, "s1", day_after(-1), shown_as)
    record(opened, "s2", DAY, shown_as)
    assert not is_current(FrictionStage(opened.workspace), opened.lake, DAY)
    row, *failures = sorted(found(opened), key=lambda row: row["kind"], reverse=True)
    assert all(failure["ended_on"] == DAY for failure in failures) is is_held
    assert (row["kind"], row["occurrences"], row["sessions"]) == ("rule_violated", 2, 2)
    assert row["by_week"] == [{"week": DAY - timedelta(days=DAY.weekday()), "occurrences": 2}]
    assert (f"memory agents rules set {P} deny" in row["change"]) is not is_held
    assert is_current(FrictionStage(opened.workspace), opened.lake, DAY)
    (rule,) = approved_rules(opened.settings, opened.lake)
    assert rule.rule_id == P


def test_hints_about_other_lines_change_no_day(opened: Opened) -> None:
    before = FrictionStage(opened.workspace).fingerprint(DAY)
    record(opened, "s1", DAY, "observe")
    after = FrictionStage(opened.workspace).fingerprint(DAY)
    file = opened.settings.actions_dir / SHOWN
    file.write_text(file.read_text() + file.read_text().replace(P, "f-20250301-001"))
    assert before != after == FrictionStage(opened.workspace).fingerprint(DAY)
