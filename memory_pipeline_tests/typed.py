"""Whether the rows of a lake are what their types say."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES


def misfits(lake: Lake) -> set[str]:
    """Columns with a value that is not what their type says, as `table.column: value`."""
    found = set()
    for table, about in TABLES.items():
        hints = get_type_hints(about.row)
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
