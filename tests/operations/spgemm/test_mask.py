"""Products under a mask, and into a matrix that is there: what GraphBLAS's C<M> = C accum A @ B gives, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from problems import device_matrix, pattern_product, random_matrix
from pyopencl import array as cl_array
from scratch import count_buffers

from clsparse_py import Semiring, csr_array, min_plus, or_and, plus_pair, plus_times, spgemm, spgemm_plan
from clsparse_py._device.device import describe
from clsparse_py._operations.spgemm import mask as masks
from clsparse_py._operations.spgemm.mask_writes import find_marked, marked_pointers, take_marked
from clsparse_py._operations.spgemm.masked_rows import MaskedChunked, MaskedTeam, enqueue_masked
from clsparse_py._run.launch import Chain
from clsparse_py._tuner.masked_tunable import MaskedTunable

Array = np.ndarray[Any, Any]

ADD = {"plus": np.add, "min": np.minimum, "max": np.maximum, "any": np.maximum, "or": np.logical_or}
MULTIPLY = {
    "times": np.multiply, "plus": np.add, "first": lambda a, b: a + 0 * b, "second": lambda a, b: 0 * a + b,
    "pair": lambda a, b: np.ones(np.broadcast(a, b).shape), "min": np.minimum, "and": np.logical_and,
}  # fmt: skip
ACCUM = {
    "plus": np.add, "min": np.minimum, "times": np.multiply, "first": lambda a, b: a + 0 * b, "second": lambda a, b: 0 * a + b,
}  # fmt: skip
RINGS = ("plus_times", "min_plus", "max_times", "or_and", "plus_pair", "any_pair", "plus_first", "min_second", "max_min")


def dense_product(A: Array, B: Array, there: Array, ring: Semiring) -> Array:
    """Return the values of a product of dense arrays whose NaN are no entries."""
    plus, times = ring.operations
    result = np.zeros(there.shape)
    for i, j in zip(*np.nonzero(there), strict=True):
        both = ~np.isnan(A[i]) & ~np.isnan(B[:, j])
        result[i, j] = ADD[plus].reduce(np.asarray(MULTIPLY[times](A[i, both], B[both, j]), float))
    return result


def with_gaps(A: scipy.sparse.csr_array) -> Array:
    result = np.full(A.shape, np.nan)
    result[np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices] = A.data
    return result


def oracle(
    operands: tuple[Array, Array], mask: Array, out: Array | None, ring: Semiring, *, accum: str | None, replace: bool
) -> Array:
    """Return C<M> = C accum A @ B, of arrays whose NaN are no entries; ``mask`` says which places are let through."""
    A, B = operands
    there = (~np.isnan(A)).astype(int) @ (~np.isnan(B)).astype(int) > 0
    product = np.where(there, dense_product(A, B, there & mask, ring), np.nan)
    if out is None:
        return np.where(mask, product, np.nan)
    if accum is None:
        new = product
    else:
        both = np.asarray(ACCUM[accum](np.nan_to_num(out), np.nan_to_num(product)), float)
        new = np.where(there & ~np.isnan(out), both, np.where(there, product, out))
    return np.where(mask, new, np.nan if replace else out)


def assert_entries(C: csr_array, wanted: Array) -> None:
    result = C.get()
    assert C.has_canonical_format
    np.testing.assert_array_equal(with_gaps(result.astype(float)), wanted)


def test_equals_graphblas_definition(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(11)
    for case in range(72):
        ring = Semiring(RINGS[case % len(RINGS)])
        index, dtype = (np.int32, np.int64)[case % 5 == 0], (np.int32, np.float32)[case % 2]
        A, B = random_matrix((9, 12), 4, rng, dtype), random_matrix((12, 15), 4, rng, dtype)
        M = random_matrix((9, 15), rng.choice([0, 5, 15]), rng)
        M.data[rng.random(M.nnz) < 0.3] = 0
        complement, structural, replace, has_out = rng.random(4) < 0.5
        accum = rng.choice([None, *ACCUM]) if has_out and not ring.of_truth else None
        out = random_matrix((9, 15), 5, rng, bool if ring.of_truth else dtype) if has_out else None
        counts = ~np.isnan(with_gaps(M)) & (structural | (np.nan_to_num(with_gaps(M)) != 0))
        wanted = oracle(
            (with_gaps(A), with_gaps(B)), counts != complement, None if out is None else with_gaps(out), ring,
            accum=accum, replace=bool(replace),
        )  # fmt: skip
        target = None if out is None else device_matrix(queue, out)
        result = spgemm(
            *(device_matrix(queue, matrix, index) for matrix in (A, B)), mask=M, complement=bool(complement),
            structural=bool(structural), accum=accum, out=target, replace=bool(replace and has_out), semiring=ring,
        )  # fmt: skip
        assert target is None or result is target
        assert out is None or result.dtype == out.dtype
        assert_entries(result, wanted)


def test_out_without_a_mask(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(2)
    A, out = random_matrix((9, 9), 3, rng), random_matrix((9, 9), 3, rng)
    C = device_matrix(queue, out)
    before = C.indices
    assert spgemm(device_matrix(queue, A), A, out=C, accum="plus") is C
    np.testing.assert_array_equal(C.toarray(), out.toarray() + (A @ A).toarray())
    assert C.indices is not before
    spgemm(device_matrix(queue, A), A, out=C)
    np.testing.assert_array_equal(C.toarray(), (A @ A).toarray())
    np.testing.assert_array_equal(C @ np.ones(9), (A @ A) @ np.ones(9))


def test_operands_in_any_form(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    A, M = random_matrix((20, 20), 4, rng), random_matrix((20, 20), 6, rng)
    order = np.concatenate([rng.permutation(np.arange(A.indptr[i], A.indptr[i + 1])) for i in range(20)])
    mixed = scipy.sparse.csr_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)
    twice = scipy.sparse.csr_array((np.repeat(M.data, 2), np.repeat(M.indices, 2), 2 * M.indptr), shape=M.shape)
    left = device_matrix(queue, mixed)
    wanted = np.where(np.isnan(with_gaps(M)), 0, (A @ A).toarray())
    for mask in (M, twice, M.tocoo(), csr_array(M, queue=queue).tocsc(), device_matrix(queue, M, np.int64)):
        result = spgemm(left, left, mask=mask)
        np.testing.assert_allclose(result.toarray(), wanted)
    for shape in ((0, 4, 5), (4, 0, 5), (4, 5, 0)):
        m, k, n = shape
        empty = spgemm(csr_array((m, k), queue=queue), csr_array((k, n), queue=queue), mask=csr_array((m, n), queue=queue))
        assert empty.shape == (m, n)
        assert empty.nnz == 0


def test_long_rows_of_the_mask_and_of_operands(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(4)
    A, M = random_matrix((40, 900), 300, rng, np.int32), random_matrix((40, 900), 400, rng)
    B = random_matrix((900, 900), 30, rng, np.int32)
    left, right, mask = (device_matrix(queue, matrix) for matrix in (A, B, M))
    for ring in (plus_times, plus_pair):
        wanted = pattern_product(A, B) if ring == plus_pair else A @ B
        ones = (scipy.sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape) for X in (A, B))
        dense = (wanted if ring == plus_times else next(ones) @ next(ones)).toarray()
        result = spgemm(left, right, mask=mask, semiring=ring)
        np.testing.assert_array_equal(result.toarray(), np.where(np.isnan(with_gaps(M)), 0, dense))
        again = spgemm(left, right, mask=mask, semiring=ring)
        assert result.data.get().tobytes() == again.data.get().tobytes()


@pytest.mark.parametrize("ring", [plus_times, plus_pair], ids=repr)
def test_each_kernel_gives_the_same(queue: cl.CommandQueue, ring: Semiring) -> None:
    rng = np.random.default_rng(5)
    A, M = random_matrix((70, 70), 9, rng, np.int32), random_matrix((70, 70), 20, rng)
    left = device_matrix(queue, A)
    product = masks.prepare_masked_product(left, left, device_matrix(queue, M), ring)
    wanted = [masked_sum.get() for masked_sum in masks.sum_at_mask(queue, product)]
    assert 0 < wanted[1].sum() < M.nnz
    chain = Chain(queue)
    for record in (
        MaskedTeam.legal(chain.device, product.arithmetic),
        MaskedTeam.legal(chain.device, product.arithmetic, 16),
        MaskedChunked.legal(product.arithmetic, places=False),
        MaskedChunked.legal(product.arithmetic, places=True),
    ):
        sums, marks = cl_array.zeros(queue, M.nnz, wanted[0].dtype), cl_array.zeros(queue, M.nnz, np.uint8)
        enqueue_masked(Chain(queue), product, record, sums, marks)
        queue.finish()
        np.testing.assert_array_equal(marks.get(), wanted[1])
        np.testing.assert_array_equal(sums.get()[wanted[1] != 0], wanted[0][wanted[1] != 0])


def test_limits_and_phases(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(7)
    A, M = random_matrix((50, 50), 5, rng), random_matrix((50, 50), 20, rng)
    left = device_matrix(queue, A)
    _, seconds = spgemm(left, left, mask=M, profile=True)
    assert set(seconds) == {"products", "entries"}
    nnz = spgemm(left, left, mask=M, max_nnz=10**6).nnz
    with pytest.raises(ValueError, match=rf"^max_nnz: the product has {nnz} entries, more than {nnz - 1}"):
        spgemm(left, left, mask=M, max_nnz=nnz - 1)
    with pytest.raises(MemoryError):
        spgemm(left, left, mask=M, memory_limit=4000)


def test_bad_input(queue: cl.CommandQueue) -> None:
    A, C = csr_array(np.eye(3), queue=queue), csr_array(np.eye(3, dtype=np.int32), queue=queue)
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    for error, message, named in (
        (ValueError, r"^mask: must have shape \(3, 3\), has \(3, 4\)", {"mask": csr_array((3, 4), queue=queue)}),
        (ValueError, r"^mask: lives in another context", {"mask": csr_array(np.eye(3), queue=other)}),
        (TypeError, r"^mask: must be a csr_array", {"mask": np.eye(3)}),
        (ValueError, r"^complement: belongs to a mask", {"complement": True}),
        (ValueError, r"^structural: belongs to a mask", {"structural": False}),
        (ValueError, r"^accum: belongs to out", {"accum": "plus"}),
        (ValueError, r"^accum: must be one of plus, .*is 'add'", {"accum": "add", "out": A}),
        (ValueError, r"^replace: belongs to a mask", {"replace": True, "out": A}),
        (TypeError, r"^out: must be a csr_array", {"out": np.eye(3)}),
        (ValueError, r"^out: must have shape \(3, 3\), has \(2, 2\)", {"out": csr_array((2, 2), queue=queue)}),
        (ValueError, r"^out: lives in another context", {"out": csr_array(np.eye(3), queue=other)}),
        (TypeError, r"^out: has dtype int32, to which the product's float64 is not cast", {"out": C}),
        (ValueError, r"^method: a product under a mask", {"mask": A, "method": "hash"}),
    ):
        with pytest.raises(error, match=message):
            spgemm(A, A, **named)
    complex_one = csr_array(np.eye(3, dtype=np.complex64), queue=queue)
    with pytest.raises(TypeError, match=r"^semiring: min_plus orders its values"):
        spgemm(complex_one, complex_one, mask=A, semiring=min_plus)
    with pytest.raises(TypeError, match=r"^accum: or is not for complex values"):
        spgemm(complex_one, complex_one, out=complex_one.copy(), accum="or")
    assert spgemm(A, A, mask=A, semiring=or_and).dtype == bool


def test_plans(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(12)
    B, M = random_matrix((12, 15), 4, rng, np.float32), random_matrix((9, 15), 6, rng)
    M.data[rng.random(M.nnz) < 0.3] = 0
    A = random_matrix((9, 12), 4, rng, np.float32)
    # Unsorted and with duplicates: values are given in the order of these entries.
    order = np.concatenate([np.repeat(np.arange(A.indptr[i], A.indptr[i + 1])[::-1], 2) for i in range(9)])
    twice = scipy.sparse.csr_array((A.data[order], A.indices[order], 2 * A.indptr), shape=A.shape)
    for left, ring, index, terms in (
        (A, plus_times, np.int32, ((False, True), (True, True), (False, False), (True, False))),
        (twice, min_plus, np.int64, ((False, True), (True, False))),
    ):
        for complement, structural in terms:
            given = (device_matrix(queue, matrix, index) for matrix in (left, B))
            plan = spgemm_plan(*given, mask=M, complement=complement, structural=structural, accum="min", semiring=ring)
            made: list[csr_array] = []
            for values in ((), (3 * left.data, 2 * B.data)):
                pairs = zip((left, B), values or (left.data, B.data), strict=True)
                operands = [
                    scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), matrix.shape).copy() for matrix, data in pairs
                ]
                operands[0].sum_duplicates()
                dense = with_gaps(operands[0]), with_gaps(operands[1])
                counts = ~np.isnan(with_gaps(M)) & (structural | (np.nan_to_num(with_gaps(M)) != 0))
                made.append(plan(*values))
                assert_entries(made[-1], oracle(dense, counts != complement, None, ring, accum=None, replace=False))
                assert plan.nnz == made[-1].nnz
                assert made[-1].indices is plan.indices
                if not structural:
                    others = np.where(rng.random(M.nnz) < 0.5, 0, M.data)
                    changed = scipy.sparse.csr_array((others, M.indices, M.indptr), shape=M.shape)
                    counts = np.nan_to_num(with_gaps(changed)) != 0
                    wanted = oracle(dense, counts != complement, None, ring, accum=None, replace=False)
                    assert_entries(plan(*values, mask_data=others), wanted)
            first, second = (result.data.get() for result in made)
            assert plan(3 * left.data, 2 * B.data, out=made[0]) is made[0]
            np.testing.assert_array_equal(made[0].data.get(), np.minimum(first, second))
    assert f"a mask of {M.nnz} entries" in str(plan.explain())
    assert repr(plan).startswith("<MaskedPlan of a 9 x 15 product with ")
    overwriting = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), mask=M)
    C = overwriting()
    assert overwriting(2 * A.data, out=C) is C
    np.testing.assert_array_equal(C.data.get(), overwriting(2 * A.data).data.get())


def test_plans_for_bad_input(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(13)
    A, M = random_matrix((30, 30), 5, rng), random_matrix((30, 30), 9, rng)
    left = device_matrix(queue, A)
    wanted = spgemm(left, left, mask=M)
    for error, message, named in (
        (ValueError, r"^accum: belongs to a mask", {"accum": "plus"}),
        (ValueError, r"^accum: must be one of plus", {"accum": "add", "mask": M}),
        (ValueError, r"^complement: belongs to a mask", {"complement": True}),
        (ValueError, r"^mask: must have shape \(30, 30\)", {"mask": M[:4]}),
        (ValueError, r"^max_nnz: the product has", {"mask": M, "max_nnz": 3}),
        (ValueError, r"^method: a product under a mask", {"mask": M, "method": "hash"}),
    ):
        with pytest.raises(error, match=message):
            spgemm_plan(left, left, **named)
    plan = spgemm_plan(left, left, mask=M)
    for error, message, values, out in (
        (ValueError, r"^a_data: must have the", (A.data[:3],), None),
        (TypeError, r"^b_data: must have the dtype", (None, A.data.astype(np.float32)), None),
        (ValueError, r"^mask_data: belongs to a plan with structural=False", (None, None, M.data), None),
        (ValueError, r"^out: must be a matrix that this plan returned", (), wanted),
    ):
        with pytest.raises(error, match=message):
            plan(*values, out=out)
    with pytest.raises(ValueError, match=r"^out: must be None with mask_data"):
        spgemm_plan(left, left, mask=M, structural=False)(mask_data=M.data, out=wanted)


@pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.complex64, np.int32), (np.float32, np.int64)])
def test_memory(queue: cl.CommandQueue, dtype: type, index: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most A + B + 2 M, in all: of a new product whose places have all products, most or few, of a plan, and of its calls."""
    rng = np.random.default_rng(14)
    for n_entries in (30, 11, 4, 0):
        A, M = (random_matrix((300, 300), n, rng, dtype) for n in (n_entries, 200))
        A.data[:] = rng.integers(1, 4, A.nnz)
        left, right, mask = (device_matrix(queue, matrix, index) for matrix in (A, A, M))
        assert left.has_canonical_format
        assert right.has_canonical_format
        assert mask.has_canonical_format
        of_mask = sum(array.nbytes for array in (mask.data, mask.indices, mask.indptr))
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, mask=mask)
        assert allocations.peak() <= of_mask
        wanted = (A @ A).multiply(M != 0)
        np.testing.assert_array_equal(C.toarray(), wanted.toarray())
        assert C.nnz == wanted.nnz
        with count_buffers(monkeypatch) as allocations:
            plan = spgemm_plan(left, right, mask=mask)
        assert allocations.peak() <= of_mask
        with count_buffers(monkeypatch) as allocations:
            plan()
        assert allocations.peak() <= of_mask
    spgemm(left, right, mask=mask, memory_limit=of_mask)


def test_marked_entries_side_by_side(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(16)
    values, begins = rng.random(1000, np.float32), np.sort(np.append(rng.integers(0, 1001, 40), [0, 1000])).astype(np.int32)
    on_device, indptr = (cl_array.to_device(queue, array) for array in (values, begins))
    for share in (0.1, 0.8):
        marks = (rng.random(1000) < share).astype(np.uint8)
        which = find_marked(queue, cl_array.to_device(queue, marks), np.dtype(np.int32))
        assert (which.n, which.there) == (marks.sum(), share < 0.5)
        for room in (None, 1000):
            # In place in parts, if there is no more room: so of a copy.
            result = take_marked(queue, on_device.copy(), which, None, room)
            np.testing.assert_array_equal(result.get(), values[marks != 0])
        result = marked_pointers(queue, indptr, which, None)
        np.testing.assert_array_equal(result.get(), np.concatenate(([0], np.cumsum(marks)))[begins])


def test_accumulators_are_tuned(queue: cl.CommandQueue) -> None:
    tunable, device = MaskedTunable(), describe(queue.device)
    host = random_matrix((80, 80), 6, np.random.default_rng(15))
    problem = tunable.problem(queue, "made", host, "any")
    labels = tunable.configurations(device, "any", "accumulator")
    assert tunable.default(device, "any", "accumulator", tunable.features(problem)) in labels
    for label in labels:
        problem.sums.fill(7)
        tunable.prepare(problem, "accumulator", label)()
        assert tunable.verify(problem)
    problem.sums.fill(7)
    assert not tunable.verify(problem)
    with pytest.raises(ValueError, match="is not square"):
        tunable.problem(queue, "wide", host[:3], "any")
