"""Helpers of the tests of products: random matrices, the families of kernels, a product with a plan of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from oracle import random_structure, random_values

from clsparse_py import csr_array, spmv, spmv_plan

#: One of each family, beside what is chosen automatically.
FAMILIES = (None, "serial", "subvector8", "vector", "vector_long", "adaptive", "nonzero_split", "merge", "chunked")


def random_csr(lengths: Any, n_cols: int, seed: int, dtype: Any = np.float32, index: Any = np.int32) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    indices, indptr = random_structure(lengths, n_cols, rng, index)
    return sp.csr_array((random_values(dtype, indices.size, rng), indices, indptr), shape=(len(lengths), n_cols))


def multiply(A: csr_array, x: Any, kernel: Any = None, scheme: str = "auto", **options: Any) -> Any:
    return spmv(A, x, plan=spmv_plan(A, scheme=scheme, kernel=kernel), **options)
