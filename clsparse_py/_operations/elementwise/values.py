"""Operations on the stored values of a matrix, and entries added to a dense matrix."""

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
from clsparse_py._run.launch import Chain

__all__ = [
    "Dense",
    "Scatter",
    "Values",
    "add_entries",
    "dense_values",
    "map_values",
    "map_with_scalar",
    "scale",
]

#: Most work-items of a work-group in kernels that apply an operation to each value of a sparse or dense matrix.
_WORK_GROUP = 128


@kernel
@dataclass(frozen=True)
class Values(Parameters):
    """Parameters of ``templates/elementwise/values.mako``.

    Attributes
    ----------
    a, inner, result : str
        NumPy's names of the dtypes of the values, of the computation, and of the results.
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
        """The OpenCL C before the template's text: the types of values and results, and the operation on one or two values."""
        inner = np.dtype(self.inner)
        types = self.a, self.inner, self.result
        if self.operation in UNARY:
            return "\n".join(operation_lines(*types, UNARY[self.operation].expression(inner), "const T a"))
        return "\n".join(operation_lines(*types, BINARY[self.operation].expression(inner)))

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and ``scalar``: whether the operation takes a scalar, too."""
        return {**super().arguments(), "scalar": self.operation in BINARY}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" (multiply), "power", "positive", "absolute", and each function that the values' type has."""
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
        """Yield the kernel's one example record, for a device and an arithmetic."""
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
        """The OpenCL C before the template's text: types of indices and values, and the operator that adds, subtracts or sets."""
        expression = BINARY[self.operator].expression(np.dtype(self.result))
        if self.operator == "minus" and np.dtype(self.result).kind in "fc":
            # The dense matrix that SciPy makes of A, to subtract it, has 0 where A stores -0.
            expression = "a - (b + 0.0f)"
        return "\n".join([super().prelude, *operation_lines(self.a, self.result, self.result, expression)])

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.a, arithmetic.a, "plus")


def map_values(queue: cl.CommandQueue, values: cl_array.Array, operation: str) -> cl_array.Array:
    """Return the results of a unary operation, such as the sine, on the stored values of a matrix.

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
    return _map_in_dtype(queue, values, operation, inner, result)


def require_results(queue: cl.CommandQueue, operation: str, dtype: np.dtype[Any]) -> None:
    """Raise a TypeError if an operation's results on matrices have a dtype that is not supported, or that the device lacks."""
    if dtype.name not in OPENCL_TYPES:
        raise DtypeError(f"dtype: {operation} gives {dtype}, which is not supported; use A.astype(dtype=np.float32)")
    if needs_fp64(dtype) and not describe(queue.device).fp64:
        raise DtypeError(
            f"dtype: {operation} gives {dtype}, which {queue.device.name} lacks; "
            "use A.astype(dtype=np.float32), or float32 scalars"
        )


def unary_dtypes(operation: str, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtype in which NumPy computes a unary operation on values of a dtype, and the dtype of its results."""
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
    """Return the stored values of a matrix times a scalar, in the dtype that NumPy gives the product.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
    scalar : scalar
    dtype : dtype, optional
        The dtype that values are converted to before; by default their own.

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
    """Return the results of a binary operator on the stored values of a matrix and a scalar, computed in the dtype ``inner``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        One-dimensional; begins its buffer.
    operator : str
        A name in `BINARY`.
    inner : dtype
        The dtype that values and scalar are converted to.
    scalar : scalar
    """
    result = BINARY[operator].result_dtype(inner)
    return _map_in_dtype(queue, values, operator, inner, result, np.asarray(scalar).astype(inner)[()])


def _map_in_dtype(
    queue: cl.CommandQueue,
    values: cl_array.Array,
    operation: str,
    inner: np.dtype[Any],
    result: np.dtype[Any],
    scalar: Any = None,
) -> cl_array.Array:
    """Return the results, of dtype ``result``, of an operation on an array of values; a binary one takes ``scalar``, too."""
    chain = Chain(queue, values)
    out = allocate(queue, "values of the result", values.size, result, values.allocator)
    types = name_of(values.dtype), name_of(inner), name_of(result)
    built, _ = chain.build(Values(min(_WORK_GROUP, chain.device.max_work_group), *types, operation))
    scalars = () if scalar is None else (scalar.view(np.uint8) if inner.kind == "b" else scalar,)
    chain.launch_spread(built, values.size, *scalars, values, out)
    chain.finish(out)
    return out


def dense_values(queue: cl.CommandQueue, values: cl_array.Array, operation: str, result: np.dtype[Any]) -> cl_array.Array:
    """Return the results of a unary operation on the values of a dense matrix of any strides, as a new C-contiguous array.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        Two-dimensional; begins at a multiple of its dtype's size in its buffer.
    operation : str
        A name in `UNARY`.
    result : dtype
        The dtype of the results and of the computation; it holds the values.
    """
    out = allocate(queue, "the result", values.shape, result, values.allocator)
    if values.size:
        chain, item = Chain(queue, values), values.dtype.itemsize
        types = name_of(values.dtype), name_of(result), name_of(result)
        built, _ = chain.build(Dense(min(_WORK_GROUP, chain.device.max_work_group), *types, operation))
        places = (np.int64(number // item) for number in (values.offset, *values.strides))
        chain.launch_spread(built, values.size, np.uint64(values.shape[1]), *places, values, out)
        chain.finish(out)
    return out


def add_entries(A: Matrix, dense: cl_array.Array, operator: str = "plus") -> None:
    """Add a sparse matrix's entries to a dense matrix of its shape, in place; or subtract or write them, as ``operator`` says.

    Parameters
    ----------
    A : Matrix
        Duplicates are added one after another.
    dense : pyopencl.array.Array
        C-contiguous, the only user of its buffer, which it begins; of a dtype that holds A's values.
    operator : str
        "plus", "minus" or "second".
    """
    data, indices, indptr = A.parts
    chain = Chain(A.queue, data, indices, indptr, dense, writes=(dense,))
    types = name_of(indptr.dtype), name_of(data.dtype), name_of(dense.dtype), operator
    built, _ = chain.build(Scatter(min(_WORK_GROUP, chain.device.max_work_group), *types))
    chain.launch_spread(built, A.shape[0], np.uint64(A.shape[1]), indptr, indices, data, dense)
    chain.finish(dense)
