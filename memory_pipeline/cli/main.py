"""The `memory` command."""

import typer
from filelock import Timeout

from memory_pipeline.cli import archive, estimate, identity, log, review, run, settings, sql, status, ui, why
from memory_pipeline.cli.console import err, fail
from memory_pipeline.errors import CannotGoOn, TryAgainLater
from memory_pipeline.lake.store import DamagedTable
from memory_pipeline.llm.own_sessions import is_inside
from memory_pipeline.markdown.safe_write import ChangedMeanwhile

app = typer.Typer(
    help="Durable memory from the transcripts of your coding agents, reviewed by you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals may hold what was said
)
app.command()(run.run)
app.command()(estimate.estimate)
app.command()(status.status)
app.command()(review.review)
app.command()(why.why)
app.command()(log.log)
app.command()(sql.sql)
app.command()(archive.archive)
app.command()(identity.identity)
app.add_typer(settings.app, name="settings")
app.command()(ui.ui)


def main() -> None:
    """Run the command; what a person can mend is a sentence, everything else a traceback."""
    if is_inside():  # started by a hook of the harness that the pipeline itself has called
        err.print("Not started: a model command of the pipeline is above this one.", style="dim")
        return
    try:
        app()
    except (DamagedTable, TryAgainLater, CannotGoOn, ChangedMeanwhile, Timeout) as error:
        raise SystemExit(fail(str(error)).exit_code) from None
    except OSError as error:
        if not error.filename:
            raise
        sentence = f"{error.filename}: {(error.strerror or 'cannot be used').lower()}. Mend that and run it again."
        raise SystemExit(fail(sentence).exit_code) from None


if __name__ == "__main__":
    main()
