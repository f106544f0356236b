"""Indexing by the library, as users write it: positions, the matrix and the result are on the device."""

from __future__ import annotations

import functools
import time

import pyopencl as cl

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls, to_device
from bench.problems.indexing import OPERATIONS, Indexing, parts, second_of


def contestants(queue: cl.CommandQueue) -> list[Contestant]:
    """Return the library, by its plain call."""
    return [Contestant("clsparse/plain", functools.partial(_prepare, queue))]


def _prepare(queue: cl.CommandQueue, problem: Indexing) -> OpenclCalls:
    start = time.perf_counter()
    matrices = {on: cs.csr_array(problem.matrix, queue=on) for on in (queue, opencl.profiling_queue(queue))}
    (positions,) = to_device(queue, (problem.positions,))
    queue.finish()
    once = {"transfer": time.perf_counter() - start}
    call = OPERATIONS[problem.operation][2]
    seconds = {on: second_of(matrix, positions, problem.operation) for on, matrix in matrices.items()}

    def compute(on: cl.CommandQueue) -> Arrays:
        return parts(call(matrices[on], seconds[on]))

    shared = tuple(part for matrix in matrices.values() for part in (matrix.indptr, matrix.indices, matrix.data))
    return OpenclCalls(problem, queue, compute, once, detail="plain call", shared=shared)
