"""Colours of rows, and incomplete factors in the order of colours or with approximate inverses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg as of_scipy

import clsparse_py
from clsparse_py import linalg
from clsparse_py._device.device import describe
from clsparse_py._operations.preconditioning import colour_rows

pytestmark = pytest.mark.any_platform

OPTIONS = [
    {"ordering": ordering, "solve": solve} for ordering in ("natural", "multicolour") for solve in ("exact", "isai")
]  # fmt: skip


def grid(n: int = 12) -> scipy.sparse.csr_array:
    """Return the Laplacian of a grid of n x n points."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_array(scipy.sparse.kronsum(step, step))


def random(n: int, dtype: Any, *, symmetric: bool) -> scipy.sparse.csr_array:
    """Return a well-posed matrix: Hermitian positive definite, or of a pattern that is not symmetric."""
    rng = np.random.default_rng(n)
    host = scipy.sparse.random_array((n, n), density=0.06, rng=rng, data_sampler=lambda size: rng.random(size) - 0.5)
    host = scipy.sparse.csr_array(host * (1 + 0.5j if np.dtype(dtype).kind == "c" else 1))
    host = host + host.conj().T if symmetric else host
    return scipy.sparse.csr_array(host + 5 * scipy.sparse.eye_array(n)).astype(dtype)


def dtypes_of(queue: cl.CommandQueue) -> list[str]:
    """Return the floating dtypes that a queue's device has."""
    return ["float32", "complex64", *(("float64", "complex128") if describe(queue.device).fp64 else ())]


def hash_rows(n: int) -> Any:
    """Return the priorities of rows."""
    key = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return key ^ (key >> np.uint64(32))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_colours_are_those_of_a_pass_by_priority(queue: cl.CommandQueue, index: Any) -> None:
    clique = scipy.sparse.block_diag([np.ones((70, 70)), np.zeros((3, 3)), grid(5).toarray()])
    for host in (grid(), random(90, "float32", symmetric=True), clique, np.zeros((0, 0)), np.zeros((1, 1)), np.eye(1)):
        rows = scipy.sparse.csr_array(host, dtype=np.float32)
        n = rows.shape[0]
        parts = rows.data, rows.indices.astype(index), rows.indptr.astype(index)
        found = colour_rows(clsparse_py.csr_array(parts, shape=rows.shape, queue=queue).structure)
        colours = np.full(n, -1)
        for row in np.argsort(hash_rows(n))[::-1]:
            near = set(colours[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]])
            colours[row] = next(colour for colour in itertools.count() if colour not in near)
        np.testing.assert_array_equal(found.order, np.argsort(colours, kind="stable"))
        np.testing.assert_array_equal(np.diff(found.starts), np.bincount(colours))
        np.testing.assert_array_equal(found.rows.get(), found.order)
        np.testing.assert_array_equal(found.places.get()[found.order], np.arange(n))
        assert found.rows.dtype == index


def test_factors_are_those_of_the_permuted_matrix(queue: cl.CommandQueue) -> None:
    n = 90
    for dtype, index, name in itertools.product(dtypes_of(queue), (np.int32, np.int64), ("ilu0", "ic0")):
        host = random(n, dtype, symmetric=name == "ic0")
        factorise, near = getattr(linalg, name), 2e-4 if dtype in ("float32", "complex64") else 1e-11
        for options in OPTIONS:
            parts = host.data, host.indices.astype(index), host.indptr.astype(index)
            M = factorise(clsparse_py.csr_array(parts, shape=host.shape, queue=queue), **options)
            p = np.arange(n) if M.permutation is None else M.permutation
            assert (M.permutation is None) == (options["ordering"] == "natural")
            permuted = scipy.sparse.csr_array(host[p][:, p])
            natural = factorise(clsparse_py.csr_array(permuted, queue=queue))
            for ours, theirs in zip(M.factors, natural.factors, strict=True):
                np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=near, atol=near)
            L, U = np.tril(M.factors[0].toarray(), -1) + np.eye(n), np.triu(M.factors[-1].toarray())
            if name == "ic0":
                L = M.factors[0].toarray()
            pattern = permuted.toarray() != 0
            np.testing.assert_allclose((L @ U)[pattern], permuted.toarray()[pattern], rtol=near, atol=near)
            inverses = [np.linalg.inv(factor) for factor in (L, U)]
            if options["solve"] == "isai":
                inverses = [inverse.toarray() for inverse in M.inverses]
                for factor, inverse in zip((L, U), inverses, strict=True):
                    inside = (factor != 0) | np.eye(n, dtype=bool)
                    assert not inverse[~inside].any()
                    product = inverse @ factor if name == "ilu0" or factor is L else factor @ inverse
                    np.testing.assert_allclose(product[inside], np.eye(n)[inside], atol=near)
            else:
                assert M.inverses == ()
            b = (np.arange(n) % 7 - 2.5).astype(dtype)
            expected = np.empty(n, dtype)
            expected[p] = inverses[1] @ (inverses[0] @ b[p])
            np.testing.assert_allclose(M @ b, expected, rtol=10 * near, atol=10 * near)


def test_rows_of_a_colour_are_a_level_set(queue: cl.CommandQueue) -> None:
    M = linalg.ic0(clsparse_py.csr_array(grid().astype(np.float32), queue=queue), ordering="multicolour")
    for factor, lower in zip(M.factors, (True, False), strict=True):
        plan = linalg.triangular_plan(factor, lower=lower, method="levels")
        verdict = {name: why for name, _, why in plan.explain().verdicts}["levels"]
        assert int(verdict.split()[0]) <= 6


def test_systems_take_fewer_iterations(queue: cl.CommandQueue) -> None:
    dtype = dtypes_of(queue)[-1]
    turn = scipy.sparse.diags_array(np.exp(1j * np.arange(400)))
    host = (turn @ grid(20) @ turn.conj()).tocsr().astype(dtype)
    A, b = clsparse_py.csr_array(host, queue=queue), (np.arange(400) % 7 - 2.5).astype(dtype)

    def iterations(solver: Any, matrix: Any, M: Any) -> int:
        seen: list[None] = []
        x, info = solver(matrix, b, M=M, rtol=1e-5, callback=lambda _: seen.append(None))
        assert info == 0
        assert np.linalg.norm(b - host @ x) < 1e-4 * np.linalg.norm(b)
        return len(seen)

    alone = iterations(linalg.cg, A, linalg.jacobi(A))
    for options in OPTIONS:
        M = linalg.ic0(A, **options)
        dense = M @ np.eye(400, dtype=dtype)
        np.testing.assert_allclose(dense, dense.conj().T, atol=1e-5)
        assert iterations(linalg.cg, A, M) < 0.75 * alone
        assert abs(iterations(of_scipy.cg, host, M) - iterations(linalg.cg, A, M)) <= 1
        assert iterations(linalg.bicgstab, A, linalg.ilu0(A, **options)) < 0.75 * alone


def test_lower_triangles_sweeps_and_small_matrices(queue: cl.CommandQueue) -> None:
    host = random(50, "float32", symmetric=True)
    whole = linalg.ic0(clsparse_py.csr_array(host, queue=queue), ordering="multicolour")
    lower = clsparse_py.csr_array(scipy.sparse.tril(host, format="csr"), queue=queue)
    half = linalg.ic0(lower, ordering="multicolour")
    np.testing.assert_array_equal(whole.factors[0].toarray(), half.factors[0].toarray())
    swept = linalg.ic0(lower, 50, ordering="multicolour", solve="isai")
    np.testing.assert_allclose(swept.factors[0].toarray(), whole.factors[0].toarray(), atol=1e-5)
    for name, options in itertools.product(("ilu0", "ic0"), OPTIONS):
        one = getattr(linalg, name)(clsparse_py.csr_array(np.full((1, 1), 4, np.float32), queue=queue), **options)
        np.testing.assert_array_equal(one @ np.ones(1, np.float32), [0.25])
        assert one.dtype == np.float32
        none = getattr(linalg, name)(clsparse_py.csr_array((0, 0), dtype=np.float32, queue=queue), **options)
        assert (none @ np.ones(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("name", ["ilu0", "ic0"])
def test_names_of_options(queue: cl.CommandQueue, name: str) -> None:
    A = clsparse_py.csr_array(grid(4).astype(np.float32), queue=queue)
    with pytest.raises(ValueError, match="ordering: must be one of natural, multicolour, is 'colour'"):
        getattr(linalg, name)(A, ordering="colour")
    with pytest.raises(ValueError, match="solve: must be one of exact, isai, is 'sweeps'"):
        getattr(linalg, name)(A, solve="sweeps")
