"""C of a product whose entries are counted: allocated, and its columns and values made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyopencl import array as cl_array

from clsparse_py._spgemm.count import Counted
from clsparse_py._spgemm.methods.base import Result
from clsparse_py._spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._spgemm.new_arrays import new_part
from clsparse_py._spgemm.operands import Operands
from clsparse_py._spgemm.steps import Step, enqueued
from clsparse_py._spgemm.timer import Timer
from clsparse_py._spgemm.upper_bound import enqueue_compaction

__all__ = ["Filled", "fill", "new_indices"]


class Filled(NamedTuple):
    """C, which the device may still be writing, and the steps that make it."""

    C: Result
    steps: Sequence[Step]


def fill(operands: Operands, counted: Counted, timer: Timer) -> Filled:
    """Return C's arrays, and enqueue the commands that make them.

    Raises
    ------
    MemoryError
        There is none for C, or for the workspace of any step.
    """
    try:
        C = _allocated(operands, counted)
    except MemoryError:
        if counted.loose is None:
            raise
        # The room that its rows lie in may be the memory that is missing: they are made again.
        counted.loose = None
        C = _allocated(operands, counted)
    timer.ended("allocation")
    chain, product, steps = operands.chain, counted.product, counted.steps
    if counted.loose is None:
        steps = enqueued(chain, product, steps, C, "numeric")
    else:
        bin_, _, state, _ = steps[0]
        chunks = bin_.accumulator.chunks(state) if isinstance(bin_.accumulator, DenseChunked) else None
        enqueue_compaction(chain, product, counted.loose, C, counted.nnz, chunks)
    timer.ended("numeric")
    return Filled(C, steps)


def _allocated(operands: Operands, counted: Counted) -> Result:
    """Return C's arrays."""
    product, n = counted.product, counted.nnz
    indices = new_indices(operands, counted)
    data = new_part(operands.chain, "values", product.shape, n, product.kind.result, operands.allocator)
    return Result(counted.indptr, indices, data)


def new_indices(operands: Operands, counted: Counted) -> cl_array.Array:
    """Return a new array for C's columns."""
    return new_part(operands.chain, "indices", counted.product.shape, counted.nnz, counted.indptr.dtype, operands.allocator)
