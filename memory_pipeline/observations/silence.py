"""Why a window, a session or a day has no observations: one reason each, from the data of the stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, partial

import polars as pl

from memory_pipeline.lake.rows import WindowRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.windows import STILL_ACTIVE
from memory_pipeline.stages import INCOMPLETE

NOTHING = "nothing worth keeping was found in it"
UNUSABLE = "the model's answer could not be used"
WAITS = "it waits for the model or its budget"
NOT_YET = "it is not observed yet"
NOT_STORED = "it is not in the tables yet"
LEFT_OUT = "it is left out"
UNREADABLE = "its file cannot be read"
REPEATED = "other sessions have the same messages, and they count there"


@dataclass(frozen=True)
class Silence:
    """A window without observations, or a session without windows."""

    day: date
    session: str
    """The name of the session, or the path of its file if nothing of it is stored."""
    reason: str
    """The reason, one of a few constants, so that reasons can be counted."""
    detail: str = ""
    """Details of this window."""
    started_at: datetime | None = None
    """Time of the window, or None if it was not recorded."""
    is_window: bool = True


def silences(lake: Lake, catalogue: Catalogue, days: Iterable[date] | None = None) -> list[Silence]:
    """The silences of these days (None: all), in the order of the days and windows."""
    chosen = sorted(catalogue.days() if days is None else days)
    windows = lake.read("windows", chosen)
    names = dict(lake.read("sessions", chosen, ["session_id", "name"]).iter_rows())
    problems: dict[str, list[str | None]] = defaultdict(list)
    for key, parsed, problem in lake.read("segments", chosen, ["dedupe_key", "parsed", "problem"]).iter_rows():
        problems[key].append((problem or "") if parsed is False else None)
    failures = cache(partial(last_failures, lake, "observations"))
    empty = windows.join(lake.read("observations", chosen, ["dedupe_key"]), "dedupe_key", "anti")
    found = []
    for window in typed_rows(empty.sort("day", "started_at", "dedupe_key"), WindowRow):
        reason, detail = _silence_reason(lake, catalogue, window, problems.get(window["dedupe_key"]), failures)
        session, started = names.get(window["session_id"], ""), None if window["untimed"] else window["started_at"]
        found.append(Silence(window["day"], session, reason, detail, started))
    stored = set(windows.select("day", "session_id").iter_rows())
    return sorted([*found, *_without_window(lake, catalogue, chosen, stored)], key=lambda s: s.day)


def _silence_reason(
    lake: Lake,
    catalogue: Catalogue,
    window: WindowRow,
    problems: Sequence[str | None] | None,
    failures: Callable[[], Mapping[date, str]],
) -> tuple[str, str]:
    """Reason and detail; `problems` holds the problem of each segment, None if its answer was in the format."""
    day, settings = window["day"], catalogue.settings
    state, again = lake.fingerprint("observations", day), f"`memory run --from {day} --to {day}`"
    if window["rules_only"]:
        if state is None:
            return NOT_YET, again
        typed = max(catalogue.typed(window["session_id"]), window["user_messages"])
        least = settings.min_user_messages
        return f"{window['reason']}, and nothing worth keeping in what its user said", f"{typed} of {least}"
    if not window["observed"]:
        is_open = window["reason"] == STILL_ACTIVE
        detail = f"observed {settings.idle_minutes} minutes after its last message" if is_open else ""
        return window["reason"] or NOT_YET, detail
    if problems is None:
        waits = state == INCOMPLETE and settings.observer.model
        failure = failures().get(day) if waits else None
        return WAITS if waits else NOT_YET, f"the last call failed: {failure}" if failure else again
    unusable = [problem for problem in problems if problem is not None]
    return (UNUSABLE, unusable[0]) if unusable else (NOTHING, "")


def last_failures(lake: Lake, stage: str) -> dict[date, str]:
    """The error of the stage's last call for each day, if it failed."""
    calls = lake.read("ledger", columns=["for_day", "stage", "cached", "asked_at", "state", "error"])
    mine = calls.filter(pl.col("stage") == stage, ~pl.col("cached").fill_null(False))
    last = mine.sort("asked_at").group_by("for_day").last().filter(pl.col("state") == "failed")
    return dict(last.select("for_day", "error").iter_rows())


def _without_window(
    lake: Lake, catalogue: Catalogue, days: Iterable[date], stored: set[tuple[date, str]]
) -> Iterator[Silence]:
    """Sessions with messages on these days that have no row in `windows`."""
    for day in days:
        for key in catalogue.files_of(day):
            row = catalogue.rows[key]
            session = row["session_id"]
            if not session or not catalogue.messages_of(key, day) or (day, session) in stored:
                continue
            again = f"`memory run --from {day} --to {day}`"
            if catalogue.is_excluded(key):
                why = LEFT_OUT, row["excluded"] or "it belongs to a session that is left out"
            elif row["reason"]:
                why = UNREADABLE, row["reason"]
            elif lake.fingerprint("windows", day) is None:
                why = NOT_STORED, again
            else:
                why = REPEATED, ""
            yield Silence(day, key, *why, is_window=False)
