"""`memory import`: proposes lines from other tools' memories for review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import Timeout

from memory_pipeline.agents.files import tilde_path
from memory_pipeline.cli.console import MISUSED, confirm, fail, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.operations.importing.files import Importer, MemoryFile
from memory_pipeline.operations.importing.sources import SOURCES, read_path, read_sources
from memory_pipeline.proposals.events import REVIEW_SURFACE, ProposalLog
from memory_pipeline.proposals.remembering import Judged, judged, offer
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

SHOWN, MAX_LINE = 5, 160
"""Maximum new lines listed per file, and characters of each; --json has all."""
WAIT_SECONDS = 2.0
"""Seconds to wait for a run that is writing REVIEW.md, which then includes the lines."""
_Found = list[tuple[MemoryFile, list[Judged]]]


def importing(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help=("A memory file, a claude-mem database or a project's folder; replaces the known sources."),
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="NAME", help=f"Only this source: {', '.join(SOURCES)}; may be repeated."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
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
    files = _read(workspace, path, sources or list(SOURCES))
    lines = [line for file in files for line in file.lines]
    found = _by_file(files, judged(workspace, lines))
    if not as_json:
        _show(found)
    new = [one.line for _, of_file in found for one in of_file if not one.known]
    if new and not dry_run:
        limit = settings.pending_limit // 2
        if not yes:
            say(f"REVIEW.md shows at most {limit} imported lines at once; the others wait behind them.")
        confirm(f"Offer {_lines(len(new))} for review?", yes, "Nothing was offered.")
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


def _read(workspace: Workspace, path: Path | None, sources: Sequence[str]) -> list[MemoryFile]:
    importer = Importer(workspace)
    if path:
        return read_path(importer, path.expanduser().absolute())
    return read_sources(importer, sources, Path.cwd())


def _by_file(files: Sequence[MemoryFile], found: Sequence[Judged]) -> _Found:
    rest = iter(found)
    return [(file, [next(rest) for _ in file.lines]) for file in files]


def _show(found: _Found) -> None:
    for file, lines in found:
        if file.problem:
            say(file.problem, "yellow")
            continue
        new, known = [one for one in lines if not one.known], Counter(one.known for one in lines if one.known)
        counts = f"{_lines(len(lines))}, {len(new)} new, {_format_known(known)}"
        say(f"{tilde_path(file.path)}: {counts}", "bold")
        for one in new[:SHOWN]:
            say(f"  {one.line.number}: {clip(one.line.text, MAX_LINE)}")
        if len(new) > SHOWN:
            say(f"  … and {len(new) - SHOWN} more new lines", "dim")
    if not found:
        say("Nothing was found: no other tool has a memory on this machine, and this project has no instruction file.")
    elif not any(one for _, lines in found for one in lines if not one.known):
        say("Nothing is new.", "dim")


def _format_known(counts: Mapping[str, int]) -> str:
    """The number of known lines, and that of each kind."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f"{sum(counts.values())} known{f' ({kinds})' if kinds else ''}"


def _lines(count: int) -> str:
    return f"{count} {'line' if count == 1 else 'lines'}"


def _print_done(workspace: Workspace, found: _Found) -> None:
    ids = {one.proposal_id for _, lines in found for one in lines if not one.known}
    there = len(ids & ProposalLog(workspace.lake).standing_on(REVIEW_SURFACE))
    say(f"{_lines(len(ids))} offered, {there} of them in {workspace.settings.review_file} now.", "green")
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
