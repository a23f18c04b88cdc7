"""Cline, Roo Code and Kilo Code's first extension: the tasks of `store.py`, with messages of Anthropic's form.

Older messages have no time; they get the time at which the same text was shown, or that in Roo's description of the
environment, and are identified by their task and text. Newer ones are also identified by id or time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.cline.store import claims, owner, records
from memory_pipeline.harnesses.cline.texts import outcome, paths, result_in, spoken_and_called, typed
from memory_pipeline.harnesses.content import call_text
from memory_pipeline.harnesses.model import ParsedSession, Problem, Role, Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.records import JsonObject, text_of, words
from memory_pipeline.harnesses.speakers import split_by_speaker
from memory_pipeline.harnesses.transcript import Transcript

_IGNORED = words("thinking redacted_thinking image document reasoning")
_READS = words("read_file read_files")
_WRITES = words(
    "write_to_file replace_in_file apply_diff insert_content search_and_replace search_replace edit edit_file editor "
    "apply_patch write_file"
)
_SPEAKING = {"attempt_completion": "result", "plan_mode_respond": "response"}
"""Tools through which the model speaks, with the argument that contains the text."""
_PUT_IN = ("[TASK RESUMPTION]", "<hook_context", "The user approved switching to act mode.", "<environment_details>")
_CWD = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\) Files")
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_BASES = ("${XDG_CONFIG_HOME:-~/.config}", "~/Library/Application Support", "${APPDATA:-}")
_SERVERS = ("~/.vscode-server/data", "~/.local/share/code-server", "~/.cursor-server/data")


def _storage(extension: str) -> tuple[str, ...]:
    """The storage folders of an extension in every editor."""
    users = [f"{base}/{editor}" for base in _BASES for editor in _EDITORS]
    return tuple(f"{user}/User/globalStorage/{extension}/tasks" for user in (*users, *_SERVERS))


CLINE_FOLDERS = (
    *_storage("saoudrizwan.claude-dev"),
    "${CLINE_DATA_DIR:-${CLINE_DIR:-~/.cline}/data}/tasks",
    "${CLINE_SESSION_DATA_DIR:-}",
    "${CLINE_DATA_DIR:-${CLINE_DIR:-~/.cline}/data}/sessions",
)
ROO_FOLDERS = _storage("rooveterinaryinc.roo-cline")
KILO_CODE_FOLDERS = _storage("kilocode.kilo-code")


class Cline(HarnessWithFolders[JsonObject]):
    name = format = "cline"
    record_type: type[JsonObject] = dict
    side_files = (
        "globalState.json",
        "workspaceState.json",
        "state/taskHistory.json",
        "settings/*mcp_settings.json",
        "tasks/_index.json",
        "tasks/*/*.json",
    )

    def __init__(self, name: str = "cline", *folders: str) -> None:
        self.name, self.folders = name, folders or CLINE_FOLDERS

    def recognises(self, record: JsonObject) -> bool:
        """Never: its files are recognised by name, as a list of messages has no distinguishing marks."""
        return False

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        return claims(folder, names) if owner(folder) == self.name else None

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        return records(source, problems)

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.task: JsonObject = {}
        self.is_attended = True
        self.wrapped = not transcript.source.path.endswith(".messages.json")
        """Whether typed text is always in an element."""
        self.cwd = ""
        self.calls: dict[str, tuple[str, JsonObject, int | None]] = {}
        self.latest: tuple[str, JsonObject, int | None] = ("", {}, None)
        self.identity = ""
        self.part = 0

    def finish(self) -> ParsedSession:
        task = self.task
        return self.transcript.finish(
            text_of(task.get("id")),
            text_of(task.get("title")),
            self.cwd,
            began_at=task.get("created"),
            parent_id=text_of(task.get("parent")),
            is_attended=self.is_attended,
        )

    def record(self, number: int, record: JsonObject) -> None:
        if "task" in record:
            self.task = record["task"]
            self.transcript.next_record(number, self.task.get("created"))
            self.cwd = text_of(self.task.get("cwd"))
            parent = text_of(self.task.get("parent")) or text_of(self.task.get("agent")).removeprefix("lead")
            program = "" if self.task.get("interactive") is not False else "exec"
            self.is_attended = is_person(Evidence("cline", entrypoint=program, parent_session=parent, cwd=self.cwd))
            return
        message = record["message"]
        self.transcript.next_record(number, message.get("ts"))
        self._identify(message)
        content, role = message.get("content"), message.get("role")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        blocks = [block for block in blocks if isinstance(block, dict)]
        if role == "user":
            self._user(message, blocks)
        elif role == "assistant":
            for block in blocks:
                self._assistant(block)
        elif text_of(message.get("type")) not in _IGNORED:
            self.transcript.unknown[f"message/{role}"] += 1

    def _identify(self, message: JsonObject) -> None:
        self.part = 0
        task, own = text_of(self.task.get("id")), text_of(message.get("id"))
        if own:
            self.identity = f"{task}\x1f{own}"
            return
        digest = self.transcript.digest(orjson.dumps([message.get("role"), message.get("content")]))
        self.identity = f"{task}\x1f{message.get('ts')}\x1f{digest}"
        self.identity = f"{self.identity}\x1f{self.transcript.occurrence(self.identity)}"

    def _user(self, message: JsonObject, blocks: list[JsonObject]) -> None:
        metadata = message.get("metadata")
        shown = metadata if isinstance(metadata, dict) else {}
        is_summary = message.get("isSummary") is True or text_of(shown.get("kind")).startswith("compaction")
        put_in = (
            is_summary or message.get("isTruncationMarker") is True or shown.get("displayRole") in ("system", "status")
        )
        waiting = ""  # the tool whose output is in the next text
        for block in blocks:
            kind, text = text_of(block.get("type")), text_of(block.get("text"))
            if kind == "text" and put_in:
                self._add("injected", text)
            elif kind == "text":
                self.cwd = self.cwd or (found[1] if (found := _CWD.search(text)) else "")
                result = (waiting, text) if waiting else result_in(text)
                waiting = result[0] if result and not result[1] else ""
                if result and not waiting:
                    self._result(*result)
                elif not result:
                    self._prompt(text)
            elif kind == "tool_result":
                called = self.calls.get(text_of(block.get("tool_use_id")), self.latest)
                content = block.get("content")
                parts = content if isinstance(content, list) else [{"text": content}]
                output = "\n".join(text_of(part.get("text")) for part in parts if isinstance(part, dict)).strip()
                told = result_in(output)
                self._result(called[0], told[1] if told else output, called, is_error=block.get("is_error") is True)
            elif kind == "file":
                self._add("injected", f"[file: {text_of(block.get('path'))}]")
            elif kind not in _IGNORED:
                self.transcript.unknown[f"block/{kind}"] += 1
        if is_summary:
            self.transcript.compact(self.transcript.record)

    def _prompt(self, text: str) -> None:
        found = None if text.lstrip().startswith(_PUT_IN[-1]) else typed(text)
        if found:
            self._add("injected", found.before)
            self._typed(found.said)
            self._add("injected", found.after)
        elif self.wrapped or text.lstrip().startswith(_PUT_IN):
            self._add("injected", text)
        else:
            self._typed(text)

    def _typed(self, text: str) -> None:
        if text.strip().startswith(_PUT_IN):
            self._add("injected", text)
            return
        for role, passage in split_by_speaker(text):
            self._add(role, passage)

    def _result(
        self, tool: str, text: str, called: tuple[str, JsonObject, int | None] | None = None, *, is_error: bool = False
    ) -> None:
        name, arguments, handle = called or (self.latest if self.latest[0] == tool else (tool, {}, None))
        found = outcome(tool, text, is_error=is_error)
        if found.is_error or found.refused:
            self.transcript.touch(handle)  # nothing was read or changed
        answer = REFUSED if found.refused else None
        output = found.output or ("" if found.said else "(no output)")
        self._add("tool", output, tool_name=name or tool or None, is_error=found.is_error, answer=answer)
        if not found.said:
            return
        question = text_of(arguments.get("question"))
        if found.refused:
            given = Answer(found.said, "refused call", call_text(name or tool, arguments))
        elif question:
            given = Answer(found.said, "question", question)
        else:
            self._typed(found.said)
            return
        self._add("user", given.text, tool_name=name or tool, answer=given)

    def _assistant(self, block: JsonObject) -> None:
        kind = text_of(block.get("type"))
        if kind == "text":
            for tool, spoken, arguments in spoken_and_called(text_of(block.get("text"))):
                if tool:
                    self._call(tool, arguments, "")
                else:
                    self._add("assistant", spoken)
        elif kind == "tool_use":
            given = block.get("input")
            self._call(text_of(block.get("name")), given if isinstance(given, dict) else {}, text_of(block.get("id")))
        elif kind not in _IGNORED:
            self.transcript.unknown[f"block/{kind}"] += 1

    def _call(self, name: str, arguments: JsonObject, call_id: str) -> None:
        if name in _SPEAKING:
            self._add("assistant", text_of(arguments.get(_SPEAKING[name])))
            handle = None
        else:
            handle = self._add("tool", call_text(name, arguments), tool_name=name)
        self.latest = self.calls[call_id] = (name, arguments, handle)
        if name in _READS:
            self.transcript.touch(handle, read=paths(arguments))
        elif name in _WRITES:
            self.transcript.touch(handle, modified=paths(arguments))

    def _add(self, role: Role, text: str, **told: Any) -> int | None:
        self.part += 1
        return self.transcript.add(role, text, f"{self.identity}\x1f{self.part}", **told)
