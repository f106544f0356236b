"""Products of structures that were multiplied before: the commands of an earlier one, with other values."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as ss
from platforms import make_queue
from problems import assert_product, device_matrix, random_matrix, rows_of

import clsparse_py as sp
from clsparse_py._operations.spgemm import METHODS, repeated, spgemm
from clsparse_py._operations.spgemm.repeated import RecordedProduct
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.thresholds import Thresholds, override_thresholds
from clsparse_py._precision.semiring import min_plus, plus_times

#: By its size no product of one launch.
N = 1200


def is_recorded(A: Any, B: Any, **asked: Any) -> bool:
    """Whether the next product of these takes the commands of an earlier one."""
    former = repeated.former_of(A, B, Request(**asked))
    return former is not None and former.product is not None


def values(rng: np.random.Generator, A: ss.csr_array) -> ss.csr_array:
    """Return a matrix of the same structure with other values."""
    return ss.csr_array((rng.integers(1, 9, A.nnz).astype(A.dtype), A.indices, A.indptr), shape=A.shape)


def uneven(rng: np.random.Generator, dtype: Any = np.float32) -> ss.csr_array:
    """Return a matrix with rows of all kinds."""
    return rows_of(rng.choice([0, 1, 2, 5, 9, 40, 150], N, p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.08, 0.02]), N, rng, dtype)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_new_values_of_the_same_structures(queue: cl.CommandQueue, method: Any) -> None:
    rng = np.random.default_rng(1)
    S, T = uneven(rng), random_matrix((N, 900), 4, rng, np.float32)
    A, B = device_matrix(queue, S), device_matrix(queue, T)
    for _ in range(4):
        S, T = values(rng, S), values(rng, T)
        A, B = (matrix.with_values(cl.array.to_device(queue, of.data)) for matrix, of in ((A, S), (B, T)))
        assert_product(spgemm(A, B, method=method), S, T)


@pytest.mark.parametrize("rows", ["alike", "uneven"])
def test_decisions_of_a_gpu(queue: cl.CommandQueue, take_as: Callable[..., None], rows: str) -> None:
    rng = np.random.default_rng(12)
    S = ss.csr_array(ss.diags_array([1.0] * 5, offsets=range(-2, 3), shape=(N, N), dtype=np.float32))
    S = S if rows == "alike" else uneven(rng)
    A = device_matrix(queue, S)
    take_as(type="gpu")
    for factor in range(1, 5):
        B = A.with_values(A.data * np.float32(factor))
        assert_product(A @ B, S, factor * S)
    assert is_recorded(A, B)


@pytest.mark.parametrize("case", ["auto", "itself", "min_plus", "mixed", "wide"])
def test_kinds_of_products(queue: cl.CommandQueue, case: str) -> None:
    rng = np.random.default_rng(2)
    semiring = min_plus if case == "min_plus" else plus_times
    S = uneven(rng)
    T = S if case == "itself" else uneven(rng, np.int32 if case == "mixed" else np.float32)
    A = device_matrix(queue, S, np.int64 if case == "wide" else np.int32)
    B = A if case == "itself" else device_matrix(queue, T)
    results = [spgemm(A, B, semiring=semiring) for _ in range(4)]
    for C in results:
        assert_product(C, S, T, semiring)
        np.testing.assert_array_equal(C.data.get(), results[0].data.get())
    # Indices that are narrowed for kernels come from elsewhere.
    assert is_recorded(A, B, semiring=semiring) or case == "wide"


def test_a_matrix_and_another_of_its_structure(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    S = uneven(rng)
    T = values(rng, S)
    A = device_matrix(queue, S)
    B, same = A.with_values(cl.array.to_device(queue, T.data)), A.with_values(A.data)
    for _ in range(4):
        assert_product(A @ A, S, S)
        assert_product(A @ same, S, S)
        assert_product(A @ B, S, T)
        assert_product(B @ A, T, S)
        assert_product(B @ B, T, T)


def test_matrices_that_change(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(4)
    S, T, U = (uneven(rng) for _ in range(3))
    A, B, other = (device_matrix(queue, matrix) for matrix in (S, T, U))
    for _ in range(3):
        assert_product(A @ B, S, T)
    B.data *= 2
    assert_product(A @ B, S, 2 * T)
    A.indices = A.indices
    assert not is_recorded(A, B)
    assert_product(A @ B, S, 2 * T)
    A._become(other.structure, other.data)
    for _ in range(3):
        assert_product(A @ B, U, 2 * T)


def test_a_matrix_that_is_not_in_canonical_format(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(5)
    S = uneven(rng)
    coo = ss.coo_array(S)
    rows, columns, data = (np.concatenate([array, array[::-1]]) for array in (coo.row, coo.col, coo.data))
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
    A = sp.csr_array((data[order], columns[order], indptr), shape=(N, N), queue=queue)
    B = device_matrix(queue, S)
    for _ in range(4):
        assert_product(A @ B, 2 * S, S)
        assert_product(B @ A, S, 2 * S)
    assert not is_recorded(A, B)


def test_nothing_is_kept_of_structures_that_went(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(6)
    S = uneven(rng)
    A, B = device_matrix(queue, S), device_matrix(queue, S)
    gc.disable()
    try:
        for left, right in ((A, B), (B, B)):
            for _ in range(3):
                left @ right
        assert is_recorded(A, B)
        gone = weakref.ref(B.structure), weakref.ref(repeated.former_of(A, B, Request()))
        del B, left, right
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_a_queue_without_order(queue: cl.CommandQueue) -> None:
    out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    free = make_queue(queue, out_of_order)
    S = uneven(np.random.default_rng(11))
    A = device_matrix(free, S)
    for factor in range(1, 6):
        B = A.with_values(A.data * np.float32(factor))
        assert_product(A @ B, S, factor * S)


def test_threads(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(7)
    S = uneven(rng)
    A = device_matrix(queue, S)

    # PyOpenCL's own kernels, of which threads share one, make the values before the threads begin.
    scaled = [A.with_values(A.data * np.float32(factor)) for factor in range(1, 25)]

    with ThreadPoolExecutor(8) as pool:
        products = pool.map(lambda B: [A @ B for _ in range(5)][-1], scaled)
        for factor, C in enumerate(products, 1):
            assert_product(C, S, factor * S)


def test_without_memory_for_all_at_once(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    S = uneven(rng)
    A = device_matrix(queue, S)
    for _ in range(2):
        A @ A
    assert is_recorded(A, A)

    def lacking(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(repeated, "allocate_each", lacking)
    assert_product(A @ A, S, S)


def test_other_thresholds(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    S = uneven(rng)
    A = device_matrix(queue, S)
    for _ in range(2):
        A @ A
    made: list[Any] = []
    taken = RecordedProduct.repeat

    def noted(*given: Any) -> Any:
        made.append(taken(*given))
        return made[-1]

    monkeypatch.setattr(RecordedProduct, "repeat", noted)
    assert_product(A @ A, S, S)
    with override_thresholds(Thresholds()):
        assert_product(A @ A, S, S)
    assert [result is None for result in made] == [False, True]


def test_a_bound_of_entries(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(10)
    S = uneven(rng)
    A = device_matrix(queue, S)
    for _ in range(4):
        assert_product(spgemm(A, A, max_nnz=N * N), S, S)
        with pytest.raises(ValueError, match="max_nnz"):
            spgemm(A, A, max_nnz=10)


def test_values_that_were_indices_of_an_operand(queue: cl.CommandQueue) -> None:
    """Recorded commands know arrays by their memory: other values must not be taken for the columns that the former ones were."""
    host = ss.csr_array(ss.random_array((3000, 3000), density=0.003, rng=4, dtype=np.float32))
    host.data = (host.indices % 5).astype(np.int32)
    A = sp.csr_array(host, queue=queue)
    A.data = A.indices
    for _ in range(2):
        A @ A
    A.data = host.data
    for _ in range(2):
        result = (A @ A).get()
        np.testing.assert_array_equal((result - host @ host).data, 0)
