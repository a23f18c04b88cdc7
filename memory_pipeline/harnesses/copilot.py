"""Copilot CLI: `~/.copilot/session-state/<sessionId>/events.jsonl`, and the transcripts of Copilot Chat in VS Code.

Both write the same events: `{type, data, id, timestamp, parentId}`. Events of a sub-agent are in the same file and name
it. A user's answers in a dialog are not recorded, and a rewind removes events from the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, path_in, side_file
from memory_pipeline.harnesses.records import JsonObject, list_of, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_PREFIXES = words("session user assistant tool subagent skill hook system")
# State of the program, the model's thinking, and copies of other events.
_IGNORED = words(
    "assistant.turn_start assistant.turn_end assistant.reasoning assistant.intent assistant.usage assistant.idle "
    "assistant.turn_retry session.model_change session.mode_changed session.info session.warning session.error "
    "session.idle session.shutdown session.truncation session.usage_info session.usage_checkpoint session.plan_changed "
    "session.todos_changed session.compaction_start session.context_cleared session.task_complete "
    "session.workspace_file_changed session.permissions_changed session.remote_steerable_changed "
    "session.binary_asset session.auto_mode_resolved session.session_limits_changed system.message hook.start hook.end "
    "subagent.started subagent.completed subagent.failed subagent.selected subagent.deselected abort agent.interrupted "
    "tool.execution_partial_result tool.execution_progress permission.requested permission.completed "
    "model.call_failure model.call_start tool_search.activated"
)
_REJECTED = "rejected"
"""The error code of a call that the user refused."""
_NAME_BYTES = 20_000


class Reader(RecordReader):
    reads: ClassVar = {"view": "path", "read": "path", "read_file": "filePath"}
    changes: ClassVar = {
        **dict.fromkeys(("create", "edit", "write", "str_replace", "str_replace_editor", "insert"), "path"),
        **dict.fromkeys(("create_file", "replace_string_in_file", "insert_edit_into_file"), "filePath"),
    }

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        path = Path(transcript.source.path)
        if path.name == "events.jsonl":
            self.session_id, self.title = path.parent.name, _name(path.parent / "workspace.yaml")
        else:
            self.cwd = _folder_in_editor(path)
        self.is_started = self.is_placed = False

    def record(self, line: int, record: JsonObject) -> None:
        kind, data = text_of(record.get("type")), record.get("data")
        if kind in _IGNORED or not isinstance(data, dict):
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.get("timestamp"))
        self.begin_record(text_of(record.get("id")), record.get("timestamp"), kind, data)
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._place(kind, data)
        elif kind == "user.message":
            by_program = data.get("source") or data.get("isAutopilotContinuation") is True
            in_subagent = record.get("agentId") or data.get("parentAgentTaskId") or data.get("parentToolCallId")
            self.prompt(text_of(data.get("content")), typed=not (by_program or in_subagent))
        elif kind == "assistant.message":
            self.add("assistant", text_of(data.get("content")))
            for request in objects_of(data.get("toolRequests")):
                self._call(request.get("toolCallId"), request.get("name"), request.get("arguments"))
        elif kind in ("tool.execution_start", "tool.user_requested"):
            self._call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        elif kind == "tool.execution_complete":
            self._result(data)
        elif kind == "session.compaction_complete":
            if data.get("success") is not False:
                self.add("injected", text_of(data.get("summaryContent")))
                self.transcript.compact(self.transcript.record, tokens_before=data.get("preCompactionTokens"))
        elif kind in ("system.notification", "skill.invoked", "session.handoff"):
            self.add("injected", text_of(data.get("content")) or text_of(data.get("summary")))
        else:
            self.transcript.unknown[kind] += 1

    def _place(self, kind: str, data: JsonObject) -> None:
        """Set the folder of the session: the first one that it names."""
        if kind == "session.start" and not self.is_started:
            self.is_started, self.began_at = True, data.get("startTime")
            self.session_id = text_of(data.get("sessionId")) or self.session_id
            self.parent_session = text_of(data.get("detachedFromSpawningParentSessionId"))
        context = object_of(data.get("context")) or data
        if not self.is_placed and (cwd := text_of(context.get("cwd"))):
            self.is_placed, self.cwd, self.branch = True, cwd, text_of(context.get("branch"))
            if repository := text_of(context.get("repository")):
                self.remote = f"https://{text_of(context.get('repositoryHost')) or 'github.com'}/{repository}"

    def _call(self, call_id: object, name: object, arguments: object) -> None:
        """Add a call, which is in the reply, and again when it begins."""
        if text_of(call_id) not in self.calls:
            self.call(text_of(call_id), text_of(name), arguments)

    def _result(self, data: JsonObject) -> None:
        error, result = object_of(data.get("error")), data.get("result")
        output = result.get("content") if isinstance(result, dict) else result
        self.result(
            text_of(data.get("toolCallId")),
            text_of(output) or text_of(error.get("message")),
            failed=data.get("success") is False,
            refused=error.get("code") == _REJECTED,
            name=text_of(data.get("toolName")),
        )

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The changed files; one of VS Code's tools changes several at once."""
        edits = list_of(object_of(arguments).get("replacements"))
        if name == "multi_replace_string_in_file" and edits:
            return (), tuple(path for edit in edits for path in path_in(edit, "filePath"))
        return super().files(name, arguments)


class Copilot(Harness):
    name = "copilot"
    folders = (
        "${COPILOT_HOME:-~/.copilot}/session-state",
        *(
            f"{base}/User/workspaceStorage/*/GitHub.copilot-chat/transcripts"
            for editor in ("Code", "Code - Insiders", "VSCodium")
            for base in (f"${{XDG_CONFIG_HOME:-~/.config}}/{editor}", f"~/Library/Application Support/{editor}")
        ),
        "~/.vscode-server/data/User/workspaceStorage/*/GitHub.copilot-chat/transcripts",
    )
    side_files = ("session-state/*/*.json", "session-state/*/*/*.json", "session-state/*/*/*.jsonl")
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is an event, whose type has two parts."""
        prefix, dot, _ = text_of(record.get("type")).partition(".")
        return bool(dot) and prefix in _PREFIXES and isinstance(record.get("data"), dict) and "timestamp" in record


def _name(workspace: Path) -> str:
    """The title, which Copilot CLI stores in a file next to the events."""
    try:
        if not workspace.is_file():  # opening a pipe might block forever
            return ""
        with workspace.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_NAME_BYTES).splitlines()
    except OSError:
        return ""
    return next((line[6:].strip().strip("'\"") for line in lines if line.startswith("name: ")), "")


def _folder_in_editor(path: Path) -> str:
    """The folder that is open in the editor, which VS Code records in the storage of the workspace."""
    if len(path.parents) < 3:
        return ""
    url = urlsplit(text_of(side_file(path.parents[2] / "workspace.json").get("folder")))
    return unquote(url.path) if url.scheme == "file" else ""
