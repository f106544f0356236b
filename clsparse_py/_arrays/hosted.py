"""SciPy's functions for arrays of the device: operands are copied to the host, and results back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._device.device import default_queue
from clsparse_py._ground.errors import runs_on_host
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import from_host

__all__ = ["array_on", "as_given", "by_scipy", "on_host", "queue_in", "wrap_scipy"]


def on_host(operand: Any) -> Any:
    """Return a sparse array as SciPy's array, a device array as NumPy's, lists and tuples by element; others unchanged."""
    if type(operand) in (list, tuple):
        return type(operand)(map(on_host, operand))
    if isinstance(operand, cl_array.Array) and not operand.flags.forc:
        return _copy_strided(operand)
    return operand.get() if isinstance(operand, (SparseArray, cl_array.Array)) else operand


def _copy_strided(array: cl_array.Array) -> np.ndarray[Any, Any]:
    """Return a NumPy copy of a device array of any strides, from one read of its buffer from the first value to the last."""
    item = array.dtype.itemsize
    reach = [(length - 1) * step // item for length, step in zip(array.shape, array.strides, strict=True)]
    below, n = -sum(min(offset, 0) for offset in reach), sum(map(abs, reach)) + 1
    read = Chain(array.queue or default_queue(), array).read(array, n, array.offset // item - below)
    return np.ndarray(array.shape, array.dtype, read, below * item, array.strides)


def _flatten(operands: Iterable[Any]) -> Iterator[Any]:
    """Iterate over the operands of a function, and over the elements of lists and tuples among the operands."""
    for operand in operands:
        if type(operand) in (list, tuple):
            yield from _flatten(operand)
        else:
            yield operand


def queue_in(operands: Iterable[Any]) -> cl.CommandQueue | None:
    """Return the queue of the first operand on a device that has one, also inside lists and tuples; None if none has."""
    queues = (
        operand.queue
        for operand in _flatten(operands)
        if isinstance(operand, (SparseArray, cl_array.Array)) and operand.queue is not None
    )
    return next(queues, None)


def array_on(queue: cl.CommandQueue, values: Any) -> cl_array.Array:
    """Return a device array with the values of a dense array of the host."""
    return from_host(queue, np.ascontiguousarray(values), copy=True)


def as_given(b: Any, values: Any) -> Any:
    """Return a dense result of SciPy as a device array if the right-hand side b is a device array; other results unchanged."""
    is_dense = type(values) is np.ndarray and isinstance(b, cl_array.Array)
    return array_on(b.queue or default_queue(), values) if is_dense else values


def by_scipy(
    function: Callable[..., Any],
    *arguments: Any,
    multiplies: bool = False,
    takes: str | None = None,
    queue: cl.CommandQueue | None = None,
    **named: Any,
) -> Any:
    """Return a SciPy function's result on host copies, copied to the device if sparse, or if dense as an operand there.

    Parameters
    ----------
    function : callable
        The function of SciPy.
    *arguments, **named
        The arguments of the function.
    multiplies : bool
        True: sparse arrays stay on the device, as the function asks them for products alone.
    takes : str, optional
        The format of the sparse arrays that the function takes; by default any.
    queue : pyopencl.CommandQueue, optional
        The queue of sparse results: by default the queue of the operands; without one, sparse results are SciPy's.
    """
    operands = *arguments, *named.values()
    queue = queue or queue_in(operands)
    dense = next((operand for operand in _flatten(operands) if isinstance(operand, cl_array.Array)), None)

    def copy_to_host(operand: Any) -> Any:
        """Return a host copy of an operand, a sparse one in the format ``takes``; if ``multiplies``, a sparse operand itself."""
        if multiplies and isinstance(operand, SparseArray):
            return operand
        host = on_host(operand)
        return host.asformat(takes) if takes and scipy.sparse.issparse(host) else host

    def copy_back(result: Any) -> Any:
        """Return the SciPy function's result, or tuple of results: sparse ones copied to the device, dense ones by `as_given`."""
        if isinstance(result, tuple):
            return tuple(map(copy_back, result))
        if queue is None or not scipy.sparse.issparse(result):
            return as_given(dense, result)
        if isinstance(result, scipy.sparse.spmatrix):
            result = getattr(scipy.sparse, f"{result.format}_array")(result)
        return on_device(queue, result)

    return copy_back(function(*map(copy_to_host, arguments), **{name: copy_to_host(operand) for name, operand in named.items()}))


def wrap_scipy(
    function: Callable[..., Any],
    does: str,
    *,
    multiplies: bool = False,
    takes: str | None = None,
    gives: Callable[[Any, cl.CommandQueue | None], Any] | None = None,
) -> Callable[..., Any]:
    """Return a SciPy function as a public function of device arrays, with a warning that it runs on the host, and a docstring.

    Parameters
    ----------
    function : callable
        The function of SciPy.
    does : str
        The result of the function, for the docstring.
    multiplies, takes
        As of `by_scipy`.
    gives : callable, optional
        Converts the result of SciPy, given it and the queue of the operands.
    """
    name, module = function.__name__, function.__module__.partition("._")[0]

    @runs_on_host(f"{module.rpartition('.')[2]}.{name}")
    @functools.wraps(function, assigned=("__name__", "__qualname__"))
    def call(*arguments: Any, **named: Any) -> Any:
        """Return the result of `by_scipy` for the SciPy function and the arguments, converted by ``gives`` if that is given."""
        result = by_scipy(function, *arguments, multiplies=multiplies, takes=takes, **named)
        return result if gives is None else gives(result, queue_in((*arguments, *named.values())))

    does_what = "Products with sparse arrays of the device run there" if multiplies else "Arrays of the device are copied to it"
    call.__doc__ = (
        f"Return {does}.\n\nRuns on the host: `{module}.{name}` has the parameters. {does_what}.\n"
        "Sparse results are on the device; dense ones are NumPy arrays or, if an operand is a dense array of the device, there.\n"
    )
    return call
