"""`memory show`: the words around a hit, as they were said."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.around import day_not_kept, messages_around
from memory_pipeline.recall.folders import MAX_NAME
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
    from memory_pipeline.cli.why import why
    from memory_pipeline.proposals.context import NOT_KEPT
    from memory_pipeline.recall.origin import is_line

    if is_line(identifier):
        why(identifier, as_json=as_json)
        return
    lake = Lake.from_settings(active_settings())
    found = messages_around(lake, identifier, around)
    if not found and (day := day_not_kept(lake, identifier)):
        raise fail(f"It was said on {day}, and {NOT_KEPT} (retention.messages).")
    if not found:
        name = clip(identifier, MAX_NAME)
        raise fail(f"There is no message and no session {name!r}; `memory search` prints their ids.", MISUSED)
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
        say(f"{text or f'({NOT_KEPT})'}\n")
    say(f"{found[0]['source_file']}, lines {found[0]['source_line']} to {found[-1]['source_line']}", "dim")
