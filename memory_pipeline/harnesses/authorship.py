"""The author of a prompt: a person, or a program in the user role.

Every reader calls `is_person` with the evidence that its agent records. In doubt a prompt is not the user's, as a rule
typed by a program must never be offered as theirs; only a terminal or editor session counts as a person's without more
evidence. `docs/agents.md` lists the recognised values: keep it in step.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memory_pipeline.harnesses.records import words

_APPS_OF_PEOPLE = words(
    # Claude Code's `entrypoint`
    "cli claude-vscode claude-jetbrains jetbrains claude-desktop claude-desktop-3p local-agent local_agent ssh-remote "
    "remote remote_cowork remote_desktop remote_mobile "
    # Codex's `source` and `originator`
    "vscode codex_cli_rs codex-tui codex_vscode codex_vscode_copilot codex_app codex_desktop codex_chatgpt_desktop "
    "codex_atlas"
) | {"Codex Desktop"}
"""Terminals, editors and apps in which a person types."""
_PROGRAMS = words(
    "sdk-cli sdk-ts sdk-py mcp bench claude-code-github-action claude-security remote_trigger "
    "exec subagent internal codex_exec codex_sdk_ts codex_sdk_py codex-app-server-sdk codex_mcp_server"
)
"""Entry points through which programs send prompts, regardless of other evidence."""
_TURNS = ("", "human", "sdk", "user", "cli")
"""Values of `turn_origin` for prompts; others are for notices, sub-agents and automations."""
_SUBAGENT = re.compile(r"subagent-.+-[0-9a-f]{4,}-\d+")
"""The name of a run in pi's extensions for sub-agents: the agent, the run and its number."""
_TOOL_DIRECTORY = re.compile(
    r"[/\\](?:\.claude-mem(?:[/\\]|\Z)|observer-sessions(?:[/\\]|\Z)|(?:CodexBar|CCBar)[/\\]ClaudeProbe(?:[/\\]|\Z))",
    re.IGNORECASE,
)
"""Directories in which tools that watch sessions, or probe an account, run their own agents."""


class Evidence(NamedTuple):
    """The recorded evidence for the author of a prompt; fields that an agent does not record are empty."""

    agent: str = ""
    """The format of the transcript, which for pi determines the meaning of `parent_session`."""
    entrypoint: str = ""
    """Claude Code's `entrypoint`; Codex's `source` if it is text, else its first key."""
    prompt_source: str = ""
    """Claude Code's `promptSource`."""
    turn_origin: str = ""
    """Claude Code's `turnOrigin`, Codex's `thread_source`."""
    origin: str = ""
    """Claude Code's `origin.kind`."""
    originator: str = ""
    """Codex's `originator`."""
    parent_session: str = ""
    """The session that started this one as its sub-agent; for pi also the one of which this is a fork."""
    session_name: str = ""
    cwd: str = ""

    @property
    def is_notice(self) -> bool:
        """Whether the harness inserted it, such as the notice that a task has ended."""
        return self.origin not in ("", "human") or self.turn_origin not in _TURNS


@lru_cache(maxsize=1024)
def is_person(evidence: Evidence) -> bool:
    """Whether a person typed the prompt."""
    if evidence.is_notice or _is_subagent(evidence) or _TOOL_DIRECTORY.search(evidence.cwd):
        return False
    if "human" in (evidence.origin, evidence.turn_origin):
        return True
    named = {evidence.entrypoint, evidence.originator} - {""}
    if named:
        return named.isdisjoint(_PROGRAMS) and not named.isdisjoint(_APPS_OF_PEOPLE)
    # versions without an entry point are older than programmatic use, unless they say otherwise
    return "sdk" not in (evidence.prompt_source, evidence.turn_origin)


def _is_subagent(evidence: Evidence) -> bool:
    """Whether the session is that of a sub-agent. In pi a person's fork has a parent too, so the session's name
    decides."""
    if evidence.agent == "pi":
        is_named_so = evidence.session_name.startswith("subagent-")
        return is_named_so if evidence.parent_session else bool(_SUBAGENT.fullmatch(evidence.session_name))
    return bool(evidence.parent_session)
