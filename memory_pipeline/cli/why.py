"""`memory why`: traces a line of the memory back to its messages."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, fail, one_sentence, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.recall.origin import NoSuchLineError, describe_said, is_line, origin


def why(
    identifier: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id of a proposal (p-…), reflection (r-, g-), observation (o-), segment (s-), friction pattern "
            "(f-), distillation of a day, week or month (d-, w-, m-) or note (n-).",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Trace a line back to the messages that it comes from.

    Prints its history and every supporting message with its file and line.
    """
    if not is_line(identifier):
        raise fail(
            f"{identifier!r} is not the id of a line; such ids look like p-20260305-001, r-…, o-…, d-… or "
            f"f-20260305-001. A message or session is shown by `memory show {identifier}`.",
            MISUSED,
        )
    settings = active_settings()
    with one_sentence(NoSuchLineError):
        found = origin(settings, identifier)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
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
    if not said:
        say("\nNo message supports it.", "yellow")
    for each in said:
        first, *lines = describe_said(each)
        say(f"\n{first}", "cyan" if lines else "yellow")
        for line in lines:
            say(f"  {line}", "" if line.startswith(("“", "(")) else "dim")
