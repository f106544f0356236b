"""Cases of solvers: the passes of each method with each dtype, by the kernels of both kinds of devices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from supposed import describe_as, suppose

from clsparse_py import csr_array, default_queue, linalg
from clsparse_py._operations.triangular.choose import Thresholds
from clsparse_py._solvers.linalg import solvers
from clsparse_py._solvers.linalg.problem import Problem

Case = partial[None]


#: How far systems are solved, and how far right-hand sides may be off then; on a simulator, which makes few iterations.
TOLERANCES = {False: (1e-5, 1e-3), True: (2e-3, 0.2)}


def solve(
    method: str,
    dtype: np.dtype[Any],
    kind: str,
    preconditioned: str,
    *,
    simulated: bool,
    scaled: bool = False,
    over: bool = False,
) -> None:
    """Solve a system, with ``over`` as a rank of several does; CPU devices and others have kernels of different shapes."""
    rtol, atol = TOLERANCES[simulated]
    n, queue = 70, default_queue()
    host = scipy.sparse.diags_array([-1.0, np.linspace(3, 4, n), -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr().astype(dtype)
    b = (np.arange(n) % 5 - 1.5).astype(dtype) * dtype.type(1j if dtype.kind == "c" else 1)
    # Whose squares no number holds, with or without doubles.
    scale = np.finfo(dtype).max ** 0.75 if scaled else 1
    A, b, x0 = csr_array(host * dtype.type(scale), queue=queue), b * dtype.type(scale), b
    M = {"no": None, "jacobi": linalg.jacobi(A), "chebyshev": linalg.chebyshev(A, degree=2)}[preconditioned]
    A @ b  # planned before devices are taken for others
    # With a callback each pass is a launch of its own; else one launch makes all iterations of some methods.
    for callback in (None, lambda _: None) if method in ("cg", "bicgstab") else (None,):
        with describe_as(type=kind, compute_units=2), patch.object(Problem, "all_sum", np.asarray if over else None):
            x, info = getattr(linalg, method)(A, b, M=M, x0=x0, rtol=rtol, callback=callback)
        assert info == 0
        assert x.dtype == dtype
        np.testing.assert_allclose(host @ x, x0, atol=atol)


def least_squares(method: str, dtype: np.dtype[Any], kind: str, *, simulated: bool) -> None:
    """Solve a least-squares problem, and compare the normal equations."""
    tolerance, atol = (1e-2, 0.5) if simulated else (1e-5, 1e-2)
    host = scipy.sparse.diags_array([-1.0, np.linspace(3, 4, 50), 1.0], offsets=[-1, 0, 20], shape=(70, 50)).tocsr().astype(dtype)
    b = (np.arange(70) % 5 - 1.5).astype(dtype) * dtype.type(1j if dtype.kind == "c" else 1)
    A = scipy.sparse.linalg.aslinearoperator(host)  # products are those of other cases
    options = {"calc_var": True} if method == "lsqr" else {}
    with describe_as(type=kind, compute_units=2):
        x, istop, *_ = getattr(linalg, method)(A, b, damp=0.1, atol=tolerance, btol=tolerance, **options)
    assert istop in (1, 2)
    np.testing.assert_allclose(host.conj().T @ (b - host @ x), 0.01 * x, atol=atol)


def eigenvalues(method: str, dtype: np.dtype[Any], kind: str, *, simulated: bool) -> None:
    """Find the largest eigenvalues of a matrix."""
    queue = default_queue()
    host = scipy.sparse.diags_array(np.r_[np.ones(37), 5, 7, 9]).tocsr().astype(dtype)
    A, X = csr_array(host, queue=queue), np.random.default_rng(0).random((40, 3)).astype(dtype)
    A @ X[:, 0]  # planned before devices are taken for others
    with describe_as(type=kind, compute_units=2):
        if method == "eigsh":
            values, vectors = linalg.eigsh(A, k=2, v0=X[:, 0], ncv=6, tol=1e-3)
        else:
            values, vectors = linalg.lobpcg(A, X, tol=1e-2, maxiter=4 if simulated else 10)
    np.testing.assert_allclose(np.sort(values)[-2:], [7, 9], rtol=1e-3)
    np.testing.assert_allclose(host @ vectors, vectors * values, atol=1e-1)


def triangles(dtype: np.dtype[Any], kind: str, *, simulated: bool) -> None:
    """Solve triangular systems of wide and narrow levels, and a system with incomplete factors."""
    rtol, atol = TOLERANCES[simulated]
    queue = default_queue()
    n = 45 if simulated else 90
    host = scipy.sparse.diags_array([-1.0, -1.0, 4.0, -1.0, -1.0], offsets=[-9, -1, 0, 1, 9], shape=(n, n)).tocsr().astype(dtype)
    A, b = csr_array(host, queue=queue), (np.arange(n) % 5 - 1.5).astype(dtype)
    A @ b  # planned before devices are taken for others
    sweeps = 2 if kind == "cpu" else None
    with patch("clsparse_py._operations.triangular.level_sets._WIDE", 0):
        for lower, (method, forward_progress) in itertools.product(
            (True, False), (("auto", False), ("levels", False), ("levels", True))
        ):
            part = (scipy.sparse.tril if lower else scipy.sparse.triu)(host)
            B = np.outer(b, np.arange(9)).astype(dtype) if method == "auto" else b
            with describe_as(type=kind, compute_units=2, forward_progress=forward_progress):
                plan = linalg.triangular_plan(csr_array(host, queue=queue), lower=lower, method=method)
                np.testing.assert_allclose(part @ plan(B), B, atol=1e-2)
        # Without synchronisation: all of the rows, a lane to each or several, and what a launch leaves that gives up.
        for lower, whole, max_polls in itertools.product((True, False), (True, False), (0, 1 << 12)):
            part = (scipy.sparse.tril if lower else scipy.sparse.triu)(host).tocsr()
            numbers = suppose(Thresholds, max_polls=max_polls, entries_per_lane=1)
            with describe_as(type=kind, compute_units=2, forward_progress=True), patch.object(Thresholds, "of", numbers):
                plan = linalg.triangular_plan(csr_array(host if whole else part, queue=queue), lower=lower, method="sync-free")
                np.testing.assert_allclose(part @ plan(b), b, atol=1e-2)
    # Supernodes of three rows.
    nodes = scipy.sparse.diags_array([-1.0, 1.0, -1.0], offsets=[-1, 0, 1], shape=(n // 3, n // 3))
    blocks = (scipy.sparse.kron(nodes, np.ones((3, 3))) + 9 * scipy.sparse.eye_array(n)).astype(dtype)
    for lower, max_polls in itertools.product((True, False), (0, 1 << 12)):
        part, B = (scipy.sparse.tril if lower else scipy.sparse.triu)(blocks).tocsr(), np.outer(b, np.arange(3)).astype(dtype)
        numbers = suppose(Thresholds, max_polls=max_polls, entries_per_lane=1)
        with describe_as(type=kind, compute_units=2, forward_progress=True), patch.object(Thresholds, "of", numbers):
            plan = linalg.triangular_plan(csr_array(part, queue=queue), lower=lower, method="sync-free")
            assert "supernodes" in str(plan.explain())
            np.testing.assert_allclose(part @ plan(B), B, atol=1e-2)
    # Tiles of a plane, level by level or in one launch.
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(9, 9))
    grid = scipy.sparse.csr_array(scipy.sparse.kronsum(line, line)).astype(dtype)
    for lower, (forward_progress, max_polls) in itertools.product((True, False), ((False, 0), (True, 0), (True, 1 << 12))):
        part, B = (scipy.sparse.tril if lower else scipy.sparse.triu)(grid).tocsr(), np.outer(np.arange(81), [1, 2]).astype(dtype)
        numbers, local_memory = suppose(Thresholds, max_polls=max_polls), 1300 * dtype.itemsize  # for six points of a line
        fields = {"type": kind, "compute_units": 2, "preferred_multiple": 32, "local_memory": local_memory}
        with describe_as(**fields, forward_progress=forward_progress), patch.object(Thresholds, "of", numbers):
            plan = linalg.triangular_plan(csr_array(part, queue=queue), lower=lower, method="tiles")
            np.testing.assert_allclose(part @ plan(B), B, atol=1e-2)
    with describe_as(type=kind, compute_units=2), patch("clsparse_py._operations.triangular.level_sets._WIDE", 0):
        by_colours: dict[str, Any] = {"ordering": "multicolour", "solve": "isai"}
        for solver, M in (
            (linalg.cg, linalg.ic0(A, sweeps)),
            (linalg.bicgstab, linalg.ilu0(A, sweeps)),
            (linalg.cg, linalg.ic0(A, **by_colours)),
            (linalg.bicgstab, linalg.ilu0(A, **by_colours)),
            (linalg.cg, linalg.ic0(A, 2, solve="isai")),
            (linalg.bicgstab, linalg.isai(A)),
        ):
            x, info = solver(A, b, M=M, rtol=rtol)
            assert info == 0
            np.testing.assert_allclose(host @ x, b, atol=atol)
    for factorise in (linalg.ic0, linalg.ilu0):
        wanted = factorise(A).factors[0].toarray()
        with describe_as(type=kind, compute_units=2, forward_progress=True):
            found = factorise(csr_array(host, queue=queue)).factors[0].toarray()
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def krylov_cases(dtypes: tuple[np.dtype[Any], ...], *, simulated: bool) -> Iterator[Case]:
    """Methods and kinds of devices, with dtypes in rotation."""
    inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
    for i, method in enumerate(solvers.__all__):
        for j, kind in enumerate(("cpu", "gpu")):
            for preconditioned in ("no", ("jacobi", "chebyshev")[i % 2]):
                dtype = inexact[(i + j) % len(inexact)]
                yield partial(solve, method, dtype, kind, preconditioned, simulated=simulated, scaled=preconditioned != "no")
    for j, kind in enumerate(("cpu", "gpu")):
        for preconditioned in ("no", "jacobi"):
            dtype = inexact[j % len(inexact)]
            yield partial(solve, "cg", dtype, kind, preconditioned, simulated=simulated, over=True)
    for i, method in enumerate(("lsqr", "lsmr")):
        for j, kind in enumerate(("cpu", "gpu")):
            yield partial(least_squares, method, inexact[(i + j) % len(inexact)], kind, simulated=simulated)
    for i, method in enumerate(("eigsh", "lobpcg")):
        for j, kind in enumerate(("cpu", "gpu")):
            yield partial(eigenvalues, method, inexact[(i + j) % len(inexact)], kind, simulated=simulated)
    for j, kind in enumerate(("cpu", "gpu")):
        for dtype in inexact[j::2]:
            yield partial(triangles, dtype, kind, simulated=simulated)
