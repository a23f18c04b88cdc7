"""Where session files lie. Directories are only ever listed; nothing in them is written or locked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memory_pipeline.settings import Settings, WrongSetting

SUFFIXES = (".jsonl", ".json")


def default_roots() -> list[Path]:
    """Where pi, Claude Code and Codex keep sessions, with the variables by which each can be moved."""
    home = Path.home()
    env = os.environ
    agent = env.get("PI_CODING_AGENT_DIR") or home / ".pi/agent"
    codex = Path(env.get("CODEX_HOME") or home / ".codex")
    return [
        Path(env.get("PI_CODING_AGENT_SESSION_DIR") or Path(agent, "sessions")),
        Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude", "projects"),
        codex / "sessions",
        codex / "archived_sessions",
    ]


def roots(settings: Settings) -> list[Path]:
    """The directories to read: the named ones, then those default places that exist.

    Raises `WrongSetting` when a named one is not a readable directory, because then files that a person
    counts on would silently be missing.
    """
    for root in settings.session_dirs:
        if not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
            raise WrongSetting(f"{root} is not a directory that can be read; name a directory with session files.")
        if settings.workspace.is_relative_to(root):
            raise WrongSetting(
                f"MEMORY_WORKSPACE={settings.workspace} lies in the session directory {root}; move it out."
            )
    standard = [root for root in default_roots() if root.is_dir()] if settings.default_session_dirs else []
    return list(dict.fromkeys([*settings.session_dirs, *standard]))


def find_files(directories: list[Path]) -> Iterator[Path]:
    """Regular files that may be sessions, each once, sorted within its directory.

    Links to directories are not followed, so a loop cannot trap the walk; FIFOs and devices are passed over.
    """
    seen: set[Path] = set()
    for root in directories:
        for folder, subfolders, names in os.walk(root):
            subfolders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                # Path.is_file() raises where a parent may not be entered
                if name.endswith(SUFFIXES) and path not in seen and os.path.isfile(path):  # noqa: PTH113
                    seen.add(path)
                    yield path
