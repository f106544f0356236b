"""Triangles by the library: as users count them, and the products that may do it, each edge in one direction."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl

import clsparse_py as cs
from bench.contestants import Contestant, HostPrepared
from bench.problems.triangles import Triangles


def contestants(queue: cl.CommandQueue) -> list[Contestant]:
    """Return the plain call, the product under a mask, and the whole product with a filter."""
    calls = {"plain": _plain, "masked": _prepare_masked, "unmasked": _prepare_unmasked}
    return [Contestant(f"clsparse/{name}", functools.partial(_prepare, queue, make)) for name, make in calls.items()]


def _plain(graph: cs.csr_array, _edges: cs.csr_array) -> int:
    return cs.graph.triangle_count(graph)


def _prepare_masked(_graph: cs.csr_array, edges: cs.csr_array) -> int:
    return int(cs.spgemm(edges, edges, mask=edges, semiring=cs.plus_pair).sum())


def _prepare_unmasked(_graph: cs.csr_array, edges: cs.csr_array) -> int:
    return int(cs.spgemm(edges, edges, semiring=cs.plus_pair).multiply(edges).sum())


def _prepare(queue: cl.CommandQueue, count: Callable[[cs.csr_array, cs.csr_array], int], problem: Triangles) -> HostPrepared:
    start = time.perf_counter()
    graph, edges = (cs.csr_array(matrix, queue=queue) for matrix in (problem.matrix, problem.edges))
    queue.finish()
    transfer = time.perf_counter() - start
    prepared = HostPrepared(problem, lambda: (np.array([count(graph, edges)]),), "of the graph" if count is _plain else "of L")
    prepared.once["transfer"] = transfer
    return prepared
