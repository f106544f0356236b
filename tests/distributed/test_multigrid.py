"""Smoothed aggregation over ranks: its matrices, cycles and iterations, by any division; what is wrong on one rank."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array
from reference import multigrid
from supposed import suppose

from clsparse_py import BuildError, amg, csr_array, distributed, linalg
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._distributed.costs import Explanation, Sent
from clsparse_py._distributed.in_process import ThreadCommunicator, _ThreadExchange
from clsparse_py._distributed.whole_levels import Thresholds
from clsparse_py._solvers.amg.setup import coarsen
from clsparse_py._solvers.linalg.problem import as_divided

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


@pytest.fixture(params=["whole", "divided"])
def coarse(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether each rank has all coarse levels whole, or they are divided among ranks, whatever their size."""
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_whole_rows=0 if request.param == "divided" else 1 << 40))
    return str(request.param)


def grid(n: int, dimensions: int = 2, dtype: Any = np.float64) -> Any:
    """Return the Laplacian of a grid; of a complex dtype, a Hermitian one of other phases."""
    step = result = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    for _ in range(dimensions - 1):
        result = scipy.sparse.kronsum(result, step)
    if np.dtype(dtype).kind == "c":
        turn = scipy.sparse.diags_array(np.exp(1j * np.arange(result.shape[0])))
        result = turn @ result @ turn.conj()
    return scipy.sparse.csr_array(result).astype(dtype)


def on_ranks(size: int, n: int) -> list[int]:
    """Return uneven shares of n rows; of three ranks or more the second has none, and of four or more the last has one."""
    inner = np.linspace(n // 5, n - 1, size - 2).astype(int).tolist() if size > 2 else []
    return [0, *([n // 5] * (size > 1)), *inner, n]


def team_on(queue: cl.CommandQueue, size: int) -> distributed.Team:
    return distributed.over([queue] * size, time_limit=60)


def count_iterations(A: Any, b: Any, **options: Any) -> tuple[int, Any]:
    """Return the iterations of conjugate gradients with a cycle, and the solution."""
    residuals: list[float] = []
    ml = amg.smoothed_aggregation_solver(A, **options)
    x, info = ml.solve(b, tol=1e-8, accel="cg", residuals=residuals, return_info=True)
    assert info == 0
    assert residuals[-1] <= 1e-8 * residuals[0]
    return len(residuals) - 1, x


def test_iterations_are_nearly_those_of_one_device(wide: cl.CommandQueue, coarse: str) -> None:
    for S, sizes in ((grid(30), (1, 2, 4, 6)), (grid(10, 3), (3, 5, 7))):
        b = np.arange(S.shape[0]) % 7 - 2.5
        most, wanted = count_iterations(csr_array(S, queue=wide), b, max_coarse=10)
        for size in sizes:
            with team_on(wide, size) as team:
                A = team.csr_array(S, division=on_ranks(size, S.shape[0]))
                n, x = team.run(count_iterations, A, b, max_coarse=10)
                assert n <= (most + 1 if coarse == "whole" else 1.3 * most)
                np.testing.assert_allclose(x, wanted, atol=1e-6 * np.abs(wanted).max())
                if size == sizes[-1]:
                    again, y = team.run(count_iterations, A, b, max_coarse=10)
                    assert n == again
                    np.testing.assert_array_equal(x, y)


def matrices(A: Any, options: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what each level of a hierarchy has, whole, on each rank, and the rows that it has there; None if it has all."""
    ml, result = amg.smoothed_aggregation_solver(A, max_coarse=8, **options), []
    for level in ml.levels:
        rho = level.rho() if level.P is not None else 0.0
        is_whole = isinstance(level.A, csr_array)
        B = level.B.get() if is_whole else np.concatenate(ml.comm.allgather(level.B.get()))
        PR = (None, None) if level.P is None else (as_divided(level.P).whole(), as_divided(level.R).whole())
        result.append((as_divided(level.A).whole(), *PR, B, rho, None if is_whole else level.A.rows))
    return result


def test_set_up_is_what_scipy_computes(wide: cl.CommandQueue, coarse: str) -> None:
    places = np.indices((16, 16)).reshape(2, -1).T * 1.0
    cases = (
        (np.float64, {}),
        (np.complex128, {"B": np.exp(1j * np.arange(256)), "strength": ("symmetric", {"theta": 0.1})}),
        (np.float64, {"B": np.column_stack([np.ones(256), places]), "strength": ("symmetric", {"theta": 0.02})}),
    )
    with team_on(wide, 4) as team:
        for dtype, options in cases:
            S = grid(16, 2, dtype)
            A = team.csr_array(S, division=on_ranks(4, 256))
            levels = team.run(matrices, A, options)
            assert len(levels) > 2
            assert [level[-1] is None for level in levels] == [False, *[coarse == "whole"] * (len(levels) - 1)]
            np.testing.assert_array_equal(levels[0][0].toarray(), S.toarray())
            for (A_, P, R, B, rho, rows), (below, _, _, B_below, _, rows_below) in itertools.pairwise(levels):
                diagonal = A_.diagonal()  # 0 for candidates that depend on others in their aggregate
                D = scipy.sparse.diags_array(np.divide(1, diagonal, out=0 * diagonal, where=diagonal != 0))
                smooth = scipy.sparse.eye_array(A_.shape[0]) - 4 / 3 / rho * D @ A_
                T = np.linalg.solve(smooth.toarray(), P.toarray())
                joined = np.abs(T).max(axis=1) > 1e-8  # others have no strong entry
                assert options.get("strength") or joined.all()
                np.testing.assert_allclose(T @ B_below, B * joined[:, None], atol=1e-10 * np.abs(B).max())
                np.testing.assert_array_equal(R.toarray(), P.toarray().T.conj())
                np.testing.assert_allclose((R @ A_ @ P).toarray(), below.toarray(), atol=1e-12)
                if rows_below is None:
                    continue
                # No aggregate has nodes of two ranks, and all ranks that have nodes have aggregates.
                for rank in range(4):
                    outside = np.delete(T[rows.part(rank)], np.r_[rows_below.part(rank)], axis=1)
                    assert not outside.size or np.abs(outside).max() < 1e-10
                has_aggregates, has_nodes = (np.diff(division.boundaries) > 0 for division in (rows_below, rows))
                assert options.get("strength") or (has_aggregates == has_nodes).all()


def cycles(A: Any, b: Any, options: dict[str, Any], kinds: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return residuals and solutions of cycles, and the host's for the same levels."""
    ml = amg.smoothed_aggregation_solver(A, **options)
    results = []
    for kind in kinds:
        residuals, wanted = list[float](), list[float]()
        x = ml.solve(b, maxiter=3, tol=0, cycle=kind, residuals=residuals)
        y = multigrid.solve(ml.levels, b, maxiter=3, kind=kind, residuals=wanted)
        results.append((residuals, wanted, x, y))
    x = ml.aspreconditioner() @ b
    return [*results, ([0.0], [0.0], x, multigrid.solve(ml.levels, b, maxiter=1, kind="V"))]


@pytest.mark.usefixtures("coarse")
def test_cycles_are_those_of_the_host(wide: cl.CommandQueue) -> None:
    for size, dtype, kinds, smoother in (
        (3, np.complex128, ("V", "K"), ("chebyshev", {"degree": 2})),
        (4, np.float64, ("W", "F", "AMLI"), ("jacobi", {"iterations": 2})),
    ):
        S = grid(12, 2, dtype)
        b = (np.arange(144) % 7 - 2.5).astype(dtype)
        options = {"max_coarse": 5, "presmoother": smoother}
        with team_on(wide, size) as team:
            A = team.csr_array(S, division=on_ranks(size, 144))
            for result, wanted, x, y in team.run(cycles, A, b, options, kinds):
                np.testing.assert_allclose(result, wanted, atol=1e-12 * wanted[0])
                np.testing.assert_allclose(x, y, atol=1e-11 * np.abs(y).max())


def everything_else(A: Any, S: Any, other: Any) -> None:
    """Check what a hierarchy takes and gives back, on one rank."""
    comm, n = A.comm, A.shape[0]
    ml = amg.smoothed_aggregation_solver(A, max_coarse=6)
    assert repr(ml).startswith("MultilevelSolver\nNumber of Levels:     3\n")
    b = np.arange(n) % 7 - 2.5
    divided = distributed.vector(b[A.rows.part(comm.rank)], comm, A.rows)
    for given in (b, divided, divided.own, np.stack([b, b[::-1]], axis=1)):
        for options in ({}, {"accel": "cg", "residuals": []}, {"accel": "gmres"}):
            if getattr(given, "ndim", 1) == 1 or "residuals" not in options:
                x = ml.solve(given, tol=1e-10, **options)
                assert isinstance(x, type(given))
                x = distributed.vector(x, comm, A.rows) if isinstance(x, cl_array.Array) else x
                x = x.allgather() if isinstance(x, distributed.vector) else x
                right = given if isinstance(given, np.ndarray) else b
                np.testing.assert_allclose(S @ x, right, atol=1e-7)
    M = ml.aspreconditioner("W")
    two = np.stack([b, 2 * b], axis=1)
    np.testing.assert_allclose(M @ two, np.stack([M @ b, 2 * (M @ b)], axis=1), atol=1e-12)
    np.testing.assert_array_equal((M @ divided).allgather(), M @ b)
    x, info = linalg.cg(A, b, M=M, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(M @ (1j * b), 1j * (M @ b), atol=1e-12)
    with pytest.raises(TypeError, match="M: must be a matrix over ranks"):
        linalg.cg(A, b, M=linalg.jacobi(A.local))
    levels = [level.A.shape for level in ml.levels]
    ml.refresh(other)
    assert [level.A.shape for level in ml.levels] == levels
    x, info = linalg.cg(other, b, M=M, rtol=1e-10, maxiter=30)
    assert info == 0
    np.testing.assert_allclose(other @ x, b, atol=1e-7)


@pytest.mark.usefixtures("coarse")
def test_a_hierarchy_takes_and_gives_what_products_do(wide: cl.CommandQueue) -> None:
    S = grid(10)
    scale = scipy.sparse.diags_array(1 + np.arange(100) / 100)
    with team_on(wide, 3) as team:
        A, other = (
            team.csr_array(matrix, division=on_ranks(3, 100)) for matrix in (S, scipy.sparse.csr_array(scale @ S @ scale))
        )
        team.run(everything_else, A, S, other)
        ml = team.run(amg.smoothed_aggregation_solver, A)
        assert "MultilevelSolver" in repr(ml)
        x = ml.solve(team.vector(np.ones(100), A.rows), tol=1e-8, accel="cg")
        np.testing.assert_allclose(S @ x.allgather(), 1, atol=1e-5)


@pytest.mark.usefixtures("coarse")
def test_matrices_of_other_kinds(wide: cl.CommandQueue) -> None:
    # More ranks than rows, whole numbers, one row, a halo of everything, isolated rows, neighbours of other ranks alone.
    dense = scipy.sparse.csr_array(10 * np.eye(9) - np.ones((9, 9)))
    isolated = scipy.sparse.block_diag([grid(6), scipy.sparse.diags_array([3.0, 5.0])], format="csr")
    crossed = np.arange(60).reshape(3, 20).T.ravel()
    line = grid(60, 1)[crossed][:, crossed]
    cases = (grid(2).astype(np.int64), scipy.sparse.csr_array([[2.0]]), dense, isolated, line)
    with team_on(wide, 7) as team:
        for S in cases:
            b = np.ones(S.shape[0])
            x, info = team.run(linalg_by_multigrid, team.csr_array(S, division="rows"), b)
            assert info == 0
            np.testing.assert_allclose(S @ x, b, atol=1e-6)


def diagonal_on_a_path(n: int) -> Any:
    """Return the identity with zeros stored beside the diagonal: smoothing maps candidates to zero, and all levels below are."""
    ones = scipy.sparse.csr_array(np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1))
    ones.data[:] = ones.indices == np.repeat(np.arange(n), np.diff(ones.indptr))
    return ones


@pytest.mark.usefixtures("coarse")
def test_a_level_that_is_zero_is_the_coarsest(wide: cl.CommandQueue) -> None:
    S, b = diagonal_on_a_path(40), np.arange(40) + 1.0

    def solve(A: Any) -> Any:
        ml = amg.smoothed_aggregation_solver(A, max_coarse=2)
        assert len(ml.levels) == 2
        return ml.solve(b, tol=1e-9)

    np.testing.assert_allclose(solve(csr_array(S, queue=wide)), b, rtol=1e-8)
    with team_on(wide, 3) as team:
        np.testing.assert_allclose(team.run(solve, team.csr_array(S, division=on_ranks(3, 40))), b, rtol=1e-8)
        # Of the finest level it is an error, as on one device.
        with pytest.raises(ValueError, match="A: has no entry on its diagonal"):
            team.run(solve, team.csr_array(0 * S))


@pytest.mark.usefixtures("coarse")
def test_no_unknowns(wide: cl.CommandQueue) -> None:
    S = scipy.sparse.csr_array((0, 0))
    with team_on(wide, 2) as team:
        for A, run in ((csr_array(S, queue=wide), lambda f, A: f(A)), (team.csr_array(S), team.run)):
            assert run(lambda A: amg.smoothed_aggregation_solver(A).solve(np.ones(0), return_info=True)[1], A) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(queue: cl.CommandQueue, dtype: Any) -> None:
    S = grid(20, 2, dtype)
    b = (np.arange(400) % 7 - 2.5).astype(dtype)
    with team_on(queue, 3) as team:
        A = team.csr_array(S, division=on_ranks(3, 400))
        ml = team.run(amg.smoothed_aggregation_solver, A, max_coarse=10)
        x, info = ml.solve(b, tol=1e-5, accel="cg", return_info=True)
    assert (info, x.dtype) == (0, dtype)
    assert np.linalg.norm(S @ x - b) <= 5e-5 * np.linalg.norm(b)


class Calls(threading.local):
    """A rank's collective calls and exchanges of messages so far."""

    collective = exchanges = 0


def count_calls(A: Any, calls: Calls) -> tuple[int, ...]:
    """Return a hierarchy's levels, collective calls and exchanges of its set-up, exchanges and sent messages of a cycle."""
    b = distributed.vector(np.ones(A.local.shape[0]), A.comm, A.rows)
    calls.collective = calls.exchanges = 0
    ml = amg.smoothed_aggregation_solver(A)
    of_set_up = calls.collective, calls.exchanges
    M = ml.aspreconditioner()
    calls.collective = calls.exchanges = 0
    before = A.comm.sent.messages
    M @ b
    assert not calls.collective
    return len(ml.levels), *of_set_up, calls.exchanges, A.comm.sent.messages - before


def test_whole_levels_take_few_messages(wide: cl.CommandQueue, coarse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, post, start = Calls(), ThreadCommunicator._post, _ThreadExchange._start

    def counted_post(comm: ThreadCommunicator, *given: Any) -> Any:
        calls.collective += 1
        return post(comm, *given)

    def counted_start(exchange: _ThreadExchange) -> None:
        calls.exchanges += 1
        start(exchange)

    monkeypatch.setattr(ThreadCommunicator, "_post", counted_post)
    monkeypatch.setattr(_ThreadExchange, "_start", counted_start)
    with team_on(wide, 2) as team:
        levels, *counts = team.run(count_calls, team.csr_array(grid(256)), calls)
    # A level over ranks takes four exchanges, the inverse of the coarsest one; whole levels none, and their restriction one.
    assert (levels, *counts) == (4, *((24, 14, 3, 3) if coarse == "whole" else (76, 37, 13, 13)))


def test_rows_of_whole_levels_are_as_the_model_says() -> None:
    def seconds(n: int, ranks: int) -> tuple[float, float]:
        """Return the seconds of a V-cycle's four products on a level of n rows, by the model: over ranks, and gathered."""
        entries, plane = 27 * n, round(n ** (2 / 3))
        over_ranks = 4 * Sent(plane, min(2, ranks - 1), entries // ranks, n // ranks).seconds
        gathering = Sent(n - n // ranks, ranks - 1, 0, 0).seconds_of_exchange
        return over_ranks, 4 * Explanation((Sent(0, 0, entries, n),)).seconds_on_one + gathering

    most = Thresholds.defaults(on_cores=False)["max_whole_rows"]
    for ranks in (2, 4, 16):
        (divided, whole), (larger, larger_whole) = (seconds(int(n), ranks) for n in (most, 4 * most))
        assert whole < divided
        assert larger_whole > larger


def test_a_failure_on_a_whole_level_of_one_rank_ends_all_ranks_waits(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(level: Any, number: int, options: Any) -> Any:
        if threading.current_thread().name == "rank 1":
            raise MemoryError("planted")
        return coarsen(level, number, options)

    def set_up(A: Any) -> str:
        with pytest.raises((MemoryError, distributed.RankError)) as caught:
            amg.smoothed_aggregation_solver(A, max_coarse=3)
        return str(caught.value)

    monkeypatch.setattr("clsparse_py._distributed.multigrid.coarsen", failing)
    with team_on(wide, 3) as team:
        A = team.csr_array(grid(20))
        said = team.each(lambda _, own: set_up(own), A)
        assert said == ["rank 1 failed: MemoryError: planted", "planted", "rank 1 failed: MemoryError: planted"]
        monkeypatch.undo()
        assert team.run(linalg_by_multigrid, A, np.ones(400))[1] == 0


@pytest.mark.refusals
@pytest.mark.usefixtures("coarse")
def test_a_rank_that_kernels_are_refused_on_takes_plain_ones(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    S, b = grid(8), np.ones(64)
    build, asked = programs.build, set[bool]()

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if own.refused and parameters.template.startswith(("aggregation/", "vectors/sweep", "spmv/", "primitives/permute")):
            asked.add(are_plain())
            if not are_plain():
                raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    def on_the_last(A: Any) -> Any:
        own.refused = A.comm.rank == 2
        x = linalg_by_multigrid(A, b)
        return (*x, amg.smoothed_aggregation_solver(A, max_coarse=3).solve(b, tol=1e-9))

    class Rank(threading.local):
        refused = False

    own = Rank()
    with team_on(wide, 3) as team:
        A = team.csr_array(S, division=on_ranks(3, 64))
        wanted, _ = team.run(linalg_by_multigrid, A, b)
        monkeypatch.setattr(programs, "build", refusing)
        x, info, y = team.run(on_the_last, A)
        assert info == 0
        np.testing.assert_allclose(x, wanted, atol=1e-7)
        np.testing.assert_allclose(y, wanted, atol=1e-6)
    assert asked == {False, True}


def linalg_by_multigrid(A: Any, b: Any) -> Any:
    ml = amg.smoothed_aggregation_solver(A, max_coarse=3)
    return linalg.cg(A, b, M=ml.aspreconditioner(), rtol=1e-9, maxiter=30)


def wrong_on_one_rank(A: Any) -> list[str]:
    """Return the errors of wrong arguments, all but the last of which only the last rank gives."""
    last = A.comm.rank == A.comm.size - 1
    ml = amg.smoothed_aggregation_solver(A, max_coarse=10)
    b = np.ones(A.shape[0])
    cases = (
        lambda: amg.smoothed_aggregation_solver(A, B=np.ones(5 if last else A.shape[0])),
        lambda: amg.smoothed_aggregation_solver(A, B=0 * b),
        lambda: amg.smoothed_aggregation_solver(A, strength="evolution" if last else "symmetric"),
        lambda: amg.smoothed_aggregation_solver(A, presmoother="gauss_seidel" if last else "jacobi"),
        lambda: amg.smoothed_aggregation_solver(A, max_coarse=20 if last else 10),
        lambda: ml.solve(b[: 5 if last else None]),
        lambda: ml.solve(b, cycle="X" if last else "V"),
        lambda: ml.solve(b, tol=1e-3 if last else 1e-4),
        lambda: ml.aspreconditioner("X" if last else "V"),
        lambda: ml.refresh(3 if last else A),
        lambda: ml.refresh(A + A.T @ A),
        lambda: amg.smoothed_aggregation_solver(A * np.nan, max_coarse=10),
        lambda: amg.smoothed_aggregation_solver(A * np.nan, max_coarse=100),
        lambda: amg.smoothed_aggregation_solver(0 * A, max_coarse=10),
        lambda: amg.smoothed_aggregation_solver(A, presmoother="l1_jacobi", max_coarse=10),
    )
    said = []
    for case in cases:
        with pytest.raises((ValueError, TypeError, distributed.RankError)) as caught:
            case()
        said.append(str(caught.value))
    np.testing.assert_allclose(A @ ml.solve(b, tol=1e-9), b, atol=1e-6)
    return said


@pytest.mark.usefixtures("coarse")
def test_what_is_wrong_on_one_rank_is_an_error_on_all(wide: cl.CommandQueue) -> None:
    with team_on(wide, 2) as team:
        A = team.csr_array(grid(8))
        said, _ = team.each(lambda _, own: wrong_on_one_rank(own), A)
        wide_one = team.csr_array(grid(8)[:5])
        with pytest.raises(ValueError, match="A: must be square"):
            team.run(amg.smoothed_aggregation_solver, wide_one)
    of_options = "B: must", "B: has zeros", "strength: must", "presmoother: 'gauss_seidel'", "max_coarse: is 10 on rank 0 and 20"
    of_calls = "b: must have", "cycle: must", "tol: is", "cycle: must", "values: must be", "values: the matrix"
    of_values = "A: has values", "A: has values", "A: has no entry", "presmoother: 'l1_jacobi' does not run over ranks"
    for text, named in zip(said, (*of_options, *of_calls, *of_values), strict=True):
        assert named in text, (named, text)
