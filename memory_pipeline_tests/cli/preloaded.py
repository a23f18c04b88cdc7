"""What is imported and computed once for all the commands of a test run; see `command`.

`memory_pipeline.defs` and what imports it must not be here: its partitions are made from the settings of its process.
No function of polars may run here either, as the threads that it starts do not survive a fork.
"""

import gc
import pkgutil
import sys
from importlib import import_module

import dagster  # noqa: F401
import dagster_duckdb  # noqa: F401
import pydantic_ai.models.openai  # noqa: F401
import rich.progress  # noqa: F401
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.runs import sqlite as runs
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION, get_alembic_config

import memory_pipeline
from memory_pipeline.text import phrases
from memory_pipeline.text.languages.identify import language_of
from memory_pipeline_tests import disk  # noqa: F401 - for what its import does

NOT_HERE = ("defs", "definitions", "cli", "web", "examples")


def _import_the_library() -> None:
    for module in pkgutil.iter_modules(memory_pipeline.__path__, "memory_pipeline."):
        if module.name.rpartition(".")[2] not in NOT_HERE:
            found = import_module(module.name)
            for inner in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{module.name}."):
                if ".kit" not in inner.name:
                    import_module(inner.name)
    import_module("memory_pipeline.cli.main")
    early = [name for name in sys.modules if name.startswith(("memory_pipeline.defs.", "memory_pipeline.definitions"))]
    assert not early, f"made from the settings of a process, and imported by all: {early}"


def _compile_the_phrases() -> None:
    for language in phrases.LANGUAGES:
        cues = phrases.load(language)
        for role in phrases.Cues.__annotations__:
            getattr(cues, role)
    language_of("Never deploy on a Friday, because nobody is there to watch it.")


def _read_the_migrations_of_dagster_once() -> None:
    """A run makes eight databases of Dagster, which would read its migrations for each of them more than once."""
    scripts = ScriptDirectory.from_config(get_alembic_config(runs.__file__))
    scripts.get_current_head()

    def from_config(config: Config) -> ScriptDirectory:
        assert config.get_main_option("script_location") == ALEMBIC_SCRIPTS_LOCATION
        return scripts

    ScriptDirectory.from_config = from_config  # type: ignore[method-assign, assignment]


_import_the_library()
_compile_the_phrases()
_read_the_migrations_of_dagster_once()
gc.freeze()
