"""`memory friction`: recurring problems over sessions, their cost, and changes that would end them."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, AsJson, counted, fail, print_json, say
from memory_pipeline.cli.show import print_said
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.friction.active import KINDS, sparkline
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.config import NO_MODEL_FOR_FRICTION
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.recall.folders import project_named
from memory_pipeline.recall.friction import explain_pattern, is_pattern, list_patterns
from memory_pipeline.scope import describe_projects
from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.sentences import clip

MAX_TITLE, MAX_CHANGE = 120, 140
"""Maximum characters printed of a title and of a change in the list; --json has all."""


def friction(
    identifier: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="A pattern (f-…) to explain; without one, all are listed."),
    ] = None,
    project: Annotated[
        list[str] | None, typer.Option(help="Only this project; may be repeated.", metavar="NAME")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only this kind, such as missing_skill; may be repeated.", metavar="NAME")
    ] = None,
    ended: Annotated[bool, typer.Option("--ended", help="Patterns that have ended instead of active ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List recurring problems and the changes that would end them.

    Corrections and failures that recur over sessions, the most severe first. With an ID it shows one pattern: all
    occurrences, the exact change, and the number by week.
    """
    if identifier is not None:
        if project or kind or ended:
            raise fail("ID selects one pattern, and the other options filter the list. Use one or the other.", MISUSED)
        _explain(identifier, as_json)
        return
    settings = active_settings()
    lake = Lake.from_settings(settings)
    projects = [project_named(lake, name) for name in project or ()]
    found = list_patterns(settings, projects, [_kind(name) for name in kind or ()], is_ended=ended)
    if as_json:
        print_json(found)
    else:
        _print_list(found, ended)
        was_enough = (found["points"] or 0) >= found["points_needed"]
        if settings.reflector.model is None and was_enough and not ended:
            say(NO_MODEL_FOR_FRICTION, "dim")


def _kind(given: str) -> str:
    """The stored name of a kind, given that name or the one for users."""
    wanted = given.strip().casefold()
    found = next((name for name, words in KINDS.items() if wanted in (name, words, words.partition(",")[0])), None)
    if found is None:
        raise fail(f"{given!r} is not a kind of friction; expected one of {', '.join(KINDS)}.", MISUSED)
    return found


def _explain(identifier: str, as_json: bool) -> None:
    if not is_pattern(identifier):
        from memory_pipeline.recall.origin import is_line

        other = is_line(identifier) and not identifier.startswith("f-")
        instead = f" `memory why {identifier}` traces it." if other else " `memory friction` lists them."
        raise fail(
            f"{identifier!r} is not the id of a friction pattern; such ids look like f-20260305-001.{instead}",
            MISUSED,
        )
    settings = active_settings()
    found = explain_pattern(settings, identifier)
    if as_json:
        print_json(found)
    else:
        _print_one(found)


def _print_list(found: dict[str, Any], ended: bool) -> None:
    for pattern in found["patterns"]:
        say(f"{pattern['id']}  {_line(pattern['title'], MAX_TITLE)}", "bold")
        say(f"      {' · '.join(_facts(pattern))}")
        change, target = _line(pattern["change"], MAX_CHANGE), _line(pattern["target_file"])
        say(f"      {change if target in change else f'{target}: {change}'}", "dim")
    if found["why"]:
        say(found["why"])
    if number := len(found["patterns"]):
        patterns = counted(number, "pattern")
        window = f"in {found['points']} indexed texts of the {found['lookback_days']} days to"
        looked = f"{patterns} that ended by" if ended else f"{patterns} {window}"
        say(f"\n{looked} {found['day']}; `memory friction ID` explains one.")


def _facts(pattern: dict[str, Any]) -> Iterator[str]:
    """The facts about a pattern for the list, in order."""
    yield pattern["kind_in_words"]
    if where := describe_projects(pattern["projects"]):
        yield where
    times = pattern["occurrences"]
    yield f"{'once' if times == 1 else f'{times} times'} in {counted(pattern['sessions'], 'session')}"
    if pattern["minutes"]:
        yield f"{_duration(pattern['minutes'])} lost"
    if len(counts := [week["occurrences"] for week in pattern["by_week"]]) > 1:
        yield f"by week {sparkline(counts)} {' '.join(map(str, counts))}"
    if pattern["ended_on"]:
        yield f"ended on {pattern['ended_on']}"
    if pattern["fix"]:
        yield f"fix {pattern['fix']}"


def _print_one(pattern: dict[str, Any]) -> None:
    say(f"{pattern['id']}  {_line(pattern['title'])}", "bold")
    say(" · ".join(_facts({**pattern, "by_week": [], "fix": None})))
    say(
        f"severity {pattern['severity']:.1f}, confidence {pattern['confidence']:.2f}; first on {pattern['first_day']}, "
        f"last on {pattern['last_day']}",
        "dim",
    )
    section = f", section {_line(pattern['section'])}" if pattern["section"] else ""
    say(f"\nChange in {_line(pattern['target_file'])}{section}:", "cyan")
    for sign, name in (("-", "replaces"), ("+", "adds")):
        if pattern[name]:
            say(f"  {sign} {_line(pattern[name])}")
    is_shown = pattern["adds"] and pattern["adds"] in pattern["change"] and not pattern["replaces"]
    for line in () if is_shown else pattern["change"].splitlines():
        say(f"  {without_hidden(line)[0]}")
    _print_history(pattern)
    say("\nEvidence:", "cyan")
    print_said(pattern["said"])


def _print_history(pattern: dict[str, Any]) -> None:
    if weeks := pattern["by_week"]:
        say(f"\nBy week, from its Monday: {sparkline(week['occurrences'] for week in weeks)}", "cyan")
        for week in weeks:
            say(f"  {week['week']}  {week['occurrences']}")
    for event in pattern["history"]:
        say(f"{str(event['moment'] or 'now')[:16]}  fix {event['event']} ({_line(event['detail'])})")


def _line(text: str | None, length: int | None = None) -> str:
    """The text on one line, without control and invisible characters."""
    line = one_line(text or "")
    return clip(line, length) if length else line


def _duration(minutes: float) -> str:
    """A duration rounded to minutes, or "less than a minute"."""
    if minutes < 1:
        return "less than a minute"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours else f"{rest} min"
