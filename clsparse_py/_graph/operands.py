"""Arguments and results of graph algorithms: graphs as canonical CSR arrays, vectors for callers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays import hosted
from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.csr import csr_array, make_canonical
from clsparse_py._device.device import default_queue
from clsparse_py._ground.errors import class_of
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import is_sparse
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["deliver", "deliver_from_host", "on_host", "read_graph", "require_integer", "require_vertex"]


def read_graph(A: Any) -> csr_array:
    """Return the user's graph as a canonical `csr_array`, which may share the user's arrays and is not written to.

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array.
    """
    if not is_sparse(A):
        raise TypeError(f"A: must be a sparse array of clsparse_py or SciPy, is {class_of(A)}")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"A: must be square, has shape {tuple(A.shape)}")
    if A.shape[0] > INT32_MAX:
        raise ValueError(f"A: may have {INT32_MAX:,} vertices, has {A.shape[0]:,}")
    graph: csr_array = A._as_csr() if isinstance(A, SparseArray) else csr_array(A, queue=default_queue())
    return make_canonical(graph)


def on_host(A: Any) -> Any:
    """Return a graph as a SciPy array with ones as values, for `scipy.sparse.csgraph`: edges have length 1."""
    rows = hosted.on_host(A).tocsr()
    return scipy.sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)


def require_integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an argument as a Python integer, checked to be one, and at least ``least``.

    Raises
    ------
    TypeError, ValueError
        The argument is no integer, or is less than ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: must be an integer, is {type(value).__name__}")
    if least is not None and value < least:
        raise ValueError(f"{name}: must be at least {least}, is {value}")
    return int(value)


def require_vertex(name: str, vertex: Any, n: int) -> int:
    """Return the number of a vertex of a graph, checked to be an integer from 0 to n - 1, n being the number of vertices.

    Raises
    ------
    TypeError, ValueError
        The graph has no such vertex.
    """
    number = require_integer(name, vertex)
    if not 0 <= number < n:
        raise ValueError(f"{name}: must lie in [0, {n}), is {vertex}")
    return number


def deliver(queue: cl.CommandQueue, vector: cl_array.Array, like: Any) -> Any:
    """Return a device vector as the caller wants it: as a NumPy array, or on the device if ``like`` is an array or a queue."""
    if like is None:
        return copy_to_host(vector, queue)
    if not isinstance(like, (cl_array.Array, cl.CommandQueue)):
        raise TypeError(f"like: must be a device array, a queue or None, is {type(like).__name__}")
    if like.context != queue.context:
        raise ValueError("like: lives in another context than A")
    return convert(queue, "the vector", vector, vector.dtype) if vector.offset else vector


def deliver_from_host(A: Any, vector: np.ndarray[Any, Any], like: Any) -> Any:
    """Return a NumPy vector of vertex numbers as int32, on the host, or on the device of A if ``like`` asks for that."""
    queue = hosted.queue_in((A,)) or default_queue()
    return deliver(queue, copy_to_device(queue, "vertices", vector.astype(np.int32)), like)
