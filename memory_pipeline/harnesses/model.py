"""The common model of all harnesses: one session with its messages.

Plain immutable values; `lake/tables.py` has the same columns as tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec
import msgspec.structs

from memory_pipeline.errors import MemoryPipelineError

Role = Literal["user", "assistant", "tool", "injected"]
Answering = Literal["question", "approved plan", "refused plan", "approved call", "refused call"]
"""The thing that a user's words in the result of a tool answer."""
COMPRESSED = ".jsonl.zst"
"""Suffixes of compressed session files."""
CHOICES = ("question", "approved plan")
"""Answers whose words alone say little: a choice is understood with what was chosen from."""


class Source(NamedTuple):
    """A session on disk, in the state in which it was found."""

    path: str
    session: str = ""
    """The id in a file that contains several sessions; "" if the file is the session."""
    size: int = 0
    modified_ns: int = 0
    """Together with `size` it changes whenever the session may have."""
    agent: str = ""
    """The harness in whose folder or database it lies; "" where only its content tells."""

    @property
    def key(self) -> str:
        """The name in the catalogue and in `source_file`, the same for compressed files."""
        return f"{self.path}#{self.session}" if self.session else self.plain_path

    @property
    def plain_path(self) -> str:
        """The path that the file has when it is not compressed."""
        return self.path.removesuffix(".zst") if self.path.endswith(COMPRESSED) else self.path


class Image(NamedTuple):
    """The place of an image; `images.load_image` fetches it."""

    line: int
    """Line of the source file, or the number of the record in a source that has no lines."""
    block: int
    """The number of the image within the record, from 0."""
    media_type: str


class Message(msgspec.Struct, frozen=True, gc=False):
    """One utterance. (A msgspec struct, because it is made ten times as fast as a dataclass.)

    `user` is what the user typed or said through a tool, `assistant` what the model said, `tool` a tool call or its
    result (clipped), `injected` text that carries the user role but that the user did not type (skills, system
    reminders, AGENTS.md, compaction summaries, command wrappers, task notifications).
    """

    message_id: str
    """Stable over re-reads and growth of the file; see `transcript.message_id`."""
    role: Role
    said_at: datetime
    """The time of the message in UTC. If it was not recorded (`is_timed`), only its day and order are meaningful."""
    written_at: datetime
    """UTC. When the harness wrote the record."""
    text: str
    line: int
    """1-based line of the source file."""
    tool_name: str | None = None
    is_error: bool = False
    voided: bool = False
    """The user undid the turn (rewind, rollback, a branch left behind): stored, but not observed."""
    images: tuple[Image, ...] = ()
    files_read: tuple[str, ...] = ()
    """Paths that this tool call reads, as the tool named them."""
    files_modified: tuple[str, ...] = ()
    is_timed: bool = True
    """Whether its time was recorded; else it has that of the record before it, of the session's first or the file's."""
    answer_to: Answering | None = None
    """The thing that the user answers through a tool; of a tool's result, that they refused it."""
    answered: str | None = None
    """The question, plan or call itself (clipped), where it is known; None of a tool's result."""


class Compaction(NamedTuple):
    """A compaction: what it summarised away and no earlier one had."""

    message_ids: tuple[str, ...]
    at: datetime | None = None
    tokens_before: int | None = None
    """Size of the context when it was compacted, as the harness counted it."""


class Problem(NamedTuple):
    """Something in a file that could not be read; the rest of the file was."""

    line: int
    reason: str


class Part(NamedTuple):
    """One of the files of a session that its harness continues in a new file when it is resumed or reverted.

    The records of such a session are numbered through all of its files.
    """

    name: str
    began_at: datetime | None
    base: str = ""
    """The part that this one continues, which may be another session's; "" for the first one."""
    base_end: int = 0
    """Number of the first record that does not belong to what this part continues."""
    end: int = 0
    """Number of the first record behind this part."""
    numbers: Mapping[str, int] = {}
    """The number of the record in which each message was said, by the message's id."""


@dataclass(frozen=True, slots=True)
class ParsedSession:
    """A session as it was read."""

    session_id: str
    harness: str
    name: str
    """The harness's own title of the session, else its first user message, one line, at most 80 characters."""
    cwd: str
    messages: tuple[Message, ...]
    """The messages in the order in which they were said."""
    compactions: tuple[Compaction, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    """Paths as the tools named them. A path both read and modified counts as modified only."""
    began_at: datetime | None = None
    """The time when the session was created, if the harness records it: for a fork it is later than its first
    messages."""
    records: int = 0
    unknown_records: dict[str, int] = field(default_factory=dict)
    """Record types that this reader does not know, with how often they occur. Normal, not an error."""
    problems: tuple[Problem, ...] = ()
    parent_id: str = ""
    """The session whose beginning this one repeats with ids or times of its own."""
    inherited: frozenset[str] = frozenset()
    """Ids of the messages that repeat the parent's: they count only where the parent itself is not there."""
    excluded: str | None = None
    """Why nothing of the session may be stored; None when it may."""
    hidden_characters: int = 0
    """The number of invisible characters that were removed from its messages."""
    branch: str = ""
    """Branch of the repository that `cwd` is in, when the session began."""
    repository: str = ""
    """`owner/name` of that repository's remote."""
    is_attended: bool = True
    """Whether a person types in it, and not only programs."""
    part: Part | None = None
    """The part of the session that the file is; None if a file is always a whole session."""
    former_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of messages that an earlier version of the reader gave another id, by their ids of today."""

    def with_ids(self, new: Mapping[str, str]) -> ParsedSession:
        """The session with these ids in place of those that its messages have."""
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
    """The file is not a session that can be read; the message is the reason, in one sentence."""


class NotReadableNowError(NotASessionError):
    """Something is in the way that may go without the file changing: it is looked at again each time."""
