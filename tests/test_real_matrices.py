"""Real matrices against SciPy: the folder of Matrix Market files that ``CLSPARSE_MATRICES`` names.

SpMV runs on every platform, the others on one for each matrix, in turns. SpGEMM takes a sample of the matrices, all with
``CLSPARSE_FULL=1``; those with too many products are listed as skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
import scipy.io
import scipy.sparse as sp
from platforms import PLATFORMS, has_fp64, queue_on

from bench.problems import spgemm as problems
from clsparse_py import csr_array, spgemm, transpose
from clsparse_py._device.device import describe
from clsparse_py._operations.spgemm import METHODS

_FOLDER = os.environ.get("CLSPARSE_MATRICES", "")
FILES = sorted(path for path in Path(_FOLDER).iterdir() if path.name.endswith((".mtx", ".mtx.gz"))) if _FOLDER else []

_FULL = os.environ.get("CLSPARSE_FULL", "0") not in ("", "0")
_BY_SIZE = sorted(FILES, key=lambda path: (path.stat().st_size, path.name))
#: Files whose square is made by `auto`, and those, of the smaller ones, whose square is made by every method.
SQUARED = FILES if _FULL else FILES[::8]
BY_EVERY_METHOD = FILES if _FULL else _BY_SIZE[: 3 * len(FILES) // 4 : 36]
MOST_PRODUCTS = {True: 10**8, False: 10**9}  # by whether a CPU device makes them
MOST_BY_EVERY_METHOD = 2 * 10**6

pytestmark = pytest.mark.skipif(not _FOLDER, reason="CLSPARSE_MATRICES names no folder of matrices")


def test_there_are_matrices() -> None:
    assert FILES, f"no .mtx or .mtx.gz file in {_FOLDER}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_product_is_scipys(path: Path) -> None:
    matrix = sp.csr_array(scipy.io.mmread(path))
    wide = np.result_type(matrix.dtype, np.float64)
    matrix = matrix.astype(wide)
    x = np.random.default_rng(0).standard_normal(matrix.shape[1])
    # A bound for any order of summation.
    magnitude = (abs(matrix) @ np.abs(x)) * (np.diff(matrix.indptr) + 2) * (4 if wide.kind == "c" else 1)
    wanted = matrix @ x
    for name in PLATFORMS:
        queue = queue_on(name)
        for dtype, value in ((wide, np.float64), (np.dtype(np.complex64 if wide.kind == "c" else np.float32), np.float32)):
            if value is np.float64 and not has_fp64(name):
                continue
            single = value is np.float32
            A = csr_array(matrix.astype(dtype) if single else matrix, queue=queue)
            result = A @ x.astype(value)
            assert result.dtype == dtype
            assert A.nnz == matrix.nnz
            # In single precision the operands were rounded too.
            assert (
                np.abs(result - wanted) <= (3 if single else 1) * np.finfo(dtype).eps * magnitude + np.finfo(dtype).tiny
            ).all()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_transposed_is_scipys(queue: cl.CommandQueue, path: Path) -> None:
    """By the method that is chosen, and by those that take any matrix."""
    matrix = sp.csr_array(scipy.io.mmread(path))
    matrix = matrix.astype(np.complex64 if matrix.dtype.kind == "c" else np.float32)
    wanted = matrix.T.tocsr()
    A = csr_array(matrix, queue=queue)
    for result in (A.T.tocsr(), transpose(A, method="binned"), transpose(A, method="atomics")):
        of = result.get()
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(of, part), getattr(wanted, part))


def square_of(path: Path, most: int, dtype: type = np.float64) -> problems.Spgemm:
    """Return A @ A, or A @ A.T where A is not square, of scaled values; skip those of more products.

    In single precision, where small values would vanish, the values are made up.
    """
    matrix = sp.csr_array(scipy.io.mmread(path)).real.astype(dtype)
    matrix.sum_duplicates()
    if dtype is np.float64:
        matrix.data /= np.abs(matrix.data).max(initial=1)
    else:
        matrix.data = np.random.default_rng(0).uniform(-1, 1, matrix.nnz).astype(dtype)
    right = matrix if matrix.shape[0] == matrix.shape[1] else matrix.T.tocsr()
    products = np.diff(right.indptr)[matrix.indices].sum(dtype=np.int64)
    if products > most:
        pytest.skip(f"{products:,} products, more than {most:,}")
    return problems.of_operands(path.name, "spgemm", matrix, right)


def check_square(queue: cl.CommandQueue, problem: problems.Spgemm, methods: tuple[str, ...]) -> None:
    A, B = (csr_array(matrix, queue=queue) for matrix in (problem.matrix, problem.right))
    for method in methods:
        C = spgemm(A, B, method=method)
        assert problem.error((C.indptr.get(), C.indices.get(), C.data.get())) <= 1, method


@pytest.mark.parametrize("path", SQUARED, ids=lambda path: path.name.split(".")[0])
def test_square_is_scipys(queue: cl.CommandQueue, real: np.dtype, path: Path) -> None:
    check_square(queue, square_of(path, MOST_PRODUCTS[describe(queue.device).lanes_are_loops], real.type), ("auto",))


@pytest.mark.parametrize("path", BY_EVERY_METHOD, ids=lambda path: path.name.split(".")[0])
def test_square_by_every_method(queue: cl.CommandQueue, path: Path) -> None:
    # The kernels of other tests, in single precision, need not be built again.
    check_square(queue, square_of(path, MOST_BY_EVERY_METHOD, np.float32), tuple(METHODS))
