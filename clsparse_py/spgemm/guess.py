"""A symbolic phase of all rows by what was guessed from what is known of the structures; it tells itself whether that was right.

Where it was, there is nothing to analyse, and the host waits once. Where it was not, work-groups that begin later stop at once.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.device import Device
from clsparse_py.launch import Chain
from clsparse_py.primitives.scan import summed_tile
from clsparse_py.spgemm.accumulator import Product
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.merge import Merge, MergeKernel
from clsparse_py.spgemm.pointers import enqueue_pointers

__all__ = ["MOST", "Guess", "tried"]

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


# Kept: to make a record legal takes longer than to launch its kernel.
@functools.lru_cache(maxsize=256)
def _record(accumulator: Merge, device: Device, form: Form) -> MergeKernel:
    return accumulator.guessing(device, form.of("symbolic"), MOST)


def tried(
    chain: Chain, product: Product, accumulator: Merge, most_products: int, counts: cl_array.Array, allocator: Any
) -> Guess | None:
    """Enqueue the phase, and wait for it; None where the guess was wrong, and then ``counts`` are too.

    Parameters
    ----------
    chain : Chain
    product : Product
        Of which products are not known yet.
    accumulator : Merge
        What is guessed to hold all rows.
    most_products : int
        Products that the guess may have.
    counts : pyopencl.array.Array
        Takes the entries of each row.
    allocator
        Of C.
    """
    m = product.shape[0]
    built, record = chain.build(_record(accumulator, chain.device, product.form))
    groups, rows = record.groups(m), record.work_group // record.lanes
    # Entries are summed as the scan that tells where rows begin needs them, if it does.
    tile = summed_tile(chain.device, counts.dtype, np.dtype(product.form.c_index), m + 1)
    fits = tile > 0 and tile % rows == 0 and m <= _MOST_SUMS * tile
    to_sum = tile // rows if fits else -(-groups // record.SLOTS)
    n_sums = -(-groups // to_sum)
    n_seen = 1 + n_sums + _BEFORE_SLOTS + record.SLOTS
    seen = chain.counters(n_seen)
    chain.launch(built, groups, np.uint64(m), *product.structure, counts, seen, np.uint32(n_sums), np.uint32(to_sum))
    indptr = enqueue_pointers(chain, product, counts, allocator, (seen, tile) if fits else None)
    told = chain.read(seen, n_seen)
    n_products, nnz = (int(each.sum(dtype=np.uint64)) for each in (told[-record.SLOTS :], told[: n_sums + 1]))
    wrong, longest, n_empty = told[n_sums + 1 : -record.SLOTS].tolist()
    return None if wrong or n_products > most_products else Guess(indptr, nnz, n_products, longest, n_empty)
