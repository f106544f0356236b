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

__all__ = ["binning_overhead", "distribution", "legend_beside", "literal", "plain_ticks", "plot_bins", "speed_ups"]

#: Most matrices in a plot; of more, every second, third ... is shown.
_MOST_ROWS = 48
#: Most families with a colour of their own: those with the most matrices.
_FAMILIES = 15


def _thin_out(names: Sequence[str]) -> list[str]:
    step = -(-len(names) // _MOST_ROWS)
    return list(names[::step])


class _Marks(Locator):
    """Marks of a logarithmic axis, so few that their labels have room, and two at least however narrow the axis is."""

    def __call__(self) -> Any:
        """Return the places of marks on the axis as it is."""
        assert self.axis is not None  # it is set by then
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the places of marks: plain steps, or 1, 2 and 5 times powers of ten, or these alone."""
        decades = math.log10(vmax / vmin)
        if decades < 0.7:
            return MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)
        locator = LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,), numticks=8)
        locator.axis = self.axis
        return locator.tick_values(vmin, vmax)


def plain_ticks(axis: Axis) -> None:
    """Mark a logarithmic axis with plain numbers."""
    axis.set_major_locator(_Marks())
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_beside(figure: Figure) -> None:
    """Put the legend beside the axes, where it hides nothing."""
    figure.legend(loc="outside right upper", fontsize="x-small")


def literal(text: str) -> str:
    """Return text that is shown as it is: between dollars Matplotlib would read a formula."""
    return text.replace("$", r"\$")


def speed_ups(ratios: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Plot how many times as fast as others the tuned choice is on each matrix.

    Parameters
    ----------
    ratios : mapping
        By matrix: the time of each other choice relative to the tuned one.
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
        marker, label = markers[number % len(markers)], literal(other)
        if other == "untuned":
            # Hollow, as it is one of the others on every matrix.
            axes.scatter(across, down, s=60, marker=marker, facecolors="none", edgecolors="black", label=label, zorder=3)
        else:
            axes.scatter(across, down, s=20, marker=marker, color=f"C{number % 10}", label=label, zorder=2)
    axes.set_yticks(range(len(names)), [literal(name) for name in names], fontsize="x-small")
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("time / time of the tuned choice")
    axes.set_title(title)
    legend_beside(figure)
    return figure


def binning_overhead(shares: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Plot how many products binning takes the time of, by scheme."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.boxplot(list(shares.values()), showfliers=False)
    axes.set_xticks(range(1, len(shares) + 1), list(shares), rotation=90)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_ylabel("time to plan / time of a product")
    axes.set_title(title)
    return figure


def plot_bins(points: Sequence[tuple[float, float, str]], title: str) -> Figure:
    """Plot what bins bring: for matrices by their entries, the best time without bins relative to the best with them."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    # Folders of matrices may have hundreds of families.
    named = {family: number for number, (family, _) in enumerate(Counter(family for *_, family in points).most_common(_FAMILIES))}
    for family in dict.fromkeys(family if family in named else "others" for *_, family in points):
        shown = ((nnz, ratio) for nnz, ratio, its_family in points if (its_family if its_family in named else "others") == family)
        across, up = zip(*shown, strict=True)
        number = named.get(family)
        colour = "grey" if number is None else f"C{number % 10}"
        axes.scatter(
            across, up, s=18, label=literal(family), color=colour, marker="." if number is None else "os^"[number // 10 % 3]
        )
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.set_xlabel("entries")
    axes.set_ylabel("time without bins / time with bins")
    axes.set_title(title)
    legend_beside(figure)
    return figure


def distribution(lost: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Plot the share of matrices on which at most some time is lost against the best measured."""
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
            # Each line is narrower than the one below it, so that coinciding ones stay visible.
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
    legend_beside(figure)
    return figure
