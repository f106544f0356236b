"""Operators on a sparse and a dense matrix: place by place, or at the entries of the sparse one alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.operands import broadcast, place_dense
from clsparse_py._operations.elementwise.operators import BINARY, lines_of_two
from clsparse_py._operations.elementwise.values import Values, add_entries, dense_values
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host

__all__ = [
    "AtEntries",
    "DensePair",
    "Outer",
    "combine_at_entries",
    "combine_dense",
    "combine_outer",
    "combine_with_dense",
    "make_dense",
]

#: Most work-items of a work-group in kernels that apply an elementwise operator to a dense matrix and a sparse or dense one.
_WORK_GROUP = 128

#: Rows and columns of the entries of a matrix.
Coordinates = tuple[cl_array.Array, cl_array.Array]


@kernel
@dataclass(frozen=True)
class DensePair(Values):
    """Parameters of ``templates/elementwise/dense_pair.mako``; the operator takes two values."""

    template = "elementwise/dense_pair"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.a, arithmetic.a, "bool", "lt")


@kernel
@dataclass(frozen=True)
class AtEntries(OfStructure):
    """Parameters of ``templates/elementwise/at_entries.mako``.

    Attributes
    ----------
    a, b : str
        NumPy's names of the dtypes of the sparse and of the dense matrix's values. Results are of the dtype that both give.
    operator : str
        A name in `BINARY`.
    """

    template = "elementwise/at_entries"
    variants: ClassVar[Variants] = {"": {"operator": "multiply"}}

    a: str
    b: str
    operator: str

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the types of indices and values, and the operator on two values."""
        dtype = np.result_type(self.a, self.b)
        lines = lines_of_two(self.a, self.b, dtype.name, BINARY[self.operator].expression(dtype))
        return "\n".join([super().prelude, *lines])


@kernel
@dataclass(frozen=True)
class Outer(AtEntries):
    """Parameters of ``templates/elementwise/outer.mako``.

    Attributes
    ----------
    result : str
        "int32" or "int64": the dtype of the rows and columns of results.
    of_row : bool
        Whether the sparse operand is a row, else a column.
    """

    template = "elementwise/outer"

    result: str
    of_row: bool

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: that of `AtEntries`, and the type J of the results' rows and columns."""
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.result]} J;  // {self.result}: rows and columns of results"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's example records by name: "" for a sparse row, "column" for a column."""
        types = arithmetic.index, arithmetic.a, arithmetic.x
        for variant, result, of_row in (("", arithmetic.index, True), ("column", "int64", False)):
            yield variant, cls(min(128, device.max_work_group), *types, "multiply", result, of_row)


def make_dense(A: Matrix, dtype: np.dtype[Any], out: cl_array.Array | None = None, operator: str = "plus") -> cl_array.Array:
    """Return a sparse matrix as a dense device array of ``dtype``; duplicates add up or, with operator "second", the last counts.

    The array is C-contiguous. With the operator "second" -0.0 stays -0.0. ``out``, if any, is an array of A's shape and of
    that dtype that becomes the result.
    """
    full = allocate(A.queue, "the matrix as a dense one", A.shape, dtype) if out is None else out
    if full.size:
        chain = Chain(A.queue, writes=(full,))
        chain.fill(full, 0, full.size)
        chain.finish(full)
    add_entries(A, full, operator)
    return full


def _layout_arguments(array: cl_array.Array) -> tuple[np.int64, ...]:
    """Return a kernel's arguments for the layout of a dense matrix: its offset in the buffer and its strides, in values."""
    return tuple(np.int64(number // array.dtype.itemsize) for number in (array.offset, *array.strides))


def combine_dense(queue: cl.CommandQueue, operator: str, a: cl_array.Array, b: cl_array.Array) -> cl_array.Array:
    """Return the dense matrix of an elementwise operator's results on two dense matrices of one shape.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operator : str
        A name in `BINARY`.
    a : pyopencl.array.Array
        C-contiguous; begins its buffer. The operator is computed in its dtype.
    b : pyopencl.array.Array
        Of any strides; begins at a multiple of its dtype's size in its buffer.
    """
    inner = np.dtype(a.dtype)
    out = allocate(queue, "the result", a.shape, BINARY[operator].result_dtype(inner), b.allocator)
    if a.size:
        chain = Chain(queue, a, b)
        types = name_of(b.dtype), name_of(inner), name_of(out.dtype)
        built, _ = chain.build(DensePair(min(_WORK_GROUP, chain.device.max_work_group), *types, operator))
        chain.launch_spread(built, a.size, np.uint64(a.shape[1]), *_layout_arguments(b), a, b, out)
        chain.finish(out)
    return out


def combine_with_dense(queue: cl.CommandQueue, operator: str, matrix: cl_array.Array, other: Any) -> Any:
    """Return an elementwise operator's results on a dense device matrix and a dense array: on host or device, as ``other`` is.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operator : str
        A name in `BINARY`.
    matrix : pyopencl.array.Array
        C-contiguous, of the dtype in which the operator is computed.
    other : numpy.ndarray or pyopencl.array.Array
        Of one or two dimensions; NumPy's of more too, which NumPy computes. All are repeated as in NumPy.

    Raises
    ------
    ValueError
        The shapes do not go together.
    """
    try:
        shape = np.broadcast_shapes(matrix.shape, other.shape)
    except ValueError:
        raise ValueError(f"other: must have shape {matrix.shape} or one that goes with it, has {other.shape}") from None
    if len(shape) > 2:
        if isinstance(other, cl_array.Array):
            raise ValueError(f"other: must have at most two dimensions, has {other.ndim}")
        return BINARY[operator].on_arrays(copy_to_host(matrix, queue), other.astype(matrix.dtype, copy=False))
    if shape != matrix.shape:
        matrix = dense_values(queue, broadcast(matrix, shape), "positive", np.dtype(matrix.dtype))
    results = combine_dense(queue, operator, matrix, broadcast(place_dense(queue, other), shape))
    return results if isinstance(other, cl_array.Array) else copy_to_host(results, queue)


def combine_at_entries(
    queue: cl.CommandQueue, operator: str, data: cl_array.Array, coordinates: Coordinates, dense: cl_array.Array
) -> cl_array.Array:
    """Return an elementwise operator's results on a sparse matrix's stored values and a dense matrix's values at the same places.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operator : str
        A name in `BINARY`.
    data : pyopencl.array.Array
        The values of entries; begins its buffer.
    coordinates : tuple of pyopencl.array.Array
        Their rows and columns.
    dense : pyopencl.array.Array
        Of any strides, 0 too; begins at a multiple of its dtype's size in its buffer.
    """
    result = np.result_type(data.dtype, dense.dtype)
    out = allocate(queue, "values of the result", data.size, result, data.allocator)
    if data.size:
        chain = Chain(queue, data, *coordinates, dense)
        types = name_of(coordinates[0].dtype), name_of(data.dtype), name_of(dense.dtype), operator
        built, _ = chain.build(AtEntries(min(_WORK_GROUP, chain.device.max_work_group), *types))
        chain.launch_spread(built, data.size, *_layout_arguments(dense), *coordinates, data, dense, out)
        chain.finish(out)
    return out


def combine_outer(
    queue: cl.CommandQueue,
    operator: str,
    data: cl_array.Array,
    places: cl_array.Array,
    dense: cl_array.Array,
    index: Any,
    of_row: bool,
) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
    """Return values, rows and columns of an elementwise operator's results on a dense matrix and a repeated sparse row or column.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operator : str
        A name in `BINARY`.
    data, places : pyopencl.array.Array
        The values of entries, and the columns of those of a row, or the rows of those of a column; they begin their buffers.
    dense : pyopencl.array.Array
        Of the result's shape, of any strides, 0 too; begins at a multiple of its dtype's size in its buffer.
    index : dtype
        Of the rows and columns of results.
    of_row : bool
        Whether the entries are a row's.
    """
    copies = dense.shape[0 if of_row else 1]
    n, result = data.size * copies, np.result_type(data.dtype, dense.dtype)
    values = allocate(queue, "values of the result", n, result, data.allocator)
    rows, columns = (allocate(queue, f"{axis} of the result", n, index, data.allocator) for axis in ("rows", "columns"))
    if n:
        chain = Chain(queue, data, places, dense)
        types = name_of(places.dtype), name_of(data.dtype), name_of(dense.dtype), operator, name_of(np.dtype(index))
        built, _ = chain.build(Outer(min(_WORK_GROUP, chain.device.max_work_group), *types, of_row))
        counts = np.uint64(data.size), np.uint64(copies)
        chain.launch_spread(built, n, *counts, *_layout_arguments(dense), places, data, dense, rows, columns, values)
        chain.finish(values, rows, columns)
    return values, rows, columns
