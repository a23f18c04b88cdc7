"""Comparison of the files and commands that a memory file names with its repository."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

GIT_SECONDS = 10
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:\./)?(?:[\w.@+-]+/)+[\w.@+-]*")
_MAKE = re.compile(r"make ([a-z][\w-]*)")
_SCRIPT = re.compile(r"(?:npm|pnpm|yarn|bun) run ([a-z][\w:.-]*)")
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_UNKNOWN_TARGETS = re.compile(r"^-?s?include\b|^[^\s#:]*%[^\s:]*:|\$\(eval", re.M)
"""An include, a pattern rule or an `eval`: targets do not only come from the text of the makefile."""
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

    def missing(self, line: str) -> str:
        """The reason why a line is stale: it names a deleted file or an undefined command. Empty for any other."""
        if _SAYS_GONE.search(line):
            return ""
        return next(filter(None, (self._missing(named.strip()) for named in _QUOTED.findall(line))), "")

    def _missing(self, named: str) -> str:
        if _PATH.fullmatch(named) and (day := self._deleted_on(named.removeprefix("./").rstrip("/"))):
            return f"{named} was deleted on {day}"
        target, script = _MAKE.fullmatch(named), _SCRIPT.fullmatch(named)
        if target and self._makefiles and not re.search(rf"(?<![\w-]){target[1]}(?![\w-])", self._makefiles):
            return f"no makefile of the repository has the target {target[1]}"
        if script and self._scripts is not None and script[1] not in self._scripts:
            return f"no package.json of the repository has the script {script[1]}"
        return ""

    def _deleted_on(self, path: str) -> str:
        """The day on which a path was deleted according to git; empty if it exists, is elsewhere, or never existed."""
        if any((place / path).exists() for place in (self.root, self.folder)):
            return ""
        if any(f"/{path}/" in f"/{name}/" for name in self.tracked):
            return ""
        return _git(self.folder, "log", "-1", "--diff-filter=D", "--format=%cs", "--", f":/{path}", path).strip()

    @cached_property
    def _makefiles(self) -> str:
        """The text of all makefiles; empty if there are none, or if one has unknown targets."""
        try:
            text = "\n".join(
                path.read_text("utf-8", "replace") for path in self._files_named(*_MAKEFILES, suffix=".mk")
            )
        except OSError:
            return ""
        return "" if _UNKNOWN_TARGETS.search(text) else text

    @cached_property
    def _scripts(self) -> frozenset[str] | None:
        """The scripts of every package.json; None without any, or if one is unreadable."""
        try:
            found = [
                json.loads(path.read_text("utf-8")).get("scripts", {}) for path in self._files_named("package.json")
            ]
            return frozenset[str]().union(*found) if found else None
        except (OSError, ValueError, AttributeError, TypeError):
            return None

    def _files_named(self, *names: str, suffix: str = "\0") -> Iterator[Path]:
        """The tracked files with one of these names or this suffix."""
        return (path for name in self.tracked if (path := self.root / name).name in names or name.endswith(suffix))


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
