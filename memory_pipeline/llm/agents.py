"""Coding agents that can serve as a model: the command for each, with tools disabled and no session written.

Their input contains text from anyone, so no tool may be available to them; the user's extensions, hooks, MCP servers
and instructions are disabled too, as far as the agent allows.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Agent:
    """A program and its command line."""

    name: str
    """The name of the program."""
    command: str
    """The command as the value of `OBSERVER_MODEL`."""
    log_in: str
    """The instruction for a user who is not logged in."""
    variables: tuple[str, ...]
    """Environment variables, any of which provides a login."""
    home: tuple[str, str]
    """The variable for its folder, and the default folder."""
    files: tuple[str, ...]
    """Files in that folder; one that is not empty means that the user is logged in."""
    marked: tuple[tuple[str, bytes], ...] = ()
    """Files in that folder, with the text that one contains if the user is logged in but the key is stored
    elsewhere."""

    @property
    def folder(self) -> Path:
        variable, otherwise = self.home
        return Path(os.environ.get(variable) or otherwise).expanduser()


_APPLICATION_DATA = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
_CODEX_OFF = ("shell_tool", "image_generation", "view_image", "multi_agent", "goals", "skill_search", "apps", "plugins")
_CODEX_FEATURES = " ".join(f"-c features.{name}=false" for name in (*_CODEX_OFF, "hooks"))
# Codex reports unknown names on stderr and continues

AGENTS = (
    Agent(
        "claude",
        'claude -p --tools "" --strict-mcp-config --disable-slash-commands --setting-sources "" '
        "--no-session-persistence --system-prompt {system}",
        "run `claude` once and log in",
        (
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
        ),
        ("CLAUDE_CONFIG_DIR", "~/.claude"),
        (".credentials.json",),
        # on a Mac the key is in the key chain
        ((".claude.json", b'"oauthAccount"'), ("../.claude.json", b'"oauthAccount"')),
    ),
    Agent(
        "codex",
        "codex exec --ephemeral --ignore-user-config --ignore-rules --skip-git-repo-check --sandbox read-only "
        f"--color never -c web_search=disabled -c skills.bundled.enabled=false {_CODEX_FEATURES} -",
        "run `codex login`",
        ("CODEX_API_KEY",),
        ("CODEX_HOME", "~/.codex"),
        ("auth.json",),
    ),
    Agent(
        "gemini",
        # it only starts in trusted folders; ours is empty
        "GEMINI_CLI_TRUST_WORKSPACE=true gemini --admin-policy {files}/gemini-without-tools.toml --extensions none "
        "--allowed-mcp-server-names none --output-format text",
        "run `gemini` once and log in",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"),
        ("GEMINI_CLI_HOME", "~"),
        (".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"),
    ),
    Agent(
        "opencode",
        # without a title it would request one from a second model
        'OPENCODE_DB=:memory: \'OPENCODE_PERMISSION={"*":"deny"}\' opencode run --pure --title memory',
        "run `opencode auth login`",
        ("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"),
        ("XDG_DATA_HOME", "~/.local/share"),
        ("opencode/auth.json",),
    ),
    Agent(
        "pi",
        "pi -p --no-session --no-tools --no-extensions --no-skills --no-prompt-templates --no-context-files --offline "
        "--system-prompt {system}",
        "run `pi`, then /login",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_OAUTH_TOKEN"),
        ("PI_CODING_AGENT_DIR", "~/.pi/agent"),
        ("auth.json", "models.json"),
    ),
    Agent(
        "llm",
        "llm prompt --no-log --no-stream --system {system}",
        "run `llm keys set openai`",
        ("OPENAI_API_KEY",),
        ("LLM_USER_PATH", f"{_APPLICATION_DATA}/io.datasette.llm"),
        ("keys.json",),
    ),
)
"""The agents in the order in which they are offered. The flags are from their documentation in November 2026; the tests
run pi, Codex and OpenCode with them."""
BY_NAME = {agent.name: agent for agent in AGENTS}
