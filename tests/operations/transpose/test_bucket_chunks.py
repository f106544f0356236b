"""SpTRANS by buckets on CPU devices: bit by bit as SciPy's, taken for scattered columns alone, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import random_values
from pyopencl import array as cl_array
from supposed import suppose

from clsparse_py import csr_array, transpose
from clsparse_py._ground.errors import BuildError
from clsparse_py._operations.transpose import methods
from clsparse_py._operations.transpose.bucket_chunks import enqueue_bucket_chunks
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import Transposition
from clsparse_py._run.launch import Chain


def scattered_matrix(n_rows: int, n_cols: int, n: int) -> sp.csr_array:
    """Return a matrix of unsorted rows, duplicates and empty rows and columns among them."""
    rng = np.random.default_rng(3)
    indptr = np.concatenate(([0], np.cumsum(rng.multinomial(n, rng.dirichlet(np.full(n_rows, 0.2))))))
    return sp.csr_array((np.arange(n, dtype=np.float64), rng.integers(0, n_cols, n), indptr), shape=(n_rows, n_cols))


@pytest.fixture
def for_small_ones(take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what large matrices take for small ones."""
    take_as(type="cpu")
    of = suppose(Thresholds, min_bucket_bytes=0, min_bucket_columns=0, max_bucket_cores=1 << 16)
    monkeypatch.setattr(Thresholds, "of", of)


# Two buckets; as few columns as leave the last one short; words of 64 bits.
@pytest.mark.parametrize(("n_rows", "n_cols", "n", "dtype", "index"), [
    (70, 300, 4000, "float32", np.int32), (400, 5, 900, "complex64", np.int64), (3_000_000, 8000, 1500, "uint8", np.int32),
])  # fmt: skip
def test_scipys_result(
    queue: cl.CommandQueue, take_as: Callable[..., None], n_rows: int, n_cols: int, n: int, dtype: str, index: Any
) -> None:
    take_as(type="cpu")
    host = scattered_matrix(n_rows, n_cols, n)
    wanted = sp.csr_array((np.arange(n), host.indices, host.indptr), shape=host.shape).T.tocsr()
    parts = random_values(dtype, n, np.random.default_rng(1)), host.indices.astype(index), host.indptr.astype(index)
    data, indices, indptr = (cl_array.to_device(queue, part) for part in parts)
    for given in (data, None):
        made = [cl_array.empty(queue, size, index) for size in (n_cols + 1, n)]
        moved = cl_array.empty(queue, n, index if given is None else dtype)
        chain = Chain(queue, data, indices, indptr)
        enqueue_bucket_chunks(chain, Transposition(indptr, indices, given, *made, moved, host.shape, n), 1)
        chain.finish(moved, *made)
        np.testing.assert_array_equal(made[0].get(), wanted.indptr)
        np.testing.assert_array_equal(made[1].get(), wanted.indices)
        np.testing.assert_array_equal(moved.get(), wanted.data if given is None else parts[0][wanted.data])


@pytest.mark.usefixtures("for_small_ones")
def test_scattered_columns_take_buckets_and_others_do_not(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, read = [], Chain.read
    monkeypatch.setattr(Chain, "read", lambda *args: reads.append(args) or read(*args))
    random = sp.csr_array(scattered_matrix(300, 20_000, 5000), dtype=np.float32)
    band = sp.diags_array([1.0, 2.0], offsets=[-1, 1], shape=(2500, 2501), format="csr", dtype=np.float32)
    for host, is_scattered in ((random, True), (band, False)):
        A = csr_array(host, queue=queue)
        for _ in range(2):
            result = transpose(A, method="binned")
            np.testing.assert_array_equal(result.toarray(), host.T.toarray())
        assert A.structure.scattered is is_scattered
    # The sample is a fact of the structure, and is read once.
    assert sum(arguments[2:] == (1,) for arguments in reads) == 2


@pytest.mark.usefixtures("for_small_ones")
def test_counting_by_column_takes_the_place_of_what_is_refused(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(*arguments: Any) -> None:
        asked.append(arguments)
        raise BuildError("refused", log="", parameters=None, source=None)

    monkeypatch.setattr(methods, "enqueue_bucket_chunks", refuse)
    host = sp.csr_array(scattered_matrix(301, 20_000, 5000), dtype=np.float32)
    result = transpose(csr_array(host, queue=queue), method="binned")
    assert asked
    np.testing.assert_array_equal(result.toarray(), host.T.toarray())
