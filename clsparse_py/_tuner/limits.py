"""Limits of measuring and training, the same for all devices."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["TUNER", "Tuner"]


@dataclass(frozen=True, eq=False)
class Tuner(thresholds.Thresholds):
    """Limits of measuring and training, the same on all devices."""

    operation = "tuner"

    #: Time that is assumed for a label (a method or kernel) that was not measured, relative to the best label's time.
    unknown_loss: float = number(4.0, "times the best")
    #: Time that is assumed for a label (a method or kernel) that could not be built or run, and the most that any label's time
    #: counts as, relative to the best label's time.
    failed_loss: float = number(32.0, "times the best")
    #: Least number of cases to train a decision tree of more than one leaf on.
    min_cases: int = number(12, "cases", least=1)
    #: Least share of the time that a label must save to take the place of the untuned rule at a leaf of a tree.
    worth_a_label: float = number(0.005, "share of the time", most=1)
    #: Least share of the mean time that a trained tree must save to take the place of the untuned rule.
    worth_a_tree: float = number(0.002, "share of the time", most=1)
    #: Least number of cases, timed before and after a step, for a descent to take the step.
    min_cases_of_step: int = number(3, "cases", least=1)
    #: Least gain of a step of a descent, in geometric mean over the cases whose time the step changes.
    min_gain_of_step: float = number(1.01, "times as fast", least=1)
    #: Longest check of a result after which the next configuration is checked at once; after a longer check only if it may win.
    quickly_verified: float = number(0.005, "seconds")
    #: Least size of a matrix after whose measurement unused memory is freed at once.
    min_freed: int = number(10**6, "entries")
    #: Least size of a matrix that is measured with one dtype only: large matrices take most of the time.
    min_one_dtype: int = number(3 * 10**7, "entries")
    #: Largest generated matrix whose pattern is made symmetric, which takes long on the host.
    max_symmetric: int = number(3 * 10**7, "entries")
    #: Most rows of a generated matrix: beyond this limit vectors, not entries, would take the memory and the time.
    max_rows: int = number(5 * 10**7, "rows")
    #: Most rows of a generated matrix that has more than three rows for each entry, so that most rows are empty.
    max_empty_rows: int = number(2 * 10**6, "rows")
    #: Longest time of a fill command, by the device's clock, at which this clock counts as standing still.
    no_time: float = number(1e-7, "seconds")


#: The limits of measuring and training that the tuner uses.
TUNER = Tuner()
