"""Crush: `<project>/.crush/crush.db` of every project in `projects.json` in Crush's data folder.

A session with a parent is that of a sub-agent, whose prompt the model wrote. Crush stores times in seconds, though its
schema says milliseconds. The database does not record whether `crush run` sent a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from memory_pipeline.harnesses.answers import Answer
from memory_pipeline.harnesses.content import call_text
from memory_pipeline.harnesses.message_tables import MessageTables, milliseconds
from memory_pipeline.harnesses.model import Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders, expand
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_DATABASE = "crush.db"
_TABLES = MessageTables("Crush", "parts", "created_at")
_IGNORED = words("reasoning image_url binary")
_REFUSED = ("User denied permission", "User cancelled this question")
_ANSWERED = re.compile(
    r"^Q\d+: (?P<question>[^\n]*)\nUser (?:answered|selected|provided): (?P<said>.+?)(?=\n\n(?:Q\d+: |Notes:)|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A user's answer, as reported to the model by Crush."""
_CWD = re.compile(r"\s*<cwd>([^<>\n]*)</cwd>\s*\Z")
"""The text that Crush adds to the output of every command."""
_UNTITLED = ("New Session", "Untitled Session")


class Reader(RecordReader):
    reads: ClassVar = {"view": "file_path"}
    changes: ClassVar = dict.fromkeys(("edit", "multiedit", "write", "download", "lsp_replace_symbol"), "file_path")

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        folder = Path(transcript.source.path).parent
        self.cwd = str(folder.parent) if folder.name == ".crush" else ""

    def record(self, number: int, record: JsonObject) -> None:
        row = record.get("session") or record["message"]
        self.transcript.next_record(number, milliseconds(row.get("created_at")))
        if "session" in record:
            title = text_of(row.get("title"))
            self.session_id, self.title = text_of(row.get("id")), "" if title in _UNTITLED else title
            self.began_at = milliseconds(row.get("created_at"))
            self.parent_session = text_of(row.get("parent_session_id"))
            return
        self.begin(text_of(row.get("id")))
        role, is_summary = row.get("role"), bool(row.get("is_summary_message"))
        if role not in ("user", "assistant", "tool"):
            self.transcript.unknown[f"message/{role}"] += 1
            return
        for part in record["parts"]:
            self._part("summary" if is_summary else role, text_of(part.get("type")), object_of(part.get("data")))
        if is_summary:
            self.transcript.compact(self.transcript.record)

    def _part(self, speaker: str, kind: str, data: JsonObject) -> None:
        if kind == "text" and speaker == "user":
            self.prompt(text_of(data.get("text")))
        elif kind == "text":
            self.add("assistant" if speaker == "assistant" else "injected", text_of(data.get("text")))
        elif kind == "tool_call":
            call_id = text_of(data.get("id"))
            self.call(call_id, text_of(data.get("name")), text_of(data.get("input")), "call", call_id)
        elif kind == "tool_result":
            self._result(data)
        elif kind == "shell_command":
            # a command that the user ran with `!`: the call and its output are one message
            call = call_text("bash", {"command": text_of(data.get("command"))})
            failed = data.get("exit_code") not in (0, None)
            self.add("tool", f"{call}\n{text_of(data.get('output'))}", tool_name="bash", is_error=failed)
        elif kind == "finish":
            reason = ": ".join(filter(None, (text_of(data.get("message")), text_of(data.get("details")))))
            if data.get("reason") == "error":
                self.add("injected", reason)
        elif kind not in _IGNORED:
            self.transcript.unknown[f"part/{kind}"] += 1

    def _result(self, data: JsonObject) -> None:
        name, call_id = text_of(data.get("name")), text_of(data.get("tool_call_id"))
        output = text_of(data.get("content"))
        if cwd := _CWD.search(output):
            output = output[: cwd.start()]
            self.cwd = self.cwd or cwd[1]
        failed = data.get("is_error") is True
        refused = failed and output.startswith(_REFUSED)
        self.result(call_id, output, "result", call_id, failed=failed, refused=refused, name=name)
        for given in _ANSWERED.finditer(output) if name == "question" else ():
            said = given["said"].replace("\nUser provided: ", "\n")
            self.answer(Answer(said, "question", given["question"]), name)


class Crush(HarnessWithFolders):
    name = "crush"
    reader = Reader
    folders = ("${CRUSH_GLOBAL_DATA:-${XDG_DATA_HOME:-~/.local/share}/crush}", "${LOCALAPPDATA:-}/crush")
    marks = (_DATABASE,)
    side_files = ("crush/crush.json", "crush/providers.json")

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """The data folders of the projects that Crush lists in its own folder."""
        listed = [folder / "projects.json" for pattern in self.folders for folder in expand(pattern, home, env)]
        return list(dict.fromkeys(root for file in listed for root in _project_folders(file)))

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        if _DATABASE not in names or not (folder / _DATABASE).is_file():
            return None
        left = [] if folder.name == ".crush" else [name for name in names if not name.startswith(_DATABASE)]
        return _TABLES.sources(folder / _DATABASE)[0], left

    records = staticmethod(_TABLES.records)


def _project_folders(file: Path) -> list[Path]:
    found = objects_of(side_file(file).get("projects"))
    folders = [Path(text_of(p.get("path")), text_of(p.get("data_dir"))) for p in found if text_of(p.get("data_dir"))]
    return [folder for folder in folders if folder.is_absolute()]
