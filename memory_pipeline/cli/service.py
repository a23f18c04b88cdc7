"""`memory admin service`: the UI, sensors and schedules whenever you are logged in."""

import shlex
import shutil
import subprocess
from typing import Annotated

import typer

from memory_pipeline.cli.console import FAILED, Yes, confirm, err, fail, say, say_pair, show_change, unless_unwritable
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.service import Service, service_of, variables_not_carried

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Port = Annotated[int, typer.Option(metavar="PORT", help="Port of the UI on 127.0.0.1.", min=1, max=65_535)]
SECONDS = 60


@app.callback()
def service() -> None:
    """Run the UI, sensors and schedules while you are logged in."""


@app.command()
def install(port: Port = 3000, yes: Yes = False) -> None:
    """Write the service's file and start it; both are shown first."""
    made = _service(port)
    new = made.content.encode()
    with unless_unwritable(made.file):
        old = made.file.read_bytes() if made.is_installed else None
        show_change(made.file, old, new)
        for command in made.start:
            say_pair("then", shlex.join(command))
        settings, keys = variables_not_carried(made)
        if settings:
            say(f"The service does not see {', '.join(settings)}; `memory settings set` stores a setting.", "yellow")
        if keys:
            how = "if the service needs one, configure it in systemd or launchd yourself"
            say(
                f"The service does not see {', '.join(keys)}, because keys are not written into its file; {how}.",
                "yellow",
            )
        confirm("Apply this change?", yes)
        write_atomically(made.file, new, expected=old, backups=None)
    _run(made.start)
    say(f"Installed: http://127.0.0.1:{port}. Its output: `{made.log}`. `memory admin service uninstall` undoes it.")


@app.command()
def uninstall(yes: Yes = False) -> None:
    """Stop the service and remove its file."""
    made = _service(3000)
    if not made.is_installed:
        raise fail(f"No service is installed: there is no {made.file}.")
    for command in made.stop:
        say_pair("first", shlex.join(command))
    say_pair("then deleted", made.file)
    confirm("Apply this change?", yes)
    _run(made.stop)
    with unless_unwritable(made.file):
        made.file.unlink(missing_ok=True)
    say("The service is removed.")


@app.command()
def status() -> None:
    """Show whether the service is installed and where its output is."""
    made = _service(3000)
    if not made.is_installed:
        say(f"No service is installed: there is no {made.file}. `memory admin service install` creates one.")
        raise typer.Exit(FAILED)
    say_pair("file", made.file)
    say_pair("output", made.log)


def _service(port: int) -> Service:
    return service_of(active_settings(), port)


def _run(commands: tuple[tuple[str, ...], ...]) -> None:
    """Run the commands and show their output. Errors are ignored: without a session of the service manager the file
    takes effect later."""
    for command in commands:
        if shutil.which(command[0]) is None:
            err.print(f"{command[0]} was not found; run `{shlex.join(command)}` where it is installed.", style="yellow")
            continue
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            err.print(f"`{shlex.join(command)}` did not end within {SECONDS} s.", style="yellow")
            continue
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            err.print(f"`{shlex.join(command)}` failed: {said or done.returncode}", style="yellow", soft_wrap=True)
