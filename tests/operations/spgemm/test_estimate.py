"""The memory that a product needs, estimated beforehand."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, pattern_product, random_matrix
from scratch import count_buffers

from clsparse_py import csr_array, spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._run.launch import Chain


def products_of(A: sp.csr_array, B: sp.csr_array) -> np.ndarray:
    lengths = np.concatenate(([0], np.cumsum(np.diff(B.indptr)[A.indices])))
    return np.diff(lengths[A.indptr])


@pytest.mark.parametrize("columns", [70, 12])
def test_products_bound_and_histogram(queue: cl.CommandQueue, columns: int) -> None:
    rng = np.random.default_rng(0)
    A, B = random_matrix((300, 50), 4, rng, np.float32), random_matrix((50, columns), 6, rng, np.float32)
    products = products_of(A, B)
    result = spgemm_estimate(device_matrix(queue, A), device_matrix(queue, B))
    assert not result.exact
    assert result.shape == (300, columns)
    assert result.n_products == products.sum()
    assert result.nnz == np.minimum(products, columns).sum() >= pattern_product(A, B).nnz
    assert result.expansion_factor == pytest.approx(products.sum() / A.nnz)
    assert result.c_bytes == 301 * 4 + result.nnz * 8
    assert result.expansion_bytes == result.n_products * 8
    assert sum(rows for _, rows in result.histogram) == 300
    below = -1
    for most, rows in result.histogram:
        assert rows == np.count_nonzero((products > below if most else products == 0) & (products <= most)), most
        below = most if below < 0 or most else 0


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("columns", [300, 3_000_000])
def test_workspace_is_told(queue: cl.CommandQueue, columns: int, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No product takes more, by counting, and the least limit is enough."""
    rng = np.random.default_rng(2)
    A, B = random_matrix((2000, 300), 9, rng, np.float32), random_matrix((300, 300), 9, rng, np.float32)
    wide = sp.csr_array((B.data, B.indices * (columns // 300), B.indptr), shape=(300, columns))
    left, right = device_matrix(queue, A), device_matrix(queue, wide)
    assert left.has_canonical_format
    assert right.has_canonical_format
    result = spgemm_estimate(left, right, exact=exact)
    for limit in (None, result.min_bytes):
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, memory_limit=limit)
        assert 0 < allocations.peak(C) <= (result.workspace_bytes if limit is None else limit)
        assert_product(C, A, wide)
    with pytest.raises(MemoryError, match=f"needs {result.min_bytes:,} bytes of workspace"):
        spgemm(left, right, memory_limit=result.min_bytes - 1)
    plan = spgemm_plan(left, right)
    explanation = plan.explain()
    assert 0 <= explanation.kept_bytes <= explanation.workspace_bytes <= result.workspace_bytes
    assert explanation.c_bytes == sum(part.nbytes for part in (C.data, C.indices, C.indptr)) <= result.c_bytes
    assert f"workspace {explanation.workspace_bytes:,}, kept {explanation.kept_bytes:,}" in " ".join(str(explanation).split())


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_exact(queue: cl.CommandQueue, index: type) -> None:
    rng = np.random.default_rng(1)
    A, B = random_matrix((200, 50), 4, rng, np.float32), random_matrix((50, 20), 6, rng, np.float32)
    left, right = device_matrix(queue, A, index), device_matrix(queue, B, index)
    result = spgemm_estimate(left, right, exact=True)
    assert result.exact
    assert result.nnz == pattern_product(A, B).nnz == spgemm(left, right).nnz
    assert result.compression_ratio == pytest.approx(products_of(A, B).sum() / result.nnz)


def test_rows_past_every_class(queue: cl.CommandQueue) -> None:
    """Rows of 2^26 products, which no class has."""
    A, B = (sp.csr_array(np.ones(shape, np.float32)) for shape in ((2, 1 << 13), (1 << 13, 1 << 11)))
    long = sp.hstack([A] * 4, format="csr")
    result = spgemm_estimate(csr_array(long, queue=queue), csr_array(sp.vstack([B] * 4, format="csr"), queue=queue))
    assert result.n_products == 2 << 26
    assert result.nnz == 2 << 11
    assert result.histogram == ((-1, 2),)


def test_more_products_than_32_bits_hold(queue: cl.CommandQueue) -> None:
    full = csr_array(sp.csr_array(np.ones((1 << 11, 1 << 11), np.int8)), queue=queue)
    result = spgemm_estimate(full, full)
    assert result.n_products == 1 << 33
    assert result.nnz == 1 << 22
    assert result.expansion_bytes == 5 << 33
    assert result.histogram == ((1 << 22, 1 << 11),)
    # Neither is a multiple of 2^32.
    uneven = csr_array(sp.csr_array(np.ones((1999, 1 << 11), np.int8)), queue=queue)
    assert spgemm_estimate(uneven, full).n_products == 1999 << 22


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (3, 4, 5)])
def test_nothing_to_multiply(queue: cl.CommandQueue, shape: tuple[int, int, int], exact: bool) -> None:
    m, k, n = shape
    A, B = (csr_array(sp.csr_array(size, dtype=np.float32), queue=queue) for size in ((m, k), (k, n)))
    result = spgemm_estimate(A, B, exact=exact)
    assert (result.n_products, result.nnz, result.exact) == (0, 0, exact)
    assert result.histogram == (((0, m),) if m else ())
    assert result.expansion_factor == result.compression_ratio == 0


def test_operands_of_any_format(queue: cl.CommandQueue) -> None:
    """Duplicates count once, as they do in the product; SciPy's matrices are taken too."""
    twice = csr_array(
        (np.ones(4, np.float32), np.array([2, 0, 2, 1], np.int32), np.array([0, 3, 4], np.int32)), shape=(2, 3), queue=queue
    )
    B = sp.csr_array(np.ones((3, 5), np.float32))
    result = spgemm_estimate(twice, B)
    assert (result.nnz_a, result.n_products, result.nnz) == (3, 15, 10)
    assert twice.nnz == 4


def test_one_read(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A = csr_array(sp.eye_array(50, dtype=np.float32, format="csr"), queue=queue)
    assert A.has_canonical_format
    reads = []
    for name in ("read", "read_later"):
        read = getattr(Chain, name)
        monkeypatch.setattr(Chain, name, lambda *given, read=read, **named: reads.append(1) or read(*given, **named))
    spgemm_estimate(A, A)
    assert len(reads) == 1


def test_bad_operands(queue: cl.CommandQueue) -> None:
    A = csr_array(sp.eye_array(5, dtype=np.float32, format="csr"), queue=queue)
    with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array, is int"):
        spgemm_estimate(3, A)
    with pytest.raises(ValueError, match=r"^B: must have 5 rows"):
        spgemm_estimate(A, sp.eye_array(4, format="csr"))
