"""Combinations of the values of several axes: pairwise, or all of them where ``CLSPARSE_FULL`` is set."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from allpairspy import AllPairs

__all__ = ["combinations", "exhaustive", "uncovered_pairs"]

Case = dict[str, Any]


def exhaustive() -> bool:
    """Return whether all combinations are asked for."""
    return os.environ.get("CLSPARSE_FULL", "0") not in ("", "0")


def combinations(axes: Mapping[str, Sequence[Any]], legal: Callable[[Case], bool] = lambda _: True) -> list[Case]:
    """Return cases in which each pair of values that can meet in a legal case does so; all cases with ``CLSPARSE_FULL=1``."""
    if exhaustive():
        return list(_every(axes, legal))
    names = list(axes)
    if not all(axes.values()):
        return []
    # A partial case is legal where something completes it.
    completable: dict[tuple[Any, ...], bool] = {}

    def allowed(row: Sequence[Any]) -> bool:
        key = tuple(row)
        if key not in completable:
            completable[key] = any(True for _ in _every({**axes, **{n: [v] for n, v in zip(names, row, strict=False)}}, legal))
        return completable[key]

    return [dict(zip(names, row, strict=True)) for row in AllPairs(list(axes.values()), filter_func=allowed)]


def _every(axes: Mapping[str, Sequence[Any]], legal: Callable[[Case], bool]) -> Iterator[Case]:
    cases = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    return (case for case in cases if legal(case))


def uncovered_pairs(
    axes: Mapping[str, Sequence[Any]], legal: Callable[[Case], bool], cases: Sequence[Case]
) -> set[tuple[Any, ...]]:
    """Return the pairs of values that a legal case could hold and none of ``cases`` does."""

    def pairs(some: Any) -> set[tuple[Any, ...]]:
        return {pair for case in some for pair in itertools.combinations(case.items(), 2)}

    return pairs(_every(axes, legal)) - pairs(cases)
