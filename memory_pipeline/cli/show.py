"""`memory show`: the words around a hit, as they were said."""

from typing import Annotated, Any

import polars as pl
import typer

from memory_pipeline.cli.console import MISUSED, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.embeddings.passages import SPEAKERS
from memory_pipeline.lake.store import Lake
from memory_pipeline.text.sentences import clip

MAX_TEXT, MAX_NEIGHBOUR = 4_000, 600
"""Characters of the message that is asked for, and of those around it; --json has all."""


def show(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Of a message or session, as `memory search` says.")],
    around: Annotated[int, typer.Option(help="Messages before and after it.", min=0, max=100)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show the messages around one, or the messages of a session.

    Observations, proposals and other lines are shown by `memory why`.
    """
    from memory_pipeline.cli.why import is_line, why

    if is_line(identifier):
        why(identifier, as_json=as_json)
        return
    found = messages_around(Lake(active_settings().lake_dir), identifier, around)
    if not found:
        raise fail(f"There is no message and no session {identifier!r}; `memory search` prints their ids.", MISUSED)
    if as_json:
        print_json(found)
        return
    for row in found:
        is_it = row["message_id"] == identifier
        say(f"{'▶' if is_it else ' '} {row['said_at']:%Y-%m-%d %H:%M} UTC · {row['role']} · {row['message_id']}", "dim")
        text = (
            row["text"]
            if len(row["text"]) <= MAX_TEXT and is_it
            else clip(row["text"], MAX_TEXT if is_it else MAX_NEIGHBOUR)
        )
        say(f"{text}\n")
    say(f"{found[0]['source_file']}, lines {found[0]['source_line']} to {found[-1]['source_line']}", "dim")


def messages_around(lake: Lake, identifier: str, around: int) -> list[dict[str, Any]]:
    """What people and models said next to a message; of a session, everything. Empty for an unknown id."""
    days = lake.days("messages")
    for day in sorted(days, reverse=True):
        said = lake.read("messages", [day]).filter(
            pl.col("role").is_in(SPEAKERS) & (pl.col("text").str.strip_chars() != "")
        )
        inside = said.filter(pl.col("session_id") == identifier)
        if inside.height:
            whole = [lake.read("messages", [d]).filter(pl.col("session_id") == identifier) for d in sorted(days)]
            return pl.concat(whole).filter(pl.col("role").is_in(SPEAKERS)).sort("said_at", "source_line").to_dicts()
        hit = said.filter(pl.col("message_id") == identifier)
        if hit.height:
            session = said.filter(pl.col("session_id") == hit["session_id"][0]).sort("said_at", "source_line")
            at = session["message_id"].to_list().index(identifier)
            return session.slice(max(0, at - around), around + 1 + min(at, around)).to_dicts()
    return []
