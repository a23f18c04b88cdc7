"""Conversion of search filters from the names that a user gives to those of the index; each name must exist."""

from __future__ import annotations

from datetime import date

from memory_pipeline.days import parse_day, today
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.errors import MisuseError
from memory_pipeline.recall.folders import MAX_NAME, project_named
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.text.sentences import clip


class FilterError(MisuseError):
    """A filter that nothing can match; the message gives the reason and the known values."""


def parse_filters(
    settings: Settings, first: str | None = None, last: str | None = None, **names: list[str] | None
) -> Filters:
    """The filters of a search by days and by names: those of projects, harnesses, sessions (`session_id`), priorities
    and kinds. Raises `FilterError` for a range without a day or an unknown name, and `UnknownProjectError`."""
    given = {field: _known(settings, field, values) for field, values in names.items() if values}
    return Filters(*parse_range(first, last), given)


def parse_range(first: str | None, last: str | None) -> tuple[date | None, date | None]:
    """The first and the last day, each of which may be missing. Raises `FilterError`."""
    try:
        first_day, last_day = (parse_day(day) if day else None for day in (first, last))
    except ValueError as error:
        raise FilterError(f"{error}") from None
    if first_day and last_day and last_day < first_day:
        raise FilterError(f"The first day, {first_day}, is after the last, {last_day}; no day lies between them.")
    return first_day, last_day


def _known(settings: Settings, field: str, values: list[str]) -> list[str]:
    """The values as stored. The tables are read only if a session, agent or project is given."""
    if field == "priority":
        return [_known_name(value, PRIORITIES, "priority") for value in values]
    if field == "kind":
        from memory_pipeline.text.kinds import KINDS

        return [_known_name(value, KINDS, "kind") for value in values]
    from memory_pipeline.lake.store import Lake

    lake = Lake.from_settings(settings)
    if field == "project":
        return [project_named(lake, value) or "" for value in values]
    stored: list[str] = sorted(set(lake.read("sessions", columns=[field])[field].drop_nulls()))
    if field == "harness":
        return [_known_name(value, stored, "agent whose sessions were read") for value in values]
    for value in values:
        if value not in stored:
            name = clip(value, MAX_NAME)
            raise FilterError(f"No session {name!r} was read; `memory search --json` has their ids.")
    return values


def _known_name(value: str, known: tuple[str, ...] | list[str], what: str) -> str:
    name = value.strip().casefold().replace("-", "_").replace(" ", "_")
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise FilterError(f"{clip(value, MAX_NAME)!r}: no such {what}; {there}.")
    return name


def describe_filters(settings: Settings, filters: Filters) -> str:
    """The filters in words, for a search that found nothing."""
    parts = [f"{name.removesuffix('_id')} {' or '.join(values)}" for name, values in filters.equals.items()]
    parts += [f"{word} {day}" for word, day in (("from", filters.first_day), ("to", filters.last_day)) if day]
    future = filters.first_day and filters.first_day > today(settings.zone)
    return (f" ({', '.join(parts)})" if parts else "") + ("; that day is in the future" if future else "")
