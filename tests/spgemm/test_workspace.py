"""The workspace of every method beside A, B and C: under twice their bytes, but for the reference ESC."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import device_matrix, rows_of
from scratch import most_scratch

from clsparse_py.spgemm import METHODS, spgemm


def grid(side: int) -> sp.csr_array:
    """Return the nine-point stencil on a square grid."""
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    found = sp.csr_array(sp.kron(line, line), dtype=np.float32)
    found.sort_indices()
    return found


def powers(n: int) -> sp.csr_array:
    """Return a matrix with few long rows and many short ones."""
    rng = np.random.default_rng(1)
    return rows_of(np.minimum(2 + rng.pareto(1.2, n).astype(int), n // 4), n, rng, np.float32)


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("A", [grid(220), powers(20_000)], ids=["grid", "powers"])
def test_workspace(queue: cl.CommandQueue, method: str, A: sp.csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    left = device_matrix(queue, A)
    with most_scratch(monkeypatch) as most:
        C = spgemm(left, left, method=method)
    arrays = sum(part.nbytes for each in (left, left, C) for part in (each.data, each.indices, each.indptr))
    assert most() > 0
    if method != "esc":
        assert most() < 2 * arrays
