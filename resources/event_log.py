"""Dagster's SQLite event log, quick enough for runs over years of days."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import local
from typing import Any, NamedTuple, Self

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import QueuePool

# How many of a range's events Dagster hands over at once; by default one.
os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "400")


class _Batch(NamedTuple):
    """The connections of a batch by shard, and the newest event of each asset and type."""

    connections: dict[str, Connection]
    newest: dict[tuple[dg.AssetKey | None, str], tuple[dg.EventLogEntry, int]]


class BatchedEventLogStorage(SqliteEventLogStorage):
    """Keeps the engine of each database, and stores a range's events in one transaction.

    Dagster makes an engine for each statement, and an engine compiles a statement once: most
    of the time of a run over a year of days, some 5,000 events, went into compiling them anew.
    For each event it also asks which tables and columns there are, and writes its asset's row
    again, which keeps no event but the newest. The databases are Dagster's own, so either class
    can go on with them.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        """Keeps the databases under `base_dir`."""
        self._open = local()
        self._tables_seen: set[str] = set()
        self._index_columns_seen = False
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
        if not hasattr(self._open, "batch"):
            self._tell_watchers(event.run_id)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Stores the events; all of them, or none where one fails."""
        if len({event.run_id for event in events}) > 1:
            super().store_event_batch(events)
            return
        run_id = events[0].run_id
        with self._db_lock, self._begun(run_id) as run, self._begun(INDEX_SHARD_NAME) as index:
            batch = self._open.batch = _Batch({run_id: run, INDEX_SHARD_NAME: index}, {})
            try:
                super().store_event_batch(events)
            finally:
                del self._open.batch
            for event, event_id in batch.newest.values():
                super()._store_asset_event(index, event, event_id)
        self._tell_watchers(run_id)

    def has_table(self, table_name: str) -> bool:
        """Whether a table is there; Dagster takes none away."""
        if table_name not in self._tables_seen and super().has_table(table_name):
            self._tables_seen.add(table_name)
        return table_name in self._tables_seen

    def _has_asset_key_index_cols_on_connection(self, conn: Connection) -> bool:
        seen = self._index_columns_seen or super()._has_asset_key_index_cols_on_connection(conn)
        self._index_columns_seen = seen
        return seen

    def _store_asset_event(self, conn: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        batch: _Batch | None = getattr(self._open, "batch", None)
        if batch is None:
            super()._store_asset_event(conn, event, event_id)
            return
        # The order is that of the newest ones: what two types tell is the later one's.
        told = event.get_dagster_event()
        kind = (told.asset_key, told.event_type_value)
        batch.newest.pop(kind, None)
        batch.newest[kind] = (event, event_id)

    def _tell_watchers(self, run_id: str) -> None:
        # A run's page follows the run's file, which SQLite writes when the last connection closes.
        os.utime(self.path_for_shard(run_id))

    def _store_asset_check_evaluation_planned(
        self, event: dg.EventLogEntry, event_id: int | None
    ) -> None:
        planned = event.get_dagster_event().asset_check_planned_data
        subset = planned.partitions_subset
        days = [] if subset is None else [*subset.get_partition_keys()]
        if not days:
            super()._store_asset_check_evaluation_planned(event, event_id)
            return
        row = {
            "asset_key": planned.asset_key.to_string(),
            "check_name": planned.check_name,
            "run_id": event.run_id,
            "execution_status": AssetCheckExecutionRecordStatus.PLANNED.value,
            "evaluation_event": dg.serialize_value(event),
            "evaluation_event_timestamp": self._event_insert_timestamp(event),  # type: ignore[no-untyped-call]
            "evaluation_event_storage_id": event_id,
        }
        with self.index_connection() as connection:
            # One statement for all of them would be compiled anew, a value after another.
            connection.execute(
                AssetCheckExecutionsTable.insert(), [{**row, "partition": day} for day in days]
            )

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        batch: _Batch | None = getattr(self._open, "batch", None)
        if batch is not None and shard in batch.connections:
            yield batch.connections[shard]
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
