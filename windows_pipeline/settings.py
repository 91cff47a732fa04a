"""Where things lie and how Spark runs: settings.yaml, never an edit of code."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from windows_pipeline.settings_problems import report
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.problems import ConfigError
from windows_pipeline.text.yaml_text import read_yaml

__all__ = [
    "DELTA_PACKAGE",
    "KAFKA_PACKAGE",
    "SETTINGS_VARIABLE",
    "Settings",
    "SettingsError",
    "load_settings",
    "resolve",
]

SETTINGS_VARIABLE = "WINDOWS_PIPELINE_SETTINGS"
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
_FEW_RECORDS = 10_000
"""So many take longer to compile plans for than to run without."""
# Spark ships all of these; the POMs of Delta and of Spark's Kafka connector name them again.
_EXCLUDES = (
    "at.yawk.lz4:*,com.*:*,commons-*:*,io.airlift:*,io.unitycatalog:*,javax.*:*,"
    "org.apache.hadoop:*,org.apache.parquet:*,org.apache.spark:spark-tags_*,"
    "org.roaringbitmap:*,org.scala-lang*:*,org.slf4j:*,org.xerial.snappy:*"
)
_SECRETS = (("spark",), ("small_batches",))
"""Passwords and tokens are among their values; no error shows what stands below."""
_IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")


class SettingsError(Exception):
    """The settings file is missing or wrong; the message says where and the cure."""


class Settings(BaseModel):
    """The settings of one installation.

    Attributes:
        warehouse: The folder or object-store URI that holds every table.
        pipelines: The folder of pipeline files.
        landing: What a source's relative path is relative to.
        arrival_ranges: How many tasks sort by arrival what a run ingests from landed files, or a
            micro-batch from files; None for one a unit and source partition (of a stream without
            an arrival column: a file), which is quicker while these are small, and for as many as
            the landed files' sizes ask for where one has more than 100 MB.
        packages: What else Spark loads, as `organisation:module:version` of a Maven repository:
            `KAFKA_PACKAGE` to read topics. Spark fetches them once, when it starts.
        spark: Spark's own configuration, by its own keys; `spark.master` or `spark.remote`
            says where it runs.
        small_batches: Spark SQL's configuration for runs and micro-batches of few records.
        keep_plans: Whether runs of few records, too, keep rows with the plan that made them: such
            rows can be computed again where an executor is lost, and each query takes longer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    warehouse: str
    pipelines: Path
    landing: str
    arrival_ranges: PositiveInt | None = None
    packages: tuple[str, ...] = ()
    spark: dict[str, str]
    small_batches: dict[str, str] = {}
    keep_plans: bool = True

    def spark_conf(self) -> dict[str, str]:
        """Spark's configuration with what Delta and the engine need.

        Over Spark Connect the server has its own; only the time zone is set by session.
        """
        needed = {"spark.sql.session.timeZone": "UTC"}
        if "spark.remote" in self.spark:
            return {**self.spark, **needed}
        delta = {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.jars.packages": ",".join([DELTA_PACKAGE, *self.packages]),
            "spark.jars.excludes": _EXCLUDES,
            "spark.jars.ivySettings": _IVY_SETTINGS.as_uri(),
            "spark.jars.ivy": str(Path.home() / ".ivy2-windows-pipeline"),
            "spark.app.name": "windows-pipeline",
            # Spark's default, which it writes as a URI: a blank would become %20 in a new folder.
            "spark.sql.warehouse.dir": str(Path.cwd() / "spark-warehouse"),
        }
        return {**delta, **self._of_local_master(), **self.spark, **needed}

    def _of_local_master(self) -> dict[str, str]:
        """What keeps the driver of a local master off the network, and its files private.

        Spark would let whoever reaches the machine's address speak to the driver, without a
        secret, and would show its UI on every address. Hadoop would make a stream's checkpoint
        readable by every user.
        """
        master = self.spark.get("spark.master", "")
        if not master.startswith("local"):
            return {}
        address = "127.0.0.1"
        # Spark draws a secret by itself where executors are no processes of their own.
        authenticated = "false" if master.startswith("local-cluster") else "true"
        return {
            "spark.authenticate": authenticated,
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.ui.enabled": "false",
            "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",
        }

    def conf_for(self, records: int) -> dict[str, str]:
        """What to set of Spark SQL for a run that brings, or a micro-batch that reads, so many."""
        return self.small_batches if records <= _FEW_RECORDS else {}

    def keeps_plans(self, records: int) -> bool:
        """Whether a run that brings so many records keeps rows with the plan that made them."""
        return self.keep_plans or records > _FEW_RECORDS


def load_settings(root: Path) -> Settings:
    """Reads the settings named by WINDOWS_PIPELINE_SETTINGS, else `settings.yaml` in root.

    Relative paths in it are relative to the file's folder.

    Raises:
        SettingsError: The file is missing, or has an unknown or wrong field.
    """
    path = Path(os.environ.get(SETTINGS_VARIABLE, root / "settings.yaml")).resolve()
    if not os.path.lexists(path):
        cure = f"write one, or name it in {SETTINGS_VARIABLE}"
        raise SettingsError(f"{path}: there is no settings file; {cure}")
    try:
        settings = _read_settings(path)
    except ConfigError as error:
        raise SettingsError(str(error)) from None
    return settings.model_copy(
        update={
            "warehouse": resolve(settings.warehouse, path.parent),
            "landing": resolve(settings.landing, path.parent),
            "pipelines": path.parent / settings.pipelines,
        }
    )


def _read_settings(path: Path) -> Settings:
    """The settings as the file has them.

    Raises:
        ConfigError: All that is wrong in the file, without its values.
    """
    document = read_yaml(path, "the settings, such as 'warehouse: warehouse'", _SECRETS)
    try:
        settings = Settings.model_validate(document.data)
    except ValidationError as error:
        report(document, error.errors(), Settings.model_fields)
    if document.problems:
        raise ConfigError(document.problems)
    return settings


def _umask() -> int:
    """The process's umask, which Python reads only as it sets another."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
