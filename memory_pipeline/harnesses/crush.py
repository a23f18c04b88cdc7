"""Crush: `<project>/.crush/crush.db` of every project in `projects.json` in Crush's data folder.

A session with a parent is that of a sub-agent, whose prompt the model wrote. Crush stores times in seconds, though its
schema says milliseconds. The database does not record whether `crush run` sent a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.content import call_text
from memory_pipeline.harnesses.folders import expand
from memory_pipeline.harnesses.message_tables import MessageTables, milliseconds
from memory_pipeline.harnesses.model import ParsedSession, Problem, Role, Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.records import Fields, JsonObject, object_of, text_of, words
from memory_pipeline.harnesses.speakers import split_by_speaker
from memory_pipeline.harnesses.transcript import Transcript

_DATABASE = "crush.db"
_TABLES = MessageTables("Crush", "parts", "created_at")
_IGNORED = words("reasoning image_url binary")
_READS = words("view")
_WRITES = words("edit multiedit write download lsp_replace_symbol")
_REFUSED = ("User denied permission", "User cancelled this question")
_ANSWERED = re.compile(
    r"^Q\d+: (?P<question>[^\n]*)\nUser (?:answered|selected|provided): (?P<said>.+?)(?=\n\n(?:Q\d+: |Notes:)|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A user's answer, as reported to the model by Crush."""
_CWD = re.compile(r"\s*<cwd>([^<>\n]*)</cwd>\s*\Z")
"""The text that Crush adds to the output of every command."""
_UNTITLED = ("New Session", "Untitled Session")
_PROJECTS_BYTES = 10_000_000


class _Project(Fields):
    path: Any = None
    data_dir: Any = None


class _Projects(Fields):
    projects: list[_Project] = []  # noqa: RUF012 - msgspec copies it


class Crush(HarnessWithFolders[JsonObject]):
    name = "crush"
    record_type: type[JsonObject] = dict
    folders = ("${CRUSH_GLOBAL_DATA:-${XDG_DATA_HOME:-~/.local/share}/crush}", "${LOCALAPPDATA:-}/crush")
    side_files = ("crush/crush.json", "crush/providers.json")

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """The data folders of the projects that Crush lists in its own folder."""
        listed = [folder / "projects.json" for pattern in self.folders for folder in expand(pattern, home, env)]
        return list(dict.fromkeys(root for file in listed for root in _project_folders(file)))

    def recognises(self, record: JsonObject) -> bool:
        """Never: its sessions are rows of a database."""
        return False

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        if _DATABASE not in names or not (folder / _DATABASE).is_file():
            return None
        left = [] if folder.name == ".crush" else [name for name in names if not name.startswith(_DATABASE)]
        return _TABLES.sources(folder / _DATABASE)[0], left

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        return _TABLES.records(source, problems)

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


def _project_folders(file: Path) -> list[Path]:
    try:
        with file.open("rb") as opened:
            found = msgspec.json.decode(opened.read(_PROJECTS_BYTES), type=_Projects).projects
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return []
    folders = [Path(text_of(p.path), text_of(p.data_dir)) for p in found if text_of(p.data_dir)]
    return [folder for folder in folders if folder.is_absolute()]


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.session: JsonObject = {}
        self.is_attended = True
        folder = Path(transcript.source.path).parent
        self.cwd = str(folder.parent) if folder.name == ".crush" else ""
        self.calls: dict[str, int | None] = {}
        self.identity = ""

    def finish(self) -> ParsedSession:
        title = text_of(self.session.get("title"))
        return self.transcript.finish(
            text_of(self.session.get("id")),
            "" if title in _UNTITLED else title,
            self.cwd,
            began_at=milliseconds(self.session.get("created_at")),
            parent_id=text_of(self.session.get("parent_session_id")),
            is_attended=self.is_attended,
        )

    def record(self, number: int, record: JsonObject) -> None:
        if "session" in record:
            self.session = record["session"]
            self.transcript.next_record(number, milliseconds(self.session.get("created_at")))
            parent = text_of(self.session.get("parent_session_id"))
            self.is_attended = is_person(Evidence("crush", parent_session=parent, cwd=self.cwd))
            return
        message, parts = record["message"], record["parts"]
        self.transcript.next_record(number, milliseconds(message.get("created_at")))
        self.identity = text_of(message.get("id"))
        role, summary = message.get("role"), bool(message.get("is_summary_message"))
        if role not in ("user", "assistant", "tool"):
            self.transcript.unknown[f"message/{role}"] += 1
            return
        for place, part in enumerate(parts):
            data = object_of(part.get("data"))
            kind = text_of(part.get("type"))
            if kind == "text":
                self._text("summary" if summary else role, text_of(data.get("text")), place)
            elif kind == "tool_call":
                self._call(data)
            elif kind == "tool_result":
                self._result(data)
            elif kind == "shell_command":
                # a command that the user ran with `!`: the call and its output are one message
                output = (
                    f"{call_text('bash', {'command': text_of(data.get('command'))})}\n{text_of(data.get('output'))}"
                )
                self._add("tool", output, place, tool_name="bash", is_error=data.get("exit_code") not in (0, None))
            elif kind == "finish":
                reason = ": ".join(filter(None, (text_of(data.get("message")), text_of(data.get("details")))))
                if data.get("reason") == "error":
                    self._add("injected", reason, "finish")
            elif kind not in _IGNORED:
                self.transcript.unknown[f"part/{kind}"] += 1
        if summary:
            self.transcript.compact(self.transcript.record)

    def _text(self, speaker: str, text: str, place: int) -> None:
        if speaker == "user":
            for number, (role, passage) in enumerate(split_by_speaker(text)):
                self._add(role, passage, place, number)
        else:
            self._add("assistant" if speaker == "assistant" else "injected", text, place)

    def _call(self, data: JsonObject) -> None:
        name, call_id = text_of(data.get("name")), text_of(data.get("id"))
        written = text_of(data.get("input"))
        arguments = object_of(written) or written  # text, if the model was interrupted or wrote no JSON
        handle = self._add("tool", call_text(name, arguments), "call", call_id, tool_name=name)
        self.calls[call_id] = handle
        path = text_of(object_of(written).get("file_path"))
        if name in _READS:
            self.transcript.touch(handle, read=(path,))
        elif name in _WRITES:
            self.transcript.touch(handle, modified=(path,))

    def _result(self, data: JsonObject) -> None:
        name, call_id = text_of(data.get("name")), text_of(data.get("tool_call_id"))
        output = text_of(data.get("content"))
        if cwd := _CWD.search(output):
            output = output[: cwd.start()]
            self.cwd = self.cwd or cwd[1]
        failed, refused = data.get("is_error") is True, output.startswith(_REFUSED)
        if failed:
            self.transcript.touch(self.calls.get(call_id))  # nothing was read or changed
        answer = REFUSED if failed and refused else None
        text = output or "(no output)"
        self._add("tool", text, "result", call_id, tool_name=name, is_error=failed and not refused, answer=answer)
        for number, given in enumerate(_ANSWERED.finditer(output) if name == "question" else ()):
            said = Answer(given["said"].replace("\nUser provided: ", "\n"), "question", given["question"])
            self._add("user", said.text, "answer", call_id, number, tool_name=name, answer=said)

    def _add(self, role: Role, text: str, *key: object, **told: Any) -> int | None:
        return self.transcript.add(role, text, "\x1f".join(map(str, (self.identity, *key))), **told)
