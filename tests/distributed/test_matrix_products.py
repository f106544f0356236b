"""Sums and products of matrices over ranks: values, dtypes and structure are SciPy's."""

from __future__ import annotations

import gc
import itertools
import operator
import weakref
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse

from clsparse_py import distributed

DIVISION = [0, 9, 9, 40]


def matrix(m: int, n: int, seed: int, dtype: Any = np.float64, density: float = 0.1, least: int = 1) -> Any:
    """Return a matrix of small whole numbers; those below 1 may cancel others, whose entries SciPy leaves out of products."""
    S = scipy.sparse.random_array((m, n), density=density, rng=np.random.default_rng(seed), format="csr")
    S.data = np.ceil(S.data * 4) - 1 + least
    S = S.astype(dtype)
    S.sort_indices()
    return S


def same(result: Any, wanted: Any) -> None:
    result = result.gather()
    wanted = scipy.sparse.csr_array(wanted)
    wanted.sort_indices()
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result, name), getattr(wanted, name))


@pytest.mark.any_platform
def test_products_have_scipys_structure(queue: cl.CommandQueue) -> None:
    with distributed.over([queue] * 3, time_limit=60) as team:
        for dtype in (np.float64, np.int64, np.complex64, np.bool_):
            A, B = (matrix(40, 40, seed, dtype) for seed in (1, 2))
            same(team.csr_array(A, division=DIVISION) @ team.csr_array(B, division=DIVISION), A @ B)
        # Rectangular; nothing of others, and everything; nothing at all; transposed.
        A, B, D = matrix(40, 30, 3), matrix(30, 7, 4), matrix(40, 40, 6, density=0.6)
        a, d = team.csr_array(A), team.csr_array(D, division=DIVISION)
        b = team.csr_array(B, division=a.columns)
        C = a @ b
        same(C, A @ B)
        halo = sum(len(part.halo.columns) for part in C.parts)
        wanted = A @ B
        assert halo == sum(
            np.count_nonzero(C.parts[0].columns.owner(np.unique(wanted[C.parts[0].rows.part(rank)].indices)) != rank)
            for rank in range(3)
        )
        eye = scipy.sparse.eye_array(40, format="csr")
        for S in (eye, D, scipy.sparse.csr_array((40, 40))):
            same(d @ team.csr_array(S, division=DIVISION), D @ S)
            same(team.csr_array(S, division=DIVISION) @ d, S @ D)
        same(a.T @ a, A.T @ A)
        same(a @ a.T, A @ A.T)
        with pytest.raises(ValueError, match="must be divided as"):
            d @ team.csr_array(eye, division="rows")


@pytest.mark.any_platform
def test_planned_products_take_new_values(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(5)
    twice = scipy.sparse.csr_array((np.ones(4), np.array([3, 3, 0, 39]), np.array([0, 3, *[4] * 39])), (40, 40))
    eye, full = scipy.sparse.eye_array(40, format="csr"), matrix(40, 40, 6, density=0.6)
    with distributed.over([queue] * 3, time_limit=60) as team:
        for left, right in (
            (matrix(40, 40, 1), matrix(40, 40, 2)),
            (matrix(40, 40, 1, np.complex64), matrix(40, 40, 2, np.complex64)),
            (twice, full), (full, twice), (eye, eye), (scipy.sparse.csr_array((40, 40)), full),
        ):  # fmt: skip
            a, b = (team.csr_array(operand, division=DIVISION) for operand in (left, right))
            plan = team.run(distributed.spgemm_plan, a, b)
            same(plan(), left @ right)
            for _ in range(2):
                others = [operand.copy() for operand in (left, right)]
                for other in others:
                    other.data = rng.integers(1, 9, other.nnz).astype(other.dtype)
                result = plan(*(team.csr_array(other, division=DIVISION) for other in others))
                np.testing.assert_array_equal(result.gather().toarray(), (others[0] @ others[1]).toarray())
                x = np.arange(40.0)
                np.testing.assert_allclose(result @ x, others[0] @ (others[1] @ x), rtol=1e-6)
        # A message to each neighbour has the values of the rows that it needs, and no more.
        A, B = matrix(40, 40, 1), matrix(40, 40, 2)
        a, b = (team.csr_array(operand, division=DIVISION) for operand in (A, B))
        # So is it when the plan is made, which multiplies once, and plans all that later products do.
        counts = [[(comm.sent.messages, comm.sent.bytes) for comm in team.ranks]]
        plan = team.run(distributed.spgemm_plan, a, b)
        planned = [[*part._plans] for part in plan.parts]
        counts.append([(comm.sent.messages, comm.sent.bytes) for comm in team.ranks])
        plan(a, 2 * b)
        counts.append([(comm.sent.messages, comm.sent.bytes) for comm in team.ranks])
        assert planned == [[*part._plans] for part in plan.parts]
        assert ["own", "others"] in planned
        of_plan, sent = np.diff(counts, axis=0)
        np.testing.assert_array_equal(of_plan, sent)
        entries, messages = 0, 0
        for rank in range(3):
            needed = np.unique(A[DIVISION[rank] : DIVISION[rank + 1]].indices)
            owners = a.parts[0].rows.owner(needed)
            entries += int(np.diff(B.indptr)[needed[owners != rank]].sum())
            messages += np.unique(owners[owners != rank]).size
        assert sent.sum(axis=0).tolist() == [messages, 8 * entries]
        for wrong, error, message in (
            ((a, a), ValueError, "B: has another structure"),
            ((a, b.astype(np.complex128)), TypeError, "B: must have the dtype"),
            ((A, b), TypeError, "A: must be a matrix over the same ranks"),
        ):
            with pytest.raises(error, match=message):
                plan(*wrong)
        same(plan(), A @ B)


@pytest.mark.any_platform
def test_sums_have_scipys_structure(queue: cl.CommandQueue) -> None:
    A, B = matrix(40, 30, 1, least=-1), matrix(40, 30, 2, least=-1)
    with distributed.over([queue] * 3, time_limit=60) as team:
        a = team.csr_array(A, division=DIVISION)
        b = team.csr_array(B, division=DIVISION)
        for apply in (operator.add, operator.sub):
            same(apply(a, b), apply(A, B))
            same(apply(a, a), apply(A, A))
        assert sum(len(part.halo.columns) for part in (a - a).parts) == 0
        x = np.arange(30.0)
        np.testing.assert_array_equal((a + b) @ x, (A + B) @ x)
        with pytest.raises(ValueError, match="inconsistent shapes"):
            a + a.T
        with pytest.raises(ValueError, match="rows must be divided"):
            a + team.csr_array(B, division="rows")


@pytest.mark.any_platform
def test_later_products_send_values_alone(queue: cl.CommandQueue) -> None:
    A, B = matrix(40, 40, 1), matrix(40, 30, 2)
    needed = [np.unique(A[first:last].indices) for first, last in itertools.pairwise(DIVISION)]
    owners = [np.searchsorted(DIVISION, rows, side="right") - 1 for rows in needed]
    entries = sum(
        int(np.diff(B.indptr)[rows[of != rank]].sum()) for rank, (rows, of) in enumerate(zip(needed, owners, strict=True))
    )
    messages = sum(np.unique(of[of != rank]).size for rank, of in enumerate(owners))
    with distributed.over([queue] * 3, time_limit=60) as team:
        a = team.csr_array(A, division=DIVISION)
        b = team.csr_array(B, division=DIVISION)
        for factor in (1, 3, 2j):
            before = sum(comm.sent.messages for comm in team.ranks), sum(comm.sent.bytes for comm in team.ranks)
            same((2 * a) @ (factor * b), (2 * A) @ (factor * B))
            sent = sum(comm.sent.messages for comm in team.ranks), sum(comm.sent.bytes for comm in team.ranks)
            assert np.subtract(sent, before).tolist() == [messages, entries * np.dtype(type(factor)).itemsize]
        kept = [next(iter(part.structure.products.values())) for part in a.parts]
        same(a @ b, A @ B)
        assert [next(iter(part.structure.products.values())) for part in a.parts] == kept
        # A rank that has no kept product, as its matrix is another, makes the others begin anew.
        a.parts[1]._structure = None
        same(a @ b, A @ B)
        same(a @ b, A @ B)
        structures = [weakref.ref(part.structure) for part in b.parts]
        del b
        gc.collect()
        assert [structure() for structure in structures] == [None] * 3
        assert not any(len(part.structure.products) for part in a.parts)


@pytest.mark.any_platform
def test_products_of_any_number_of_ranks(queue: cl.CommandQueue) -> None:
    A, B = matrix(5, 4, 1, np.complex128, 0.5), matrix(4, 6, 2, np.complex128, 0.5)
    wide = [scipy.sparse.csr_array((S.data, S.indices.astype(np.int64), S.indptr.astype(np.int64)), S.shape) for S in (A, B)]
    empty = scipy.sparse.csr_array((5, 4)), scipy.sparse.csr_array((4, 6)), scipy.sparse.csr_array((4, 0))
    for size in (1, 2, 7):
        with distributed.over([queue] * size, time_limit=60) as team:
            for left, right in ((A, B), wide, (empty[0], B), (A, empty[1]), empty[:2], (empty[0][:0], B), (A, empty[2])):
                a = team.csr_array(left, division="rows")
                b = team.csr_array(right, division=a.columns)
                # The parts have as few bytes an entry as they can.
                assert all(part.local.indices.dtype == np.int32 for part in a.parts)
                plan = team.run(distributed.spgemm_plan, a, b)
                for _ in range(2):
                    same(a @ b, left @ right)
                    same(plan(a, b), left @ right)
                    same(plan(2 * a, b), (2 * left) @ right)
