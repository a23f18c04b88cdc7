"""`memory proof`: how often users had to repeat what the memory already held."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from memory_pipeline.cli.console import out, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.effect.cases import Case, DayEffect, by_week
from memory_pipeline.effect.history import State
from memory_pipeline.effect.summary import Effect, as_json, effect_over, totals
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.recall.filters import parse_range
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

MAX_QUOTE = 160
STATE: dict[State, str] = {
    "approved": "approved before",
    "offered": "offered before, not approved by then",
    "observed": "only observed before",
    "rejected": "rejected by you before",
}


def proof(
    first: Annotated[
        str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="First day; by default four weeks before --to.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="Last day; by default the last one with sessions.")
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print as JSON, with every case.")] = False,
) -> None:
    """Show how often you had to repeat what the memory already held.

    Each instruction, correction and failed call of a day is compared with the memory as it was the day before: what you
    had approved, what was offered, and what was only observed. It shows what memory could have spared you, and not what
    it did. A model is asked to compare if one is set, within its daily budget.
    """
    days = parse_range(first, last)
    effect = effect_over(Workspace.open(active_settings()), *days)
    if as_json_:
        print_json(as_json(effect))
    else:
        _print(effect)


def _print(effect: Effect) -> None:
    total = totals(effect.days)
    typed, again = total["instructions"] + total["corrections"], total["again_approved"] + total["again_offered"]
    say(f"What memory could have spared you, {effect.first} to {effect.last}", "bold")
    if typed:
        say(
            f"{again} of your {typed:,} instructions and corrections repeat a line that was approved "
            f"({total['again_approved']}) or offered ({total['again_offered']}) before that day; "
            f"{total['again_observed']} more repeat something that was only observed, {total['again_rejected']} "
            f"something you had rejected."
        )
    else:
        say("You typed no instructions or corrections in these days.")
    if failed := total["failures"]:
        say(f"{total['failed_again']} of {failed:,} failed calls repeat an error that was known before that day.")
    out.print(_by_week(effect.days))
    if effect.clearest:
        say("\nThe clearest cases:")
    for number, case in enumerate(effect.clearest, 1):
        _print_case(number, case)
    if effect.outdated:
        say("\nApproved lines that your words of a later day replaced, so that they were out of date:")
        for number, case in enumerate(effect.outdated, 1):
            _print_case(number, case)
    sessions = max(total["sessions"], 1)
    say(
        f"\nCost: the brief of a session has {total['brief_tokens'] / sessions:,.0f} tokens on average. "
        f"{effect.hints} hints were shown at tool calls, {effect.hints_wrong} of them before a call that succeeded."
    )
    for note in effect.notes:
        say(note, "dim")


def _by_week(days: Sequence[DayEffect]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("week of", "sessions", "typed", "approved", "offered", "observed", "failed", "known", "in brief"):
        table.add_column(name, justify="left" if name == "week of" else "right")
    for week, own in by_week(days).items():
        n = totals(own)
        numbers = (
            *(n["sessions"], n["instructions"] + n["corrections"]),
            *(n["again_approved"], n["again_offered"], n["again_observed"]),
            *(n["failures"], n["failed_again"], n["shown_by_brief"]),
        )
        table.add_row(f"{week}", *(f"{number:,}" for number in numbers))
    return table


def _print_case(number: int, case: Case) -> None:
    need = case.need
    say(f"{number:>2}. {need.day}  {need.kind}: “{_quote(need.text)}”  (memory show {need.message_id})")
    where = f"; {' and '.join(case.shown_by)} would have shown it" if case.shown_by else "; nothing would have shown it"
    judged = ", as a model judged" if case.by_model else ""
    say(
        f"    {case.since}  {STATE[case.state]}{judged}{where}: “{_quote(case.line)}”  (memory why {case.line_id})",
        "dim",
    )


def _quote(text: str) -> str:
    return clip(one_line(text), MAX_QUOTE)
