"""What is imported once for all the commands of a test run; see `command`.

Nothing of `memory_pipeline` may be here: some of its modules are made from the settings of their process.
"""

import sqlite3
from typing import Any

import dagster  # noqa: F401
import dagster_duckdb  # noqa: F401
import pydantic_ai.models.openai  # noqa: F401
import rich.progress  # noqa: F401
import sentence_transformers  # noqa: F401
import torch
from sqlalchemy import Engine, event

torch.set_num_threads(1)  # the other cores have tests of their own


@event.listens_for(Engine, "connect")
def _without_waiting_for_the_disk(connection: Any, _: object) -> None:
    """Dagster commits a thousand times in a run. What a killed process wrote stays; only a power cut could lose it."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
