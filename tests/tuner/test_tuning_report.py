"""The report shows what there is, and says nothing of what there is not."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from made_up import separable
from rich.console import Console

from clsparse_py._decisions.tree import Leaf
from clsparse_py._device.device import describe
from clsparse_py._tuner import run, training
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.outcome import Outcome, join_answers, score_answers
from clsparse_py._tuner.training import Losses

pytestmark = pytest.mark.any_platform

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


def outcome_of(observations: list[Observation]) -> Outcome:
    answers = {}
    for question in dict.fromkeys(observation.question for observation in observations):
        asked = [observation for observation in observations if observation.question == question]
        result = training.answer(asked, Leaf(asked[0].default))
        assert result is not None
        answers[question] = result
    together = join_answers(observations, answers)
    return Outcome(answers, together, score_answers(together), observations)


def two_questions() -> list[Observation]:
    """Return measurements of a kernel for all rows, and of whether to bin: bins are better where rows are long."""
    rng = np.random.default_rng(4)
    made = []
    for number in range(80):
        mean = float(np.exp(rng.uniform(0, 6)))
        common = {
            "case": f"case{number}", "subject": 0, "family": f"f{number % 8}", "split": TEST if number % 4 == 3 else TRAIN,
            "features": {"mean": mean, "nnz": 1000 * mean}, "noise": 0.01,
        }  # fmt: skip
        single = {"serial/64/2": 1e-3 * mean, "serial/256/4": 1.1e-3 * mean, "adaptive/128/6": 5e-3 + 0.2e-3 * mean}
        made.append(Observation("spmv", "float64", "single", default="serial/64/2", times=single, **common))
        schemes = {"single": min(single.values()), "coarse-10": 30e-3, "hybrid-100": 31e-3, "fine": 33e-3}
        overheads = dict.fromkeys(schemes, 0.5)
        made.append(Observation("spmv", "float64", "scheme", default="single", times=schemes, overheads=overheads, **common))
    return made


def test_all_questions_together_are_scored_by_what_runs() -> None:
    outcome = outcome_of(two_questions())
    assert outcome.scores["tuned test"].mean < 1.05
    assert outcome.scores["untuned test"].mean > 1.2
    labels = {row.tuned for row in outcome.whole}
    assert labels <= {"single: serial/64/2", "single: adaptive/128/6", "coarse-10", "hybrid-100", "fine"}
    assert len(labels) > 1
    assert {row.untuned for row in outcome.whole} == {"single: serial/64/2"}
    for row in outcome.whole:
        assert row.observation.best <= min(time for label, time in row.observation.times.items() if label.startswith("single: "))


def test_a_report_has_the_plots_of_the_paper(queue: cl.CommandQueue, tmp_path: Path) -> None:
    from clsparse_py._tuner.report import write

    made_up = outcome_of(separable())
    page = write(
        tmp_path / "report",
        describe(queue.device),
        {("spmv", "float64"): outcome_of(two_questions()), ("made-up", "any"): made_up},
    )
    text = page.read_text()
    pictures = {path.name for path in page.parent.glob("*.png")}
    expected = {f"spmv-float64-{name}.png" for name in ("speed-up", "adaptive", "overhead", "bins", "lost")}
    assert pictures == expected | {"made-up-speed-up.png", "made-up-lost.png"}
    assert all(f"({name})" in text for name in pictures)
    assert "| spmv float64 | all together |" in text
    assert "mean <= 1" in text
    assert "CSR-Adaptive" in text


def test_a_plot_of_hundreds_of_families_names_the_largest(recwarn: pytest.WarningsRecorder) -> None:
    from clsparse_py._tuner import plots  # needs matplotlib

    points = [(10.0 * n, 1.0 + n / 100, f"family-{n if n > 20 else n % 3}") for n in range(1, 300)]
    figure = plots.plot_bins(points, "made up")
    figure.draw_without_rendering()
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"family-0", "family-1", "family-2", "others"} <= set(named)
    assert len(named) == 16
    assert not [warning for warning in recwarn if "constrained_layout" in str(warning.message)]


def labels_of(figure: Any) -> list[Any]:
    """Return where the labels of the first axis stand, in order, of those that are in sight."""
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
    return [tick.label1.get_window_extent() for tick in ticks]


@pytest.mark.parametrize("highest", [1.01, 1.3, 3, 10, 80, 1e3, 1e5, 1e9])
@pytest.mark.parametrize("lowest", [1, 0.97, 0.5, 1e-3])
def test_marks_do_not_collide_and_are_two_at_least(lowest: float, highest: float) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from clsparse_py._tuner import plots  # needs matplotlib

    figure = plots.plot_speed_ups({"a": {"one": lowest}, "b": {"one": highest, "untuned": 1.0}}, "made up")
    FigureCanvasAgg(figure)
    boxes = labels_of(figure)
    assert 2 <= len(boxes) <= 12
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert not any(label.get_text() for label in figure.axes[0].xaxis.get_minorticklabels())


def test_a_legend_hides_nothing_and_curves_that_coincide_are_all_seen() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from clsparse_py._tuner import plots  # needs matplotlib

    values = [1.0, 1.1, 1.2]
    shown = {
        "speed": plots.plot_speed_ups({"$a$b$": {"one": 1.5, "untuned": 1.5, "$": 2.0}}, "made up"),
        "bins": plots.plot_bins([(10.0, 1.0, "$family"), (20.0, 2.0, "b$c$")], "made up"),
        "lost": plots.plot_distribution({"tuned": values, "untuned": values, "third": values}, "made up"),
    }
    for figure in shown.values():
        FigureCanvasAgg(figure)
        figure.canvas.draw()
        (legend,) = figure.legends
        assert not legend.get_window_extent().overlaps(figure.axes[0].get_window_extent())
    widths = [line.get_linewidth() for line in shown["lost"].axes[0].lines[:3]]
    assert all(below >= above + 1 for below, above in itertools.pairwise(widths))
    hollow = shown["speed"].axes[0].collections[0]
    assert hollow.get_facecolors().size == 0


def test_the_summary_fits_80_columns() -> None:
    losses = Losses(100, 0.123, 1.043, 1.27, 2.0)
    scores = dict.fromkeys(("train", "test", "untuned test", "tuned train", "tuned test"), losses)
    answer = SimpleNamespace(tree=Leaf("a"), scores=scores, tuned=True)
    outcome = SimpleNamespace(answers={"accumulator": answer, "thresholds": answer}, scores=scores)
    text = io.StringIO()
    Console(file=text, width=80).print(run.summary({("segmented_sort", "float64"): outcome, ("spgemm", "any"): outcome}))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("1.04 (1.27)") for line in lines) == 3 * 6
    assert sum("12, 12" in line for line in lines) == 6
    assert "\N{HORIZONTAL ELLIPSIS}" not in text.getvalue()
