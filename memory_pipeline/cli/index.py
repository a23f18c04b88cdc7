"""`memory admin index`: the search index and its rebuild."""

import shutil
from pathlib import Path

import typer

from memory_pipeline.cli.console import AsJson, Yes, confirm, err, print_json, say, say_pair
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, IndexUnavailableError
from memory_pipeline.embeddings.opening import (
    collection_name,
    left_over,
    open_collection,
    remove_collections,
    searched_collection,
)
from memory_pipeline.settings import Settings

app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)
LOOK_SECONDS = 2.0
BASES = {MESSAGES: "what was said", COLLECTION: "observations, segments, reflections"}


@app.callback()
def index(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the search index and rebuild it.

    The index holds words and vectors of the tables and can always be rebuilt from them. Without a command, its
    collections and leftovers of earlier ones are shown.
    """
    if context.invoked_subcommand is not None:
        return
    settings = active_settings()
    rows = [_row(settings, base) for base in BASES]
    old = {f"{folder}": _bytes(folder) for folder in left_over(settings)}
    if as_json:
        print_json({"collections": rows, "left_over": [{"folder": name, "bytes": size} for name, size in old.items()]})
        return
    for row in rows:
        say(BASES[f"{row['base']}"])
        for name in ("searched", "model", "points", "megabytes", "problem"):
            if row[name] is not None:
                say_pair(f"  {name}", row[name])
    for name, size in old.items():
        say(f"Left over: {name}, {size // 10**6} MB; `memory admin index rebuild` deletes it.")


@app.command()
def rebuild(yes: Yes = False) -> None:
    """Delete the index and rebuild it, newest day first.

    Leftovers of other models and versions are deleted too. If it is interrupted, `memory run --all` completes it.
    """
    from memory_pipeline.embeddings import messages
    from memory_pipeline.workspace.workspace import Workspace

    settings = active_settings()
    old = left_over(settings)
    for folder in old:
        say(f"Deletes {folder}")
    say(f"Rebuilds: {', '.join(collection_name(settings, base, settings.embedding_model, '*') for base in BASES)}")
    confirm("Continue?", yes)
    for base in BASES:
        remove_collections(settings, base)
    for folder in old:
        shutil.rmtree(folder)
    opened = Workspace.open(settings)
    days = sorted(opened.lake.days("messages"), reverse=True)
    messages.rebuild(opened, days, lambda day: err.print(f"{day}", style="dim"))
    say(f"{len(days)} days are indexed.")


def _row(settings: Settings, base: str) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(("searched", "model", "points", "megabytes", "problem"))
    row["base"] = base
    if (found := searched_collection(settings, base)) is None:
        return row | {"problem": "nothing is indexed yet; `memory run` indexes it"}
    row |= {"searched": found.name, "model": found.model}
    folder = settings.index_dir / found.name
    if not settings.qdrant.url:
        row["megabytes"] = _bytes(folder) // 10**6
    try:
        opened = open_collection(settings, found.name, found.dimension, LOOK_SECONDS, create=False)
        row["points"] = opened.count()
        opened.close()
    except IndexUnavailableError as error:
        row["problem"] = f"{error}"
    return row


def _bytes(folder: Path) -> int:
    """Bytes on disk: the engine reserves files much larger than their content."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
