"""Solvers on the device against SciPy's: info, iterations, solutions, and what is no system that has one."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg as of_scipy
from platforms import make_queue
from pyopencl import array as cl_array
from supposed import suppose

import clsparse_py
from clsparse_py import BuildError, linalg, memory_info
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._solvers.krylov import one_group
from clsparse_py._solvers.krylov.thresholds import Thresholds
from clsparse_py._solvers.krylov.watch import Watch
from clsparse_py._solvers.linalg import solvers
from clsparse_py._solvers.linalg.problem import Problem

pytestmark = pytest.mark.any_platform

METHODS = tuple(solvers.__all__)
#: The methods, and the form of conjugate gradients that several ranks iterate.
METHODS_AND_OF_RANKS = *METHODS, "cg of ranks"


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def choose_form(monkeypatch: pytest.MonkeyPatch, method: str) -> str:
    """Let systems on one device be solved as ranks solve them if the method's name says so; return the solver's name."""
    solver, _, of_ranks = method.partition(" of ")
    if of_ranks:
        monkeypatch.setattr(Problem, "all_sum", np.asarray)
    return solver


def system(dtype: Any = np.float64, n: int = 12) -> tuple[scipy.sparse.csr_array, np.ndarray[Any, Any]]:
    """Return a Hermitian positive definite matrix of a grid of n x n points, with a diagonal that varies, and b."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    result = scipy.sparse.kronsum(step, step).tocsr() + scipy.sparse.diags_array(np.linspace(0, 1, n * n))
    b = np.arange(n * n) % 7 - 2.5
    if np.dtype(dtype).kind == "c":
        turn = scipy.sparse.diags_array(np.exp(1j * np.arange(n * n)))
        result, b = turn @ result @ turn.conj(), b * (1 + 0.5j)
    return scipy.sparse.csr_array(result).astype(dtype), b.astype(dtype)


def calls(solver: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, int, int]:
    """Return x, info, and how often the callback was called."""
    seen: list[None] = []
    if solver.__name__ == "gmres":
        options["callback_type"] = "pr_norm"
    x, info = solver(*arguments, callback=lambda _: seen.append(None), **options)
    return x, info, len(seen)


def scipys_minres(solver: Any, host: Any, b: Any, rtol: float, maxiter: int = 100, **options: Any) -> tuple[Any, int, int]:
    """Return as `calls` does what SciPy's minres finds if it ends as its docstring says, and not by its estimates of norms."""
    solutions: list[Any] = [b * np.nan]
    solver(host, b, rtol=1e-15, maxiter=maxiter, callback=lambda x: solutions.append(x.copy()), **options)
    is_small = [bool(np.linalg.norm(b - host @ x) <= rtol * np.linalg.norm(b)) for x in solutions]
    n = is_small.index(True) if True in is_small else maxiter
    return solutions[n], 0 if is_small[n] else n, n


@pytest.mark.parametrize("method", METHODS_AND_OF_RANKS)
def test_iterations_are_scipys(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    method = choose_form(monkeypatch, method)
    for dtype, rtol in (("float64", 1e-9), ("complex128", 1e-9), ("float32", 1e-5)):
        host, b = system(dtype)
        A = clsparse_py.csr_array(host, queue=wide)
        M = scipy.sparse.diags_array(1 / host.diagonal()).tocsr()
        cases: list[dict[str, Any]] = [{}, {"M": M}, {"x0": b, "M": M}, {"maxiter": 4}, {"atol": 1.0}, {"x0": "Mb", "M": M}]
        for case in cases:
            if method == "minres" and ("atol" in case or dtype == "complex128"):
                continue  # it has no such bound; SciPy's takes complex matrices for symmetric ones
            by_scipy = scipys_minres if method == "minres" else calls
            wanted, info, n = by_scipy(getattr(of_scipy, method), host, b, rtol=rtol, **case)
            result, ours, n_ours = calls(getattr(linalg, method), A, b, rtol=rtol, **case)
            assert ours == info, case
            assert abs(n_ours - n) <= (2 if dtype == "float32" else 1)
            assert result.dtype == np.dtype(dtype)  # SciPy's minres computes in double precision on the way
            near = {"rtol": 1e-3, "atol": 1e-3 if dtype == "float32" else 1e-7}
            np.testing.assert_allclose(result, wanted, **near)
            # Without a callback the norm is read late, and x is that of the same iteration.
            for every in ({}, {"check_every": 5}) if method != "gmres" else ({},):
                again, info = getattr(linalg, method)(A, b, rtol=rtol, **every, **case)
                assert info == ours
                # One work-group makes the iterations of a small system, and adds up in another order.
                np.testing.assert_allclose(again, result, **near)


@pytest.mark.parametrize("method", METHODS)
def test_vectors_are_given_back_as_they_came(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    x, _ = solver(A, b)
    on_device = cl_array.to_device(wide, b)
    shown: list[Any] = []
    kind = {"callback_type": "x"} if method == "gmres" else {}
    result, info = solver(A, on_device, x0=0 * on_device, callback=shown.append, **kind)
    assert info == 0
    assert all(isinstance(array, cl_array.Array) for array in (result, *shown))
    assert result.events  # by which other queues wait for it
    # With a callback each pass is a launch, which adds up in another order than one work-group does.
    np.testing.assert_allclose(result.get(), x, rtol=1e-12)
    np.testing.assert_array_equal(on_device.get(), b)
    np.testing.assert_array_equal(solver(A, b[:, None])[0], x)
    # Views, other dtypes, lists.
    np.testing.assert_array_equal(solver(A, cl_array.to_device(wide, np.repeat(b, 2))[::2])[0].get(), x)
    np.testing.assert_array_equal(solver(A, (2 * b).astype(np.int32))[0], solver(A, list(2 * b))[0])
    both = np.stack([b, b[::-1]], axis=1)
    several, info = solver(A, both, x0=np.zeros_like(both))
    assert info == 0
    np.testing.assert_array_equal(several, np.stack([x, solver(A, b[::-1])[0]], axis=1))
    on_device = cl_array.to_device(wide, both)
    np.testing.assert_array_equal(solver(A, on_device)[0].get(), several)


@pytest.mark.parametrize("method", METHODS)
def test_operators_of_any_kind(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = system()
    wanted, _ = solver(clsparse_py.csr_array(host, queue=wide), b)
    inverse = 1 / host.diagonal()
    M = clsparse_py.csr_array(scipy.sparse.diags_array(inverse).tocsr(), queue=wide)
    preconditioned, _ = solver(clsparse_py.csr_array(host, queue=wide), b, M=M)
    on_device = cl_array.to_device(wide, inverse)
    for A in (host, host.tocsc(), host.tocoo(), clsparse_py.csc_array(host.tocsc(), queue=wide), of_scipy.aslinearoperator(host)):
        np.testing.assert_allclose(solver(A, cl_array.to_device(wide, b))[0].get(), wanted, rtol=1e-4, atol=1e-7)
    operators = [
        of_scipy.LinearOperator(host.shape, lambda x: x * inverse, dtype=host.dtype),
        lambda x: x * on_device,
        lambda x: x.get() * inverse,
        scipy.sparse.diags_array(inverse),
    ]
    for operator in operators:
        result, info = solver(clsparse_py.csr_array(host, queue=wide), b, M=operator)
        assert info == 0
        np.testing.assert_allclose(result, preconditioned, rtol=1e-6)
    with pytest.raises(ValueError, match="result of shape"):
        solver(host, b, M=lambda x: x[:3])
    # Of another precision, or of integers.
    single = clsparse_py.csr_array(host.astype(np.float32), queue=wide)
    for operator in (M, operators[0], operators[2], scipy.sparse.eye_array(144, dtype=np.int64)):
        result, info = solver(single, b.astype(np.float32), M=operator)
        assert info == 0
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, wanted, rtol=1e-2, atol=1e-3)
    with pytest.raises(TypeError, match="complex"):
        solver(host, b, M=M * 1j)


@pytest.mark.parametrize("method", METHODS)
def test_systems_without_a_solution_end(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    with_nan = b.copy()
    with_nan[3] = np.nan
    assert solver(A, with_nan)[1] > 0
    assert solver(A, b, x0=with_nan)[1] > 0
    assert solver(A, np.where(np.isnan(with_nan), np.inf, b))[1] > 0
    # Singular, with b outside its range; a zero diagonal; indefinite; NaN in A.
    singular = host.copy()
    singular.data[singular.indptr[5] : singular.indptr[6]] = 0
    skew = scipy.sparse.kron(scipy.sparse.eye_array(72), np.array([[0.0, 1.0], [-1.0, 0.0]])).tocsr()
    for case, wanted in ((singular, None), (skew, None), (0 * host, None), (host * np.nan, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there, wanted = getattr(of_scipy, method)(case, b, maxiter=30)
            if method == "minres" and np.linalg.norm(b - case @ there) > 1e-3:
                wanted = 30  # SciPy says 0 of least squares
        info = solver(clsparse_py.csr_array(case, queue=wide), b, maxiter=30)[1]
        assert np.sign(info) == np.sign(wanted)
    indefinite = host - 3 * scipy.sparse.eye_array(144)
    x, info = solver(clsparse_py.csr_array(indefinite, queue=wide), b, rtol=1e-8, maxiter=300 if method != "gmres" else 20)
    assert info != 0 or np.linalg.norm(b - indefinite @ x) < 1e-6 * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_what_needs_no_iteration(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    for case in ({}, {"x0": b}):
        x, info = solver(A, 0 * b, **case)
        assert info == 0
        assert not x.any()
    x = of_scipy.spsolve(host, b)
    result, info, n = calls(solver, A, b, x0=x)
    if method != "minres":  # whose tests need an iteration
        assert (info, n) == (0, 0)
        np.testing.assert_array_equal(result, x)
    result, info = solver(A, b, maxiter=0)
    assert info == 1
    assert not result.any()
    result, info = solver(A, b, x0=x, maxiter=0)
    assert info == 0
    np.testing.assert_array_equal(result, x)
    empty = clsparse_py.csr_array((0, 0), queue=wide)
    for right in (np.zeros(0), np.zeros((0, 2)), cl_array.empty(wide, 0, np.float64)):
        result, info = solver(empty, right)
        assert info == 0
        assert result.shape == right.shape


@pytest.mark.parametrize("method", METHODS)
def test_wrong_arguments(queue: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = system(np.float32)
    A = clsparse_py.csr_array(host, queue=queue)
    other = cl.Context([queue.device])
    elsewhere = cl_array.to_device(cl.CommandQueue(other), b)
    wrong: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("A: must be square", (A[:5], b), {}),
        ("b: must have 144", (A, b[:5]), {}),
        ("x0: must have", (A, b, b[:5]), {}),
        ("x0: must be an array or 'Mb'", (A, b, "b"), {}),
        ("x0: must have b's shape", (A, np.stack([b, b], 1), b), {}),
        ("M: must be 144 x 144", (A, b), {"M": A[:5, :5]}),
        *([("atol: must be", (A, b), {"atol": tolerance}) for tolerance in (-1, "legacy", np.nan)] if method != "minres" else []),
        *([("check_every: must be at least 1", (A, b), {"check_every": 0})] if method != "gmres" else []),
        ("rtol: must be a number that is not negative", (A, b), {"rtol": -1e-5}),
        ("rtol: must be a number that is not negative", (A, b), {"rtol": np.nan}),
        ("maxiter: must not be negative", (A, b), {"maxiter": -1}),
        ("b: lives in another context", (A, elsewhere), {}),
    ]
    for message, arguments, options in wrong:
        with pytest.raises(ValueError, match=message):
            solver(*arguments, **options)


@pytest.mark.parametrize("method", METHODS)
def test_kernels_of_other_devices_and_queues_without_order(
    wide: cl.CommandQueue, method: str, take_as: Callable[..., None]
) -> None:
    solver = getattr(linalg, method)
    host, b = system()
    wanted = of_scipy.spsolve(host, b)
    unordered = make_queue(wide, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    A = clsparse_py.csr_array(host, queue=unordered)
    x, info = solver(A, cl_array.to_device(unordered, b), rtol=1e-10)
    assert info == 0
    assert x.queue is unordered
    np.testing.assert_allclose(x.get(), wanted, rtol=1e-6)
    A = clsparse_py.csr_array(host, queue=wide)
    assert A @ b is not None  # planned for the device that it is
    take_as(type="gpu")
    results = [solver(A, b, rtol=1e-10, M=M) for M in (None, scipy.sparse.eye_array(144), None)]
    assert [info for _, info in results] == [0, 0, 0]
    for x, _ in results:
        np.testing.assert_allclose(x, wanted, rtol=1e-6)
    np.testing.assert_array_equal(results[0][0], results[2][0])


def test_gmres_calls_back_as_scipy_does(wide: cl.CommandQueue) -> None:
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    for options in ({"callback_type": "pr_norm"}, {"callback_type": "legacy", "maxiter": 13}, {"callback_type": "x"}, {}):
        of_each: list[list[Any]] = []
        for solver, matrix in ((of_scipy.gmres, host), (linalg.gmres, A)):
            seen: list[Any] = []
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                x, info = solver(matrix, b, restart=7, callback=lambda told, seen=seen: seen.append(np.copy(told)), **options)
            assert [warning.category for warning in said] == ([] if options else [DeprecationWarning])
            of_each.append([info, x, *seen])
        assert len(of_each[0]) == len(of_each[1])
        for wanted, result in zip(*of_each, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-9)
    for wrong, message in (({"callback_type": "y"}, "callback_type: must be"), ({"restart": 0}, "restart: must be at least 1")):
        with pytest.raises(ValueError, match=message):
            linalg.gmres(A, b, **wrong)


def test_minres_of_complex_and_shifted_matrices(wide: cl.CommandQueue, capsys: pytest.CaptureFixture[str]) -> None:
    host, b = system(np.complex128)
    A = clsparse_py.csr_array(host, queue=wide)
    x, info = linalg.minres(A, b, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(host @ x, b, atol=1e-6)
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    # Between two eigenvalues: indefinite.
    for shift in (-1.0, 2.6):
        wanted, of_wanted = of_scipy.minres(host, b, shift=shift, rtol=1e-10)
        x, info = linalg.minres(A, b, shift=shift, rtol=1e-10)
        assert info == of_wanted == 0
        np.testing.assert_allclose(x, wanted, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="not positive definite"):
        linalg.minres(A, b, M=-scipy.sparse.eye_array(144))
    with pytest.raises(ValueError, match="positive definite"):
        linalg.minres(A, b, M=scipy.sparse.diags_array(np.where(np.arange(144) == 7, -1e-3, 1.0)), rtol=1e-12)
    assert linalg.minres(A, cl_array.to_device(wide, b), show=True, check=True)[1] == 0
    assert "minres" in capsys.readouterr().out
    with pytest.raises(ValueError, match="symmetric"):
        linalg.minres(A + scipy.sparse.diags_array(np.ones(143), offsets=1, shape=(144, 144)), b, check=True)


def test_the_host_looks_as_often_as_it_is_told_to(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host, b = system()
    reads: list[None] = []
    read = Watch._enqueue_read

    def counted(self: Watch, told: cl.Event) -> Any:
        reads.append(None)
        return read(self, told)

    monkeypatch.setattr(Watch, "_enqueue_read", counted)
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_rows_together=0))
    for every, wanted in ((1, 21), (5, 5), (30, 2)):
        linalg.cg(clsparse_py.csr_array(host, queue=wide), b, rtol=0, maxiter=20, check_every=every)
        assert len(reads) == wanted
        reads.clear()


@pytest.mark.parametrize("method", ["cg", "bicgstab"])
def test_a_small_system_is_solved_in_one_launch(wide: cl.CommandQueue, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = getattr(linalg, method)
    launches: list[int] = []
    once = one_group.Iterations.legal
    monkeypatch.setattr(one_group.Iterations, "legal", lambda *options: launches.append(1) or once(*options))
    for dtype in ("float32", "complex128"):
        host, b = system(dtype)
        A = clsparse_py.csr_array(host, queue=wide)
        long = clsparse_py.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), A.shape)
        wide_A = clsparse_py.csr_array(host.astype(np.result_type(dtype, "float64")), queue=wide)
        M = linalg.jacobi(A)
        for of, options in ((A, {}), (long, {"M": M}), (A, {"M": A}), (A, {"maxiter": 5}), (A, {"x0": b})):
            x, info = solver(of, b, rtol=1e-5, **options)
            assert len(launches) == 1
            with monkeypatch.context() as patch:
                patch.setattr(Thresholds, "of", suppose(Thresholds, max_entries_together=0))
                wanted, wanted_info = solver(of, b, rtol=1e-5, **options)
            assert len(launches) == 1
            assert info == wanted_info, (of, options)
            np.testing.assert_allclose(x, wanted, rtol=1e-3, atol=1e-3 if dtype == "float32" else 1e-9)
            launches.clear()
        if dtype == "float32":  # values of another dtype than the vectors'
            solver(A, b.astype(np.float64))
            assert not launches
            solver(wide_A, b)
            assert len(launches) == 1
            launches.clear()
    # More iterations than one launch makes, and numbers that are none.
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, together_at_once=3))
    x, info = solver(wide_A, b, rtol=1e-8)
    assert info == 0
    np.testing.assert_allclose(wide_A @ x, b, atol=1e-6)
    b[3] = np.nan
    assert solver(wide_A, b)[1] > 0


@pytest.mark.refusals
@pytest.mark.parametrize("plain", [True, False])
def test_plain_kernels_solve_where_others_are_refused_or_else_scipy(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, plain: bool
) -> None:
    host, b = system()
    A = clsparse_py.csr_array(host, queue=wide)
    wanted, _, n_calls = calls(of_scipy.cg, host, b, x0=b)
    build, asked = programs.build, list[bool]()

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if parameters.template in ("vectors/sweep", "vectors/iterations"):
            asked.append(are_plain())
            if not (plain and are_plain()):
                raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    monkeypatch.setattr(programs, "build", refusing)
    caplog.set_level(logging.INFO)
    for right in (b, cl_array.to_device(wide, b)):
        x, info, n_seen = calls(linalg.cg, A, right, x0=right)
        assert info == 0
        assert abs(n_seen - n_calls) < 2  # not those of two attempts
        np.testing.assert_allclose(x.get() if right is not b else x, wanted, rtol=1e-3, atol=1e-3)
    assert set(asked) == {False, True}
    assert any("runs by plain kernels" in record.message for record in caplog.records)
    # A small system without a callback is one launch, of which there is no plain kernel.
    np.testing.assert_allclose(linalg.cg(A, b)[0], wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", METHODS_AND_OF_RANKS)
def test_solutions_do_not_depend_on_the_size_of_values(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    solver = getattr(linalg, choose_form(monkeypatch, method))
    single, double = (1e30, 1e-30, 2.0**60), (1e150, 1e-150, 2.0**-300)
    for dtype, scales in (("float32", single), ("complex64", single), ("float64", double), ("complex128", double)):
        if dtype in ("float64", "complex128") and not describe(queue.device).fp64:
            continue
        host, b = system(np.complex128 if dtype[0] == "c" else np.float64)
        for case in ("", "jacobi", "M as it is", "x0", "operator"):
            solutions, infos = [], []
            for scale in (1.0, *scales):
                scaled, right = (host * scale).astype(dtype), (b * scale).astype(dtype)
                A: Any = clsparse_py.csr_array(scaled, queue=queue)
                more: dict[str, Any] = {"callback": (seen := []).append} if case == "x0" else {}
                if more and method == "gmres":
                    more["callback_type"] = "x"
                if case == "operator":
                    A = of_scipy.aslinearoperator(scaled)
                elif case:
                    diagonal = scipy.sparse.diags_array(1 / host.diagonal().astype(dtype)).tocsr()
                    inverse = clsparse_py.csr_array(diagonal, queue=queue)
                    more |= {"jacobi": {"M": linalg.jacobi(A)}, "M as it is": {"M": inverse}, "x0": {"x0": b.astype(dtype)}}[case]
                place = cl_array.to_device(queue, right)
                x, info = solver(A, place, rtol=1e-4, **more)
                solutions.append(x.get())
                infos.append((info, len(seen) if more and case == "x0" else 0))
                if case == "x0":
                    # In the units of the system. bicgstab ends between two iterations.
                    np.testing.assert_allclose(seen[-1].get(), solutions[-1], rtol=0.1, atol=0.1)
            assert {info for info, _ in infos} == {0}
            assert max(n for _, n in infos) - min(n for _, n in infos) <= 1
            # Values times s are rounded, and nothing else.
            rounding = 64 * np.finfo(dtype).eps * np.abs(solutions[0]).max()
            for x in solutions[1:]:
                np.testing.assert_allclose(x, solutions[0], rtol=0, atol=rounding)
            np.testing.assert_array_equal(solutions[-1], solutions[0])


@pytest.mark.parametrize("method", METHODS_AND_OF_RANKS)
def test_an_exact_preconditioner_takes_a_product_more_than_scipys(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    name, host, b = choose_form(monkeypatch, method), *system()
    M = of_scipy.LinearOperator(host.shape, of_scipy.splu(host.tocsc()).solve, dtype=host.dtype)
    counts = []
    for solver in (getattr(of_scipy, name), getattr(linalg, name)):
        products: list[None] = []

        def multiplied(x: Any, products: list[None] = products) -> Any:
            products.append(None)
            return host @ x

        A = of_scipy.LinearOperator(host.shape, multiplied, dtype=host.dtype)
        right = cl_array.to_device(wide, b) if solver.__module__.startswith("clsparse") else b
        _, info = solver(A, right, M=M, rtol=1e-8)
        assert info == 0
        counts.append(len(products))
    assert counts[1] <= counts[0] + 1


@pytest.mark.parametrize("method", METHODS_AND_OF_RANKS)
def test_a_solution_is_one_and_what_is_none_leaves_x(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    solver = getattr(linalg, choose_form(monkeypatch, method))
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    host = scipy.sparse.kronsum(step, step).tocsr()
    for dtype in ("float32", "float64"):
        for rtol in (1e-3, 1e-5, 1e-10, 0):
            A, b = host.astype(dtype), np.ones(1600, dtype)
            # What does not converge would go on to 16,000 iterations; gmres counts those between its restarts as one.
            most = {"maxiter": 30 if method.startswith("gmres") else 600}
            x, info = solver(clsparse_py.csr_array(A, queue=wide), b, rtol=rtol, **most)
            residual = np.linalg.norm(b - host @ x.astype(float))
            rounding = 10 * np.finfo(dtype).eps * (8 * np.linalg.norm(x) + 40)
            assert info or residual <= 1.001 * (rtol * 40 + rounding)
            assert not (info and rtol > 1e-5)
    if method == "minres":
        # Of least squares x is kept, though the method went on from there.
        ring = (host * 0 + scipy.sparse.csgraph.laplacian(abs(host - 4 * scipy.sparse.eye_array(1600)))).tocsr()
        b = np.random.default_rng(0).standard_normal(1600)
        x, info = solver(clsparse_py.csr_array(ring, queue=wide), b, rtol=1e-8)
        assert info > 0
        np.testing.assert_allclose(ring @ x, b - b.mean(), atol=1e-4)
    if method == "bicgstab":
        # A breakdown on the way to a solution: SciPy's info is -10.
        breaking = clsparse_py.csr_array(np.array([[0.0, -2.0, 0.0], [2.0, -2.0, 2.0], [-2.0, 1.0, 1.0]]), queue=wide)
        x, info = solver(breaking, np.array([2.0, -1.0, -1.0]), rtol=1e-8)
        assert info == 0
        np.testing.assert_allclose(x, [-0.5, -1, -1], rtol=1e-7)
    with_nan = np.diag([1.0, np.nan, 3.0])
    for first in (None, np.array([1.0, 2.0, 3.0])):
        x, info = solver(clsparse_py.csr_array(with_nan, queue=wide), np.ones(3), x0=first)
        assert info > 0
        np.testing.assert_array_equal(x, np.zeros(3) if first is None else first)


@pytest.mark.parametrize("method", METHODS_AND_OF_RANKS)
def test_a_solve_leaves_no_vectors_to_the_collector_of_cycles(
    wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    solver = getattr(linalg, choose_form(monkeypatch, method))
    host, b = system()
    A, right = clsparse_py.csr_array(host, queue=wide), cl_array.to_device(wide, b)
    solver(A, right)
    gc.collect()
    used = memory_info(wide).used
    gc.disable()
    try:
        solver(A, right)
        assert memory_info(wide).used == used
    finally:
        gc.enable()


@pytest.mark.parametrize("solver", [linalg.cg, linalg.bicgstab])
def test_a_small_system_is_scaled_and_checked_in_the_launch_that_solves_it(
    wide: cl.CommandQueue, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, b = system()
    launches: list[str] = []
    enqueue = cl.enqueue_nd_range_kernel

    def counted(queue: cl.CommandQueue, kernel: cl.Kernel, *args: Any, **named: Any) -> cl.Event:
        if not kernel.function_name.startswith("csr_convert"):
            launches.append(kernel.function_name)
        return enqueue(queue, kernel, *args, **named)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", counted)
    # Values that are far from the limits stay as they are; of others x is scaled behind.
    for scale, wanted in ((1.0, 2), (2.0**300, 3)):
        A, right = clsparse_py.csr_array(host * scale, queue=wide), cl_array.to_device(wide, b)
        solver(A, right)
        launches.clear()
        x, info = solver(A, right, rtol=1e-8)
        assert info == 0
        assert len(launches) == wanted, launches
        np.testing.assert_allclose(host @ x.get() * scale, b, atol=1e-6)
