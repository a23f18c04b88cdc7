"""The origin of a line: its row, its history, and the quoted messages."""

import re
from typing import Any

import duckdb

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.queries import mended
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.context import NOT_KEPT, contexts, text_before
from memory_pipeline.proposals.history import history
from memory_pipeline.proposals.remembering import IMPORTED
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.daily_log.notes import written_notes
from memory_pipeline.workspace.workspace import Workspace

TABLE_OF = {
    "p": ("proposals", "proposal_id"),
    "r": ("reflections", "reflection_id"),
    "o": ("observations", "observation_id"),
    "f": ("friction_clusters", "pattern_id"),
    "g": ("pool_reflections", "pool_id"),
    "d": ("day_distillations", "distillation_id"),
    "w": ("week_distillations", "distillation_id"),
    "m": ("month_distillations", "distillation_id"),
    "s": ("segments", "segment_id"),
    "n": ("notes", "note_id"),
}
"""The table and the id column, by the first letter of an id."""
_ID = re.compile(rf"[{''.join(TABLE_OF)}]-[\w-]+")
MAX_QUOTE = 600
"""Maximum characters of a quote in a text; JSON has all of it."""
MAX_CONTEXT = 200
"""Maximum characters of the text before and after a quote."""


class NoSuchLineError(MemoryPipelineError):
    """No row has that id; the message says where it was searched."""


def is_line(identifier: str) -> bool:
    """Whether the identifier has the form of an id for `why`."""
    return bool(_ID.fullmatch(identifier))


def origin(settings: Settings, identifier: str) -> dict[str, Any]:
    """The origin of a line: `row` of `table`, its `history`, what was `said` as evidence, and `traces` of decisions.
    Raises `NoSuchLineError`."""
    lake = Lake.from_settings(settings)
    return mended(lake, lambda: _found(settings, lake, identifier))


def quoted_messages(settings: Settings, spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The text of these spans of messages, each with its speaker, time and source."""
    lake = Lake.from_settings(settings)

    def read() -> list[dict[str, Any]]:
        connection = duckdb.connect()
        lake.attach_views(connection)
        return _quoted_messages(connection, settings, spans)

    return mended(lake, read)


def describe_said(said: dict[str, Any]) -> list[str]:
    """A message behind a line in lines of text: who said it and when, its context, the quote, and its place."""
    if said.get("missing"):
        return [f"message {said['message_id']} is no longer in the tables"]
    when = " ".join(filter(None, (str(said["said_at"])[:16], said["untimed"])))
    session = f" session “{one_line(said['session'])}”" if said["session"] is not None else ""
    quote = f"({NOT_KEPT})" if said.get("not_kept") else f"“{clip(one_line(said['quote']), MAX_QUOTE)}”"
    lines = [f"{when}  {said['role']} in {said['harness']}{session}"]
    lines += [f"before: {said['before']}"] if said.get("before") else []
    lines += [quote]
    lines += [f"after: {said['after']}"] if said.get("after") else []
    return [*lines, one_line(said["source"])]


def _found(settings: Settings, lake: Lake, identifier: str) -> dict[str, Any]:
    connection = duckdb.connect()
    lake.attach_views(connection)
    table, row = _row(connection, identifier)
    supports = _fetch_all(connection, "SELECT sources FROM supports WHERE proposal_id = ? ORDER BY said_at", identifier)
    again = [source for each in supports for source in each["sources"]]
    spans = {tuple(s.values()): s for s in (*_spans(connection, row), *_spans(connection, {"sources": again}))}
    found = {"id": identifier, "table": table, "row": row, "history": history(Workspace(settings, lake), identifier)}
    ids = [identifier, *_sources(row), *again]
    asked = [_request(settings, row)] if table == "remembered" else []
    found["said"] = [*asked, *_quoted_messages(connection, settings, list(spans.values())), *_notes(settings, ids)]
    traces = [each["trace"] for each in _rows_below(connection, ids) if each.get("trace")]
    found["traces"] = list(dict.fromkeys(traces))
    return found


def _row(connection: duckdb.DuckDBPyConnection, identifier: str) -> tuple[str, dict[str, Any]]:
    """The table and the latest row of a line. Raises `NoSuchLineError`."""
    table, column = TABLE_OF[identifier[0]]
    # when the days of a pattern were rebuilt, the offered fix is still stored
    others = {"proposals": "remembered", "friction_clusters": "friction_fixes"}
    for name, own_id in ((table, column), *([(others[table], "proposal_id")] if table in others else [])):
        latest = "ORDER BY day DESC" if TABLES[name].daily else ""
        query = f'SELECT * FROM "{name}" WHERE "{own_id}" = ? {latest} LIMIT 1'
        if rows := _fetch_all(connection, query, identifier):
            return name, rows[0]
    raise NoSuchLineError(f"There is no {identifier} in {table}; `memory search` and `memory review` print ids.")


def _fetch_all(connection: duckdb.DuckDBPyConnection, query: str, *values: Any) -> list[dict[str, Any]]:
    cursor = connection.execute(query, list(values))
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _spans(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The evidence of a row, or of the rows that it was condensed from, through all levels."""
    if row.get("evidence"):
        return list(row["evidence"])
    if "narrative" in row:
        return _spans_of_segment(connection, row)
    below = _rows_below(connection, _sources(row))
    own = (each for each in below if each.get("evidence") or "narrative" in each)
    return [span for each in own for span in _spans(connection, each)]


def _rows_below(connection: duckdb.DuckDBPyConnection, ids: list[str]) -> list[dict[str, Any]]:
    """The rows with these ids, and all from which they were made, through all levels."""
    found: list[dict[str, Any]] = []
    left, seen = ids, set[str]()
    while left:
        seen.update(left)
        below = [row for kind in TABLE_OF for row in _rows(connection, kind, left)]
        found += below
        left = list(dict.fromkeys(i for row in below for i in _sources(row) if i not in seen))
    return found


def _sources(row: dict[str, Any]) -> list[str]:
    """The ids from which a row was made; the observations of a pool reflection outlive its reflections."""
    return list(row.get("observations") or row.get("sources") or ())


def _rows(connection: duckdb.DuckDBPyConnection, kind: str, ids: list[str]) -> list[dict[str, Any]]:
    """The rows of this kind among the ids, oldest first."""
    wanted = [i for i in ids if i.startswith(f"{kind}-")]
    if not wanted:
        return []
    table, column = TABLE_OF[kind]
    order = {"observations": "observed_at", "segments": "position"}.get(table, column)
    return _fetch_all(
        connection, f'SELECT * FROM "{table}" WHERE list_contains(?, "{column}") ORDER BY "{order}"', wanted
    )


def _spans_of_segment(connection: duckdb.DuckDBPyConnection, segment: dict[str, Any]) -> list[dict[str, Any]]:
    """Spans of the first request and the last answer of a segment, which its narrative describes."""
    ends = (
        f"(SELECT {which}(said_at) FROM messages WHERE message_id = ? AND dedupe_key = ?)" for which in ("min", "max")
    )
    messages = _fetch_all(
        connection,
        "SELECT message_id, role FROM messages WHERE dedupe_key = ? AND role IN ('user', 'assistant') AND text <> '' "
        f"AND coalesce(NOT voided, true) AND said_at BETWEEN {' AND '.join(ends)} ORDER BY said_at, source_line",
        *(segment["dedupe_key"], segment["first_message_id"], segment["dedupe_key"]),
        *(segment["last_message_id"], segment["dedupe_key"]),
    )
    asked = next((m for m in messages if m["role"] == "user"), None)
    answered = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    return [{"message_id": m["message_id"], "start": 0, "end": None} for m in (asked, answered) if m]


def _quoted_messages(
    connection: duckdb.DuckDBPyConnection, settings: Settings, spans: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(span["message_id"] for span in spans))
    query = (
        "SELECT m.day, m.message_id, m.role, m.said_at, m.untimed, m.text, m.source_file, m.source_line, "
        "m.session_id, s.harness, s.name, s.project FROM messages m LEFT JOIN sessions s USING (day, session_id) "
        "WHERE list_contains(?, m.message_id)"
    )
    messages = {m["message_id"]: m for m in _fetch_all(connection, query, ids)}
    lake = Lake.from_settings(settings)
    around = contexts(lake, {m["day"] for m in messages.values()}, messages)
    said = []
    for span in spans:
        message = messages.get(span["message_id"])
        if message is None:
            said.append({"message_id": span["message_id"], "missing": True})
            continue
        moment = message["said_at"].astimezone(settings.zone)
        said.append(
            {
                "said_at": moment.date() if message["untimed"] else moment,
                "untimed": message["untimed"],
                "role": message["role"],
                "quote": message["text"][span["start"] : span["end"]],
                "not_kept": not message["text"] and lake.is_retired("messages", message["day"]),
                "before": text_before(around[span["message_id"]], MAX_CONTEXT),
                "after": clip(around[span["message_id"]].after, MAX_CONTEXT),
                "session": message["name"],
                "session_id": message["session_id"],
                "project": message["project"],
                "harness": message["harness"],
                "source": f"{message['source_file']}:{message['source_line']}",
                "message_id": span["message_id"],
            }
        )
    return said


def _request(settings: Settings, row: dict[str, Any]) -> dict[str, Any]:
    """The request to remember a line, or the line of another tool's memory."""
    is_imported = row["trust"] == IMPORTED
    return {
        "said_at": row["said_at"].astimezone(settings.zone),
        "untimed": None,
        "role": "written" if is_imported else row["trust"],
        "quote": row["text"],
        "session": None,
        "harness": row["client"] or ("`memory remember`" if row["trust"] == "user" else "the MCP server"),
        "source": f"{row['source_file']}:{row['source_line']}" if is_imported else row["cwd"] or "",
        "message_id": row["proposal_id"],
    }


def _notes(settings: Settings, ids: list[str]) -> list[dict[str, Any]]:
    """The notes in daily logs from which a row was condensed."""
    return [
        {
            "said_at": note["day"],
            "untimed": None,
            "role": "user",
            "quote": note["text"],
            "session": None,
            "harness": "the daily log",
            "source": f"{note['source_file']}:{note['line']}",
            "message_id": note["note_id"],
        }
        for note in written_notes(Workspace.open(settings), ids)
    ]
