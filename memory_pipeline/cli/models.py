"""`memory admin models`: lists the embedding models of this machine; the only command that downloads one."""

import sys
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import AsJson, Yes, confirm, print_json, say, say_pair
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.settings import BUNDLED_MODEL
from memory_pipeline.text.embedding_models import facts_of
from memory_pipeline.text.encoder import bundled_folder, missing_model
from memory_pipeline.text.model_store import Stored, fetch, offer_of, stored_models

app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """List the embedding models on this machine and download others.

    They make the vectors by which lines are compared and searched. Language models are set up by `memory setup`.
    """
    if context.invoked_subcommand is not None:
        return
    active = settings_of_call().embedding_model
    folder = bundled_folder()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    stored = [Stored(BUNDLED_MODEL, size, folder), *stored_models()]
    rows: list[dict[str, Any]] = [
        {
            "name": model.name,
            "bytes": model.size,
            "is_active": active in (model.name, model.name.removeprefix("sentence-transformers/")),
            "compares_lines": facts_of(model.name).is_calibrated,
            "folder": f"{model.folder}",
        }
        for model in stored
    ]
    missing = missing_model(active)
    if as_json:
        print_json({"active": active, "problem": missing, "models": rows})
        return
    for row in rows:
        notes = ["set"] * row["is_active"] + ["for search only"] * (not row["compares_lines"])
        say_pair(_megabytes(row["bytes"]), row["name"] + (f" ({', '.join(notes)})" if notes else ""))
    if missing:
        say(missing, "yellow")
    elif not any(row["is_active"] for row in rows):
        say(f"Set: {active}, a folder.")


@app.command("fetch")
def fetch_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name on the Hugging Face hub: OWNER/NAME.")],
    yes: Yes = False,
) -> None:
    """Download an embedding model, after showing its size and licence.

    It goes into the cache of the Hugging Face hub, where other tools also find it. The setting stays the same.
    """
    if name == BUNDLED_MODEL:
        say(f"{BUNDLED_MODEL} is bundled; there is nothing to download.")
        return
    offer = offer_of(name)
    say_pair("model", offer.name)
    say_pair("size", _megabytes(offer.size))
    say_pair("licence", offer.licence or "not stated; check its page before use")
    if not facts_of(offer.name).is_calibrated:
        say(
            "It is used for search only: its threshold for equal lines was not measured, so lines are compared by "
            "words."
        )
    confirm("Download it?", yes, "Nothing was downloaded.")
    folder = fetch(offer, with_progress=sys.stderr.isatty())
    say(f"It is in {folder}. `memory settings set embedding_model {offer.name}` makes the next run use it.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
