"""Which typed row each table has, and whether the rows of a lake are what their types say."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from memory_pipeline.lake import rows
from memory_pipeline.lake.store import Lake

OF_TABLE: dict[str, Any] = {
    "files": rows.FileRow,
    "sessions": rows.SessionRow,
    "messages": rows.MessageRow,
    "windows": rows.WindowRow,
    "segments": rows.SegmentRow,
    "observations": rows.ObservationRow,
    "notes": rows.NoteRow,
    "remembered": rows.RememberedRow,
    "embeddings": rows.EmbeddingRow,
    "summary_embeddings": rows.EmbeddingRow,
    "message_embeddings": rows.MessageEmbeddingRow,
    "reflections": rows.ReflectionRow,
    "pool_reflections": rows.PoolReflectionRow,
    "day_distillations": rows.DistillationRow,
    "week_distillations": rows.DistillationRow,
    "month_distillations": rows.DistillationRow,
    "proposals": rows.ProposalRow,
    "supports": rows.SupportRow,
    "decisions": rows.DecisionRow,
    "showings": rows.ShowingRow,
    "displacements": rows.DisplacementRow,
    "shown_days": rows.ShownDayRow,
    "reoffers": rows.ReofferRow,
    "promotions": rows.PromotionRow,
    "auto_promotions": rows.AutoPromotionRow,
    "friction_clusters": rows.FrictionRow,
    "watched_rules": rows.WatchedRuleRow,
    "friction_fixes": rows.FixRow,
    "applied_fixes": rows.AppliedFixRow,
    "auto_fixes": rows.AutoFixRow,
    "forgotten": rows.ForgottenRow,
}


def misfits(lake: Lake) -> set[str]:
    """Columns with a value that is not what their type says, as `table.column: value`."""
    found = set()
    for table, kind in OF_TABLE.items():
        hints = get_type_hints(kind)
        for row in lake.read(table).iter_rows(named=True):
            found |= {f"{table}.{name}: {row[name]!r}" for name, hint in hints.items() if not fits(row[name], hint)}
    return found


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type, also inside of lists and of typed dicts."""
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        return isinstance(value, dict) and value.keys() == hints.keys() and all(fits(value[k], hints[k]) for k in hints)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(fits(each, *get_args(hint)) for each in value)
    if NoneType in get_args(hint):
        return value is None or any(fits(value, arg) for arg in get_args(hint))
    return type(value) is hint
