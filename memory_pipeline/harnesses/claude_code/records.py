"""The records of Claude Code, over all versions: their types, and the evidence for their authors."""

from __future__ import annotations

from memory_pipeline.harnesses.authorship import Evidence
from memory_pipeline.harnesses.records import JsonObject, object_of, text_of, words

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


def evidence_in(record: JsonObject, origin: object = None) -> Evidence:
    """The evidence for the author of a record's text; an attachment has its own `origin`."""
    return Evidence(
        agent="claude_code",
        entrypoint=text_of(record.get("entrypoint")),
        prompt_source=text_of(record.get("promptSource")),
        turn_origin=text_of(record.get("turnOrigin")),
        origin=text_of(object_of(origin or record.get("origin")).get("kind")),
        cwd=text_of(record.get("cwd")),
    )
