"""What a line names of its own project that is gone: files that its repository once had, and commands that nothing
defines. Told only where the file lies in that repository, and only what the repository itself shows."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from memory_pipeline.operations.audit_file import Line
from memory_pipeline.operations.audit_lines import STALE, Finding

SECONDS = 10
"""For a question to git; without an answer nothing is told."""
_QUOTED = re.compile(r"`([^`\n]+)`|\]\(([^)\s]+)\)")
_PATH = re.compile(r"(?:\./)?(?:[\w.@+-]+/)+[\w.@+-]*")
_MAKE = re.compile(r"make ([a-z][\w-]*)")
_SCRIPT = re.compile(r"(?:npm|pnpm|yarn|bun) run ([a-z][\w:.-]*)")
_ENDS = re.compile(
    r"\b(?:no longer|any ?more|any longer|gone|closed|is off|switched off|is out|left|forget|not|no|\w+n't|dropped|"
    r"retired|moved|migrated|switched|replaced|cancel\w+|stopped|instead of|was|used to|"
    r"nicht|kein\w*|weg|raus|vergiss|umgezogen|gewechselt|abgeschaltet|gekündigt|ersetzt|statt|war|zu|"
    r"ya no|no|cerrad\w+|fuera|olvida|dej(?:amos|é|ó)|pas(?:amos|ó)|migramos|quit\w+|cancel\w+|en (?:vez|lugar) de|"
    r"se fue|era|ne|plus|fermé\w*)\b|不再|不用|停用|やめ",
    re.I,
)
"""Says in a clause that what it names is over."""
_OF_MAKE = ("Makefile", "makefile", "GNUmakefile")


class Project:
    """The repository that a file lies in."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def tracked(self) -> frozenset[str]:
        return frozenset(self._git("ls-files", "-z").split("\0")) - {""}

    @cached_property
    def scripts(self) -> frozenset[str] | None:
        """Those of every package.json; None where there is none, or one cannot be read."""
        files = [name for name in self.tracked if Path(name).name == "package.json"]
        found = set[str]()
        for name in files:
            try:
                found |= set(json.loads((self.root / name).read_text("utf-8")).get("scripts", {}))
            except (OSError, ValueError, AttributeError, TypeError):
                return None
        return frozenset(found) if files else None

    @cached_property
    def made(self) -> str | None:
        """All that its makefiles say; None where there are none, or one takes in what is not looked at."""
        files = [n for n in self.tracked if Path(n).name in _OF_MAKE or n.endswith(".mk")]
        with suppress(OSError):
            text = "\n".join((self.root / name).read_text("utf-8", "replace") for name in files)
            if text and not re.search(r"^-?s?include\b|^[^\s#:]*%[^\s:]*:|\$\(eval", text, re.M):
                return text
        return None

    def lost(self, path: str, below: Path) -> str | None:
        """The day on which git says that a path was deleted; None where it is there, or never was."""
        plain = path.removeprefix("./").rstrip("/")
        places = [plain]
        if below != self.root and below.is_relative_to(self.root):
            places.append((below.relative_to(self.root) / plain).as_posix())
        if any((self.root / place).exists() for place in places):
            return None
        if any(f"/{name}/".find(f"/{plain}/") >= 0 for name in self.tracked):  # in another folder
            return None
        for place in places:
            day = self._git("log", "-1", "--diff-filter=D", "--format=%cs", "--", place).strip()
            if day:
                return day
        return None

    def _git(self, *words: str) -> str:
        """What git answers; nothing where it cannot."""
        command = ["git", "-C", f"{self.root}", *words]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def project_of(path: Path) -> Project | None:
    """The repository that the file lies in, if it does."""
    for folder in path.resolve().parents:
        if (folder / ".git").exists():
            return Project(folder)
    return None


def dead_names(lines: Sequence[Line], file: Path) -> Iterator[Finding]:
    """Lines that name a file which was deleted, or a command which is not defined."""
    project = project_of(file)
    if project is None:
        return
    for line in lines:
        if not _ENDS.search(line.text) and (reason := _dead(line.text, project, file.resolve().parent)):
            yield Finding(line.number, STALE, reason)


def _dead(text: str, project: Project, below: Path) -> str | None:
    for found in _QUOTED.finditer(text):
        named = (found[1] or found[2]).strip()
        if _PATH.fullmatch(named) and (day := project.lost(named, below)):
            return f"{named} was deleted on {day}"
        made, script = _MAKE.fullmatch(named), _SCRIPT.fullmatch(named)
        if made and project.made is not None and not _names(project.made, made[1]):
            return f"no makefile of the repository has {made[1]}"
        if script and project.scripts is not None and script[1] not in project.scripts:
            return f"no package.json of the repository has the script {script[1]}"
    return None


def _names(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
