"""The progress that a run shows: lines without a terminal, a bar on one."""

from __future__ import annotations

import io

import pytest
from made_up import make_observation
from rich.console import Console

from clsparse_py._ground.console import make_console
from clsparse_py._tuner.corpus import TRAIN, Case
from clsparse_py._tuner.progress import Progress, duration


def case(name: str) -> Case:
    return Case(name, "family", TRAIN, 100, lambda: None)  # type: ignore[arg-type, return-value]


def run(console: Console) -> None:
    with Progress(console, 60) as progress:
        progress.begins("spmv", case("first"), 0, 60)
        progress.show(make_observation({"default": 3e-3, "better": 2e-3}, {}))
        progress.begins("spmv", case("[second]"), 1, 50)
        progress.skip("spmv", case("[second]"), "[second]: has no entries\nnone")
        progress.skip("spmv", case("[second]"), "[second]: has no entries")
        progress.begins("spmv", case("third"), 2, 40)
        progress.show(make_observation({}, {}))


def test_without_a_terminal_there_is_a_line_for_each_matrix() -> None:
    text = io.StringIO()
    run(make_console(file=text, width=80))
    first, second = text.getvalue().splitlines()
    assert first.startswith("spmv: first in ")
    assert first.endswith("float32 method: better 2 ms (1.50x)")
    assert second == "spmv: [second] left out: has no entries"


def test_on_a_terminal_there_is_a_bar() -> None:
    text = io.StringIO()
    run(make_console(file=text, width=160, force_terminal=True))
    assert "2 matrices, 40 s left" in text.getvalue()
    assert "left out" not in text.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"), [(75, "1 min 15 s"), (60, "1 min 0 s"), (59, "59 s"), (0.002, "2 ms"), (1.5e-6, "1.5 µs")]
)
def test_times_are_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
