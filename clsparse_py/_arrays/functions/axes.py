"""Functions that permute the axes of sparse arrays, or add an axis."""

from __future__ import annotations

import operator
from typing import Any

import scipy.sparse

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.operands import as_rows, queue_of
from clsparse_py._arrays.hosted import on_host
from clsparse_py._build.plain import door
from clsparse_py._ground.errors import warn_of_fallback

__all__ = ["expand_dims", "matrix_transpose", "permute_dims", "swapaxes"]


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """Return a sparse array with its axes in the order ``axes``, by default reversed.

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
    if A.ndim > 2:
        return _run_on_host("permute_dims", A, axes, copy)
    A = on_device(queue_of((A,)), A)
    natural_order = tuple(range(A.ndim))
    axes = natural_order[::-1] if axes is None else axes
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"axes: axis must be an integer/tuple of ints, not {type(axes).__name__}")
    if len(axes) != A.ndim:
        raise ValueError(f"Incorrect number of axes: {len(axes)} instead of {A.ndim}")
    order = tuple(_normalize_axis("axes", axis, A.ndim) for axis in axes)
    if len(set(order)) < A.ndim:
        raise ValueError(f"axes: duplicate value in axis, {tuple(axes)}")
    if order == natural_order:
        return A.copy() if copy else A
    return A.tocoo(copy=copy).transpose()


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """Return a copy of a sparse array with two axes swapped.

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
    try:
        first, second = (_normalize_axis("Invalid axis", axis, A.ndim) for axis in (axis1, axis2))
    except TypeError as error:
        raise ValueError(str(error)) from None
    order[first], order[second] = order[second], order[first]
    return permute_dims(A, axes=order, copy=True)


def matrix_transpose(A: Any) -> Any:
    """Return a sparse array with its last two axes swapped.

    Parameters
    ----------
    A : sparse array

    Returns
    -------
    csc_array, csr_array, coo_array or bsr_array
        ``A.T`` of two dimensions; of more SciPy's, which is on the host, as a `HostFallbackWarning` says.

    Raises
    ------
    ValueError
        A has one dimension.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.matrix_transpose(sp.csr_array([[1, 2, 3]])).shape
    (3, 1)
    """
    return swapaxes(A, -2, -1) if A.ndim > 2 else on_device(queue_of((A,)), A).mT


@door(on_scipy(scipy.sparse.expand_dims))
def expand_dims(A: Any, /, *, axis: int = 0) -> Any:
    """Return a sparse array with a new axis of length 1 at the position ``axis``.

    Parameters
    ----------
    A : sparse array
    axis : int
        Where the new axis is: of one dimension 0 or -2 gives a row, 1 or -1 a column.

    Returns
    -------
    coo_array
        Of more than two dimensions SciPy's, which is on the host, as a `HostFallbackWarning` says.

    Raises
    ------
    ValueError
        ``axis`` is out of range.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.expand_dims(sp.coo_array([1, 2, 3]), axis=1).shape
    (3, 1)
    """
    try:
        position = operator.index(axis)
    except TypeError:
        raise ValueError(f"Invalid axis {axis}. Must be an integer.") from None
    if not -A.ndim - 1 <= position <= A.ndim:
        raise ValueError(f"Invalid axis {axis} for N={A.ndim}. Must be in [-N-1, N].")
    if A.ndim > 1:
        return _run_on_host("expand_dims", A, axis=position)
    A = on_device(queue_of((A,)), A)
    row = as_rows("A", A, A.queue).tocoo(copy=True)
    return row if position in (0, -2) else row.transpose()


def _run_on_host(name: str, A: Any, *arguments: Any, **named: Any) -> Any:
    """Return the result of the SciPy function ``name``, on the host, for arrays of more than two dimensions; warn once."""
    warn_of_fallback(name)
    return getattr(scipy.sparse, name)(on_host(A), *arguments, **named)


def _normalize_axis(name: str, axis: Any, ndim: int) -> int:
    """Return the number of an axis, counted from the first; raise an error if ``ndim`` dimensions have no such axis."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer (given {axis})") from None
    if not -ndim <= number < ndim:
        raise ValueError(f"{name}: {axis} is out of bounds, axis out of range for ndim={ndim}")
    return number % ndim
