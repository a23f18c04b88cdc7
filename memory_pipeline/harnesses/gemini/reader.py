"""Gemini CLI: `~/.gemini/tmp/<project>/chats/`, a JSON snapshot of a session, or since 2026 a JSONL log of it.

A snapshot is rewritten after every turn, so exports of one session overlap; its messages have ids. The log repeats a
message whenever something is added: the last version counts. `$rewindTo` voids a message and all after it; `$set`
changes the metadata and, with `messages`, replaces the model's context, which may be the only place of a prompt or
reply.

The records are plain dicts: the metadata, and one per message, with their lines; in a snapshot the metadata have number
0 and each message its position, counted from 1. `parts.image_parts` gives the images of a record in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from memory_pipeline.harnesses.compressed import is_compressed
from memory_pipeline.harnesses.content import as_json
from memory_pipeline.harnesses.gemini.parts import Piece, image_parts, is_summary, pieces_of, plain_text
from memory_pipeline.harnesses.model import ParsedSession, Problem, Source
from memory_pipeline.harnesses.protocol import HarnessWithRecords
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import (
    JsonLines,
    JsonObject,
    list_of,
    object_of,
    objects_of,
    read_document,
    text_of,
    to_time,
    words,
)
from memory_pipeline.harnesses.speakers import Evidence, is_person
from memory_pipeline.harnesses.transcript import Place, Transcript

_TYPES = words("user gemini info error warning")
_SPOKEN = ("user", "gemini")
_ACKNOWLEDGED = re.compile(r"Got it\. Thanks for the (?:additional )?context!?")
"""Replies in the model's name that Gemini CLI writes to its own inserted text."""
_DIRECTORY = re.compile(r"(?:working in the directory: |Workspace Directories:\**\s+- )(\S[^\n]*)")
_FIRST_LINES = 20
"""Number of lines that are read to distinguish a log from a snapshot over several lines."""
_MAX_PATH = 4096
_AGE = re.compile(r"([1-9]\d{0,5})([hdwm])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30}
_MESSAGE_START = re.compile(r'\{\s*"id"\s*:')


def _is_log(path: Path) -> bool:
    with path.open("rb") as file:
        for _ in range(_FIRST_LINES):
            try:
                record = orjson.loads(file.readline())
            except orjson.JSONDecodeError:
                continue
            if isinstance(record, dict) and record:
                # a log may have been appended to a snapshot on one line
                return not isinstance(record.get("messages"), list) or bool(file.readline().strip())
    return False


class _Message:
    """A message in its last version, with its place."""

    __slots__ = ("kind", "pieces", "place", "plain")

    def __init__(self, kind: str, plain: str, place: Place, pieces: list[Piece]) -> None:
        self.kind, self.plain, self.place, self.pieces = kind, plain, place, pieces


class Reader(RecordReader):
    is_attended = True  # decided with the messages

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.metadata: JsonObject = {}
        self.messages: dict[str, _Message] = {}
        self.active: dict[str, None] = {}
        """The ids of the messages that were not withdrawn, in order."""
        self.by_words: dict[tuple[object, str], dict[str, None]] = {}

    def record(self, line: int, record: JsonObject) -> None:
        changed = record.get("$set")
        self.transcript.next_record(line, record.get("timestamp"))
        if isinstance(record.get("$rewindTo"), str):
            self._rewind(record["$rewindTo"])
        elif isinstance(changed, dict):
            if isinstance(context := changed.get("messages"), list):
                self._set_context(line, objects_of(context))
            self.metadata |= {name: value for name, value in changed.items() if name != "messages"}
        elif text_of(record.get("type")) in _TYPES:
            self._message(line, record)
        elif line == 0 or isinstance(record.get("sessionId"), str):
            for message in objects_of(record.get("messages")):  # a snapshot on one line with an appended log
                self.transcript.next_record(line, message.get("timestamp"))
                self._message(line, message)
            self.metadata |= {name: value for name, value in record.items() if name != "messages"}
        else:
            self.transcript.unknown[text_of(record.get("type")) or "no type"] += 1

    def voided(self) -> set[int]:
        return {message.place.record for identity, message in self.messages.items() if identity not in self.active}

    def finish(self) -> ParsedSession:
        path = Path(self.transcript.source.path)
        self.session_id, self.cwd = text_of(self.metadata.get("sessionId")) or path.stem, self._cwd()
        self.title = text_of(self.metadata.get("summary"))
        is_subagent = self.metadata.get("kind") == "subagent" or path.parent.parent.name == "chats"
        parent = path.parent.name if is_subagent else ""
        attended = is_person(Evidence("gemini", parent_session=parent, cwd=self.cwd))
        self.begin(self.session_id)
        with self.transcript_copied():
            for message in self.messages.values():
                for piece in message.pieces:
                    self._add_piece(message.place, piece, attended=attended)
            return self.session()

    def _add_piece(self, place: Place, piece: Piece, *, attended: bool) -> None:
        at = to_time(piece.said_at) if piece.said_at is not None else None
        self.transcript.place = place._replace(said_at=at, written_at=at, is_timed=True) if at else place
        # the user answers a sub-agent's question
        by_program = piece.role == "user" and not attended and not piece.details.get("answer")
        handle = self.add("injected" if by_program else piece.role, piece.text, *piece.key, **piece.details)
        self.transcript.touch(handle, read=piece.read, modified=piece.modified)

    def _message(self, line: int, record: JsonObject, *, synthetic: bool = False) -> None:
        identity = text_of(record.get("id"))
        if not identity:
            identity = self.transcript.digest(as_json(record))
            identity = f"{identity}/{self.transcript.occurrence(identity)}"
        kind, plain, place = text_of(record.get("type")), plain_text(record), self.transcript.place
        pieces = list(pieces_of(identity, record, line))
        if synthetic:
            pieces = [
                piece if piece.role == "tool" or piece.details.get("answer") else piece._replace(role="injected")
                for piece in pieces
            ]
        known = self.messages.get(identity)
        if known:
            # a newer version of a message keeps its time
            place = known.place._replace(line=line)
            if (known.kind, known.plain) != (kind, plain):
                del self.by_words[known.kind, known.plain][identity]
        self.messages[identity] = _Message(kind, plain, place, pieces)
        self.by_words.setdefault((kind, plain), {})[identity] = None
        self.active[identity] = None
        if not self.cwd and kind == "user" and (directory := _DIRECTORY.search(plain)):
            self.cwd = directory[1].strip()

    def _rewind(self, identity: str) -> None:
        """Void a message and all after it; for an unknown message Gemini CLI clears everything."""
        withdrawn = ""
        while self.active and withdrawn != identity:
            withdrawn, _ = self.active.popitem()

    def _set_context(self, line: int, context: list[JsonObject]) -> None:
        """Handle a replacement of the model's context: to mask tool output, after a failure, or for a summary.

        Earlier messages are recognised by their ids or words. A prompt stays as first read, as the context has it with
        additions of the program.
        """
        found: set[str] = set()
        added = []
        same_words: dict[tuple[str, str], Iterator[str]] = {}
        for message in context:
            identity, kind = text_of(message.get("id")), text_of(message.get("type"))
            if identity not in self.active:
                same_as = (kind, plain_text(message))
                same = same_words.setdefault(same_as, iter(self.by_words.get(same_as, ())))
                alike = (known for known in same if known in self.active and known not in found)
                identity = next(alike, "") if kind in _SPOKEN else ""
            elif kind == "gemini":
                self._renew(line, identity, message)
            if identity:
                found.add(identity)
            else:
                added.append(message)
        summarised = any(is_summary(plain_text(message)) for message in added)
        if summarised or any(message.get("type") == "user" for message in added):
            active = {name: self.messages[name] for name in self.active if name not in found}
            gone = {message.place.record for message in active.values() if message.kind in _SPOKEN}
            if gone:
                summarised = True
                kept = {message.place.record for message in self.messages.values()} - gone
                self.transcript.compact(self.transcript.record, kept)
        for message in added:
            self.transcript.next_record(line, message.get("timestamp"))
            is_reply = message.get("type") == "gemini" and not _ACKNOWLEDGED.fullmatch(plain_text(message).strip())
            self._message(line, message, synthetic=not is_reply and (summarised or message.get("type") == "gemini"))

    def _renew(self, line: int, identity: str, record: JsonObject) -> None:
        """Use a newer version of a reply, but keep the tool output, which may be masked in the context."""
        known, plain = self.messages[identity], plain_text(record)
        newer = list(pieces_of(identity, record, line))
        had = {piece.key for piece in known.pieces}
        if plain and plain != known.plain:
            replies = {piece.key: piece for piece in newer if piece.role == "assistant"}
            known.pieces = [replies.get(piece.key, piece) for piece in known.pieces]
            del self.by_words[known.kind, known.plain][identity]
            self.by_words.setdefault((known.kind, plain), {})[identity] = None
            known.plain = plain
        known.pieces += [piece for piece in newer if piece.key not in had]

    def _cwd(self) -> str:
        """The project's directory. The metadata only have its hash, but newer versions store it in a file."""
        directories = list_of(self.metadata.get("directories"))
        if directories and isinstance(directories[0], str):
            return directories[0]
        for folder in Path(self.transcript.source.path).parents[1:3]:
            noted = folder / ".project_root"
            try:
                if noted.is_file():  # opening a pipe might wait for ever
                    with noted.open(encoding="utf-8") as file:
                        return file.read(_MAX_PATH).strip()
            except (OSError, UnicodeDecodeError):
                continue
        return self.cwd


class Gemini(HarnessWithRecords):
    name = "gemini"
    folders = ("${GEMINI_CLI_HOME:-~}/.gemini/tmp",)
    reader = Reader
    side_files = (
        "logs.json",  # prompts of all sessions of a project
        "logs/session-*.jsonl",  # log of the program
        "checkpoints/*.json",
        "checkpoint-*.json",
        "tool-outputs/*/*.json",
        "settings.json",
        "projects.json",
        "state.json",
        "trustedFolders.json",
        "oauth_creds.json",
        "google_accounts.json",
    )

    def retention_days(self, settings: JsonObject) -> float | None:
        """The days of retention, 30 by default, unless `general.sessionRetention` is off."""
        retention = object_of(object_of(settings.get("general")).get("sessionRetention"))
        age = _AGE.fullmatch(text_of(retention.get("maxAge", "30d")))
        return int(age[1]) * _DAYS[age[2]] if age and retention.get("enabled", True) is True else None

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a snapshot, the first record of a log, or a message if that was lost."""
        if isinstance(record.get("sessionId"), str):
            return isinstance(record.get("projectHash"), str) or isinstance(record.get("messages"), list)
        return (
            isinstance(record.get("id"), str)
            and text_of(record.get("type")) in _TYPES
            and {"timestamp", "content"} <= record.keys()
            and "uuid" not in record
        )

    def images_of(self, record: JsonObject) -> list[JsonObject]:
        return image_parts(record)

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        """The metadata and the messages, with their lines or numbers."""
        if is_compressed(source.path) or _is_log(Path(source.path)):
            yield from JsonLines(source.path, problems).records()
            return
        raw = Path(source.path).read_bytes()
        snapshot = object_of(read_document(raw, _MESSAGE_START, lambda message: "type" in message, problems))
        messages = snapshot.pop("messages", None)
        yield 0, snapshot
        for number, message in enumerate(list_of(messages), start=1):
            if isinstance(message, dict):
                yield number, message
            else:
                problems.append(Problem(number, "The message is not an object; left out."))
