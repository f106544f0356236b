"""PageRank of a graph's vertices, by the power iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._build.plain import door
from clsparse_py._device.device import describe
from clsparse_py._graph.operands import deliver, read_graph
from clsparse_py._operations.spmv import spmv
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Sweeps, declare_passes

__all__ = ["pagerank"]

#: PageRank's scalar, the damping factor, and its two sums: ranks of vertices without outgoing edges, and ranks' absolute changes.
_LAYOUT = Layout(scalars=("alpha",), sums=("dangling", "change"))

#: Vector pass that divides a vertex's rank by the summed weight of outgoing edges; sums ranks of vertices without these.
_SHARE = Pass(
    "pagerank_share", reads=("rank", "inverse"), writes=("share",),
    lines=("share = times(rank, inverse);",), sums=(("dangling", "inverse == 0 ? rank : 0"),),
)  # fmt: skip
#: Vector pass that makes the PageRanks of a step of the power iteration, and sums the absolute changes of the ranks.
_MOVE = Pass(
    "pagerank_move", reads=("arrived", "begin", "lost"), updates=("rank", "was"), takes=("alpha",), totals=("dangling",),
    lines=("was = rank;", "rank = alpha * (arrived + dangling * lost) + (1 - alpha) * begin;"),
    sums=(("change", "fabs(rank - was)"),),
)  # fmt: skip
declare_passes(_LAYOUT, _SHARE, _MOVE)


@door()
def pagerank(
    A: Any, alpha: float = 0.85, *, personalization: Any = None, tol: float = 1e-6, max_iter: int = 100, like: Any = None
) -> Any:
    """Return the PageRank of each vertex.

    Parameters
    ----------
    A : sparse array, n x n
        Values are the weights of edges: real and not negative.
    alpha : float
        The probability of going on along an edge, from 0 to 1.
    personalization : array_like, shape (n,), optional
        Where walks begin, and go on from a vertex without outgoing edges: weights that are not negative. By default all the same.
    tol : float
        Iterations end when the absolute changes of all ranks have a sum under ``n * tol``, as NetworkX's do, or under 8 units of
        rounding of 1 in the ranks' dtype (1e-6 in float32): smaller changes may go on without end.
    max_iter : int
        Iterations, at most.
    like : pyopencl.array.Array or pyopencl.CommandQueue, optional
        The result is a device array.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array, shape (n,)
        Ranks, whose sum is 1: float64, or float32 if A's values are float32 or the device lacks double precision.

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array, or has values that are negative, complex or not finite; an argument is out of its range.
    RuntimeError
        Ranks still change by more after ``max_iter`` iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> ranks = sp.graph.pagerank(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    >>> bool(np.allclose(ranks, 0.5))
    True
    """
    G = read_graph(A)
    n, queue = G.shape[0], G.queue
    if G.dtype.kind == "c":
        raise TypeError(f"A: weights must be real, are {G.dtype}")
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha: must lie in [0, 1], is {alpha}")
    if max_iter < 1:
        raise ValueError(f"max_iter: must be at least 1, is {max_iter}")
    single = G.dtype == np.float32 or not describe(queue.device).fp64
    dtype = np.dtype(np.float32 if single else np.float64)
    begin = _read_personalization(personalization, n)
    if not n:
        return deliver(queue, copy_to_device(queue, "ranks", np.zeros(0, dtype)), like)
    if G.nnz and float(G.min()) < 0:
        raise ValueError("A: weights must not be negative")
    G = G.astype(dtype, copy=False)
    weights = np.asarray(G.sum(axis=1), dtype)
    if (wrong := np.flatnonzero(~np.isfinite(weights))).size:
        row = wrong[0]
        raise ValueError(f"A: weights and their sums must be finite in {dtype}; those of row {row} add up to {weights[row]}")
    inverse = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
    incoming = G._transposed()
    chain = Chain(queue)
    sweeps = Sweeps(chain, n, dtype, _LAYOUT)
    sweeps.set(alpha=alpha)
    on_device = {
        name: copy_to_device(queue, name, values.astype(dtype)) for name, values in (("begin", begin), ("inverse", inverse))
    }
    rank, share, was, arrived = (sweeps.vector() for _ in range(4))
    sweeps.copy(rank, on_device["begin"])
    max_change = max(n * tol, 8 * float(np.finfo(np.float32 if single else np.float64).eps))
    sharing = sweeps.bind(_SHARE, rank=rank, inverse=on_device["inverse"], share=share)
    moving = sweeps.bind(_MOVE, arrived=arrived, begin=on_device["begin"], lost=on_device["begin"], rank=rank, was=was)
    for _ in range(max_iter):
        sharing()
        spmv(incoming, share, out=arrived)
        moving()
        if float(sweeps.totals()["change"]) < max_change:
            return deliver(queue, rank, like)
    raise RuntimeError(f"max_iter: ranks still change by more than tol after {max_iter} iterations")


def _read_personalization(personalization: Any, n: int) -> np.ndarray[Any, Any]:
    """Return the probabilities with which PageRank's random walks begin at the n vertices."""
    if personalization is None:
        return np.full(n, 1 / max(n, 1))
    weights: np.ndarray[Any, Any] = np.asarray(personalization)
    if weights.shape != (n,):
        raise ValueError(f"personalization: must have shape ({n},), has {weights.shape}")
    if weights.dtype.kind not in "biuf" or not (weights >= 0).all() or not weights.sum() > 0:
        raise ValueError("personalization: must be numbers that are not negative, and not all zero")
    probabilities: np.ndarray[Any, Any] = weights / weights.sum()
    return probabilities
