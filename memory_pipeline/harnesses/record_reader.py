"""The base class of readers: identities of messages, tool calls with their results, and the session's data.

A reader begins every record with `begin` or one of its variants, then adds the messages in it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, NamedTuple, Unpack

import msgspec

from memory_pipeline.harnesses.answers import REFUSED, Answer, answers_given, asks
from memory_pipeline.harnesses.content import blocks_of, call_text, without_marks
from memory_pipeline.harnesses.model import Message, ParsedSession, Part, Problem, Role
from memory_pipeline.harnesses.records import JsonObject, decoded_object, text_of, to_time
from memory_pipeline.harnesses.speakers import Evidence, is_person, split_content_by_speaker
from memory_pipeline.harnesses.transcript import FORGOTTEN, MessageDetails, Transcript, one_line
from memory_pipeline.scope import repository_of

_SIDE_FILE_BYTES = 10_000_000
_PATCHED_FILE = re.compile(r"\*\*\* (?:(?:Add|Update|Delete) File|Move to): ([^\n]+)")


class Call(NamedTuple):
    """A tool call."""

    name: str = ""
    arguments: object = None
    handle: int | None = None
    """The message of a call that reads or changes a file."""

    @property
    def text(self) -> str:
        return call_text(self.name, self.arguments) if self.name else ""


class RecordReader:
    """The reader of one session, which adds its messages to a transcript."""

    reads: ClassVar[Mapping[str, str]] = {}
    """The argument with the file, by tool that reads it."""
    changes: ClassVar[Mapping[str, str]] = {}
    """The argument with the file, by tool that changes it."""
    numbers_answers: ClassVar[bool] = False
    """Whether the user's answers in a result are numbered apart from the other parts of the record. Stored ids depend
    on it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.session_id = self.title = self.cwd = self.branch = self.remote = ""
        self.began_at: object = None
        self.is_interactive = True
        """Whether the session is one with a person, according to its own data."""
        self.parent_session = ""
        """The session that started this one as its sub-agent."""
        self.inherited: set[int] = set()
        """Numbers of the records that repeat those of the parent."""
        self.calls: dict[str, Call] = {}
        self.identity = ""
        self.part = self.answers = 0

    @property
    def is_attended(self) -> bool:
        """Whether a person types in the session; otherwise a program typed the user's text."""
        agent, parent = self.transcript.id_prefix, self.parent_session
        evidence = Evidence(agent, parent_session=parent, session_name=self.title, cwd=self.cwd)
        return self.is_interactive and is_person(evidence)

    @property
    def parent_id(self) -> str:
        """The session to store as the parent."""
        return self.parent_session

    def record(self, line: int, record: JsonObject) -> None:
        """Read the next record, with its line or number; called for every record in order."""
        raise NotImplementedError

    def voided(self) -> Container[int]:
        """Numbers of the records that the user took back; none by default."""
        return ()

    def part_of_session(self, pairs: list[tuple[int, Message]]) -> Part | None:
        """The part of the session that the file is, given the messages with the numbers of their records; None if a
        file is always a whole session."""
        return None

    def finish(self) -> ParsedSession:
        """The session so far. More records may follow, and then another call."""
        return self.session()

    @contextmanager
    def transcript_copied(self) -> Iterator[None]:
        """Add messages that are only known at the end to a copy of the transcript, as more records may follow."""
        original, self.transcript = self.transcript, self.transcript.copy()
        try:
            yield
        finally:
            self.transcript = original

    def session(self) -> ParsedSession:
        """The session so far; an empty title is replaced by the user's first message."""
        transcript, storable = self.transcript, self.transcript.storable
        began_at, is_attended = to_time(self.began_at), self.is_attended
        pairs = transcript.numbered_messages(began_at, self.voided(), is_attended=is_attended)
        messages = sorted((message for _, message in pairs), key=attrgetter("said_at", "line"))
        prompts = (without_marks(message.text) for message in messages if message.role == "user")
        modified = {path for message in messages for path in message.files_modified}
        read = {path for message in messages for path in message.files_read}
        session_id = storable(self.session_id or Path(transcript.source.path).stem)
        return ParsedSession(
            session_id=session_id,
            harness=transcript.harness,
            name=one_line(storable(self.title)) or one_line(next(filter(None, prompts), "")),
            cwd=storable(self.cwd),
            messages=tuple(messages),
            compactions=transcript.compactions(pairs),
            files_read=tuple(sorted(read - modified)),
            files_modified=tuple(sorted(modified)),
            began_at=began_at,
            records=transcript.record + 1,
            unknown_records=transcript.unknown_records(),
            problems=tuple(Problem(line, storable(reason)) for line, reason in transcript.problems),
            parent_id=storable(self.parent_id),
            inherited=frozenset(m.message_id for record, m in pairs if record in self.inherited),
            excluded=FORGOTTEN if transcript.redactor.forgotten.has_session(session_id) else transcript.excluded,
            hidden_characters=transcript.hidden,
            branch=storable(self.branch),
            repository=storable(repository_of(self.remote)),
            is_attended=is_attended,
            part=self.part_of_session(pairs),
            former_ids=transcript.former,
        )

    def begin(self, identity: str) -> None:
        """Begin a record with this identity; the following messages are parts of it."""
        self.identity, self.part, self.answers = identity, 0, 0

    def begin_repeatable(self, *parts: object) -> None:
        """Begin a record that may have the same identity as an earlier one, so that these are counted."""
        identity = "\x1f".join(map(str, parts))
        self.begin(f"{identity}\x1f{self.transcript.occurrence(identity)}")

    def begin_record(self, identity: str, time: object, kind: str, content: object) -> None:
        """Begin a record with this id or, if it has none, identified by its time and content; without a time also by
        its session."""
        if identity:
            self.begin(identity)
        else:
            digest = self.transcript.digest(msgspec.json.encode(content))
            self.begin_repeatable(self.session_id if time is None else "", time, kind, digest)

    def add(self, role: Role, text: str, *key: object, **details: Unpack[MessageDetails]) -> int | None:
        """Add a message, identified within the record by the key or its number. Returns a handle for `touch`."""
        if not key:
            key = (self.part,)
            self.part += 1
        return self.transcript.add(role, text, "\x1f".join(map(str, (self.identity, *key))), **details)

    def prompt(self, content: object, *, typed: bool = True) -> None:
        """Add a text in the user role; `typed` is false if the record says that a program wrote it."""
        for speaker, text in split_content_by_speaker(content, self.transcript.place.line):
            self.add(speaker if typed else "injected", text)

    def reply(self, content: object, role: Role = "assistant", *, call: str = "tool_use", given: str = "input") -> None:
        """Add the text and the calls in a reply, without thinking; `call` is the type of blocks with a call, `given`
        their field with its arguments."""
        for block in blocks_of(content):
            if block.get("type") == "text":
                self.add(role, text_of(block.get("text")))
            elif block.get("type") == call:
                self.call(text_of(block.get("id")), text_of(block.get("name")), block.get(given))

    def call(self, call_id: str, name: str, arguments: object, *key: object) -> None:
        """Add a tool call, with the files in its arguments."""
        arguments = arguments_of(arguments)
        handle = self.add("tool", call_text(name, arguments), *key, tool_name=name)
        read, changed = self.files(name, arguments)
        if read or changed:
            self.transcript.touch(handle, read=read, modified=changed)
        if call_id:
            self.calls[call_id] = Call(name, arguments, handle if changed else None)

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The paths that a call reads, and those that it changes."""
        return path_in(arguments, self.reads.get(name)), path_in(arguments, self.changes.get(name))

    def result(
        self,
        call_id: str,
        text: str,
        *key: object,
        failed: bool = False,
        refused: bool = False,
        name: str = "",
        given: object = None,
        answers: Iterable[Answer] | None = None,
    ) -> None:
        """Add the result of a tool; a refused call did not fail. The user's `answers` in it are looked for in the text
        and in `given`, the data that the agent stored, unless they are known."""
        call = self.calls.get(call_id, Call(name))
        if call_id:
            self.calls[call_id] = Call(call.name)
        if failed or refused:
            self.transcript.touch(call.handle)  # nothing changed
        text, is_error, answer = text or "(no output)", failed and not refused, REFUSED if refused else None
        self.add("tool", text, *key, tool_name=call.name or name, is_error=is_error, answer=answer)
        if given is None and text.startswith("{") and asks(call.arguments):
            given = decoded_object(text)
        for said in answers_given(call.arguments, given, text) if answers is None else answers:
            self.answer(said, call.name)

    def refusal(self, call_id: str, said: str, name: str = "") -> None:
        """Add the user's words about refusing a call."""
        call = self.calls.get(call_id, Call(name))
        if said:
            self.answer(Answer(said, "refused call", call.text or call.name), call.name)

    def answer(self, answer: Answer, tool_name: str) -> None:
        """Add the user's answer to a tool's question, or a remark with which they refused its call."""
        key = ("answer", self.answers) if self.numbers_answers else ()
        self.answers += 1
        self.add("user", answer.text, *key, tool_name=tool_name, answer=answer)


def arguments_of(value: object) -> object:
    """The arguments of a call, which some agents write as JSON in a string."""
    found = decoded_object(value) if isinstance(value, str) and value.startswith("{") else None
    return value if found is None else found


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch in the form of Codex changes."""
    return tuple(map(str.strip, _PATCHED_FILE.findall(patch)))


def path_in(arguments: object, name: str | None) -> tuple[str, ...]:
    """The path in an argument, if there is one."""
    path = arguments.get(name) if isinstance(arguments, dict) and name else None
    return (path,) if isinstance(path, str) and path else ()


def side_file(path: Path) -> JsonObject:
    """The object in a small file next to a session; empty if there is none."""
    try:
        if not path.is_file():  # opening a pipe might block forever
            return {}
        with path.open("rb") as file:
            return decoded_object(file.read(_SIDE_FILE_BYTES)) or {}
    except OSError:
        return {}
