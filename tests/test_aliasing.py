"""Memory that is shared: between a matrix and what it was made from, and between a product's result and its operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py import csr_array, spgemm_plan, transpose_plan
from clsparse_py.device import describe


def unsorted(n: int = 40) -> sp.csr_array:
    """Return a matrix whose rows SciPy sorts in place whenever it needs them sorted."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.permutation(n)[:7][::-1] for _ in range(n)]).astype(np.int32)
    data = rng.integers(1, 9, columns.size).astype(np.float32)
    matrix = sp.csr_array((data, columns, np.arange(n + 1, dtype=np.int32) * 7), shape=(n, n))
    matrix.has_sorted_indices = False
    return matrix


def overwrite(matrix: sp.csr_array) -> None:
    matrix.indices[:] = 1 << 30
    matrix.indptr[:] = -7
    matrix.data[:] = np.nan


IN_PLACE: dict[str, Callable[[sp.csr_array], object]] = {
    "sort": lambda matrix: matrix.sort_indices(),
    "max": lambda matrix: matrix.max(),
    "solve": lambda matrix: scipy.sparse.linalg.spsolve(matrix.astype(np.float64), np.ones(matrix.shape[0])),
    "overwrite": overwrite,
}


@pytest.mark.parametrize("change", list(IN_PLACE))
def test_a_matrix_stays_what_it_was_made_of(queue: cl.CommandQueue, change: str) -> None:
    S = unsorted()
    dense = S.toarray()
    A = csr_array(S, queue=queue)
    of_parts = csr_array((S.data, S.indices, S.indptr), queue=queue)
    transposition, product = transpose_plan(A), spgemm_plan(A, A)
    IN_PLACE[change](S)
    for matrix in (A, of_parts):
        np.testing.assert_array_equal(matrix.toarray(), dense)
        np.testing.assert_array_equal(matrix @ np.ones(40, np.float32), dense @ np.ones(40, np.float32))
    np.testing.assert_array_equal(transposition().toarray(), dense.T)
    np.testing.assert_array_equal(product().toarray(), dense @ dense)


def test_values_given_to_plans_may_change_when_the_call_returns(queue: cl.CommandQueue) -> None:
    S = unsorted()
    A, dense, values = csr_array(S, queue=queue), S.toarray(), S.data.copy()
    transposition, product = transpose_plan(A), spgemm_plan(A, A)
    found = [transposition(values), product(values, values)]
    values[:] = np.nan
    for matrix, wanted in zip(found, (dense.T, dense @ dense), strict=True):
        np.testing.assert_array_equal(matrix.toarray(), wanted)


def test_read_only_parts_are_not_written_to(queue: cl.CommandQueue) -> None:
    S = unsorted()
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    before = S.data.copy()
    A = csr_array((S.data, S.indices, S.indptr), queue=queue)
    A.data.fill(0)
    queue.finish()
    np.testing.assert_array_equal(S.data, before)
    np.testing.assert_array_equal(A.data.get(), 0)


def test_device_parts_are_used_as_they_are_unless_copied(queue: cl.CommandQueue) -> None:
    S = unsorted()
    parts = tuple(cl_array.to_device(queue, part) for part in (S.data, S.indices, S.indptr))
    shared, own = csr_array(parts), csr_array(parts, copy=True)
    parts[0].fill(0)
    np.testing.assert_array_equal(shared.toarray(), 0)
    np.testing.assert_array_equal(own.toarray(), S.toarray())


def test_host_memory_is_shared_through_a_buffer_on_it(queue: cl.CommandQueue) -> None:
    if not describe(queue.device).aliases_host:
        pytest.skip("the device has memory of its own")
    S = unsorted()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    data = cl_array.Array(queue, S.data.shape, S.data.dtype, data=cl.Buffer(queue.context, flags, hostbuf=S.data))
    A, x = csr_array((data, S.indices, S.indptr), shape=S.shape), np.ones(40, np.float32)
    S.data *= 3
    np.testing.assert_array_equal(A @ x, S @ x)
