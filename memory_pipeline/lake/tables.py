"""The tables of the lake, derived from the declarations of their columns in `lake/rows.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import polars as pl

from memory_pipeline.lake import rows

_POLARS: dict[type, pl.DataType] = {
    str: pl.String(),
    int: pl.Int64(),
    float: pl.Float64(),
    bool: pl.Boolean(),
    date: pl.Date(),
    datetime: pl.Datetime("us", "UTC"),
}
_DUCKDB: dict[type[pl.DataType], str] = {
    pl.String: "VARCHAR",
    pl.Int64: "BIGINT",
    pl.Float64: "DOUBLE",
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
    pl.Datetime: "TIMESTAMPTZ",
}


@dataclass(frozen=True)
class Table:
    """A table of the lake. `daily` tables have one file per day, the others a single file."""

    row: type
    """The class of a row, with all columns."""
    order: tuple[str, ...]
    """Columns by which rows are sorted before writing, so that equal rows give equal bytes."""
    daily: bool = True
    is_derived: bool = True
    """Whether the rows can be rebuilt from the session files."""
    passes: bool = False
    """Whether old rows may be deleted: nothing that is kept depends on them alone."""

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The polars type of every stored column."""
        hints = get_type_hints(self.row)
        return {name: _polars_type(hints[name]) for name in self._names}

    @cached_property
    def notes(self) -> dict[str, str]:
        """The meaning of every column."""
        return {name: next(m for m in _metadata(hint) if isinstance(m, str)) for name, hint in self._hints.items()}

    @cached_property
    def columns_with_words(self) -> list[str]:
        """The text columns that may quote a session."""
        texts = {name for name, kind in self.columns.items() if kind in (pl.String(), pl.List(pl.String()))}
        return [name for name, hint in self._hints.items() if name in texts and rows.NAME not in _metadata(hint)]

    @cached_property
    def id_column(self) -> str:
        """The column that identifies a row: its first id; "" if it has none."""
        return next((name for name in self.columns if name.endswith("_id")), "")

    @property
    def description(self) -> str:
        """The description of a row, as a continuation of "One row is"."""
        text = " ".join((inspect.getdoc(self.row) or "").split())
        return text[:1].lower() + text[1:].removesuffix(".")

    @property
    def fix(self) -> str:
        """The instruction for an unreadable file of the table."""
        if self.is_derived:
            return "Delete it and run `memory run --all`: it is rebuilt from the session files."
        return (
            "Nor can any version of it in backups/lake. Restore a copy of it; it records proposals, decisions or "
            "costs and cannot be rebuilt."
        )

    @cached_property
    def _hints(self) -> dict[str, Any]:
        hints = get_type_hints(self.row, include_extras=True)
        return {name: hints[name] for name in self._names}

    @property
    def _names(self) -> list[str]:
        """The names of the columns. The day comes first, also if a row gets it only when it is stored."""
        return sorted(self.row.__annotations__, key=lambda name: name != "day")


TABLES: dict[str, Table] = {
    "files": Table(rows.FileRow, ("path",), daily=False),
    "sessions": Table(rows.SessionRow, ("started_at", "session_id", "source_file")),
    "messages": Table(rows.MessageRow, ("session_id", "said_at", "source_line", "message_id")),
    "windows": Table(rows.WindowRow, ("started_at", "dedupe_key")),
    "segments": Table(rows.SegmentRow, ("dedupe_key", "position")),
    "observations": Table(rows.ObservationRow, ("observed_at", "observation_id")),
    "notes": Table(rows.NoteRow, ("line", "note_id")),
    "embeddings": Table(rows.EmbeddingRow, ("source_id",), passes=True),
    "summary_embeddings": Table(rows.SummaryEmbeddingRow, ("source_id",), passes=True),
    "message_embeddings": Table(rows.MessageEmbeddingRow, ("session_id", "record", "source_id", "start"), passes=True),
    "reflections": Table(rows.ReflectionRow, ("reflection_id",)),
    "pool_reflections": Table(rows.PoolReflectionRow, ("reflected_at", "pool_id"), daily=False, is_derived=False),
    "day_distillations": Table(rows.DayDistillationRow, ("first_seen", "distillation_id")),
    "week_distillations": Table(rows.WeekDistillationRow, ("first_seen", "distillation_id")),
    "month_distillations": Table(rows.MonthDistillationRow, ("first_seen", "distillation_id")),
    "proposals": Table(rows.ProposalRow, ("proposal_id",), is_derived=False),
    "remembered": Table(rows.RememberedRow, ("proposal_id",), is_derived=False),
    "supports": Table(rows.SupportRow, ("proposal_id", "reflection_id")),
    "events": Table(rows.EventRow, ("happened_at", "proposal_id", "kind", "surface"), is_derived=False),
    "friction_clusters": Table(rows.FrictionRow, ("pattern_id",), passes=True),
    "friction_fixes": Table(rows.FixRow, ("proposal_id",), is_derived=False),
    "watched_rules": Table(rows.WatchedRuleRow, ("since", "rule_id"), daily=False, is_derived=False),
    "forgotten": Table(rows.ForgottenRow, ("forgotten_at", "kind", "digest"), daily=False, is_derived=False),
    "ledger": Table(rows.LedgerRow, ("asked_at", "call_id"), is_derived=False),
}


VIEWS = {
    "decisions": "SELECT day, proposal_id, decision, happened_at AS decided_at, surface, section, text, reason, "
    "content_hash, again AS reoffered FROM events WHERE kind = 'decided'",
    "promotions": "SELECT day, proposal_id, section, text, happened_at AS promoted_at, already_there FROM events "
    "WHERE kind = 'promoted'",
}
"""Additional views of `memory sql`: the most requested events."""


def duckdb_type(kind: pl.DataType) -> str:
    """The DuckDB type for reading a column of this type from Parquet."""
    if isinstance(kind, pl.List):
        return f"{duckdb_type(_instance(kind.inner))}[]"
    if isinstance(kind, pl.Struct):
        return "STRUCT({})".format(", ".join(f'"{f.name}" {duckdb_type(_instance(f.dtype))}' for f in kind.fields))
    return _DUCKDB[type(kind)]


def _instance(kind: object) -> pl.DataType:
    return kind() if isinstance(kind, type) else kind  # type: ignore[return-value]


def _polars_type(hint: Any) -> pl.DataType:
    """The type of a column with this annotation; for an optional one that of its values."""
    if is_typeddict(hint):
        return pl.Struct({name: _polars_type(field) for name, field in get_type_hints(hint).items()})
    if get_origin(hint) is list:
        return pl.List(_polars_type(*get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return _polars_type(*(kind for kind in get_args(hint) if kind is not NoneType))
    return _POLARS[hint]


def _metadata(hint: Any) -> Iterator[object]:
    """The metadata of the annotation, at any depth."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
        yield from _metadata(hint.__origin__)
    else:
        for kind in get_args(hint):
            yield from _metadata(kind)
