"""`memory show` and `memory why`: the log of a day, a session, the messages around one, or those behind a line."""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, AsJson, err, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.days import parse_day, today
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.context import NOT_KEPT
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.recall.folders import MAX_NAME
from memory_pipeline.recall.showing import day_log, day_not_kept, messages_around, without_fences
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.daily_log.render import optimize_for_context

MAX_TEXT, MAX_NEIGHBOUR = 4_000, 600
"""Maximum characters of the requested message and of those around it; --json has all of them."""
_DAY = re.compile(r"\d{1,4}-\d{1,2}-\d{1,2}")


def show(
    identifier: Annotated[
        str | None,
        typer.Argument(
            metavar="[DAY|ID]",
            help="YYYY-MM-DD, today or yesterday, or the id of a message or session; by default the last day.",
        ),
    ] = None,
    around: Annotated[int, typer.Option(help="Messages before and after the message.", min=0, max=100)] = 3,
    high: Annotated[
        bool, typer.Option("--high", help="Only the high observations of a day, for the context of a model.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the log of a day, a session, or the messages around one.

    The log of a day is memory/YYYY-MM-DD.md; for sessions without observations, the reason follows. Observations,
    proposals and other lines are shown by `memory why`.
    """
    if identifier is None or identifier.lower() in ("today", "yesterday") or _DAY.fullmatch(identifier):
        _show_log(identifier, high)
        return
    from memory_pipeline.recall.origin import is_line  # imports DuckDB, which a log does not need

    if is_line(identifier):
        why(identifier, as_json=as_json)
    else:
        _show_messages(identifier, around, as_json)


def why(
    identifier: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id of a proposal (p-…), reflection (r-, g-), observation (o-), segment (s-), friction pattern "
            "(f-), distillation of a day, week or month (d-, w-, m-) or note (n-).",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Trace a line back to the messages that it comes from.

    Prints its history and every supporting message with its file and line.
    """
    from memory_pipeline.recall.origin import is_line, origin

    if not is_line(identifier):
        raise fail(
            f"{identifier!r} is not the id of a line; such ids look like p-20260305-001, r-…, o-…, d-… or "
            f"f-20260305-001. A message or session is shown by `memory show {identifier}`.",
            MISUSED,
        )
    settings = active_settings()
    found = origin(settings, identifier)
    if as_json:
        print_json(found)
    else:
        _print_line(found)


def _show_log(day: str | None, high: bool) -> None:
    settings = active_settings()
    wanted = _day_of(day, today(settings.zone)) if day else None
    found = day_log(settings, wanted)
    if found is None:
        which = f"There is no log of {wanted}" if wanted else "No day has been read yet, so there is no log"
        raise fail(f"{which} in {settings.log_dir}; `memory run` writes the logs of days with sessions.")
    if found.text is not None:
        text = without_fences(optimize_for_context(found.text) if high else found.text)
        say((re.sub(r"\n{3,}", "\n\n", text) if high else text).rstrip("\n"))
    for number, line in enumerate(found.silences):
        line = line if number else f"\n{line}"
        if high:  # meant for a model's context
            err.print(line, style="dim")
        else:
            say(line, "dim")


def _day_of(text: str, now: date) -> date:
    named = {"today": now, "yesterday": now - timedelta(days=1)}
    try:
        return named.get(text.lower()) or parse_day(text)
    except ValueError as error:
        raise fail(f"{error}", MISUSED) from None


def _show_messages(identifier: str, around: int, as_json: bool) -> None:
    lake = Lake.from_settings(active_settings())
    found = messages_around(lake, identifier, around)
    if not found and (day := day_not_kept(lake, identifier)):
        raise fail(f"It is from {day}, and {NOT_KEPT} (retention.messages).")
    if not found:
        name = clip(identifier, MAX_NAME)
        raise fail(f"There is no message or session {name!r}; `memory search` prints their ids.", MISUSED)
    if as_json:
        print_json(found)
        return
    for row in found:
        is_it = row["message_id"] == identifier
        say(f"{'▶' if is_it else ' '} {row['said_at']:%Y-%m-%d %H:%M} UTC · {row['role']} · {row['message_id']}", "dim")
        text = row["text"]
        if not is_it or len(text) > MAX_TEXT:
            text = clip(text, MAX_TEXT if is_it else MAX_NEIGHBOUR)
        say(f"{text or f'({NOT_KEPT})'}\n")
    say(f"{found[0]['source_file']}, lines {found[0]['source_line']} to {found[-1]['source_line']}", "dim")


def _print_line(found: dict[str, Any]) -> None:
    row = found["row"]
    say(f"{found['id']}  {row.get('text') or row.get('narrative') or row.get('title')}", "bold")
    shown = ("day", "section", "priority", "kind", "item_type", "trust", "observer", "support", "severity", "change")
    details = {k: row[k] for k in shown if row.get(k)}
    details |= {k: ", ".join(row[k]) for k in ("flags", "tags", "projects") if row.get(k)}
    say("  ".join(f"{name} {value}" for name, value in details.items()), "dim")
    for event in found["history"]:
        moment = str(event["moment"] or "now")[:16]
        detail, *lines = event["detail"].split("\n")
        say(f"{moment:<16}  {event['event']} ({one_line(detail)})")
        for line in lines:  # lines of the change of a fix
            say(f"{'':<18}{visible(line)}")
    for trace in found["traces"]:
        say(f"trace: {one_line(trace)}", "dim")
    print_said(found["said"])


def print_said(said: Sequence[dict[str, Any]]) -> None:
    """Print the messages behind a line."""
    from memory_pipeline.recall.origin import describe_said

    if not said:
        say("\nNo message supports it.", "yellow")
    for each in said:
        first, *lines = describe_said(each)
        say(f"\n{first}", "cyan" if lines else "yellow")
        for line in lines:
            say(f"  {line}", "" if line.startswith(("“", "(")) else "dim")
