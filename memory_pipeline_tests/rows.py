"""Rows for tests: a small lake is said in a few words, everything else has a sensible default.

::

    settings, lake = workspace(tmp_path)
    say(lake, "s1", "user: Never use npm.", "assistant: The cause was a stale lock.", "tool!: exit 1")
    put(lake, "observations", observation("Never use npm.", session="s1"))
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.operations.earlier_events import MOMENTS
from memory_pipeline.proposals.events import SHOWN, Decision, OpenLog
from memory_pipeline.settings import Settings
from memory_pipeline.settings.sources import nested, settings_of
from memory_pipeline.text.encoder import EncoderUnavailableError
from memory_pipeline.text.similarity import content_words, words
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace

DAY = date(2025, 3, 5)
SECTIONS = ("User", "Hard Rules", "System Architecture", "Patterns")
Row = dict[str, Any]


def day_after(days: int) -> date:
    """A day so many days after `DAY` (before it: negative)."""
    return DAY + timedelta(days=days)


def at(clock: str = "09:00", day: date = DAY) -> datetime:
    """A moment in UTC."""
    return datetime.combine(day, time.fromisoformat(clock), UTC)


@dataclass
class Opened:
    """An open workspace, to which a test module adds the steps that it takes there."""

    settings: Settings
    lake: Lake

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.settings, self.lake)


def workspace(folder: Path, **settings: Any) -> tuple[Settings, Lake]:
    """An empty workspace in the folder, its days in UTC."""
    made = Settings(workspace=folder, **{"timezone": "UTC", "default_session_dirs": False} | by_group(settings))
    return made, Lake(made.lake_dir)


def by_group(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the groups have them: `observer_model` is the `model` of `observer`, `todoist` whether it is on."""
    keys = {path.replace(".", "_"): path for path in settings_of(Settings)} | {"todoist": "todoist.enabled"}
    return nested({keys[name]: value for name, value in settings.items()})


def changed(settings: Settings, **changes: Any) -> Settings:
    """The settings with others of these values, named as for `workspace`."""
    given = by_group(changes)
    groups = {name: getattr(settings, name).model_copy(update=v) for name, v in given.items() if isinstance(v, dict)}
    return settings.model_copy(update=given | groups)


def put(lake: Lake, table: str, *rows: Row) -> None:
    """Add rows to their days; a day that is named keeps the rows that it has."""
    if not rows:
        return
    days = sorted({row["day"] for row in rows})
    frame = pl.DataFrame(list(rows), schema_overrides=TABLES[table].columns, infer_schema_length=None)
    old = lake.read(table, days)
    lake.replace(table, pl.concat([old, frame], how="diagonal") if old.height else frame, days)


def say(
    lake: Lake, session: str, *turns: str, day: date = DAY, clock: str = "09:00", observed: bool = True
) -> list[Row]:
    """A session on a day as one window, a message a minute; returns the message rows.

    A turn is `role: text`; `tool!` is a tool that failed.
    """
    key = window_key(session, day)
    messages = [_message(i, turn, session, day, clock, key) for i, turn in enumerate(turns)]
    said = [m["text"] for m in messages if m["role"] in ("user", "assistant")]
    counts = {"messages": len(messages), "user_messages": sum(m["role"] == "user" for m in messages)}
    put(lake, "messages", *messages)
    put(
        lake,
        "windows",
        counts
        | {
            "day": day,
            "dedupe_key": key,
            "session_id": session,
            "trigger": "shutdown",
            "started_at": messages[0]["said_at"],
            "tokens": sum(estimate(m["text"]) for m in messages),
            "tokens_said": sum(map(estimate, said)),
            "observed": observed,
            "reason": None if observed else "fewer than 5 user messages",
            "current_task": said[-1] if said else None,
            "suggested_response": None,
        },
    )
    put(lake, "sessions", counts | _session(session, day, messages))
    return messages


def read_from(lake: Lake, path: str, project: str, cwd: str, session: str = "s1") -> None:
    """A session of the project, as the catalogue knows its file."""
    old = lake.read("files", columns=["path", "session_id", "cwd", "began_at"])
    new = pl.DataFrame([{"path": path, "session_id": session, "cwd": cwd, "began_at": at()}])
    lake.replace_all("files", pl.concat([old, new.cast(dict(old.schema))]))
    put(lake, "sessions", {"day": DAY, "session_id": session, "project": project, "cwd": cwd})


def window_key(session: str, day: date = DAY) -> str:
    return hashlib.sha256(f"{session}{day}".encode()).hexdigest()


def _message(position: int, turn: str, session: str, day: date, clock: str, key: str) -> Row:
    role, text = turn.split(": ", 1)
    moment = at(clock, day) + timedelta(minutes=position)
    return {
        "day": day,
        "session_id": session,
        "message_id": f"{session}-{day:%d}-{clock}-{position}",
        "role": role.rstrip("!"),
        "said_at": moment,
        "written_at": moment,
        "text": text,
        "tool_name": "Bash" if role.startswith("tool") else None,
        "is_error": role == "tool!",
        "source_file": f"/sessions/{session}.jsonl",
        "source_line": position + 1,
        "dedupe_key": key,
    }


def _session(session: str, day: date, messages: Sequence[Row]) -> Row:
    return {
        "day": day,
        "session_id": session,
        "harness": "pi",
        "name": f"session {session}",
        "cwd": "/repo",
        "source_file": f"/sessions/{session}.jsonl",
        "started_at": messages[0]["said_at"],
        "ended_at": messages[-1]["said_at"],
        "files_read": [],
        "files_modified": [],
    }


def observation(text: str, *, day: date = DAY, session: str = "s1", clock: str = "09:00", **other: Any) -> Row:
    """A firm rule of the person, unless told otherwise. Its id comes from day, session and text."""
    return {
        "day": day,
        "observation_id": observation_id(text, day, session),
        "segment_id": f"s-{session}",
        "dedupe_key": window_key(session, day),
        "session_id": session,
        "priority": "high",
        "kind": "rule",
        "observed_at": at(clock, day),
        "referenced_at": None,
        "text": text,
        "evidence": [{"message_id": f"{session}-{day:%d}-{clock}-0", "start": 0, "end": len(text)}],
        "observer": "extractive-1",
        "trust": "user",
        "flags": [],
        "tokens": estimate(text),
    } | other


def observation_id(text: str, day: date = DAY, session: str = "s1") -> str:
    return "o-" + hashlib.sha256(f"{day}{session}{text}".encode()).hexdigest()[:12]


def reflection(text: str, *, day: date = DAY, sources: Sequence[str] = (), **other: Any) -> Row:
    """A high rule from one session, from the observation of that text unless told otherwise."""
    return {
        "day": day,
        "reflection_id": "r-" + hashlib.sha256(f"{day}{text}".encode()).hexdigest()[:12],
        "level": 1,
        "section": "Hard Rules",
        "text": text,
        "priority": "high",
        "kind": "rule",
        "support": 1,
        "sessions": 1,
        "sources": list(sources) or [observation_id(text, day)],
        "first_seen": at(day=day),
        "last_seen": at(day=day),
        "input_tokens": 1000,
        "tokens": estimate(text),
        "reflector": "extractive-1",
    } | other


def proposal(number: int, text: str, *, day: date = DAY, **other: Any) -> Row:
    """`p-<day>-<number>`: a high line for Hard Rules."""
    return {
        "day": day,
        "proposal_id": f"p-{day:%Y%m%d}-{number:03d}",
        "section": "Hard Rules",
        "text": text,
        "priority": "high",
        "sources": [f"r-{number}", observation_id(text, day)],
        "support": 1,
        "content_hash": hashlib.sha256(text.encode()).hexdigest(),
        "evidence": [{"message_id": f"s1-{day:%d}-09:00-0", "start": 0, "end": len(text)}],
    } | other


def pattern(number: int, title: str, *, day: date = DAY, **other: Any) -> Row:
    """`f-<day>-<number>`: a correction repeated twice in the sessions s1 and s2, of which the day has the last."""
    found = f"{day:%Y%m%d}"
    return {
        "day": day,
        "pattern_id": f"f-{found}-{number:03d}",
        "kind": "repeated_correction",
        "title": title,
        "target_file": "MEMORY.md",
        "section": "Hard Rules",
        "adds": title,
        "replaces": None,
        "change": f"Add under Hard Rules: “{title}”",
        "low_risk": False,
        "sessions": 2,
        "occurrences": 2,
        "turns": 4,
        "minutes": 6.0,
        "severity": 6.0,
        "confidence": 0.5,
        "first_day": day,
        "last_day": day,
        "ended_on": None,
        "by_week": [{"week": day - timedelta(days=day.weekday()), "occurrences": 2}],
        "evidence": [],
        "session_ids": ["s1", "s2"],
        "cwds": [],
        "projects": [],
        "owner": "user",
    } | other


def decision(proposal_id: str, decided: str = "approved", *, day: date = DAY, text: str = "") -> Row:
    return {
        "day": day,
        "proposal_id": proposal_id,
        "kind": "decided",
        "decision": decided,
        "happened_at": at("18:00", day),
        "surface": "command",
        "text": text,
    }


def events(lake: Lake, kind: str) -> pl.DataFrame:
    """The events of a kind."""
    return lake.read("events").filter(kind=kind)


def store_as_before(lake: Lake) -> None:
    """Put the events into the tables that held them up to format 4."""
    rows = lake.read("events")
    lake.replace("events", rows.clear(), set(rows["day"]))
    for table, (kind, moment) in MOMENTS.items():
        for (day,), own in rows.filter(kind=kind).partition_by("day", as_dict=True).items():
            (lake.root / table).mkdir(exist_ok=True)
            names = {"again": "reoffered"} | ({"happened_at": moment} if moment else {})
            own.drop("kind", *([] if moment else ["happened_at"])).rename(names).write_parquet(
                lake.root / table / f"{day}.parquet"
            )


def without_events(lake: Lake, lost: pl.Expr) -> None:
    """Leave out of the table what meets the condition, as if it had never been written."""
    rows = lake.read("events")
    lake.replace("events", rows.filter(~lost), set(rows["day"]))


class FakeEncoder:
    """Counts the chosen words: one place of the vector each, and a last one for texts that have none of them.

    So the cosine of two texts can be told by hand. `encoded` is every text that was given to `encode`.
    """

    def __init__(self, *chosen: str, name: str = "fake", dimension: int | None = None) -> None:
        self.name, self.chosen = name, chosen
        self.dimension = dimension or len(chosen) + 1
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        self.encoded += texts
        return [self.vector(text) for text in texts]

    def encode_query(self, text: str) -> list[float]:
        return self.vector(text)

    def vector(self, text: str) -> list[float]:
        found = words(text)
        counts = [float(found.count(word)) for word in self.chosen] + [0.0] * (self.dimension - len(self.chosen))
        if not any(counts):
            counts[-1] = 1.0
        length = math.sqrt(sum(x * x for x in counts))
        return [x / length for x in counts]


class WordEncoder(FakeEncoder):
    """A place of the vector for each word: two texts are as near as they share words."""

    def __init__(self) -> None:
        super().__init__(name="words", dimension=384)

    def vector(self, text: str) -> list[float]:
        places = [zlib.crc32(word.encode()) % self.dimension for word in content_words(text)] or [0]
        return [places.count(place) / math.hypot(*Counter(places).values()) for place in range(self.dimension)]


class MissingEncoder(FakeEncoder):
    """A model that is not on this machine: neither its vectors nor their length are to be had."""

    def __init__(self) -> None:
        self.name, self.encoded = "missing", []

    @property
    def dimension(self) -> int:  # type: ignore[override]
        raise EncoderUnavailableError("EMBEDDING_MODEL='missing' cannot be loaded from this machine.")

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        raise EncoderUnavailableError("EMBEDDING_MODEL='missing' cannot be loaded from this machine.")


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file below the folder with its bytes; locks, which are empty, are left out."""
    return {
        str(path.relative_to(folder)): stable_bytes(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def stable_bytes(path: Path) -> bytes:
    """The engine of the index writes its settings in another order each time it opens a folder."""
    data = path.read_bytes()
    return (
        json.dumps(json.loads(data), sort_keys=True).encode()
        if path.name in ("segment.json", "edge_config.json")
        else data
    )


def use_encoder(monkeypatch: pytest.MonkeyPatch, encoder: FakeEncoder) -> None:
    """Make this the encoder that every stage and check gets, for the length of a test."""
    for module in (
        "embeddings.stage",
        "reflections.stage",
        "proposals.stage",
        "recall.search",
    ):
        monkeypatch.setattr(f"memory_pipeline.{module}.encoder_of", lambda name: encoder)


def record_showings(workspace: Workspace, shown: dict[str, str | None], now: datetime, *, surface: str) -> None:
    """Proposals that were shown there from now on."""
    with OpenLog.open(workspace) as log:
        new = {p: external for p, external in shown.items() if p not in log.standing_on(surface)}
        rows = [{"proposal_id": p, "surface": surface, "external_id": external} for p, external in new.items()]
        log.add(SHOWN, rows, now)


def record_decisions(workspace: Workspace, decisions: list[Decision], now: datetime) -> None:
    with OpenLog.open(workspace) as log:
        log.record_decisions(decisions, now)


def fixable(number: int, title: str, *, day: date = DAY, **other: Any) -> Row:
    """Likewise, of two sessions of kiln, of which the fix is a change of the project's AGENTS.md."""
    own = {
        "target_file": "AGENTS.md",
        "change": f"Say in AGENTS.md how to avoid this: {title}",
        "section": None,
        "adds": None,
        "replaces": None,
        "low_risk": False,
        "sessions": 2,
        "session_ids": ["s1", "s2"],
        "occurrences": 3,
        "minutes": 12.4,
        "severity": 8.0,
        "first_day": day,
        "last_day": day,
        "evidence": [{"message_id": f"s1-{day:%d}-09:00-0", "start": 0, "end": 400}],
        "projects": ["kiln"],
    }
    return pattern(number, title, day=day, **(own | other))


def rule_pattern(number: int, line: str, **other: Any) -> Row:
    """Likewise, of which the fix is a line of MEMORY.md."""
    own = {"target_file": "MEMORY.md", "section": "Hard Rules", "adds": line, "change": f"Add “{line}”."}
    return fixable(number, f"You keep asking for it: {line}", **(own | other))
