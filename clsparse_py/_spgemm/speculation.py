"""A symbolic phase of all rows by what was guessed from what is known of the structures; it tells itself whether that was right.

Where it was, there is nothing to analyse, and the host waits once. Where it was not, work-groups that begin later stop at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._spgemm.kind import Kind
from clsparse_py._spgemm.methods.base import Product
from clsparse_py._spgemm.methods.merge import Merge, MergeKernel
from clsparse_py._spgemm.new_arrays import new_counts, new_pointers
from clsparse_py.launch import Chain
from clsparse_py.primitives.scan import enqueue_scan, summed_tile

__all__ = ["MOST", "Guess", "speculate"]

#: The most entries of a row of B, and products of a row that one work-item merges.
MOST = 256
_BEFORE_SLOTS = 3
#: Sums of entries, at most, that are counted where the scan needs them.
_MOST_SUMS = 900


class Guess(NamedTuple):
    """A guess that was right.

    Attributes
    ----------
    indptr : pyopencl.array.Array
        Of C.
    nnz, n_products : int
        Of C, and of the product.
    longest_row, n_empty : int
        Of A; rows of C without entries.
    """

    indptr: cl_array.Array
    nnz: int
    n_products: int
    longest_row: int
    n_empty: int


def _record(kind: Kind, accumulator: Merge) -> MergeKernel:
    return accumulator.guessing(kind.device, kind.form.of("symbolic"), MOST)


def speculate(chain: Chain, product: Product, accumulator: Merge, max_products: int, allocator: Any) -> Guess | None:
    """Enqueue the phase, and wait for it; None where the guess was wrong.

    Parameters
    ----------
    chain : Chain
    product : Product
        Of which products are not known yet.
    accumulator : Merge
        What is guessed to hold all rows.
    max_products : int
        Products that the speculation allows.
    allocator
        Of C.
    """
    m = product.shape[0]
    counts, indptr = new_counts(chain, product, allocator)
    built, record = chain.build(product.kind.once(_record, accumulator))
    groups, rows = record.groups(m), record.work_group // record.lanes
    # Entries are summed as the scan that tells where rows begin needs them, if it does.
    tile = summed_tile(chain.device, counts.dtype, product.kind.c_index, m + 1)
    fits = tile > 0 and tile % rows == 0 and m <= _MOST_SUMS * tile
    to_sum = tile // rows if fits else -(-groups // record.SLOTS)
    n_sums = -(-groups // to_sum)
    n_seen = 1 + n_sums + _BEFORE_SLOTS + record.SLOTS
    seen = chain.counters(n_seen)
    chain.launch(built, groups, np.uint64(m), *product.structure, counts, seen, np.uint32(n_sums), np.uint32(to_sum))
    indptr = new_pointers(chain, product, allocator) if indptr is None else indptr
    enqueue_scan(chain, counts, indptr, m, kind="pointers", tile_sums=(seen, tile) if fits else None)
    # A list, whose few numbers Python adds up faster than NumPy.
    told: list[int] = chain.read(seen, n_seen).tolist()
    n_products, nnz = sum(told[-record.SLOTS :]), sum(told[: n_sums + 1])
    wrong, longest, n_empty = told[n_sums + 1 : -record.SLOTS]
    return None if wrong or n_products > max_products else Guess(indptr, nnz, n_products, longest, n_empty)
