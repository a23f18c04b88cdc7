"""Where Dagster's events go: its SQLite files, written with connections that are kept, many events in a transaction.

Dagster 1.13 opens a connection for each event, and three for one about an asset; over 100 days that took longer than
the days. The files and tables are Dagster's own: an instance without this class reads and writes the same.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import dagster as dg
import sqlalchemy as db
from dagster._core.events import ASSET_EVENTS
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from sqlalchemy.pool import StaticPool

BATCH_VARIABLE = "DAGSTER_EVENT_BATCH_SIZE"
"""By which Dagster decides whether the events of a step's partitions are stored together."""
BATCH = "1000"
KEPT = 4
"""Files whose connection is kept: the index, and those of the latest runs."""


class KeptEventLog(SqliteEventLogStorage):
    """`SqliteEventLogStorage` in `history/runs` of the instance's home: `base_dir`, else `DAGSTER_HOME`.

    Where there is no home (Dagster's own commands in a checkout), in a folder that goes with the instance.
    """

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: dict[str, tuple[db.engine.Engine, tuple[int, int]]] = {}
        self._passing: TemporaryDirectory[str] | None = None
        super().__init__(base_dir, inst_data)

    @classmethod
    def config_type(cls) -> Any:
        return {"base_dir": dg.Field(dg.StringSource, is_required=False)}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Self:
        os.environ.setdefault(BATCH_VARIABLE, BATCH)
        home, passing = config_value.get("base_dir") or os.environ.get("DAGSTER_HOME"), None
        if not home:
            passing = TemporaryDirectory(prefix="dagster-")
            home = passing.name
        made = cls(f"{Path(home, 'history/runs')}", inst_data)
        made._passing = passing
        return made

    @contextmanager
    def _connect(self, shard: str) -> Iterator[db.engine.Connection]:
        with self._db_lock:
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
                self._engines[shard] = engine, _file(self.path_for_shard(shard))
            with engine.connect() as connection, connection.begin():
                yield connection

    def _engine(self, shard: str) -> db.engine.Engine:
        """The kept one, unless its file was removed or replaced meanwhile."""
        path = self.path_for_shard(shard)
        if found := self._engines.pop(shard, None):
            if found[1] == _file(path):
                self._engines[shard] = found  # used last, given up last
                return found[0]
            found[0].dispose()
            self._initialized_dbs.discard(shard)
        while len(self._engines) >= KEPT:
            self._engines.pop(next(iter(self._engines)))[0].dispose()
        # one connection for all threads, which come one after the other: `_db_lock`
        arguments = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
        url = create_db_conn_string(self._base_dir, shard)
        engine = db.create_engine(url, poolclass=StaticPool, connect_args=arguments)
        if shard in self._initialized_dbs:
            self._engines[shard] = engine, _file(path)
        return engine

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """As `store_event` for each, in one transaction for each file."""
        by_run = defaultdict[str, list[EventLogEntry]](list)
        for event in events:
            if event.is_dagster_event and event.dagster_event_type in ASSET_EVENTS:
                by_run[event.run_id].append(event)
            else:
                self.store_event(event)
        insert = SqlEventLogStorageTable.insert()
        for run, found in by_run.items():
            rows = [self._event_to_row(event) for event in found]
            with self.run_connection(run) as connection:
                connection.execute(insert, rows)
            newest = dict[dg.AssetKey | None, tuple[EventLogEntry, int]]()
            with self.index_transaction() as index:
                numbers = [_number(index.execute(insert, row)) for row in rows]
                self._store_asset_event_tags(index, found, numbers)
                for event, number in zip(found, numbers, strict=True):
                    newest[event.get_dagster_event().asset_key] = event, number
                for event, number in newest.values():
                    self._store_asset_event(index, event, number)

    def dispose(self) -> None:
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1][0].dispose()
        super().dispose()
        if self._passing:
            self._passing.cleanup()


def _number(stored: db.engine.CursorResult[Any]) -> int:
    assert stored.inserted_primary_key is not None  # the table counts its rows itself
    return int(stored.inserted_primary_key[0])


def _file(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - at every event
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
