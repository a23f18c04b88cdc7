"""A day's rows of `proposals`: which of its reflections are offered for MEMORY.md."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH, MEDIUM, RANK
from memory_pipeline.text.similarity import content_words, overlap, words

VERSION = "1"
LASTING = ("rule", "preference", "decision", "correction", "root_cause", "convention")
NOTABLE_SESSIONS = 2
"""Sessions that a medium line must have been said in to be offered."""
SAME_LINE = 0.5
"""Word overlap from which a line was offered or stands in MEMORY.md already."""


class ProposalsStage:
    """Offers high lines and notable medium ones, each once. A proposal that was made is never changed or taken back."""

    tables = ("proposals",)
    is_complete = True

    def __init__(self, settings: Settings, lake: Lake) -> None:
        self.settings, self.lake = settings, lake
        self._made: pl.DataFrame | None = None
        """All proposals, read once: a range of days adds to them as it goes."""

    def fingerprint(self, day: date) -> str:
        """Of the reflections alone: what was offered or stands in MEMORY.md only keeps lines from being offered,
        and a day whose proposals are made must not be made anew because of it."""
        return fingerprint_of(VERSION, self.lake.digest("reflections", [day]))

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        made = self.lake.read("proposals") if self._made is None else self._made
        of_day = made.filter(pl.col("day") == day)
        memory = self.settings.memory_file
        offered = {source for sources in made["sources"] for source in sources}
        known = [content_words(text) for text in made["text"]]
        known += [content_words(line.text) for line in lines_of(memory.read_bytes() if memory.exists() else None)]
        observed = self._evidence_of(day)
        rows: list[dict[str, Any]] = []
        number = max((int(p.rsplit("-", 1)[1]) for p in of_day["proposal_id"]), default=0)
        for line in self._worth_offering(day):
            mine = content_words(line["text"])
            if offered.intersection(line["sources"]) or any(overlap(mine, other) >= SAME_LINE for other in known):
                continue
            known.append(mine)
            number += 1
            rows.append(_row(day, number, line, observed))
        fresh = pl.DataFrame(rows, schema=TABLES["proposals"].columns)
        self._made = pl.concat([made, fresh])
        return {"proposals": pl.concat([of_day, fresh])}

    def _worth_offering(self, day: date) -> list[dict[str, Any]]:
        """The day's lines that stay true for weeks and have a word of this day in them, best first."""
        today = set(self.lake.read("observations", [day])["observation_id"])
        lines = [
            line
            for line in self.lake.read("reflections", [day]).iter_rows(named=True)
            if today.intersection(line["sources"]) and line["kind"] in LASTING and _is_notable(line)
        ]
        return sorted(lines, key=lambda r: (RANK[r["priority"]], -r["sessions"], -r["support"], r["reflection_id"]))

    def _evidence_of(self, day: date) -> dict[str, list[dict[str, Any]]]:
        reflections = self.lake.read("reflections", [day])
        wanted = {source for sources in reflections["sources"] for source in sources}
        days = [d for d in self.lake.days("observations") if d <= day][-self.settings.lookback_days :]
        rows = self.lake.read("observations", days).iter_rows(named=True)
        return {row["observation_id"]: row["evidence"] for row in rows if row["observation_id"] in wanted}


def _is_notable(line: dict[str, Any]) -> bool:
    return bool(line["priority"] == HIGH or (line["priority"] == MEDIUM and line["sessions"] >= NOTABLE_SESSIONS))


def _row(day: date, number: int, line: dict[str, Any], observed: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "day": day,
        "proposal_id": f"p-{day:%Y%m%d}-{number:03d}",
        "section": line["section"],
        "text": line["text"],
        "priority": line["priority"],
        "sources": [line["reflection_id"], *line["sources"]],
        "support": line["support"],
        "content_hash": hashlib.sha256(" ".join(words(line["text"])).encode()).hexdigest(),
        "evidence": [span for source in line["sources"] for span in observed.get(source, [])],
    }
