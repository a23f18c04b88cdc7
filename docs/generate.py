"""Generated parts of the documentation. `make docs` writes them, `make check` compares them."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path

import dagster as dg

import memory_pipeline.defs.graph
from memory_pipeline.cli.commands import ADMIN, AGENTS, SECTIONS
from memory_pipeline.defs.placement import Placement
from memory_pipeline.lake.tables import TABLES, duckdb_type
from memory_pipeline.settings import Settings
from memory_pipeline.settings.sources import Setting, settings_of

OTHER_SOURCES = {"notes": "the daily logs", "supports": "the session files and the proposals before it"}
"""The sources of tables that are not rebuilt from the session files alone."""
SHARED_BY = 4
"""Minimum number of tables with the same column for which it is described only once."""


@cache
def _repository() -> dg.RepositoryDefinition:
    """The definitions of a workspace without settings."""
    settings = Settings(
        workspace=Path(tempfile.gettempdir()) / "nobody",
        timezone="UTC",
        start_date=date(2025, 1, 1),
        default_session_dirs=False,
    )
    return memory_pipeline.defs.graph.build_definitions(Placement(settings)).get_repository_def()


def graph() -> str:
    """The asset graph as the page of definitions draws it."""
    text = memory_pipeline.defs.graph.__doc__ or ""
    drawn = text.partition("::\n\n")[2].partition("\n\n")[0]
    return "```\n" + "\n".join(line.removeprefix("    ") for line in drawn.splitlines()) + "\n```\n"


def commands() -> str:
    """Every command by section of `memory --help`, with those of `memory agents` and `memory admin`."""
    below = {"agents": AGENTS, "admin": ADMIN}
    parts = []
    for section, found in SECTIONS.items():
        lines = [f"{section}:\n"]
        for name, does in found.items():
            lines.append(f"- `memory {name}`: {does}")
            lines += [f"- `memory {name} {inner}`: {text}" for inner, text in below.get(name, {}).items()]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def checks() -> str:
    """Every check, with the assets that have it."""
    found = _repository().asset_graph
    assets: dict[tuple[str, str], list[str]] = {}
    for key in sorted(found.asset_check_keys, key=lambda key: (key.name, key.asset_key)):
        node = found.get(key)
        about = fails_when(node.description) + (" **Stops the run.**" if node.blocking else "")
        assets.setdefault((f"`{key.name}`", about), []).append(f"`{key.asset_key.to_user_string()}`")
    return "".join(f"- {name} of {', '.join(of)}: {about}\n" for (name, about), of in assets.items())


def fails_when(description: str | None) -> str:
    """The condition under which a check fails, from its description."""
    text = " ".join((description or "").split())
    return text[start + len("Fails when ") :] if (start := text.find("Fails when ")) >= 0 else ""


def automation() -> str:
    """Every schedule and sensor with its job, then the jobs that nothing starts."""
    repository = _repository()
    found = [
        (s.name, s.job_name, _clock(f"{s.cron_schedule}"), s.description or "")
        for s in sorted(repository.schedule_defs, key=lambda s: _clock(f"{s.cron_schedule}"))
    ]
    found += [
        (s.name, _job(s), f"every {s.minimum_interval_seconds} s", s.description or "")
        for s in sorted(repository.sensor_defs, key=lambda s: s.name)
    ]
    lines = [
        f"- {when}: `{name}`" + (f" starts `{job}`" if job else "") + f". {about}\n" for name, job, when, about in found
    ]
    started = {job for _, job, _, _ in found}
    lines += [
        f"- by hand: `{job.name}`. {job.description}\n"
        for job in sorted(repository.get_all_jobs(), key=lambda job: job.name)
        if not job.name.startswith("__") and job.name not in started
    ]
    return "".join(lines)


def tables() -> str:
    """Every table of the lake with its columns; the note of a column stands once."""
    shared = _shared_columns()
    parts = ["### Shared columns\n\n" + _column_list(sorted(shared))]
    first: dict[_Column, str] = {}
    alike: dict[tuple[_Column, ...], str] = {}
    for name, table in TABLES.items():
        own: list[_Column] = []
        elsewhere: dict[str, list[str]] = {}
        columns = [column for column in _columns(name) if column[0] != "day" or not table.daily]
        twin = alike.setdefault(tuple(columns), name)
        for column in columns if twin == name else ():
            place = "Shared columns" if column in shared else first.setdefault(column, name)
            if place == name:
                own.append(column)
            else:
                elsewhere.setdefault(place, []).append(column[0])
        lines = [f"### `{name}`\n", " ".join([f"One row is {table.description}.", *_exceptions(name)])]
        lines += [_named_elsewhere(place, names) for place, names in elsewhere.items()]
        if twin != name:
            lines.append(f"Columns as in [`{twin}`](#{twin}).")
        text = "\n".join(lines) + "\n"
        parts.append(text + ("\n" + _column_list(own) if own else ""))
    return "\n".join(parts)


def _exceptions(table: str) -> Iterator[str]:
    """What is not true of most tables: the files, and what the rows are rebuilt from."""
    if not TABLES[table].daily:
        yield "One file."
    if not TABLES[table].is_derived:
        yield "**Cannot be rebuilt.**"
    elif table in OTHER_SOURCES:
        yield f"Rebuilt from {OTHER_SOURCES[table]}."


_Column = tuple[str, str, str]
"""A column's name, type in DuckDB, and note."""


def _column_list(columns: Iterable[_Column]) -> str:
    typed = ((name, "" if kind == "VARCHAR" else f" ({_fields(kind)})", note) for name, kind, note in columns)
    return "".join(f"- `{name}`{kind}: {note}\n" for name, kind, note in typed)


def _fields(kind: str) -> str:
    """A type with the names of its fields alone: `STRUCT(start, end)[]`."""
    return re.sub(r'"(\w+)" \w+(?:\[\])?', r"\1", kind)


def _columns(table: str) -> list[_Column]:
    return [(name, duckdb_type(kind), TABLES[table].notes[name]) for name, kind in TABLES[table].columns.items()]


def _shared_columns() -> set[_Column]:
    """The columns that mean the same in `SHARED_BY` tables or more; of one name, the most frequent meaning."""
    counted = Counter(column for table in TABLES for column in _columns(table))
    by_name: dict[str, _Column] = {}
    for column, tables in counted.most_common():
        if tables >= SHARED_BY:
            by_name.setdefault(column[0], column)
    return set(by_name.values())


def _named_elsewhere(place: str, names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return f"As in [`{place}`](#{place}): {listed}." if place in TABLES else f"{place}: {listed}."


def settings() -> str:
    """Every listed setting: the most used, the others, and the tables `retention` and `advanced`."""
    groups: dict[str, list[Setting]] = {title: [] for title in ("Most used", "Others", "Retention", "Advanced")}
    for setting in settings_of(Settings).values():
        title = setting.key.partition(".")[0].capitalize()
        if not setting.is_hidden:
            groups["Most used" if setting.is_front else title if title in groups else "Others"].append(setting)
    return "\n".join(f"### {title}\n\n" + _setting_list(members) for title, members in groups.items())


def _setting_list(members: Iterable[Setting]) -> str:
    alike: dict[tuple[str, str], list[Setting]] = {}
    for s in members:
        alike.setdefault((_default(s), s.meaning + (" Secret: never printed." if s.is_secret else "")), []).append(s)
    lines = []
    for (default, meaning), found in alike.items():
        variables = [f"`{s.variable}`" for s in found] + ([default] if default else [])
        lines.append(f"- {', '.join(f'`{s.key}`' for s in found)} ({', '.join(variables)}): {meaning}\n")
    return "".join(lines)


def _default(setting: Setting) -> str:
    """The default, formatted as code unless it is a description."""
    return f"`{setting.default}`" if setting.default and " " not in setting.default else setting.default


def _job(sensor: dg.SensorDefinition) -> str:
    """The job that the sensor starts; empty if it starts none."""
    return sensor.job_name or "" if sensor.targets else ""


def _clock(cron: str) -> str:
    minute, hour, *_, weekday = cron.split()
    return f"{int(hour):02}:{int(minute):02}{' on Sundays' if weekday == '0' else ''}"
