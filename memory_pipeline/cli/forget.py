"""`memory forget`: permanently deletes a session, a message, a line or a phrase from the workspace."""

from collections import Counter
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, counted, err, fail, print_json, say, say_pair
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.operations.forgetting.changes import BY_HAND, Found
from memory_pipeline.operations.forgetting.forget import forget as take_out
from memory_pipeline.operations.forgetting.forget import left, look, now_utc, unfinished
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

SHOWN = 5
"""Maximum lines printed for each place; --json has all."""
MAX_LINE = 160


def forget(
    named: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION|ID|TEXT",
            help="A session, the id of a message or of a line (p-…, o-…, f-…), or a phrase; without it, an "
            "interrupted call is resumed.",
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask for confirmation. Lines that you wrote stay unless --by-hand is given."),
    ] = False,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Also delete lines that you wrote in MEMORY.md and the logs.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON; needs --yes or --dry-run.")] = False,
) -> None:
    """Permanently delete a session, line or phrase.

    A session or message is deleted with everything that only it supports. A line or phrase is deleted wherever it
    occurs. Transcripts are not changed, but forgotten text is not read from them again.
    """
    if as_json and not (yes or dry_run):
        raise fail(
            "--json cannot ask for confirmation: add --yes to forget, or --dry-run to see what would be deleted.",
            MISUSED,
        )
    settings = active_settings()
    if not storage_of(settings).is_begun():
        raise fail("There is no workspace yet: `memory run` creates it.")
    if dry_run:
        request, found = look(settings, named or "", by_hand=by_hand)
        _show(request, found, as_json=as_json, state="would be forgotten")
        return
    from memory_pipeline.defs.runs import only_run

    with only_run(settings):
        _refuse_other_runs(settings)
        finished = _finish(settings)
        if named is not None:
            _forget(settings, named, yes=yes, by_hand=by_hand, as_json=as_json)
        elif not finished:
            raise fail("Nothing to forget was given: name a session, an id or a phrase.", MISUSED)


def _forget(settings: Settings, name: str, *, yes: bool, by_hand: bool, as_json: bool) -> None:
    request, found = _look(settings, name, by_hand)
    if request.phrases and not (request.sessions or found):
        if as_json:
            _show(request, found, as_json=True, state="nothing")
        else:
            say("Nothing stored contains it.")
        return
    if not as_json:
        _show(request, found, as_json=False, state="is to be forgotten")
    if not yes:
        typer.confirm("Delete it permanently?", abort=True)
        request, found = _look(settings, name, by_hand)
    take_out(settings, request, now_utc())
    rest = left(settings, request)
    if as_json:
        _show(request, found, as_json=True, state="forgotten", rest=rest)
    else:
        _print_done(request, rest)
    if rest:
        raise fail(f"{len(rest)} places still hold it: " + "; ".join(sorted({one.place for one in rest})))


def _look(settings: Settings, name: str, by_hand: bool) -> tuple[ForgetRequest, list[Found]]:
    """The request and what it would delete, after storing the decisions marked in REVIEW.md, which are searched too."""
    from memory_pipeline.proposals.review import reconcile
    from memory_pipeline.workspace.workspace import Workspace

    reconcile(Workspace.open(settings), now_utc())
    return look(settings, name, by_hand=by_hand)


def _finish(settings: Settings) -> bool:
    """Finish the request of an interrupted call, if there is one."""
    request = unfinished(settings)
    if request is None:
        return False
    err.print("An earlier `memory forget` was interrupted; it is completed first.", style="dim")
    take_out(settings, request, now_utc())
    say("It is complete: everything requested is forgotten.", "green")
    return True


def _refuse_other_runs(settings: Settings) -> None:
    from memory_pipeline.defs.runs import instance_of
    from memory_pipeline.defs.under_way import close_dead_runs, unfinished_runs

    with instance_of(settings) as instance:
        close_dead_runs(instance)
        running = unfinished_runs(instance)
    if running:
        raise fail(f"A run works on {settings.workspace} ({running[0].job_name}); wait for it to end, then forget.")


def _show(
    request: ForgetRequest, found: list[Found], *, as_json: bool, state: str, rest: list[Found] | None = None
) -> None:
    counts = Counter(one.place for one in found)
    if as_json:
        data: dict[str, Any] = {
            "what": request.what,
            "name": request.name,
            "state": state,
            "counts": dict(counts),
            "lines": [{"place": one.place, "line": one.line} for one in found],
            "transcripts": sorted(request.files),
            "days": sorted(request.days),
        }
        print_json(data | ({} if rest is None else {"left": [one._asdict() for one in rest]}))
        return
    own = request.what in (SESSION, MESSAGE)
    whose = "its own text; repetitions elsewhere stay" if own else "in all sessions"
    say(f"{request.what} {clip(one_line(request.name), MAX_LINE)} {state}: {whose}", "bold")
    for place, count in counts.items():
        say_pair(place, count)
        for one in [one for one in found if one.place == place][:SHOWN]:
            say(f"    {clip(one_line(one.line), MAX_LINE)}", "dim")
    if counts[BY_HAND]:
        say("Lines that you wrote stay unless --by-hand is given.", "yellow")
    for path in sorted(request.files):
        say(f"The transcript is not changed, and this part of it is no longer read: {path}", "dim")


def _print_done(request: ForgetRequest, rest: list[Found]) -> None:
    if not rest:
        say("Forgotten. A second search of the workspace found nothing.", "green")
    if request.days:
        say(
            f"Everything else of {counted(len(request.days), 'day')} is rebuilt by "
            f"`memory run --from {min(request.days)} --to {max(request.days)}`."
        )
    say(
        "Copies of the workspace, tasks in Todoist and files of your agents are not covered; delete it there yourself.",
        "dim",
    )
