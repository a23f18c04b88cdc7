"""The `memory` command."""

import typer

from memory_pipeline.cli import review, run, sql, status, ui, why

app = typer.Typer(
    help="Durable memory from the transcripts of your coding agents, reviewed by you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals may hold what was said
)
app.command()(run.run)
app.command()(status.status)
app.command()(review.review)
app.command()(why.why)
app.command()(sql.sql)
app.command()(ui.ui)

if __name__ == "__main__":
    app()
