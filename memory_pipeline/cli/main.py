"""The `memory` command."""

import typer

from memory_pipeline.cli import review, run, sql, status, ui, why
from memory_pipeline.cli.console import fail
from memory_pipeline.lake import DamagedTable
from memory_pipeline.stage import TryAgainLater

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


def main() -> None:
    """Run the command; what a person can mend is a sentence, everything else a traceback."""
    try:
        app()
    except (DamagedTable, TryAgainLater) as error:
        raise SystemExit(fail(str(error)).exit_code) from None


if __name__ == "__main__":
    main()
