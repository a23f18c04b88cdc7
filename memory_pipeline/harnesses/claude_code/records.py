"""The records of Claude Code, over all versions: their types, and the fields that are read."""

from __future__ import annotations

from typing import Any

from memory_pipeline.harnesses.authorship import Evidence
from memory_pipeline.harnesses.content import Content
from memory_pipeline.harnesses.records import Fields, Other, text_of, words

QUEUE = "queue-operation"
CHAIN_TYPES = frozenset(("user", "assistant", "system", "attachment", "progress"))
# State of the program, and copies of other records.
_IGNORED = words(
    "progress file-history-snapshot file-history-delta history-suppression agent-name agent-color agent-setting "
    "last-prompt permission-mode mode pr-link bridge-session worktree-state relocated started launched result failed "
    "frame-link tag task-summary cost-state continued-in atis-latch isolation-latch fork-context-ref observer-ref "
    "content-replacement attribution-snapshot speculation-accept ended-by-model"
)
_IGNORED_FAMILIES = ("artifact-", "marble-origami-")
IGNORED_SYSTEM = words(
    "turn_duration stop_hook_summary microcompact_boundary api_error away_summary bridge_status informational "
    "api_refusal model_refusal_fallback model_refusal_no_fallback session_start error scheduled_task_fire "
    "agents_killed memory_saved permission_retry thinking file_snapshot"
)


def is_ignored(kind: str) -> bool:
    """Whether records of this type are state of the program, or copies."""
    return kind in _IGNORED or kind.startswith(_IGNORED_FAMILIES)


class MessageFields(Fields):
    content: Content = None


class Origin(Fields):
    kind: Any = None


class HookError(Fields):
    blockingError: Any = None


class Attachment(Fields):
    type: Any = None
    prompt: Content = None
    content: Content = None
    blockingError: HookError | Other = None
    origin: Origin | Other = None
    commandMode: Any = None


class Segment(Fields):
    headUuid: Any = None
    tailUuid: Any = None


class Preserved(Fields):
    uuids: Any = None


class Compaction(Fields):
    preTokens: Any = None
    preservedSegment: Segment | Other = None
    preservedMessages: Preserved | Other = None


class ToolResult(Fields):
    """The parts of a tool's structured result about the user; the rest is large and also in the text."""

    answers: Any = None
    annotations: Any = None
    plan: Any = None


class Record(Fields):
    """A record of the chain, or one of the small records next to it."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parentUuid: Any = None
    logicalParentUuid: Any = None
    sessionId: Any = None
    agentId: Any = None
    timestamp: Any = None
    cwd: Any = None
    gitBranch: Any = None
    isSidechain: Any = None
    isMeta: Any = None
    isCompactSummary: Any = None
    isApiErrorMessage: Any = None
    toolDenialKind: Any = None
    toolUseResult: ToolResult | Other = None
    message: MessageFields | Other = None
    attachment: Attachment | Other = None
    compactMetadata: Compaction | Other = None
    origin: Origin | Other = None
    entrypoint: Any = None
    promptSource: Any = None
    turnOrigin: Any = None
    content: Content = None
    summary: Any = None
    leafUuid: Any = None
    operation: Any = None
    customTitle: Any = None
    aiTitle: Any = None

    def evidence(self, origin: object = None) -> Evidence:
        """The evidence for the author of its text; an attachment has its own `origin`."""
        origin = origin or self.origin
        return Evidence(
            agent="claude_code",
            entrypoint=text_of(self.entrypoint),
            prompt_source=text_of(self.promptSource),
            turn_origin=text_of(self.turnOrigin),
            origin=text_of(origin.kind) if isinstance(origin, Origin) else "",
            cwd=text_of(self.cwd),
        )
