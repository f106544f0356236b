"""Draws the figures of the pages: ``python docs/figures/draw.py [FOLDER] [--png]``, by default beside this file as SVG.

Colours are Okabe and Ito's, which colour-blind readers tell apart; no figure says anything by colour alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
PALE = "#F2F2F2"
GREY = "#777777"


def canvas(width: float, height: float) -> Axes:
    """Return axes without ticks whose units are tenths of an inch."""
    _, axes = plt.subplots(figsize=(width / 10, height / 10))
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    axes.figure.subplots_adjust(0, 0, 1, 1)
    return axes


def box(
    axes: Axes, x: float, y: float, w: float, h: float, text: str, face: str = PALE, size: float = 9, **text_style: object
) -> None:
    """Draw a box with a text in its middle; x and y are its lower left corner."""
    axes.add_patch(FancyBboxPatch((x, y), w, h, boxstyle="round,pad=0,rounding_size=0.8", fc=face, ec=BLACK, lw=0.8))
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", size=size, **text_style)


def cell(
    axes: Axes, x: float, y: float, text: str = "", face: str = "white", w: float = 4, h: float = 4, size: float = 9
) -> None:
    """Draw one cell of an array."""
    axes.add_patch(plt.Rectangle((x, y), w, h, fc=face, ec=BLACK, lw=0.8))
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", size=size)


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "-|>", colour: str = BLACK, **more: object
) -> None:
    """Draw an arrow."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": style, "lw": 1, "color": colour, "shrinkA": 0, "shrinkB": 0, **more})


def label(axes: Axes, x: float, y: float, text: str, size: float = 9, ha: str = "left", **style: object) -> None:
    """Write a text."""
    axes.text(x, y, text, size=size, ha=ha, va="center", **style)


def kernel() -> None:
    """How a template becomes a kernel for a device."""
    axes = canvas(74, 27)
    box(axes, 1, 17, 15, 8, "template\nsubvector.mako", SKY)
    box(axes, 1, 3, 15, 8, "parameter record\nlanes=8, group=128,\ndouble, int32", YELLOW, 8)
    box(axes, 22, 10, 13, 8, "source for\nthis device", PALE)
    box(axes, 42, 10, 13, 8, "driver's\ncompiler", ORANGE)
    box(axes, 61, 10, 12, 8, "built kernel", GREEN)
    arrow(axes, (16, 21), (22, 15.5))
    arrow(axes, (16, 7), (22, 12.5))
    arrow(axes, (35, 14), (42, 14))
    arrow(axes, (55, 14), (61, 14))
    box(axes, 36, 0.8, 25, 5, "kept on disk, by source, device, driver", "white", 8)
    arrow(axes, (48.5, 10), (48.5, 5.8), "<|-|>")
    label(axes, 67, 7.6, "asked for its limit:\nif too large, a smaller\ngroup is built", 8, "center", color=GREY)
    label(axes, 48.5, 22.5, "refused? kept on disk, too;\nthe rows go to another kernel", 8, "center", color=RED)
    arrow(axes, (48.5, 18), (48.5, 20.7), colour=RED)


LENGTHS = (1, 2, 9, 1, 3, 1, 8, 2, 2, 12)


def binning() -> None:
    """Rows of like lengths share a bin, and a bin has a kernel of its own."""
    axes = canvas(74, 46)
    colours = {0: SKY, 1: YELLOW, 2: ORANGE}

    def bin_of(length: int) -> int:
        return 0 if length <= 1 else 1 if length <= 3 else 2

    label(axes, 2, 43.5, "rows of A", weight="bold")
    for row, length in enumerate(LENGTHS):
        y = 38.5 - 4 * row
        label(axes, 2.2, y + 1.5, str(row), 8, "center", color=GREY)
        for k in range(length):
            cell(axes, 4 + 2 * k, y, "", colours[bin_of(length)], 2, 3)
    for number, (name, low, kernel_name) in enumerate(
        (
            ("bin 1: 1 entry", 33, "serial:\na work-item a row"),
            ("bin 2: 2 to 3", 19, "subvector2:\n2 lanes a row"),
            ("bin 3: 8 and more", 5, "subvector8:\n8 lanes a row"),
        )
    ):
        members = [str(row) for row, length in enumerate(LENGTHS) if bin_of(length) == number]
        box(axes, 37, low, 15, 8, f"{name}\nrows {', '.join(members)}", colours[number], 8)
        arrow(axes, (52, low + 4), (57, low + 4))
        box(axes, 57, low, 16, 8, kernel_name, "white", 8)
    label(axes, 44.5, 43.5, "lists of row numbers", ha="center", weight="bold")
    label(axes, 65, 43.5, "a launch each", ha="center", weight="bold")
    arrow(axes, (30, 23), (36, 23))


def balance() -> None:
    """CSR-Adaptive and merge-based: how rows of unequal length become equal work."""
    axes = canvas(78, 44)
    colours = (SKY, YELLOW, GREEN, ORANGE)
    label(axes, 2, 41.5, "CSR-Adaptive: whole rows, up to 8 entries a group", weight="bold")
    groups = ((1, 2, 3, 1), (2, 4), (8,), (1, 1, 3, 3))
    y = 36.0
    for number, rows in enumerate(groups):
        top = y + 3
        for length in rows:
            for k in range(length):
                cell(axes, 4 + 2 * k, y, "", colours[number], 2, 3)
            y -= 3
        mid = (top + y + 3) / 2
        axes.plot([22, 23, 23, 22], [top - 0.3, top - 0.3, y + 3.3, y + 3.3], color=BLACK, lw=1)
        label(axes, 24, mid, f"group {number + 1}: {sum(rows)}", 8)
    label(axes, 42, 41.5, "merge-based: equal steps, rows may be cut", weight="bold")
    lengths = (1, 2, 6, 0, 2, 5)
    left, low, unit = 48.0, 6.0, 1.75
    n = sum(lengths)
    height = len(lengths)
    for row in range(height + 1):
        axes.plot([left, left + n * unit], [low + row * 5, low + row * 5], color="#cccccc", lw=0.7)
    for k in range(n + 1):
        axes.plot([left + k * unit] * 2, [low, low + 5 * height], color="#eeeeee", lw=0.7)
    path = [(0, 0)]
    for row, length in enumerate(lengths):
        start = path[-1][0]
        path += [(start + k + 1, row) for k in range(length)] + [(start + length, row + 1)]
    steps = len(path) - 1
    share = -(-steps // 4)
    for number in range(4):
        piece = path[number * share : (number + 1) * share + 1]
        xs = [left + x * unit for x, _ in piece]
        ys = [low + 5 * (height - row) for _, row in piece]
        axes.plot(xs, ys, color=(BLUE, ORANGE, GREEN, PINK)[number], lw=3, solid_capstyle="butt")
        axes.plot(xs[:1], ys[:1], "o", color=BLACK, ms=4)
    axes.plot([left + path[-1][0] * unit], [low + 5 * (height - path[-1][1])], "o", color=BLACK, ms=4)
    label(axes, left + n * unit / 2, low + 5 * height + 2.2, "entries of A: one step right", 8, "center")
    axes.text(left - 2.5, low + 2.5 * height, "ends of rows: one step down", size=8, rotation=90, ha="center", va="center")
    label(
        axes,
        left + n * unit / 2,
        2.5,
        f"{steps} steps: up to {share} for each of four work-items;\nbetween two dots lies the work of one",
        8,
        "center",
    )


def segmented_merge() -> None:
    """Sub-segments are merged in rounds, and all work-items of a round have as many elements."""
    axes = canvas(76, 36)
    rounds = (
        ("given", [[3, 9], [1, 7], [2, 5], [4, 8], [6, 6], [0, 2]]),
        ("round 1", [[1, 3, 7, 9], [2, 4, 5, 8], [0, 2, 6, 6]]),
        ("round 2", [[1, 2, 3, 4, 5, 7, 8, 9], [0, 2, 6, 6]]),
    )
    owner = ((0, 0, 0, 0, 1, 1), (0, 0, 1), (0, 1))
    face = (SKY, YELLOW)
    for number, (name, runs) in enumerate(rounds):
        y = 25.0 - 11 * number
        label(axes, 1, y + 2, name, weight="bold")
        x = 11.0
        for run, segment in zip(runs, owner[number], strict=True):
            for value in run:
                cell(axes, x, y, str(value), face[segment], 4, 4)
                x += 4
            x += 1.0
        for part, x in enumerate(((), (11, 28, 45), (11, 27))[number]):
            axes.plot([x + 0.3, x + 15.7], [y + 6, y + 6], color=(BLUE, ORANGE, GREEN)[part], lw=3)
            label(axes, x + 8, y + 7.6, f"work-item {part + 1}: 4 elements", 8, "center")
    label(axes, 52, 9, "done in round 1", 8, "center", color=GREY)
    label(axes, 20, 32, "segment 1: four sorted sub-segments", 8)
    label(axes, 55, 32, "segment 2: two", 8)


def esc() -> None:
    """Expansion, sorting and contraction of one row of C."""
    axes = canvas(74, 40)
    label(axes, 1, 37.5, "row i of A names rows 0, 2 and 5 of B", weight="bold")
    stages = (
        ("expand", [(1, "2", SKY), (4, "1", SKY), (0, "3", YELLOW), (4, "5", YELLOW), (1, "4", ORANGE), (7, "1", ORANGE)], 28),
        (
            "sort by column",
            [(0, "3", YELLOW), (1, "2", SKY), (1, "4", ORANGE), (4, "1", SKY), (4, "5", YELLOW), (7, "1", ORANGE)],
            16,
        ),
        ("contract", [(0, "3", PALE), (1, "6", PALE), (4, "6", PALE), (7, "1", PALE)], 4),
    )
    places: list[list[float]] = []
    for name, cells, y in stages:
        label(axes, 1, y + 3, name, weight="bold")
        label(axes, 17.5, y + 4.5, "column", 8, color=GREY)
        label(axes, 17.5, y + 1.5, "value", 8, color=GREY)
        here = []
        for k, (column, value, face) in enumerate(cells):
            x = 25 + 7 * k
            cell(axes, x, y + 3, str(column), face, 5, 3)
            cell(axes, x, y, value, face, 5, 3)
            here.append(x + 2.5)
        places.append(here)
    for k, to in enumerate((1, 3, 0, 4, 2, 5)):
        arrow(axes, (places[0][k], 28), (places[1][to], 22.3), colour=GREY)
    for k, to in enumerate((0, 1, 1, 2, 2, 3)):
        arrow(axes, (places[1][k], 16), (places[2][to], 10.3), colour=GREY)
    label(axes, 55, 7, "equal columns are added,\nin the order of A's row", 8)


def accumulators() -> None:
    """Which accumulator makes which row of C, on GPUs."""
    _, axes = plt.subplots(figsize=(7.4, 4.0), layout="constrained")
    axes.set(
        xscale="log", yscale="log", xlim=(1, 1e6), ylim=(1, 1e5), xlabel="products of the row", ylabel="entries of the row of A"
    )
    regions = (
        ((1, 1, 512, 512), SKY, "reg-sort\na network in registers", (22, 6.5)),
        ((512, 1, 65536, 256), YELLOW, "reg-merge\nheads of B's rows in registers", (5800, 16)),
        ((65536, 1, 1e6, 256), PINK, "esc", (2.6e5, 16)),
        ((512, 256, 1e6, 1e5), PINK, "esc: expanded and sorted\nin global memory", (2.2e4, 5000)),
    )
    for (x0, y0, x1, y1), face, text, (x, y) in regions:
        axes.fill_between([x0, x1], y0, y1, fc=face, ec=BLACK, lw=0.8)
        axes.text(x, y, text, ha="center", va="center", size=9)
    axes.text(22, 4500, "only if rows of B are empty", ha="center", size=8, color=GREY)
    axes.set_title("Even rows on a GPU; those that span few columns have a sum for each column instead", size=9)


def decisions() -> None:
    """From a matrix to a label."""
    axes = canvas(78, 34)
    box(axes, 1, 13, 13, 8, "matrix", SKY)
    box(axes, 19, 10, 15, 14, "features\n\nrows, nnz, mean,\nlongest, jumps,\nhistogram ...", YELLOW, 8)
    arrow(axes, (14, 17), (19, 17))
    label(axes, 26.5, 27.0, "one pass, one read", 8, "center", color=GREY)
    arrow(axes, (34, 17), (39, 17))
    box(axes, 39, 14, 13, 6, "longest <= 64", "white")
    box(axes, 57, 24, 9, 5, "mean <= 12", "white", 8)
    box(axes, 57, 5, 9, 5, "jumps <= 0.4", "white", 8)
    arrow(axes, (52, 18.5), (57, 25.5))
    arrow(axes, (52, 15.5), (57, 8.5))
    for y, text in ((29, "adaptive/256"), (20.5, "subvector8"), (10.5, "adaptive/128"), (1.5, "merge/128")):
        box(axes, 69, y - 0.5, 8.8, 4, text, GREEN, 6.5)
    arrow(axes, (66, 27.5), (69, 30.3))
    arrow(axes, (66, 25.5), (69, 23.0))
    arrow(axes, (66, 8.5), (69, 11.5))
    arrow(axes, (66, 6.5), (69, 4.0))
    for x, y, text in (
        *((53.3, 23.3, "yes"), (53.3, 10.7, "no")),
        *((67, 30, "yes"), (67, 23.2, "no"), (67, 11, "yes"), (67, 4.2, "no")),
    ):
        label(axes, x, y, text, 8, "center", color=GREY)
    label(axes, 46, 4, "a decision tree\nfrom the profile", 8, "center", color=GREY)
    label(axes, 66, 16.8, "labels: kernel and work-group", 8, "center", color=GREY)


def ranks() -> None:
    """Rows over ranks, and a product in time."""
    axes = canvas(84, 34)
    n, side = 12, 2.3
    near = {(r, r + d) for r in range(n) for d in (-2, 0, 1) if 0 <= r + d < n}
    for rank, (face, begin) in enumerate(((SKY, 0), (GREEN, 4), (YELLOW, 8))):
        for row in range(begin, begin + 4):
            for column in range(n):
                own = begin <= column < begin + 4
                there = (row, column) in near
                colour = (face if own else ORANGE) if there else (PALE if own else "white")
                cell(axes, 10 + column * side, 1 + (n - 1 - row) * side, "o" if there and not own else "", colour, side, side, 7)
        label(axes, 9, 1 + (n - 2 - begin) * side, f"rank {rank}", ha="right")
    label(axes, 10 + n * side / 2, 30.2, "each rank: own columns (shaded), others' (o)", 8, "center", color=GREY)
    for y, text in ((24.5, "host"), (17, "queue beside"), (9.5, "main queue")):
        label(axes, 50, y, text, 8, "right", color=GREY)
    box(axes, 51, 22.5, 17, 4.5, "messages", ORANGE, 8)
    box(axes, 51, 15, 5.5, 4.5, "gather", ORANGE, 6.5)
    box(axes, 68.5, 15, 5.5, 4.5, "arrive", ORANGE, 6.5)
    box(axes, 51, 7.5, 23, 4.5, "local part", SKY, 8)
    box(axes, 74.5, 7.5, 8.5, 4.5, "the others'", ORANGE, 6.5)
    arrow(axes, (54, 19.5), (54, 22.5))
    arrow(axes, (67, 22.5), (69.5, 19.5))
    arrow(axes, (73, 15), (76, 12))
    arrow(axes, (51, 4.5), (83, 4.5))
    label(axes, 67, 2.4, "time", 8, "center", color=GREY)


def host_and_device(w: float, h: float, border: float) -> Axes:
    """Return a canvas whose left part is the host and whose right part is the device."""
    axes = canvas(w, h)
    for left, right, name in ((0.4, border - 0.6, "host"), (border + 0.6, w - 0.4, "device")):
        axes.add_patch(
            FancyBboxPatch(
                (left, 0.4), right - left, h - 0.8, boxstyle="round,pad=0,rounding_size=1", fc="#f7f7f7", ec=GREY, lw=0.8
            )
        )
        label(axes, (left + right) / 2, h - 2.2, name, weight="bold", ha="center")
    return axes


def wait(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str = "", at: tuple[float, float] = (0, 0)
) -> None:
    """Draw what the device tells the host, which waits for it."""
    arrow(axes, start, end, colour=RED, linestyle=(0, (3, 2)))
    label(axes, *at, text, 8, "center", color=RED)


def follow_spmv() -> None:
    """Draw A @ x: the first product of a matrix, and later ones."""
    axes = host_and_device(84, 46, 53)
    box(axes, 3, 34, 22, 6, "csr_array.__matmul__", SKY, 8)
    box(axes, 3, 24, 22, 6, "spmv:\ncheck, plan, allocate y", SKY, 8)
    box(axes, 3, 4, 22, 6, "DenseProduct.run", SKY, 8)
    box(axes, 31, 34, 18, 6, "inspect:\nfeatures of rows", YELLOW, 8)
    box(axes, 31, 24, 18, 6, "choose:\nthe profile's tree", YELLOW, 8)
    box(axes, 31, 14, 18, 6, "Builder: kernels,\nparts of equal weight", YELLOW, 8)
    box(axes, 58, 34, 23, 6, "features", GREEN, 8)
    box(axes, 58, 14, 23, 6, "partition", GREEN, 8)
    box(axes, 58, 4, 23, 6, "adaptive, merge, ...;\ncombine: rows that were cut", GREEN, 8)
    arrow(axes, (14, 34), (14, 30))
    arrow(axes, (25, 28), (31, 35.5))
    arrow(axes, (14, 24), (14, 10))
    arrow(axes, (40, 24), (40, 20))
    arrow(axes, (31, 16), (22, 10))
    arrow(axes, (49, 37.8), (58, 37.8))
    wait(axes, (58, 35.8), (49, 28.5))
    arrow(axes, (49, 18.2), (58, 18.2))
    wait(axes, (58, 15.8), (49, 15.8))
    arrow(axes, (25, 7), (58, 7))
    label(axes, 28.8, 30.6, "first", 8, color=GREY)
    label(axes, 13, 17, "later", 8, "right", color=GREY)
    label(axes, 3, 2.2, "y is returned, not waited for", 8, color=GREY)
    label(axes, 69.5, 28, "dashed: the host waits", 8, "center", color=RED)


def follow_transposition() -> None:
    """Draw A.T in CSR form: what is tried, and what the device does."""
    axes = host_and_device(84, 40, 47)
    box(axes, 3, 28, 17, 6, "csr_array.T @ x", SKY, 8)
    box(axes, 26, 28, 17, 6, "run: the strategy\nof the profile", SKY, 8)
    box(axes, 26, 16, 17, 6, "gather", YELLOW, 8)
    box(axes, 26, 4, 17, 6, "binned", YELLOW, 8)
    box(axes, 3, 16, 17, 6, "A's structure,\nnew values", PALE, 8)
    box(axes, 3, 4, 17, 6, "new structure\nand values", PALE, 8)
    box(axes, 52, 25, 29, 6, "sample of 1024 entries", GREEN, 8)
    box(axes, 52, 15, 29, 6, "search each entry's mirror image,\nmove its value", GREEN, 8)
    box(axes, 52, 4, 29, 6, "radix sort by column:\ncount, scan, scatter; a pass or more", GREEN, 8)
    arrow(axes, (20, 31), (26, 31))
    arrow(axes, (34.5, 28), (34.5, 22))
    arrow(axes, (26, 19), (20, 19))
    arrow(axes, (34.5, 16), (34.5, 10))
    arrow(axes, (26, 7), (20, 7))
    arrow(axes, (43, 20.5), (52, 27.5))
    arrow(axes, (66.5, 25), (66.5, 21))
    wait(axes, (52, 17.5), (43, 17.5), "five numbers,\nfirst time only", (66.5, 12.6))
    arrow(axes, (43, 7), (52, 7))
    label(axes, 23, 23.3, "symmetric", 8, "center", color=GREY)
    label(axes, 33.5, 13, "not symmetric", 8, "right", color=GREY)


def follow_spgemm() -> None:
    """Draw A @ B: the pipeline, and where the host waits."""
    axes = host_and_device(88, 50, 38)
    for text, y in (("spgemm: checks", 40), ("operands_of", 34), ("decide", 28), ("count", 22)):
        box(axes, 3, y, 15, 4, text, SKY, 8)
    for y in (40, 34, 28, 22):
        arrow(axes, (10.5, y), (10.5, y - 2))
    box(axes, 3, 16, 15, 4, "share_out: bins", SKY, 8)
    arrow(axes, (10.5, 16), (10.5, 6))
    box(axes, 3, 2, 15, 4, "fill: allocate C", SKY, 8)
    for text, y, face in (
        ("if rows of A are short or alike, a guess:\nsymbolic phase of all rows by one kernel", 37, YELLOW),
        ("else: products of each row, its bin", 29, GREEN),
        ("rows sorted by bin", 23.5, GREEN),
        ("symbolic phase: a launch or more for each bin", 15, GREEN),
        ("scan: row pointers of C", 9.5, GREEN),
        ("numeric phase: a launch or more for each bin", 2, GREEN),
    ):
        box(axes, 47, y, 38, 6 if "\n" in text else 4, text, face, 8)
    arrow(axes, (18, 24.6), (47, 39))
    arrow(axes, (18, 23.4), (47, 31.5))
    arrow(axes, (66, 29), (66, 27.5))
    arrow(axes, (18, 17.5), (47, 17.5))
    arrow(axes, (66, 15), (66, 13.5))
    arrow(axes, (18, 3.5), (47, 3.5))
    for start, end, text, at in (
        ((47, 41.5), (18, 25.7), "did it hold? entries of C", (27.5, 39)),
        ((47, 30), (18, 19.4), "rows of each bin", (32, 21.8)),
        ((47, 11), (18, 5.2), "entries of C", (29, 10.3)),
    ):
        wait(axes, start, end, text, at)
    label(axes, 66, 45, "dashed: the host waits", 8, "center", color=RED)


def aggregates_of(side: int) -> tuple[list[int], dict[int, int]]:
    """Return the roots of a 5-point grid, node by node, and the root that each node joins."""
    near = {
        node: [
            row * side + column
            for row, column in ((y - 1, x), (y, x - 1), (y, x + 1), (y + 1, x))
            if 0 <= row < side and 0 <= column < side
        ]
        for y in range(side)
        for x in range(side)
        for node in [y * side + x]
    }
    roots: list[int] = []
    for node, others in near.items():
        if not {node, *others, *(far for other in others for far in near[other])} & set(roots):
            roots.append(node)
    joined = {node: root for root in roots for node in (root, *near[root])}
    before = dict(joined)
    for node in sorted(near.keys() - before.keys()):
        candidates = [before[other] for other in near[node] if other in before]
        joined[node] = max(sorted(set(candidates)), key=candidates.count)
    return roots, joined


def aggregates() -> None:
    """Draw the aggregates of a grid, and a cycle over the levels that come of them."""
    axes, side, step = canvas(86, 42), 8, 4.4
    roots, joined = aggregates_of(side)
    place = {node: (4 + step * (node % side), 36 - step * (node // side)) for node in joined}
    colours = (SKY, ORANGE, GREEN, YELLOW, PINK, PALE)
    chosen: dict[int, str] = {}
    for root in roots:
        beside = {joined[b] for a in joined for b in joined if joined[a] == root and abs(a - b) in (1, side)} - {root}
        chosen[root] = next(each for each in colours if each not in {chosen.get(other) for other in beside})
    for node, (x, y) in place.items():
        for other, is_there in ((node + 1, node % side < side - 1), (node + side, node // side < side - 1)):
            if is_there:
                inside = joined[node] == joined[other]
                axes.plot(
                    *zip((x, y), place[other], strict=True), color=BLACK if inside else GREY, lw=2.4 if inside else 0.5, zorder=1
                )
        axes.add_patch(plt.Circle((x, y), 1.35, fc=chosen[joined[node]], ec=BLACK, lw=2 if node in roots else 0.7, zorder=2))
        if node in roots:
            axes.text(x, y, "r", ha="center", va="center", size=8, zorder=3)
    label(axes, 2, 40, "aggregates: roots r, their neighbours, and what is left", 8.5)
    levels = ((44, 30, "A, 64 unknowns"), (51, 19, f"R A P, {len(roots)} unknowns"), (58, 8, "coarsest: its inverse"))
    for at, (x, y, text) in enumerate(levels):
        box(axes, x, y, 24, 5, text, SKY if at == 2 else PALE, 8.5)
    for (x, y, _), (to, below, _) in pairwise(levels):
        arrow(axes, (x + 5, y), (to + 1, below + 5))
        arrow(axes, (to + 23, below + 5), (x + 23.4, y))
        label(axes, x + 1, (y + below + 5) / 2, "R r", 8.5)
        label(axes, x + 28.4, (y + below + 5) / 2, "x += P e", 8.5)
    label(axes, 44, 38.2, "smooth before and after, on each level", 8.5)


FIGURES: dict[str, Callable[[], None]] = {
    "kernel": kernel,
    "binning": binning,
    "balance": balance,
    "segmented-merge": segmented_merge,
    "esc": esc,
    "accumulators": accumulators,
    "decisions": decisions,
    "ranks": ranks,
    "aggregates": aggregates,
    "follow-spmv": follow_spmv,
    "follow-transposition": follow_transposition,
    "follow-spgemm": follow_spgemm,
}


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent)
    parser.add_argument("--png", action="store_true", help="PNG in place of SVG")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update({"svg.hashsalt": "clsparse_py", "font.family": "DejaVu Sans"})
    for name, draw in FIGURES.items():
        draw()
        if given.png:
            plt.savefig(given.folder / f"{name}.png", dpi=110)
        else:
            plt.savefig(given.folder / f"{name}.svg", metadata={"Date": None})
        plt.close()


if __name__ == "__main__":
    main()
