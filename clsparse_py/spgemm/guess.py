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
from clsparse_py.spgemm.accumulator import Product
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.merge import Merge, MergeKernel
from clsparse_py.spgemm.pointers import enqueue_pointers

__all__ = ["MOST", "Guess", "tried"]

#: The most entries of a row of B, and products of a row that one work-item merges.
MOST = 256
_BEFORE_SLOTS = 3


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
    n_seen = _BEFORE_SLOTS + 2 * record.SLOTS
    seen = chain.counters(n_seen)
    chain.launch(built, record.groups(m), np.uint64(m), *product.structure, counts, seen)
    indptr = enqueue_pointers(chain, product, counts, allocator)
    wrong, longest, n_empty, *parts = chain.read(seen, n_seen).tolist()
    n_products, nnz = sum(parts[: record.SLOTS]), sum(parts[record.SLOTS :])
    return None if wrong or n_products > most_products else Guess(indptr, nnz, n_products, longest, n_empty)
