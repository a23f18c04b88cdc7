"""The workspace and the session directories of a command.

The settings are passed through the environment, as Dagster's processes read them there too.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import memory_pipeline
from memory_pipeline.cli.console import err
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.settings.marks import FORMAT, stored_format

EXAMPLES = Path(memory_pipeline.__file__).parent / "examples"
"""The installed examples. They are read from a copy, because an installation may be moved or removed while tables refer
to its files."""
EXAMPLE_PROJECT = "parcel-tracker"
"""The project of the examples."""
EXAMPLE_STORY = """
Mira, of the examples, had to say “use uv add” on three days. Try what comes of it:
  memory review --approve p-20260302-004                    approve that rule
  memory context                                            see what her next session starts with
  memory recall "how many days are tracking events kept"    ask; Thursday's answer amends Monday's
"""


def settings_of_call(sessions: Sequence[Path] = ()) -> Settings:
    """The settings, with only these session directories if any are given."""
    if sessions:
        os.environ["MEMORY_SESSION_DIRS"] = os.pathsep.join(map(str, sessions))  # made absolute by the settings
        os.environ["MEMORY_DEFAULT_SESSION_DIRS"] = "false"
    settings = load_settings()
    return migrated(settings)


def migrated(settings: Settings) -> Settings:
    """The settings, after migrating a workspace of an earlier version."""
    if stored_format(settings.workspace) < FORMAT and settings.lake_dir.is_dir():
        from memory_pipeline.operations.migrations import migrate

        migrate(settings)
    return settings


def use_examples(settings: Settings) -> Settings:
    """The settings of a separate workspace with the bundled examples, so that they never mix with a user's memory."""
    own = _example_settings(settings)
    os.environ["MEMORY_WORKSPACE"] = str(own.workspace)
    if own.lake:
        os.environ["MEMORY_LAKE"] = own.lake
    os.environ.setdefault("MEMORY_TIMEZONE", "UTC")  # one example spans midnight there
    return settings_of_call([_copied_examples(own.workspace / "sessions")])


def _copied_examples(folder: Path) -> Path:
    """The folder with a copy of the examples, created once and atomically."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".examples-") as temporary:
            copy = shutil.copytree(EXAMPLES, Path(temporary) / folder.name)
            for path in (copy, *copy.rglob("*")):  # a workspace is private, unlike an installation
                path.chmod(path.stat().st_mode & 0o700)
            try:
                copy.rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process was faster
                    raise
    return folder


def _has_been_run(settings: Settings) -> bool:
    from memory_pipeline.lake.storage import storage_of

    return storage_of(settings).is_begun("sessions")


def _example_settings(settings: Settings) -> Settings:
    lake = settings.lake and f"{settings.lake.rstrip('/')}/examples"
    return settings.model_copy(update={"workspace": settings.workspace / "examples", "lake": lake})


def active_settings() -> Settings:
    """The settings of the workspace with data: that of the examples while there is no other."""
    settings = settings_of_call()
    if not _has_been_run(settings) and _has_been_run(_example_settings(settings)):
        err.print("Showing the bundled examples: no session of yours has been read yet.", style="dim")
        return use_examples(settings)
    return settings


def shown_model(settings: Settings, model: str | None) -> str | None:
    """The printable name of the model: a command is redacted, as its arguments may contain a key."""
    if not model or len(model.split()) == 1:
        return model
    from memory_pipeline.redaction import redactor_of

    return redactor_of(settings).redact(model)
