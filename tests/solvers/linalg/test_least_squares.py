"""Least squares on the device against SciPy's: what is returned, iterations, and what has no solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg as of_scipy
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import BuildError, linalg
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform

METHODS = ("lsqr", "lsmr")


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def problem(shape: tuple[int, int], dtype: Any = np.float64) -> tuple[scipy.sparse.csr_array, np.ndarray[Any, Any]]:
    """Return a matrix with entries off the diagonal, of small condition, and b."""
    rng = np.random.default_rng(0)
    result = 0.3 * scipy.sparse.random_array(shape, density=0.05, rng=rng) + scipy.sparse.diags_array(
        np.linspace(1, 4, min(shape)), shape=shape
    )
    b = rng.standard_normal(shape[0])
    if np.dtype(dtype).kind == "c":
        result, b = result + 0.3j * scipy.sparse.random_array(shape, density=0.05, rng=rng), b * (1 + 0.5j)
    return result.tocsr().astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("method", METHODS)
def test_all_results_are_scipys(wide: cl.CommandQueue, method: str) -> None:
    ours, theirs = getattr(linalg, method), getattr(of_scipy, method)
    limit = "iter_lim" if method == "lsqr" else "maxiter"
    for dtype in ("float64", "complex128", "float32"):
        near = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float32" else {"rtol": 1e-6, "atol": 1e-9}
        for shape in ((90, 50), (50, 90), (60, 60)):
            host, b = problem(shape, dtype)
            A = clsparse_py.csr_array(host, queue=wide)
            cases: list[dict[str, Any]] = [
                {}, {"damp": 0.3}, {"x0": np.ones(shape[1], dtype)}, {"conlim": 3.0}, {limit: 3}, {limit: 0},
                {"calc_var": True} if method == "lsqr" else {"atol": 1e-3},
            ]  # fmt: skip
            for case in cases:
                wanted, result = theirs(host, b, **case), ours(A, b, **case)
                assert len(wanted) == len(result)
                assert result[0].dtype == np.dtype(dtype)
                assert result[1:3] == wanted[1:3], (dtype, shape, case)
                for which, (one, other) in enumerate(zip(result, wanted, strict=True)):
                    if shape[0] <= shape[1] and 3 <= which <= 7 and which not in (5, 6) and "damp" not in case:
                        continue  # norms of a residual that rounding alone makes
                    if method == "lsqr" and case == {"calc_var": True} and dtype == "complex128" and which == 9:
                        assert one.dtype == np.float64  # SciPy's are squares of complex numbers
                        continue
                    np.testing.assert_allclose(one, other, **near)
                again = ours(A, b, **case, check_every=5)
                for one, other in zip(result, again, strict=True):
                    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_operands_of_any_kind(wide: cl.CommandQueue, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    solver = getattr(linalg, method)
    host, b = problem((90, 50))
    A = clsparse_py.csr_array(host, queue=wide)
    wanted = solver(A, b)
    for given in (host, host.tocsc(), clsparse_py.csc_array(host, queue=wide), clsparse_py.coo_array(host, queue=wide)):
        np.testing.assert_allclose(solver(given, b)[0], wanted[0], rtol=1e-7)
    for given in (of_scipy.aslinearoperator(host), linalg.aslinearoperator(A)):
        np.testing.assert_allclose(solver(given, b)[0], wanted[0], rtol=1e-7)
    on_device = cl_array.to_device(wide, b)
    result = solver(A, on_device, x0=cl_array.zeros(wide, 50, np.float64))
    assert all(isinstance(array, cl_array.Array) for array in (result[0], *(result[9:])))
    np.testing.assert_array_equal(result[0].get(), wanted[0])
    np.testing.assert_array_equal(solver(A, b[:, None])[0], wanted[0])
    np.testing.assert_array_equal(solver(A, list(b))[0], wanted[0])
    row = clsparse_py.csr_array([[1.0, 2.0]], queue=wide)
    np.testing.assert_allclose(solver(row, 3.0)[0], [0.6, 1.2])
    single = clsparse_py.csr_array(host.astype(np.float32), queue=wide)
    assert solver(single, b.astype(np.float32))[0].dtype == np.float32
    np.testing.assert_allclose(solver(A, b, show=True)[0], wanted[0], rtol=1e-6)
    assert method.upper() in capsys.readouterr().out


@pytest.mark.parametrize("method", METHODS)
def test_what_has_no_solution_or_needs_no_iteration(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = problem((60, 60))
    A = clsparse_py.csr_array(host, queue=wide)
    with_nan = b.copy()
    with_nan[3] = np.nan
    assert solver(A, with_nan)[1] == 7
    assert solver(A * np.nan, b)[1] == 7
    for case in ({}, {"x0": np.ones(60)}):
        wanted, result = getattr(of_scipy, method)(host, 0 * b, **case), solver(A, 0 * b, **case)
        np.testing.assert_allclose(result[0], wanted[0], atol=1e-5)
    assert solver(0 * A, b)[1:3] == (0, 0)
    # Singular, and b outside its range.
    singular = host.copy()
    singular.data[singular.indptr[5] : singular.indptr[6]] = 0
    wanted = getattr(of_scipy, method)(singular, b)
    result = solver(clsparse_py.csr_array(singular, queue=wide), b)
    assert result[1] == wanted[1]
    np.testing.assert_allclose(result[0], wanted[0], rtol=1e-4, atol=1e-7)
    for shape in ((0, 0), (5, 0), (0, 5)):
        empty = clsparse_py.csr_array(shape, queue=wide)
        assert solver(empty, np.ones(shape[0]))[0].shape == (shape[1],)


def test_variances_are_zero_without_an_iteration(wide: cl.CommandQueue) -> None:
    host, b = problem((60, 60))
    A = clsparse_py.csr_array(host, queue=wide)
    # The memory of the first result is the second one's, too.
    assert linalg.lsqr(A, b, calc_var=True)[-1].all()
    assert not linalg.lsqr(A, 0 * b, calc_var=True)[-1].any()


@pytest.mark.parametrize("method", METHODS)
def test_wrong_arguments_of_least_squares(wide: cl.CommandQueue, method: str) -> None:
    solver = getattr(linalg, method)
    host, b = problem((90, 50))
    A = clsparse_py.csr_array(host, queue=wide)
    other = cl.Context([wide.device])
    elsewhere = cl_array.to_device(cl.CommandQueue(other), b)
    for message, arguments, options in (
        ("b: must have 90", (A, b[:5]), {}),
        ("b: must be one vector", (A, np.stack([b, b], 1)), {}),
        ("x0: must have 50", (A, b), {"x0": b}),
        ("check_every: must be at least 1", (A, b), {"check_every": 0}),
        ("atol: must be a number that is not negative", (A, b), {"atol": np.nan}),
        ("btol: must be a number that is not negative", (A, b), {"btol": -1.0}),
        ("must not be negative", (A, b), {"iter_lim" if method == "lsqr" else "maxiter": -1}),
        ("b: lives in another context", (A, elsewhere), {}),
        ("A: must have two dimensions", (clsparse_py.coo_array(b, queue=wide), b), {}),
    ):
        with pytest.raises(ValueError, match=message):
            solver(*arguments, **options)


@pytest.mark.refusals
def test_scipy_solves_least_squares_if_a_kernel_is_refused(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host, b = problem((90, 50))
    A = clsparse_py.csr_array(host, queue=wide)
    wanted = of_scipy.lsqr(host, b, calc_var=True)
    build = programs.build

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if parameters.template == "vectors/sweep":
            raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    monkeypatch.setattr(programs, "build", refusing)
    for one, other in zip(linalg.lsqr(A, b, calc_var=True), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert isinstance(linalg.lsmr(A, cl_array.to_device(wide, b))[0], cl_array.Array)


@pytest.mark.parametrize("method", METHODS)
def test_least_squares_do_not_depend_on_the_size_of_values(queue: cl.CommandQueue, method: str) -> None:
    wide = describe(queue.device).fp64
    single, double = (1e30, 1e-30, 2.0**-90), (1e150, 1e-150, 2.0**-400)
    for dtype, scales in (("float32", single), ("complex64", single), ("float64", double), ("complex128", double)):
        if scales is double and not wide:
            continue
        host, b = problem((90, 50), dtype)
        for case in ({}, {"damp": 0.3}, {"x0": np.ones(50, dtype)}, {"calc_var": True} if method == "lsqr" else {"conlim": 3.0}):
            results = []
            for scale in (1.0, *scales):
                A = clsparse_py.csr_array((host * scale).astype(dtype), queue=queue)
                scaled = {"damp": case["damp"] * scale} if "damp" in case else case
                results.append(getattr(linalg, method)(A, (b * scale).astype(dtype), **scaled))
            for scale, (x, stop, itn, *norms) in zip(scales, results[1:], strict=True):
                assert stop == results[0][1]
                assert abs(itn - results[0][2]) <= 1
                rounding = 64 * np.finfo(dtype).eps
                np.testing.assert_allclose(x, results[0][0], rtol=0, atol=rounding * np.abs(results[0][0]).max())
                np.testing.assert_allclose(norms[0] / scale, results[0][3], rtol=rounding)
            np.testing.assert_array_equal(results[-1][0], results[0][0])
