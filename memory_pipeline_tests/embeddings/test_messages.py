"""What of a day can be found: the words of people and models, and of programs where no person types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from memory_pipeline.embeddings.index import PASSAGE
from memory_pipeline.embeddings.messages import points_of, spoken

ROWS = (
    ("watched", "user", "always use pnpm"),
    ("watched", "assistant", "Noted."),
    ("watched", "injected", "Prices are in the table below."),  # beside a person's words it is the harness's
    ("watched", "tool", "bash(command=ls)"),
    ("script", "injected", "Summarise the open pull requests."),
    ("script", "injected", "<system-reminder>The date has changed.</system-reminder>"),
    ("script", "injected", "This session is being continued from a previous conversation that ran out of context."),
    ("script", "assistant", "There are two."),
)
FOUND = ["always use pnpm", "Noted.", "Summarise the open pull requests.", "There are two."]


def test_what_programs_typed_is_found_where_no_person_types() -> None:
    at = datetime(2026, 9, 20, 3, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"day": date(2026, 9, 20), "session_id": session, "message_id": f"m{number}", "role": role, "text": text}
        | {"said_at": at, "source_line": number, "voided": False, "untimed": None}
        for number, (session, role, text) in enumerate(ROWS)
    ]
    payloads = [point.payload for point in points_of(pl.DataFrame(rows), {}, "me")]
    assert sorted(p["text"] for p in payloads if p["record"] == PASSAGE) == sorted(FOUND)
    assert spoken(pl.DataFrame(rows))["text"].to_list() == FOUND
    nobody = spoken(pl.DataFrame(rows).clear())
    assert nobody.is_empty()
