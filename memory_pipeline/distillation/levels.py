"""The rows of periods, stored or just made, and the way from them back to what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_pipeline.distillation.periods import DAY, Period
from memory_pipeline.lake import Lake

Rows = list[dict[str, Any]]


class Levels:
    """Rows by period; those in `made` stand for the stored ones."""

    def __init__(self, lake: Lake, made: Mapping[Period, Rows] | None = None) -> None:
        self.lake, self.made = lake, dict(made or {})

    def rows(self, period: Period) -> Rows:
        if period in self.made:
            return self.made[period]
        return self.lake.read(period.table, [period.last]).to_dicts()

    def rows_below(self, period: Period) -> Rows:
        """What its rows were made from; of a day, which has observations and segments below it, none."""
        return [row for part in period.parts for row in self.rows(part)]

    def traced(self, period: Period) -> list[tuple[str, set[str]]]:
        """The text of each row, and the ids of all observations and segments that it comes from."""
        if period.level == DAY:
            return [(row["text"], set(row["sources"])) for row in self.rows(period)]
        below: dict[str, set[str]] = {}
        for part in period.parts:
            traced = zip(self.rows(part), self.traced(part), strict=True)
            below |= {row["distillation_id"]: sources for row, (_, sources) in traced}
        return [
            (row["text"], {leaf for source in row["sources"] for leaf in below.get(source, ())})
            for row in self.rows(period)
        ]
