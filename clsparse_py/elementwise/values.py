"""Operations on each stored value of a matrix, and entries added to a dense matrix."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import OPENCL_TYPES, conversion, name_of, needs_fp64
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.device import Device, describe
from clsparse_py.elementwise.operators import OPERATORS, UNARY
from clsparse_py.errors import DtypeError
from clsparse_py.launch import Chain, spread
from clsparse_py.matrix import Matrix
from clsparse_py.memory import allocated
from clsparse_py.programs import Parameters
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure
from clsparse_py.transfer import fetched

__all__ = ["Dense", "Scatter", "Values", "add_entries", "dense_values", "mapped", "mapped_with", "scaled"]

_WORK_GROUP = 128


def _types(a: str, inner: str, result: str, operate: str) -> list[str]:
    """Return lines of OpenCL C: the types of values, of what is computed, and of results, and the operation."""
    dtypes = [np.dtype(each) for each in (a, inner, result)]
    return [
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(*dtypes) else []),
        f"typedef {OPENCL_TYPES[a]} A_VALUE;  // {a}",
        f"typedef {OPENCL_TYPES[inner]} T;  // {inner}: values are computed in it",
        f"typedef {OPENCL_TYPES[result]} C_VALUE;  // {result}",
        f"T from_a(const A_VALUE v) {{ return {conversion(dtypes[0], dtypes[1])}; }}",
        operate,
    ]


@dataclass(frozen=True)
class Values(Parameters):
    """Parameters of ``templates/elementwise/values.mako``.

    Attributes
    ----------
    a, inner, result : str
        NumPy's names of the dtypes of the values, of what is computed, and of the results.
    operation : str
        A name in `UNARY`, or one in `OPERATORS`, which takes a scalar too.
    """

    template = "elementwise/values"

    a: str
    inner: str
    result: str
    operation: str

    @property
    @override
    def name(self) -> str:
        return f"values_{self.operation}_{self.a}_{self.inner}_{self.result}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        inner = np.dtype(self.inner)
        if self.operation in UNARY:
            operate = f"C_VALUE operate(const T a) {{ return {UNARY[self.operation].expression(inner)}; }}"
        else:
            operate = f"C_VALUE operate(const T a, const T b) {{ return {OPERATORS[self.operation].expression(inner)}; }}"
        return "\n".join(_types(self.a, self.inner, self.result, operate))

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group, "scalar": self.operation in OPERATORS}


@dataclass(frozen=True)
class Dense(Values):
    """Parameters of ``templates/elementwise/dense.mako``; the operation takes one value."""

    template = "elementwise/dense"

    @property
    @override
    def name(self) -> str:
        return f"dense_{super().name}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group}


@dataclass(frozen=True)
class Scatter(OfStructure):
    """Parameters of ``templates/elementwise/scatter.mako``.

    Attributes
    ----------
    a, result : str
        NumPy's names of the dtypes of the sparse and of the dense matrix's values.
    operator : str
        "plus" or "minus".
    """

    template = "elementwise/scatter"

    a: str
    result: str
    operator: str

    @property
    @override
    def name(self) -> str:
        return f"scatter_{self.operator}_{self.a}_{self.result}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        expression = OPERATORS[self.operator].expression(np.dtype(self.result))
        operate = f"C_VALUE operate(const T a, const T b) {{ return {expression}; }}"
        return "\n".join([super().prelude, *_types(self.a, self.result, self.result, operate)])


def mapped(A: Matrix, operation: str) -> cl_array.Array:
    """Return the results of an operation on each stored value of a matrix.

    Parameters
    ----------
    A : Matrix
    operation : str
        A name in `UNARY`.
    """
    A.require_valid()
    result = np.abs(np.zeros(0, A.dtype)).dtype if operation in ("absolute", "real", "imag") else A.dtype
    return _mapped(A.queue, A.data, operation, A.dtype, result, None)


def scaled(A: Matrix, scalar: Any, dtype: Any = None) -> cl_array.Array:
    """Return each stored value of a matrix times a scalar, of the dtype that NumPy gives the product.

    Parameters
    ----------
    A : Matrix
    scalar : scalar
    dtype : dtype, optional
        To convert the values to before; by default their own.

    Raises
    ------
    OverflowError
        An integer that the values' dtype does not hold.
    TypeError
        The product is of a dtype that is not supported, or that the device lacks.
    """
    A.require_valid()
    result = (np.zeros(1, dtype or A.dtype) * scalar).dtype
    if result.name not in OPENCL_TYPES:
        raise DtypeError(f"A: values of {A.dtype} times {scalar!r} are {result}, which is not supported")
    if needs_fp64(result) and not describe(A.queue.device).fp64:
        lacking = f"{result} needs double precision, which {A.queue.device.name} lacks"
        raise DtypeError(f"dtype: {lacking}; multiply by a scalar of the values' dtype, {A.dtype}")
    return mapped_with(A.queue, A.data, "multiply", result, scalar)


def mapped_with(
    queue: cl.CommandQueue, values: cl_array.Array, operator: str, inner: np.dtype[Any], scalar: Any
) -> cl_array.Array:
    """Return the results of an operator on each value and a scalar, computed in a dtype.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
    operator : str
        A name in `OPERATORS`.
    inner : dtype
        That of values and scalar.
    scalar : scalar
    """
    result = OPERATORS[operator].result_dtype(inner)
    return _mapped(queue, values, operator, inner, result, np.asarray(scalar).astype(inner)[()])


def _mapped_by_host(
    queue: cl.CommandQueue, values: cl_array.Array, operation: str, inner: np.dtype[Any], result: np.dtype[Any], scalar: Any
) -> cl_array.Array:
    """Return the result of `_mapped`, computed by NumPy."""
    given = fetched(values, queue).astype(inner)
    if operation in ("real", "imag"):
        found = getattr(given, operation)
    elif operation in UNARY:
        found = getattr(np, operation)(given)
    else:
        found = given * scalar if operation == "multiply" else OPERATORS[operation].of_scipy(given, scalar)
    return placed(queue, "values", found.astype(result), values.allocator)


def _given(scalar: Any) -> tuple[Any, ...]:
    return () if scalar is None else (scalar,)


@or_by_host(_mapped_by_host)
def _mapped(
    queue: cl.CommandQueue, values: cl_array.Array, operation: str, inner: np.dtype[Any], result: np.dtype[Any], scalar: Any
) -> cl_array.Array:
    """Return the results of an operation that is computed in a dtype, with a scalar of that dtype if there is one."""
    chain = Chain(queue, values)
    out = allocated(queue, "values of the result", values.size, result, values.allocator)
    types = name_of(values.dtype), name_of(inner), name_of(result)
    built, record = chain.build(_record(chain.device, *types, operation))
    groups, sizes = spread(chain.device, values.size, record.work_group, 64)
    passed = tuple(each.view(np.uint8) if inner.kind == "b" else each for each in _given(scalar))
    chain.launch(built, groups, *sizes, *passed, values, out)
    chain.finish(out)
    return out


# Kept: to make a record takes longer than to launch its kernel.
@functools.lru_cache(maxsize=256)
def _record(device: Device, a: str, inner: str, result: str, operation: str) -> Values:
    return Values(min(_WORK_GROUP, device.max_work_group), a, inner, result, operation)


def _added_by_host(
    queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], dense: cl_array.Array, operator: str, shape: tuple[int, int]
) -> None:
    """Do the work of `_add`, by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    host = fetched(dense, queue).reshape(shape)
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    ufunc = {"plus": np.add, "minus": np.not_equal if dense.dtype.kind == "b" else np.subtract}[operator]
    ufunc.at(host, (rows, indices), data.astype(dense.dtype))
    Chain(queue, dense).copy(dense, placed(queue, "dense", host.ravel()), host.size)
    queue.finish()


@or_by_host(_added_by_host)
def _add(
    queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], dense: cl_array.Array, operator: str, shape: tuple[int, int]
) -> None:
    data, indices, indptr = parts
    chain = Chain(queue, *parts, dense, writes=(dense,))
    types = name_of(indptr.dtype), name_of(data.dtype), name_of(dense.dtype), operator
    built, record = chain.build(Scatter(min(_WORK_GROUP, chain.device.max_work_group), *types))
    groups, sizes = spread(chain.device, shape[0], record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint64(shape[1]), indptr, indices, data, dense)
    chain.finish(dense)


def _dense_by_host(queue: cl.CommandQueue, values: cl_array.Array, operation: str, result: np.dtype[Any]) -> cl_array.Array:
    """Return the result of `dense_values`, computed by NumPy."""
    item = values.dtype.itemsize
    begin = values.offset // item
    # From the first value to the one farthest behind it; steps may be negative.
    reach = [(n - 1) * step // item for n, step in zip(values.shape, values.strides, strict=True)]
    low, high = (sum(bound(each, 0) for each in reach) for bound in (min, max))
    host = Chain(queue, values).read(values, high - low + 1 if values.size else 0, begin + low)
    strided = np.lib.stride_tricks.as_strided(host[-low:], values.shape, values.strides)
    out = allocated(queue, "the result", values.shape, result, values.allocator)
    given = strided.astype(result)
    found = given if operation == "positive" else getattr(np, operation)(given)
    Chain(queue).copy(out, placed(queue, "values", found.ravel()), out.size)
    queue.finish()
    return out


@or_by_host(_dense_by_host)
def dense_values(queue: cl.CommandQueue, values: cl_array.Array, operation: str, result: np.dtype[Any]) -> cl_array.Array:
    """Return the results of an operation on each value of a dense matrix of any strides, as a C-contiguous array of its own.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        Two-dimensional; begins at a multiple of its dtype's size in its buffer.
    operation : str
        A name in `UNARY`.
    result : dtype
        Of the results, in which is computed; it holds the values.
    """
    out = allocated(queue, "the result", values.shape, result, values.allocator)
    if values.size:
        chain, item = Chain(queue, values), values.dtype.itemsize
        types = name_of(values.dtype), name_of(result), name_of(result)
        built, record = chain.build(Dense(min(_WORK_GROUP, chain.device.max_work_group), *types, operation))
        groups, sizes = spread(chain.device, values.size, record.work_group, 64)
        places = (np.int64(number // item) for number in (values.offset, *values.strides))
        chain.launch(built, groups, *sizes, np.uint64(values.shape[1]), *places, values, out)
        chain.finish(out)
    return out


def add_entries(A: Matrix, dense: cl_array.Array, operator: str = "plus") -> None:
    """Add the entries of a matrix to a dense one of the same shape, or subtract them from it, in place.

    Parameters
    ----------
    A : Matrix
        Duplicates are added one after another.
    dense : pyopencl.array.Array
        C-contiguous, the only user of its buffer, which it begins; of a dtype that holds A's values.
    operator : str
        "plus" or "minus".
    """
    _add(A.queue, (A.data, A.indices, A.indptr), dense, operator, A.shape)
