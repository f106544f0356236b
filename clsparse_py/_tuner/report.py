"""Report of a tuning run: tables and plots.

The plots are Figures 6 to 9 of Hou, Feng and Che, "Auto-Tuning Strategies for Parallelizing SpMV on Multi- and Many-Core
Processors", and the distribution of the time lost against the best label.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from clsparse_py._decisions.tree import Leaf, Tree, leaves
from clsparse_py._device.device import Device
from clsparse_py._ground.files import replacing, write_text
from clsparse_py._tuner import plots
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST
from clsparse_py._tuner.outcome import Outcome, Whole
from clsparse_py._tuner.training import Losses

__all__ = ["write"]

#: Name of the SpMV kernel CSR-Adaptive in the labels of measured kernels.
_ADAPTIVE = "adaptive"
#: Label of SpMV's scheme without bins (classes of rows by size): one kernel multiplies all rows.
_SINGLE = "single"

#: First paragraph of the page of a tuning report.
_ABOUT = """\
Times are relative to the best that was measured on the same matrix. Errors are the share of matrices on which another choice was
faster beyond the noise. Families of matrices that are tested were not trained on."""


def write(folder: Path, device: Device, outcomes: Mapping[tuple[str, str], Outcome]) -> Path:
    """Write the page and the plots of a device's tuning report into a folder, and return the path of the page.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = [f"# Tuning {device.name}", f"{device.platform}, driver {device.driver_version}.", _ABOUT, _table(outcomes)]
    for (operation, dtype), outcome in outcomes.items():
        title = operation if dtype == "any" else f"{operation}, {dtype}"
        stem = re.sub(r"\W+", "-", title)
        text.append(f"## {title}")
        for name, caption, figure in _figures(title, outcome):
            path = folder / f"{stem}-{name}.png"
            with replacing(path) as file:
                figure.savefig(file, format="png", dpi=110)
            text += [caption, f"![{caption}]({path.name})"]
        table = _speed_ups_table(outcome.whole)
        if table:
            text += ["How many times as fast as others the tuned choice is on matrices that it was not trained on:", table]
        for question, answer in outcome.answers.items():
            decider = "tuned" if answer.tuned else "the untuned rule, as the tuned tree was no faster on families left out"
            text += [f"### {question}: {decider}", "```\n" + "\n".join(_draw(answer.tree)) + "\n```"]
    page = folder / "report.md"
    write_text(page, "\n\n".join(text) + "\n")
    return page


def _table(outcomes: Mapping[tuple[str, str], Outcome]) -> str:
    """Return the report's table of the time that decision trees lose, on matrices trained on and kept aside, in Markdown."""
    head = ["operation", "question", "leaves", "set", "matrices", "errors"]
    head += ["geometric mean", "95th percentile", "worst", "untuned"]
    rows = []
    for (operation, dtype), outcome in outcomes.items():
        title = operation if dtype == "any" else f"{operation} {dtype}"
        scored: list[tuple[str, str, Mapping[str, Losses]]] = [
            (question, str(sum(1 for _ in leaves(answer.tree))), answer.scores) for question, answer in outcome.answers.items()
        ]
        if len(outcome.answers) > 1:
            scores_of_all = {name.removeprefix("tuned "): losses for name, losses in outcome.scores.items()}
            scored.append(("all together", "", scores_of_all))
        for question, size, scores in scored:
            for split in ("train", "test"):
                losses = scores[split]
                if losses.cases:
                    ratios = (losses.mean, losses.p95, losses.worst, scores[f"untuned {split}"].mean)
                    cells = (f"{losses.errors:.1%}", *(f"{ratio:.3f}" for ratio in ratios))
                    rows.append((title, question, size, split, str(losses.cases), *cells))
    return _markdown(head, rows)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the text of a table in Markdown, of a row of headings and rows of cells."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _figures(title: str, outcome: Outcome) -> Iterable[tuple[str, str, Figure]]:
    """Yield the name, the caption and the plot of each figure of a tuning report whose times were measured."""
    tested = [case for case in outcome.whole if case.observation.split == TEST]
    ratios = _ratios(tested)
    if any(ratios.values()):
        yield (
            "speed-up",
            "Time of every single choice, and untuned, relative to the tuned one (the paper's Figure 6).",
            plots.plot_speed_ups(ratios, f"{title}: the tuned choice and others"),
        )
    adaptive = {name: {_ADAPTIVE: choices[_ADAPTIVE]} for name, choices in ratios.items() if _ADAPTIVE in choices}
    if adaptive:
        share = sum(1 for choices in adaptive.values() if choices[_ADAPTIVE] >= 0.99) / len(adaptive)
        caption = f"Over CSR-Adaptive in its best shape (Figure 7): at least equal on {share:.0%}."
        yield "adaptive", caption, plots.plot_speed_ups(adaptive, f"{title}: over CSR-Adaptive")
    overheads = _overheads(outcome.observations)
    if overheads:
        caption = "Time to bin rows and make a plan, in products, by scheme (Figure 8)."
        yield "overhead", caption, plots.plot_overhead(overheads, f"{title}: binning")
    points = _single_and_binned(outcome.whole)
    if points:
        yield "bins", "The best time without bins and with them (Figure 9).", plots.plot_bins(points, f"{title}: bins")
    lost: dict[str, list[float]] = {}
    for case in outcome.whole:
        observation = case.observation
        for name, label in (("tuned", case.tuned), ("untuned", case.untuned)):
            if label in observation.times:
                ratio = observation.times[label] / observation.best
                lost.setdefault(f"{name}, {observation.split}", []).append(ratio)
    if lost:
        caption = "Share of matrices on which at most so much time is lost against the best measured."
        yield "lost", caption, plots.plot_distribution(lost, f"{title}: time lost")


def _kernel_name(label: str) -> str:
    """Return the name of the kernel or method in a label without its parameters, and without a question's name before it."""
    return label.split(": ")[-1].split("/")[0]


def _ratios(wholes: Sequence[Whole]) -> dict[str, dict[str, float]]:
    """Return by matrix each kernel's time with its best parameters, and the untuned choice's, divided by the tuned choice's."""
    ratios = {}
    for case in sorted(wholes, key=lambda case: (case.observation.family, case.observation.best)):
        times = case.observation.times
        if case.tuned not in times:
            continue
        tuned_time = times[case.tuned]
        of_case: dict[str, float] = {}
        # A label of a kernel for all rows begins with "single: " if the labels answer the question about SpMV's binning scheme.
        referred = [label for label in times if ": " in label] or list(times)
        for label in referred:
            kernel = _kernel_name(label)
            of_case[kernel] = min(of_case.get(kernel, math.inf), times[label] / tuned_time)
        if case.untuned in times:
            of_case["untuned"] = times[case.untuned] / tuned_time
        ratios[case.observation.case] = of_case
    return ratios


def _speed_ups_table(wholes: Sequence[Whole]) -> str:
    """Return the table of the tuned choice's speed-ups over kernels and over the untuned choice on matrices kept aside."""
    ratios: dict[str, list[float]] = {}
    for of_case in _ratios([case for case in wholes if case.observation.split == TEST]).values():
        for other, ratio in of_case.items():
            ratios.setdefault(other, []).append(ratio)
    rows = [
        (other, str(len(of_other)), f"{statistics.geometric_mean(of_other):.2f}", f"{min(of_other):.2f}", f"{max(of_other):.2f}")
        for other, of_other in sorted(ratios.items(), key=lambda item: (item[0] != "untuned", item[0]))
    ]
    return _markdown(("over", "matrices", "geometric mean", "least", "most"), rows) if rows else ""


def _overheads(observations: Sequence[Observation]) -> dict[str, list[float]]:
    """Return by SpMV's binning scheme the time to plan, relative to the time of a product by the scheme, for each matrix."""
    overheads: dict[tuple[str, int], list[float]] = {}
    for observation in observations:
        for label, seconds in observation.overheads.items():
            match = re.fullmatch(r"(coarse|hybrid)-(\d+)|fine", label)
            if match and label in observation.times:
                overheads.setdefault((match[1] or "fine", int(match[2] or 1)), []).append(seconds / observation.times[label])
    return {f"{name}-{size}" if name != "fine" else name: overheads[name, size] for name, size in sorted(overheads)}


def _single_and_binned(wholes: Sequence[Whole]) -> list[tuple[float, float, str]]:
    """Return number of entries, SpMV's best time without bins divided by that with bins, and family of each matrix with both."""
    points = []
    for case in wholes:
        times = case.observation.times
        binned = [times[label] for label in times if re.match(r"(coarse|hybrid|fine)\b", label)]
        single = [times[label] for label in times if label == _SINGLE or label.startswith(f"{_SINGLE}: ")]
        if binned and single:
            points.append((case.observation.features.get("nnz", 1.0), min(single) / min(binned), case.observation.family))
    return points


def _draw(tree: Tree, indent: str = "") -> list[str]:
    """Return a decision tree as lines of text, indented by depth."""
    if isinstance(tree, Leaf):
        evidence = f"  ({tree.cases} cases, {tree.lost:.3f} of the best time)" if tree.cases and tree.lost else ""
        return [f"{indent}{tree.label}{evidence}"]
    lines = [f"{indent}{tree.feature} <= {tree.at_most:.6g}:", *_draw(tree.then, indent + "    ")]
    return [*lines, f"{indent}else:", *_draw(tree.otherwise, indent + "    ")]
