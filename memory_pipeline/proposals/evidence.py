"""Where a proposal comes from, in one line for the reviewer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip


def evidence_lines(settings: Settings, lake: Lake, proposals: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Per proposal: day and time, who said it, in which session, and how often it was said."""
    days = {p["day"] - timedelta(days=back) for p in proposals for back in range(settings.lookback_days)}
    wanted = {source for p in proposals for source in p["sources"]}
    observations = lake.read("observations", days).filter(pl.col("observation_id").is_in(list(wanted)))
    observed = {o["observation_id"]: o for o in observations.iter_rows(named=True)}
    sessions = {s["session_id"]: s for s in lake.read("sessions", days).iter_rows(named=True)}
    return {p["proposal_id"]: _line(settings, p, observed, sessions) for p in proposals}


def _line(settings: Settings, proposal: dict[str, Any], observed: dict[str, Any], sessions: dict[str, Any]) -> str:
    sources = [observed[s] for s in proposal["sources"] if s in observed]
    if not sources:
        return f"{proposal['day']} · said {proposal['support']} times"
    lead = sources[0]
    session = sessions.get(lead["session_id"], {})
    who = "you" if lead["trust"] == "user" else f"the {lead['trust']}"
    said_at = lead["observed_at"].astimezone(settings.zone)
    line = f"{said_at:%Y-%m-%d %H:%M} · {who} in “{clip(session.get('name', ''), 50)}”"
    spread = len({s["session_id"] for s in sources})
    times = f" · said {len(sources)} times" if len(sources) > 1 else ""
    return line + times + (f" in {spread} sessions" if spread > 1 else "")
