"""Keys of ``A[...]``: checked, and resolved to one index for each axis."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.indexing.positions import Listed, places_of_entries, places_of_marks

__all__ = ["Axis", "Key", "parse"]


#: Index of an axis: a position, evenly spaced positions, or listed positions.
Axis = int | range | Listed


@dataclass(frozen=True, eq=False)
class Key:
    """A parsed index: the items between the brackets of ``A[...]``.

    Attributes
    ----------
    index : tuple of Axis
        An index for each axis of the matrix.
    shape : tuple of int
        The shape of the result, new axes included.
    """

    index: tuple[Axis, ...]
    shape: tuple[int, ...]


def parse(key: Any, shape: tuple[int, ...], queue: Any = None) -> Key:
    """Return the key of ``A[key]``, parsed: an index for each axis of a matrix, and the shape of the result.

    Parameters
    ----------
    key
        Integers, slices, arrays of integers or of booleans (on host or device), sparse matrices of booleans, None, ``...``, or a
        tuple of these.
    shape : tuple of int
        Of the matrix.
    queue : pyopencl.CommandQueue
        Of the matrix; masks on the device are read there.

    Raises
    ------
    IndexError
        An index is out of range, of another type or shape, or there are too many; the message says which.
    ValueError
        An index is a number that is no integer, or a list of lists that is no array.
    """
    key_items = key if isinstance(key, tuple) else (key,)
    items = _complete([_check_item(part) for part in key_items], len(shape))
    index: list[Axis] = []
    lengths: list[int] = []  # of the result's axes, but of axes of arrays
    first = None  # the first axis with an array or a position
    arrays: list[Listed] = []
    for item in items:
        if item is None:
            lengths.append(1)
            continue
        axis = len(index)
        item_indices = list(_indices(item, axis, shape, queue))
        index += item_indices
        if isinstance(item, slice):
            lengths.append(len(item_indices[0]))  # type: ignore[arg-type]  # a range
            continue
        first = axis if first is None else first
        arrays += [positions for positions in item_indices if isinstance(positions, Listed)]
    if arrays:
        place = 0 if first is None else first
        lengths[place:place] = _broadcast(arrays)
    return Key(tuple(index), tuple(lengths))


def _check_item(item: Any) -> Any:
    """Return an item of a key ``A[...]``, checked: None, ``...``, an integer, a slice, an array of indices, or a mask.

    Raises
    ------
    IndexError, ValueError
        The item is of another kind.
    """
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if (number := _as_integer(item)) is not None:
        return number
    if scipy.sparse.issparse(item) or hasattr(item, "tocsr"):
        if item.dtype.kind != "b":
            raise IndexError(f"index: a sparse matrix must have booleans, and the shape of the matrix; has {item.dtype}")
        return item
    if isinstance(item, cl_array.Array):
        array: Any = item
    else:
        try:
            array = np.asarray(item)
        except ValueError as error:
            raise ValueError(f"index: is no array: {error}") from None
        if array.dtype.kind == "f":
            array = _as_integers(array)
    if array.ndim not in (1, 2):
        raise IndexError(f"index: an array must have one or two dimensions, has {array.ndim} (Index dimension must be 1 or 2)")
    if array.dtype.kind not in "iub":
        raise IndexError(f"index: arrays must be of integers or booleans, has one of {array.dtype}")
    return array


def _as_integers(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an index array of whole floating-point numbers as integers.

    Raises
    ------
    IndexError
        A position is no whole number.
    """
    if not np.array_equal(positions, np.trunc(positions)):
        raise IndexError(f"index: arrays must be of integers or booleans, has one of {positions.dtype} with a fraction")
    with np.errstate(invalid="ignore"):  # infinity is past every axis's end
        return positions.astype(np.int64)


def _as_integer(item: Any) -> int | None:
    """Return an item of a key ``A[...]`` as a Python integer if it is an integer or a 0-dimensional array of one; else None.

    Raises
    ------
    ValueError
        The item is a number with the value of an integer, but of another type, as in SciPy.
    """
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, str)) or getattr(item, "ndim", 0) != 0:
        return None
    value = item.get() if isinstance(item, cl_array.Array) else item
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        is_whole = bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return None
    if is_whole:
        raise ValueError(f"index: must be an integer, is {value!r} ({type(value).__name__}); inexact indices are not allowed")
    return None


def _complete(items: list[Any], ndim: int) -> list[Any]:
    """Return a key's items with full slices in place of ``...`` or, if it has none, at the end, so that each axis has an index.

    Raises
    ------
    IndexError
        There are several ``...``, or too many indices.
    """
    ellipses = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"index: can have one ellipsis ('...'), has {len(ellipses)} (an index can only have a single ellipsis)")
    n = sum((_is_mask(item) and item.ndim) or 1 for item in items if item is not None and item is not Ellipsis)
    if n > ndim:
        raise IndexError(
            f"index: too many indices, {n}: the matrix has {ndim} axes (Too many indices for array: tuple index out of range)"
        )
    full = [slice(None)] * (ndim - n)
    if not ellipses:
        return items + full
    place = ellipses[0]
    return items[:place] + full + items[place + 1 :]


def _is_mask(item: Any) -> bool:
    """Return whether an item of a key ``A[...]`` is a mask, an array of booleans."""
    return hasattr(item, "dtype") and item.dtype.kind == "b"


def _indices(item: Any, axis: int, shape: tuple[int, ...], queue: Any) -> Iterator[Axis]:
    """Iterate over the axes' indices that an item of a key ``A[...]`` stands for: one index, or one for each axis of a mask.

    Raises
    ------
    IndexError
        An index is out of range, or a mask of another shape.
    """
    if isinstance(item, slice):
        yield range(*item.indices(shape[axis]))
    elif isinstance(item, int):
        n = shape[axis]
        if not -n <= item < n:
            raise IndexError(f"index ({item}) out of range: axis {axis} has {n} positions")
        yield item + n if item < 0 else item
    elif _is_mask(item):
        mask_shape = shape[axis : axis + item.ndim]
        if tuple(item.shape) != mask_shape:
            instead = f"bool index {axis} has shape {tuple(item.shape)} instead of {mask_shape}"
            raise IndexError(
                f"index: a mask from axis {axis} on must have shape {mask_shape}, has {tuple(item.shape)} ({instead})"
            )
        yield from _list_mask(item, queue)
    elif isinstance(item, cl_array.Array):
        yield Listed(item, is_given=True)
    else:
        yield Listed(_check_range(item, axis, shape[axis]))


def _list_mask(mask: Any, queue: Any) -> Iterator[Listed]:
    """Iterate over the axes of a boolean mask; yields the positions along each axis at which the mask is True."""
    if isinstance(mask, cl_array.Array):
        for positions in places_of_marks(queue, mask):
            yield Listed(positions, is_checked=True, is_ascending=mask.ndim == 1, is_given=True)
    elif isinstance(mask, SparseArray):
        for positions in places_of_entries(mask._as_csr())[-mask.ndim :]:
            yield Listed(positions, is_checked=True, is_ascending=mask.ndim == 1)
    else:
        for positions in mask.nonzero():
            yield Listed(np.asarray(positions, np.int64))


def _check_range(indices: np.ndarray[Any, Any], axis: int, n: int) -> np.ndarray[Any, Any]:
    """Return a NumPy array of an axis's indices, checked to be in range, as int64 positions: negative ones count from the end.

    Raises
    ------
    IndexError
        An index is out of range.
    """
    if not indices.size:
        return indices.astype(np.int64)
    smallest, largest = indices.min(), indices.max()
    if smallest < -n or largest >= n:
        raise IndexError(f"index ({largest if largest >= n else smallest}) out of range: axis {axis} has {n} positions")
    positions = indices.astype(np.int64)
    if smallest < 0:
        positions[positions < 0] += n
    return positions


def _broadcast(arrays: list[Listed]) -> tuple[int, ...]:
    """Return the shape to which the index arrays of a key ``A[...]`` broadcast.

    Raises
    ------
    IndexError
        The shapes do not broadcast.
    """
    shapes = [array.shape for array in arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"index: arrays of shapes {' and '.join(map(str, shapes))} cannot be broadcast together (shape mismatch)"
        ) from None
