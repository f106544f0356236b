"""Axes of sparse arrays in another order, and new ones."""

from __future__ import annotations

import operator
from typing import Any

from clsparse_py.functions.operands import as_rows

__all__ = ["expand_dims", "permute_dims", "swapaxes"]


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """Return an array with its axes in another order.

    Parameters
    ----------
    A : sparse array
    axes : tuple of int, optional
        The axis of A that each axis of the result is; by default in reverse order.
    copy : bool
        Whether the result has arrays of its own.

    Returns
    -------
    coo_array, or A itself
        A, or a copy of it, if the order stays.

    Raises
    ------
    ValueError, TypeError
        ``axes`` is no order of A's axes.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.permute_dims(sp.csr_array([[1, 2, 3]])).shape
    (3, 1)
    """
    ndim = A.ndim
    if axes is None:
        order = list(range(ndim))[::-1]
    elif not isinstance(axes, (tuple, list)):
        raise TypeError(f"axes: must be a tuple of integers, is {type(axes).__name__}")
    elif len(axes) != ndim:
        raise ValueError(f"Incorrect number of axes: {len(axes)} instead of {ndim}")
    else:
        order = [_axis("axes", axis, ndim) for axis in axes]
    if len(set(order)) < ndim:
        raise ValueError(f"axes: duplicate value in axis, {tuple(axes)}")
    if order == list(range(ndim)):
        return A.copy() if copy else A
    return A.tocoo(copy=copy).transpose()


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """Return a copy of an array with two axes swapped.

    Parameters
    ----------
    A : sparse array
    axis1, axis2 : int

    Returns
    -------
    coo_array, or a copy of A if the axes are the same

    Raises
    ------
    ValueError
        One of them is no axis of A.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.swapaxes(sp.csr_array([[1, 2, 3]]), 0, 1).shape
    (3, 1)
    """
    order = list(range(A.ndim))
    first, second = (_axis("Invalid axis", axis, A.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return permute_dims(A, axes=order, copy=True)


def expand_dims(A: Any, /, *, axis: int = 0) -> Any:
    """Return a one-dimensional array as a row or as a column.

    Parameters
    ----------
    A : sparse array
        Of one dimension; arrays on the device have no more than two.
    axis : int
        Where the new axis is: 0 or -2 for a row, 1 or -1 for a column.

    Returns
    -------
    coo_array

    Raises
    ------
    ValueError
        ``axis`` is out of range, or A has two dimensions.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.expand_dims(sp.coo_array([1, 2, 3]), axis=1).shape
    (3, 1)
    """
    try:
        place = operator.index(axis)
    except TypeError:
        raise ValueError(f"Invalid axis {axis}. Must be an integer.") from None
    if not -A.ndim - 1 <= place <= A.ndim:
        raise ValueError(f"Invalid axis {axis} for N={A.ndim}. Must be in [-N-1, N].")
    if A.ndim > 1:
        raise ValueError("A: must have one dimension, has 2, and arrays on the device have no more")
    row = as_rows("A", A, A.queue).tocoo(copy=True)
    return row if place in (0, -2) else row.transpose()


def _axis(name: str, axis: Any, ndim: int) -> int:
    """Return an axis counted from the first."""
    try:
        found = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer (given {axis})") from None
    if not -ndim <= found < ndim:
        raise ValueError(f"{name}: {axis} is out of bounds, axis out of range for ndim={ndim}")
    return found % ndim
