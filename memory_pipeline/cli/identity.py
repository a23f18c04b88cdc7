"""`memory admin identity`: checks that agents find their identity files."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import FAILED, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.days import today
from memory_pipeline.operations.identity import NOT_SET, CheckedPath, look_at_identity


def identity(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Check the identity files of your agents.

    Lists the files in the order in which they are read, with their links. The exit code is 1 if one is broken.
    """
    settings = settings_of_call()
    found = look_at_identity(settings, today(settings.zone))
    if as_json:
        files, links = (found.files, found.links) if found else ((), ())
        print_json({"is_set": found is not None, "files": [*map(_fields, files)], "links": [*map(_fields, links)]})
    elif found is None:
        say(NOT_SET, "dim")
    else:
        for number, looked in enumerate(found.files, 1):
            say(f"{number}. {looked.line}", "red" if looked.is_broken else "")
        for looked in found.links:
            say(f"-> {looked.line}", "red" if looked.is_broken else "")
        if not found.links:
            say("No links are checked; MEMORY_IDENTITY_LINKS names them.", "dim")
    if found and found.broken:
        raise typer.Exit(FAILED)


def _fields(looked: CheckedPath) -> dict[str, object]:
    names = ("path", "state", "is_broken", "detail", "remedy")
    return {name: getattr(looked, name) for name in names}
