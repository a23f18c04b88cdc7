"""`memory mcp`: an MCP server for agents."""

import sys
from contextlib import suppress
from pathlib import Path

from memory_pipeline.cli.console import MISUSED, err, fail
from memory_pipeline.cli.workspace import migrated
from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline.settings.loading import is_installed


def mcp() -> None:
    """Serve agents over MCP on stdin and stdout.

    An agent starts it and calls its tools recall, search, show, why, brief, pending and remember. For Claude Code:
    `claude mcp add memory -- memory mcp`; docs/run.md has the other agents.
    """
    if not is_installed("mcp"):
        raise fail("`memory mcp` needs packages that are not installed: `pip install 'memory-pipeline[mcp]'`.", MISUSED)
    from memory_pipeline.recall.mcp_server import serve

    with suppress(SettingError):  # reported by the tools
        migrated(load_settings())
    if sys.stdin.isatty():
        err.print(
            "This command speaks MCP to agents; register it with `claude mcp add memory -- memory mcp`.", style="dim"
        )
    serve(Path.cwd())
