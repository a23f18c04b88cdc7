"""What is imported once for all the commands of a test run; see `command`.

Nothing of `memory_pipeline` may be here: some of its modules are made from the settings of their process.
"""

from typing import Any

import dagster
import dagster_duckdb
import duckdb
import polars
import pydantic_settings
import rich.progress
import sentence_transformers
import typer
from sqlalchemy import Engine, event

__all__ = [
    "dagster",
    "dagster_duckdb",
    "duckdb",
    "polars",
    "pydantic_settings",
    "rich",
    "sentence_transformers",
    "typer",
]


@event.listens_for(Engine, "connect")
def _without_waiting_for_the_disk(connection: Any, _: object) -> None:
    """Dagster commits a thousand times in a run. What a killed process wrote stays; only a power cut could lose it."""
    connection.execute("PRAGMA synchronous = OFF")
