"""The common model of all harnesses: one session with its messages.

Plain immutable values; `lake/tables.py` has the same columns as tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import msgspec.structs

from memory_pipeline.errors import MemoryPipelineError

Role = Literal["user", "assistant", "tool", "injected"]
Answering = Literal["question", "approved plan", "refused plan", "approved call", "refused call"]
"""What is answered by a user's words in a tool result."""
COMPRESSED = ".jsonl.zst"
"""Suffixes of compressed session files."""
CHOICES = ("question", "approved plan")
"""Answers that need their question: a choice is only understandable with its options."""


class Source(NamedTuple):
    """A session on disk, in the state when it was found."""

    path: str
    session: str = ""
    """The id in a file that contains several sessions; "" if the file is the session."""
    size: int = 0
    modified_ns: int = 0
    """The modification time; together with `size` it changes whenever the session may have changed."""
    agent: str = ""
    """The harness that owns its folder or database; "" if only its content identifies it."""

    @property
    def key(self) -> str:
        """The key in the catalogue and in `source_file`, which is that of the uncompressed file."""
        return f"{self.path}#{self.session}" if self.session else self.plain_path

    @property
    def plain_path(self) -> str:
        """The path of the file without the suffix of compression."""
        return self.path.removesuffix(".zst") if self.path.endswith(COMPRESSED) else self.path


def source_of(path: Path, session: str = "") -> Source:
    """The file as a source of one session, without a state if it cannot be examined."""
    try:
        state = path.stat()
    except OSError:
        return Source(str(path), session)
    return Source(str(path), session, state.st_size, state.st_mtime_ns)


class Image(NamedTuple):
    """The place of an image; `images.load_image` loads it."""

    line: int
    """Line of the source file, or the number of the record in a source that has no lines."""
    block: int
    """The number of the image within the record, from 0."""
    media_type: str


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message. (A msgspec struct, because its creation is ten times as fast as that of a dataclass.)

    `user` is text that the user typed or said through a tool, `assistant` text of the model, `tool` a tool call or its
    result (clipped), `injected` text in the user role that the user did not type (skills, system reminders, AGENTS.md,
    compaction summaries, command wrappers, task notifications).
    """

    message_id: str
    """The id, which is stable when the file is read again or grows; see `transcript.message_id`."""
    role: Role
    said_at: datetime
    """The time of the message in UTC. If it was not recorded (`is_timed`), only its day and order are meaningful."""
    written_at: datetime
    """The time in UTC at which the harness wrote the record."""
    text: str
    line: int
    """1-based line of the source file."""
    tool_name: str | None = None
    is_error: bool = False
    voided: bool = False
    """Whether the user undid the turn (rewind, rollback, an abandoned branch): stored, but not observed."""
    images: tuple[Image, ...] = ()
    files_read: tuple[str, ...] = ()
    """Paths that this tool call reads, as given to the tool."""
    files_modified: tuple[str, ...] = ()
    is_timed: bool = True
    """Whether its time was recorded; otherwise it has that of the previous record, of the session's first one, or of
    the file."""
    answer_to: Answering | None = None
    """What the user answers through a tool; for a tool result, "refused call" if the user refused it."""
    answered: str | None = None
    """The question, plan or call itself (clipped), if known; None for a tool's result."""


class Compaction(NamedTuple):
    """A compaction with the messages that it summarised away, except those of earlier ones."""

    message_ids: tuple[str, ...]
    at: datetime | None = None
    tokens_before: int | None = None
    """Size of the context before the compaction, as counted by the harness."""


class Problem(NamedTuple):
    """An unreadable part of a file, whose rest was read."""

    line: int
    reason: str


class Part(NamedTuple):
    """A file of a session that its harness continues in a new file when it is resumed or reverted.

    The records of such a session are numbered through all of its files.
    """

    name: str
    began_at: datetime | None
    base: str = ""
    """The part that this one continues, possibly of another session; "" for the first one."""
    base_end: int = 0
    """Number of the first record of `base` that this part does not continue."""
    end: int = 0
    """Number of the first record after this part."""
    numbers: Mapping[str, int] = {}
    """The number of each message's record, by the id of the message."""


@dataclass(frozen=True, slots=True)
class ParsedSession:
    """A parsed session."""

    session_id: str
    harness: str
    name: str
    """The harness's title of the session, else its first user message, on one line of at most 80 characters."""
    cwd: str
    messages: tuple[Message, ...]
    """The messages in order."""
    compactions: tuple[Compaction, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    """Paths as given to the tools. A path both read and modified counts as modified only."""
    began_at: datetime | None = None
    """The time when the session was created, if the harness records it: for a fork it is later than its first
    messages."""
    records: int = 0
    unknown_records: dict[str, int] = field(default_factory=dict)
    """The number of records by type that this reader does not know. This is normal, not an error."""
    problems: tuple[Problem, ...] = ()
    parent_id: str = ""
    """The session whose beginning this one repeats with its own ids or times."""
    inherited: frozenset[str] = frozenset()
    """Ids of the messages that repeat the parent's: they only count if the parent is missing."""
    excluded: str | None = None
    """Why the session must not be stored, or None."""
    hidden_characters: int = 0
    """The number of invisible characters that were removed from its messages."""
    branch: str = ""
    """Branch of the repository of `cwd` at the start of the session."""
    repository: str = ""
    """`owner/name` of that repository's remote."""
    is_attended: bool = True
    """Whether a person types in it, rather than only programs."""
    part: Part | None = None
    """The part of the session in this file; None if a file is always a whole session."""
    former_ids: Mapping[str, str] = field(default_factory=dict)
    """The former ids of messages, by current id, for messages that an earlier version of the reader identified
    differently."""

    def with_ids(self, new: Mapping[str, str]) -> ParsedSession:
        """The session with these new ids of messages, by current id."""
        if not new:
            return self
        return replace(
            self,
            messages=tuple(
                msgspec.structs.replace(m, message_id=new[m.message_id]) if m.message_id in new else m
                for m in self.messages
            ),
            compactions=tuple(
                c._replace(message_ids=tuple(new.get(i, i) for i in c.message_ids)) for c in self.compactions
            ),
            inherited=frozenset(new.get(i, i) for i in self.inherited),
            former_ids={new.get(i, i): former for i, former in self.former_ids.items()},
        )


class NotASessionError(MemoryPipelineError):
    """The file is not a readable session; the message is the reason in one sentence."""


class NotReadableNowError(NotASessionError):
    """A temporary obstacle that may disappear without a change of the file, so reading is tried each time."""
