"""Speculative symbolic phase: one merge kernel for all rows, chosen by facts of the structures, reports if all suit it.

If all rows suit the kernel, nothing is analysed, and the host waits once. If not, work-groups that begin later stop at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.operands import COUNT, Operands
from clsparse_py._primitives.scan import choose_summed_tile, enqueue_scan

__all__ = ["Speculated", "speculate"]

#: Number of totals (failure, longest row, rows without products) that the speculative merge kernel reports between sums of C's
#: entries and sums of products.
_BEFORE_SLOTS = 3


class Speculated(NamedTuple):
    """The outcome of a speculation that held.

    Attributes
    ----------
    indptr : pyopencl.array.Array
        Of C.
    nnz, n_products : int
        Entries of C, and intermediate products.
    longest_row, n_empty : int
        Entries of the longest row of A, and rows of C without entries.
    """

    indptr: cl_array.Array
    nnz: int
    n_products: int
    longest_row: int
    n_empty: int


def speculate(operands: Operands, accumulator: Merge, max_products: int) -> Speculated | None:
    """Count C's entries by one merge kernel without analysis; return row pointers and totals, None if rows do not suit it. Waits.

    Parameters
    ----------
    operands : Operands
    accumulator : Merge
        The merge kernel that may hold all rows.
    max_products : int
        The most products with which the speculation holds.
    """
    chain, product = operands.chain, operands.product
    kind, m = product.kind, product.shape[0]
    limits = kind.thresholds
    built, kernel = chain.build(accumulator.speculative(kind.device, kind.types.of("symbolic"), limits.max_speculated))
    groups, rows = kernel.groups(m), kernel.work_group // kernel.lanes
    # The merge kernel sums numbers of C's entries by tiles of the scan that makes row pointers, if that scan takes tiles' sums.
    tile = choose_summed_tile(chain.device, COUNT, kind.c_index, m + 1)
    fits = tile > 0 and tile % rows == 0 and m <= limits.max_partial_sums * tile
    to_sum = tile // rows if fits else -(-groups // kernel.SLOTS)
    n_sums = -(-groups // to_sum)
    indptr = operands.new_pointers(kind.c_index)
    # The memory of C's row pointers, if they have 32 bits, takes the numbers of entries of rows until these are summed.
    counts = indptr if kind.c_index.itemsize == COUNT.itemsize else chain.scratch(m, COUNT)
    n_reported = 1 + n_sums + _BEFORE_SLOTS + kernel.SLOTS
    report = chain.counters(n_reported)
    chain.launch(built, groups, np.uint64(m), *product.structure, counts, report, np.uint32(n_sums), np.uint32(to_sum))
    enqueue_scan(chain, counts, indptr, m, kind="pointers", tile_sums=(report, tile) if fits else None)
    # The numbers that the merge kernel reports become a list, as Python adds a few numbers faster than NumPy.
    numbers: list[int] = chain.read(report, n_reported).tolist()
    n_products, nnz = sum(numbers[-kernel.SLOTS :]), sum(numbers[: n_sums + 1])
    failed, longest, n_empty = numbers[n_sums + 1 : -kernel.SLOTS]
    return None if failed or n_products > max_products else Speculated(indptr, nnz, n_products, longest, n_empty)
