"""The messages of sessions, and tool calls of agents with their results.

The calls and results of a session are rows of `messages`. They share no id, so a result is assigned to the oldest open
call of its tool.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import orjson
import polars as pl

from memory_pipeline.agents.kit.tool_calls import commands_in
from memory_pipeline.friction.errors import hidden_error, verdict_of_failure
from memory_pipeline.lake.store import Lake
from memory_pipeline.text.regex import deferred

REFUSED_CALL = "refused call"
TOOL, USER, ASSISTANT = "tool", "user", "assistant"
MAX_TOOL_TEXT = 6_000
"""Maximum characters of a tool's message that are read."""
_COLUMNS = (
    *("session_id", "message_id", "day", "role", "said_at", "text", "tool_name", "is_error", "answer_to", "answered"),
    *("quoted", "source_line", "voided"),
)


class Turn(NamedTuple):
    """A message in the order of its session."""

    message_id: str
    day: date
    session_id: str
    role: str
    at: datetime
    text: str
    """The text of the message, truncated for a tool."""
    tool: str
    is_error: bool
    answer_to: str | None
    answered: str | None

    @property
    def is_call(self) -> bool:
        """Whether the message of a tool is a call, and not a result."""
        return bool(self.tool) and not self.is_error and self.text.startswith(f"{self.tool}(")

    @property
    def head(self) -> str:
        """The short name of a call: program and subcommand, or the tool."""
        command = command_in(self.text)
        return (head_of(command) if command else self.tool).strip() or "a tool"


@dataclass(frozen=True)
class Session:
    """The messages of a session in order, and where it took place."""

    turns: Sequence[Turn]
    cwd: str | None = None
    project: str | None = None
    quoted: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """The spans of pasted text, by message."""

    @property
    def session_id(self) -> str:
        return self.turns[0].session_id

    @cached_property
    def attempts(self) -> list[Attempt]:
        return attempts(self.turns)


def sessions_in(lake: Lake, days: Sequence[date], wanted: Collection[str] | None = None) -> Iterator[Session]:
    """Each session of these days, or each of the ``wanted`` ones, without the words of the assistant."""
    read = lake.read("sessions", days, ("session_id", "cwd", "project"))
    places = {i: place for i, *place in read.group_by("session_id").agg(pl.all().drop_nulls().first()).iter_rows()}
    rows = pl.concat([_messages(lake, day, wanted) for day in days])
    rows = rows.sort("session_id", "said_at", "source_line", "message_id", nulls_last=True)
    for session_id, own in groupby(rows.select(*Turn._fields, "quoted").iter_rows(), key=itemgetter(2)):
        turns, quoted = list[Turn](), dict[str, list[tuple[int, int]]]()
        for *message, spans in own:
            turns.append(Turn(*message))
            if spans:
                quoted[turns[-1].message_id] = [(span["start"], span["end"]) for span in spans]
        cwd, project = places.get(session_id, (None, None))
        yield Session(turns, cwd, project, quoted)


def _messages(lake: Lake, day: date, wanted: Collection[str] | None) -> pl.DataFrame:
    """The messages of the day with the columns of `Turn`; the text of a tool is truncated."""
    role, text = pl.col("role"), pl.col("text")
    is_wanted = pl.lit(True) if wanted is None else pl.col("session_id").is_in(list(wanted))
    cut = pl.when(role == TOOL).then(text.str.slice(0, MAX_TOOL_TEXT)).otherwise(text)
    return (
        lake.read("messages", [day], _COLUMNS)
        .filter(is_wanted, ~pl.col("voided").fill_null(False))
        .with_columns(
            pl.when(role == ASSISTANT).then(pl.lit("")).otherwise(cut).alias("text"),
            pl.col("said_at").alias("at"),
            pl.col("tool_name").fill_null("").alias("tool"),
            pl.col("is_error").fill_null(False),
        )
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """A tool call with its result."""

    call: Turn
    result: Turn
    position: int
    """The position of the call in its session."""
    ended: int
    """The position of the result."""

    @property
    def is_refused(self) -> bool:
        return self.result.answer_to == REFUSED_CALL

    @property
    def has_failed(self) -> bool:
        """Whether the call failed, as reported by the harness, or by a shell, test runner or compiler whose exit code
        was hidden."""
        reported = self.result.is_error or (self.command is not None and self._has_hidden_failure(self.command))
        return reported and not self.is_refused and _CANCELLED.search(self.result.text) is None

    @property
    def has_succeeded(self) -> bool:
        """Whether the call has a result, and was neither refused nor reported as failed."""
        return self.result is not self.call and not (self.result.is_error or self.has_failed or self.is_refused)

    def _has_hidden_failure(self, command: str) -> bool:
        text = self.result.text
        if self.result is self.call:
            return False
        if hidden_error(text) is not None:
            return True
        is_hidden = _COMMAND.search(self.call.text) is None or hides_exit_code(command)  # a script has no exit code
        head = head_of(command)
        is_own = not only_reads(head) and head.split(" ", 1)[0] not in _SHOWS_OTHERS
        return is_hidden and is_own and verdict_of_failure(text) is not None

    @property
    def command(self) -> str | None:
        """The command of a shell call; None for other tools."""
        return command_in(self.call.text)

    @property
    def head(self) -> str:
        """The short name of the call."""
        return self.call.head

    @property
    def path(self) -> str | None:
        """The file that a tool was called on, with its folder."""
        path = path_in(self.call.text)
        return "/".join(path.split("/")[-2:]) if path else None

    @property
    def subject(self) -> frozenset[str]:
        """The words of the call: paths, names and words of the arguments, without program and options."""
        text = self.command or self.call.text.removeprefix(self.call.tool)
        own = set(self.head.lower().split())
        found = (w.strip("./:").lower() for w in _ARGUMENT.findall(text[:1_000]) if not w.startswith("-"))
        parts = (part for word in found for part in (word, *re.split(r"[/.:]", word)))
        return frozenset(part for part in parts if len(part) > 2 and part not in own)


_CANCELLED = deferred(
    r"doesn't want to proceed|rejected by user|request interrupted|interrupted by user|sibling tool call|"
    r"aborted by user|user (?:cancelled|aborted)",
    re.I,
)
_COMMAND = deferred(r"^[^\s(]+\((?:.*?, )?(?:command|cmd|script)=(?P<command>.*?)(?:\)\s*)?$", re.S)
_IN_SCRIPT = deferred(r"\"?\bcmd\"?\s*:\s*(?P<command>\"(?:[^\"\\]|\\.)*\")")
_NEXT_ARGUMENT = deferred(
    r", (?:workdir|cwd|dir_path|directory|timeout(?:_ms)?|description|yield_time_ms|max_output_tokens|justification|"
    r"run_in_background|is_background|with_escalated_permissions|sandbox_permissions|prefix_rule|login|shell|tty)=.*$",
    re.S,
)
_TRIVIAL = frozenset(
    """
    cd pushd popd export set source . echo printf true sleep mkdir pwd unset trap for case done fi esac seq mktemp test
    """.split()  # noqa: SIM905
)
_SHOWS_OTHERS = frozenset(
    """
    gh git glab curl wget docker kubectl journalctl aws gcloud az jq awk diff echo printf ssh tmux psql sqlite3
    """.split()  # noqa: SIM905
)
"""Programs that print the output of other programs."""
_HIDING = ("|", "||", "|&", ";")
"""Operators after which the exit code is that of the last command."""
MAX_SAID = 60


def attempts(turns: Sequence[Turn]) -> list[Attempt]:
    """The calls of a session in order. A call without a result is its own result."""
    return sorted(_paired(turns), key=lambda attempt: attempt.position)


def _paired(turns: Sequence[Turn]) -> Iterator[Attempt]:
    waiting: dict[str, deque[tuple[int, Turn]]] = defaultdict(deque)
    asked = [0, 0]  # positions of the last two messages of the user
    for position, turn in enumerate(turns):
        if turn.role == USER and turn.answer_to is None:
            asked = [asked[1], position]
        if turn.role != TOOL:
            continue
        if turn.is_call:
            waiting[turn.tool].append((position, turn))
            continue
        own = waiting[turn.tool]
        # the call was interrupted; otherwise all later results would be assigned to the wrong call
        while own and own[0][0] < asked[0]:
            began, call = own.popleft()
            yield Attempt(call, call, began, began)
        if own:
            began, call = own.popleft()
            yield Attempt(call, turn, began, position)
        else:  # the call is not stored, or the result names no tool
            yield Attempt(turn, turn, position, position)
    for left in waiting.values():
        for position, call in left:
            yield Attempt(call, call, position, position)


def command_in(call: str) -> str | None:
    """The shell command in the text of a call, `name(key=value, …)`."""
    found = _COMMAND.search(call)
    if found:
        command = _NEXT_ARGUMENT.sub("", found["command"])
        if command.startswith("["):
            try:
                words = orjson.loads(command)
                command = str(words[-1]) if words else ""
            except ValueError:  # it was cut
                command = re.split(r'(?<!\\)"', command)[-1]
        return command.strip() or None
    script = _IN_SCRIPT.search(call)
    if script is None:
        return None
    try:
        return str(orjson.loads(script["command"])).strip() or None
    except ValueError:  # a string of JavaScript, which allows more than JSON does
        return script["command"].strip('"').strip() or None


_LOOKING = frozenset("read grep glob ls cat head tail sed rg find wc nl view open list_dir search_files".split())  # noqa: SIM905
_LOOKING_GIT = deferred(r"git (?:log|status|diff|show|blame|branch|ls-files)\b")
EDITING = "the edit tool"
_EDITING = frozenset(
    "edit multiedit apply_patch str_replace_editor str_replace_based_edit_tool replace write write_file".split()  # noqa: SIM905
)


def canonical_name(head: str) -> str:
    """The canonical name of the tool, for tools that each harness names differently."""
    return EDITING if head.lower() in _EDITING else head


def only_reads(head: str) -> bool:
    """Whether the call only reads something."""
    return head.lower() in _LOOKING or _LOOKING_GIT.match(head) is not None


def head_of(command: str) -> str:
    """Program and subcommand of the first part that has an effect: `npm run build`, `git push`, `pytest`."""
    for part in commands_in(command):
        if part.words[0] == "cat" and part.writes:
            return "cat >"
        if part.words[0] not in _TRIVIAL:
            return clip_head(part.head)
    return clip_head(command)


def hides_exit_code(command: str) -> bool:
    """Whether another command determines the exit code: `make test | tail`, `cargo check || true`."""
    return any(part.operator in _HIDING for part in commands_in(command))


def clip_head(text: str) -> str:
    """The text on one line, at most as long as a name."""
    return " ".join(text.split())[:MAX_SAID]


_ARGUMENT = deferred(r"[\w@./:+-]{3,}")
_PLACE = deferred(r"\b(?:file_path|filePath|path|filename|notebook_path|target_file|absolute_path)=(?P<path>[^,)\n]+)")


def path_in(call: str) -> str | None:
    """The path of the file in the text of a call, `name(key=value, …)`."""
    found = _PLACE.search(call)
    return found["path"].strip() if found else None
