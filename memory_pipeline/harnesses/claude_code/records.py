"""The records of Claude Code, over all versions: their types, the evidence for their authors, and words of the user in
the results of tools."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_pipeline.harnesses.answers import Answer, answers_given, answers_listed
from memory_pipeline.harnesses.record_reader import Call
from memory_pipeline.harnesses.records import JsonObject, object_of, text_of, words
from memory_pipeline.harnesses.speakers import Evidence

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

_REFUSED = (
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
    "Permission for this tool use was denied. The tool use was rejected",
    "The agent proposed a plan that was rejected by the user.",
    "The user rejected this plan",
    "The user wants to clarify these questions.",
    "The user has indicated they have provided enough answers",
    "User declined to answer questions",
    "User rejected tool use",
)
_DENIED_BY_USER = "user-rejected"
_SAID = re.compile(r"\b[Tt]he user said:\s*\n?")
_WRAPPER = 500
"""Maximum characters before the user's words begin; the refused text is not quoted before them."""
_NOTE_TO_MODEL = re.compile(r"\n+Note: The user's next message may contain a correction or preference\..*\Z", re.DOTALL)
_ABOUT_QUESTIONS = ("The user wants to clarify these questions.", "The user has indicated they have provided enough")
_APPROVED = re.compile(r"User has approved (?:your plan|the plan|exiting plan mode)")
_PLAN = re.compile(r"^## Approved Plan(?: \(edited by user\))?:\n", re.MULTILINE)


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


class UserReply(NamedTuple):
    """Words of the user in a tool's result."""

    answers: list[Answer]
    refused: bool
    """Whether the user refused, in which case nothing failed."""


def user_reply(call: Call, text: str, *, is_error: bool, denial: object, result: object) -> UserReply:
    """The user's words in a result; `denial` and `result` are `toolDenialKind` and `toolUseResult` of its record."""
    if is_error and (denial == _DENIED_BY_USER or text.startswith(_REFUSED)):
        return UserReply(_refusal_answers(call, text), refused=True)
    if not is_error and (approved := _APPROVED.match(text)):
        plan = _PLAN.search(text)
        proposed = text[plan.end() :] if plan else _plan_in(call.arguments) or _plan_in(result)
        return UserReply([Answer(approved[0], "approved plan", proposed.strip())], refused=False)
    return UserReply([] if is_error else answers_given(call.arguments, result, text), refused=False)


def _refusal_answers(call: Call, text: str) -> list[Answer]:
    said = _SAID.search(text, 0, _WRAPPER)
    words = _NOTE_TO_MODEL.sub("", text[said.end() :] if said else text).strip()
    if words.startswith(_ABOUT_QUESTIONS):
        return answers_listed(words)
    if not said or not words:
        return []
    plan = _plan_in(call.arguments)
    return [Answer(words, "refused plan", plan) if plan else Answer(words, "refused call", call.text)]


def _plan_in(value: object) -> str:
    return text_of(value.get("plan")) if isinstance(value, dict) else ""
