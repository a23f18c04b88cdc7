"""`memory admin audit`: the source of each line of a memory file, and its faults."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from memory_pipeline.cli.console import FAILED, MISUSED, AsJson, counted, fail, out, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.operations.audit import CONTRADICTING, KINDS, SECRET, STALE, UNSOURCED, Audit, AuditedLine
from memory_pipeline.operations.audit import audit as audited_file
from memory_pipeline.operations.audit_sources import USER, Source
from memory_pipeline.text.sentences import clip

FAILING = ",".join((SECRET, CONTRADICTING, STALE))
MAX_LINE, MAX_SAID = 160, 120
"""Maximum characters printed of a line and of a quote; --json has all."""
NEVER = "none"


def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A memory file: MEMORY.md, AGENTS.md, CLAUDE.md, …")],
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help=f"Kinds of findings that make the exit code 1, separated by commas: {', '.join(KINDS)}; or {NEVER}.",
        ),
    ] = FAILING,
    as_json: AsJson = False,
) -> None:
    """Check a memory file against the sessions.

    Reports for each line who said it and when, and whether it is a secret, contradicts another line, is stale, is
    repeated or is unsuitable for a memory. The file is only read. The exit code is 1 if a line has a finding of a
    kind in --fail-on, and 2 if the file cannot be audited.
    """
    failing = _kinds(fail_on)
    settings = settings_of_call()
    found = audited_file(settings, file)
    if as_json:
        print_json(_fields(found, failing))
    else:
        _print(found)
    if any(found.count(kind) for kind in failing):
        raise typer.Exit(FAILED)


def _kinds(given: str) -> tuple[str, ...]:
    names = [name.strip().lower() for name in given.split(",") if name.strip()]
    unknown = next((name for name in names if name not in (*KINDS, NEVER)), None)
    if unknown or not names:
        named = f"{unknown!r} is not a kind of finding" if unknown else "--fail-on is empty"
        raise fail(f"{named}; expected some of {', '.join(KINDS)}, or {NEVER}.", MISUSED)
    return tuple(name for name in names if name != NEVER)


def _fields(found: Audit, failing: tuple[str, ...]) -> dict[str, Any]:
    return {
        "file": found.path,
        "messages": found.messages,
        "last_day": found.last_day,
        "fail_on": failing,
        "failed": any(found.count(kind) for kind in failing),
        "counts": {kind: found.count(kind) for kind in KINDS},
        "lines": [
            {
                "line": audited.number,
                "text": audited.text,
                "findings": [finding._asdict() for finding in audited.findings],
                "said": [vars(said) for said in audited.said],
            }
            for audited in found.lines
        ],
    }


def _print(found: Audit) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("line", justify="right")
    for name in ("text", "who said it, and when", "found"):
        table.add_column(name, overflow="fold")
    for audited in found.lines:
        found_in_line = "\n".join(f"{f.kind}: {f.reason}" for f in audited.findings if f.kind != UNSOURCED)
        table.add_row(f"{audited.number}", clip(audited.text, MAX_LINE), _sources(audited), found_in_line)
    out.print(table)
    counts = [f"{number} {kind}" for kind in KINDS if (number := found.count(kind))]
    say(f"\n{counted(len(found.lines), 'line')} of {found.path}: {', '.join(counts) or 'clean'}.")
    if found.messages:
        say(f"Compared with {found.messages:,} messages up to {found.last_day}.", "dim")
    else:
        say("No session has been read, so it is unknown who said what; run `memory run` first.", "yellow")


def _sources(audited: AuditedLine) -> str:
    if audited.said:
        first, *others = audited.said
        more = f" (and {len(others)} more)" if others else ""
        return f"{_describe_source(first)}{more}"
    if audited.proposal_id:
        return f"approved as {audited.proposal_id}"
    return "nobody" if any(finding.kind == UNSOURCED for finding in audited.findings) else ""


def _describe_source(said: Source) -> str:
    who = "you" if said.role == USER else "an agent" if said.role == "assistant" else said.role
    name = f"“{clip(said.session, 40)}”" if said.session else said.session_id
    quote = "" if said.is_verbatim else f": “{clip(said.words, MAX_SAID)}”"
    return f"{said.day} {who}, in {name}{quote}"
