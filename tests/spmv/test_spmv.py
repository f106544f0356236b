"""Products as a caller makes them: shapes, dtypes, layouts, alpha and beta, queues, threads, and what is refused."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import hypothesis
import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from oracle import check, expected, host, random_structure, random_values
from pyopencl import array as cl_array

from clsparse_py import csr_array, max_times, min_plus, or_and, plus_pair, programs, spmv, spmv_plan
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import describe
from clsparse_py.spmv.choose import BALANCED, KernelChoice

#: One of each family, beside what is chosen automatically.
FAMILIES = (None, "serial", "subvector8", "vector", "pieces", "adaptive", "merge", "chunked")


def random_csr(lengths: Any, n_cols: int, seed: int, dtype: Any = np.float32, index: Any = np.int32) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    indices, indptr = random_structure(lengths, n_cols, rng, index)
    return sp.csr_array((random_values(dtype, indices.size, rng), indices, indptr), shape=(len(lengths), n_cols))


def multiply(A: csr_array, x: Any, kernel: Any = None, scheme: str = "auto", **options: Any) -> Any:
    return spmv(A, x, plan=spmv_plan(A, scheme=scheme, kernel=kernel), **options)


@pytest.mark.parametrize("kernel", FAMILIES)
@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 3000), (3000, 1), (300, 300)])
def test_shapes_without_and_with_entries(queue: cl.CommandQueue, shape: tuple[int, int], kernel: str | None) -> None:
    x = np.linspace(-1, 1, shape[1]).astype(np.float32)
    for matrix in (sp.csr_array(shape, dtype=np.float32), sp.csr_array(np.ones(shape, np.float32))):
        A = csr_array(matrix, queue=queue)
        found = multiply(A, x, kernel)
        assert isinstance(found, np.ndarray)
        check(found, expected(host(matrix), x))
        out = np.full(shape[0], np.nan, np.float32)
        assert multiply(A, x, kernel, out=out) is out
        check(out, expected(host(matrix), x))


@pytest.mark.parametrize("kernel", FAMILIES)
def test_empty_rows_at_both_ends(queue: cl.CommandQueue, kernel: str | None) -> None:
    ends = np.zeros(1 << 17, np.int64)
    matrix = random_csr(np.concatenate((ends, [3, 0, 70, 1], ends)), 500, 1)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 500, np.random.default_rng(5))
    y = np.ones(matrix.shape[0], np.float32)
    found = multiply(A, cl_array.to_device(queue, x), kernel, alpha=2, beta=-0.5, out=cl_array.to_device(queue, y))
    check(found, expected(host(matrix), x, alpha=2, beta=-0.5, y=y))


@pytest.mark.parametrize("kernel", FAMILIES)
def test_one_very_long_row_among_short_ones(queue: cl.CommandQueue, kernel: str | None) -> None:
    lengths = np.random.default_rng(0).integers(0, 6, 400)
    lengths[123] = 200_000
    matrix = random_csr(lengths, 210_000, 2)
    x = random_values(np.float32, matrix.shape[1], np.random.default_rng(6))
    check(multiply(csr_array(matrix, queue=queue), x, kernel), expected(host(matrix), x))


def _arrow(n: int) -> sp.csr_array:
    return sp.csr_array(sp.eye_array(n) + sp.coo_array((np.ones(n), (np.full(n, n // 2), np.arange(n))), shape=(n, n)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: _arrow(30_000),
        lambda: sp.csr_array(_arrow(30_000).T),
        lambda: sp.csr_array(np.random.default_rng(0).standard_normal((300, 257))),
        lambda: random_csr(np.minimum(np.random.default_rng(1).zipf(1.7, 5000), 4000), 5000, 3),
    ],
    ids=["dense row", "dense column", "dense", "power law"],
)
@pytest.mark.parametrize("scheme", ["auto", "single", "fine", "coarse-10", "coarse-1000000", "hybrid-20"])
def test_schemes_on_uneven_matrices(queue: cl.CommandQueue, make: Any, scheme: str) -> None:
    matrix = make().astype(np.float32)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, matrix.shape[1], np.random.default_rng(7))
    wanted = expected(host(matrix), x)
    for kernel in (None, "subvector2", "vector") if scheme != "auto" else (None, *BALANCED):
        found = multiply(A, x, kernel, scheme)
        check(found, wanted)
        np.testing.assert_allclose(found, matrix.astype(np.float64) @ x, rtol=1e-3, atol=1e-2)


def test_every_granularity(queue: cl.CommandQueue) -> None:
    from clsparse_py.spmv.binning import GRANULARITIES

    lengths = np.concatenate((np.random.default_rng(1).integers(0, 300, 900), [20_000], np.zeros(500, np.int64), np.full(800, 3)))
    matrix = random_csr(lengths, 1000, 9)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 1000, np.random.default_rng(7))
    wanted = expected(host(matrix), x)
    for granularity in GRANULARITIES:
        for name in ("coarse", "hybrid"):
            check(multiply(A, x, scheme=f"{name}-{granularity}"), wanted)


@pytest.mark.parametrize("kernel", FAMILIES)
def test_nan_and_inf_propagate_and_meet_no_implicit_zeros(queue: cl.CommandQueue, kernel: str | None) -> None:
    matrix = random_csr(np.random.default_rng(3).integers(0, 90, 500), 400, 11)
    matrix.data[100], matrix.data[200], matrix.data[300] = np.nan, np.inf, 0  # an explicit zero meets the NaN in x
    x = random_values(np.float32, 400, np.random.default_rng(8))
    x[matrix.indices[300]], x[7], x[8] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = expected(host(matrix), x)
    assert 0 < np.isnan(wanted.values).sum() < 400
    check(multiply(csr_array(matrix, queue=queue), x, kernel), wanted)


@pytest.mark.parametrize("kernel", ["serial", "merge", "adaptive", "pieces", "chunked"])
def test_alpha_and_beta(queue: cl.CommandQueue, kernel: str) -> None:
    lengths = [0, 1, 5, 40, 20_000, 3, 0, 700]
    matrix = random_csr(lengths, 800, 12)
    A = csr_array(matrix, queue=queue)
    plan = spmv_plan(A, kernel=kernel)
    rng = np.random.default_rng(9)
    x, y = random_values(np.float32, 800, rng), random_values(np.float32, len(lengths), rng)
    for alpha in (None, 0, 1, -1, -0.5, 2, -99):
        for beta in (None, 0, 1, -1, -0.5, 2, -99):
            before = np.full_like(y, np.nan) if not beta else y  # y is not read where beta is 0
            out = before.copy()
            assert spmv(A, x, alpha=alpha, beta=beta, out=out, plan=plan) is out
            check(out, expected(host(matrix), x, alpha=alpha, beta=beta, y=before))


@pytest.mark.parametrize("kernel", FAMILIES)
def test_powers_of_two_are_exact_and_negative_zero_stays_zero(queue: cl.CommandQueue, real: np.dtype, kernel: str | None) -> None:
    rng = np.random.default_rng(4)
    lengths = rng.integers(0, 50, 600)
    indices, indptr = random_structure(lengths, 300, rng)
    # Sums of up to 50 numbers between 2^-4 and 2^4 are exact in any order.
    data = (2.0 ** rng.integers(-2, 3, indices.size) * rng.choice([-1, 1], indices.size)).astype(real)
    x = 2.0 ** rng.integers(-2, 3, 300).astype(real)
    data[::7] = -0.0
    matrix = sp.csr_array((data, indices, indptr), shape=(600, 300))
    np.testing.assert_array_equal(multiply(csr_array(matrix, queue=queue), x, kernel), matrix @ x)


@pytest.mark.parametrize(
    ("a", "x"),
    [("bool", "bool"), ("bool", "int8"), ("int8", "uint8"), ("uint16", "int16"), ("int32", "float32"), ("uint32", "int32"),
     ("uint64", "int64"), ("int64", "complex64"), ("float32", "complex128"), ("float64", "complex64"), ("complex64", "float64")],
)  # fmt: skip
def test_promotion_is_scipys(queue: cl.CommandQueue, a: str, x: str) -> None:
    if Arithmetic(a, x).needs_fp64 and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    rng = np.random.default_rng(10)
    matrix = random_csr(rng.integers(0, 12, 60), 40, 13, a)
    vector = random_values(x, 40, rng)
    found = csr_array(matrix, queue=queue) @ vector
    assert found.dtype == (matrix @ vector).dtype
    check(found, expected(host(matrix), vector))


@pytest.mark.parametrize("semiring", [min_plus, max_times, or_and, plus_pair], ids=repr)
def test_semirings_at_their_limits(queue: cl.CommandQueue, semiring: Any) -> None:
    lengths = [0, 1, 2, 33, 0, 700]
    for dtype in (np.int8, np.int32, np.uint8, np.float32, np.bool_):
        matrix = random_csr(lengths, 50, 14, dtype)
        limit = np.inf if dtype == np.float32 else True if dtype == np.bool_ else np.iinfo(dtype).max
        if semiring is max_times:
            matrix.data[:] = np.abs(matrix.data)
            limit = 0
        matrix.data[1:3] = limit
        x = np.abs(random_values(dtype, 50, np.random.default_rng(2)))
        x[3:9] = limit
        found = multiply(csr_array(matrix, queue=queue), x, "serial", semiring=semiring)
        check(found, expected(host(matrix), x, semiring))


def test_min_plus_and_max_times_propagate_nan(queue: cl.CommandQueue) -> None:
    matrix = sp.csr_array(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    x = np.array([1, np.nan, 2], np.float32)
    A = csr_array(matrix, queue=queue)
    for semiring in (min_plus, max_times):
        assert np.isnan(spmv(A, x, semiring=semiring)).all()
    assert not np.isnan(spmv(csr_array(matrix[:, [0, 2]], queue=queue), x[[0, 2]], semiring=min_plus)).any()


@pytest.fixture
def square(queue: cl.CommandQueue) -> tuple[sp.csr_array, csr_array]:
    matrix = random_csr(np.random.default_rng(5).integers(0, 40, 300), 300, 15)
    return matrix, csr_array(matrix, queue=queue)


@pytest.mark.parametrize(
    "view",
    [lambda x: x[17:317], lambda x: x[::2][:300], lambda x: x[::-1][:300], lambda x: x[599::-2][:300], lambda x: x[5:305][::-1]],
    ids=["offset", "strided", "reversed", "strided and reversed", "offset and reversed"],
)
def test_views_of_x(square: tuple[sp.csr_array, csr_array], view: Any) -> None:
    matrix, A = square
    x = random_values(np.float32, 700, np.random.default_rng(1))
    wanted = expected(host(matrix), view(x))
    check(A @ view(x), wanted)
    on_device = cl_array.to_device(A.queue, x)
    found = A @ view(on_device)
    assert isinstance(found, cl_array.Array)
    check(found, wanted)
    out = cl_array.to_device(A.queue, np.ones(900, np.float32))
    again = spmv(A, view(on_device), alpha=2, beta=3, out=out[100:400])
    check(again, expected(host(matrix), view(x), alpha=2, beta=3, y=np.ones(300, np.float32)))
    np.testing.assert_array_equal(np.delete(out.get(), slice(100, 400)), 1)


def test_view_that_begins_between_two_entries(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.complex64, 300, np.random.default_rng(1))
    floats = cl_array.to_device(A.queue, np.concatenate(([9], x.view(np.float32))).astype(np.float32))
    shifted = floats[1:].view(np.complex64)
    assert shifted.offset % 8
    check(A @ shifted, expected(host(matrix), x))
    with pytest.raises(ValueError, match=r"^out: must begin at a multiple of 8 bytes"):
        spmv(A, cl_array.to_device(A.queue, x), out=shifted)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c8"])
def test_host_arrays_of_the_other_byte_order(square: tuple[sp.csr_array, csr_array], dtype: str) -> None:
    matrix, A = square
    x = np.arange(300).astype(dtype)
    check(A @ x, expected(host(matrix), x.astype(np.dtype(dtype).newbyteorder("="))))
    foreign = matrix.data.astype(dtype), matrix.indices.astype(">i8"), matrix.indptr.astype(">i4")
    check(
        csr_array(foreign, shape=matrix.shape, queue=A.queue) @ x,
        expected(host(matrix.astype(dtype[1:])), x.astype(dtype[1:])),
    )


@pytest.mark.parametrize("shift", [1, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_host_memory_that_opencl_calls_unaligned(queue: cl.CommandQueue, dtype: Any, shift: int) -> None:
    if dtype is np.complex128 and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    matrix = random_csr([3, 0, 200, 70], 90, 16, dtype)

    def moved(values: np.ndarray) -> np.ndarray:
        memory = np.zeros(values.nbytes + 64, np.uint8)
        begin = -memory.ctypes.data % 16 + shift
        view = memory[begin : begin + values.nbytes].view(values.dtype)
        view[:] = values
        return view

    x = moved(random_values(dtype, 90, np.random.default_rng(1)))
    out = moved(np.zeros(4, dtype))
    parts = tuple(moved(part) for part in host(matrix))
    A = csr_array(parts, shape=matrix.shape, queue=queue)
    for kernel in ("serial", "subvector8", "chunked"):
        assert multiply(A, x, kernel, out=out) is out
        check(out, expected(host(matrix), x))


def test_numpy_in_numpy_out_and_device_in_device_out(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.float32, 300, np.random.default_rng(1))
    wanted = expected(host(matrix), x)
    assert isinstance(A @ x, np.ndarray)
    assert isinstance(A @ list(x), np.ndarray)
    on_device = cl_array.to_device(A.queue, x)
    found = A @ on_device
    assert isinstance(found, cl_array.Array)
    assert found.queue is A.queue
    check(found, wanted)
    own, other = np.zeros(300, np.float32), cl_array.zeros(A.queue, 300, np.float32)
    assert spmv(A, x, out=own) is own
    assert spmv(A, on_device, out=other) is other
    np.testing.assert_array_equal(own, other.get())


def test_operands_are_not_changed(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.float32, 300, np.random.default_rng(1))
    kept = matrix.copy(), x.copy()
    for kernel in FAMILIES:
        multiply(A, x, kernel)
    np.testing.assert_array_equal(x, kept[1])
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(A.get(), name), getattr(kept[0], name))
        np.testing.assert_array_equal(getattr(matrix, name), getattr(kept[0], name))


def test_read_only_arrays(queue: cl.CommandQueue) -> None:
    matrix = random_csr([3, 0, 200, 70], 90, 17)
    x = random_values(np.float32, 90, np.random.default_rng(1))
    for part in (*host(matrix), x):
        part.flags.writeable = False
    A = csr_array(matrix, queue=queue)
    check(A @ x, expected(host(matrix), x))
    out = np.zeros(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out: is read-only"):
        spmv(A, x, out=out)


def test_out_that_overlaps_x_is_refused(square: tuple[sp.csr_array, csr_array]) -> None:
    _, A = square
    x = np.ones(600, np.float32)
    on_device = cl_array.to_device(A.queue, x)
    for both in (x, on_device):
        for first, second in ((0, 0), (0, 299), (299, 0)):
            with pytest.raises(ValueError, match=r"^out: overlaps x"):
                spmv(A, both[first : first + 300], out=both[second : second + 300])
        spmv(A, both[:300], out=both[300:])  # beside each other in one buffer is well
    with pytest.raises(ValueError, match=r"^out: overlaps x"):
        spmv(A, on_device[299::-1], out=on_device[:300])


def test_results_are_bitwise_repeatable(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.float32, 300, np.random.default_rng(1))
    first = (A @ x).tobytes()
    for _ in range(5):
        assert (A @ x).tobytes() == first
    programs.clear()
    assert (csr_array(matrix, queue=A.queue) @ x).tobytes() == first


def test_unsorted_and_duplicated_entries_give_what_canonical_ones_give(queue: cl.CommandQueue) -> None:
    matrix = random_csr(np.random.default_rng(5).integers(0, 60, 200), 50, 18, np.int64)
    canonical = matrix.copy()
    canonical.sum_duplicates()
    assert canonical.nnz < matrix.nnz
    x = np.arange(50)
    np.testing.assert_array_equal(csr_array(matrix, queue=queue) @ x, csr_array(canonical, queue=queue) @ x)


# Rows that are split over several work-groups: their partial sums are what executions could take from each other.
SPLIT = KernelChoice("merge", 16, items=4)


@pytest.mark.parametrize("properties", ["in order", "out of order", "profiling"])
def test_queues_of_every_kind(queue: cl.CommandQueue, properties: str) -> None:
    kinds = cl.command_queue_properties
    bits = {"in order": 0, "out of order": kinds.OUT_OF_ORDER_EXEC_MODE_ENABLE, "profiling": kinds.PROFILING_ENABLE}[properties]
    other = cl.CommandQueue(queue.context, queue.device, bits)
    matrix = sp.csr_array(np.ones((3, 60_000), np.float32))
    A = csr_array(matrix, queue=other)
    plan = spmv_plan(A, kernel=SPLIT)
    for _ in range(3):
        vectors = [cl_array.to_device(other, np.full(60_000, i, np.float32)) for i in range(8)]
        found = [spmv(A, x, plan=plan) for x in vectors]
        assert all(y.queue is other for y in found)
        for i, y in enumerate(found):
            np.testing.assert_array_equal(y.get(), i * 60_000)


def test_two_queues_share_a_plan(queue: cl.CommandQueue) -> None:
    queues = queue, cl.CommandQueue(queue.context, queue.device)
    A = csr_array(sp.csr_array(np.ones((3, 60_000), np.float32)), queue=queue)
    plan = spmv_plan(A, kernel=SPLIT)
    for _ in range(3):
        vectors = [cl_array.to_device(queues[i % 2], np.full(60_000, i, np.float32)) for i in range(8)]
        found = [spmv(A, x, plan=plan) for x in vectors]
        assert [y.queue for y in found] == [x.queue for x in vectors]
        for i, y in enumerate(found):
            np.testing.assert_array_equal(y.get(), i * 60_000)


def test_a_product_waits_for_what_its_operands_wait_for(queue: cl.CommandQueue) -> None:
    other = cl.CommandQueue(queue.context, queue.device)
    n = 200_000
    identity = csr_array(sp.eye_array(n, format="csr", dtype=np.float32), queue=queue)
    x = cl_array.zeros(queue, n, np.float32)
    x += 1
    y = identity @ x  # on `queue`
    z = spmv(identity, y.with_queue(other))  # on `other`, after it
    np.testing.assert_array_equal(z.get(), 1)


def test_threads_build_and_multiply_at_once(queue: cl.CommandQueue) -> None:
    programs.clear()
    matrix = random_csr(np.random.default_rng(5).integers(0, 300, 300), 300, 19)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 300, np.random.default_rng(1))
    wanted = (A @ x).tobytes()
    programs.clear()
    wrong: list[Any] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        try:
            own = csr_array(matrix, queue=cl.CommandQueue(queue.context, queue.device))
            wrong.extend(result for _ in range(20) if (result := (own @ x)).tobytes() != wanted)
            wrong.extend(result for _ in range(20) if (result := (A @ x)).tobytes() != wanted)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_second_call_renders_and_builds_nothing(square: tuple[sp.csr_array, csr_array], monkeypatch: pytest.MonkeyPatch) -> None:
    _, A = square
    x = cl_array.to_device(A.queue, np.ones(300, np.float32))
    first = (A @ x).get()

    def refuse(*_: Any) -> None:
        raise AssertionError("rendered again")

    monkeypatch.setattr(programs, "render", refuse)
    with programs.recording() as built:
        second = A @ x
    assert not built
    np.testing.assert_array_equal(second.get(), first)
    # Another matrix asks for kernels, but none is built anew.
    with programs.recording() as built:
        again = csr_array(A, copy=True) @ x
    assert built
    np.testing.assert_array_equal(again.get(), first)


def test_nothing_is_reported_by_warnings(queue: cl.CommandQueue) -> None:
    programs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csr_array(random_csr([1, 2, 3], 10, 20), queue=queue) @ np.ones(10, np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_as_a_column_keeps_its_two_dimensions(square: tuple[sp.csr_array, csr_array], order: str) -> None:
    matrix, A = square
    x = np.asarray(random_values(np.float32, (300, 1), np.random.default_rng(1)), order=order)
    found = A @ x
    assert found.shape == (300, 1)
    check(found, expected(host(matrix), x))


class TestBadInput:
    """Each error names the argument, what came, and what is needed."""

    @pytest.mark.parametrize(
        ("x", "error", "message"),
        [
            (np.ones(299, np.float32), ValueError, r"^x: must have 300 rows, as A is 300 x 300, has shape \(299,\)"),
            (np.ones((2, 3, 4), np.float32), ValueError, r"^x: must have 1 dimension, has 3 \(shape \(2, 3, 4\)\)"),
            (np.array(3.0), ValueError, r"^x: must have 1 dimension, has 0"),
            (3.0, ValueError, r"^x: must be an array; a scalar cannot be an operand of @"),
            (np.float32(3), ValueError, r"^x: must be an array; a scalar"),
            ("x", ValueError, r"^x: must be an array; a scalar"),
            (None, TypeError, r"^x: dtype object is not supported; use one of bool, int8"),
            (np.array([None] * 300), TypeError, r"^x: dtype object is not supported; use one of"),
            (["a"] * 300, TypeError, r"^x: dtype <U1 is not supported; use one of"),
            (np.ones(300, np.float16), TypeError, r"^x: dtype float16 is not supported; use one of .*float32"),
            (np.ones((299, 2), np.float32), ValueError, r"^X: must have 300 rows, as A is 300 x 300, has shape \(299, 2\)"),
        ],
        ids=str,
    )
    def test_operand(self, square: tuple[sp.csr_array, csr_array], x: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            square[1] @ x

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"alpha": "2"}, TypeError, r"^alpha: must be a number, is '2'"),
            ({"alpha": [1, 2]}, TypeError, r"^alpha: must be a scalar, is list"),
            ({"alpha": 1j}, TypeError, r"^alpha: 1j does not fit the result's dtype, float32"),
            ({"beta": 2}, ValueError, r"^beta: needs out"),
            ({"beta": None, "alpha": 2, "semiring": min_plus}, ValueError, r"^alpha: belongs to plus_times, not to min_plus"),
            ({"semiring": "min_plus"}, TypeError, r"^semiring: must be one of clsparse_py.semiring, is str"),
            ({"plan": "merge"}, TypeError, r"^plan: must be an SpmvPlan, is str"),
            ({"out": [0] * 300}, TypeError, r"^out: must be a numpy.ndarray, as x is, is list"),
            ({"out": np.zeros(299, np.float32)}, ValueError, r"^out: must have shape \(300,\), has \(299,\)"),
            ({"out": np.zeros(300, np.int32)}, TypeError, r"^out: must have the result's dtype float32, has int32"),
            ({"out": np.zeros(600, np.float32)[::2]}, ValueError, r"^out: must be C-contiguous, has strides \(8,\)"),
        ],
        ids=str,
    )
    def test_options(self, square: tuple[sp.csr_array, csr_array], options: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            spmv(square[1], np.ones(300, np.float32), **options)

    @pytest.mark.parametrize(
        ("dtype", "alpha", "fits"),
        [("uint8", 2, True), ("uint8", -1, False), ("uint8", 256, False), ("int8", -128, True), ("int32", 1 << 31, False),
         ("int32", 0.5, False), ("bool", 2, False), ("bool", True, True), ("complex64", 1j, True),
         ("float32", np.float64(2), True)],
    )  # fmt: skip
    def test_alpha_fits_the_result(self, queue: cl.CommandQueue, dtype: str, alpha: Any, fits: bool) -> None:
        A, x = csr_array(sp.csr_array(np.ones((2, 2), dtype)), queue=queue), np.ones(2, dtype)
        if fits:
            np.testing.assert_array_equal(spmv(A, x, alpha=alpha), np.full(2, (A.get() @ x)[0] * np.array(alpha, dtype), dtype))
        else:
            with pytest.raises(TypeError, match=rf"^alpha: .* does not fit the result's dtype, {dtype}"):
                spmv(A, x, alpha=alpha)

    def test_out_beside_another_kind_of_x(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        x, on_device = np.ones(300, np.float32), cl_array.zeros(A.queue, 300, np.float32)
        with pytest.raises(TypeError, match=r"^out: must be a numpy.ndarray, as x is, is Array"):
            spmv(A, x, out=on_device)
        with pytest.raises(TypeError, match=r"^out: must be a pyopencl.array.Array, as x is, is ndarray"):
            spmv(A, on_device, out=x)

    @pytest.mark.parametrize("semiring", [min_plus, max_times], ids=repr)
    def test_complex_values_have_no_order(self, queue: cl.CommandQueue, semiring: Any) -> None:
        A = csr_array(sp.csr_array(np.ones((2, 2), np.complex64)), queue=queue)
        with pytest.raises(
            TypeError, match=rf"^semiring: {semiring.name} orders its values, which complex ones \(complex64, float32\)"
        ):
            spmv(A, np.ones(2, np.float32), semiring=semiring)

    def test_matrix_of_another_library(self) -> None:
        with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array, is "):
            spmv(sp.eye_array(3, format="csr"), np.ones(3))

    def test_another_context(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        context = cl.Context([A.queue.device])
        other = cl.CommandQueue(context, A.queue.device)
        foreign = cl_array.zeros(other, 300, np.float32)
        own = cl_array.zeros(A.queue, 300, np.float32)
        with pytest.raises(ValueError, match=r"^x: lives in another context than A"):
            A @ foreign
        with pytest.raises(ValueError, match=r"^out: lives in another context than A"):
            spmv(A, own, out=foreign)
        with pytest.raises(ValueError, match=r"^data: lives in another context than the queue of the matrix"):
            csr_array(A, queue=other)

    def test_byte_order_on_the_device(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        with pytest.raises(TypeError, match=r"^x: must be in the host's byte order, is >f4"):
            A @ cl_array.to_device(A.queue, np.ones(300, ">f4"))

    def test_double_precision_on_a_device_without_it(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        if describe(A.queue.device).fp64:
            pytest.skip("the device has double precision")
        for x in (np.ones(300), np.ones(300, np.complex128)):
            with pytest.raises(TypeError, match=rf"^x: {x.dtype} needs double precision, which .* lacks; use single precision"):
                A @ x
        with pytest.raises(TypeError, match=r"^dtype: float64 needs double precision, which .* lacks; use dtype=float32"):
            csr_array(sp.eye_array(3, format="csr"), queue=A.queue)
        with pytest.raises(TypeError, match=r"^x: float64 needs double precision"):
            A @ np.ones(300, np.int32)  # float32 times int32 is float64, as in SciPy


@st.composite
def structures(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Row lengths in runs: empty, short, long; as many columns as to have duplicates, or not."""
    runs = draw(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 5, 17, 64, 129, 700, 17_000]), st.integers(1, 30)), max_size=8))
    lengths = np.array([length for length, count in runs for _ in range(count if length < 5000 else 1)], np.int64)
    return (
        draw(st.permutations(lengths.tolist()).map(np.array)) if lengths.size < 40 else lengths,
        draw(st.integers(1, 400)),
        draw(st.integers(0, 2**31)),
    )


@hypothesis.settings(
    max_examples=25, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow]
)
@hypothesis.given(structure=structures(), scaled=st.booleans())
def test_random_structures(queue: cl.CommandQueue, structure: tuple[np.ndarray, int, int], scaled: bool) -> None:
    lengths, n_cols, seed = structure
    matrix = random_csr(lengths, n_cols, seed)
    A = csr_array(matrix, queue=queue)
    rng = np.random.default_rng(seed)
    x, y = random_values(np.float32, n_cols, rng), random_values(np.float32, len(lengths), rng)
    scale = {"alpha": -0.5, "beta": 2} if scaled else {}
    wanted = expected(host(matrix), x, y=y, **scale)
    for scheme, kernel in (
        ("auto", None),
        ("auto", "adaptive"),
        ("auto", "merge"),
        ("auto", "pieces"),
        ("fine", None),
        ("hybrid-10", None),
    ):
        check(multiply(A, x, kernel, scheme, out=y.copy(), **scale), wanted)
