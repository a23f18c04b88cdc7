"""The summary that replaces the messages that a harness compacts: observations, the task and the next step.

It is made from the session file alone and without a model, so it contains only what was said. It appends to the summary
of the last compaction. When the time limit is reached, it covers the newest days; without any, the harness makes its
own summary.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline.harnesses.compressed import open_session
from memory_pipeline.harnesses.model import Message, NotASessionError, ParsedSession, Source, source_of
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Context, Fact, Segment, WindowMessage, observation_id
from memory_pipeline.recall.assembly import Line, Section, choose
from memory_pipeline.recall.folders import MAX_NAME, existing_path
from memory_pipeline.redaction import redactor_of
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.reading import parse
from memory_pipeline.sessions.windows import COMPLETED, Window, cut_windows
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_of, instead_of_clock
from memory_pipeline.text.priorities import HIGH, RANK
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate

SESSION_TOKENS = 10_000
"""Maximum tokens of a session's condensed messages."""
MAX_LINE = 400
"""Maximum characters of an observation and of a narrative."""
MAX_FILES = 40
FRAME_TOKENS = 800
"""Tokens of the session's budget that are reserved for the task, the next step and the files."""
HEAD = (
    "The earlier part of this session, as observed by memory_pipeline: quotes of the removed messages. 🔴 matters for "
    "weeks, 🟡 for days, 🟢 for hours."
)
SHARE = 2
"""Factor by which the share of tokens exceeds that of a day's observations, as the messages are gone after a
compaction."""


@dataclass(frozen=True)
class CompactionSummary:
    """The summary with the fields that pi's hook expects. `shown` are the ids of the observations, equal to those of
    the pipeline."""

    summary: str
    first_kept_entry_id: str | None
    tokens_before: int
    details: dict[str, Any]
    shown: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            "firstKeptEntryId": self.first_kept_entry_id,
            "tokensBefore": self.tokens_before,
            "details": self.details,
        }


def session_source(settings: Settings, session: str) -> Source:
    """The source of the session: the file with this path or with this session id in its name, or the session with this
    id in a file of several sessions, like OpenCode's. Raises `NotASessionError`."""
    if (file := existing_path(session)) and file.is_file():
        return source_of(file)
    if "/" not in session and session.strip():
        found = [s for s in find_sources(roots(settings)) if session == s.session or session in Path(s.path).name]
        if found:
            return max(found, key=lambda source: (source.session == session, source.modified_ns, source.path))
    raise NotASessionError(
        f"{clip(session, MAX_NAME)!r} is neither a file nor part of the name of a session file in the folders of your "
        f"agents."
    )


def compaction_summary(
    settings: Settings,
    session: Path | Source,
    *,
    first_kept: str | None = None,
    tokens_before: int | None = None,
    seconds: float = 5.0,
) -> CompactionSummary | None:
    """The summary of the messages before the entry ``first_kept`` (None: of all); None if there are none, or if the
    time was over before anything was observed.

    Raises `NotASessionError`.
    """
    end = time.monotonic() + seconds
    source = source_of(session) if isinstance(session, Path) else session
    parsed = parse(source, tool_text_limit=settings.tool_text_limit, redactor=redactor_of(settings))
    last = _line_of_entry(Path(source.path), first_kept)
    messages = [m for m in parsed.messages if not m.voided and (last is None or m.line < last)]
    observer = ExtractiveObserver(min(SHARE * settings.observation_budget, 0.5))
    windows = cut_windows(parsed, messages, settings.zone)
    observed: list[tuple[Window, list[Segment]]] = []
    for window in reversed(windows):  # as earlier ones were compacted before
        if time.monotonic() >= end:
            break
        said = [window_message(message) for message in window.messages]
        observed.insert(0, (window, observer.observe(said, Context(window.day, window.dedupe_key))))
    if not observed:
        return None
    is_complete = len(observed) == len(windows)
    return _summarize(settings, parsed, messages, observed, first_kept, tokens_before, is_complete=is_complete)


def _line_of_entry(path: Path, entry: str | None) -> int | None:
    """The line number, from 1, of the record with this id."""
    if not entry:
        return None
    sought = orjson.dumps(entry)[1:-1]
    with open_session(path) as file:
        for number, line in enumerate(file, 1):
            if sought in line:
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(record, dict) and entry in (record.get("id"), record.get("uuid")):
                    return number
    raise NotASessionError(f"{path} has no entry {entry!r}; name one that is in it, or leave out --first-kept.")


def window_message(message: Message) -> WindowMessage:
    """The message as an observer sees it."""
    return WindowMessage(
        message.message_id,
        message.role,
        message.said_at,
        message.text,
        message.is_error,
        tuple(quoted_spans(message.text)) if message.role == "user" else (),
        message.tool_name,
        answer_to=message.answer_to,
        answered=message.answered,
        untimed=None if message.is_timed else instead_of_clock(message.line),
    )


def _summarize(
    settings: Settings,
    session: ParsedSession,
    messages: Sequence[Message],
    observed: Sequence[tuple[Window, list[Segment]]],
    first_kept: str | None,
    tokens_before: int | None,
    *,
    is_complete: bool,
) -> CompactionSummary:
    whole = Window("", session.session_id, observed[-1][0].day, "", tuple(messages))
    then = whole.suggested_response
    head = [HEAD]
    if task := whole.current_task:
        head.append(f"## Current task\n{one_line(task)}")
    if then and then != COMPLETED and then != task:
        head.append(f"## Next step\n{one_line(then)}")
    tail = [*_files("Modified", whole.files_modified), *_files("Read", whole.files_read)]
    lines = list(_lines(settings, observed))
    room = SESSION_TOKENS - min(FRAME_TOKENS, estimate("\n".join([*head, *tail])))
    chosen = choose([Section("## Observed", lines)], room)
    summary = "\n\n".join([*head, *(section.rendered() for section in chosen), *tail]) + "\n"
    ids = [line.id for section in chosen for line in section.lines if line.id]
    details = {
        "type": "memory_pipeline",
        "sessionId": session.session_id,
        "observations": len(ids),
        "leftOut": sum(bool(line.id) for line in lines) - len(ids),
        "observationTokens": estimate(summary),
        "isComplete": is_complete,
        "readFiles": whole.files_read,
        "modifiedFiles": whole.files_modified,
    }
    if tokens_before is None:
        tokens_before = sum(estimate(message.text, tool=message.role == "tool") for message in session.messages)
    return CompactionSummary(summary, first_kept, tokens_before, details, ids)


def _lines(settings: Settings, observed: Sequence[tuple[Window, list[Segment]]]) -> Iterator[Line]:
    """The observations below the title of their topic, and only the title of a topic without any. The least important
    ones are dropped first, and among these the oldest."""
    last = observed[-1][0].day
    newest = count(0, -1)
    for window, segments in observed:
        day = "" if window.day == last else f"{window.day} "
        for segment in segments:
            title = f"\n### {clip(one_line(segment.title or segment.narrative), MAX_LINE)}"
            for fact in segment.facts:
                name = observation_id(window.dedupe_key, fact)
                yield Line(name, _line(settings, fact, day), (RANK[fact.priority], next(newest)), title)
            if not segment.facts and segment.narrative:
                yield Line("", "", (RANK[HIGH] + 1, next(newest)), title)


def _line(settings: Settings, fact: Fact, day: str) -> str:
    clock = clock_of(fact.observed_at, settings.zone, fact.untimed)
    return f"- {settings.marks[fact.priority]} ({day}{clock}) {clip(one_line(fact.text), MAX_LINE)}"


def _files(verb: str, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    more = [f"… and {len(paths) - MAX_FILES} more"] if len(paths) > MAX_FILES else []
    return ["\n".join([f"## {verb}", *(f"- {one_line(path)}" for path in paths[:MAX_FILES]), *more])]
