"""Goose: `sessions.db` since version 1.10, before that a file of JSON lines for each session.

The first start of 1.10 copied the files into the database and kept them; a session in both is read from the database. A
compaction rewrites all messages of a session, and a copy of a session repeats them, so a message is identified by its
time, role and text. Messages that only the model sees were inserted by Goose, and so was the copy of the latest prompt
after a summary. A prompt of `goose run` cannot be distinguished from a typed one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from memory_pipeline.harnesses.message_tables import MessageTables, milliseconds
from memory_pipeline.harnesses.model import Problem, Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.record_reader import RecordReader, path_in
from memory_pipeline.harnesses.records import JsonLines, JsonObject, list_of, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_DATABASE = "sessions.db"
_TABLES = MessageTables("Goose", "content_json", "created_timestamp")
_IGNORED = words(
    "thinking redactedThinking image toolConfirmationRequest actionRequired systemNotification conversationCompacted "
    "contextLengthExceeded summarizationRequested jsonRenderSpec"
)
_INTERACTIVE = ("", "user", "terminal", "acp")
"""Types of sessions with a person: in a terminal, in Goose's app or in an editor; older sessions have none."""
_REFUSED = ("The user has declined to run this tool", "This tool call was denied before execution")
_READS = words("read view read_file")
_WRITES = words("write edit str_replace insert create write_file edit_file")


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.summary: int | None = None
        self.compacted = False
        self.removed: set[str] = set()
        """Digests of the prompts that a compaction removed from the context."""

    def record(self, number: int, record: JsonObject) -> None:
        if "session" in record:
            self._header(number, record["session"])
            return
        message, parts = record["message"], objects_of(record["parts"])
        created = milliseconds(message.get("created_timestamp", message.get("created")))
        self.transcript.next_record(number, created)
        role = message.get("role")
        if role not in ("user", "assistant"):
            self.transcript.unknown[f"message/{role}"] += 1
            return
        said = orjson.dumps([[part.get(name) for name in ("type", "text", "id", "toolCall")] for part in parts])
        self.begin_repeatable(created, role, self.transcript.digest(said))
        seen = object_of(message.get("metadata_json", message.get("metadata")))
        is_removed = seen.get("agentVisible") is False
        is_inserted = seen.get("userVisible") is False and not is_removed
        if role == "user" and is_inserted:
            self.summary = self.transcript.record
        elif role == "user":
            is_inserted = self._is_repeated("\n".join(text_of(p.get("text")) for p in parts), is_removed)
        for part in parts:
            self._part("injected" if is_inserted else role, part)
        if is_inserted and role == "assistant":  # the instruction to continue, which ends a compaction
            self.compacted = True
            self.transcript.compact(self.transcript.record if self.summary is None else self.summary)

    def _header(self, number: int, session: JsonObject) -> None:
        self.began_at = session.get("created_at")
        self.transcript.next_record(number, self.began_at)
        self.session_id, self.cwd = text_of(session.get("id")), text_of(session.get("working_dir"))
        self.title = text_of(session.get("name")) or text_of(session.get("description"))
        self.parent_session = text_of(session.get("parent_session_id"))
        self.is_interactive = text_of(session.get("session_type")) in _INTERACTIVE

    def _is_repeated(self, text: str, is_removed: bool) -> bool:
        """Whether Goose repeats a prompt that a compaction removed from the context."""
        if not text:
            return False
        said = self.transcript.digest(text)
        if is_removed:
            self.removed.add(said)
            return False
        repeated = self.compacted and said in self.removed
        self.compacted = False
        return repeated

    def _part(self, speaker: str, part: JsonObject) -> None:
        kind, call_id = text_of(part.get("type")), text_of(part.get("id"))
        if kind == "text" and speaker == "user":
            self.prompt(text_of(part.get("text")))
        elif kind == "text":
            self.add("assistant" if speaker == "assistant" else "injected", text_of(part.get("text")))
        elif kind in ("toolRequest", "frontendToolRequest"):
            call = object_of(part.get("toolCall"))
            value = object_of(call.get("value"))
            if name := text_of(value.get("name")):
                self.call(call_id, name, value.get("arguments"))
            else:  # the model's call was invalid
                self.add("tool", text_of(call.get("error")) or "(an invalid call)", is_error=True)
        elif kind == "toolResponse":
            self._result(call_id, object_of(part.get("toolResult")))
        elif kind not in _IGNORED:
            self.transcript.unknown[f"content/{kind}"] += 1

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        given = object_of(arguments)
        paths = path_in(given, "path") or path_in(given, "file_path")
        verb = text_of(given.get("command")) if name.endswith("text_editor") else name.rpartition("__")[2]
        return (paths if verb in _READS else ()), (paths if verb in _WRITES else ())

    def _result(self, call_id: str, result: JsonObject) -> None:
        value = result.get("value")
        contents = objects_of(value.get("content") if isinstance(value, dict) else value)
        texts = [text_of(item.get("text")) for item in contents if _is_for_model(item)]
        output = "\n".join(filter(None, texts)) or text_of(result.get("error"))
        failed = result.get("status") == "error" or object_of(value).get("isError") is True
        self.result(call_id, output, failed=failed, refused=output.startswith(_REFUSED))


class Goose(HarnessWithFolders):
    name = "goose"
    reader = Reader
    folders = (
        "${GOOSE_PATH_ROOT:-}/data/sessions",
        "${XDG_DATA_HOME:-~/.local/share}/goose/sessions",
        "~/Library/Application Support/Block/goose/sessions",
        "${APPDATA:-}/Block/goose/data/sessions",
    )
    marks = (_DATABASE,)
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
        for line, record in JsonLines(source.path, problems).records():
            if "role" in record:
                yield line, {"message": record, "parts": [part for part in list_of(record.get("content")) if part]}
            else:
                yield line, {"session": record}


def _is_for_model(item: JsonObject) -> bool:
    """Whether the output is meant for the model: Goose stores some tools' output twice, for the model and for users,
    and the former counts."""
    audience = list_of(object_of(item.get("annotations")).get("audience"))
    return not audience or "assistant" in audience
