"""The arrays of C: new ones, and where its rows begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.spgemm.accumulator import Product
from clsparse_py.workspace import counting

__all__ = ["enqueue_pointers", "new_part", "new_pointers"]


def new_part(chain: Chain, part: str, shape: tuple[int, int], n: int, dtype: Any, allocator: Any) -> cl_array.Array:
    """Return a new array for C: a result, which is no workspace."""
    with counting(None):
        return allocated(chain.queue, f"{part} of the {shape[0]} x {shape[1]} product", n, dtype, allocator)


def new_pointers(chain: Chain, product: Product, allocator: Any) -> cl_array.Array:
    """Return a new array for C's ``indptr``."""
    return new_part(chain, "indptr", product.shape, product.shape[0] + 1, np.dtype(product.form.c_index), allocator)


def enqueue_pointers(
    chain: Chain, product: Product, counts: cl_array.Array, allocator: Any, tile_sums: tuple[cl_array.Array, int] | None = None
) -> cl_array.Array:
    """Enqueue C's ``indptr``, from the entries of each row, and return it; ``tile_sums`` as `enqueue_scan` takes them."""
    indptr = new_pointers(chain, product, allocator)
    enqueue_scan(chain, counts, indptr, product.shape[0], kind="pointers", tile_sums=tile_sums)
    return indptr
