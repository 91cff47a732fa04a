"""Dagster's SQLite event log, quick enough for runs over years of days."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self

from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import QueuePool


class KeptEnginesEventLogStorage(SqliteEventLogStorage):
    """Keeps the engine of each database, where Dagster makes one for each statement.

    An engine compiles a statement once. A run over a year of days stores some 3,000 events,
    twice each; most of that time went into compiling them anew. The databases are Dagster's
    own, so either class can go on with them.
    """

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Makes one as dagster.yaml says."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
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
