"""New arrays for C."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._memory.memory import allocate, array_of
from clsparse_py._memory.workspace import counting, current
from clsparse_py._operations.spgemm.accumulator import Product
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Tape

__all__ = ["COUNT", "new_counts", "new_part", "new_pointers"]

#: The entries of a row of C, as they are counted.
COUNT = np.dtype(np.uint32)


def new_part(chain: Chain, part: str, shape: tuple[int, int], n: int, dtype: Any, allocator: Any) -> cl_array.Array:
    """Return a new array for C: a result, which is no workspace."""
    purpose = f"{part} of the {shape[0]} x {shape[1]} product"
    if current() is None:
        array = allocate(chain.queue, purpose, n, dtype, allocator)
        if isinstance(chain, Tape):
            chain.take(part, array)
        return array
    with counting(None):
        return allocate(chain.queue, purpose, n, dtype, allocator)


def new_pointers(chain: Chain, product: Product, allocator: Any) -> cl_array.Array:
    """Return a new array for C's ``indptr``."""
    return new_part(chain, "indptr", product.shape, product.shape[0] + 1, product.kind.c_index, allocator)


def new_counts(chain: Chain, product: Product, allocator: Any) -> tuple[cl_array.Array, cl_array.Array | None]:
    """Return memory for the entries of each row of C, and C's ``indptr`` if it is the same memory: pointers of 32 bits.

    Those of 64 bits are not made before it is known that C needs them.
    """
    m = product.shape[0]
    if product.kind.c_index.itemsize > COUNT.itemsize:
        return chain.scratch(m, COUNT), None
    indptr = new_pointers(chain, product, allocator)
    return array_of(chain.queue, m, COUNT, indptr.base_data, context=indptr.context), indptr
