"""Products against brute force: shapes, structures, schemes, dtypes, semirings, alpha and beta."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from oracle import check, expected_product, host, random_structure, random_values
from products import FAMILIES, multiply, random_csr
from pyopencl import array as cl_array

from clsparse_py import csr_array, max_times, min_plus, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._operations.spmv.choose import BALANCED
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS


@pytest.mark.parametrize("kernel", FAMILIES)
@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 3000), (3000, 1), (300, 300)])
def test_shapes_without_and_with_entries(queue: cl.CommandQueue, shape: tuple[int, int], kernel: str | None) -> None:
    x = np.linspace(-1, 1, shape[1]).astype(np.float32)
    for matrix in (sp.csr_array(shape, dtype=np.float32), sp.csr_array(np.ones(shape, np.float32))):
        A = csr_array(matrix, queue=queue)
        result = multiply(A, x, kernel)
        assert isinstance(result, np.ndarray)
        check(result, expected_product(host(matrix), x))
        out = np.full(shape[0], np.nan, np.float32)
        assert multiply(A, x, kernel, out=out) is out
        check(out, expected_product(host(matrix), x))


@pytest.mark.parametrize("kernel", FAMILIES)
def test_empty_rows_at_both_ends(queue: cl.CommandQueue, kernel: str | None) -> None:
    ends = np.zeros(1 << 17, np.int64)
    matrix = random_csr(np.concatenate((ends, [3, 0, 70, 1], ends)), 500, 1)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 500, np.random.default_rng(5))
    y = np.ones(matrix.shape[0], np.float32)
    result = multiply(A, cl_array.to_device(queue, x), kernel, alpha=2, beta=-0.5, out=cl_array.to_device(queue, y))
    check(result, expected_product(host(matrix), x, alpha=2, beta=-0.5, y=y))


@pytest.mark.parametrize("kernel", FAMILIES)
def test_one_very_long_row_among_short_ones(queue: cl.CommandQueue, kernel: str | None) -> None:
    lengths = np.random.default_rng(0).integers(0, 6, 400)
    lengths[123] = 200_000
    matrix = random_csr(lengths, 210_000, 2)
    x = random_values(np.float32, matrix.shape[1], np.random.default_rng(6))
    check(multiply(csr_array(matrix, queue=queue), x, kernel), expected_product(host(matrix), x))


def test_columns_far_apart(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    for longest in (4, 40):
        matrix = random_csr(rng.integers(0, longest, 3000), 1_500_000, 4)
        x = random_values(np.float32, matrix.shape[1], rng)
        check(multiply(csr_array(matrix, queue=queue), x, "chunked"), expected_product(host(matrix), x))


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
@pytest.mark.parametrize("scheme", ["auto", "single", "fine", "coarse-10", "coarse-100000", "hybrid-20"])
def test_schemes_on_uneven_matrices(queue: cl.CommandQueue, make: Any, scheme: str) -> None:
    matrix = make().astype(np.float32)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, matrix.shape[1], np.random.default_rng(7))
    wanted = expected_product(host(matrix), x)
    for kernel in (None, "subvector2", "vector") if scheme != "auto" else (None, *BALANCED):
        result = multiply(A, x, kernel, scheme)
        check(result, wanted)
        np.testing.assert_allclose(result, matrix.astype(np.float64) @ x, rtol=1e-3, atol=1e-2)


def test_every_granularity(queue: cl.CommandQueue) -> None:
    from clsparse_py._operations.spmv.binning import GRANULARITIES

    lengths = np.concatenate((np.random.default_rng(1).integers(0, 300, 900), [20_000], np.zeros(500, np.int64), np.full(800, 3)))
    matrix = random_csr(lengths, 1000, 9)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 1000, np.random.default_rng(7))
    wanted = expected_product(host(matrix), x)
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
        wanted = expected_product(host(matrix), x)
    assert 0 < np.isnan(wanted.values).sum() < 400
    check(multiply(csr_array(matrix, queue=queue), x, kernel), wanted)


@pytest.mark.parametrize("kernel", ["serial", "merge", "adaptive", "vector_long", "chunked"])
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
            check(out, expected_product(host(matrix), x, alpha=alpha, beta=beta, y=before))


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
    result = csr_array(matrix, queue=queue) @ vector
    assert result.dtype == (matrix @ vector).dtype
    check(result, expected_product(host(matrix), vector))


@pytest.mark.parametrize("semiring", list(SEMIRINGS.values())[1:], ids=repr)
def test_semirings_at_their_limits(queue: cl.CommandQueue, semiring: Any) -> None:
    lengths = [0, 1, 2, 33, 0, 700]
    for dtype in (np.int8, np.int32, np.uint8, np.float32, np.bool_):
        matrix = random_csr(lengths, 50, 14, dtype)
        limit = np.inf if dtype == np.float32 else True if dtype == np.bool_ else np.iinfo(dtype).max
        if semiring.ordered:
            limit = semiring.identity(np.dtype(dtype))
        if semiring is max_times:
            matrix.data[:] = np.abs(matrix.data)
        matrix.data[1:3] = limit
        x = np.abs(random_values(dtype, 50, np.random.default_rng(2)))
        x[3:9] = limit
        result = multiply(csr_array(matrix, queue=queue), x, "serial", semiring=semiring)
        check(result, expected_product(host(matrix), x, semiring))


def test_min_plus_and_max_times_propagate_nan(queue: cl.CommandQueue) -> None:
    matrix = sp.csr_array(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    x = np.array([1, np.nan, 2], np.float32)
    A = csr_array(matrix, queue=queue)
    for semiring in (semiring for semiring in SEMIRINGS.values() if semiring.ordered):
        assert np.isnan(spmv(A, x, semiring=semiring)).all()
    assert not np.isnan(spmv(csr_array(matrix[:, [0, 2]], queue=queue), x[[0, 2]], semiring=min_plus)).any()


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
    wanted = expected_product(host(matrix), x, y=y, **scale)
    for scheme, kernel in (
        ("auto", None),
        ("auto", "adaptive"),
        ("auto", "nonzero_split"),
        ("auto", "merge"),
        ("auto", "vector_long"),
        ("fine", None),
        ("hybrid-10", None),
    ):
        check(multiply(A, x, kernel, scheme, out=y.copy(), **scale), wanted)
