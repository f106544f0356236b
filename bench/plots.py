"""Plots of a results file: shares of the copy bandwidth, and times beside the best peer's."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from bench.results import Document
from bench.times import BEST_OF_CUSPARSE, best_peer, ours_of, times_of
from clsparse_py._tuner.plots import add_legend, escape_dollars, set_plain_ticks

# Okabe and Ito's colours; markers tell contestants apart too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_MARKERS = "os^v<>phX*"


def share_plot(entries: Sequence[Document], way: str, what: str) -> Figure | None:
    """Plot which share of the copy bandwidth each contestant reaches on each input."""
    shares = [{name: entry["floor"] / seconds for name, seconds in times_of(entry, way).items()} for entry in entries]
    own = ours_of(entries)
    names = sorted({name for share in shares for name in share} - {BEST_OF_CUSPARSE}, key=lambda name: (name != own, name))
    if not names:
        return None
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        points = [(share[name], row) for row, share in enumerate(shares) if name in share]
        across, down = zip(*points, strict=True)
        ours = name == own
        colour = "black" if ours else _COLOURS[number % len(_COLOURS)]
        marker = "D" if ours else _MARKERS[number % len(_MARKERS)]
        axes.scatter(across, down, label=name, marker=marker, s=46 if ours else 30, color=colour, zorder=3 if ours else 2)
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(entries)), [escape_dollars(_label(entry)) for entry in entries])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_xlabel("share of the copy bandwidth (minimal bytes)")
    axes.set_title(what)
    add_legend(figure)
    return figure


def ratio_plot(entries: Sequence[Document], way: str, what: str) -> Figure | None:
    """Plot how many times as fast as the best peer ours is on each input."""
    own = ours_of(entries)
    bars = []
    for entry in entries:
        times = times_of(entry, way)
        peer = best_peer(times)
        if peer is not None and own in times:
            bars.append((escape_dollars(_label(entry)), times[peer] / times[own], peer))
    if not bars:
        return None
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(bars)), layout="constrained")
    axes = figure.subplots()
    colours = ["#56B4E9" if ratio >= 1 else "#D55E00" for _, ratio, _ in bars]
    # Bars start at 1 on a logarithmic axis: twice as fast and half as fast are equally long, to the right and to the left.
    axes.barh([bar[0] for bar in bars], [ratio - 1 for _, ratio, _ in bars], left=1, color=colours)
    for row, (_, ratio, peer) in enumerate(bars):
        axes.annotate(
            f" {ratio:.2f}  {peer} ", (ratio, row), va="center", ha="left" if ratio >= 1 else "right", fontsize="x-small"
        )
    axes.set_xscale("log")
    set_plain_ticks(axes.xaxis)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.margins(x=0.3)
    axes.invert_yaxis()
    axes.set_xlabel(f"time of the best peer / time of {own}")
    axes.set_title(what)
    return figure


def _label(entry: Document) -> str:
    """Return what tells an entry from the others of a plot, which shows one operation on matrices, or all primitives."""
    return entry["input"] if "shape" in entry else f"{entry['operation']} {entry['dtype']} {entry['input']}"
