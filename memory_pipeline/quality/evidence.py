"""The offenders of failed checks with quotes, so that the report can be read without the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.quality.results import Result
from memory_pipeline.text.sentences import clip

MAX_TEXT, MAX_QUOTE, MAX_QUOTES = 400, 300, 3
_OBSERVATION = re.compile(r"\bo-[0-9a-f]{12}\b")


@dataclass(frozen=True)
class Quote:
    """A quote from a session with its speaker and place."""

    said_by: str
    place: str
    text: str


@dataclass(frozen=True)
class Offender:
    """A sentence of a check, with the observation that it is about and its evidence."""

    sentence: str
    session: str | None = None
    text: str | None = None
    quotes: tuple[Quote, ...] = ()


class Evidence:
    """The observations and messages of the failed days, each table read once."""

    def __init__(self, lake: Lake, days: Iterable[date]) -> None:
        chosen = sorted(set(days))
        names = lake.read("sessions", chosen, ["session_id", "name"]).unique("session_id", keep="last")
        self._names = {session: name or session for session, name in names.iter_rows()}
        columns = ["observation_id", "session_id", "text", "evidence"]
        self._observations = {
            row["observation_id"]: row for row in lake.read("observations", chosen, columns).to_dicts()
        }
        wanted = {span["message_id"] for row in self._observations.values() for span in row["evidence"] or ()}
        columns = ["message_id", "role", "text", "source_file", "source_line"]
        said = lake.read("messages", chosen, columns).filter(pl.col("message_id").is_in(list(wanted)))
        self._messages = {row["message_id"]: row for row in said.to_dicts()}

    def offender(self, sentence: str) -> Offender:
        """The sentence with the observation that it names by its id, if any."""
        row = next((self._observations[i] for i in _OBSERVATION.findall(sentence) if i in self._observations), None)
        if row is None:
            return Offender(sentence)
        quotes = tuple(filter(None, (self._quote(span) for span in (row["evidence"] or ())[:MAX_QUOTES])))
        return Offender(sentence, self._names.get(row["session_id"]), clip(row["text"], MAX_TEXT), quotes)

    def _quote(self, span: dict[str, int | str]) -> Quote | None:
        row = self._messages.get(f"{span['message_id']}")
        if row is None:
            return None
        words = " ".join(row["text"][int(span["start"]) : int(span["end"])].split())
        return Quote(row["role"], f"{row['source_file']}:{row['source_line']}", clip(words, MAX_QUOTE))


@dataclass(frozen=True)
class WorstDay:
    """A day with the checks that failed on it, each with its offenders."""

    day: date
    failed: tuple[tuple[Result, tuple[Offender, ...]], ...]


def worst_days(lake: Lake, results: Sequence[Result], most: int) -> list[WorstDay]:
    """The days with the most failures, errors before warnings, newer before older."""
    by_day: dict[date, list[Result]] = {}
    for result in results:
        if not result.passed and result.day is not None:
            by_day.setdefault(result.day, []).append(result)
    days = sorted(by_day, key=lambda d: (sum(r.severe for r in by_day[d]), len(by_day[d]), d), reverse=True)[:most]
    evidence = Evidence(lake, days)
    return [
        WorstDay(day, tuple((r, _offenders(evidence, r)) for r in sorted(by_day[day], key=_severity_key)))
        for day in days
    ]


def _offenders(evidence: Evidence, result: Result) -> tuple[Offender, ...]:
    return tuple(evidence.offender(sentence) for sentence in result.offenders)


def _severity_key(result: Result) -> tuple[bool, str]:
    return not result.severe, result.name
