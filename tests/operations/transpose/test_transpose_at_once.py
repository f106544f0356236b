"""Small matrices, transposed by one launch: SciPy's result bit by bit, whatever the order of rows, and where others take over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import random_values

from clsparse_py import csr_array, transpose, transpose_plan
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import AtOnce
from clsparse_py._operations.transpose.plan import transpose_in_one_launch

#: Rows, columns and entries: squares, one row, one column, more of each than the others, as much as there is room for.
SIZES = (
    (1, 1, 1),
    (5, 9, 12),
    (300, 200, 1500),
    (1, 700, 900),
    (700, 1, 900),
    (1500, 1200, 590),
    (40, 56, Thresholds().max_at_once - 96),
)


def matrices(dtype: np.dtype[Any], index: type[Any]) -> Iterator[sp.csr_array]:
    """Yield matrices with empty rows, rows that are not sorted, and duplicates."""
    rng = np.random.default_rng(2)
    for n_rows, n_columns, nnz in SIZES:
        lengths = rng.multinomial(nnz, rng.dirichlet(np.full(n_rows, 0.4)))
        indices = rng.integers(0, n_columns, nnz).astype(index)
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
        yield sp.csr_array((random_values(dtype, nnz, rng), indices, indptr), shape=(n_rows, n_columns))


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize(("dtype", "index"), [("float32", np.int32), ("complex128", np.int64), ("int8", np.int32)])
def test_scipys_result(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, dtype: str, index: type[Any], serial: bool
) -> None:
    if dtype == "complex128" and not describe(queue.device).fp64:
        dtype = "complex64"
    legal = AtOnce.legal
    group = 1 if serial else min(256, queue.device.max_work_group_size)
    monkeypatch.setattr(AtOnce, "legal", lambda *given: replace(legal(*given), work_group=group))
    programs.clear()
    for host in matrices(np.dtype(dtype), index):
        A = csr_array(host, queue=queue)
        order = np.argsort(host.indices, kind="stable")
        rows = np.repeat(np.arange(host.shape[0]), np.diff(host.indptr))[order]
        with programs.recording() as built:
            result, plan = transpose(A), transpose_plan(A)
        assert {program.parameters.template for program in built} == {"transpose/at_once"}
        assert plan.explain().method == "at once"
        for matrix in (result, plan()):
            np.testing.assert_array_equal(matrix.data.get(), host.data[order])
            np.testing.assert_array_equal(matrix.indices.get(), rows)
            np.testing.assert_array_equal(np.diff(matrix.indptr.get()), np.bincount(host.indices, minlength=host.shape[1]))
            assert matrix.indices.dtype == matrix.indptr.dtype == index
            assert matrix.has_sorted_indices
    programs.clear()


def test_larger_ones_and_empty_ones_go_elsewhere(queue: cl.CommandQueue) -> None:
    wide = sp.csr_array(([1.0], [0], [0, 1]), shape=(1, Thresholds().max_at_once)).astype(np.float32)
    for host in (wide, sp.csr_array((3, 4), dtype=np.float32)):
        A = csr_array(host, queue=queue)
        assert transpose_in_one_launch(A, valued=True) is None
        assert abs(transpose(A).get() - host.T).nnz == 0
