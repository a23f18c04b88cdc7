"""Goose: `sessions.db` since version 1.10, before that a file of JSON lines for each session.

The first start of 1.10 copied the files into the database and kept them; a session in both is read from the database. A
compaction rewrites all messages of a session, and a copy of a session repeats them, so a message is identified by its
time, role and text. Messages that only the model sees were inserted by Goose, and so was the copy of the latest prompt
after a summary. A prompt of `goose run` cannot be distinguished from a typed one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline.harnesses.answers import REFUSED
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.content import call_text
from memory_pipeline.harnesses.message_tables import MessageTables, milliseconds
from memory_pipeline.harnesses.model import ParsedSession, Problem, Role, Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.records import JsonLines, JsonObject, list_of, object_of, text_of, words
from memory_pipeline.harnesses.speakers import split_by_speaker
from memory_pipeline.harnesses.transcript import Transcript

_DATABASE = "sessions.db"
_TABLES = MessageTables("Goose", "content_json", "created_timestamp")
_IGNORED = words(
    "thinking redactedThinking image toolConfirmationRequest actionRequired systemNotification conversationCompacted "
    "contextLengthExceeded summarizationRequested jsonRenderSpec"
)
_INTERACTIVE = words("user terminal acp")
"""Types of sessions with a person: in a terminal, in Goose's app or in an editor."""
_REFUSED = ("The user has declined to run this tool", "This tool call was denied before execution")
_READS = words("read view read_file")
_WRITES = words("write edit str_replace insert create write_file edit_file")


class Goose(HarnessWithFolders[JsonObject]):
    name = "goose"
    record_type: type[JsonObject] = dict
    folders = (
        "${GOOSE_PATH_ROOT:-}/data/sessions",
        "${XDG_DATA_HOME:-~/.local/share}/goose/sessions",
        "~/Library/Application Support/Block/goose/sessions",
        "${APPDATA:-}/Block/goose/data/sessions",
    )
    side_files = ("goose/schedule.json", "goose/data/schedule.json")

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is the first line of a session before 1.10, or a message if that line was lost."""
        is_header = isinstance(record.get("working_dir"), str) and {"description", "message_count"} & record.keys()
        is_message = isinstance(record.get("created"), int) and record.get("role") in ("user", "assistant")
        return "type" not in record and (bool(is_header) or (is_message and isinstance(record.get("content"), list)))

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        if _DATABASE not in names or not (folder / _DATABASE).is_file():
            return None
        sources, locked = _TABLES.sources(folder / _DATABASE)
        taken = {f"{source.session}.jsonl" for source in sources}
        # while a new database is locked, it is unknown which of these sessions it has
        left = [name for name in names if not name.startswith(_DATABASE) and name not in taken]
        return sources, [name for name in left if not (locked and name.endswith(".jsonl"))]

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        if source.session:
            yield from _TABLES.records(source, problems)
            return
        for line, record in JsonLines(source.path, dict, problems).records():
            if "role" in record:
                yield line, {"message": record, "parts": [part for part in list_of(record.get("content")) if part]}
            else:
                yield line, {"session": record}

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.session: JsonObject = {}
        self.is_attended = True
        self.summary: int | None = None
        self.compacted = False
        self.left: set[str] = set()
        """Digests of the prompts that a compaction removed from the context."""
        self.calls: dict[str, tuple[str, int | None]] = {}
        self.identity = ""

    def finish(self) -> ParsedSession:
        return self.transcript.finish(
            text_of(self.session.get("id")),
            text_of(self.session.get("name")) or text_of(self.session.get("description")),
            text_of(self.session.get("working_dir")),
            began_at=self.session.get("created_at"),
            parent_id=text_of(self.session.get("parent_session_id")),
            is_attended=self.is_attended,
        )

    def record(self, number: int, record: JsonObject) -> None:
        if "session" in record:
            self.session = record["session"]
            self.transcript.next_record(number, self.session.get("created_at"))
            kind = text_of(self.session.get("session_type"))
            cwd, parent = (text_of(self.session.get(name)) for name in ("working_dir", "parent_session_id"))
            origin = "" if kind in _INTERACTIVE else kind
            self.is_attended = is_person(Evidence("goose", turn_origin=origin, parent_session=parent, cwd=cwd))
            return
        message, parts = record["message"], [part for part in record["parts"] if isinstance(part, dict)]
        created = milliseconds(message.get("created_timestamp", message.get("created")))
        self.transcript.next_record(number, created)
        role = message.get("role")
        if role not in ("user", "assistant"):
            self.transcript.unknown[f"message/{role}"] += 1
            return
        said = orjson.dumps([[part.get(name) for name in ("type", "text", "id", "toolCall")] for part in parts])
        self.identity = f"{created}\x1f{role}\x1f{self.transcript.digest(said)}"
        self.identity = f"{self.identity}\x1f{self.transcript.occurrence(self.identity)}"
        seen = object_of(message.get("metadata_json", message.get("metadata")))
        is_left = seen.get("agentVisible") is False
        put_in = seen.get("userVisible") is False and not is_left
        if (
            role == "user"
            and not put_in
            and self._is_repeated("\n".join(text_of(p.get("text")) for p in parts), is_left)
        ):
            put_in = True
        elif put_in and role == "user":
            self.summary = self.transcript.record
        for place, part in enumerate(parts):
            self._part("injected" if put_in else role, part, place)
        if put_in and role == "assistant":  # the instruction to continue, which ends a compaction
            self.compacted = True
            self.transcript.compact(self.transcript.record if self.summary is None else self.summary)

    def _is_repeated(self, text: str, is_left: bool) -> bool:
        """Whether Goose repeats a prompt that a compaction removed from the context."""
        if not text:
            return False
        said = self.transcript.digest(text)
        if is_left:
            self.left.add(said)
            return False
        repeated = self.compacted and said in self.left
        self.compacted = False
        return repeated

    def _part(self, speaker: str, part: JsonObject, place: int) -> None:
        kind = text_of(part.get("type"))
        if kind == "text" and speaker == "user":
            for number, (role, passage) in enumerate(split_by_speaker(text_of(part.get("text")))):
                self._add(role, passage, place, number)
        elif kind == "text":
            self._add("assistant" if speaker == "assistant" else "injected", text_of(part.get("text")), place)
        elif kind in ("toolRequest", "frontendToolRequest"):
            self._call(part, place)
        elif kind == "toolResponse":
            self._result(part, place)
        elif kind not in _IGNORED:
            self.transcript.unknown[f"content/{kind}"] += 1

    def _call(self, part: JsonObject, place: int) -> None:
        call = object_of(part.get("toolCall"))
        value = object_of(call.get("value"))
        name = text_of(value.get("name"))
        if not name:  # the model's call was invalid
            error = text_of(call.get("error")) or "(an invalid call)"
            self._add("tool", error, place, is_error=True)
            return
        arguments = value.get("arguments")
        handle = self._add("tool", call_text(name, arguments), place, tool_name=name)
        self.calls[text_of(part.get("id"))] = (name, handle)
        given = object_of(arguments)
        path = text_of(given.get("path")) or text_of(given.get("file_path"))
        verb = text_of(given.get("command")) if name.endswith("text_editor") else name.rpartition("__")[2]
        if verb in _READS:
            self.transcript.touch(handle, read=(path,))
        elif verb in _WRITES:
            self.transcript.touch(handle, modified=(path,))

    def _result(self, part: JsonObject, place: int) -> None:
        name, handle = self.calls.get(text_of(part.get("id")), ("", None))
        result = object_of(part.get("toolResult"))
        value = result.get("value")
        contents = list_of(value.get("content") if isinstance(value, dict) else value)
        texts = [text_of(item.get("text")) for item in contents if isinstance(item, dict) and _is_for_model(item)]
        output = "\n".join(filter(None, texts)) or text_of(result.get("error"))
        refused = output.startswith(_REFUSED)
        failed = result.get("status") == "error" or object_of(value).get("isError") is True
        if failed or refused:
            self.transcript.touch(handle)  # nothing was read or changed
        self._add(
            "tool",
            output or "(no output)",
            place,
            tool_name=name or None,
            is_error=failed and not refused,
            answer=REFUSED if refused else None,
        )

    def _add(self, role: Role, text: str, *key: object, **told: Any) -> int | None:
        return self.transcript.add(role, text, "\x1f".join(map(str, (self.identity, *key))), **told)


def _is_for_model(item: JsonObject) -> bool:
    """Whether the output is meant for the model: Goose stores some tools' output twice, for the model and for users,
    and the former counts."""
    audience = list_of(object_of(item.get("annotations")).get("audience"))
    return not audience or "assistant" in audience
