"""Axes of reductions, and their lengths."""

from __future__ import annotations

import operator
from typing import Any

from clsparse_py._matrix.matrix import Matrix

__all__ = ["axis_of", "longest_row"]


def axis_of(axis: Any) -> int | None:
    """Return 0, 1, or None for all; both axes are all.

    Raises
    ------
    TypeError, ValueError
        It is no axis.
    """
    if axis is None:
        return None
    axis_numbers = axis if isinstance(axis, tuple) else (axis,)
    try:
        axes = [operator.index(number) for number in axis_numbers]
    except TypeError:
        raise TypeError(f"axis: must be None or an integer, is {axis!r} (axis must be an integer)") from None
    if not axes or any(not -2 <= number < 2 for number in axes) or len({number % 2 for number in axes}) < len(axes):
        raise ValueError(f"axis: must be None, 0 or 1, or -1 or -2, is {axis!r} (axis out of range)")
    return None if len(axes) == 2 else axes[0] % 2


def longest_row(A: Matrix) -> int | None:
    """Return how many entries a row has at most, duplicates included; None if that is not known."""
    return None if A.facts is None else A.facts.longest
