"""Where the rows of C begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.spgemm.accumulator import Product
from clsparse_py.workspace import counting

__all__ = ["enqueue_pointers", "new_pointers"]


def new_pointers(chain: Chain, product: Product, allocator: Any) -> cl_array.Array:
    """Return a new array for C's ``indptr``: a result, which is no workspace."""
    m, n = product.shape
    with counting(None):
        return allocated(chain.queue, f"indptr of the {m} x {n} product", m + 1, np.dtype(product.form.c_index), allocator)


def enqueue_pointers(
    chain: Chain, product: Product, counts: cl_array.Array, allocator: Any, tile_sums: tuple[cl_array.Array, int] | None = None
) -> cl_array.Array:
    """Enqueue C's ``indptr``, from the entries of each row, and return it; ``tile_sums`` as `enqueue_scan` takes them."""
    indptr = new_pointers(chain, product, allocator)
    enqueue_scan(chain, counts, indptr, product.shape[0], kind="pointers", tile_sums=tile_sums)
    return indptr
