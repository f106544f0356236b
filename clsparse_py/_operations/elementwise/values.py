"""Operations on each stored value of a matrix, and entries added to a dense matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.errors import DtypeError
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.operators import BINARY, UFUNCS, UNARY, operation_lines
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of, needs_fp64
from clsparse_py._run.launch import Chain, spread

__all__ = [
    "Dense",
    "Scatter",
    "Values",
    "add_entries",
    "dense_values",
    "map_in_dtype",
    "map_values",
    "map_with_scalar",
    "scale",
]

#: Work-items of a work-group, at most.
_WORK_GROUP = 128


@kernel
@dataclass(frozen=True)
class Values(Parameters):
    """Parameters of ``templates/elementwise/values.mako``.

    Attributes
    ----------
    a, inner, result : str
        NumPy's names of the dtypes of the values, of what is computed, and of the results.
    operation : str
        A name in `UNARY`, or one in `BINARY`, which takes a scalar too.
    """

    template = "elementwise/values"

    a: str
    inner: str
    result: str
    operation: str

    @property
    @override
    def prelude(self) -> str:
        inner = np.dtype(self.inner)
        types = self.a, self.inner, self.result
        if self.operation in UNARY:
            return "\n".join(operation_lines(*types, UNARY[self.operation].expression(inner), "const T a"))
        return "\n".join(operation_lines(*types, BINARY[self.operation].expression(inner)))

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "scalar": self.operation in BINARY}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        group, a = min(128, device.max_work_group), arithmetic.a
        yield "", cls(group, a, a, a, "multiply")
        yield "power", cls(group, a, *2 * (a if a != "bool" else "int8",), "power")
        yield "positive", cls(group, a, a, a, "positive")
        yield "absolute", cls(group, a, a, np.abs(np.zeros(0, a)).dtype.name, "absolute")
        for name in UFUNCS:
            if name != "absolute" and UNARY[name].expression(np.dtype(a)):
                yield name, cls(group, a, a, a, name)


@kernel
@dataclass(frozen=True)
class Dense(Values):
    """Parameters of ``templates/elementwise/dense.mako``; the operation takes one value."""

    template = "elementwise/dense"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(min(128, device.max_work_group), *3 * (arithmetic.a,), "positive")


@kernel
@dataclass(frozen=True)
class Scatter(OfStructure):
    """Parameters of ``templates/elementwise/scatter.mako``.

    Attributes
    ----------
    a, result : str
        NumPy's names of the dtypes of the sparse and of the dense matrix's values.
    operator : str
        "plus", "minus" or "second".
    """

    template = "elementwise/scatter"

    a: str
    result: str
    operator: str

    @property
    @override
    def prelude(self) -> str:
        expression = BINARY[self.operator].expression(np.dtype(self.result))
        if self.operator == "minus" and np.dtype(self.result).kind in "fc":
            # As in SciPy, whose dense matrix of A has 0 where A stores -0.
            expression = "a - (b + 0.0f)"
        return "\n".join([super().prelude, *operation_lines(self.a, self.result, self.result, expression)])

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.a, arithmetic.a, "plus")


def map_values(queue: cl.CommandQueue, values: cl_array.Array, operation: str) -> cl_array.Array:
    """Return the results of an operation on each of the values of a matrix.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
    operation : str
        A name in `UNARY`.

    Raises
    ------
    TypeError
        NumPy has no such function for the values' dtype, or its results are of one that is not supported or that the
        device lacks.
    """
    inner, result = unary_dtypes(operation, np.dtype(values.dtype))
    require_results(queue, f"{operation} of {values.dtype}", result)
    return map_in_dtype(queue, values, operation, inner, result)


def require_results(queue: cl.CommandQueue, operation: str, dtype: np.dtype[Any]) -> None:
    """Raise a TypeError if ``operation`` gives values of a dtype that is not supported, or that the device lacks."""
    if dtype.name not in OPENCL_TYPES:
        raise DtypeError(f"dtype: {operation} gives {dtype}, which is not supported; use A.astype(dtype=np.float32)")
    if needs_fp64(dtype) and not describe(queue.device).fp64:
        raise DtypeError(
            f"dtype: {operation} gives {dtype}, which {queue.device.name} lacks; "
            "use A.astype(dtype=np.float32), or float32 scalars"
        )


def unary_dtypes(operation: str, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtypes in which NumPy computes an operation on values of a dtype, and of its results."""
    if operation == "positive":
        return dtype, dtype
    if operation in ("absolute", "real", "imag"):
        return dtype, np.abs(np.zeros(0, dtype)).dtype
    function = UNARY[operation]
    result: np.dtype[Any] = function.on_arrays(np.zeros(0, dtype)).dtype
    if not function.expression(result):
        raise DtypeError(f"dtype: {operation} is not defined for {dtype}; use A.astype(dtype=np.float32)")
    return result, result


def scale(queue: cl.CommandQueue, values: cl_array.Array, scalar: Any, dtype: Any = None) -> cl_array.Array:
    """Return each of the values of a matrix times a scalar, of the dtype that NumPy gives the product.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
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
    result = (np.ones(1, dtype or values.dtype) * scalar).dtype
    require_results(queue, f"{values.dtype} times {scalar!r}", result)
    return map_with_scalar(queue, values, "multiply", result, scalar)


def map_with_scalar(
    queue: cl.CommandQueue, values: cl_array.Array, operator: str, inner: np.dtype[Any], scalar: Any
) -> cl_array.Array:
    """Return the results of an operator on each value and a scalar, computed in a dtype.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
    operator : str
        A name in `BINARY`.
    inner : dtype
        That of values and scalar.
    scalar : scalar
    """
    result = BINARY[operator].result_dtype(inner)
    return map_in_dtype(queue, values, operator, inner, result, np.asarray(scalar).astype(inner)[()])


def _scalar_arguments(scalar: Any) -> tuple[Any, ...]:
    """Return a scalar as the arguments of a kernel: none if there is no scalar."""
    return () if scalar is None else (scalar,)


def map_in_dtype(
    queue: cl.CommandQueue,
    values: cl_array.Array,
    operation: str,
    inner: np.dtype[Any],
    result: np.dtype[Any],
    scalar: Any = None,
) -> cl_array.Array:
    """Return the results of an operation that is computed in a dtype, with a scalar of that dtype if there is one."""
    chain = Chain(queue, values)
    out = allocate(queue, "values of the result", values.size, result, values.allocator)
    types = name_of(values.dtype), name_of(inner), name_of(result)
    built, record = chain.build(Values(min(_WORK_GROUP, chain.device.max_work_group), *types, operation))
    groups, sizes = spread(chain.device, values.size, record.work_group, 64)
    passed = tuple(array.view(np.uint8) if inner.kind == "b" else array for array in _scalar_arguments(scalar))
    chain.launch(built, groups, *sizes, *passed, values, out)
    chain.finish(out)
    return out


def _add(
    queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], dense: cl_array.Array, operator: str, shape: tuple[int, int]
) -> None:
    """Enqueue the addition of a matrix to a dense one, or what else ``operator`` does with entries, in place."""
    data, indices, indptr = parts
    chain = Chain(queue, *parts, dense, writes=(dense,))
    types = name_of(indptr.dtype), name_of(data.dtype), name_of(dense.dtype), operator
    built, record = chain.build(Scatter(min(_WORK_GROUP, chain.device.max_work_group), *types))
    groups, sizes = spread(chain.device, shape[0], record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint64(shape[1]), indptr, indices, data, dense)
    chain.finish(dense)


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
    out = allocate(queue, "the result", values.shape, result, values.allocator)
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
    """Add the entries of a matrix to a dense one of the same shape, subtract them from it, or put them there, in place.

    Parameters
    ----------
    A : Matrix
        Duplicates are added one after another.
    dense : pyopencl.array.Array
        C-contiguous, the only user of its buffer, which it begins; of a dtype that holds A's values.
    operator : str
        "plus", "minus" or "second".
    """
    _add(A.queue, A.parts, dense, operator, A.shape)
