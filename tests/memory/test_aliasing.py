"""Memory that is shared: between a matrix and what it was made from, and between a product's result and its operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py import csr_array, primitives, spgemm_plan, spmm, spmv, transpose_plan
from clsparse_py._device.device import describe
from clsparse_py._memory.overlap import overlap


def unsorted_matrix(n: int = 40) -> sp.csr_array:
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
    S = unsorted_matrix()
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
    S = unsorted_matrix()
    A, dense, values = csr_array(S, queue=queue), S.toarray(), S.data.copy()
    transposition, product = transpose_plan(A), spgemm_plan(A, A)
    results = [transposition(values), product(values, values)]
    values[:] = np.nan
    for matrix, wanted in zip(results, (dense.T, dense @ dense), strict=True):
        np.testing.assert_array_equal(matrix.toarray(), wanted)


def test_read_only_parts_are_not_written_to(queue: cl.CommandQueue) -> None:
    S = unsorted_matrix()
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    before = S.data.copy()
    A = csr_array((S.data, S.indices, S.indptr), queue=queue)
    A.data.fill(0)
    queue.finish()
    np.testing.assert_array_equal(S.data, before)
    np.testing.assert_array_equal(A.data.get(), 0)


def test_device_parts_are_used_as_they_are_unless_copied(queue: cl.CommandQueue) -> None:
    S = unsorted_matrix()
    parts = tuple(cl_array.to_device(queue, part) for part in (S.data, S.indices, S.indptr))
    shared, own = csr_array(parts), csr_array(parts, copy=True)
    parts[0].fill(0)
    np.testing.assert_array_equal(shared.toarray(), 0)
    np.testing.assert_array_equal(own.toarray(), S.toarray())


def test_host_memory_is_shared_through_a_buffer_on_it(queue: cl.CommandQueue) -> None:
    if not describe(queue.device).aliases_host:
        pytest.skip("the device has memory of its own")
    S = unsorted_matrix()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    data = cl_array.Array(queue, S.data.shape, S.data.dtype, data=cl.Buffer(queue.context, flags, hostbuf=S.data))
    A, x = csr_array((data, S.indices, S.indptr), shape=S.shape), np.ones(40, np.float32)
    S.data *= 3
    np.testing.assert_array_equal(A @ x, S @ x)


# ---- what is written, and what is read


def array_on(buffer: cl.Buffer, queue: cl.CommandQueue, n: int, dtype: type = np.float32) -> cl_array.Array:
    return cl_array.Array(queue, (n,), dtype, data=buffer)


def test_arrays_overlap_where_their_bytes_meet(queue: cl.CommandQueue) -> None:
    whole, step = cl_array.zeros(queue, 4096, np.float32), 2048 * 4
    lower, upper = (whole.base_data.get_sub_region(begin, step) for begin in (0, step))
    low, high, other = array_on(lower, queue, 2048), array_on(upper, queue, 2048), cl_array.zeros(queue, 9, np.int8)
    host = np.zeros(6, np.float32)
    for a, b, wanted in (
        (whole, whole, True),
        (whole, low, True),
        (whole, high, True),
        (low, high, False),
        (whole[:2048], high, False),
        (whole[:2049], high, True),
        (whole[2048:], high, True),
        (whole[2048:], low, False),
        (whole[4095:2047:-1], low, False),
        (whole[4095:2046:-1], low, True),
        (whole[::2], whole[1::2], True),  # interleaved: neither begins behind the other's end
        (low, array_on(lower, queue, 3, np.int64), True),
        (whole, other, False),
        (whole[:0], whole, False),
        (host[:3], host[3:], False),
        (host[2::-1], host[3:], False),
        (host[3::-1], host[3:], True),
        (host, whole, False),
    ):
        assert overlap(a, b) is wanted
        assert overlap(b, a) is wanted


def test_parts_of_a_buffer_that_was_let_go_are_memory_as_any(queue: cl.CommandQueue) -> None:
    def part(values: np.ndarray) -> cl_array.Array:
        whole = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 16384)
        array = array_on(whole.get_sub_region(8192, 4096), queue, values.size, values.dtype)
        array.set(values)
        return array

    S, x = unsorted_matrix(), np.arange(40, dtype=np.float32)
    A = csr_array((part(S.data), part(S.indices), part(S.indptr)), shape=S.shape)
    held, out = part(x), part(np.zeros(40, np.float32))
    other = cl.CommandQueue(queue.context, queue.device)
    for vector in (held, held.with_queue(other)):
        np.testing.assert_array_equal(spmv(A, vector, out=out).get(), S @ x)
    with pytest.raises(ValueError, match=r"^out: overlaps x"):
        spmv(A, held, out=held)


def test_buffers_on_host_memory_overlap_by_its_addresses(queue: cl.CommandQueue) -> None:
    flags, host = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, np.zeros(4096, np.float32)
    one, two = (array_on(cl.Buffer(queue.context, flags, hostbuf=part), queue, 2048) for part in (host[:2048], host[2048:]))
    again = array_on(cl.Buffer(queue.context, flags, hostbuf=host[1024:3072]), queue, 2048)
    assert not overlap(one, two)
    assert overlap(one, again)
    assert overlap(again, two)
    assert overlap(host[100:], one)
    assert not overlap(host[:2048], two)


def test_shared_virtual_memory_overlaps_by_its_addresses(queue: cl.CommandQueue) -> None:
    if "coarse-grain-buffer" not in describe(queue.device).svm:
        pytest.skip("no shared virtual memory")
    allocator = cl.tools.SVMAllocator(queue.context, 0)  # quirk 38
    one, two = (cl_array.empty(queue, 100, np.float32, allocator=allocator) for _ in range(2))
    assert overlap(one, one[99:])
    assert not overlap(one, two)
    assert not overlap(one[:50], one[50:])
    A = csr_array(sp.eye_array(100, format="csr", dtype=np.float32), queue=queue)
    with pytest.raises(ValueError, match=r"^out: overlaps x"):
        spmv(A, one, out=one)
    queue.finish()


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_out_overlaps_no_array_of_the_matrix(queue: cl.CommandQueue, part: str) -> None:
    S, n = unsorted_matrix(), 40
    taken = getattr(S, part)
    memory = cl_array.zeros(queue, 4096, np.int32)
    held = array_on(memory.base_data, queue, taken.size, taken.dtype)
    held.set(taken)
    parts = {name: cl_array.to_device(queue, getattr(S, name)) for name in ("data", "indices", "indptr")} | {part: held}
    A = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(n, n))
    dtype = np.dtype(np.float32)
    x, wide = cl_array.zeros(queue, n, dtype), cl_array.zeros(queue, (n, 2), dtype)
    message = rf"^out: overlaps A\.{part}, which is read while out is written"
    with pytest.raises(ValueError, match=message):
        spmv(A, x, out=array_on(memory.base_data, queue, n))
    with pytest.raises(ValueError, match=message):
        spmm(A, wide, out=array_on(memory.base_data, queue, 2 * n).reshape(n, 2))
    with pytest.raises(ValueError, match=message):
        spmv(A, x, out=array_on(memory.base_data.get_sub_region(0, 4 * n), queue, n))
    np.testing.assert_array_equal(A.toarray(), S.toarray())


def test_a_host_result_overlaps_no_array_of_the_matrix(queue: cl.CommandQueue) -> None:
    S, flags = unsorted_matrix(), cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    data = array_on(cl.Buffer(queue.context, flags, hostbuf=S.data), queue, S.data.size)
    A = csr_array((data, S.indices, S.indptr), shape=S.shape)
    with pytest.raises(ValueError, match=r"^out: overlaps A\.data"):
        spmv(A, np.ones(40, np.float32), out=S.data[-40:])


def test_results_of_plans_overlap_nothing_that_is_read(queue: cl.CommandQueue) -> None:
    S = unsorted_matrix().astype(np.int32)
    S.sort_indices()
    A = csr_array(S, queue=queue)
    transposition, product = transpose_plan(A), spgemm_plan(A, A)
    T, C = transposition(), product()
    T.data = transposition.positions
    with pytest.raises(ValueError, match=r"^out: overlaps plan\.positions"):
        transposition(out=T)
    T.data = transposition.indices
    with pytest.raises(ValueError, match=r"^out: overlaps plan\.indices"):
        transposition(out=T)
    C.data = product.indices
    with pytest.raises(ValueError, match=r"^out: overlaps plan\.indices"):
        product(out=C)
    np.testing.assert_array_equal(product().toarray(), (S @ S).toarray())


def test_results_of_primitives_may_overlap_operands_but_not_each_other(queue: cl.CommandQueue) -> None:
    memory = cl_array.zeros(queue, 4096, np.int32)
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1000, 2048 + 512).astype(np.int32)
    memory[: numbers.size].set(numbers)
    source, wanted = memory[:2048], np.cumsum(numbers[:2048], dtype=np.int32)
    shifted = array_on(memory.base_data.get_sub_region(2048, 8192), queue, 2048, np.int32)  # begins 512 entries later
    assert primitives.inclusive_scan(source, out=shifted) is shifted
    np.testing.assert_array_equal(shifted.get(), wanted)
    keys = cl_array.to_device(queue, numbers)
    for out in ((keys, keys), (memory[: keys.size], memory[1 : keys.size + 1])):
        with pytest.raises(ValueError, match=r"^out: its two arrays overlap"):
            primitives.radix_sort(keys, keys, out=out)
