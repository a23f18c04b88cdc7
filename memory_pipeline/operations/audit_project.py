"""Comparison of the files that a memory file names with its repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

GIT_SECONDS = 10
_QUOTED_PATH = re.compile(r"`\s*((?:\./)?(?:[\w.@+-]+/)+[\w.@+-]*)\s*`")
_SAYS_GONE = re.compile(
    r"\b(?:no longer|any ?more|any longer|gone|closed|is off|switched off|is out|left|forget|not|no|\w+n't|dropped|"
    r"removed|deleted|renamed|retired|moved|migrated|switched|replaced|cancel\w+|stopped|instead of|was|were|used to|"
    r"nicht|kein\w*|weg|raus|vergiss|umgezogen|gewechselt|abgeschaltet|gekündigt|ersetzt|statt|war|zu|"
    r"ya no|cerrad\w+|fuera|olvida|dej(?:amos|é|ó)|pas(?:amos|ó)|migramos|quit\w+|en (?:vez|lugar) de|"
    r"se fue|era|ne|plus|fermé\w*)\b|不再|不用|停用|やめ",
    re.I,
)
"""Words with which a line says that its subject no longer exists."""


class Repository:
    """The git repository around a folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.tracked = [name for name in _git(root, "ls-files", "-z").split("\0") if name]

    def deleted(self, line: str) -> str:
        """The sentence that a file named by the line was deleted; empty if none was, or if the line says so itself."""
        if _SAYS_GONE.search(line):
            return ""
        days = ((name, self._deleted_on(name.removeprefix("./").rstrip("/"))) for name in _QUOTED_PATH.findall(line))
        return next((f"{name} was deleted on {day}" for name, day in days if day), "")

    def _deleted_on(self, path: str) -> str:
        """The day on which a path was deleted according to git; empty if it exists, is elsewhere, or never existed."""
        if any((place / path).exists() for place in (self.root, self.folder)):
            return ""
        if any(f"/{path}/" in f"/{name}/" for name in self.tracked):
            return ""
        return _git(self.folder, "log", "-1", "--diff-filter=D", "--format=%cs", "--", f":/{path}", path).strip()


def repository_around(folder: Path) -> Repository | None:
    """The repository that contains a folder, or None."""
    root = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    return Repository(Path(root), folder) if root else None


def _git(folder: Path, *words: str) -> str:
    """The output of git; empty on failure."""
    try:
        done = subprocess.run(["git", "-C", f"{folder}", *words], capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
