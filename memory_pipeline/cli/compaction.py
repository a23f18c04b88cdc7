"""`memory compaction`: what an agent's hook puts in the place of a plain summary. It fails open: whatever is the
matter, it prints nothing, the exit code is 0, and the agent makes a summary of its own."""

import os
import sys
import time
from typing import Annotated

import typer

from memory_pipeline.cli.console import err, print_json
from memory_pipeline.recall.usage import log_use

_BEGAN = time.monotonic()
"""What is imported for it takes of its time too."""


def compaction(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's file, or its id.")],
    first_kept: Annotated[
        str | None, typer.Option(metavar="ID", help="The first entry that stays; what is before it is summarised.")
    ] = None,
    tokens_before: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Size of the context, as the agent counts it.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Time after which what there is must do.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print as pi's hook wants it.")] = False,
) -> None:
    """Print a summary of a session that is being compacted.

    What was observed in it so far, the task and the next step, from its file alone and without a model.
    """
    try:
        from memory_pipeline.recall.compaction import compaction_summary, session_source
        from memory_pipeline.settings import load_settings

        settings = load_settings()
        source = session_source(settings, session)
        left = seconds - (time.monotonic() - _BEGAN)
        found = compaction_summary(settings, source, first_kept=first_kept, tokens_before=tokens_before, seconds=left)
    except Exception as error:  # the agent makes its own summary
        err.print(f"No summary: {error}", style="dim", soft_wrap=True)
        return
    if found is None:
        err.print(f"No summary: the file was not read within {seconds:g} s.", style="dim", soft_wrap=True)
    else:
        if as_json:
            print_json(found.as_json())
        else:
            typer.echo(found.summary, nl=False)
        log_use(settings, "compaction", shown=found.shown)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread that still observes would be waited for by nobody, and keeps Python from ending
