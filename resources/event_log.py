"""Dagster's SQLite event log, quick enough for runs over years of days."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import local
from typing import Any, Self

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import QueuePool

# How many of a range's events Dagster hands over at once; by default one.
os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "400")


class BatchedEventLogStorage(SqliteEventLogStorage):
    """Keeps the engine of each database, and stores a range's events in one transaction.

    Dagster makes an engine for each statement, and an engine compiles a statement once: most
    of the time of a run over a year of days, some 5,000 events, went into compiling them anew.
    The databases are Dagster's own, so either class can go on with them.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        """Keeps the databases under `base_dir`."""
        self._open = local()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Makes one as dagster.yaml says."""
        return cls(inst_data=inst_data, **config_value)

    def store_event(self, event: dg.EventLogEntry) -> None:
        """Stores an event."""
        super().store_event(event)
        if not hasattr(self._open, "connections"):
            self._tell_watchers(event.run_id)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Stores the events; all of them, or none where one fails."""
        if len({event.run_id for event in events}) > 1:
            super().store_event_batch(events)
            return
        run_id = events[0].run_id
        with self._db_lock, self._begun(run_id) as run, self._begun(INDEX_SHARD_NAME) as index:
            self._open.connections = {run_id: run, INDEX_SHARD_NAME: index}
            try:
                super().store_event_batch(events)
            finally:
                del self._open.connections
        self._tell_watchers(run_id)

    def _tell_watchers(self, run_id: str) -> None:
        # A run's page follows the run's file, which SQLite writes when the last connection closes.
        os.utime(self.path_for_shard(run_id))

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        of_batch = getattr(self._open, "connections", {}).get(shard)
        if of_batch is not None:
            yield of_batch
            return
        with self._db_lock, self._begun(shard) as connection:
            yield connection

    @contextmanager
    def _begun(self, shard: str) -> Iterator[Connection]:
        engine = _engine(self.conn_string_for_shard(shard))
        if shard not in self._initialized_dbs:
            self._initdb(engine)
            self._initialized_dbs.add(shard)
        with engine.connect() as connection, connection.begin():
            yield connection


@lru_cache(maxsize=64)
def _engine(url: str) -> Engine:
    # One connection stays open: closing the last one has SQLite fold its log into the file.
    timeout = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
    return create_engine(url, poolclass=QueuePool, pool_size=1, connect_args=timeout)
