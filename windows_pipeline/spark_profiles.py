"""Named sets of Spark's options, which settings begin with: `profile: local`."""

from __future__ import annotations

from typing import NamedTuple


class Profile(NamedTuple):
    """What settings have where they say nothing else.

    Attributes:
        spark: Spark's configuration; each key of the settings' `spark` wins.
        small_batches: The settings' `small_batches`.
        keep_plans: The settings' `keep_plans`.
    """

    spark: dict[str, str]
    small_batches: dict[str, str]
    keep_plans: bool


_LOCAL = Profile(
    spark={
        "spark.master": "local[*]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "4",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.stats.skipping": "true",
        # The driver lists the day folders of a year faster than a Spark job would.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        # Files of a day are small: dictionaries cost more than they save, except that of keys.
        "spark.hadoop.parquet.enable.dictionary": "false",
        "spark.hadoop.parquet.enable.dictionary#key": "true",
        # Pages that Spark writes have a CRC, which Spark then verifies. Pages that the driver
        # writes have none: they are Gzip, whose checksum every reader verifies.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # A pipeline has more plans than the 100 whose generated code Spark caches by default.
        # Without this, every run or micro-batch would generate and compile code again.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Writing a Delta checkpoint takes as long as several commits; Spark reads 50 small commit
        # files as quickly as 10.
        "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
        # Delta would list a small table's files in the checksum file of each commit, to compare
        # them with the log; for a new table this takes a query.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Steps read their cached data a few times only: compressing it costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # The UI is off: Spark need not format plans for it.
        "spark.sql.ui.explainMode": "simple",
        # Spark would keep the plans of a thousand queries for its UI, which fill a long run's
        # memory.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        # Spark's UI has no password, and listens on every address unless the environment has
        # SPARK_LOCAL_IP=127.0.0.1: docs/security.md.
        "spark.ui.enabled": "false",
        # These start quickly and suit small local work; for much work see docs/settings.md.
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC "
            "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseTransparentHugePages"
        ),
        # With this off, errors do not name the line of Python that made a plan; recording these
        # lines takes half the time of making the plan.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The daemon imports Numba once for all workers; Spark ends workers idle for a minute.
        "spark.python.daemon.module": "windows_pipeline.worker_daemon",
    },
    # Compiling the plans of few records takes longer than running them.
    small_batches={
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        # One task reads Delta's log, or a few files, and one takes the rows of all keys.
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.leafNodeDefaultParallelism": "1",
        # To broadcast the few rows of a join's side takes a job; to sort both sides takes none.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    },
    # Runs of few records cache rows without the plan that made them, which every later query would
    # analyse again; one machine loses no executor, so no row is to be computed again.
    keep_plans=False,
)
PROFILES = {"local": _LOCAL}
"""By name, as settings have it."""
