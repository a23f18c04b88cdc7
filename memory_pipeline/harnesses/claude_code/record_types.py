"""The types of Claude Code's records: those of the conversation, and those that are ignored."""

from __future__ import annotations

from memory_pipeline.harnesses.records import words

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
# Attachments repeat state of the program; only hooks and queued prompts have content.
IGNORED_ATTACHMENTS = words(
    # files, selections and instructions for the model
    "file directory already_read_file edited_text_file edited_image_file pdf_reference compact_file_reference "
    "plan_file_reference selected_lines_in_ide opened_file_in_ide inlined_image_paths nested_memory "
    "current_session_memory relevant_memories instructions session_context environment prompt_snapshot diagnostics "
    "mcp_resource mcp_instructions_delta invoked_skills dynamic_skill skill_listing skill_discovery agent_mention "
    "agent_listing_delta deferred_tools_delta deferred_tools_record structured_output read_truncation_notice "
    # modes and reminders
    "plan_mode plan_mode_reentry plan_mode_exit auto_mode auto_mode_exit model thinking_stripped output_style "
    "output_style_instructions ultra_effort_enter ultra_effort_exit ultrathink_effort date date_change task_reminder "
    "todo_reminder verify_plan_reminder compaction_reminder critical_system_reminder total_tokens_reminder "
    "batching_reminder_sent silent_turn_reminder token_usage output_token_usage budget_usd context_efficiency "
    "max_turns_reached companion_intro command_permissions workflow_keyword_request remote_session_change "
    # tasks and other agents
    "task_status async_hook_response teammate_mailbox teammate_shutdown_batch team_context"
)


def is_ignored(kind: str) -> bool:
    """Whether records of this type are state of the program, or copies."""
    return kind in _IGNORED or kind.startswith(_IGNORED_FAMILIES)
