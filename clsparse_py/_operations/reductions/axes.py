"""Axes of reductions, and their lengths."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from clsparse_py._matrix.matrix import Matrix

__all__ = ["axis_of", "find_summed_axes", "longest_row"]


def axis_of(axis: Any) -> int | None:
    """Return the axis of a reduction as 0 or 1, or None for both axes.

    Raises
    ------
    TypeError, ValueError
        ``axis`` is no axis.
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
    """Return the number of entries of a matrix's longest row, duplicates included; None if that is not known."""
    return None if A.facts is None else A.facts.longest


def find_summed_axes(axes: Any, A: tuple[int, ...], B: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return the axes over which a product of two arrays sums, a list for each array; ``A``, ``B``: the shapes of the arrays.

    Raises
    ------
    ValueError
        ``axes`` are no axes of the arrays, or differ in length.
    """
    if isinstance(axes, (int, np.integer)):
        axes = range(len(A) - int(axes), len(A)), range(int(axes))
    of_A, of_B = (np.atleast_1d(np.asarray(axes_of_one, int)).tolist() for axes_of_one in axes)
    for name, axes_of_one, shape in (("A", of_A, A), ("other", of_B, B)):
        if any(not -len(shape) <= axis < len(shape) for axis in axes_of_one) or len(
            {axis % len(shape) for axis in axes_of_one}
        ) < len(axes_of_one):
            raise ValueError(f"axes: must be axes of {name}, each once, which has {len(shape)}, are {axes_of_one}")
    of_A, of_B = ([axis % len(shape) for axis in axes_of_one] for axes_of_one, shape in ((of_A, A), (of_B, B)))
    if [A[axis] for axis in of_A] != [B[axis] for axis in of_B]:
        difference = f"{of_A} of A, which has shape {A}, and {of_B} of other, which has {B}, differ in length"
        raise ValueError(f"axes: {difference} (sizes of the corresponding axes must match)")
    return of_A, of_B
