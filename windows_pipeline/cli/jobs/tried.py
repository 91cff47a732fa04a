"""Shows what a rule would raise over the published windows: `alerts --try`."""

from __future__ import annotations

from datetime import date

import pyarrow.compute as pc
import typer
from pyspark.sql import functions as F

from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.rows import print_grid, print_json
from windows_pipeline.config import Pipeline, Rule
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.text.counts import counted


def try_rule(
    context: typer.Context,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    text: str,
    rule: Rule,
    days: tuple[date | None, date | None],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Prints the alerts and episodes that a rule would raise, by arrival day; writes nothing.

    They are those of a rebuild (rule E5), as the same code raises them on the same windows.

    Args:
        context: The command's context.
        settings: Where the tables lie.
        pipeline: The pipeline.
        windows_name: The definition.
        text: The rule as the user named it: a rule of the file, whose published alerts are counted
            beside, or a condition.
        rule: The rule.
        days: The first and the last arrival day; None for no bound.
        limit: How many days to print, the newest.
        as_json: Whether to print JSON.

    Raises:
        DefinitionChangedError: The final windows follow another definition.
        TableMissingError: No window is final yet.
    """
    windows = pipeline.windows[windows_name].model_copy(update={"alerts": {"tried": rule}})
    tried = pipeline.model_copy(update={"windows": {**pipeline.windows, windows_name: windows}})
    tables = tables_of(tried, settings.warehouse).of(windows_name)
    definition = Definition(tables)
    spark = session(context, settings)
    tables.final_windows.require(spark)
    first, last = days
    asked = F.lit(True)
    if first is not None:
        asked &= F.col("arrival_unit") >= first
    if last is not None:
        asked &= F.col("arrival_unit") <= last
    alerts = definition.with_episodes(definition.raise_alerts(tables.final_windows.read(spark)))
    rows = alerts.select("arrival_unit", F.struct("key", "episode_start").alias("episode"))
    counts = [
        F.count("episode").alias("alerts"),
        F.count_distinct("episode").alias("episodes"),
    ]
    if text in pipeline.windows[windows_name].alerts and tables.alerts.exists(spark):
        published = standing(tables.alerts.read(spark)).where(F.col("rule") == text)
        listed = published.select("arrival_unit", F.lit(1).alias("published"))
        rows = rows.unionByName(listed, allowMissingColumns=True)
        counts.append(F.count("published").alias("published"))
    # The row without a day is the sum: an episode of several days counts once.
    by_day = rows.where(asked).rollup("arrival_unit").agg(*counts)
    found = by_day.orderBy(F.desc("arrival_unit")).toArrow()
    is_sum = pc.is_null(found["arrival_unit"])
    of_days, total = found.filter(pc.invert(is_sum)), found.filter(is_sum)
    newest = of_days.slice(0, limit)
    if as_json:
        print_json([(windows_name, newest)])
        return
    print_grid(
        f"{pipeline.name}/{windows_name}: what {text!r} would raise", newest, ["arrival_unit"]
    )
    sums = {name: (total[name].to_pylist() or [0])[0] for name in total.column_names}
    was = f"; published are {counted(sums['published'], 'alert')}" if "published" in sums else ""
    CONSOLE.print(
        f"in all {counted(sums['alerts'], 'alert')} in {counted(sums['episodes'], 'episode')} on "
        f"{counted(of_days.num_rows, 'day')}{was}; nothing was written"
    )
    if of_days.num_rows > limit:
        say("note", f"there are {of_days.num_rows:,} days; raise --limit {limit} to see them")
