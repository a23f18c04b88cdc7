"""Observations and existing memory as shown to a language model.

Observations are numbered and fenced, by day and topic, in batches that fit into one request. A topic begins with its
narrative, which is repeated if the topic continues in the next batch. Each line of MEMORY.md has an id; it and the
identity files belong to the user and are only read, and lines that do not fit are omitted whole and counted.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import NamedTuple, Self

from memory_pipeline.llm.answers.cleaning import cleaned
from memory_pipeline.llm.prompts import filled
from memory_pipeline.observations.model.alignment import stems
from memory_pipeline.observations.types import COMPLETED, ENDED, UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED
from memory_pipeline.reflections.evaluation import most_tokens
from memory_pipeline.reflections.types import Observation
from memory_pipeline.scope import without_note
from memory_pipeline.settings import IDENTITY_FILES, Settings
from memory_pipeline.text.priorities import EMOJI
from memory_pipeline.text.sentences import clip, run_together
from memory_pipeline.text.tokens import estimate

FENCE = "observations"
SPEAKERS = {
    **{"user": "the person", "assistant": "the agent", "tool": "a tool's output", "paste": "pasted text"},
    **{"injected": "text that a program put in", "model": "nobody knows whose"},
}
NOTES = {ENDED: "ended", COMPLETED: "done", **dict.fromkeys((UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED), "doubtful")}
"""The note after an observation with the flag."""
MAX_NARRATIVE = 400
"""Maximum characters of a topic's narrative."""


@dataclass(frozen=True)
class Batch:
    """Observations that are condensed in one request; number n is `observed[n - 1]`."""

    observed: tuple[Observation, ...]
    text: str
    fence: str
    """A delimiter that cannot occur inside `text`: it contains a hash of it."""
    today: date | None
    """The day that is reflected on; None for a pool, whose text does not depend on the day."""

    @property
    def tokens(self) -> int:
        return sum(o.tokens for o in self.observed)

    @property
    def most_tokens(self) -> int:
        """Maximum tokens of its lines."""
        return most_tokens(self.tokens, estimate(self.text))


def batches(observed: Sequence[Observation], cap: int, today: date | None) -> list[Batch]:
    """The observations in batches by day and of about equal size, each of at most `cap` estimated tokens, except a
    single longer one. Batches in which no observation may give a line its words are left out.

    With `today` each day is shown with its age; without it, the same observations always give the same text.
    """
    ordered = _in_order(observed)
    lines = [estimate(_line(o, len(ordered))) + 1 for o in ordered]
    even = shown_tokens(ordered)
    even = math.ceil(even / max(1, math.ceil(even / cap)))  # a small remainder might get an empty answer
    found: list[list[Observation]] = []
    spent = 0
    for o, line in zip(ordered, lines, strict=True):
        cost = line + _heading_tokens(o, found[-1][-1] if found else None)
        if not found or spent >= even or spent + cost > cap:
            found.append([])
            spent, cost = 0, line + _heading_tokens(o, None)
        found[-1].append(o)
        spent += cost
    return [_batch(taken, today) for taken in found if any(o.may_lead for o in taken)]


def shown_tokens(observed: Sequence[Observation]) -> int:
    """Estimated tokens of these observations as shown."""
    ordered = _in_order(observed)
    headings = sum(map(_heading_tokens, ordered, [None, *ordered]))
    return headings + sum(estimate(_line(o, len(ordered))) + 1 for o in ordered)


def _in_order(observed: Sequence[Observation]) -> list[Observation]:
    """The observations by day and topic, with each topic at the position of its first observation."""
    first: dict[tuple[date, str], datetime] = {}
    for o in observed:
        first[_place(o)] = min(o.observed_at, first.get(_place(o), o.observed_at))
    return sorted(observed, key=lambda o: (o.day, first[_place(o)], _place(o), o.observed_at, o.observation_id))


def _place(o: Observation) -> tuple[date, str]:
    return o.day, o.topic.segment_id if o.topic else o.observation_id


def _batch(observed: Sequence[Observation], today: date | None) -> Batch:
    text = "\n".join(_rendered_lines(observed, today))
    return Batch(tuple(observed), text, f"{FENCE}-{hashlib.sha256(text.encode()).hexdigest()[:16]}", today)


def _rendered_lines(observed: Sequence[Observation], today: date | None) -> Iterator[str]:
    before: Observation | None = None
    for day, of_day in groupby(enumerate(observed, 1), key=lambda numbered: numbered[1].day):
        yield f"## {day:%A %Y-%m-%d}{f' ({_age_text((today - day).days)})' if today else ''}"
        for number, o in of_day:
            if heading := _heading(o, before):
                yield heading
            yield _line(o, number)
            before = o


def _heading(o: Observation, before: Observation | None) -> str:
    """The heading of an observation that begins a topic, or ends one."""
    if before and before.day == o.day and before.topic == o.topic:
        return ""
    if o.topic is None:
        return "### (no topic)" if before and before.day == o.day else ""
    title, narrative = run_together(o.topic.title), clip(run_together(o.topic.narrative), MAX_NARRATIVE)
    return f"### {': '.join(filter(None, (title, narrative)))}"


def _heading_tokens(o: Observation, before: Observation | None) -> int:
    heading = _heading(o, before)
    return estimate(heading) + 1 if heading else 0


def _line(o: Observation, number: int) -> str:
    notes = "".join(dict.fromkeys(f"({NOTES[flag]}) " for flag in o.flags if flag in NOTES))
    projects = f" in {', '.join(map(run_together, o.projects))}" if o.projects else ""
    trace = f" (trace: {run_together(o.trace)})" if o.trace else ""
    head = f"o{number} {EMOJI[o.priority]} {o.kind}, {SPEAKERS.get(o.trust, o.trust)}{projects}: "
    return f"{head}{notes}{run_together(o.text)}{trace}"


def _age_text(days: int) -> str:
    return "today" if days == 0 else f"{days} day{'' if days == 1 else 's'} ago"


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
