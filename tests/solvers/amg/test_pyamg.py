"""Hierarchies from PyAMG and to it: the same cycles, and residuals but for rounding. Needs PyAMG."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse

from clsparse_py import amg
from clsparse_py._device.device import describe

pyamg = pytest.importorskip("pyamg")
pytestmark = pytest.mark.any_platform

JACOBI = ("jacobi", {"omega": 4 / 3})


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def hierarchies() -> list[tuple[str, Any]]:
    """Return hierarchies of several kinds, each with smoothers that run on a device."""
    A = pyamg.gallery.poisson((24, 24), format="csr")
    E, B = pyamg.gallery.linear_elasticity((8, 8))
    turn = scipy.sparse.diags_array(np.exp(1j * np.arange(576)))
    aggregation = pyamg.smoothed_aggregation_solver
    chebyshev, twice, ones = ("chebyshev", {"degree": 3}), ("jacobi", {"iterations": 2}), np.ones((576, 1))
    return [
        ("jacobi", aggregation(A, presmoother=JACOBI, postsmoother=JACOBI)),
        ("chebyshev", aggregation(A, presmoother=chebyshev, postsmoother=chebyshev, max_coarse=30)),
        ("blocks", aggregation(E, B=B, presmoother=JACOBI, postsmoother=JACOBI)),
        ("classical", pyamg.ruge_stuben_solver(A, presmoother=twice, postsmoother="richardson", coarse_solver="splu")),
        ("complex", aggregation((turn @ A @ turn.conj()).tocsr(), B=turn @ ones, presmoother=JACOBI, postsmoother=None)),
        ("one level", aggregation(A[:20, :20], max_levels=1)),
    ]  # fmt: skip


def test_residuals_are_pyamgs(wide: cl.CommandQueue) -> None:
    for name, theirs in hierarchies():
        ours = amg.from_pyamg(theirs, queue=wide)
        n, dtype = theirs.levels[0].A.shape[0], theirs.levels[0].A.dtype
        b = (np.arange(n) % 7 - 2.5).astype(dtype) * (1 + 0.5j if dtype.kind == "c" else 1)
        for cycle in ("V", "W", "F", "AMLI") if len(theirs.levels) > 1 else ("V",):
            wanted: list[float] = []
            results: list[float] = []
            x, info = theirs.solve(b, tol=1e-7, maxiter=20, cycle=cycle, residuals=wanted, return_info=True)
            y, of_ours = ours.solve(b, tol=1e-7, maxiter=20, cycle=cycle, residuals=results, return_info=True)
            assert (of_ours, len(results)) == (info, len(wanted)), (name, cycle)
            np.testing.assert_allclose(results, wanted, rtol=0, atol=1e-10 * wanted[0])
            np.testing.assert_allclose(y, x, rtol=1e-8, atol=1e-8 * np.abs(x).max())


def test_residuals_of_cg_are_pyamgs(wide: cl.CommandQueue) -> None:
    for _, theirs in hierarchies()[:3]:
        ours = amg.from_pyamg(theirs, queue=wide)
        b = np.arange(theirs.levels[0].A.shape[0]) % 7 - 2.5
        wanted: list[float] = []
        results: list[float] = []
        theirs.solve(b, tol=1e-7, accel="cg", residuals=wanted)
        ours.solve(b, tol=1e-7, accel="cg", residuals=results)
        both = min(len(wanted), len(results))
        assert abs(len(wanted) - len(results)) <= 1
        np.testing.assert_allclose(results[:both], wanted[:both], rtol=1e-5, atol=1e-6 * wanted[0])


def test_smoothers_that_a_device_cannot_run_are_replaced_or_refused(wide: cl.CommandQueue) -> None:
    A = pyamg.gallery.poisson((24, 24), format="csr")
    theirs = pyamg.smoothed_aggregation_solver(A)
    with pytest.raises(ValueError, match=r"smoother block_gauss_seidel of level 0 .* smoother="):
        amg.from_pyamg(theirs, queue=wide)
    ours = amg.from_pyamg(theirs, smoother=JACOBI, queue=wide)
    b = A @ np.ones(576)
    np.testing.assert_allclose(ours.solve(b, tol=1e-10, accel="cg"), 1, rtol=1e-7)
    assert repr(ours) == repr(theirs)
    assert ours.operator_complexity() == theirs.operator_complexity()
    assert ours.grid_complexity() == theirs.grid_complexity()
    with pytest.raises(RuntimeError, match="taken over"):
        ours.refresh(A.data)
    with pytest.raises(ValueError, match="does not run on the device"):
        amg.from_pyamg(theirs, smoother="sor", queue=wide)
    theirs = pyamg.smoothed_aggregation_solver(A, presmoother="jacobi", postsmoother="jacobi", coarse_solver="cg")
    with pytest.raises(ValueError, match="coarse solver is cg"):
        amg.from_pyamg(theirs, queue=wide)


def test_own_hierarchies_need_as_many_iterations(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    E, B = pyamg.gallery.linear_elasticity((20, 20))
    stencil = pyamg.gallery.diffusion_stencil_2d(epsilon=0.01, theta=0.0, type="FD")
    cases = [
        ("2-D", pyamg.gallery.poisson((60, 60), format="csr"), None, 0.0),
        ("3-D", pyamg.gallery.poisson((14, 14, 14), format="csr"), None, 0.0),
        ("anisotropic", pyamg.gallery.stencil_grid(stencil, (50, 50), format="csr"), None, 0.1),
        ("elasticity", E, B, 0.0),
    ]
    monkeypatch.setattr("clsparse_py._solvers.amg.setup.default_queue", lambda: wide)
    for name, A, candidates, theta in cases:
        options = {"B": candidates, "strength": ("symmetric", {"theta": theta}), "max_coarse": 10}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = pyamg.smoothed_aggregation_solver(A, presmoother=JACOBI, postsmoother=JACOBI, **options)
        ours = amg.smoothed_aggregation_solver(A, **options)
        b = np.arange(A.shape[0]) % 7 - 2.5
        counts = []
        for hierarchy in (theirs, ours):
            residuals: list[float] = []
            hierarchy.solve(b, tol=1e-8, accel="cg", residuals=residuals)
            counts.append(len(residuals) - 1)
        assert counts[1] <= 1.3 * counts[0] + 1, (name, counts)
        # Back in PyAMG, it is the same method.
        again = ours.to_pyamg()
        wanted: list[float] = []
        results: list[float] = []
        ours.solve(b, maxiter=4, residuals=wanted)
        again.solve(b, maxiter=4, residuals=results)
        np.testing.assert_allclose(results, wanted, rtol=1e-8)
