"""Aggregates of a graph by a distance-2 maximal independent set, in integer arithmetic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.plain import door
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import Bound
from clsparse_py._run.transfer import copy_to_device
from clsparse_py._solvers.aggregation.kernels import BEGIN, Advance, Choose, Join, Thresholds

__all__ = ["Aggregates", "aggregate_nodes"]

# Aggregation orders the blocks of a graph's nodes by hash. Longer blocks make better aggregates, and take more steps.
#: Least nodes of a block, as a multiple of the mean distance, in node numbers, from a node back to its first neighbour.
_LINES = 128
#: Most nodes of a graph, evenly spread, that tell the mean distance from a node back to its first neighbour.
_SAMPLED = 4096
#: End mark, in place of a node's number, of the linked lists of nodes that wait until a certain node is decided.
_NONE = 0xFFFFFFFF
#: Most work-items for each compute unit in a launch that decides which active nodes of a graph become roots of aggregates.
_ITEMS_PER_UNIT = 2048


class Aggregates(NamedTuple):
    """The aggregates of a graph.

    Attributes
    ----------
    joined : pyopencl.array.Array
        The number of each node's aggregate; -1 for nodes without a neighbour.
    place : pyopencl.array.Array
        For each node the number of earlier nodes in an aggregate, and at the end the number of all nodes in an aggregate.
    n : int
        The number of aggregates.
    n_joined : int
        The number of nodes in an aggregate.
    """

    joined: cl_array.Array
    place: cl_array.Array
    n: int
    n_joined: int


def _order_nodes(n: int, reach: int) -> tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the order of n nodes in aggregation: log2 of a block's number of nodes, blocks sorted by hash, and blocks' ranks.

    ``reach`` is the mean distance, in node numbers, from nodes back to their first neighbours.
    """
    shift = max(_LINES * max(reach, 1) - 1, 1).bit_length()
    blocks = np.arange(max(-(-n // (1 << shift)), 1), dtype=np.uint64)
    key = blocks * np.uint64(0x9E3779B97F4A7C15)
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    order = np.argsort(key ^ (key >> np.uint64(32)), kind="stable").astype(np.uint32)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size, dtype=np.uint32)
    return shift, order, rank


@door()
def aggregate_nodes(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array) -> Aggregates:
    """Return the aggregates of a graph, disjoint sets of nodes near each other, the same on every device; waits.

    A root is a node within two edges of which no root comes before it, in an order of long blocks of adjacent nodes. The
    neighbours of a root join its aggregate. Other nodes join the aggregate that most of their neighbours are in.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    indices, indptr : pyopencl.array.Array
        In canonical format, of a symmetric structure; entries on the diagonal do not count.
    """
    chain, index, n = Chain(queue, indices, indptr), indptr.dtype, indptr.size - 1
    group = work_group_of(chain.device)
    join, _ = chain.build(Join(group, name_of(index)))
    groups, sizes = spread(chain.device, n, group, 64)
    state = _decide_nodes(chain, (groups, sizes), indices, indptr)
    number, positions = chain.scratch(n + 1, index), allocate(queue, "places", n + 1, index)
    enqueue_scan(chain, state, number, n, kind="pointers")
    neighbours, joined = chain.scratch(n, index), allocate(queue, "aggregates", n, index)
    has_joined = chain.scratch(n, np.uint32)
    for near, before, after in ((1, number, neighbours), (0, neighbours, joined)):
        chain.launch(join, groups, *sizes, np.uint32(near), indptr, indices, state, before, after, has_joined)
    enqueue_scan(chain, has_joined, positions, n, kind="pointers")
    n_aggregates, n_joined = (int(chain.read(counts, 1, n)[0]) for counts in (number, positions))
    chain.finish(joined, positions)
    return Aggregates(joined, positions, n_aggregates, n_joined)


def _decide_nodes(
    chain: Chain, launch: tuple[int, tuple[np.uint64, ...]], indices: cl_array.Array, indptr: cl_array.Array
) -> cl_array.Array:
    """Return the states of all nodes of a graph: 1 for nodes of the maximal independent set, 0 for other nodes; waits."""
    queue, n, in_loops = chain.queue, indptr.size - 1, chain.device.lanes_are_loops
    (groups, sizes), group, name = launch, work_group_of(chain.device), name_of(indptr.dtype)
    begin, _ = chain.build(BEGIN.record(group, name))
    mean = indices.size / max(n, 1)
    phases = () if in_loops else tuple(chain.build(Advance.legal(chain.device, name, phase, mean)) for phase in ("first", "step"))
    every = n // _SAMPLED | 1
    n_sampled = -(-n // every)
    state, reaches = allocate(queue, "states", n, np.dtype(np.uint32)), chain.scratch(n_sampled, indptr.dtype)
    chain.launch(begin, groups, *sizes, indptr, indices, np.uint64(n_sampled), np.uint64(every), state, reaches)
    shift, order, rank = _order_nodes(n, int(chain.read(reaches, n_sampled).sum(dtype=np.int64)) // max(n_sampled, 1))
    if in_loops:
        choose, _ = chain.build(Choose(group, name, serial=True))
        listed = np.uint32(order.size), np.uint32(shift), copy_to_device(queue, "an order", order)
        chain.launch(choose, 1, np.uint64(n), *listed, indptr, indices, state)
        return state
    graph = _OrderedGraph(np.uint32(shift), copy_to_device(queue, "an order", rank), indptr, indices)
    if _decide_active_nodes(chain, phases, launch, graph, state):
        return state
    return _decide_all_nodes(chain, launch, graph, state)


class _OrderedGraph(NamedTuple):
    """The graph of nodes in CSR form, with the order of the nodes: arguments of kernels."""

    shift: np.uint32
    rank: cl_array.Array
    indptr: cl_array.Array
    indices: cl_array.Array


def _decide_active_nodes(
    chain: Chain,
    phases: tuple[tuple[Built, Advance], ...],
    launch: tuple[int, tuple[np.uint64, ...]],
    graph: _OrderedGraph,
    state: cl_array.Array,
) -> bool:
    """Decide a graph's maximal independent set by steps over active nodes, and return True; False if that can't be done; waits.

    False: the graph is not symmetric, or has more nodes than uint32 numbers; no node is decided.
    """
    (first, _), (step, record) = phases
    n, index = state.size, graph.indptr.dtype
    if n >= _NONE - 1:
        return False
    waiting, next_waiting = (chain.scratch(n, np.uint32) for _ in range(2))
    lists, counters = chain.scratch(3 * n, index), chain.scratch(4, np.uint32)
    chain.fill(waiting, _NONE, n)
    chain.fill(counters, 0, 4)
    chain.launch(first, launch[0], *launch[1], *graph, state, waiting, next_waiting, lists, counters)
    n_left, *_, is_asymmetric = chain.read(counters, 4)
    if is_asymmetric:
        return False
    groups = min(chain.device.compute_units * _ITEMS_PER_UNIT // record.work_group, n)
    arguments = *graph, state, waiting, next_waiting, lists, counters
    arrays = [array.base_data if isinstance(array, cl_array.Array) else array for array in arguments]
    steps = [Bound(chain.queue, (step, groups, (turn, np.uint64(n), *arrays))) for turn in np.arange(3, dtype=np.uint32)]
    while n_left:
        for _ in range(Thresholds.of(chain.device).launches_ahead // 3):
            for advance_step in steps:
                advance_step()
        (n_left,) = chain.read(counters, 1)
    return True


def _decide_all_nodes(
    chain: Chain, launch: tuple[int, tuple[np.uint64, ...]], graph: _OrderedGraph, state: cl_array.Array
) -> cl_array.Array:
    """Return the states of all nodes of a graph, 1 in the independent set, else 0, decided by steps over all nodes; waits."""
    groups, sizes = launch
    choose, _ = chain.build(Choose(work_group_of(chain.device), name_of(graph.indptr.dtype), serial=False))
    next_state, undecided = chain.scratch(state.size, np.uint32), chain.scratch(1, np.uint32)
    steps = Thresholds.of(chain.device).steps_ahead
    while True:
        chain.fill(undecided, 0, 1)
        for step in range(steps):
            counts = np.uint32(step == steps - 1)
            of_order = graph.shift, counts, graph.rank
            chain.launch(choose, groups, *sizes, *of_order, graph.indptr, graph.indices, state, next_state, undecided)
            state, next_state = next_state, state
        if not chain.read(undecided, 1)[0]:
            return state
