"""Dagster's event log in SQLite, with open files reused.

Dagster 1.13 creates an engine and opens and closes the file for each event, which takes a third of a run over small
days. The files and their schema stay Dagster's own: its UI and daemon read and write them at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import StaticPool


class ReusingSqliteEventLogStorage(SqliteEventLogStorage):
    """Dagster's storage with one connection to the index and one to the file of the last run."""

    _engines: dict[str, Engine]
    _known_tables: set[str]
    _empty_run = b""
    """The bytes of a new run's file."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> ReusingSqliteEventLogStorage:
        return cls(inst_data=inst_data, **config_value)

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines = {}
        self._known_tables = set()
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if shard not in self._initialized_dbs:
            with super()._connect(shard):  # creates the file
                pass
        with self._db_lock, self._engine_for(shard).connect() as connection, connection.begin():
            yield connection

    def _initdb(self, engine: Engine, for_index_shard: bool = False) -> None:
        """Create the tables of a file; for each run Dagster would read its migrations, which takes .1 s."""
        path = Path(engine.url.database or "")
        is_new_run = path.stem != INDEX_SHARD_NAME and not path.exists()
        if is_new_run and self._empty_run:
            temporary = path.with_suffix(".tmp")
            try:
                temporary.write_bytes(self._empty_run)
                path.hardlink_to(temporary)
            except OSError:  # the UI has created it, or the disk has no hard links
                super()._initdb(engine)
            finally:
                temporary.unlink(missing_ok=True)
            return
        super()._initdb(engine, for_index_shard)
        if is_new_run and not path.with_suffix(".db-wal").exists():  # nobody else has it open
            self._empty_run = path.read_bytes()

    def _engine_for(self, shard: str) -> Engine:
        if shard not in self._engines:
            for run in self._engines.keys() - {INDEX_SHARD_NAME, shard}:
                self._engines.pop(run).dispose()
            self._engines[shard] = _engine(self.conn_string_for_shard(shard))
        return self._engines[shard]

    def has_table(self, table_name: str) -> bool:
        """Whether the index has the table; Dagster queries this for each result of a check in a new connection."""
        if table_name not in self._known_tables and super().has_table(table_name):
            self._known_tables.add(table_name)
        return table_name in self._known_tables

    def dispose(self) -> None:
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()
        super().dispose()


def _engine(url: str) -> Engine:
    """An engine with one connection for all threads; the storage's lock lets one use it at a time."""
    arguments = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
    engine = create_engine(url, poolclass=StaticPool, connect_args=arguments)
    event.listen(engine, "connect", _do_not_wait_for_the_disk)
    return engine


def _do_not_wait_for_the_disk(connection: Any, _: Any) -> None:
    """In WAL mode, a power cut then costs the last events of the log, and a killed process none. The tables of the
    workspace do not depend on them."""
    connection.execute("PRAGMA synchronous=NORMAL")
