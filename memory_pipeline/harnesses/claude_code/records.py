"""The fields that are read of a record of Claude Code, over all versions."""

from __future__ import annotations

from typing import Any

from memory_pipeline.harnesses.authorship import Evidence
from memory_pipeline.harnesses.content import Content
from memory_pipeline.harnesses.records import Fields, Other, text_of


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
