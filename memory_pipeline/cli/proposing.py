"""`memory remember` and `memory import`: propose lines in the user's words, and those of other tools' memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import Timeout

from memory_pipeline.agents.agents import tilde_path
from memory_pipeline.cli.console import MISUSED, AsJson, Yes, confirm, counted, fail, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.operations.importing.lines import Importer, MemoryFile
from memory_pipeline.operations.importing.sources import SOURCES, read_path, read_sources
from memory_pipeline.proposals.events import REVIEW_SURFACE, ProposalLog
from memory_pipeline.proposals.remembering import Judged, judged, offer
from memory_pipeline.proposals.remembering import remember as store
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.recall.folders import place_of_folder, project_named, project_of_place
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

SHOWN, MAX_LINE = 5, 160
"""Maximum new lines listed per file, and characters of each; --json has all."""
WAIT_SECONDS = 2.0
"""Seconds to wait for a run that is writing REVIEW.md, which then includes the lines."""
_Found = list[tuple[MemoryFile, list[Judged]]]


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The rule or fact, in a sentence.")],
    section: Annotated[
        str | None, typer.Option(metavar="NAME", help="Section of MEMORY.md; by default chosen by the words.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Project that it applies to; by default that of this folder, '' for all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a line for MEMORY.md in your own words.

    It becomes a proposal like any other: `memory review` decides. A line with a secret is refused, and one that is
    pending or approved already is not added again.
    """
    settings = settings_of_call()
    if not storage_of(settings).is_begun():
        raise fail("There is no workspace yet: run `memory run` first, then repeat this command.")
    workspace, now = Workspace.open(settings), now_utc()
    place = place_of_folder(Path.cwd())
    name = project_of_place(workspace.lake, place) if project is None else project_named(workspace.lake, project)
    made = store(workspace, text, now, section=section, project=name, cwd=place.cwd)
    is_in_review = False
    if not made.known:
        try:
            reconcile(workspace, now, wait=WAIT_SECONDS)
            is_in_review = made.proposal_id in ProposalLog(workspace.lake).standing_on(REVIEW_SURFACE)
        except Timeout:
            pass
        refresh_kept(settings)
    if as_json:
        print_json(vars(made) | {"project": name, "is_in_review": is_in_review})
        return
    if made.known:
        own = f" ({made.proposal_id})" if made.proposal_id else ""
        say(f"Not added, because it is already {made.known}{own}: {made.text}")
        return
    say(f"{made.proposal_id} {made.section}{f' (project: {name})' if name else ''}", "bold")
    say(f"  {made.text}")
    there = f"It is in {settings.review_file}" if is_in_review else "The next run puts it into REVIEW.md"
    say(f"{there}; `memory review --approve {made.proposal_id}` approves it now.")


def import_(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A memory file, a claude-mem database or a project's folder; replaces the known sources.",
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="NAME", help=f"Only this source: {', '.join(SOURCES)}; may be repeated."),
    ] = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the findings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON; needs --yes or --dry-run.")] = False,
) -> None:
    """Propose the memories of other tools for review.

    Reads the memories of Claude Code, Codex, Gemini CLI and claude-mem, and the AGENTS.md, CLAUDE.md and GEMINI.md of
    this project. A line that is known, or that you decided on before, is left out. The files are not changed, and
    nothing enters MEMORY.md before you approve it.
    """
    if as_json and not (yes or dry_run):
        raise fail(
            "--json cannot ask for confirmation: add --yes to offer the lines, or --dry-run to see them.", MISUSED
        )
    if path and sources:
        raise fail("Give either PATH or --from, not both.", MISUSED)
    if unknown := [name for name in sources or () if name not in SOURCES]:
        raise fail(f"{unknown[0]!r}: no such source; expected one of {', '.join(SOURCES)}.", MISUSED)
    settings = settings_of_call()
    workspace = Workspace.open(settings)
    importer = Importer(workspace)
    if path:
        files = read_path(importer, path.expanduser().absolute())
    else:
        files = read_sources(importer, sources or list(SOURCES), Path.cwd())
    lines = [line for file in files for line in file.lines]
    found = _by_file(files, judged(workspace, lines))
    if not as_json:
        _show(found)
    new = [one.line for _, of_file in found for one in of_file if not one.known]
    if new and not dry_run:
        limit = settings.pending_limit // 2
        if not yes:
            say(f"REVIEW.md shows at most {limit} imported lines at once; the others wait behind them.")
        confirm(f"Offer {counted(len(new), 'line')} for review?", yes, "Nothing was offered.")
        with suppress(Timeout):
            reconcile(workspace, now_utc(), wait=WAIT_SECONDS)  # marks in REVIEW.md count first
        found = _by_file(files, offer(workspace, lines, now_utc()))
        with suppress(Timeout):
            reconcile(workspace, now_utc(), wait=WAIT_SECONDS)
        refresh_kept(settings)
    if as_json:
        print_json(_rows(found, stored=not dry_run))
    elif new and not dry_run:
        _print_done(workspace, found)


def _by_file(files: Sequence[MemoryFile], found: Sequence[Judged]) -> _Found:
    rest = iter(found)
    return [(file, [next(rest) for _ in file.lines]) for file in files]


def _show(found: _Found) -> None:
    for file, lines in found:
        if file.problem:
            say(file.problem, "yellow")
            continue
        new, known = [one for one in lines if not one.known], Counter(one.known for one in lines if one.known)
        kinds = ", ".join(f"{count} {kind}" for kind, count in known.items())
        counts = f"{counted(len(lines), 'line')}, {len(new)} new, {known.total()} known"
        say(f"{tilde_path(file.path)}: {counts}{f' ({kinds})' if kinds else ''}", "bold")
        for one in new[:SHOWN]:
            say(f"  {one.line.number}: {clip(one.line.text, MAX_LINE)}")
        if len(new) > SHOWN:
            say(f"  … and {len(new) - SHOWN} more new lines", "dim")
    if not found:
        say("Nothing was found: no other tool has a memory on this machine, and this project has no instruction file.")
    elif not any(one for _, lines in found for one in lines if not one.known):
        say("Nothing is new.", "dim")


def _print_done(workspace: Workspace, found: _Found) -> None:
    ids = {one.proposal_id for _, lines in found for one in lines if not one.known}
    there = len(ids & ProposalLog(workspace.lake).standing_on(REVIEW_SURFACE))
    say(f"{counted(len(ids), 'line')} offered, {there} of them in {workspace.settings.review_file} now.", "green")
    say("`memory review` goes through them; `memory why ID` names the file and line of each.")


def _rows(found: _Found, *, stored: bool) -> dict[str, Any]:
    files = [
        {
            "source": file.source,
            "path": str(file.path),
            "problem": file.problem or None,
            "lines": [
                {
                    "line": one.line.number,
                    "text": one.line.text,
                    "project": one.line.project,
                    "known": one.known or None,
                    "proposal_id": one.proposal_id,
                }
                for one in lines
            ],
        }
        for file, lines in found
    ]
    new = sum(not one.known for _, lines in found for one in lines)
    return {"offered": new if stored else 0, "new": new, "files": files}
