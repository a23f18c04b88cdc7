"""Copilot CLI: `~/.copilot/session-state/<sessionId>/events.jsonl`, and the transcripts of Copilot Chat in VS Code.

Both write the same events: `{type, data, id, timestamp, parentId}`. Events of a sub-agent are in the same file and name
it. A user's answers in a dialog are not recorded, and a rewind removes events from the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, path_in, side_file
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
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


class _Context(Fields):
    cwd: Any = None
    branch: Any = None
    repository: Any = None
    repositoryHost: Any = None

    @property
    def remote(self) -> str:
        """The address of the repository."""
        name = text_of(self.repository)
        return f"https://{text_of(self.repositoryHost) or 'github.com'}/{name}" if name else ""


class _Request(Fields):
    """A call that the model asks for."""

    toolCallId: Any = None
    name: Any = None
    arguments: Any = None


class _Result(Fields):
    content: Any = None


class _Error(Fields):
    code: Any = None
    message: Any = None


class _Data(Fields):
    """The fields that are read of the data of any event."""

    sessionId: Any = None
    startTime: Any = None
    detachedFromSpawningParentSessionId: Any = None
    context: _Context | Other = None
    cwd: Any = None
    branch: Any = None
    content: Any = None
    source: Any = None
    isAutopilotContinuation: Any = None
    parentAgentTaskId: Any = None
    parentToolCallId: Any = None
    toolRequests: list[_Request | Other] | Fields | str | int | float | bool | None = None
    toolCallId: Any = None
    toolName: Any = None
    arguments: Any = None
    success: Any = None
    result: _Result | Other = None
    error: _Error | Other = None
    summaryContent: Any = None
    preCompactionTokens: Any = None
    summary: Any = None


class Record(Fields):
    """An event."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    agentId: Any = None
    data: _Data | Other = None


class Copilot(Harness[Record]):
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
    record_type = Record

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is an event, whose type has two parts."""
        prefix, dot, _ = text_of(record.get("type")).partition(".")
        return bool(dot) and prefix in _PREFIXES and isinstance(record.get("data"), dict) and "timestamp" in record

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader(RecordReader):
    reads: ClassVar = {"view": "path", "read": "path", "read_file": "filePath"}
    changes: ClassVar = {
        **dict.fromkeys(("create", "edit", "write", "str_replace", "str_replace_editor", "insert"), "path"),
        **dict.fromkeys(("create_file", "replace_string_in_file", "insert_edit_into_file"), "filePath"),
    }

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.start = _Data()
        self.context = _Context()

    def finish(self) -> ParsedSession:
        path, start, context = Path(self.transcript.source.path), self.start, self.context
        own_folder = path.name == "events.jsonl"
        return self.transcript.finish(
            text_of(start.sessionId) or (path.parent.name if own_folder else ""),
            _name(path.parent / "workspace.yaml") if own_folder else "",
            self.cwd or ("" if own_folder else _folder_in_editor(path)),
            began_at=start.startTime,
            branch=text_of(context.branch),
            remote=context.remote,
            is_attended=self.is_attended,
        )

    def record(self, line: int, record: Record) -> None:
        kind, data = text_of(record.type), record.data
        if kind in _IGNORED or not isinstance(data, _Data):
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        if isinstance(record.id, str) and record.id:
            self.begin(record.id)
        else:
            self.begin_unnamed(record.timestamp, kind, data, text_of(self.start.sessionId))
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._place(kind, data)
        elif kind == "user.message":
            by_program = data.source or data.isAutopilotContinuation is True or data.parentAgentTaskId
            in_subagent = record.agentId or data.parentToolCallId
            self.prompt(text_of(data.content), typed=not (by_program or in_subagent))
        elif kind == "assistant.message":
            self.add("assistant", text_of(data.content))
            for request in data.toolRequests if isinstance(data.toolRequests, list) else ():
                if isinstance(request, _Request):
                    self._call(request.toolCallId, request.name, request.arguments)
        elif kind in ("tool.execution_start", "tool.user_requested"):
            self._call(data.toolCallId, data.toolName, data.arguments)
        elif kind == "tool.execution_complete":
            self._result(data)
        elif kind == "session.compaction_complete":
            if data.success is not False:
                self.add("injected", text_of(data.summaryContent))
                self.transcript.compact(self.transcript.record, tokens_before=data.preCompactionTokens)
        elif kind in ("system.notification", "skill.invoked", "session.handoff"):
            self.add("injected", text_of(data.content) or text_of(data.summary))
        else:
            self.transcript.unknown[kind] += 1

    def _place(self, kind: str, data: _Data) -> None:
        """Set the folder of the session: the first one that it names."""
        if kind == "session.start" and self.start.sessionId is None:
            self.start = data
        context = data.context if isinstance(data.context, _Context) else _Context(cwd=data.cwd, branch=data.branch)
        if not text_of(self.context.cwd):
            self.context = context
        self.parent_session = text_of(self.start.detachedFromSpawningParentSessionId)
        self.cwd = text_of(self.context.cwd)

    def _call(self, call_id: object, name: object, arguments: object) -> None:
        """Add a call, which is in the reply, and again when it begins."""
        if text_of(call_id) not in self.calls:
            self.call(text_of(call_id), text_of(name), arguments)

    def _result(self, data: _Data) -> None:
        error = data.error if isinstance(data.error, _Error) else _Error()
        result = data.result.content if isinstance(data.result, _Result) else data.result
        self.result(
            text_of(data.toolCallId),
            text_of(result) or text_of(error.message),
            failed=data.success is False,
            refused=error.code == _REJECTED,
            name=text_of(data.toolName),
        )

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The changed files; one of VS Code's tools changes several at once."""
        edits = arguments.get("replacements") if isinstance(arguments, dict) else None
        if name == "multi_replace_string_in_file" and isinstance(edits, list):
            return (), tuple(path for edit in edits for path in path_in(edit, "filePath"))
        return super().files(name, arguments)


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
