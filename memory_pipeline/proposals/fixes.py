"""Friction fixes: patterns of `friction_clusters` that are offered to a user for decision, like proposals.

An active pattern that was never offered becomes a row of `friction_fixes`, a snapshot with its own id, which
`ProposalLog` reads as a proposal. So it is offered once: the decision is final, however often the pattern recurs. A fix
whose line is a proposal already is not offered.

The effect of approval depends on the target. A line in a file of the workspace is written by `applying`; any other
change is left to the user or their agent.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path

import polars as pl

from memory_pipeline.actions.outcomes import MIN_UNHEEDED, outcomes, unheeded
from memory_pipeline.actions.rules import RuleError
from memory_pipeline.days import day_of, lookback
from memory_pipeline.friction.active import Pattern as ActivePattern
from memory_pipeline.friction.active import active_patterns, last_day_looked_at
from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.observed import shown_lines
from memory_pipeline.friction.patterns import STALE_MEMORY, Pattern, event_at
from memory_pipeline.friction.stage import row_of
from memory_pipeline.lake.rows import FixRow, FrictionRow, NewFix
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import (
    EXPIRED,
    INVALID,
    MEMORY_FILE,
    SUPERSEDED,
    WITHDRAWN,
    ProposalLog,
    adds_to_memory,
    is_fix,
)
from memory_pipeline.proposals.memory_file import MemoryLine, normalised, read_lines
from memory_pipeline.proposals.quoted_change import ADDS, REMOVES, Change
from memory_pipeline.proposals.remembering import says_same
from memory_pipeline.proposals.shown_to_agents import approved_rules
from memory_pipeline.scope import without_note
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

MAX_A_DAY = 10
"""Maximum new fixes per day; others wait for the next day while their patterns are active."""
MAX_SHOWN = 10
"""Maximum fixes in REVIEW.md at a time, in addition to proposals."""
MAX_TITLE = 120
"""Maximum characters of a title."""
FIRST_UNHEEDED = 901
"""The first number of the ids of unheeded lines: a day has at most ten new patterns of friction."""


def new_fixes(workspace: Workspace, log: ProposalLog, now: datetime) -> list[NewFix]:
    """The fixes to offer, within the limit of today: active patterns that were never offered, the most severe first,
    then approved lines that agents do not heed."""
    known = log.table("friction_fixes")
    day = day_of(now, workspace.settings.zone)
    today = known.filter(pl.col("day") == day).height
    if today >= MAX_A_DAY:
        return []
    offered = set(known["proposal_id"])
    fresh = [p for p in _active_rows(workspace) if is_fix(p["pattern_id"]) and p["pattern_id"] not in offered]
    fresh += unheeded_lines(workspace, known, day)
    if not fresh:
        return []
    lines = read_lines(workspace.settings.memory_file)
    made = [_row(workspace.settings, pattern, lines) for pattern in fresh]
    chosen = list(islice(_asked_once(log, [row for row in made if row["text"]]), MAX_A_DAY - today))
    ids = {row["proposal_id"] for row in chosen}
    said = _first_times(workspace, [pattern for pattern in fresh if pattern["pattern_id"] in ids])
    return [row | {"said_at": said.get(row["proposal_id"], row["said_at"])} for row in chosen]


def unheeded_lines(workspace: Workspace, fixes: pl.DataFrame, day: date) -> list[FrictionRow]:
    """The lines that were ignored or contradicted three times or more, as patterns of the day, without those that
    `friction_fixes` already offered to strike."""
    settings, lake = workspace.settings, workspace.lake
    times = Counter(line.line_id for line in shown_lines(settings) if line.shown_as in ("hint", "ask"))
    if not any(number >= MIN_UNHEEDED for number in times.values()):
        return []
    try:
        rules = {rule.rule_id: rule for rule in approved_rules(settings, lake) if rule.check}
    except RuleError:  # `memory agents rules` says why
        return []
    asked = set(fixes["replaces"])
    number = FIRST_UNHEEDED + fixes["proposal_id"].str.starts_with(f"f-{day:%Y%m%d}-9").sum()
    found = list[FrictionRow]()
    for line_id, calls in unheeded(outcomes(settings, lake, rules.values())).items():
        rule = rules.get(line_id)
        if rule is None or rule.text in asked:
            continue
        title = (
            f"Agents were told this {len(calls)} times in vain; to keep and enforce it, "
            f"`memory agents rules set {line_id} deny`"
        )
        members = sorted(
            (event_at(Session((), project=rule.project), call) for call in calls), key=lambda event: event.at
        )
        pattern = Pattern(STALE_MEMORY, title, MEMORY_FILE, tuple(members), replaces=rule.text)
        found.append(row_of(day, pattern, f"f-{day:%Y%m%d}-{number + len(found)}", settings.owner))
    return found


def _active_rows(workspace: Workspace) -> list[FrictionRow]:
    """The newest row of each pattern that is active on the newest day of the table, most severe first."""
    lake = workspace.lake
    looked_at = last_day_looked_at(lake)
    if looked_at is None:
        return []
    newest = max([looked_at, *lake.days("sessions")[-1:]])  # the friction search may not have run since
    return [pattern.row for pattern in active_patterns(lake, newest, workspace.settings.lookback_days)]


def file_in_workspace(settings: Settings, target: str) -> Path | None:
    """The file that a fix may change directly: MEMORY.md, or a Markdown file for agents at the top of the workspace or
    among its identity files, given by its full path. None for any other file."""
    if target == MEMORY_FILE:
        return settings.memory_file
    path = Path(target).expanduser() if target.startswith(("/", "~")) else None
    if path is None or path.suffix != ".md" or not path.is_file():
        return None
    real, top = path.resolve(), settings.workspace.resolve()
    folders = {top, *([settings.identity.directory.resolve()] if settings.identity.directory else [])}
    is_own = real.parent in folders and real.is_relative_to(top) and real != settings.review_file.resolve()
    return real if is_own else None


def file_of(settings: Settings, fix: FixRow) -> Path | None:
    """The file that approval changes, or None if it no longer qualifies."""
    place = fix["place"]
    return (
        file_in_workspace(settings, place if place == MEMORY_FILE else f"{settings.workspace / place}")
        if place
        else None
    )


def change_of(fix: FixRow) -> Change:
    """The fix as it is shown to a user."""
    times = {1: "once", 2: "twice"}.get(fix["occurrences"], f"{fix['occurrences']} times")
    sessions = "1 session" if fix["sessions"] == 1 else f"{fix['sessions']} sessions"
    cost = f", about {max(1, round(fix['minutes']))} minutes" if fix["minutes"] else ""
    what = f"{times} in {sessions} since {fix['first_day']}{cost}"
    headline = f"**{clip(one_line(fix['title']), MAX_TITLE)}** — {what}. Target: {where(fix)}."
    if fix["place"]:
        return Change(headline, tuple(_diff(fix)), is_editable=bool(fix["adds"]))
    lines = fix["change"].split("\n")
    exact = [line for line in _diff(fix) if line[2:] not in fix["change"]]
    return Change(headline, (*lines, *exact), is_editable=False)


def where(fix: FixRow) -> str:
    """The target of the fix, such as `AGENTS.md, Hard Rules`."""
    return ", ".join(one_line(part) for part in (fix["target_file"], fix["section"]) if part)


def to_make(fix: FixRow, text: str) -> str:
    """The instruction for an approved fix that the user makes: its change, as approved."""
    change = "\n".join(f"  {line}" for line in text.split("\n"))
    return f"{fix['proposal_id']}: make this change in {where(fix)}, or have your agent make it:\n{change}"


def _diff(fix: FixRow | NewFix) -> list[str]:
    return [f"{mark}{one_line(text)}" for mark, text in ((REMOVES, fix["replaces"]), (ADDS, fix["adds"])) if text]


def _row(settings: Settings, pattern: FrictionRow, memory: Sequence[MemoryLine]) -> NewFix:
    adds, replaces = _one_line_of(pattern["adds"]), _one_line_of(pattern["replaces"])
    target = MEMORY_FILE if pattern["target_file"] == str(settings.memory_file) else pattern["target_file"]
    path = file_in_workspace(settings, target) if adds or replaces else None
    over = normalised(replaces) if replaces and path == settings.memory_file else None
    there = next((line.section for line in memory if over and over in normalised(line.text)), None)
    section = pattern["section"] or there or (settings.sections[1] if path else None)
    if adds and path == settings.memory_file:
        adds = without_note(adds)  # a note of projects is added according to the setting
    state = ActivePattern(pattern, None)
    made: NewFix = {
        "proposal_id": pattern["pattern_id"],
        "kind": pattern["kind"],
        "title": pattern["title"],
        "text": "",
        "target_file": target,
        "section": section,
        "place": _place(settings, path) if path else None,
        "adds": adds,
        "replaces": replaces,
        "change": pattern["change"],
        "low_risk": bool(pattern["low_risk"]),
        "supersedes": [m.proposal_id for m in memory if over and m.proposal_id and normalised(m.text) == over],
        "sessions": pattern["sessions"],
        "session_ids": pattern["session_ids"] or [],
        "occurrences": pattern["occurrences"],
        "minutes": pattern["minutes"],
        "worth": pattern["severity"],
        "first_day": state.first_day,
        "last_day": state.last_day,
        "said_at": datetime.combine(state.first_day, time.min, settings.zone),
        "evidence": pattern["evidence"][:1],
        "content_hash": "",
        "cwds": pattern["cwds"],
        "projects": pattern["projects"],
        "owner": pattern["owner"] or settings.owner,
    }
    text = (adds or replaces or "") if path else "\n".join(change_of({**made, "day": state.last_day}).lines).strip()
    of = "\n".join((target, section or "", replaces or "", text))
    return {**made, "text": text, "content_hash": hashlib.sha256(of.encode()).hexdigest()}


def _one_line_of(text: str | None) -> str | None:
    return one_line(text or "") or None


def _place(settings: Settings, path: Path) -> str:
    """The path of the file, relative to the workspace, which may be moved."""
    return MEMORY_FILE if path == settings.memory_file else f"{path.relative_to(settings.workspace.resolve())}"


def _asked_once(log: ProposalLog, fixes: Sequence[NewFix]) -> Iterator[NewFix]:
    """The fixes without those whose line a user is asked about already, decided on or asked for."""
    over = pl.col("status").is_in([EXPIRED, INVALID, SUPERSEDED, WITHDRAWN])
    known: list[str] | None = None
    for fix in fixes:
        if (line := fix["adds"]) and adds_to_memory(fix):
            if known is None:  # there are thousands, and most runs look up no line
                known = log.frame.filter(~over)["text"].to_list()
            if any(says_same(line, text) for text in known):
                continue
            known.append(line)
        yield fix


def _first_times(workspace: Workspace, patterns: Sequence[FrictionRow]) -> dict[str, datetime]:
    """The time of the first occurrence of each pattern, if its message is within the lookback."""
    firsts = {p["pattern_id"]: p["evidence"][0]["message_id"] for p in patterns if p["evidence"]}
    if not firsts:
        return {}
    # the days of the last search, and the first day: a pattern may be active for months
    days = {day for p in patterns for day in lookback(p["day"], workspace.settings.lookback_days)}
    days |= {p["first_day"] or p["day"] for p in patterns}
    messages = workspace.lake.read("messages", days, ["message_id", "said_at"])
    said = dict(messages.filter(pl.col("message_id").is_in(list(firsts.values()))).iter_rows())
    return {p: said[message] for p, message in firsts.items() if message in said}
