"""Existing memory as shown to the reflector: MEMORY.md, each line with an id, and the identity files. They belong to
the user and are only read; lines that do not fit are omitted whole and counted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import NamedTuple, Self

from memory_pipeline.llm.answers.cleaning import cleaned
from memory_pipeline.llm.prompts import filled
from memory_pipeline.observations.model.alignment import stems
from memory_pipeline.scope import without_note
from memory_pipeline.settings import IDENTITY_FILES, Settings
from memory_pipeline.text.tokens import estimate

PROMPT = "reflector_context"
MAX_TOKENS = 4_000
"""Maximum tokens of a file that are shown."""
MAX_BYTES = 4_000_000
"""Maximum bytes of a file that are read."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_LEADING = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[[ xX]\]\s+)?(?:\(\d{4}-\d\d-\d\d\)\s*)?")
"""Bullet, checkbox and date before the text of a line."""


class MemoryLine(NamedTuple):
    """An active line of MEMORY.md with its heading."""

    heading: str
    line_id: str
    text: str


@dataclass(frozen=True)
class ContextFiles:
    """MEMORY.md and the identity files, read on first use."""

    memory_file: Path | None = None
    identity_files: tuple[Path, ...] = ()
    token_budget: int = 0
    """Maximum tokens of each file."""
    redact: Callable[[str], str] = str

    @classmethod
    def from_settings(cls, settings: Settings, redact: Callable[[str], str]) -> Self:
        directory = settings.identity.directory
        identity = tuple(directory / name for name in IDENTITY_FILES) if directory else ()
        return cls(settings.memory_file, identity, MAX_TOKENS, redact)

    def within(self, tokens: int) -> Self:
        """The same files with a total limit of this number of tokens."""
        each = max(0, tokens) // (1 + len(self.identity_files))
        return replace(self, token_budget=min(self.token_budget, each))

    @cached_property
    def lines(self) -> list[MemoryLine]:
        """The lines of MEMORY.md, without struck-through ones and comments."""
        found, heading = [], ""
        for line in self._read(self.memory_file).split("\n"):
            if _HEADING.match(line):
                heading = " ".join(line.split())
                continue
            text = without_note(" ".join(line[_LEADING.match(line).end() :].split()))  # type: ignore[union-attr]
            if text and not text.startswith("~~"):
                found.append(MemoryLine(heading, f"m{_hash(text.casefold())[:6]}", text))
        return found

    @cached_property
    def text_of(self) -> dict[str, str]:
        """The lines of MEMORY.md by their ids."""
        return {line.line_id: line.text for line in self.lines}

    def shown(self, observations: str) -> str:
        """The text of the files to show before these observations; lines of MEMORY.md that share words with them come
        first."""
        if not self.token_budget:
            return ""
        parts = [_part("MEMORY.md", *self._memory(observations))]
        parts += [_part(path.name, *self._identity(path)) for path in self.identity_files]
        return "".join(parts)

    def _memory(self, observations: str) -> tuple[list[str], int]:
        words = stems(observations)
        nearest = sorted(self.lines, key=lambda line: -len(stems(line.text) & words))  # stable order
        shown_as = [f"{line.heading}\n{line.line_id} {line.text}" for line in nearest]
        kept = set(nearest[: _fitting(self.token_budget, shown_as)])
        shown: list[str] = []
        for heading, lines in groupby((line for line in self.lines if line in kept), key=lambda line: line.heading):
            shown += [*filter(None, [heading]), *(f"{line.line_id} {line.text}" for line in lines)]
        return shown, sum(line not in kept for line in self.lines)

    def _identity(self, path: Path) -> tuple[list[str], int]:
        lines = [line.rstrip() for line in self._read(path).split("\n") if line.strip()]
        fitting = _fitting(self.token_budget, lines)
        return lines[:fitting], len(lines) - fitting

    def _read(self, path: Path | None) -> str:
        """The text of the file without parts meant for programs; empty if there is no such file, which `memory admin
        identity` reports."""
        try:
            if path is None or not path.is_file():  # reading a pipe would block forever
                return ""
            with path.open("rb") as file:
                data = file.read(MAX_BYTES)
        except OSError:
            return ""
        return self.redact(cleaned(_COMMENT.sub("", data.decode("utf-8", "replace").removeprefix("\ufeff"))))


def _fitting(token_budget: int, lines: Sequence[str]) -> int:
    """The number of leading lines that fit."""
    spent = accumulate(estimate(line) + 1 for line in lines)
    return sum(tokens <= token_budget for tokens in spent)


def _part(name: str, lines: list[str], left_out: int) -> str:
    """The shown part of a file; empty for an empty file."""
    if not lines and not left_out:
        return ""
    text = "\n".join(lines)
    cut = f", but for {left_out} lines for which there is no room" if left_out else ""
    fence = f"file-{_hash(f'{name}{text}')[:16]}"  # cannot occur in the text, of which it is a hash
    return filled(PROMPT, {"fence": fence, "name": name, "cut": cut, "text": text})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
