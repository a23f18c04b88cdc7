"""`memory admin`: the upkeep of a workspace."""

import typer

from memory_pipeline.cli import commands

app = typer.Typer(cls=commands.LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def admin() -> None:
    """Manage the index, models, archive, identity and service."""


commands.add_placeholders(app, commands.ADMIN)
