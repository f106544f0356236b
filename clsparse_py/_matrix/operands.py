"""Dense operands and results of the operations: checked before any kernel that trusts them runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._device.device import describe
from clsparse_py._ground.errors import class_of
from clsparse_py._matrix.convert import copied
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.overlap import require_apart, require_inside, require_writable
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, unsupported_dtype
from clsparse_py._precision.semiring import Semiring
from clsparse_py._run.transfer import allocate_result, contexts_match, from_host, on_host

__all__ = ["Result", "check_matrix", "check_scale", "dense_operand", "require_calls", "result_for", "values_of_result"]

#: Dtypes of the values of matrices and dense operands that kernels take.
_DTYPES = frozenset(np.dtype(name) for name in OPENCL_TYPES)


def check_matrix(A: Any) -> None:
    """Raise an error unless A is a `csr_array` of two dimensions with a valid structure."""
    if not isinstance(A, Matrix):
        raise TypeError(f"A: must be a clsparse_py.csr_array, is {class_of(A)}")
    if len(A.shape) != 2:
        raise ValueError(f"A: must have two dimensions, has {len(A.shape)} (shape {A.shape})")
    A.require_valid()


def require_calls(expected: Any) -> None:
    """Raise a ValueError unless the number of calls that a plan is to expect is a whole number or None."""
    if expected is not None and (not isinstance(expected, (int, np.integer)) or expected < 0):
        raise ValueError(f"expected_calls: must be a whole number, or None, is {expected!r}")


def dense_operand(A: Matrix, name: str, values: Any, ndim: int) -> tuple[cl_array.Array, bool]:
    """Return a dense operand as a device array, and whether the operand is on the device already.

    Raises
    ------
    ValueError, TypeError
        The operand has the wrong number of dimensions, length, dtype or context.
    """
    on_device = isinstance(values, cl_array.Array)
    if not on_device:
        values = np.asarray(values)
    # A supported dtype in the host's byte order is compared by value, as the name of a dtype takes long to make.
    if values.dtype not in _DTYPES and values.dtype.name not in OPENCL_TYPES:
        raise unsupported_dtype(name, values.dtype)
    if values.ndim != ndim:
        raise ValueError(f"{name}: must have {ndim} dimension{'s' * (ndim > 1)}, has {values.ndim} (shape {values.shape})")
    if values.shape[0] != A.shape[1]:
        m, n = A.shape
        raise ValueError(f"{name}: must have {n} rows, as A is {m} x {n}, has shape {values.shape} (dimension mismatch)")
    if on_device:
        if not contexts_match(values, A.context):
            raise ValueError(f"{name}: lives in another context than A")
        require_inside(name, values)
        if not values.dtype.isnative:
            raise TypeError(f"{name}: must be in the host's byte order, is {values.dtype.str}")
        if values.offset % values.dtype.itemsize:
            # A view that begins between two entries of its buffer is copied, as kernels take the beginning in whole entries.
            values = copied(A.queue, name, values)
        return values, True
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.name in ("float64", "complex128"):
        _require_fp64(A, name, values.dtype)
    return from_host(A.queue, values if values.flags.forc else np.ascontiguousarray(values), copy=False), False


def _require_fp64(A: Matrix, name: str, dtype: np.dtype[Any]) -> None:
    """Raise a TypeError if A's device lacks double precision, which a dtype needs."""
    if not describe(A.queue.device).fp64:
        raise TypeError(f"{name}: {dtype} needs double precision, which {A.queue.device.name} lacks; use single precision")


def check_scale(A: Matrix, x: cl_array.Array, alpha: Any, beta: Any, out: Any, semiring: Semiring) -> np.dtype[Any]:
    """Return the dtype of the product of A and x, after checks of the product's semiring, alpha and beta."""
    if not isinstance(semiring, Semiring):
        raise TypeError(f"semiring: must be one of clsparse_py._precision.semiring, is {type(semiring).__name__}")
    dtype, needs_fp64 = _result_dtype(A.data.dtype, x.dtype, semiring)
    if needs_fp64 and A.data.dtype.char not in "dD":  # A's values are on the device, which supports their dtype
        _require_fp64(A, "x", dtype)
    if semiring.is_given:
        # Few processes define a semiring of their own, so that the module that compiles semirings is loaded late.
        from clsparse_py._matrix.given_semirings import require_semiring

        require_semiring(A.queue, semiring, A.data.dtype, x.dtype)
    if alpha is None and beta is None:
        return dtype
    for name, value in (("alpha", alpha), ("beta", beta)):
        if value is None:
            continue
        if semiring.name != "plus_times":
            raise ValueError(f"{name}: belongs to plus_times, not to {semiring.name}")
        if not np.isscalar(value) and not (isinstance(value, np.ndarray) and value.ndim == 0):
            raise TypeError(f"{name}: must be a scalar, is {type(value).__name__}")
        if np.asarray(value).dtype.kind not in "biufc":
            raise TypeError(f"{name}: must be a number, is {value!r}")
        if not _fits(value, dtype):
            raise TypeError(f"{name}: {value!r} does not fit the result's dtype, {dtype}")
    if beta is not None and out is None:
        raise ValueError("beta: needs out, whose values it scales")
    return dtype


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether alpha or beta fits a dtype by its kind and, for floats and Python's integers, by its magnitude."""
    if isinstance(value, int) and dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
    if dtype.kind in "fc" and np.isfinite(value) and max(abs(np.real(value)), abs(np.imag(value))) > float(np.finfo(dtype).max):
        return False
    return np.can_cast(np.asarray(value).dtype, dtype, "same_kind")


@functools.cache
def _result_dtype(a: np.dtype[Any], x: np.dtype[Any], semiring: Semiring) -> tuple[np.dtype[Any], bool]:
    """Return the dtype of a product of values of two dtypes, and whether computing the product needs double precision."""
    arithmetic = Arithmetic(a.name, x.name, "int32", semiring.name)
    if arithmetic.result.name not in OPENCL_TYPES:
        raise TypeError(f"x: {a} times {x} gives {arithmetic.result}, which is not supported")
    return arithmetic.result, arithmetic.needs_fp64


class Result:
    """The destination of an operation's result: a device array, and the host array that the values are copied to.

    Attributes
    ----------
    array : pyopencl.array.Array
        The array that the kernels write to.
    host : numpy.ndarray or None
        The caller's array, to which the values are copied; None if the result stays on the device.
    """

    def __init__(self, array: cl_array.Array, host: np.ndarray[Any, Any] | None) -> None:
        self.array, self.host = array, host

    def deliver(self) -> Any:
        """Return the operation's result: the device array without waiting, or the caller's NumPy array with the values in it."""
        return self.array if self.host is None else on_host(self.array, self.host)


def result_for(
    A: Matrix,
    name: str,
    x: cl_array.Array,
    original: Any,
    out: Any,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    *,
    on_device: bool,
) -> Result:
    """Return the destination of the result of ``A @ x``: ``out`` or, if that is None, a new array.

    ``original`` is x as the caller gave it, and ``name`` what the caller calls it.

    Raises
    ------
    ValueError, TypeError
        ``out`` is no array of that shape and dtype beside x, or overlaps x or an array of A.
    """
    if out is None:
        if on_device:
            return Result(allocate(x.queue or A.queue, "the product", shape, dtype, x.allocator), None)
        host = np.empty(shape, dtype)
        return Result(allocate_result(A.queue, host), host)
    expected_type = cl_array.Array if on_device else np.ndarray
    if not isinstance(out, expected_type):
        raise TypeError(f"out: must be a {expected_type.__module__}.{expected_type.__name__}, as x is, is {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out: must have shape {shape}, has {out.shape}")
    if out.dtype != dtype:
        raise TypeError(f"out: must have the result's dtype {dtype}, has {out.dtype}")
    if out.size and not _is_c_contiguous(out):
        raise ValueError(f"out: must be C-contiguous, has strides {out.strides}")
    require_writable(out)
    if isinstance(out, np.ndarray):
        target = Result(from_host(A.queue, out, copy=False), out)
    elif contexts_match(out, A.context):
        require_inside("out", out)
        target = Result(out, None)
    else:
        raise ValueError("out: lives in another context than A")
    if target.array.offset % out.dtype.itemsize:
        begin = target.array.offset
        raise ValueError(f"out: must begin at a multiple of {out.dtype.itemsize} bytes in its buffer, begins at {begin}")
    # Whether a host array was copied depends on the device: `out` is compared with the arrays that the caller gave.
    operand = original if isinstance(original, np.ndarray) else x
    require_apart(out, {name: operand, "A.data": A.data, "A.indices": A.indices, "A.indptr": A.indptr})
    return target


def _is_c_contiguous(array: Any) -> bool:
    """Return whether an array is C-contiguous, faster than ``flags.c_contiguous`` of a device array."""
    step = array.dtype.itemsize
    for length, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


def values_of_result(
    out: Any,
    shape: tuple[int, int],
    indptr: cl_array.Array,
    indices: cl_array.Array,
    dtype: np.dtype[Any],
    source: str,
    inputs: Mapping[str, cl_array.Array],
) -> cl_array.Array:
    """Return the array of values of ``out``, a matrix that a plan returned and whose values are to be overwritten.

    Parameters
    ----------
    out : object
        The argument ``out`` of the caller.
    shape, indptr, indices
        The shape and the structure of all results of the plan.
    dtype : numpy.dtype
        The dtype of the new values.
    source : str
        The name, for the error, of the array that has this dtype.
    inputs : mapping of str to pyopencl.array.Array
        The arrays that are read besides ``indptr`` and ``indices``, by the names that callers know.

    Raises
    ------
    TypeError
        ``out`` is no matrix, or has another dtype.
    ValueError
        ``out`` has another structure, or shares memory with an array that is read.
    """
    if not isinstance(out, Matrix):
        raise TypeError(f"out: must be a csr_array that this plan returned, is {type(out).__name__}")
    if out.indices is not indices or out.indptr is not indptr or out.shape != shape:
        raise ValueError("out: must be a matrix that this plan returned, has another structure")
    if out.dtype != dtype:
        raise TypeError(f"out: must have the dtype of {source}, {dtype}, has {out.dtype}")
    require_apart(out.data, {**inputs, "plan.indptr": indptr, "plan.indices": indices})
    return out.data
