"""Limits of measuring and training, the same for all devices."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["TUNER", "Tuner"]


@dataclass(frozen=True, eq=False)
class Tuner(thresholds.Thresholds):
    """The limits of the tuner, the same on all devices."""

    operation = "tuner"

    #: Loss of an unmeasured label.
    unknown_loss: float = number(4.0, "times the best")
    #: Loss of a label that could not be built or run.
    failed_loss: float = number(32.0, "times the best")
    #: Fewer make no tree.
    min_cases: int = number(12, "cases", least=1)
    #: The untuned rule gives way to a label that saves more, and to a tree that gains more.
    worth_a_label: float = number(0.005, "share of the time", most=1)
    worth_a_tree: float = number(0.002, "share of the time", most=1)
    #: On which a change of a number makes a difference, and what it gains on them in geometric mean, for a step of a descent.
    min_cases_of_step: int = number(3, "cases", least=1)
    min_gain_of_step: float = number(1.01, "times as fast", least=1)
    #: Longest time of verifying each result; if it takes longer, only possible winners are verified.
    quickly_verified: float = number(0.005, "seconds")
    #: After matrices with as many what is left of them is freed at once.
    min_freed: int = number(10**6, "entries")
    #: Matrices with as many are measured with one dtype each, in turns: they take most of the time.
    min_one_dtype: int = number(3 * 10**7, "entries")
    #: Making a pattern symmetric takes long.
    max_symmetric: int = number(3 * 10**7, "entries")
    #: Beyond these vectors, not entries, would take the memory and the time: in all, and where most are empty.
    max_rows: int = number(5 * 10**7, "rows")
    max_empty_rows: int = number(2 * 10**6, "rows")
    #: Longest time that counts as a clock that stands still.
    no_time: float = number(1e-7, "seconds")


TUNER = Tuner()
