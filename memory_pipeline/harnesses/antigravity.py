"""Antigravity: `~/.gemini/antigravity-cli/brain/<id>/.system_generated/logs/transcript.jsonl`, one step on each line.

In some versions there is also `transcript_full.jsonl`, in which the same steps are longer.

A step of the model is its reply with its calls, or the result of a tool, whose type is the kind of tool. Steps have
numbers; the session only has the name of its folder. Whether a session is that of a sub-agent is only recorded in the
transcript of the session that started it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import orjson

from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import JsonObject, objects_of, text_of
from memory_pipeline.harnesses.transcript import Transcript

_LOGS = (".system_generated", "logs")
_SOURCES = ("USER_EXPLICIT", "MODEL", "SYSTEM")
_REQUEST = re.compile(r"\s*<USER_REQUEST>(.*?)(?:</USER_REQUEST>|\Z)(.*)", re.DOTALL)
# Text that the program adds to or after the request.
_ADDED = re.compile(r"(<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE)>.*?(?:</\2>|\Z))", re.DOTALL)
_TIMES = re.compile(r"\s*(?:Created At:[^\n]*\n\s*)?(?:Completed At:[^\n]*\n?\s*)?")
_FOLDER = re.compile(r'"cwd"\s*:\s*("(?:[^"\\]|\\.){1,4000}")')
_STARTED = re.compile(rb'conversationId\\*"\s*:\s*\\*"([\w-]{1,80})')
_FAILED = ("ERROR", "FAILED", "CANCELED", "CANCELLED")


class Reader(RecordReader):
    reads: ClassVar = {"view_file": "AbsolutePath"}
    changes: ClassVar = dict.fromkeys(
        ("write_to_file", "replace_file_content", "multi_replace_file_content"), "TargetFile"
    )

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        path = Path(transcript.source.path)
        self.brain = path.parents[2] if path.parts[-3:-1] == _LOGS else None
        self.session_id = self.brain.name if self.brain else path.stem
        self.cwd = _workspace(self.brain) if self.brain else ""
        self.parent_session = _parent(self.brain) if self.brain else ""

    def record(self, line: int, record: JsonObject) -> None:
        source, kind, text = (text_of(record.get(name)) for name in ("source", "type", "content"))
        created, step = record.get("created_at"), record.get("step_index")
        self.transcript.next_record(line, created)
        identity = f"{self.session_id}\x1f{step}\x1f{kind}" if isinstance(step, int) else ""
        self.begin_record(identity, created, source, record)
        if source == "USER_EXPLICIT":
            self._request(text)
        elif source == "MODEL" and kind in ("PLANNER_RESPONSE", ""):
            self.add("assistant", text)
        elif source == "MODEL":
            if body := _TIMES.sub("", text, count=1):
                self.result("", body, failed=record.get("status") in _FAILED, name=kind.lower())
        elif source in _SOURCES:
            self.add("injected", text)
        else:
            self.transcript.unknown[source] += 1
        for call in objects_of(record.get("tool_calls")):
            self.call(text_of(call.get("id")), text_of(call.get("name")), _plain(call.get("args")))

    def _request(self, text: str) -> None:
        request = _REQUEST.match(text)
        typed, added = (request[1], request[2]) if request else (text, "")
        for number, chunk in enumerate(_ADDED.split(typed)):
            if number % 3 == 0:
                self.prompt(chunk)
            elif number % 3 == 1:
                added = f"{chunk}\n{added}"
        self.add("injected", added.strip())
        if not self.cwd and (folder := _FOLDER.search(added)):
            self.cwd = text_of(_unquoted(folder[1]))


class Antigravity(Harness):
    name = "antigravity"
    folders = ("~/.gemini/antigravity*/brain",)
    side_files = ("brain/*/*.json", ".system_generated/*/*.json", ".system_generated/*/*.jsonl")
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a step, which has a source and a type, or a time."""
        return record.get("source") in _SOURCES and ("step_index" in record or "created_at" in record)


def _plain(arguments: object) -> object:
    """The arguments, each of which is JSON in a string in some versions."""
    if not isinstance(arguments, dict):
        return arguments
    return {name: _unquoted(value) for name, value in arguments.items()}


def _unquoted(value: object) -> object:
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _workspace(brain: Path) -> str:
    """The folder in which the session ran. Antigravity records it only for the latest session of each folder."""
    noted = side_file(brain.parents[1] / "cache/last_conversations.json")
    return next((folder for folder, session in noted.items() if session == brain.name), "")


def _parent(brain: Path) -> str:
    """The session that started this one as its sub-agent; "" if there is none."""
    for other in sorted(brain.parent.glob(f"*/{'/'.join(_LOGS)}/transcript*.jsonl")):
        try:
            state = other.stat()
            if brain.name in _started(other, state.st_size, state.st_mtime_ns):
                return other.parents[2].name
        except OSError:
            continue
    return ""


@lru_cache(maxsize=10_000)
def _started(transcript: Path, size: int, modified_ns: int) -> frozenset[str]:
    """The sub-agents' sessions that a transcript, in this state of the file, names."""
    with transcript.open("rb") as file:
        lines = (line for line in file if b"INVOKE_SUBAGENT" in line)
        return frozenset(name.decode() for line in lines for name in _STARTED.findall(line))
