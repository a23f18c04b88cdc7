"""The daily log ``YYYY-MM-DD.md``: the observations of a day, which a user may read and annotate.

Each window is one block (see `blocks`), so a re-run replaces only generated text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from memory_pipeline.markdown.blocks import keys_in, one_line, put_block, remove_block
from memory_pipeline.markdown.safe_write import decode, encode, update_file
from memory_pipeline.text.priorities import EMOJI, HIGH, MARKS

OBSERVATIONS = "observations:"
"""The prefix of the keys of blocks of windows."""
_AUTOMATIC = ("expired", "superseded", "withdrawn")
_HIGH = tuple(f"* {marks[HIGH]} (" for marks in MARKS.values())
_REFLECTED = "### 🔭 Reflected"
_REFLECTIONS = (_REFLECTED, "### 💭 Reflection")
"""The second heading was used up to version 0.2."""
_FACT = re.compile("|".join(re.escape(f"* {mark} (") for marks in MARKS.values() for mark in marks.values()))


@dataclass(frozen=True)
class LogFact:
    """One observation: priority "high", "medium" or "low", local clock time "HH:MM", text."""

    priority: str
    time: str
    text: str


@dataclass(frozen=True)
class LogSegment:
    """A topic with its facts. Without title and narrative it is shown flat, as a plain list."""

    title: str
    narrative: str
    facts: list[LogFact]


@dataclass(frozen=True)
class LogWindow:
    """A window in a day's log; ``key`` is its dedupe_key, ``time`` "HH:MM"."""

    key: str
    session_name: str
    time: str
    trigger: str
    files_read: int
    files_modified: int
    segments: list[LogSegment]
    current_task: str | None
    marks: Mapping[str, str] = field(default_factory=lambda: EMOJI)
    """The symbols of the priorities."""
    project: str | None = None


@dataclass(frozen=True)
class LogReflection:
    """The result of a day's reflection: a summary of the changes in one or two sentences, its lines, tokens before and
    after, and the ids of its proposals."""

    summary: str
    lines: int
    input_tokens: int
    output_tokens: int
    merged: int
    proposed: Mapping[str, str]


@dataclass(frozen=True)
class LogDecision:
    """The decision on a proposal: local clock time "HH:MM", decision, id, text, and the reason if there is one."""

    time: str
    decision: str
    proposal_id: str
    text: str
    reason: str | None = None


@dataclass(frozen=True)
class LogResult:
    """Whether the file was changed, and the keys of blocks that a user edited and that were left unchanged."""

    changed: bool
    edited_by_hand: list[str]


def render_observations(window: LogWindow, day: date) -> str:
    """The markdown of one window, in the segment-aware layout, or flat when no segment has a title.

    Raises KeyError for an unknown priority.
    """
    parts = [
        [f"### 🔭 Observations (session: {one_line(window.session_name)}, {one_line(window.time)})"],
        [
            *([f"**Project**: {one_line(window.project)}"] if window.project else []),
            f"**Trigger**: {one_line(window.trigger)}",
            f"**Files**: {window.files_modified} modified, {window.files_read} read",
        ],
    ]
    if not any(one_line(segment.title) for segment in window.segments):
        parts.append([f"Date: {day.isoformat()}"])
    for segment in window.segments:
        parts.append(_heading(segment))
        parts.append([_fact(fact, window.marks) for fact in segment.facts])
    if window.current_task and one_line(window.current_task):
        parts.append([f"**Current task**: {one_line(window.current_task)}"])
    return "\n\n".join("\n".join(part) for part in parts if part)


def write_daily_log(path: Path, day: date, windows: Sequence[LogWindow], *, backups: Path) -> LogResult:
    """Update the blocks ``observations:<first 12 of the key>`` of the log file; new ones are added in the given order.

    Handwritten text is kept. Blocks of windows that are not given are removed unless a user edited them.
    ``edited_by_hand`` contains window keys. Raises the errors of `safe_write.update_file`.
    """
    blocks = {f"{OBSERVATIONS}{window.key[:12]}": render_observations(window, day) for window in windows}
    result = write_log_blocks(path, day, blocks, backups=backups, replacing=OBSERVATIONS)
    edited = [window.key for window in windows if f"{OBSERVATIONS}{window.key[:12]}" in result.edited_by_hand]
    return LogResult(result.changed, edited)


def write_reflection(path: Path, day: date, reflection: LogReflection | None, *, backups: Path) -> LogResult:
    """Update the block ``reflection``, or remove it if there is no reflection."""
    if reflection is None:
        return write_log_blocks(path, day, {}, backups=backups, replacing="reflection")
    said_again = f", {reflection.merged} said again" if reflection.merged else ""
    body = [
        _REFLECTED,
        "",
        one_line(reflection.summary),
        "",
        f"**Condensed**: {reflection.input_tokens} to {reflection.output_tokens} tokens in {reflection.lines} lines",
        f"**Proposed**: {len(reflection.proposed)}{said_again}",
        *(one_line(f"* `{proposal_id}` {text}") for proposal_id, text in reflection.proposed.items()),
    ]
    return write_log_blocks(path, day, {"reflection": "\n".join(body)}, backups=backups)


def write_decisions(path: Path, day: date, decisions: Sequence[LogDecision], *, backups: Path) -> LogResult:
    """Update the blocks ``decisions`` (of a user) and ``expiries`` (automatic outcomes)."""
    taken = [d for d in decisions if d.decision not in _AUTOMATIC]
    ended = [d for d in decisions if d.decision in _AUTOMATIC]
    parts = (
        ("decisions", "### Decisions on memory proposals", taken),
        ("expiries", "### Memory proposals that ended without a decision", ended),
    )
    blocks = {key: f"{title}\n\n" + "\n".join(map(_decision, lines)) for key, title, lines in parts if lines}
    return write_log_blocks(path, day, blocks, backups=backups)


def write_log_blocks(
    path: Path, day: date, blocks: dict[str, str], *, backups: Path, replacing: str | None = None
) -> LogResult:
    """Put blocks (key to body) into the log file, which is created with its heading if needed.

    With ``replacing``, other blocks whose keys begin with it are removed. ``edited_by_hand`` contains block keys. Every
    text in a body must have gone through `blocks.one_line`. Without blocks no file is created.
    """
    edited: list[str] = []

    def edit(current: bytes | None) -> bytes:
        edited.clear()  # update_file may repeat the call
        text = decode(current) if current else f"# {day.isoformat()}\n"
        for key in keys_in(text, replacing) if replacing else []:
            text = text if key in blocks else remove_block(text, key)
        for key, body in blocks.items():
            result = put_block(text, key, body)
            text = result.text
            if result.state == "edited":
                edited.append(key)
        return encode(text)

    changed = update_file(path, edit, backups=backups) if blocks or path.exists() else False
    return LogResult(changed, edited)


def optimize_for_context(log: str) -> str:
    """The high observations of a log, for a model's context; flat lists and segments, with any markers.

    Segments without a high fact are dropped with their narrative, and so is the list of proposals of a reflection,
    which repeats observations; handwritten text is kept.
    """
    kept: list[str] = []
    segment: list[str] = []
    is_segment = is_reflection = False
    for line in log.splitlines():
        if line.startswith(("#### ", "**Current task**", "<!--", "### ")):
            segment, is_segment = [""], line.startswith("#### ")
            is_reflection = line.startswith(_REFLECTIONS)
            kept += [] if is_segment else [""]
        if _FACT.match(line):
            if line.startswith(_HIGH):
                kept += [*segment, line]
                segment = []  # shown once
        elif is_segment:
            segment.append(line)
        elif is_reflection and line.startswith("* `p-"):
            continue
        else:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def _heading(segment: LogSegment) -> list[str]:
    title, narrative = one_line(segment.title), one_line(segment.narrative)
    return [line for line, text in ((f"#### {title}", title), (f"*{narrative}*", narrative)) if text]


def _decision(decision: LogDecision) -> str:
    reason = f" ({one_line(decision.reason)})" if decision.reason else ""
    return one_line(f"* {decision.time} {decision.decision} `{decision.proposal_id}` {decision.text}") + reason


def _fact(fact: LogFact, marks: Mapping[str, str]) -> str:
    return f"* {marks[fact.priority]} ({one_line(fact.time)}) {one_line(fact.text)}"
