"""A day's rows of `reflections`: what the days up to it come down to."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Self

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.reflector import Line, Observed, Reflector
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import Encoder, encoder_of
from memory_pipeline.text.tokens import estimate

VERSION = "1"


class ReflectionsStage:
    """Reflects on a lookback of days that ends with the day. A day without observations has nothing new to say."""

    tables = ("reflections",)
    is_complete = True

    def __init__(self, settings: Settings, lake: Lake, reflector: Reflector, encoder: Encoder) -> None:
        self.settings, self.lake, self.reflector, self.encoder = settings, lake, reflector, encoder

    @classmethod
    def of(cls, settings: Settings, lake: Lake) -> Self:
        """With the reflector that the settings ask for."""
        return cls(settings, lake, ExtractiveReflector(), encoder_of(settings.embedding_model))

    def days_before(self, day: date) -> list[date]:
        return lookback(day, self.settings.lookback_days)

    def fingerprint(self, day: date) -> str:
        days = self.days_before(day)
        inputs = (self.lake.digest("observations", days), self.lake.digest("embeddings", days))
        return fingerprint_of(VERSION, self.reflector.name, self.settings.sections, *inputs)

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        columns = TABLES["reflections"].columns
        observed = observed_in(self.lake, self.days_before(day))
        if not any(o.day == day for o in observed):
            return {"reflections": pl.DataFrame(schema=columns)}
        has_vector = set(self.lake.read("embeddings", self.days_before(day))["source_id"])
        ids = [o.observation_id for o in observed if o.observation_id in has_vector]
        lines = self.reflector.reflect(day, observed, vectors_of(self.settings, self.encoder, ids))
        spent = sum(o.tokens for o in observed)
        rows = [self._row(day, line, spent) for line in lines]
        return {"reflections": pl.DataFrame(rows, schema=columns)}

    def _row(self, day: date, line: Line, input_tokens: int) -> dict[str, object]:
        return {
            "day": day,
            "reflection_id": f"r-{hashlib.sha256(repr((day, line.sources[0])).encode()).hexdigest()[:12]}",
            "level": 1,
            "section": self.settings.sections[line.section],
            "text": line.text,
            "priority": line.priority,
            "kind": line.kind,
            "support": len(line.sources),
            "sessions": line.sessions,
            "sources": list(line.sources),
            "first_seen": line.first_seen,
            "last_seen": line.last_seen,
            "input_tokens": input_tokens,
            "tokens": estimate(line.text),
            "reflector": self.reflector.name,
        }


def observed_in(lake: Lake, days: list[date]) -> list[Observed]:
    """The observations of these days, oldest first."""
    names = ["observation_id", "day", "session_id", "priority", "kind", "trust", "observed_at", "text", "tokens"]
    frame = lake.read("observations", days).select(names).sort("observed_at", "observation_id")
    return [Observed(*row) for row in frame.iter_rows()]
