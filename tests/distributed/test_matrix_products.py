"""Sums and products of matrices over ranks: values, dtypes and structure are SciPy's."""

from __future__ import annotations

import operator
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
        plan = team.run(distributed.spgemm_plan, a, b)
        before = [(comm.sent.messages, comm.sent.bytes) for comm in team.ranks]
        plan(a, 2 * b)
        sent = np.array([(comm.sent.messages, comm.sent.bytes) for comm in team.ranks]) - before
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
