"""The fields that are read of a line of a Codex rollout, over all versions."""

from __future__ import annotations

from typing import Any

from memory_pipeline.harnesses.content import Block, Content
from memory_pipeline.harnesses.records import Fields, Other


class CallPayload(Fields):
    """The fields of a call and of a result."""

    type: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    revised_prompt: Any = None
    output: list[Block | Other] | dict[str, Any] | str | int | float | bool | None = None


class Item(Fields):
    """`item` of an `item_completed` event, which replaced several events in 2026."""

    type: Any = None
    id: Any = None
    content: Content = None
    changes: Any = None
    status: Any = None


class Metadata(Fields):
    compaction_output: Any = None


class Git(Fields):
    """The repository in a header."""

    branch: Any = None
    repository_url: Any = None


class HistoryBase(Fields):
    """The part of a rollout that a rollout continues."""

    thread_id: Any = None
    end_ordinal_exclusive: Any = None


class Payload(CallPayload):
    """The `payload` of a line, whatever its type."""

    role: Any = None
    content: Content = None
    message: Any = None
    id: Any = None
    session_id: Any = None
    cwd: Any = None
    git: Git | Other = None
    source: Any = None
    thread_source: Any = None
    originator: Any = None
    forked_from_id: Any = None
    history_base: HistoryBase | Other = None
    subagent_history_start_ordinal: Any = None
    num_turns: Any = None
    changes: Any = None
    success: Any = None
    images: Any = None
    local_images: Any = None
    thread_name: Any = None
    item: Item | Other = None


class Record(Fields):
    """A line of a rollout."""

    type: Any = None
    timestamp: Any = None
    ordinal: Any = None
    payload: Payload | Other = None
    metadata: Metadata | Other = None
