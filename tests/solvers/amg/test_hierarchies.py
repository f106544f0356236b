"""Hierarchies of smoothed aggregation: set-up, cycles, refresh and bad input, against SciPy and NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array
from reference import aggregates as of_host
from reference import multigrid

import clsparse_py
from clsparse_py import BuildError, amg, linalg
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._solvers.amg import smoothers

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


@pytest.fixture
def default(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> cl.CommandQueue:
    """That queue, as the one that matrices of SciPy go to."""
    monkeypatch.setattr("clsparse_py._solvers.amg.setup.default_queue", lambda: wide)
    return wide


def grid(n: int = 24, dtype: Any = np.float64) -> scipy.sparse.csr_array:
    """Return the 5-point matrix of n x n points; of a complex dtype, a Hermitian one of other phases."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    result = scipy.sparse.kronsum(step, step).tocsr()
    if np.dtype(dtype).kind == "c":
        turn = scipy.sparse.diags_array(np.exp(1j * np.arange(n * n)))
        result = turn @ result @ turn.conj()
    return scipy.sparse.csr_array(result).astype(dtype)


def solver(queue: cl.CommandQueue, host: Any, **options: Any) -> amg.MultilevelSolver:
    return amg.smoothed_aggregation_solver(clsparse_py.csr_array(host, queue=queue), **{"max_coarse": 10, **options})


def test_set_up_is_what_scipy_computes(wide: cl.CommandQueue) -> None:
    host = grid()
    ml = solver(wide, host, max_coarse=15)
    assert len(ml.levels) == 3
    for level, below in zip(ml.levels[:-1], ml.levels[1:], strict=True):
        A, P, R = level.A.get(), level.P.get(), level.R.get()
        # P smooths a prolongator T that holds B: where rows of A sum to 0, so does P.
        D = scipy.sparse.diags_array(1 / A.diagonal())
        smooth = scipy.sparse.eye_array(A.shape[0]) - 4 / 3 / level.rho() * D @ A
        np.testing.assert_allclose(P @ below.B.get(), smooth @ level.B.get(), atol=1e-12)
        np.testing.assert_array_equal(R.toarray(), P.toarray().T)
        np.testing.assert_allclose((R @ A @ P).toarray(), below.A.toarray(), atol=1e-12)
        if level is ml.levels[0]:  # four steps of the Jacobi method from ones
            improved = np.ones(A.shape[0])
            for _ in range(4):
                improved -= D @ A @ improved / level.rho()
            np.testing.assert_allclose(level.B.get()[:, 0], improved, atol=1e-12)
        largest = scipy.sparse.linalg.eigs(D @ A, 1, return_eigenvectors=False)[0].real
        assert 0.95 * largest < level.rho() <= largest * (1 + 1e-10)
    assert repr(ml).startswith("MultilevelSolver\nNumber of Levels:     3\nOperator Complexity:   1.3")


def test_candidates_of_several_columns_and_blocks(default: cl.CommandQueue) -> None:
    # Two unknowns a node, with three candidates.
    A = scipy.sparse.kron(grid(12), np.array([[2.0, 1.0], [1.0, 3.0]])).tobsr((2, 2))
    places = np.indices((12, 12)).reshape(2, -1).T.repeat(2, axis=0)
    B = np.column_stack([np.tile([1.0, 0.0], 144), np.tile([0.0, 1.0], 144), places[:, 0] * 1.0])
    ml = amg.smoothed_aggregation_solver(A, B=B, smooth=None, max_coarse=4)
    assert [level.blocksize for level in ml.levels][:2] == [2, 3]
    for level, below in zip(ml.levels[:-1], ml.levels[1:], strict=True):
        P, fine = level.P.get(), level.B.get()
        np.testing.assert_allclose(P @ below.B.get(), fine, atol=1e-11 * np.abs(fine).max())
        Q = (P.T @ P).toarray()
        np.testing.assert_allclose(Q, np.diag(np.diag(Q)), atol=1e-12)
        assert all(min(abs(entry), abs(entry - 1)) < 1e-12 for entry in np.diag(Q))
    b = np.arange(288) % 5 - 1.0
    ml = amg.smoothed_aggregation_solver(A, B=B, max_coarse=4, strength=("symmetric", {"theta": 0.05}))
    x, info = ml.solve(b, tol=1e-9, accel="cg", return_info=True)
    assert info == 0
    np.testing.assert_allclose(A @ x, b, atol=1e-6)
    # The default candidates of blocks: one for each unknown of a node.
    ml = amg.smoothed_aggregation_solver(A)
    assert ml.levels[0].B.shape == (288, 2)
    assert ml.levels[0].A.context == default.context


def test_cycles_and_smoothers_are_those_of_the_host(wide: cl.CommandQueue) -> None:
    for dtype in (np.float64, np.complex128):
        host = grid(16, dtype)
        candidates = np.exp(1j * np.arange(256)) if dtype is np.complex128 else None
        smoothers = ("jacobi", ("jacobi", {"iterations": 2}), ("chebyshev", {"degree": 3}), None)
        b = (np.arange(256) % 7 - 2.5).astype(dtype)
        for at, smoother in enumerate(smoothers):
            ml = solver(wide, host, B=candidates, presmoother=smoother, postsmoother=smoothers[at - 1], max_coarse=5)
            for cycle in ("V", "W", "F", "K", "AMLI")[at % 2 :: 2]:
                results: list[float] = []
                wanted: list[float] = []
                x = ml.solve(b, maxiter=4, tol=0, cycle=cycle, residuals=results)
                y = multigrid.solve(ml.levels, b, maxiter=4, kind=cycle, residuals=wanted)
                np.testing.assert_allclose(results, wanted, atol=1e-12 * wanted[0])
                np.testing.assert_allclose(x, y, atol=1e-11 * np.abs(y).max())
    M = ml.aspreconditioner()
    np.testing.assert_allclose(M @ b, multigrid.solve(ml.levels, b, maxiter=1, kind="V"), atol=1e-12 * np.abs(b).max())


def test_solve_gives_back_what_it_was_given(wide: cl.CommandQueue) -> None:
    host = grid()
    ml, b = solver(wide, host), np.arange(576) % 7 - 2.5
    exact = scipy.sparse.linalg.spsolve(host, b)
    on_device = cl_array.to_device(wide, b)
    seen: list[Any] = []
    for options in ({}, {"accel": "cg"}, {"accel": "cg", "cycle": "K"}, {"accel": "bicgstab"}, {"accel": "gmres"}, {"x0": b}):
        x, info = ml.solve(b, tol=1e-10, callback=seen.append, return_info=True, **options)
        assert info == 0
        assert isinstance(x, np.ndarray)
        np.testing.assert_allclose(x, exact, atol=1e-6)
    assert all(isinstance(value, np.ndarray) for value in seen)
    y = ml.solve(on_device, tol=1e-10)
    assert isinstance(y, cl_array.Array)
    np.testing.assert_allclose(y.get(), exact, atol=1e-6)
    np.testing.assert_array_equal(ml.solve(b, tol=1e-10), y.get())
    both = ml.solve(np.stack([b, 2 * b], axis=1), tol=1e-10)
    np.testing.assert_array_equal(both[:, 0], y.get())
    # SciPy's solvers take the preconditioner, and functions of its kind are accelerators.
    M = ml.aspreconditioner()
    x, info = scipy.sparse.linalg.cg(host, b, M=M, rtol=1e-10)
    assert info == 0
    x, info = ml.solve(b, tol=1e-10, accel=scipy.sparse.linalg.cg, return_info=True)
    assert info == 0
    np.testing.assert_allclose(x, exact, atol=1e-6)
    # A hierarchy of single precision for a system of double.
    single = solver(wide, host.astype(np.float32)).aspreconditioner()
    x, info = linalg.cg(clsparse_py.csr_array(host, queue=wide), b, M=single, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(x, exact, atol=1e-6)


def test_refresh_is_another_set_up(wide: cl.CommandQueue) -> None:
    host = grid()
    ml = solver(wide, host, improve_candidates=None)
    plans = [level.A.structure for level in ml.levels]
    M = ml.aspreconditioner()
    single = solver(wide, host.astype(np.float32), improve_candidates=None)
    mixed = single.aspreconditioner()
    first = ml.levels[0].A
    b = np.arange(576) % 7 - 2.5
    for turn in range(5):
        scale = scipy.sparse.diags_array(1 + np.arange(576) * (turn + 1) / 100)
        other = scipy.sparse.csr_array(scale @ host @ scale)
        on_device = cl_array.to_device(wide, other.data)
        values = (other.data, on_device, other, clsparse_py.csr_array(other, queue=wide), 2 * (other / 2).tocsc())[turn]
        ml.refresh(values)
        single.refresh(other.data.astype(np.float32))
        assert [level.A.structure for level in ml.levels] == plans
        wanted = solver(wide, other, improve_candidates=None)
        for result, level in zip(ml.levels, wanted.levels, strict=True):
            np.testing.assert_allclose(result.A.toarray(), level.A.toarray(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(ml.solve(b, tol=1e-8), wanted.solve(b, tol=1e-8), rtol=1e-6)
        exact = wanted.aspreconditioner() @ b
        np.testing.assert_allclose(M @ b, exact, atol=1e-10 * np.abs(exact).max())
        np.testing.assert_allclose(mixed @ b, exact, atol=1e-3 * np.abs(exact).max())
    np.testing.assert_array_equal(first.data.get(), host.data)
    for wrong, message in (
        (other.data[:5], "must have the"),
        (other.T @ other, "another structure"),
        (other[:5], "another structure"),
    ):
        with pytest.raises(ValueError, match=message):
            ml.refresh(wrong)
    with pytest.raises(TypeError, match="dtype"):
        ml.refresh(other.data * 1j)


def test_prolongators_are_those_of_products(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, take_as: Callable[..., None]
) -> None:
    for kind, dtype in (("cpu", np.float64), ("gpu", np.complex128)):
        take_as(type=kind)
        # Some rows are in no aggregate, and their neighbours have none there.
        host = scipy.sparse.block_diag([grid(12, dtype), scipy.sparse.diags_array([3.0, 5.0])], format="csr")
        for degree in (1, 2):
            options = {"smooth": ("jacobi", {"degree": degree}), "max_coarse": 30}
            result = solver(wide, host, **options)
            result.refresh(2 * host.data)
            with monkeypatch.context() as patched:
                patched.setattr("clsparse_py._solvers.amg.setup.MAX_ROW", {True: 0, False: 0})
                wanted = solver(wide, host, **options)
                wanted.refresh(2 * host.data)
            P, Q = result.levels[0].P.get(), wanted.levels[0].P.get()
            np.testing.assert_array_equal(P.indptr, Q.indptr)
            np.testing.assert_array_equal(P.indices, Q.indices)
            np.testing.assert_allclose(P.data, Q.data, atol=1e-13)


def test_smoothers_of_the_fourth_kind(wide: cl.CommandQueue) -> None:
    high, t = 2.5, np.linspace(0, 2.5, 20001)[1:]
    for kind, degree in itertools.product(("fourth", "opt_fourth"), range(1, 7)):
        coefficients = smoothers.make_smoother(
            "", ("chebyshev", {"kind": kind, "degree": degree}), lambda: high / 1.1
        ).coefficients
        error = 1 - t * np.polyval(coefficients, t)
        assert np.abs(error).max() < 1
        if kind == "fourth":
            # (2k + 1) times the error is the Chebyshev polynomial of the fourth kind W_k(1 - 2 t / high).
            angle = np.arccos(1 - 2 * t[:-1] / high)
            wanted = np.sin((degree + 0.5) * angle) / np.sin(angle / 2)
            np.testing.assert_allclose((2 * degree + 1) * error[:-1], wanted, atol=1e-8)
        else:
            # The optimal weights let all extremes of this factor of the bound for V-cycles be the same.
            factor = t / high * error**2 / (1 - error**2)
            inner = factor[1:-1][(factor[1:-1] > factor[:-2]) & (factor[1:-1] >= factor[2:])]
            assert inner.size == degree - 1
            np.testing.assert_allclose(inner, factor[-1], rtol=1e-6)
    host, counts = grid(40), []
    A, b = clsparse_py.csr_array(host, queue=wide), np.random.default_rng(0).random(host.shape[0])
    for option in ("jacobi", ("chebyshev", {"kind": "fourth", "degree": 3}), ("chebyshev", {"kind": "opt_fourth", "degree": 3})):
        residuals: list[float] = []
        ml = amg.smoothed_aggregation_solver(A, presmoother=option, postsmoother=option, max_coarse=10)
        x = ml.solve(b, tol=1e-10, residuals=residuals)
        assert np.linalg.norm(b - host @ x) <= 1e-9 * np.linalg.norm(b)
        counts.append(len(residuals))
    assert max(counts[1:]) < counts[0]


def test_smoothers_by_colours_and_of_row_sums(wide: cl.CommandQueue) -> None:
    by_colours = [("multicolour_gauss_seidel", {"sweep": sweep}) for sweep in ("symmetric", "forward", "backward")]
    l1 = ("l1_jacobi", {"iterations": 2})
    pairs = ((by_colours[0], by_colours[0]), (by_colours[1], by_colours[2]), (l1, l1), (("l1_jacobi", {"omega": 0.9}), None))
    for dtype, (before, after) in itertools.product((np.float32, np.float64, np.complex128), pairs):
        host, near = grid(16, dtype), 1e-3 if dtype is np.float32 else 1e-11
        candidates = np.exp(1j * np.arange(256)) if dtype is np.complex128 else None
        ml = solver(wide, host, B=candidates, presmoother=before, postsmoother=after, max_coarse=5)
        b = (np.arange(256) % 7 - 2.5).astype(dtype)
        for factor in (1, 3):
            ml.refresh((factor * host).data)
            for cycle in ("V", "K"):
                y = multigrid.solve(ml.levels, b, maxiter=3, kind=cycle)
                np.testing.assert_allclose(ml.solve(b, maxiter=3, tol=0, cycle=cycle), y, atol=near * np.abs(y).max())
        if dtype is np.float64:
            np.testing.assert_allclose(ml.to_pyamg().solve(b, maxiter=3, tol=0), ml.solve(b, maxiter=3, tol=0), rtol=1e-8)
        if after is not None:
            x, info = ml.solve(b, tol=1e-5, accel="cg", maxiter=20, return_info=True)
            assert info == 0
            np.testing.assert_allclose(3 * host @ x, b, atol=1e-3)
    # A pattern that is not symmetric; unknowns without neighbours; a zero on the diagonal.
    skewed = scipy.sparse.csr_array(grid() + scipy.sparse.coo_array(([0.1], ([3], [100])), shape=(576, 576)))
    holed = scipy.sparse.block_diag([grid(), scipy.sparse.diags_array([3.0, 0.0])], format="csr")
    for host in (skewed, holed):
        ml = solver(wide, host, presmoother=by_colours[0], postsmoother=by_colours[0])
        b = np.r_[np.ones(576), np.zeros(host.shape[0] - 576)]
        np.testing.assert_allclose(host @ ml.solve(b, tol=1e-8, maxiter=60), b, atol=1e-5)


def test_systems_that_are_no_good_end(wide: cl.CommandQueue) -> None:
    host = grid()
    ml, b = solver(wide, host), np.ones(576)
    with_nan = b.copy()
    with_nan[3] = np.nan
    for accel in (None, "cg"):
        assert ml.solve(with_nan, accel=accel, return_info=True)[1] > 0
        assert ml.solve(b, tol=1e-14, maxiter=3, accel=accel, return_info=True)[1] == 3
    assert not ml.solve(0 * b).any()
    # Singular: all rows sum to 0; isolated rows; rows of zeros; a zero on the diagonal; indefinite; not symmetric.
    singular = scipy.sparse.csgraph.laplacian(abs(host) - scipy.sparse.diags_array(host.diagonal())).tocsr()
    isolated = scipy.sparse.block_diag([host, scipy.sparse.diags_array([3.0, 5.0])], format="csr")
    empty = scipy.sparse.block_diag([host, scipy.sparse.csr_array((2, 2))], format="csr")
    holed = host.tolil()
    holed[7, 7] = 0
    skewed = host + scipy.sparse.triu(host, 1)
    for case in (singular, isolated, empty, holed.tocsr(), host - 3 * scipy.sparse.eye_array(576), skewed.tocsr()):
        right = np.zeros(case.shape[0])
        right[:576] = b - (b.mean() if case is singular else 0)
        case = scipy.sparse.csr_array(case)
        x, info = solver(wide, case).solve(right, tol=1e-8, maxiter=40, return_info=True)
        assert info in (0, 40) or not np.isfinite(x).all()
        if case.shape[0] > 576 or info == 0:
            np.testing.assert_allclose(case @ x, right, atol=1e-5)
    # Nothing to aggregate.
    diagonal = scipy.sparse.diags_array(np.arange(1.0, 31.0)).tocsr()
    np.testing.assert_allclose(solver(wide, diagonal).solve(np.ones(30)), 1 / np.arange(1.0, 31.0))
    np.testing.assert_allclose(solver(wide, np.array([[2.0]])).solve(np.ones(1)), 0.5)


def test_wrong_arguments(queue: cl.CommandQueue) -> None:
    host = grid(12, np.float32)
    A = clsparse_py.csr_array(host, queue=queue)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("B: must have 144 rows", {"B": np.ones(5)}),
        ("B: has zeros alone", {"B": np.zeros(144)}),
        ("B: has values that are not finite", {"B": np.full(144, np.nan)}),
        ("symmetry: must be", {"symmetry": "nonsymmetric"}),
        ("strength: must be 'symmetric'", {"strength": "evolution"}),
        ("strength: theta must", {"strength": ("symmetric", {"theta": -1})}),
        ("smooth: must be", {"smooth": "energy"}),
        ("improve_candidates: must be", {"improve_candidates": "gauss_seidel"}),
        ("presmoother: 'gauss_seidel' does not run", {"presmoother": "gauss_seidel"}),
        ("postsmoother: must be a name", {"postsmoother": 5}),
        ("chebyshev: needs", {"presmoother": ("chebyshev", {"degree": 0})}),
        ("chebyshev: kind must be", {"presmoother": ("chebyshev", {"kind": "second"})}),
        ("degree from 1 to 6", {"presmoother": ("chebyshev", {"kind": "opt_fourth", "degree": 7})}),
        ("lower_bound belongs to", {"presmoother": ("chebyshev", {"kind": "fourth", "lower_bound": 0.1})}),
        ("iterations: must not", {"presmoother": ("jacobi", {"iterations": -1})}),
        ("iterations: must not", {"presmoother": ("l1_jacobi", {"iterations": -1})}),
        ("sweep: must be one of forward", {"postsmoother": ("multicolour_gauss_seidel", {"sweep": "all"})}),
        ("max_levels, max_coarse", {"max_levels": 0}),
    ]
    for message, options in wrong:
        with pytest.raises(ValueError, match=message):
            amg.smoothed_aggregation_solver(A, **{"max_coarse": 10, **options})
    for options in (
        {"B": np.ones(144) * 1j},
        {"smooth": ("jacobi", {"x": 1})},
        {"strength": ("symmetric", {"x": 1})},
        {"strength": (None, {"theta": 1})},
        {"smooth": (None, {"omega": 1})},
        {"improve_candidates": (None, {"iterations": 1})},
        {"presmoother": (None, {"degree": 3})},
        {"postsmoother": (None, {"omega": 1})},
        {"improve_candidates": ("jacobi", {"x": 1})},
        {"presmoother": ("jacobi", {"x": 1})},
    ):
        with pytest.raises(TypeError):
            amg.smoothed_aggregation_solver(A, **{"max_coarse": 10, **options})
    with pytest.raises(ValueError, match="A: must be square"):
        amg.smoothed_aggregation_solver(A[:5])
    for values in (A * np.float32(np.nan), 0 * A):
        with pytest.raises(ValueError, match="A: has"):
            amg.smoothed_aggregation_solver(values, max_coarse=10)
    ml = amg.smoothed_aggregation_solver(A)
    for message, arguments in (
        ("cycle: must be one of", {"cycle": "X"}),
        ("accel: must be a solver", {"accel": "fgmres"}),
        ("b: must have", {}),
    ):
        with pytest.raises(ValueError, match=message):
            ml.solve(np.ones(144 if arguments else 5, np.float32), **arguments)
    x, info = ml.solve(np.ones(144, np.float32), tol=1e-4, return_info=True)
    assert (info, x.dtype) == (0, np.float32)


def test_aggregates_are_the_same_everywhere(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from clsparse_py._solvers.aggregation.aggregates import aggregate_nodes

    rng = np.random.default_rng(3)
    some = scipy.sparse.random_array((300, 300), density=0.01, rng=rng, format="csr")
    cases = (grid(20), some + some.T, some, scipy.sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(700, 700)))
    results = []
    for kind in ("cpu", "gpu", "gpu"):
        take_as(type=kind)
        if len(results) == 2 * len(cases):
            # More nodes look than a work-group lists.
            monkeypatch.setattr("clsparse_py._solvers.aggregation.kernels._LISTED", 4)
            monkeypatch.setattr("clsparse_py._solvers.aggregation.kernels._WOKEN", 3)
        for case in cases:
            A = clsparse_py.csr_array(scipy.sparse.csr_array(case, dtype=np.float32), queue=queue)
            results.append(aggregate_nodes(queue, A.indices, A.indptr))
            joined, place, n = of_host.aggregates(A.indices.get(), A.indptr.get())
            assert (n, place[-1]) == (results[-1].n, results[-1].n_joined)
            np.testing.assert_array_equal(joined, results[-1].joined.get())
            np.testing.assert_array_equal(place, results[-1].place.get())
            # Connected, in a symmetric graph: each node of an aggregate is within two edges of another of it.
            assert set(joined[joined >= 0]) == set(range(results[-1].n))
            alone = np.diff(case.tocsr().indptr) == 0
            assert (joined[alone] == -1).all()


def test_coarsest_inverses(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    from clsparse_py._solvers.amg.coarsest import invert_coarsest

    rng = np.random.default_rng(4)
    for kind in ("cpu", "gpu"):
        take_as(type=kind)
        for n in (1, 40):
            one, dense = np.eye(n), rng.random((n, n)) + 1j * rng.random((n, n))
            definite = dense @ dense.conj().T + one
            # Those that are not definite, or not Hermitian, are left to the host.
            for matrix in (definite, definite - 30 * one, dense + one):
                host = matrix.astype(np.complex64)
                result = invert_coarsest(clsparse_py.csr_array(host, queue=queue)).toarray()
                np.testing.assert_allclose(result @ host, one, atol=2e-3)


def test_triple_products(queue: cl.CommandQueue) -> None:
    host = grid(12, np.float32)
    P = scipy.sparse.kron(scipy.sparse.eye_array(36), np.ones((4, 1))).tocsr().astype(np.float32)
    A = clsparse_py.csr_array(host, queue=queue)
    wanted = (P.T @ host @ P).toarray()
    for order in ("auto", "R(AP)", "(RA)P"):
        plan = amg.rap_plan(P.T, A, P, order=order)
        assert plan.order == order if order != "auto" else set(plan.products) == {"R(AP)", "(RA)P"}
        np.testing.assert_allclose(plan().toarray(), wanted, rtol=1e-5)
        np.testing.assert_allclose(plan(a_data=2 * A.data).toarray(), 2 * wanted, rtol=1e-5)
    # Many rows of A to few of R: the product from the left is the smaller one.
    wide, tall = (
        scipy.sparse.random_array(shape, density=0.3, rng=1, dtype=np.float32).tocsr() for shape in ((2, 144), (144, 100))
    )
    assert amg.rap_plan(wide, A, tall).order == "(RA)P"
    with pytest.raises(ValueError, match="order"):
        amg.rap_plan(P.T, A, P, order="RAP")


@pytest.mark.refusals
def test_plain_kernels_take_over_if_others_are_refused(default: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    wide, host, b = default, grid(12), np.arange(144) % 7 - 2.5
    wanted = solver(wide, host)
    blocks = scipy.sparse.kron(host, np.eye(2)).tobsr((2, 2))
    of_blocks = amg.smoothed_aggregation_solver(blocks, max_coarse=10, strength=("symmetric", {"theta": 0.1}))
    residuals: list[float] = []
    x = wanted.solve(b, tol=1e-8, residuals=residuals)
    build, plain = programs.build, True

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if parameters.template.startswith(("aggregation/", "vectors/sweep")) and not (plain and are_plain()):
            raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    monkeypatch.setattr(programs, "build", refusing)
    result = solver(wide, host)
    again = amg.smoothed_aggregation_solver(blocks, max_coarse=10, strength=("symmetric", {"theta": 0.1}))
    for one, other in ((wanted, result), (of_blocks, again)):
        other.refresh(one.levels[0].A.data)
        for level, of_plain in zip(one.levels, other.levels, strict=True):
            np.testing.assert_allclose(level.A.toarray(), of_plain.A.toarray(), atol=1e-12)
    norms: list[float] = []
    np.testing.assert_allclose(result.solve(b, tol=1e-8, residuals=norms), x, atol=1e-10)
    np.testing.assert_allclose(norms, residuals, atol=1e-10)
    assert result.solve(b, tol=1e-8, accel="cg", return_info=True)[1] == 0
    plain = False
    with pytest.raises(BuildError, match="planted"):
        solver(wide, host)


def test_the_radius_of_symmetric_matrices_and_of_any_size_of_values(queue: cl.CommandQueue) -> None:
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(200, 200)).tocsr()
    wide = describe(queue.device).fp64
    symmetric = (step + 1j * scipy.sparse.eye_array(200)).tocsr().astype(np.complex128 if wide else np.complex64)
    options: dict[str, Any] = {"max_coarse": 10, "strength": ("symmetric", {"theta": 0.1})}
    A = clsparse_py.csr_array(symmetric, queue=queue)
    for level in amg.smoothed_aggregation_solver(A, symmetry="symmetric", **options).levels[:-1]:
        A = level.A.get().toarray()
        assert 0.9 < level.rho() / abs(np.linalg.eigvals(A / A.diagonal()[:, None])).max() < 1.1
    for dtype, scales in (("float32", (1e30, 1e-30)), ("complex64", (1e30, 1e-30)), ("float64", (1e200, 1e-200))):
        if dtype != "float64" or wide:
            rhos = []
            for scale in (1.0, *scales):
                A = clsparse_py.csr_array((step * scale).astype(dtype), queue=queue)
                rhos.append([level.rho() for level in amg.smoothed_aggregation_solver(A, **options).levels])
            np.testing.assert_allclose(rhos[1:], [rhos[0]] * 2, rtol=1e-3)


def test_methods_with_pyamgs_interface_and_without_a_preconditioner(queue: cl.CommandQueue) -> None:
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(400, 400)).tocsr().astype(np.float32)
    ml, b = amg.smoothed_aggregation_solver(clsparse_py.csr_array(step, queue=queue), max_coarse=20), np.ones(400, np.float32)
    taken: list[dict[str, Any]] = []

    def of_pyamg(A: Any, b: Any, x0: Any, tol: float, maxiter: int, M: Any) -> tuple[Any, int]:
        taken.append({"A": A, "x0": x0, "tol": tol, "maxiter": maxiter})
        return M @ b, 3

    assert ml.solve(b, accel=of_pyamg, tol=1e-3, maxiter=7, return_info=True)[1] == 3
    assert taken == [{"A": ml.levels[0].A, "x0": None, "tol": 1e-3, "maxiter": 7}]
    seen: list[float] = []
    # Three columns are three iterations.
    assert ml.solve(b, accel="gmres", tol=0, maxiter=3, residuals=seen, return_info=True)[1] == 3
    assert len(seen) == 2
    for wrong, message in (
        ({"accel": "lsqr"}, "accel: must take a preconditioner M"), ({"tol": np.nan}, "tol: must be"),
        ({"tol": -1}, "tol: must be"), ({"maxiter": -1}, "maxiter: must not be negative"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            ml.solve(b, **wrong)


def test_cycles_do_not_depend_on_the_size_of_values(queue: cl.CommandQueue) -> None:
    single, double = (1.0, 1e30, 1e-30, 2.0**-90), (1.0, 1e150, 1e-150, 2.0**-400)
    for dtype, scales in (("float32", single), ("complex64", single), ("float64", double), ("complex128", double)):
        if scales is single or describe(queue.device).fp64:
            cycles_of_any_size(queue, np.dtype(dtype), scales)


def cycles_of_any_size(queue: cl.CommandQueue, dtype: np.dtype[Any], scales: tuple[float, ...]) -> None:
    """Compare what is found for a matrix and b times some numbers."""
    host, b = grid(16, dtype), np.ones(256, dtype)
    for options in ({"accel": "cg"}, {"accel": "minres"}, {"accel": "bicgstab"}, {"accel": "gmres"}, {}, {"cycle": "K"}):
        solutions = []
        for scale in scales:
            A, residuals = (host * scale).astype(dtype), list[float]()
            told = residuals if "accel" not in options else None
            x, info = solver(queue, A).solve((b * scale).astype(dtype), tol=1e-4, return_info=True, residuals=told, **options)
            assert info == 0
            assert np.linalg.norm(1 - host @ x.astype(np.result_type(dtype, float))) < 2e-4 * 16
            assert told is None or abs(residuals[0] / (16 * scale) - 1) < 1e-4
            solutions.append(x)
        for x in solutions[1:]:
            np.testing.assert_allclose(x, solutions[0], rtol=0, atol=64 * np.finfo(dtype).eps * np.abs(solutions[0]).max())
        np.testing.assert_array_equal(solutions[-1], solutions[0])
