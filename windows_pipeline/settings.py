"""Settings of an installation, read from settings.yaml: locations and Spark's configuration."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from windows_pipeline.settings_problems import report
from windows_pipeline.spark_profiles import PROFILES
from windows_pipeline.text.locations import resolve, use_storage_options, whole_location
from windows_pipeline.text.problems import ConfigError, RefusedError
from windows_pipeline.text.references import ReferringText, refers, resolved
from windows_pipeline.text.yaml_text import read_yaml
from windows_pipeline.tuning import Tuning

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
# Spark ships all of these, but the POMs of Delta and of Spark's Kafka connector list them again.
_EXCLUDES = (
    "at.yawk.lz4:*,com.*:*,commons-*:*,io.airlift:*,io.unitycatalog:*,javax.*:*,"
    "org.apache.hadoop:*,org.apache.parquet:*,org.apache.spark:spark-tags_*,"
    "org.roaringbitmap:*,org.scala-lang*:*,org.slf4j:*,org.xerial.snappy:*"
)
_SECRETS = (("spark",), ("small_batches",), ("storage_options",))
"""Fields that may hold passwords and tokens; no error shows a value below these fields."""
_SETTINGS_FILE = "the settings, such as 'warehouse: warehouse'"
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOCATIONS = {"warehouse", "pipelines", "landing", "dagster_home", "ui_url"}
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_SHOWN_BY_SPARK = re.compile(
    r"^spark\.(?:(?:driver|executor)\.(?:extra|default)JavaOptions$|app\.name$"
    r"|databricks\.delta\.properties\.defaults\.)"
)
"""Keys whose values Spark shows in command lines, in its UI, or in tables' properties."""
_NOT_PRIVATE = (
    "refers to the environment, but Spark shows this key's value in the command line of a process, "
    "its UI or the properties of tables; write the value itself, which must be no secret"
)
# Reading many columns is a generated method of over 8,000 bytes, which HotSpot only interprets.
_JAVA_OPTIONS = "-XX:+IgnoreUnrecognizedVMOptions -XX:-DontCompileHugeMethods"
_IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")


class SettingsError(RefusedError):
    """The settings file is missing or wrong; the message has the line, the field and the fix."""


class NoSettingsError(SettingsError):
    """There is no settings file."""


def _web_address(value: str) -> str:
    if not _WEB_ADDRESS.fullmatch(value):
        raise ValueError(
            "is not an address; write the one that a browser opens, without a query, such as "
            "http://127.0.0.1:3000"
        )
    return value.rstrip("/")


class Settings(BaseModel):
    """The settings of one installation.

    Values of `spark`, `small_batches`, `packages` and `storage_options` may refer to environment
    variables, and are texts with these references: `spark_conf`, `conf_for` and
    `text.locations.storage_options` have the variables' values.

    Attributes:
        warehouse: The folder or object-store URI that holds every table.
        pipelines: The folder of pipeline files.
        landing: The folder or URI that relative paths of sources start at.
        storage_options: How deltalake reaches the tables of a warehouse that is a URI, without
            Spark, by deltalake's own keys; None if only Spark reads them.
        arrival_ranges: How many tasks sort the records of a run or micro-batch by arrival. By
            default one task per arrival unit and source partition, or more where one of these has
            more than 100 MB; in a stream without an arrival column one task per file.
        dagster_home: The folder of the Dagster instance that commands report to, if the environment
            has no DAGSTER_HOME. None for no report.
        ui_url: The address of Dagster's UI, for the links in messages; None for no links.
        packages: More packages for Spark to load, as `organisation:module:version` of a Maven
            repository: `KAFKA_PACKAGE` to read topics. Spark downloads them once, at its start.
        modules: The Python files whose code pipelines may name (`my_module:spread`). The
            settings name them without '.py'; they lie in the settings file's folder.
        commands: The programs that targets of notifications may run, as pipelines' files name them:
            a path, or a name that is looked for in PATH.
        profile: The options that `spark`, `small_batches` and `keep_plans` begin with; none if
            left out.
        spark: Spark's configuration, by Spark's keys; `spark.master` or `spark.remote` selects
            where Spark runs. A key wins over that of the profile.
        small_batches: Spark SQL's configuration for runs and micro-batches of few records.
        keep_plans: Whether small runs, too, cache rows with the plan that made them, as large runs
            always do. With the plan, Spark can recompute the rows of a lost executor, but every
            query takes longer.
        tuning: How much work the engine takes at once; results do not depend on it. Only code can
            set it, a settings file cannot.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    warehouse: Annotated[str, AfterValidator(whole_location)]
    pipelines: Path
    landing: Annotated[str, AfterValidator(whole_location)]
    storage_options: dict[str, ReferringText] | None = None
    arrival_ranges: PositiveInt | None = None
    dagster_home: Path | None = None
    ui_url: Annotated[str, AfterValidator(_web_address)] | None = None
    packages: tuple[ReferringText, ...] = ()
    modules: tuple[Path, ...] = ()
    commands: tuple[str, ...] = ()
    profile: Literal["local"] | None = None
    spark: dict[str, ReferringText] = {}
    small_batches: dict[str, ReferringText] = {}
    keep_plans: bool = True
    tuning: Tuning = Field(default=Tuning(), exclude=True)

    @field_validator("modules")
    @classmethod
    def _plain_names(cls, modules: tuple[Path, ...]) -> tuple[Path, ...]:
        for module in modules:
            name = str(module)
            if not _MODULE.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not the name of a module; write a file's name without .py, of "
                    "letters, digits and _, without dots and slashes, as in [my_module]"
                )
            if name in sys.stdlib_module_names:
                raise ValueError(f"{name!r} is a module of Python; rename your file")
        return modules

    @model_validator(mode="before")
    @classmethod
    def _of_profile(cls, data: Any) -> Any:
        found = PROFILES.get(str(data.get("profile"))) if isinstance(data, dict) else None
        if found is None or not isinstance(data.get("spark", {}), dict):
            return data  # which may be wrong
        if "spark.remote" in data.get("spark", {}):
            raise ValueError("spark.remote is a server with options of its own; remove `profile`")
        return {**found._asdict(), **data, "spark": {**found.spark, **data.get("spark", {})}}

    @field_validator("tuning", mode="before")
    @classmethod
    def _set_by_code(cls, value: object) -> object:
        if not isinstance(value, Tuning):
            raise ValueError("is not a field here; remove it")
        return value

    def spark_conf(self) -> dict[str, str]:
        """Returns Spark's configuration, with the keys that Delta and the engine need.

        A Spark Connect server has a configuration of its own; a session sets its time zone only.

        Raises:
            ConfigError: A text refers to an environment variable that is not set.
        """
        needed = {"spark.sql.session.timeZone": "UTC"}
        of_file = {name: resolved(text) for name, text in self.spark.items()}
        if "spark.remote" in self.spark:
            return {**of_file, **needed}
        delta = {
            "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
            "spark.executor.defaultJavaOptions": _JAVA_OPTIONS,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.jars.packages": ",".join([DELTA_PACKAGE, *map(resolved, self.packages)]),
            "spark.jars.excludes": _EXCLUDES,
            "spark.jars.ivySettings": _IVY_SETTINGS.as_uri(),
            "spark.jars.ivy": str(Path.home() / ".ivy2-windows-pipeline"),
            "spark.app.name": "windows-pipeline",
            # Without it, workers would import what lies in the working directory of the driver.
            "spark.executorEnv.PYTHONSAFEPATH": "1",
            # Spark would write its default as a URI: a blank in it would become %20 in a folder.
            "spark.sql.warehouse.dir": str(Path.cwd() / "spark-warehouse"),
        }
        master = of_file.get("spark.master", "")
        return {**delta, **self._of_local_master(master), **of_file, **needed}

    @property
    def private_keys(self) -> frozenset[str]:
        """The keys of Spark whose values come from environment variables, and may be secrets."""
        return frozenset(name for name, text in self.spark.items() if refers(text))

    def _of_local_master(self, master: str) -> dict[str, str]:
        """Returns the keys that keep the driver of a local master off the network.

        By Spark's defaults, anybody who can connect to the machine can use the driver without a
        secret, and see its UI. By Hadoop's, every user can read a stream's checkpoint.
        """
        if not master.startswith("local"):
            return {}
        address = "127.0.0.1"
        # Spark generates the secret itself if the executors run within the driver's process;
        # executors of local-cluster are processes of their own, which would not have the secret.
        authenticated = "false" if master.startswith("local-cluster") else "true"
        return {
            "spark.authenticate": authenticated,
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.ui.enabled": "false",
            "spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}",
        }

    def conf_for(self, records: int) -> dict[str, str]:
        """Returns Spark SQL's configuration for a run or micro-batch of that size."""
        if not self.are_few(records):
            return {}
        return {name: resolved(text) for name, text in self.small_batches.items()}

    def keeps_plans(self, records: int) -> bool:
        """Whether a run of that size caches rows with the plan that made them."""
        return self.keep_plans or not self.are_few(records)

    def are_few(self, records: int) -> bool:
        """Whether planning a run of that size takes longer than its records."""
        return records <= self.tuning.few_records


def load_settings(root: Path) -> Settings:
    """Reads the settings from the file in WINDOWS_PIPELINE_SETTINGS, or root's `settings.yaml`.

    Relative paths in the file start at the file's folder.

    Raises:
        SettingsError: The file is missing, or has an unknown or wrong field.
    """
    path = Path(os.environ.get(SETTINGS_VARIABLE, root / "settings.yaml")).resolve()
    if not os.path.lexists(path):
        fix = f"write one there, or set {SETTINGS_VARIABLE} to the path of another"
        raise NoSettingsError(f"{path}: there is no settings file; {fix}")
    try:
        settings = _read_settings(path)
    except ConfigError as error:
        raise SettingsError(str(error)) from None
    warehouse = resolve(settings.warehouse, path.parent)
    if settings.storage_options is not None:
        use_storage_options(warehouse, settings.storage_options)
    return settings.model_copy(
        update={
            "warehouse": warehouse,
            "landing": resolve(settings.landing, path.parent),
            "pipelines": path.parent / settings.pipelines,
            "modules": tuple(_module_file(path, str(name)) for name in settings.modules),
            "dagster_home": settings.dagster_home and path.parent / settings.dagster_home,
        }
    )


def _read_settings(path: Path) -> Settings:
    """Reads the settings with their paths as the file writes them.

    Raises:
        ConfigError: The file has mistakes; the message has one line for each, without values.
    """
    document = read_yaml(path, _SETTINGS_FILE, _SECRETS)
    for field, text in document.texts.items():
        if refers(text) and field[:1] in _SECRETS and _SHOWN_BY_SPARK.search(field[-1]):
            document.refuse(field, _NOT_PRIVATE)
    data = document.data
    if isinstance(data, dict):
        # Locations are not secret: tables, logs and errors show them.
        for name in _LOCATIONS & data.keys():
            data[name] = resolved(data[name], may_be_secret=False)
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        report(
            document, error.errors(), (name for name in Settings.model_fields if name != "tuning")
        )
    document.require_no_problems()
    return settings


def _module_file(settings: Path, name: str) -> Path:
    """The file of a module that the settings name.

    Raises:
        SettingsError: An installed package has the name, which the file would hide.
    """
    file = settings.parent / f"{name}.py"
    installed = find_spec(name)
    if installed is not None and Path(str(installed.origin)).resolve() != file.resolve():
        line = read_yaml(settings, _SETTINGS_FILE, _SECRETS).line(("modules",))
        raise SettingsError(
            f"{settings}:{line}: modules: {name!r} is the name of an installed package "
            f"({installed.origin}); rename your file"
        )
    return file


def _umask() -> int:
    """Returns the process's umask; Python can read it only by setting another."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
