"""`memory why`: from a remembered line back to the words that were said."""

import re
from typing import Annotated, Any

import duckdb
import typer

from memory_pipeline.cli.console import MISUSED, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.files.blocks import one_line
from memory_pipeline.lake import Lake
from memory_pipeline.settings import Settings

TABLE_OF = {
    "p": ("proposals", "proposal_id"),
    "r": ("reflections", "reflection_id"),
    "o": ("observations", "observation_id"),
    "f": ("friction_clusters", "pattern_id"),
}
_ID = re.compile(r"[prof]-[\w-]+")


def why(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="p-… proposal, r-… reflection, o-… observation, f-… friction.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show where a line comes from: what became of it, and every message that carries it, with file and line."""
    if not _ID.fullmatch(identifier):
        raise fail(f"{identifier!r} is no id; they look like p-20260305-001, r-…, o-… or f-20260305-001.", MISUSED)
    settings = active_settings()
    connection = duckdb.connect()
    Lake(settings.lake_dir).attach_views(connection)
    table, column = TABLE_OF[identifier[0]]
    row = _one(connection, f'SELECT * FROM "{table}" WHERE "{column}" = ? ORDER BY day DESC LIMIT 1', identifier)
    if row is None:
        raise fail(f"There is no {identifier} in {table}; `memory sql` can look for it.")
    found = {"id": identifier, "table": table, "row": row, "history": _history(connection, identifier)}
    found["said"] = _said(connection, settings, _spans(connection, row))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _one(connection: duckdb.DuckDBPyConnection, query: str, *values: Any) -> dict[str, Any] | None:
    rows = _all(connection, query, *values)
    return rows[0] if rows else None


def _all(connection: duckdb.DuckDBPyConnection, query: str, *values: Any) -> list[dict[str, Any]]:
    cursor = connection.execute(query, list(values))
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _history(connection: duckdb.DuckDBPyConnection, identifier: str) -> list[dict[str, Any]]:
    """What became of a proposal: its decision and its promotion."""
    return _all(
        connection,
        "SELECT decided_at AS moment, decision AS event, surface AS detail FROM decisions WHERE proposal_id = ? "
        "UNION ALL SELECT promoted_at, 'in MEMORY.md', section FROM promotions WHERE proposal_id = ? ORDER BY moment",
        identifier,
        identifier,
    )


def _spans(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row's own evidence, or that of the observations it was condensed from."""
    if row.get("evidence"):
        return list(row["evidence"])
    query = "SELECT evidence FROM observations WHERE list_contains(?, observation_id) ORDER BY observed_at"
    return [span for o in _all(connection, query, row.get("sources") or []) for span in o["evidence"]]


def _said(
    connection: duckdb.DuckDBPyConnection, settings: Settings, spans: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(span["message_id"] for span in spans))
    query = (
        "SELECT m.message_id, m.role, m.said_at, m.text, m.source_file, m.source_line, s.harness, s.name "
        "FROM messages m LEFT JOIN sessions s USING (day, session_id) WHERE list_contains(?, m.message_id)"
    )
    messages = {m["message_id"]: m for m in _all(connection, query, ids)}
    said = []
    for span in spans:
        message = messages.get(span["message_id"])
        if message is None:
            said.append({"message_id": span["message_id"], "missing": True})
            continue
        said.append(
            {
                "said_at": message["said_at"].astimezone(settings.zone),
                "role": message["role"],
                "quote": message["text"][span["start"] : span["end"]],
                "session": message["name"],
                "harness": message["harness"],
                "source": f"{message['source_file']}:{message['source_line']}",
                "message_id": span["message_id"],
            }
        )
    return said


def _print(found: dict[str, Any]) -> None:
    row = found["row"]
    say(f"{found['id']}  {row.get('text') or row.get('title')}", "bold")
    shown = ("day", "section", "priority", "kind", "trust", "observer", "support", "severity", "change")
    details = {k: row[k] for k in shown if row.get(k)} | (
        {"flags": ", ".join(row["flags"])} if row.get("flags") else {}
    )
    say("  ".join(f"{name} {value}" for name, value in details.items()), "dim")
    for event in found["history"]:
        say(f"{event['moment']:%Y-%m-%d %H:%M} UTC  {event['event']} ({event['detail']})")
    if not found["said"]:
        say("\nNothing that was said carries it.", "yellow")
    for said in found["said"]:
        if said.get("missing"):
            say(f"\nmessage {said['message_id']} is no longer in the tables", "yellow")
            continue
        say(
            f"\n{said['said_at']:%Y-%m-%d %H:%M}  {said['role']} in {said['harness']} session “{said['session']}”",
            "cyan",
        )
        say(f"  “{one_line(said['quote'])}”")  # what was said may hold what moves the cursor
        say(f"  {said['source']}", "dim")
