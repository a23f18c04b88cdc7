"""`memory admin`: maintenance and sharing of a workspace."""

import typer

from memory_pipeline.cli import commands

app = typer.Typer(cls=commands.LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def admin() -> None:
    """Upkeep and sharing: index, service, report, audit, push."""


commands.add_placeholders(app, commands.ADMIN)
