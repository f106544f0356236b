"""Functions of SciPy that run on the host, for arrays of the device: operands are copied there, and results back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py.base import SparseArray, on_device
from clsparse_py.transfer import from_host

__all__ = ["array_on", "hosted", "on_host", "queue_in"]


def on_host(given: Any) -> Any:
    """Return an operand on the host: sparse arrays as SciPy's, device arrays as NumPy's, anything else as it is."""
    return given.get() if isinstance(given, (SparseArray, cl_array.Array)) else given


def queue_in(operands: Iterable[Any]) -> cl.CommandQueue | None:
    """Return the queue of the first operand on a device, None if there is none."""
    found = (each.queue for each in operands if isinstance(each, (SparseArray, cl_array.Array)) and each.queue is not None)
    return next(found, None)


def array_on(queue: cl.CommandQueue, values: Any) -> cl_array.Array:
    """Return a dense array of the host on the device."""
    return from_host(queue, np.ascontiguousarray(values), copy=True)


def hosted(function: Callable[..., Any], does: str) -> Callable[..., Any]:
    """Return a function of SciPy that takes arrays of the device.

    Parameters
    ----------
    function : callable
        Of SciPy.
    does : str
        What it returns, for the docstring.
    """
    name = function.__name__

    @functools.wraps(function, assigned=("__name__", "__qualname__"))
    def call(*arguments: Any, **named: Any) -> Any:
        queue = queue_in((*arguments, *named.values()))
        found = function(*map(on_host, arguments), **{key: on_host(each) for key, each in named.items()})
        return found if queue is None else _back(queue, found)

    module = function.__module__.partition("._")[0]
    call.__doc__ = (
        f"Return {does}.\n\nRuns on the host: `{module}.{name}` has the parameters. Sparse arrays of the device are copied to\n"
        "the host, and sparse results back; dense results are NumPy arrays.\n"
    )
    return call


def _back(queue: cl.CommandQueue, found: Any) -> Any:
    """Return a result with its sparse arrays on the device."""
    if isinstance(found, tuple):
        return tuple(_back(queue, each) for each in found)
    if not scipy.sparse.issparse(found):
        return found
    if isinstance(found, scipy.sparse.spmatrix):
        found = getattr(scipy.sparse, f"{found.format}_array")(found)
    return on_device(queue, found)
