"""Connected components of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from scipy.sparse import csgraph

from clsparse_py._build.plain import door
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._graph.kernels import Components, Thresholds
from clsparse_py._graph.operands import deliver, deliver_from_host, on_host, read_graph
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = ["connected_components"]


def _label_by_scipy(A: Any, *, like: Any = None) -> tuple[int, Any]:
    """Return the number of connected components and each vertex's component, by SciPy, as `connected_components` does."""
    n_components, labels = csgraph.connected_components(on_host(A), directed=False)
    return int(n_components), deliver_from_host(A, labels, like)


@door(_label_by_scipy)
def connected_components(A: Any, *, like: Any = None) -> tuple[int, Any]:
    """Return the number of connected components of a graph, and the component of each vertex; edges connect in both directions.

    A directed graph's weak components are returned; `clsparse_py.csgraph.connected_components` has the strong ones, on the host.

    Parameters
    ----------
    A : sparse array, n x n
        Each stored entry is an edge; it need not be there twice.
    like : pyopencl.array.Array or pyopencl.CommandQueue, optional
        The labels are a device array.

    Returns
    -------
    n_components : int
    labels : numpy.ndarray or pyopencl.array.Array, shape (n,), int32
        The component of each vertex. Components are numbered in the order of their smallest vertices, as by SciPy.

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.graph.connected_components(sp.csr_array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]))
    (2, array([0, 1, 0], dtype=int32))
    """
    G = read_graph(A)
    if not G.shape[0]:
        return 0, deliver(G.queue, allocate(G.queue, "labels", 0, np.int32), like)
    labels, n_components = _label(G.queue, G.indices, G.indptr)
    return n_components, deliver(G.queue, labels, like)


def _label(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array) -> tuple[cl_array.Array, int]:
    """Return the connected component of each vertex of a graph, and the number of components; waits for the number."""
    n, n_entries, index = indptr.size - 1, indices.size, indptr.dtype.name
    rows = rows_of(queue, indptr, n_entries)
    chain = Chain(queue, indices, indptr, rows)
    group = min(Thresholds.of(chain.device).work_group, chain.device.max_work_group)
    kernels = {phase: chain.build(Components(group, index, phase)) for phase in ("start", "link", "label")}
    parents, roots, marks = chain.scratch(n, np.int32), chain.scratch(n, np.int32), chain.scratch(n, np.uint8)
    numbers, labels = chain.scratch(n + 1, np.int32), allocate(queue, "labels", n, np.int32)
    for phase, size, arrays in (
        ("start", n, (parents,)),
        ("link", n_entries, (rows, indices, parents)),
        ("label", n, (parents, roots, marks)),
    ):
        built, record = kernels[phase]
        groups, sizes = spread(chain.device, size, record.work_group, 64)
        chain.launch(built, groups, *sizes, *arrays)
    enqueue_scan(chain, marks, numbers, n, kind="pointers")
    enqueue_permute(chain, roots, numbers, labels, n)
    n_components = int(chain.read(numbers, 1, n)[0])
    chain.finish(labels)
    return labels, n_components
