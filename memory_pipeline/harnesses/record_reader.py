"""The common part of readers whose records each contain one message, tool call or result.

A reader derives from `RecordReader`, begins every record with `begin` or `begin_unnamed`, and then adds its contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
import orjson

from memory_pipeline.harnesses.answers import REFUSED, Answer, answers_given, asks
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.content import Block, call_text, content_text
from memory_pipeline.harnesses.model import Role
from memory_pipeline.harnesses.records import Fields, JsonObject
from memory_pipeline.harnesses.speakers import split_content_by_speaker
from memory_pipeline.harnesses.transcript import Transcript

_SIDE_FILE_BYTES = 4_000_000


class Call(NamedTuple):
    """The data of a tool call for handling its result."""

    name: str = ""
    text: str = ""
    question: object = None
    """The arguments of a call that asks a question."""
    handle: int | None = None
    """The message of a call that changes a file."""


class RecordReader:
    reads: ClassVar[Mapping[str, str]] = {}
    """The argument with the file, by tool that reads it."""
    changes: ClassVar[Mapping[str, str]] = {}
    """The argument with the file, by tool that changes it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.parent_session = ""
        """The session that started this one as its sub-agent."""
        self.cwd = ""
        self.calls: dict[str, Call] = {}
        self.identity = ""
        self.part = 0

    @property
    def is_attended(self) -> bool:
        """Whether a person types in the session; otherwise a program typed the user's text."""
        evidence = Evidence(agent=self.transcript.harness, parent_session=self.parent_session, cwd=self.cwd)
        return is_person(evidence)

    def begin(self, identity: str) -> None:
        """Begin a record with this identity; the following messages are parts of it."""
        self.identity, self.part = identity, 0

    def begin_unnamed(self, time: object, kind: str, content: Fields, scope: str = "") -> None:
        """Begin a record without id, which is identified by its time and content; without a time also by its session,
        the `scope`."""
        digest = self.transcript.digest(msgspec.json.encode(content))
        identity = f"{scope if time is None else ''}\x1f{time}\x1f{kind}\x1f{digest}"
        self.begin(f"{identity}\x1f{self.transcript.occurrence(identity)}")

    def add(
        self,
        role: Role,
        text: str,
        *,
        tool_name: str | None = None,
        is_error: bool = False,
        answer: Answer | None = None,
    ) -> int | None:
        """Add the next part of the record."""
        identity = f"{self.identity}\x1f{self.part}"
        self.part += 1
        return self.transcript.add(role, text, identity, tool_name=tool_name, is_error=is_error, answer=answer)

    def prompt(self, content: object, *, typed: bool = True) -> None:
        """Add a text in the user role; `typed` is false if the record says that a program wrote it."""
        for speaker, text in split_content_by_speaker(content, self.transcript.place.line):
            self.add(speaker if typed else "injected", text)

    def call(self, call_id: str, name: str, arguments: object) -> None:
        """Add a tool call, with the files in its arguments."""
        arguments = arguments_of(arguments)
        text = call_text(name, arguments)
        handle = self.add("tool", text, tool_name=name)
        read, changed = self.files(name, arguments)
        if read or changed:
            self.transcript.touch(handle, read=read, modified=changed)
        if call_id:
            question = arguments if asks(arguments) else None
            self.calls[call_id] = Call(name, text, question, handle if changed else None)

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The paths that a call reads, and those that it changes."""
        return path_in(arguments, self.reads.get(name)), path_in(arguments, self.changes.get(name))

    def result(self, call_id: str, text: str, *, failed: bool = False, refused: bool = False, name: str = "") -> None:
        """Add the result of a tool; a refused call did not fail. Answers to its questions are the user's."""
        call = self.calls.get(call_id, Call(name))
        if call_id:
            self.calls[call_id] = Call(call.name)
        if failed or refused:
            self.transcript.touch(call.handle)  # nothing changed
        text = text or "(no output)"
        is_error, answer = failed and not refused, REFUSED if refused else None
        self.add("tool", text, tool_name=call.name or name, is_error=is_error, answer=answer)
        given = _decoded(text) if call.question and text.startswith("{") else None
        for said in answers_given(call.question, given, text):
            self.answer(said, call.name)

    def refusal(self, call_id: str, said: str, name: str = "") -> None:
        """Add the user's words about refusing a call."""
        call = self.calls.get(call_id, Call(name))
        if said:
            self.answer(Answer(said, "refused call", call.text or call.name), call.name)

    def answer(self, answer: Answer, tool_name: str) -> None:
        """Add the user's answer to a tool's question, or a remark with which they refused its call."""
        self.add("user", answer.text, tool_name=tool_name, answer=answer)


def text_blocks(content: object) -> list[Block]:
    """The blocks of text in a message's content; images, thinking and calls are left out."""
    if isinstance(content, str):
        return [Block(type="text", text=content)]
    found = content if isinstance(content, list) else [content]
    return [block for block in found if isinstance(block, Block) and block.type in ("text", None)]


def plain_text(content: object) -> str:
    """The text of a message's content."""
    return content_text(text_blocks(content), 0)


def arguments_of(value: object) -> object:
    """The arguments of a call, which some agents write as JSON in a string."""
    found = _decoded(value) if isinstance(value, str) and value.startswith("{") else None
    return value if found is None else found


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
            found = orjson.loads(file.read(_SIDE_FILE_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _decoded(text: str) -> JsonObject | None:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
