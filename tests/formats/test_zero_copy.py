"""A matrix on the memory of SciPy's arrays."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from clsparse_py import csr_array, spmv
from clsparse_py._device.device import describe
from clsparse_py._formats import zero_copy
from clsparse_py._memory import memory, pool

NAMES = ("data", "indices", "indptr")


@pytest.fixture
def sharing(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device that works on the host's memory."""
    if not describe(queue.device).aliases_host:
        pytest.skip("the device has its own memory")
    return queue


def unsorted_matrix(n: int = 400, dtype: Any = np.float32, index: Any = np.int32) -> sp.csr_array:
    """Return a matrix whose rows SciPy sorts in place whenever it needs them sorted."""
    rng = np.random.default_rng(0)
    columns = ((rng.integers(0, n, n)[:, None] + np.arange(9)[::-1] * (n // 9)) % n).ravel().astype(index)
    matrix = sp.csr_array((rng.integers(1, 9, columns.size).astype(dtype), columns, np.arange(n + 1, dtype=index) * 9), (n, n))
    matrix.has_sorted_indices = False
    return matrix


def writable(matrix: Any) -> list[bool]:
    gc.collect()
    return [getattr(matrix, name).flags.writeable for name in NAMES]


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, np.ndarray | None]]:
    """Every request that goes through the one door to memory: its bytes, and the host's memory that it is on or copied from."""
    seen: list[tuple[int, np.ndarray | None]] = []
    create = pool._create

    def counted(context: cl.Context, n_bytes: int, host: np.ndarray | None = None, flags: int = 0) -> cl.Buffer:
        seen.append((n_bytes, host))
        return create(context, n_bytes, host, flags)

    monkeypatch.setattr(pool, "_create", counted)
    return seen


def test_all_arrays_are_the_hosts_own(sharing: cl.CommandQueue, requested: list[tuple[int, np.ndarray | None]]) -> None:
    memory.free_memory()
    S = unsorted_matrix(20_000)
    x = np.arange(20_000, dtype=np.float32) % 7
    wanted, before = S @ x, [getattr(S, name) for name in NAMES]
    n_bytes = sum(part.nbytes for part in before)
    A = csr_array(S, queue=sharing, zero_copy=True)
    own = sum(max(n, 0 if host is None else host.nbytes) for n, host in requested if not _within(host, before))
    assert own < 0.01 * n_bytes + 1024 * sharing.device.max_compute_units  # what checks count, a part for each work-group
    assert sum(_within(host, before) for _, host in requested) == 3
    np.testing.assert_array_equal(A @ x, wanted)
    # What the device writes, the host reads.
    A.data[:3].fill(5)
    sharing.finish()
    assert S.data[:3].tolist() == [5, 5, 5]


def _within(host: np.ndarray | None, arrays: list[np.ndarray]) -> bool:
    return host is not None and any(np.shares_memory(host, array) for array in arrays)


def test_the_hosts_arrays_cannot_be_written_to_as_long_as_their_memory_is_used(sharing: cl.CommandQueue) -> None:
    S = unsorted_matrix()
    A, second = (csr_array(S, queue=sharing, zero_copy=True) for _ in range(2))
    assert writable(S) == [False] * 3
    for change in (S.sort_indices, S.sum_duplicates, S.eliminate_zeros, lambda: S.data.fill(1)):
        with pytest.raises(ValueError, match="read-only"):
            change()
    transposed = A.T
    del A, second
    assert writable(S) == [False] * 3
    del transposed
    assert writable(S) == [True] * 3
    S.data.flags.writeable = False
    A = csr_array(S, queue=sharing, zero_copy=True)
    # New arrays let go of the old ones.
    A.sort_indices()
    assert writable(S) == [False, True, False]
    S.data.flags.writeable = True
    np.testing.assert_array_equal(A.toarray(), S.toarray())


def test_memory_that_goes_while_other_memory_is_lent_waits_for_nothing(sharing: cl.CommandQueue) -> None:
    S, other = unsorted_matrix(), unsorted_matrix(9)
    A = csr_array(S, queue=sharing, zero_copy=True)
    with zero_copy._lock:  # as if the garbage collector ran there
        del A
        assert writable(S) == [False] * 3
    csr_array(other, queue=sharing, zero_copy=True)
    assert writable(S) == [True] * 3


def test_it_takes_what_the_host_has(sharing: cl.CommandQueue) -> None:
    for dtype, index in ((np.complex64, np.int64), (np.bool_, np.int32), (np.int8, np.int64)):
        S = unsorted_matrix(50, dtype, index)
        parts = tuple(getattr(S, name) for name in NAMES)
        for A in (csr_array(S, queue=sharing, zero_copy=True), csr_array(parts, S.shape, queue=sharing, zero_copy=True)):
            np.testing.assert_array_equal(A.toarray(), S.toarray())
    empty = csr_array(
        sp.csr_array((3, 0)), queue=sharing, zero_copy=True, dtype=None if describe(sharing.device).fp64 else np.float32
    )
    assert empty.shape == (3, 0)
    line = sp.csr_array(np.array([0, 2, 0, 3], np.float32))
    vector = csr_array(line, queue=sharing, zero_copy=True)
    assert vector.shape == (4,)
    np.testing.assert_array_equal(vector.toarray(), line.toarray())
    S.data.flags.writeable = False
    A, x = csr_array(S, queue=sharing, zero_copy=True), np.ones(50, np.int8)
    np.testing.assert_array_equal(spmv(A, x), S @ x)


def shift_address(array: np.ndarray) -> np.ndarray:
    """Return the values at an address that is no multiple of their size."""
    memory = np.empty(array.nbytes + 1, np.uint8)
    memory[1:] = array.view(np.uint8)
    return memory[1:].view(array.dtype)


REFUSED: dict[str, tuple[str, Callable[[sp.csr_array], dict[str, Any]]]] = {
    "copy": ("copy=True", lambda S: {"arg1": S, "copy": True}),
    "format": ("csc format", lambda S: {"arg1": S.tocsc()}),
    "dense": ("not numpy.ndarray", lambda S: {"arg1": S.toarray()}),
    "list": ("data must be a NumPy array", lambda S: {"arg1": (S.data.tolist(), S.indices, S.indptr), "shape": S.shape}),
    "no shape": ("need a shape", lambda S: {"arg1": (S.data, S.indices, S.indptr)}),
    "strides": ("contiguous", lambda S: {"arg1": (np.repeat(S.data, 2)[::2], S.indices, S.indptr), "shape": S.shape}),
    "dtype": ("converted to float64", lambda S: {"arg1": S, "dtype": "float64"}),
    "order": ("data has dtype >f4", lambda S: {"arg1": (S.data.astype(">f4"), S.indices, S.indptr), "shape": S.shape}),
    "index": ("indices has dtype", lambda S: {"arg1": (S.data, S.indices.astype(np.int64), S.indptr), "shape": S.shape}),
    "uint32": (
        "indices has dtype <u4",
        lambda S: {"arg1": (S.data, *(S.indices.view("u4"), S.indptr.view("u4"))), "shape": S.shape},
    ),
    "wide": ("int64", lambda S: {"arg1": S, "shape": (S.shape[0], 1 << 40)}),
    "address": ("multiple of its 4 bytes", lambda S: {"arg1": (shift_address(S.data), S.indices, S.indptr), "shape": S.shape}),
    "structure": ("indptr", lambda S: {"arg1": (S.data, S.indices, S.indptr[::-1].copy()), "shape": S.shape}),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_without_a_copy_or_not_at_all(sharing: cl.CommandQueue, case: str) -> None:
    S = unsorted_matrix(30)
    message, arguments = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        csr_array(**arguments(S), queue=sharing, zero_copy=True)
    assert writable(S) == [True] * 3


def test_a_device_with_its_own_memory_refuses(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(aliases_host=False, unified_memory=False)
    with pytest.raises(ValueError, match=r"zero_copy: .* has its own memory; leave zero_copy out"):
        csr_array(unsorted_matrix(30), queue=queue, zero_copy=True)
