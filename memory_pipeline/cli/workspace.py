"""Which workspace and which session directories a command works on.

The settings go through the environment, because Dagster's processes read them there too.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import memory_pipeline
from memory_pipeline.cli.console import MISUSED, err, one_sentence
from memory_pipeline.settings import Settings, WrongSetting, load_settings

EXAMPLES = Path(memory_pipeline.__file__).parent / "examples"


def settings_of_call(sessions: Sequence[Path] = ()) -> Settings:
    """The settings, with only these session directories when some are named."""
    if sessions:
        os.environ["MEMORY_SESSION_DIRS"] = os.pathsep.join(map(str, sessions))  # made absolute there
        os.environ["MEMORY_DEFAULT_SESSION_DIRS"] = "false"
    with one_sentence(WrongSetting, code=MISUSED):
        return load_settings()


def use_examples(settings: Settings) -> Settings:
    """The bundled examples in a workspace of their own, so that they never mix with a person's memory."""
    os.environ["MEMORY_WORKSPACE"] = str(examples_workspace(settings))
    os.environ.setdefault("MEMORY_TIMEZONE", "UTC")  # one example runs over midnight there
    return settings_of_call([EXAMPLES])


def examples_workspace(settings: Settings) -> Path:
    return settings.workspace / "examples"


def _has_been_run(workspace: Path) -> bool:
    return (workspace / "lake" / "sessions").exists()


def active_settings() -> Settings:
    """The settings of the workspace that has something to show: the examples' as long as there is nothing else."""
    settings = settings_of_call()
    if not _has_been_run(settings.workspace) and _has_been_run(examples_workspace(settings)):
        err.print("Showing the bundled examples: no session of yours has been read yet.", style="dim")
        return use_examples(settings)
    return settings
