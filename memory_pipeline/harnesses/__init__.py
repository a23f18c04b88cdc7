"""The agents whose sessions can be read. `docs/adding-an-agent.md` says how to add one.

A harness is a class derived from `Harness` of `protocol.py`, which defines its interface; mypy checks it. No other
module of the pipeline names a harness.
"""

from __future__ import annotations

from memory_pipeline.harnesses.antigravity import Antigravity
from memory_pipeline.harnesses.claude_code.reader import ClaudeCode
from memory_pipeline.harnesses.cline.reader import KILO_CODE_FOLDERS, ROO_FOLDERS, Cline
from memory_pipeline.harnesses.codex.reader import Codex
from memory_pipeline.harnesses.copilot import Copilot
from memory_pipeline.harnesses.crush import Crush
from memory_pipeline.harnesses.cursor import Cursor
from memory_pipeline.harnesses.droid import Droid
from memory_pipeline.harnesses.gemini.reader import Gemini
from memory_pipeline.harnesses.goose import Goose
from memory_pipeline.harnesses.kimi_cli import KimiCli
from memory_pipeline.harnesses.kimi_code import KimiCode
from memory_pipeline.harnesses.opencode.reader import OpenCode
from memory_pipeline.harnesses.pi import Pi
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.qwen import QwenCode

HARNESSES: tuple[Harness, ...] = (
    Pi(),
    QwenCode(),  # before Claude Code, as its records have the same envelope
    ClaudeCode(),
    Codex(),
    Gemini(),
    OpenCode(),
    Copilot(),
    Antigravity(),
    Droid(),
    KimiCode(),
    KimiCli(),
    Cursor(),
    Crush(),
    Goose(),
    Cline(),
    Cline("roo", *ROO_FOLDERS),
    Cline("kilo_code", *KILO_CODE_FOLDERS),
    # agents that use one of the formats above in their own folder
    Pi(
        "oh_my_pi",
        "~/${PI_CONFIG_DIR:-.omp}/agent/sessions",
        "~/${PI_CONFIG_DIR:-.omp}/profiles/*/agent/sessions",
        "${XDG_DATA_HOME:-~/.local/share}/omp/sessions",
    ),
    Pi("openclaw", "~/.openclaw/agents/*/sessions"),
    Pi("prime", "~/.prime/agent/sessions"),
    ClaudeCode("cowork", "~/Library/Application Support/Claude/local-agent-mode-sessions"),
    ClaudeCode("iflow", "~/.iflow/projects"),
    ClaudeCode("openclaude", "~/.openclaude/projects"),
    Codex("traex", "~/.trae/cli/sessions"),
    OpenCode("kilo"),
    OpenCode("mimocode", "${MIMOCODE_HOME:-}/data"),
)
"""All harnesses in the order in which they are asked to recognise a session, after the owner of its folder."""


def named(name: str) -> Harness | None:
    """The harness of that name, or None."""
    return next((harness for harness in HARNESSES if harness.name == name), None)
