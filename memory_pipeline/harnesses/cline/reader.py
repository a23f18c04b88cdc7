"""Cline, Roo Code and Kilo Code's first extension: the tasks of `store.py`, with messages of Anthropic's form.

Older messages have no time; they get the time at which the same text was shown, or that in Roo's description of the
environment, and are identified by their task and text. Newer ones are also identified by id or time.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import orjson

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.cline.store import HISTORY, MESSAGES, claims, owner, records
from memory_pipeline.harnesses.cline.texts import outcome, paths, result_in, spoken_and_called, typed
from memory_pipeline.harnesses.content import blocks_of, plain_text
from memory_pipeline.harnesses.model import Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.record_reader import Call, RecordReader
from memory_pipeline.harnesses.records import JsonObject, object_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_IGNORED = words("thinking redacted_thinking image document reasoning")
_READS = words("read_file read_files")
_WRITES = words(
    "write_to_file replace_in_file apply_diff insert_content search_and_replace search_replace edit edit_file editor "
    "apply_patch write_file"
)
_SPEAKING = {"attempt_completion": "result", "plan_mode_respond": "response"}
"""Tools through which the model speaks, with the argument that contains the text."""
_IN_TEXT = "in the text"
"""The id of calls that are XML in the model's text."""
_INSERTED = ("[TASK RESUMPTION]", "<hook_context", "The user approved switching to act mode.", "<environment_details>")
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


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.wrapped = not transcript.source.path.endswith(".messages.json")
        """Whether typed text is always in an element."""
        self.latest = Call()

    def record(self, number: int, record: JsonObject) -> None:
        if "task" in record:
            self._task(number, record["task"])
            return
        message = record["message"]
        content, role, time = message.get("content"), message.get("role"), message.get("ts")
        self.transcript.next_record(number, time)
        if own := text_of(message.get("id")):
            self.begin(f"{self.session_id}\x1f{own}")
        else:
            self.begin_repeatable(self.session_id, time, self.transcript.digest(orjson.dumps([role, content])))
        blocks = blocks_of(content)
        if role == "user":
            self._user(message, blocks)
        elif role == "assistant":
            for block in blocks:
                self._assistant(block)
        elif text_of(message.get("type")) not in _IGNORED:
            self.transcript.unknown[f"message/{role}"] += 1

    def _task(self, number: int, task: JsonObject) -> None:
        self.began_at = task.get("created")
        self.transcript.next_record(number, self.began_at)
        self.session_id, self.title, self.cwd = (text_of(task.get(name)) for name in ("id", "title", "cwd"))
        self.parent_session = text_of(task.get("parent"))
        agent = text_of(task.get("agent")).removeprefix("lead")
        self.is_interactive = task.get("interactive") is not False and not agent

    def _user(self, message: JsonObject, blocks: list[JsonObject]) -> None:
        shown = object_of(message.get("metadata"))
        is_summary = message.get("isSummary") is True or text_of(shown.get("kind")).startswith("compaction")
        is_inserted = (
            is_summary or message.get("isTruncationMarker") is True or shown.get("displayRole") in ("system", "status")
        )
        waiting = ""  # the tool whose output is in the next text
        for block in blocks:
            kind, text = text_of(block.get("type")), text_of(block.get("text"))
            if kind == "text" and is_inserted:
                self.add("injected", text)
            elif kind == "text":
                self.cwd = self.cwd or (found[1] if (found := _CWD.search(text)) else "")
                result = (waiting, text) if waiting else result_in(text)
                waiting = result[0] if result and not result[1] else ""
                if result and not waiting:
                    self._outcome(*result, self.latest if self.latest.name == result[0] else Call(result[0]))
                elif not result:
                    self._prompt(text)
            elif kind == "tool_result":
                called = self.calls.get(text_of(block.get("tool_use_id")), self.latest)
                output = plain_text(block.get("content")).strip()
                wrapped = result_in(output)
                output = wrapped[1] if wrapped else output
                self._outcome(called.name, output, called, is_error=block.get("is_error") is True)
            elif kind == "file":
                self.add("injected", f"[file: {text_of(block.get('path'))}]")
            elif kind not in _IGNORED:
                self.transcript.unknown[f"block/{kind}"] += 1
        if is_summary:
            self.transcript.compact(self.transcript.record)

    def _prompt(self, text: str) -> None:
        found = None if text.lstrip().startswith(_INSERTED[-1]) else typed(text)
        if found:
            self.add("injected", found.before)
            self._typed(found.said)
            self.add("injected", found.after)
        elif self.wrapped:
            self.add("injected", text)
        else:
            self._typed(text)

    def _typed(self, text: str) -> None:
        if text.strip().startswith(_INSERTED):
            self.add("injected", text)
        else:
            self.prompt(text)

    def _outcome(self, tool: str, text: str, call: Call, *, is_error: bool = False) -> None:
        found = outcome(tool, text, is_error=is_error)
        if found.is_error or found.refused:
            self.transcript.touch(call.handle)  # nothing was changed
        answer = REFUSED if found.refused else None
        output = found.output or ("" if found.said else "(no output)")
        self.add("tool", output, tool_name=call.name or None, is_error=found.is_error, answer=answer)
        question = text_of(object_of(call.arguments).get("question"))
        if found.said and found.refused:
            self.answer(Answer(found.said, "refused call", call.text), call.name)
        elif found.said and question:
            self.answer(Answer(found.said, "question", question), call.name)
        elif found.said:
            self._typed(found.said)

    def _assistant(self, block: JsonObject) -> None:
        kind = text_of(block.get("type"))
        if kind == "text":
            for tool, spoken, arguments in spoken_and_called(text_of(block.get("text"))):
                if tool:
                    self._call(tool, arguments, "")
                else:
                    self.add("assistant", spoken)
        elif kind == "tool_use":
            self._call(text_of(block.get("name")), object_of(block.get("input")), text_of(block.get("id")))
        elif kind not in _IGNORED:
            self.transcript.unknown[f"block/{kind}"] += 1

    def _call(self, name: str, arguments: JsonObject, call_id: str) -> None:
        if name in _SPEAKING:
            self.add("assistant", text_of(arguments.get(_SPEAKING[name])))
            self.calls[call_id or _IN_TEXT] = Call(name, arguments)
        else:
            self.call(call_id or _IN_TEXT, name, arguments)
        self.latest = self.calls[call_id or _IN_TEXT]

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = paths(object_of(arguments))
        return (found if name in _READS else ()), (found if name in _WRITES else ())


class Cline(HarnessWithFolders):
    """Cline and its derivatives, whose files are recognised by name: a list of messages has no distinguishing marks."""

    name = "cline"
    folders = CLINE_FOLDERS
    reader = Reader
    marks = (HISTORY, f"*{MESSAGES}", "_index.json", "tasks")
    side_files = (
        "globalState.json",
        "workspaceState.json",
        "state/taskHistory.json",
        "settings/*mcp_settings.json",
        "tasks/_index.json",
        "tasks/*/*.json",
    )

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        return claims(folder, names) if owner(folder) == self.name else None

    records = staticmethod(records)
