"""Generated parts of the documentation. `make docs` writes them, `make check` compares them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg

import memory_pipeline.defs.graph
from memory_pipeline.cli.commands import ADMIN, AGENTS, SECTIONS
from memory_pipeline.lake.tables import TABLES, duckdb_type
from memory_pipeline.settings import Settings
from memory_pipeline.settings.sources import Setting, settings_of

OTHER_SOURCES = {"notes": "daily logs", "supports": "session files and the proposals before it"}
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
    return memory_pipeline.defs.graph.build_definitions(settings).get_repository_def()


def graph() -> str:
    """The asset graph as the page of definitions draws it."""
    text = memory_pipeline.defs.graph.__doc__ or ""
    drawn = text.partition("::\n\n")[2].partition("\n\n")[0]
    return "```\n" + "\n".join(line.removeprefix("    ") for line in drawn.splitlines()) + "\n```\n"


def commands() -> str:
    """Every command, by section of `memory --help`, with those of `memory agents` and `memory admin`."""
    below = {"agents": AGENTS, "admin": ADMIN}
    rows = []
    for section, found in SECTIONS.items():
        for name, does in found.items():
            rows.append((section, f"`memory {name}`", does))
            rows += [("", f"`memory {name} {inner}`", text) for inner, text in below.get(name, {}).items()]
            section = ""
    return _table(("", "command", "does"), rows)


def assets() -> str:
    """Every asset, in the order of the graph."""
    found = _repository().asset_graph
    rows = []
    for key in found.toposorted_asset_keys:
        node, name = found.get(key), key.to_user_string()
        about = TABLES[name].description if name in TABLES else _first_sentence(node.description)
        parents = sorted(f"`{parent.to_user_string()}`" for parent in node.parent_keys)
        rows.append((f"`{name}`", about, _partition(node.partitions_def), ", ".join(parents)))
    return _table(("asset", "one row is", "partition", "made from"), rows)


def checks() -> str:
    """Every check, with the assets that have it."""
    found = _repository().asset_graph
    assets: dict[tuple[str, str, str], list[str]] = {}
    for key in sorted(found.asset_check_keys, key=lambda key: (key.name, key.asset_key)):
        node = found.get(key)
        row = (f"`{key.name}`", fails_when(node.description), "stops the run" if node.blocking else "")
        assets.setdefault(row, []).append(f"`{key.asset_key.to_user_string()}`")
    rows = [(check, ", ".join(names), *about) for (check, *about), names in assets.items()]
    return _table(("check", "assets", "fails when", "then"), rows)


def fails_when(description: str | None) -> str:
    """The condition under which a check fails, from its description."""
    text = " ".join((description or "").split())
    return text[start + len("Fails when ") :] if (start := text.find("Fails when ")) >= 0 else ""


def jobs() -> str:
    """Every job with its schedules and sensors."""
    repository = _repository()
    started: dict[str, list[str]] = {}
    for schedule in repository.schedule_defs:
        started.setdefault(schedule.job_name, []).append(f"`{schedule.name}`")
    for sensor in repository.sensor_defs:
        started.setdefault(_job(sensor), []).append(f"`{sensor.name}`")
    rows = [
        (f"`{job.name}`", ", ".join(started.get(job.name, ["you"])), job.description or "")
        for job in sorted(repository.get_all_jobs(), key=lambda job: job.name)
        if not job.name.startswith("__")
    ]
    return _table(("job", "started by", "does"), rows)


def automation() -> str:
    """Every schedule and sensor."""
    repository = _repository()
    rows = [
        (f"`{s.name}`", f"schedule, {_clock(f'{s.cron_schedule}')}", f"`{s.job_name}`", s.description or "")
        for s in sorted(repository.schedule_defs, key=lambda s: f"{s.cron_schedule}".split()[1])
    ]
    rows += [
        (
            f"`{s.name}`",
            f"sensor, every {s.minimum_interval_seconds} s",
            f"`{job}`" if (job := _job(s)) else "none",
            s.description or "",
        )
        for s in sorted(repository.sensor_defs, key=lambda s: s.name)
    ]
    return _table(("name", "trigger", "starts", "what it does"), rows)


def tables() -> str:
    """Every table of the lake with its columns; the note of a column stands once."""
    shared = _shared_columns()
    parts = ["### Shared columns\n\n" + _column_list(sorted(shared))]
    first: dict[_Column, str] = {}
    for name, table in TABLES.items():
        own: list[_Column] = []
        elsewhere: dict[str, list[str]] = {}
        for column in _columns(name):
            place = "Shared columns" if column in shared else first.setdefault(column, name)
            if place == name:
                own.append(column)
            else:
                elsewhere.setdefault(place, []).append(column[0])
        files = "One file per day" if table.daily else "One file"
        source = OTHER_SOURCES.get(name, "session files")
        made = f"rebuilt from the {source}" if table.is_derived else "**cannot be rebuilt**"
        lines = [f"### `{name}`\n", f"One row is {table.description}. {files}; {made}."]
        lines += [_named_elsewhere(place, names) for place, names in elsewhere.items()]
        text = "\n".join(lines) + "\n"
        parts.append(text + ("\n" + _column_list(own) if own else ""))
    return "\n".join(parts)


_Column = tuple[str, str, str]
"""A column's name, type in DuckDB, and note."""


def _column_list(columns: Iterable[_Column]) -> str:
    return "".join(f"- `{name}` ({column_type}): {note}\n" for name, column_type, note in columns)


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
    return "\n".join(f"### {title}\n\n" + _settings_table(members) for title, members in groups.items())


def _settings_table(members: Iterable[Setting]) -> str:
    rows = []
    for s in members:
        secret = " Secret: never printed." if s.is_secret else ""
        rows.append((f"`{s.key}`", f"`{s.variable}`", _default(s), s.meaning + secret))
    return _table(("key in settings.toml", "variable", "default", "meaning"), rows)


def _default(setting: Setting) -> str:
    """The default, formatted as code unless it is a description."""
    return f"`{setting.default}`" if setting.default and " " not in setting.default else setting.default


def _partition(partitions: Any) -> str:
    return {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month"}[partitions.schedule_type.name] if partitions else "-"


def _job(sensor: dg.SensorDefinition) -> str:
    """The job that the sensor starts; empty if it starts none."""
    return sensor.job_name or "" if sensor.targets else ""


def _clock(cron: str) -> str:
    minute, hour, *_, weekday = cron.split()
    return f"{int(hour):02}:{int(minute):02}{' on Sundays' if weekday == '0' else ''}"


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


def _first_sentence(text: str | None) -> str:
    return _first_paragraph(text).partition(". ")[0].rstrip(".")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
