"""Conjugate gradients over ranks: what an iteration waits for, and how accurate the solution is beside that of one device."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse

from clsparse_py import csr_array, distributed, linalg
from clsparse_py._device.device import describe
from clsparse_py._solvers.krylov import one_reduction

pytestmark = pytest.mark.any_platform

#: Divisions of 400 unknowns among 1 to 7 ranks; some ranks have no rows.
DIVISIONS = (
    *([400 * rank // size for rank in range(size + 1)] for size in (1, 2, 3, 4, 7)),
    [0, 0, 250, 250, 400, 400],
    [0, 1, 2, 3, 397, 400, 400],
)


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def grid_with_jumps(side: int, jump: float) -> Any:
    """Return the 5-point matrix of a square grid whose conductivities are 1 or ``jump``, by chance."""
    rng = np.random.default_rng(0)
    across, down = rng.choice([1.0, jump], (side, side + 1)), rng.choice([1.0, jump], (side + 1, side))
    right, below = -across[:, 1:].copy(), -down[1:-1].ravel()
    right[:, -1] = 0
    diagonal = (across[:, 1:] + across[:, :-1] + down[1:] + down[:-1]).ravel()
    diagonals = [below, right.ravel()[:-1], diagonal, right.ravel()[:-1], below]
    return scipy.sparse.diags_array(diagonals, offsets=[-side, -1, 0, 1, side], format="csr")


def true_residual(S: Any, b: Any, x: Any) -> float:
    return float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))


def over(queue: cl.CommandQueue, division: list[int]) -> distributed.Team:
    return distributed.over([queue] * (len(division) - 1), time_limit=60)


def solve_over(queue: cl.CommandQueue, division: list[int], S: Any, b: Any, M: Any = None, **options: Any) -> tuple[Any, int]:
    """Return the solution and info, which is the same on all ranks; M makes the preconditioner of the matrix over ranks."""
    with over(queue, division) as team:
        A = team.csr_array(S, division=division)
        results = team.each(lambda _, own: linalg.cg(own, b, M=M and M(own), **options), A)
    for x, info in results[1:]:
        assert info == results[0][1]
        np.testing.assert_array_equal(x, results[0][0])
    result: tuple[Any, int] = results[0]
    return result


def jacobi(own: Any) -> Any:
    return distributed.by_blocks(own, linalg.jacobi)


def test_an_iteration_has_one_reduction_and_two_waits(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    S, b = grid_with_jumps(20, 1e3), np.arange(400) % 7 - 2.5
    counts: dict[int, Counter[str]] = {}

    def note(what: str) -> None:
        if threading.get_ident() in counts:
            counts[threading.get_ident()][what] += 1

    copy, wait, finish = cl.enqueue_copy, cl.Event.wait, cl.CommandQueue.finish

    def noted_copy(*args: Any, **named: Any) -> Any:
        if named.get("is_blocking", True) and any(isinstance(array, np.ndarray) for array in args):
            note("reads")
        return copy(*args, **named)

    monkeypatch.setattr(cl, "enqueue_copy", noted_copy)
    monkeypatch.setattr(cl.Event, "wait", lambda event: (note("events"), wait(event))[1])
    monkeypatch.setattr(cl.CommandQueue, "finish", lambda queue: (note("finishes"), finish(queue))[1])

    def count(own: Any, M: Any) -> Counter[str]:
        """Return what ten iterations count on this rank."""
        ranks, stacked = own.comm, own.comm.stacked
        results = []
        ranks.stacked = lambda *args: (note("reductions"), stacked(*args))[1]
        for maxiter in (6, 6, 16):
            counts[threading.get_ident()] = Counter()
            linalg.cg(own, b, M=M and M(own), maxiter=maxiter, rtol=0)
            results.append(counts[threading.get_ident()])
        del ranks.stacked
        results[2].subtract(results[1])
        return results[2]

    with over(wide, DIVISIONS[2]) as team:
        A = team.csr_array(S, division=DIVISIONS[2])
        for M in (None, jacobi):
            for counted in team.each(lambda _, own, M=M: count(own, M), A):
                # The host waits for the sums, and for the entries that other ranks need. The second event of a product, the
                # copy of the entries received before, ended before the sums of the iteration before.
                assert {what: n for what, n in counted.items() if n} == {"reductions": 10, "reads": 10, "events": 20}


@pytest.mark.parametrize("division", DIVISIONS, ids=lambda division: f"{len(division) - 1}ranks")
def test_solutions_are_as_accurate_as_on_one_device(wide: cl.CommandQueue, division: list[int]) -> None:
    S, b = grid_with_jumps(20, 1e3), np.random.default_rng(1).standard_normal(400)
    A = csr_array(S, queue=wide)
    for rtol, M in ((1e-6, None), (1e-12, None), (1e-12, linalg.jacobi)):
        steps: list[int] = []
        alone, info = linalg.cg(A, b, M=M and M(A), rtol=rtol, callback=lambda _, steps=steps: steps.append(1))
        assert info == 0
        x, info = solve_over(wide, division, S, b, M and jacobi, rtol=rtol, maxiter=int(1.03 * len(steps)))
        assert info == 0
        assert true_residual(S, b, x) <= 1.2 * max(rtol, true_residual(S, b, alone))


def by_root(S: Any) -> Callable[[Any], Any]:
    """Return a function that makes the preconditioner ``S ** -0.5`` of a diagonal S, which leaves the system ill-conditioned."""

    def make(own: Any) -> Any:
        roots = distributed.vector(S.diagonal()[own.rows.part(own.comm.rank)] ** -0.5, own.comm, own.rows)
        return lambda r: r * roots

    return make


@pytest.mark.parametrize(("n", "power", "maxiter", "limit"), [(60, 4, 400, 1e-14), (100, 6, 1400, 1e-13), (60, 12, 900, 1e-11)])
def test_replacement_keeps_the_attainable_accuracy(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, n: int, power: int, maxiter: int, limit: float
) -> None:
    # Iterated on far below the attainable accuracy: by Chronopoulos and Gear alone the true residual stagnates above plain CG's.
    S, b, division = scipy.sparse.diags_array(np.logspace(0, power, n)).tocsr(), np.ones(n), [0, n // 3, n // 3, n]
    A, options = csr_array(S, queue=wide), {"rtol": 1e-300, "maxiter": maxiter}
    if power < 12:
        alone = true_residual(S, b, linalg.cg(A, b, callback=lambda _: None, **options)[0])
        assert alone < limit
        assert true_residual(S, b, solve_over(wide, division, S, b, **options)[0]) <= 3 * alone
    M = csr_array(scipy.sparse.diags_array(S.diagonal() ** -0.5).tocsr(), queue=wide)
    options["maxiter"] = 2 * maxiter // 3
    alone = true_residual(S, b, linalg.cg(A, b, M=M, callback=lambda _: None, **options)[0])
    assert alone < limit
    assert true_residual(S, b, solve_over(wide, division, S, b, by_root(S), **options)[0]) <= 1.5 * alone
    monkeypatch.setattr(one_reduction._Deviation, "requires_replacement", lambda *_: False)
    assert true_residual(S, b, solve_over(wide, division, S, b, by_root(S), **options)[0]) > 2 * alone


def test_info_is_by_the_true_residual(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a bound of the deviation the recurrence ends too early; the true residual is then replaced, and iterations go on.
    monkeypatch.setattr(one_reduction._Deviation, "requires_replacement", lambda *_: False)
    b, division = np.ones(100), [0, 33, 100]
    for part in (0.0, 0.01, 0.02):
        S = scipy.sparse.diags_array(np.logspace(0, 6, 100) * (1 + part * np.sin(np.arange(100)))).tocsr()
        x, info = solve_over(wide, division, S, b, by_root(S), rtol=1e-13, maxiter=6000)
        assert info == 0
        assert true_residual(S, b, x) <= 1e-13
    assert solve_over(wide, division, S, b, by_root(S), rtol=1e-13, maxiter=100)[1] == 100


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64, np.complex128])
def test_every_dtype(queue: cl.CommandQueue, dtype: Any) -> None:
    if np.dtype(dtype).name in ("float64", "complex128") and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    S = grid_with_jumps(20, 10.0).astype(dtype)
    if S.dtype.kind == "c":
        phases = scipy.sparse.diags_array(np.exp(1j * np.arange(400)).astype(dtype))
        S = (phases @ S @ phases.conj()).tocsr()
    b = (np.arange(400) % 7 - 2.5).astype(dtype) * dtype(1j if S.dtype.kind == "c" else 1)
    for rtol in (1e-3, 20 * np.finfo(dtype).eps):
        alone, info = linalg.cg(csr_array(S, queue=queue), b, rtol=rtol)
        assert info == 0
        for division in (DIVISIONS[2], DIVISIONS[-1]):
            x, info = solve_over(queue, division, S, b, rtol=rtol)
            assert info == 0
            assert x.dtype == dtype
            assert true_residual(S, b, x) <= 2 * max(rtol, true_residual(S, b, alone))


def test_one_rank_iterates_as_one_device(queue: cl.CommandQueue) -> None:
    S = grid_with_jumps(20, 10.0).astype(np.float32)
    b = (np.arange(400) % 7 - 2.5).astype(np.float32)
    for options in ({}, {"x0": b}, {"maxiter": 5}):
        # Without one launch for all iterations, which ranks have not.
        alone, info = linalg.cg(csr_array(S, queue=queue), b, callback=lambda _: None, **options)
        x, of_ranks = solve_over(queue, [0, 400], S, b, **options)
        assert of_ranks == info
        np.testing.assert_array_equal(x, alone)


def test_edges(wide: cl.CommandQueue) -> None:
    S, b, division = grid_with_jumps(20, 10.0), np.arange(400) % 7 - 2.5, [0, 150, 150, 400]
    wanted, _ = linalg.cg(csr_array(S, queue=wide), b, rtol=1e-12)
    # A first guess that is good enough, or the solution but for a digit; no right-hand side.
    x, info = solve_over(wide, division, S, b, x0=wanted, rtol=1e-10)
    assert info == 0
    np.testing.assert_array_equal(x, wanted)
    x, info = solve_over(wide, division, S, b, x0=wanted + 1e-6, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(x, wanted, rtol=1e-9)
    x, info = solve_over(wide, division, S, 0 * b, x0=wanted)
    assert info == 0
    assert not x.any()
    assert solve_over(wide, division, S, b, maxiter=0)[1] == 1
    seen: list[Any] = []
    with over(wide, division) as team:
        A = team.csr_array(S, division=division)
        x, info = team.run(lambda own: linalg.cg(own, b, maxiter=7, callback=lambda x: seen.append((own.comm.rank, x))), A)
        assert info == 7
        assert [rank for rank, _ in seen].count(1) == 7
        np.testing.assert_array_equal([x for rank, x in seen if rank == 1][-1], x)

        def with_nan(own: Any) -> tuple[int, int, Any]:
            own_b = b[own.rows.part(own.comm.rank)].copy()
            own_b[own_b.size // 2 :] = np.nan if own.comm.rank == 2 else 1
            x, info = linalg.cg(own, distributed.vector(own_b, own.comm, own.rows))
            # All ranks are still in step.
            return info, linalg.cg(own, b, rtol=1e-10)[1], x.own.get()

        for info, later, own_x in team.each(lambda _, own: with_nan(own), A):
            assert info == 4000
            assert later == 0
            assert not own_x.any()
