"""Eigensolvers on the device against SciPy's: values, vectors, and what does not converge."""

from __future__ import annotations

import warnings
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
from clsparse_py._solvers.linalg import eigen

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def grid(dtype: Any = np.float64, n: int = 10) -> scipy.sparse.csr_array:
    """Return a Hermitian positive definite matrix of a grid of n x n points, with a diagonal that varies."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    result = scipy.sparse.kronsum(step, step).tocsr() + scipy.sparse.diags_array(np.linspace(0, 1, n * n))
    if np.dtype(dtype).kind == "c":
        turn = scipy.sparse.diags_array(np.exp(1j * np.arange(n * n)))
        result = turn @ result @ turn.conj()
    return scipy.sparse.csr_array(result).astype(dtype)


def check(host: Any, values: Any, vectors: Any, wanted: Any, near: float, B: Any = None) -> None:
    """Compare values, residuals and products of vectors."""
    of_B = vectors if B is None else B @ vectors
    np.testing.assert_allclose(values, wanted, rtol=near)
    assert np.abs(host @ vectors - of_B * values).max() < 100 * near
    np.testing.assert_allclose(vectors.conj().T @ of_B, np.eye(values.size), atol=10 * near)


def test_eigenvalues_are_scipys(wide: cl.CommandQueue) -> None:
    for dtype, near in (("float64", 1e-9), ("complex128", 1e-9), ("float32", 1e-4)):
        host = grid(dtype)
        A, v0 = clsparse_py.csr_array(host, queue=wide), np.ones(100)
        spectrum = np.linalg.eigvalsh(host.toarray())
        of_which = {"LM": spectrum[-4:], "SA": spectrum[:4], "BE": spectrum[[0, 1, -2, -1]]}
        for which, wanted in of_which.items() if dtype == "float64" else (("LM", of_which["LM"]),):
            values, vectors = linalg.eigsh(A, k=4, which=which, v0=v0)
            assert values.dtype == np.zeros(0, dtype).real.dtype
            assert vectors.dtype == np.dtype(dtype)
            check(host, values, vectors, wanted, near)
    host = grid()
    A, spectrum = clsparse_py.csr_array(host, queue=wide), np.linalg.eigvalsh(host.toarray())
    nearest = np.sort(spectrum[np.argsort(np.abs(spectrum - 2.1))[:3]])
    inverse = of_scipy.splu((host - 2.1 * scipy.sparse.eye_array(100)).tocsc())
    for given in (None, of_scipy.LinearOperator(host.shape, inverse.solve, dtype=np.float64), lambda x: inverse.solve(x.get())):
        values, vectors = linalg.eigsh(A, k=3, sigma=2.1, OPinv=given, v0=np.ones(100))
        check(host, values, vectors, nearest, 1e-8)
    np.testing.assert_allclose(linalg.eigsh(A, k=2, ncv=9, tol=1e-3, return_eigenvectors=False, rng=1), spectrum[-2:], rtol=1e-3)
    values, vectors = linalg.eigsh(A, k=4, v0=cl_array.to_device(wide, np.ones(100)))
    assert isinstance(vectors, cl_array.Array)
    check(host, values, vectors.get(), spectrum[-4:], 1e-9)
    for given in (host, of_scipy.aslinearoperator(host)):
        np.testing.assert_allclose(linalg.eigsh(given, k=2, return_eigenvectors=False), spectrum[-2:])
    # Eigenvalues of which there are several, and spaces that products do not leave.
    several = clsparse_py.diags_array(np.repeat([1.0, 2.0, 3.0], 4), queue=wide)
    np.testing.assert_allclose(linalg.eigsh(several, k=6)[0], [2, 2, 3, 3, 3, 3])
    # With the last number, rounding leaves a vector where the one direction that is left has to be found.
    for seed in (0, 1, 11):
        np.testing.assert_allclose(linalg.eigsh(several, k=11, rng=seed)[0], np.repeat([1, 2, 3], [3, 4, 4]))
    # What ARPACK does: generalised problems.
    B = scipy.sparse.diags_array(np.linspace(1, 2, 100)).tocsr()
    wanted = of_scipy.eigsh(host, k=2, M=B, return_eigenvectors=False)
    np.testing.assert_allclose(linalg.eigsh(A, k=2, M=clsparse_py.csr_array(B, queue=wide), return_eigenvectors=False), wanted)


@pytest.mark.any_platform
def test_rounding_of_hundreds_of_restarts_is_allowed_for(wide: cl.CommandQueue) -> None:
    n, k = 700, 6
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    step[0, 0] = step[n - 1, n - 1] = 1.0
    # The Laplacian of a path: its largest eigenvalues are so near each other that ARPACK restarts 500 times, too.
    values = linalg.eigsh(clsparse_py.csr_array(step.tocsr(), queue=wide), k=k, maxiter=900, return_eigenvectors=False, rng=0)
    np.testing.assert_allclose(values, 4 * np.sin(np.arange(n - k, n) * np.pi / (2 * n)) ** 2, rtol=1e-13)


def test_eigenvalues_that_are_not_found(wide: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(grid(), queue=wide)
    with pytest.raises(of_scipy.ArpackNoConvergence, match=r"2 restarts, [01]/4") as caught:
        linalg.eigsh(A, k=4, which="SA", maxiter=2, v0=np.ones(100))
    assert caught.value.eigenvectors.shape == (100, caught.value.eigenvalues.size)
    with pytest.raises(of_scipy.ArpackNoConvergence, match="0/4"):
        linalg.eigsh(A * np.nan, k=4)
    for message, options in (
        ("which: must be", {"which": "XX"}),
        ("ncv: must be more than k", {"ncv": 6}),
        ("maxiter: must be positive", {"maxiter": 0}),
        ("tol: must be a number", {"tol": -1}),
        ("v0: must have 100", {"v0": np.ones(5)}),
        ("OPinv: is for", {"OPinv": A}),
        ("k must be", {"k": 0}),
    ):
        with pytest.raises(ValueError, match=message):
            linalg.eigsh(A, **{"k": 6, **options})
    with pytest.raises(ValueError, match="A: must be square"):
        linalg.eigsh(A[:5])
    with pytest.raises(RuntimeError, match="singular"):
        linalg.eigsh(A * np.nan, k=2, sigma=0)
    with pytest.raises(ValueError, match="give OPinv"):
        linalg.eigsh(linalg.aslinearoperator(A * np.nan), k=2, sigma=0)


def test_blocks_of_eigenvectors(wide: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    B = scipy.sparse.diags_array(np.linspace(1, 2, 100)).tocsr()
    for dtype, near in (("float64", 1e-8), ("complex128", 1e-8), ("float32", 1e-4)):
        host = grid(dtype)
        A, X = clsparse_py.csr_array(host, queue=wide), rng.standard_normal((100, 3)).astype(dtype)
        M = scipy.sparse.diags_array(1 / host.diagonal().real).tocsr().astype(dtype)
        cases: list[dict[str, Any]] = [{}, {"largest": False, "M": M}, {"largest": False, "B": B.astype(dtype)}]
        for case in cases if dtype == "float64" else cases[:1]:
            options = {"tol": near, "maxiter": 150, "retResidualNormsHistory": True} | case
            wanted, _, of_wanted = of_scipy.lobpcg(host, X.copy(), **options)
            values, vectors, norms = linalg.lobpcg(A, X, **options)
            assert abs(len(norms) - len(of_wanted)) <= 5
            assert vectors.dtype == np.dtype(dtype)
            check(host, values, vectors, wanted, near, case.get("B"))
    host = grid()
    A, X = clsparse_py.csr_array(host, queue=wide), rng.standard_normal((100, 3))
    # Beside an eigenvector that is known, the others are found.
    spectrum, known = np.linalg.eigh(host.toarray())
    values, vectors = linalg.lobpcg(A, X, Y=known[:, -2:], maxiter=100, tol=1e-7)
    check(host, values, vectors, spectrum[-5:-2][::-1], 1e-6)
    guess = cl_array.to_device(wide, X)
    values, vectors, lambdas = linalg.lobpcg(lambda x: host @ x, guess, tol=1e-7, maxiter=100, retLambdaHistory=True)
    assert isinstance(vectors, cl_array.Array)
    check(host, values, vectors.get(), spectrum[::-1][:3], 1e-6)
    np.testing.assert_allclose(lambdas[-1], values)


def test_blocks_that_are_none(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host, rng = grid(), np.random.default_rng(0)
    A, X = clsparse_py.csr_array(host, queue=wide), rng.standard_normal((100, 3))
    for message, arguments in (
        ("X: linearly dependent", (A, np.ones((100, 2)))),
        ("no numbers", (A * np.nan, X)),
        ("Y: linearly dependent", (A, X, None, None, np.zeros((100, 2)))),
        ("Y: must have 100", (A, X, None, None, np.ones((50, 2)))),
        ("B: must be 100 x 100", (A, X, A[:5, :5])),
        ("A: must be 100 x 100", (A[:50, :50], X)),
    ):
        with pytest.raises(ValueError, match=message):
            linalg.lobpcg(*arguments)
    with pytest.warns(UserWarning, match="ended with residuals"):
        linalg.lobpcg(A, X, maxiter=2)
    with pytest.warns(UserWarning, match="dense eigensolver"):
        values = linalg.lobpcg(clsparse_py.csr_array(host[:9, :9], queue=wide), X[:9])[0]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(host[:9, :9].toarray())[::-1][:3])
    wanted = np.linalg.eigvalsh(host.toarray())[::-1]
    build = programs.build

    def refusing(context: cl.Context, device: cl.Device, parameters: programs.Parameters) -> Built:
        if parameters.template == "vectors/sweep":
            raise BuildError("planted", log="", parameters=parameters, source=None)
        return build(context, device, parameters)

    monkeypatch.setattr(programs, "build", refusing)
    np.testing.assert_allclose(linalg.eigsh(A, k=2)[0], wanted[1::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(linalg.lobpcg(A, X, tol=1e-6, maxiter=100)[0], wanted[:3], rtol=1e-6)


def test_small_eigenvalues_beside_a_large_norm(queue: cl.CommandQueue, real: np.dtype) -> None:
    """Of graph Laplacians, one is 0: errors are those of the norm, not of the eigenvalue."""
    n = 60
    offsets = [-1, 0, 1, n - 1, 1 - n]
    ring = scipy.sparse.diags_array([-1.0, 2.0, -1.0, -1.0, -1.0], offsets=offsets, shape=(n, n), format="csr", dtype=real)
    dense = np.linalg.eigvalsh(ring.toarray().astype(float))
    for scale in (1.0, 1e-6, 1e6):
        A = clsparse_py.csr_array((ring * scale).astype(real), queue=queue)
        for which, wanted in (("SA", dense[:4]), ("SM", dense[:4]), ("LA", dense[-4:])):
            values = linalg.eigsh(A, k=4, which=which, rng=3, return_eigenvectors=False)
            np.testing.assert_allclose(values, wanted * scale, atol=50 * scale * float(np.finfo(real).eps) * dense[-1])


@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-4])
def test_shifts_beside_eigenvalues_are_right_or_refused(queue: cl.CommandQueue, real: np.dtype, distance: float) -> None:
    A = clsparse_py.csr_array(scipy.sparse.diags_array(np.arange(1.0, 21.0)).astype(real).tocsr(), queue=queue)
    if np.asarray(5 + distance, real) == 5:
        with pytest.raises(RuntimeError, match="singular"):
            linalg.eigsh(A, k=3, sigma=5 + distance, rng=3)
        return
    values = linalg.eigsh(A, k=3, sigma=5 + distance, rng=3, return_eigenvectors=False)
    np.testing.assert_allclose(values, [4, 5, 6], rtol=float(np.sqrt(np.finfo(real).eps)))


@pytest.mark.parametrize(("name", "value"), [("tol", np.nan), ("tol", -1.0), ("sigma", np.nan), ("maxiter", -1)])
def test_arguments_of_eigsh_that_are_no_numbers(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        linalg.eigsh(clsparse_py.csr_array(scipy.sparse.eye_array(9, format="csr", dtype=np.float32)), k=2, **{name: value})


def test_blocks_of_eigenvectors_of_any_size(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.diags_array(np.r_[np.linspace(1, 2, 57), 5, 7, 9]).tocsr()
    X = np.random.default_rng(0).random((60, 3))
    for scale in (1e30, 1e-25, 2.0**70):
        A, scaled = clsparse_py.csr_array((host * scale).astype(np.float32), queue=queue), X.astype(np.float32)
        for M in (None, linalg.jacobi(A)):
            values, vectors = linalg.lobpcg(A, scaled, M=M, tol=1e-3 * scale, maxiter=40)
            np.testing.assert_allclose(np.sort(values / scale), [5, 7, 9], rtol=1e-4)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-4)


def test_factors_that_do_not_fit_are_refused(queue: cl.CommandQueue, real: np.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    host = scipy.sparse.csr_array(grid(real))
    A = clsparse_py.csr_array(host, queue=queue)
    # The bound holds for what SuperLU makes of it.
    shifted = scipy.sparse.csc_array(host - real.type(2.1) * scipy.sparse.eye_array(100, dtype=real))
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.01, "options": {"SymmetricMode": True}}
    factors = of_scipy.splu(shifted, **options)
    bytes_of_entry, bound = real.itemsize + 4, eigen._bytes_of_factors(shifted)
    assert (factors.L.nnz + factors.U.nnz) * bytes_of_entry <= bound <= 2 * 100**2 * bytes_of_entry
    monkeypatch.setattr(eigen, "_free_host_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"may take .* MB, by a bound of their fill.*give OPinv=.*minres.*multigrid"):
        linalg.eigsh(A, k=2, sigma=2.1)
    # Nothing is factored for these.
    inverse = factors.solve
    linalg.eigsh(A, k=2, sigma=2.1, OPinv=lambda x: inverse(x.get()), rng=1)
    linalg.eigsh(A, k=2, rng=1)


def test_copies_of_eigenvalues_are_not_missed(queue: cl.CommandQueue, real: np.dtype) -> None:
    """Products from one vector do not leave a space in which each eigenvalue is once."""
    ring = scipy.sparse.diags_array([-1.0, 2, -1, -1, -1], offsets=[-1, 0, 1, 9, -9], shape=(10, 10))
    host = scipy.sparse.csr_array(scipy.sparse.kronsum(ring, ring)).astype(real)
    spectrum = np.linalg.eigvalsh(host.toarray().astype(float))
    near = 100 * float(np.finfo(real).eps)
    for seed in range(4):
        for which, wanted in (("SA", spectrum[:4]), ("LA", spectrum[-4:])):
            values = linalg.eigsh(clsparse_py.csr_array(host, queue=queue), k=4, which=which, rng=seed, return_eigenvectors=False)
            np.testing.assert_allclose(values, wanted, atol=near * spectrum[-1])
    low = np.linalg.qr(np.random.default_rng(1).standard_normal((100, 3)))[0]
    dense = np.eye(100) + low @ np.diag([1, 1, 0.5]) @ low.T
    values = linalg.eigsh(clsparse_py.csr_array(dense.astype(real), queue=queue), k=4, rng=0, return_eigenvectors=False)
    np.testing.assert_allclose(values, [1, 1.5, 2, 2], atol=near)


def test_ends_that_compete_for_room(queue: cl.CommandQueue, real: np.dtype) -> None:
    """A 5 x 5 x 5 torus has more copies at either end than a basis has room for."""
    ring = scipy.sparse.diags_array([-1.0, 2, -1, -1, -1], offsets=[-1, 0, 1, 4, -4], shape=(5, 5))
    host = scipy.sparse.csr_array(scipy.sparse.kronsum(scipy.sparse.kronsum(ring, ring), ring)).astype(real)
    spectrum = np.linalg.eigvalsh(host.toarray().astype(float))
    A, near = clsparse_py.csr_array(host, queue=queue), 100 * float(np.finfo(real).eps) * spectrum[-1]
    for k, seed in ((4, 1051), (4, 1055), (4, 1063), (6, 1007), (6, 1019), (6, 1031), (10, 1023), (10, 1047)):
        v0 = np.random.default_rng(seed).standard_normal(125)
        values = linalg.eigsh(A, k=k, which="BE", v0=v0, rng=seed - 1000, maxiter=100, return_eigenvectors=False)
        np.testing.assert_allclose(values, spectrum[[*range(k // 2), *range(-k // 2, 0)]], atol=near)


def test_tol_0_is_the_precision(queue: cl.CommandQueue, real: np.dtype) -> None:
    host = grid(real)
    spectrum = np.linalg.eigvalsh(host.toarray().astype(float))
    values, vectors = linalg.eigsh(clsparse_py.csr_array(host, queue=queue), k=4, tol=0, rng=1)
    unit = float(np.finfo(real).eps) * spectrum[-1]
    np.testing.assert_allclose(values, spectrum[-4:], atol=32 * unit)
    assert np.linalg.norm(host @ vectors - vectors * values, axis=0).max() <= 64 * unit


@pytest.mark.parametrize("k", [-1, 0, 9, 10])
def test_numbers_of_eigenvalues_beyond_scipys(k: int) -> None:
    host = scipy.sparse.diags_array(np.arange(1, 10, dtype=np.float32), format="csr")
    with pytest.warns(RuntimeWarning) if k >= 9 else warnings.catch_warnings(), pytest.raises((ValueError, TypeError)) as wanted:
        of_scipy.eigsh(host, k=k)
    with pytest.warns(RuntimeWarning) if k >= 9 else warnings.catch_warnings(), pytest.raises(wanted.type):
        linalg.eigsh(clsparse_py.csr_array(host), k=k)


def test_pairs_of_another_inverse_are_refused(queue: cl.CommandQueue, real: np.dtype) -> None:
    """Pairs are checked by A, whatever solves with its shift."""
    host = scipy.sparse.diags_array(np.arange(1.0, 31.0)).astype(real).tocsr()
    A = clsparse_py.csr_array(host, queue=queue)
    right = scipy.sparse.diags_array(1 / (np.arange(1.0, 31.0) - 2.3)).astype(real).tocsr()
    for given in (A, host, of_scipy.aslinearoperator(host), linalg.aslinearoperator(A)):
        values = linalg.eigsh(given, k=2, sigma=2.3, OPinv=right, rng=1, return_eigenvectors=False)
        np.testing.assert_allclose(values, [2, 3], rtol=1e-3)
        with pytest.raises(of_scipy.ArpackNoConvergence, match="0/2"):
            linalg.eigsh(given, k=2, sigma=2.3, OPinv=right * real.type(2), rng=1)
