"""The plot of what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.results import BUSY_CORES, Entry
from benchmarks.ways import OURS, WAYS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save(folder: Path, entries: dict[str, Entry]) -> None:
    """Plots sliding windows: seconds by records a window, and by records.

    A hollow point was disturbed: others used the processors as well.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sliding = [
        one
        for one in entries.values()
        if one["kind"] == "sliding"
        and one["aggregates"] == "count-sum-max"
        and one["spread"] == "uniform"
        and one["keys"] <= 1_000
    ]
    figure, (by_window, by_size) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    at_1m = [one for one in sliding if one["records"] == 1_000_000]
    _lines(by_window, at_1m, "records_per_window", "records a window (1,000,000 records)")
    at_100 = [one for one in sliding if one["records_per_window"] == 100]
    _lines(by_size, at_100, "records", "records (100 a window)")
    handles, labels = by_window.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    figure.savefig(folder / "sliding.png", dpi=110)
    plt.close(figure)


def _lines(axes: Axes, entries: list[Entry], across: str, label: str) -> None:
    from matplotlib import colormaps

    colours = colormaps["tab20"]  # a way has the same one in each plot
    ways = dict.fromkeys(way for one in entries for way in one["ways"])
    for way in ways:
        measured = [(one[across], one["ways"].get(way, {})) for one in entries]
        points = sorted(
            (x, figures["median_s"], figures["others_cores"])
            for x, figures in measured
            if "median_s" in figures
        )
        xs, seconds, others = zip(*points, strict=True) if points else ((), (), ())
        width = 2.5 if way == OURS.name else 1.2
        colour = colours(list(WAYS).index(way))
        axes.plot(xs, seconds, label=way, linewidth=width, color=colour, marker=".")
        # A hollow point: others used the processors as well.
        filled = ["none" if busy > BUSY_CORES else colour for busy in others]
        axes.scatter(xs, seconds, facecolors=filled, edgecolors=colour, zorder=3)
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds")
    axes.grid(alpha=0.3, which="both")
