"""Solvers on matrices over ranks: the iterations of one device, by any division, with preconditioners."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg

from clsparse_py import BuildError, distributed, linalg
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._solvers.linalg import solvers

#: Divisions of 60 unknowns: one rank has none.
DIVISIONS = ([0, 60], [0, 10, 10, 60])


def system(dtype: Any = np.float64) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a Hermitian positive definite matrix with entries far from its diagonal, and b."""
    S = scipy.sparse.diags_array([-1.0, np.linspace(4, 6, 60), -1.0], offsets=[-1, 0, 1], shape=(60, 60)).tolil()
    S[3, 50] = S[50, 3] = 1.0
    b = np.arange(60) % 7 - 2.5
    result = S.tocsr().astype(dtype)
    return result, b.astype(dtype) * (1j if result.dtype.kind == "c" else 1)


def team_on(queue: cl.CommandQueue, division: list[int]) -> distributed.Team:
    return distributed.over([queue] * (len(division) - 1), time_limit=30)


@pytest.mark.any_platform
@pytest.mark.parametrize("method", solvers.__all__)
def test_iterations_are_those_of_one_device(queue: cl.CommandQueue, method: str) -> None:
    options: dict[str, Any] = {"rtol": 1e-10}
    solver = getattr(linalg, method)
    for dtype, division in ((np.float64, DIVISIONS[0]), (np.float64, DIVISIONS[1]), (np.complex128, DIVISIONS[1])):
        S, b = system(dtype)
        wanted, info = solver(S, b, **options)
        assert info == 0
        with team_on(queue, division) as team:
            A = team.csr_array(S, division=division)
            x, info = team.run(solver, A, team.vector(b, A.rows), **options)
            assert info == 0
            np.testing.assert_allclose(x.allgather(), wanted, rtol=1e-7)
            for M in (by_rank, by_vectors):
                x, info = team.run(precondition, A, S, b, solver, M, options)
                assert info == 0
                np.testing.assert_allclose(x, wanted, rtol=1e-7)


def by_rank(own: Any, _: Any) -> Any:
    return linalg.jacobi(own)


def by_vectors(own: Any, S: Any) -> Any:
    diagonal = distributed.vector(S.diagonal()[own.rows.part(own.comm.rank)], own.comm, own.rows)
    return lambda r: r / diagonal


def precondition(own: Any, S: Any, b: Any, solver: Any, M: Any, options: dict[str, Any]) -> Any:
    return solver(own, b, x0=b, M=M(own, S), **options)


@pytest.mark.any_platform
def test_cg_is_told_everything_else(queue: cl.CommandQueue) -> None:
    S, b = system()
    with team_on(queue, DIVISIONS[1]) as team:
        A = team.csr_array(S, division=DIVISIONS[1])
        inverse = team.csr_array(scipy.sparse.diags_array(1 / S.diagonal()).tocsr(), division=DIVISIONS[1])
        both = np.stack([b, b[::-1]], axis=1)
        x, info = team.run(lambda own, M: linalg.cg(own, both, M=M, x0="Mb", rtol=1e-10), A, inverse)
        assert info == 0
        np.testing.assert_allclose(S @ x, both, atol=1e-8)
        seen: list[Any] = []

        def followed(own: Any) -> Any:
            return linalg.cg(own, b, callback=lambda x: seen.append(x) if own.comm.rank == 0 else None, maxiter=3)

        _, info = team.run(followed, A)
        wanted: list[Any] = []
        scipy.sparse.linalg.cg(S, b, callback=lambda x: wanted.append(x.copy()), maxiter=3)
        assert info == 3
        np.testing.assert_allclose(seen, wanted)
        for wrong, error in (
            (lambda own: linalg.cg(own, b[:5]), ValueError),
            (lambda own: linalg.cg(own, b, M=np.eye(60)), TypeError),
            (lambda own: linalg.cg(own, b, M=lambda r: 3 * r.norm()), ValueError),
            (lambda own: linalg.cg(own, distributed.vector.zeros(distributed.by_rows(59, 3), own.comm)), ValueError),
        ):
            with pytest.raises(error):
                team.run(wrong, A)


@pytest.mark.any_platform
@pytest.mark.refusals
@pytest.mark.parametrize("plain", [True, False])
def test_a_refusal_on_one_rank_keeps_no_other_waiting(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    S, b = system()
    build, asked = programs.build, set[bool]()

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if own.refused and parameters.template == "vectors/sweep":
            asked.add(are_plain())
            if not (plain and are_plain()):
                raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    class Rank(threading.local):
        refused = False

    def solve(A: Any) -> Any:
        own.refused = A.comm.rank == 2
        try:
            return linalg.cg(A, b, rtol=1e-10, M=distributed.by_blocks(A, linalg.jacobi))
        except (BuildError, distributed.RankError) as error:
            return type(error).__name__

    own = Rank()
    with distributed.over([queue] * 3, time_limit=300) as team:
        A = team.csr_array(S, division=DIVISIONS[1])
        monkeypatch.setattr(programs, "build", refusing)
        result = team.each(lambda _, A: solve(A), A)
    assert asked == {False, True}
    if not plain:
        assert result == ["RankError", "RankError", "BuildError"]
        return
    for x, info in result:
        assert info == 0
        np.testing.assert_allclose(S @ x, b, atol=1e-8)


def test_ranks_go_on_after_a_wrong_argument(queue: cl.CommandQueue) -> None:
    S = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20), format="csr")

    def solve(A: Any) -> Any:
        results = []
        for wrong in ({"x0": np.ones(20 - A.comm.rank)}, {"x0": np.ones(3)}, {"M": 3}):
            with pytest.raises((distributed.RankError, ValueError, TypeError)) as caught:
                linalg.cg(A, np.ones(20), **wrong)
            results.append(caught.type.__name__)
        return results, linalg.cg(A, np.ones(20), rtol=1e-10)[0]

    with distributed.over([queue] * 2, time_limit=30) as team:
        (said, x), (of_other, _) = team.each(lambda _, A: solve(A), team.csr_array(S))
    assert said == ["RankError", "ValueError", "TypeError"]
    assert of_other == ["ValueError", "ValueError", "TypeError"]
    assert np.allclose(S @ x, 1)


@pytest.mark.any_platform
def test_ranks_agree_on_options(queue: cl.CommandQueue) -> None:
    S = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20), format="csr")
    b = np.ones(20)

    def solve(A: Any) -> list[tuple[str, str]]:
        last, result = A.comm.rank == A.comm.size - 1, []
        for solver, ours, others in (
            (linalg.cg, {"rtol": 1e-3}, {"rtol": 1e-9}),
            (linalg.cg, {}, {"atol": 1.0}),
            (linalg.bicgstab, {"maxiter": 3}, {"maxiter": 4}),
            (linalg.cg, {}, {"check_every": 2}),
            (linalg.cg, {}, {"callback": print}),
            (linalg.cg, {}, {"x0": b}),
            (linalg.cg, {}, {"M": lambda r: r}),
            (linalg.minres, {"shift": 0.5}, {}),
            (linalg.gmres, {"restart": 3}, {"restart": 4}),
            (linalg.gmres, {}, {"callback": print, "callback_type": "legacy"}),
            # Wrong on one rank alone.
            (linalg.gmres, {}, {"restart": 0}),
            (linalg.cg, {}, {"atol": -1.0}),
            (linalg.cg, {}, {"rtol": "small"}),
        ):
            with pytest.raises((distributed.RankError, ValueError)) as caught:
                solver(A, b, **(others if last else ours))
            result.append((caught.type.__name__, str(caught.value)))
        with pytest.raises(ValueError, match="solver: is cg on rank 0 and minres on rank 1"):
            (linalg.minres if last else linalg.cg)(A, b)
        with pytest.raises(ValueError, match=r"kind of b: is numpy\.ndarray on rank 0 and list on rank 1"):
            linalg.cg(A, list(b) if last else b)
        with pytest.raises(ValueError, match="rtol: must be a number that is not negative, is nan"):
            linalg.cg(A, b, rtol=np.nan)
        A.comm.agree(number=np.nan)
        return [*result, ("0", str(linalg.cg(A, b, rtol=1e-10)[1]))]

    with distributed.over([queue] * 2, time_limit=30) as team:
        ours, others = team.each(lambda _, A: solve(A), team.csr_array(S))
    names = ["rtol", "atol", "maxiter", "check_every", "callback", "x0", "kind of M", "shift", "restart"]
    for name, (error, message), (_, of_other) in zip([*names, "maxiter counts columns"], ours, others, strict=False):
        assert error == "ValueError"
        assert message.startswith(f"{name}: is ")
        assert message == of_other
    for name, (error, message), (_, of_other) in zip(("restart", "atol"), ours[10:12], others[10:12], strict=True):
        assert error == "RankError"
        assert f"rank 1 failed: ValueError: {name}" in message
        assert of_other.startswith(name)
    assert [result[0] for result in ours[12:]] == ["RankError", "0"]
    assert ours[-1] == others[-1] == ("0", "0")


def test_solutions_do_not_depend_on_the_size_of_values(queue: cl.CommandQueue) -> None:
    single, double = (1.0, 1e30, 1e-30, 2.0**-90), (1.0, 1e150, 1e-150, 2.0**-400)
    others = (linalg.minres, {}), (linalg.gmres, {}), (linalg.bicgstab, {})
    with team_on(queue, DIVISIONS[1]) as team:
        for dtype, scales in ((np.float32, single), (np.complex64, single), (np.float64, double), (np.complex128, double)):
            if scales is double and not describe(queue.device).fp64:
                continue
            S, b = system(dtype)
            for solver, options in ((linalg.cg, {}), *others):
                solutions = []
                for scale in scales:
                    A = team.csr_array((S * scale).astype(dtype), division=DIVISIONS[1])
                    x, info = team.run(solver, A, team.vector((b * scale).astype(dtype), A.rows), **options)
                    assert info == 0
                    solutions.append(x.allgather())
                rounding = 64 * np.finfo(dtype).eps * np.abs(solutions[0]).max()
                for x in solutions[1:]:
                    np.testing.assert_allclose(x, solutions[0], rtol=0, atol=rounding)
                np.testing.assert_array_equal(solutions[-1], solutions[0])
