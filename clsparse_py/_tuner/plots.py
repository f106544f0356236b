"""The plots of a tuning report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, NullFormatter

__all__ = ["add_legend", "escape_dollars", "plot_bins", "plot_distribution", "plot_overhead", "plot_speed_ups", "set_plain_ticks"]

#: Most matrices in a plot of speed-ups; of more matrices every second, third and so on is shown.
_MOST_ROWS = 48
#: Most families of matrices with a colour of their own: the families with the most matrices.
_FAMILIES = 15


def _thin_out(names: Sequence[str]) -> list[str]:
    """Return at most `_MOST_ROWS` of the names of matrices, evenly spaced."""
    step = -(-len(names) // _MOST_ROWS)
    return list(names[::step])


class _Marks(Locator):
    """The locator of the marks of a logarithmic axis: at least two marks, and few enough for their labels."""

    def __call__(self) -> Any:
        """Return the values of the axis's ticks in its present limits."""
        assert self.axis is not None  # Matplotlib sets it before the first call
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return an axis's ticks between two limits: at plain steps, at 1, 2 and 5 times powers of ten, or at powers alone."""
        decades = math.log10(vmax / vmin)
        if decades < 0.7:
            return MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)
        locator = LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,), numticks=8)
        locator.axis = self.axis
        return locator.tick_values(vmin, vmax)


def set_plain_ticks(axis: Axis) -> None:
    """Mark a logarithmic axis of a plot with plain numbers, not with powers."""
    axis.set_major_locator(_Marks())
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def add_legend(figure: Figure) -> None:
    """Put the legend of a plot beside its axes."""
    figure.legend(loc="outside right upper", fontsize="x-small")


def escape_dollars(text: str) -> str:
    """Return text with its dollars escaped, between which Matplotlib would read a formula."""
    return text.replace("$", r"\$")


def plot_speed_ups(ratios: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Plot the time of other choices of kernels relative to the tuned choice, on each matrix.

    Parameters
    ----------
    ratios : mapping
        By matrix, then by choice: its time relative to the tuned choice.
    title : str
    """
    names = _thin_out(list(ratios))
    figure = Figure(figsize=(9, 1.8 + 0.22 * len(names)), layout="constrained")
    axes = figure.subplots()
    compared = sorted({other for name in names for other in ratios[name]}, key=lambda other: (other != "untuned", other))
    markers = "Dosv^<>ph*XPd"
    for number, other in enumerate(compared):
        points = [(ratios[name][other], row) for row, name in enumerate(names) if other in ratios[name]]
        across, down = zip(*points, strict=True)
        marker, label = markers[number % len(markers)], escape_dollars(other)
        if other == "untuned":
            # Marks of the untuned choice of kernels are hollow, as the mark of the same kernel by name lies at the same place.
            axes.scatter(across, down, s=60, marker=marker, facecolors="none", edgecolors="black", label=label, zorder=3)
        else:
            axes.scatter(across, down, s=20, marker=marker, color=f"C{number % 10}", label=label, zorder=2)
    axes.set_yticks(range(len(names)), [escape_dollars(name) for name in names], fontsize="x-small")
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    set_plain_ticks(axes.xaxis)
    axes.set_xlabel("time / time of the tuned choice")
    axes.set_title(title)
    add_legend(figure)
    return figure


def plot_overhead(shares: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Plot, for each binning scheme of SpMV, the time to sort rows into bins by length, divided by the time of one product."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.boxplot(list(shares.values()), showfliers=False)
    axes.set_xticks(range(1, len(shares) + 1), list(shares), rotation=90)
    axes.set_yscale("log")
    set_plain_ticks(axes.yaxis)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_ylabel("time to plan / time of a product")
    axes.set_title(title)
    return figure


def plot_bins(points: Sequence[tuple[float, float, str]], title: str) -> Figure:
    """Plot SpMV's best time without bins (classes of rows) divided by that with bins, against the matrix's number of entries."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    # Only the largest families of matrices have a colour and a name, as a folder of matrices may have hundreds of families.
    named = {family: number for number, (family, _) in enumerate(Counter(family for *_, family in points).most_common(_FAMILIES))}
    for family in dict.fromkeys(family if family in named else "others" for *_, family in points):
        shown = ((nnz, ratio) for nnz, ratio, its_family in points if (its_family if its_family in named else "others") == family)
        across, up = zip(*shown, strict=True)
        number = named.get(family)
        colour = "grey" if number is None else f"C{number % 10}"
        axes.scatter(
            across,
            up,
            s=18,
            label=escape_dollars(family),
            color=colour,
            marker="." if number is None else "os^"[number // 10 % 3],
        )
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    set_plain_ticks(axes.yaxis)
    axes.set_xlabel("entries")
    axes.set_ylabel("time without bins / time with bins")
    axes.set_title(title)
    add_legend(figure)
    return figure


def plot_distribution(lost: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Plot, for each way to choose kernels, the share of matrices that it computes within x times the best measured time."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for number, (name, values) in enumerate(lost.items()):
        ordered = np.sort(np.asarray(values, float))
        share = np.arange(1, ordered.size + 1) / ordered.size
        axes.step(
            np.concatenate(([1.0], ordered)),
            np.concatenate(([0.0], share)),
            where="post",
            label=f"{name} ({ordered.size})",
            # Each curve is narrower than the curve that it is drawn over, so that coinciding curves stay visible.
            linewidth=1.5 + 2 * (len(lost) - 1 - number),
        )
    for limit in (1.05, 1.2):
        axes.axvline(limit, color="grey", linewidth=0.6, linestyle="--")
    highest = max((np.percentile(list(values), 99) for values in lost.values()), default=1.0)
    axes.set_xlim(1.0, max(1.3, float(highest)))
    axes.set_ylim(0, 1)
    axes.grid(linewidth=0.3)
    axes.set_xlabel("time / best measured")
    axes.set_ylabel("share of matrices")
    axes.set_title(title)
    add_legend(figure)
    return figure
