"""`clsparse_py.linalg`, `csgraph`, `io` and files against SciPy: each function with a sparse array of the device as it is."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg as of_scipy
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csgraph, linalg
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def spd(n: int = 40) -> scipy.sparse.csr_array:
    """Return a positive definite matrix that is no multiple of a simple one."""
    rng = np.random.default_rng(0)
    diagonals = [-rng.random(n - 1), 3 + rng.random(n), -rng.random(n - 7)]
    made = scipy.sparse.diags_array(diagonals, offsets=[-1, 0, 7]).tocsr()
    return made + made.T


def on(queue: cl.CommandQueue, matrix: Any) -> Any:
    return getattr(clsparse_py, f"{matrix.format}_array")(matrix, queue=queue)


@pytest.mark.parametrize("solver", ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr"])
def test_iterative_solvers(wide: cl.CommandQueue, solver: str) -> None:
    A, b = spd(), np.arange(40.0)
    wanted, of_wanted = getattr(of_scipy, solver)(A, b, rtol=1e-10)
    for form in (A, A.tocsc(), A.tocoo()):
        result, info = getattr(linalg, solver)(on(wide, form), b, rtol=1e-10)
        assert info == of_wanted == 0
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_least_squares_and_eigenvalues(wide: cl.CommandQueue) -> None:
    A = spd()
    a, b, v0 = on(wide, A), np.arange(40.0), np.ones(40)
    for name in ("lsqr", "lsmr"):
        result, wanted = (getattr(of, name)(matrix, b, atol=1e-12, btol=1e-12)[0] for of, matrix in ((linalg, a), (of_scipy, A)))
        np.testing.assert_allclose(result, wanted, rtol=1e-6)
    for sigma in (None, 4.5):
        for name in ("eigsh", "eigs"):
            result, wanted = (
                getattr(of, name)(matrix, k=3, sigma=sigma, v0=v0)[0] for of, matrix in ((linalg, a), (of_scipy, A))
            )
            np.testing.assert_allclose(np.sort(result.real), np.sort(wanted.real), rtol=1e-9)
    for of_all in (linalg.eigs, linalg.eigsh):
        with pytest.warns(RuntimeWarning, match="k >= N"), pytest.raises(TypeError, match="k >= N"):
            of_all(a, k=40)
    np.testing.assert_allclose(linalg.svds(a, k=2, v0=v0)[1], of_scipy.svds(A, k=2, v0=v0)[1], rtol=1e-9)
    X = np.linalg.qr(np.random.default_rng(1).random((40, 2)))[0]
    np.testing.assert_allclose(linalg.lobpcg(a, X, maxiter=100)[0], of_scipy.lobpcg(A, X, maxiter=100)[0], rtol=1e-6)
    norms = []
    for of, matrix in ((linalg, a), (of_scipy, A)):
        np.random.seed(0)
        norms.append(of.onenormest(matrix))
    assert norms[0] == pytest.approx(norms[1])


def test_functions(wide: cl.CommandQueue) -> None:
    A, b = spd() * 0.1, np.arange(40.0)
    a = on(wide, A)
    few, ones = A[:6, :6], on(wide, scipy.sparse.eye_array(6, format="csr"))
    with pytest.warns(UserWarning, match="dense eigensolver"):  # as of all small problems
        result, wanted = linalg.lobpcg(on(wide, few), np.eye(6, 2), ones), of_scipy.lobpcg(few, np.eye(6, 2))
    result, wanted = result[0], wanted[0]
    np.testing.assert_allclose(result, wanted)
    np.testing.assert_allclose(linalg.expm_multiply(a, b), of_scipy.expm_multiply(A, b))
    by_place, wanted = (of.expm_multiply(matrix, b, 0, 1, 3, False) for of, matrix in ((linalg, a), (of_scipy, A)))
    np.testing.assert_allclose(by_place, wanted)
    by_place, wanted = (of.eigs(matrix, 1, None, None, "LR", b)[0] for of, matrix in ((linalg, a), (of_scipy, A)))
    np.testing.assert_allclose(by_place, wanted)
    result, wanted = (of.expm_multiply(matrix, b, start=0, stop=1, num=3) for of, matrix in ((linalg, a), (of_scipy, A)))
    np.testing.assert_allclose(result, wanted)
    B = scipy.sparse.eye_array(40, 3, format="csr")
    for given in (B, on(wide, B)):
        np.testing.assert_allclose(linalg.expm_multiply(a, given), of_scipy.expm_multiply(A, B.toarray()), atol=1e-15)
    krylov = [of.funm_multiply_krylov(scipy.linalg.expm, matrix, b) for of, matrix in ((linalg, a), (of_scipy, A))]
    np.testing.assert_allclose(*krylov, rtol=1e-6)
    operator = linalg.aslinearoperator(a)
    np.testing.assert_allclose(operator @ np.eye(40), A.toarray())
    np.testing.assert_allclose(operator.rmatmat(np.eye(40)), A.T.toarray())
    assert linalg.is_sptriangular(a) == of_scipy.is_sptriangular(A)
    assert linalg.spbandwidth(on(wide, A.tocsc())) == of_scipy.spbandwidth(A.tocsc())
    for form in (A, A.tocsc()):
        for name in ("inv", "expm"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
                result, wanted = getattr(linalg, name)(on(wide, form)), getattr(of_scipy, name)(form)
            assert result.format == wanted.format
            assert result.queue == wide
            np.testing.assert_allclose(result.toarray(), wanted.toarray(), atol=1e-12)
    for power in (0, 1, 2, 5):
        result, wanted = linalg.matrix_power(a, power), of_scipy.matrix_power(A, power)
        assert result is not a
        assert result.format == "csr"
        np.testing.assert_allclose(result.toarray(), wanted.toarray(), rtol=1e-12, atol=1e-14)
    for wrong, power, error in ((A, -1, ValueError), (A, 1.5, ValueError), (A[:3], 2, TypeError)):
        for of, matrix in ((of_scipy, wrong), (linalg, on(wide, wrong))):
            with pytest.raises(error):
                of.matrix_power(matrix, power)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int32", "float32"])
def test_norms(wide: cl.CommandQueue, dtype: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 9, 60) + (1j * rng.integers(-9, 9, 60) if dtype == "complex128" else 0)
    # Duplicates are summed before.
    A = scipy.sparse.csr_array((values.astype(dtype), rng.integers(0, 9, 60), np.arange(0, 61, 6)), shape=(10, 9))
    a = on(wide, A)
    for order in (None, "fro", 1, -1, np.inf, -np.inf):
        wanted = of_scipy.norm(A.copy(), order)
        for matrix in (a, a.T.T, a.tocoo()):
            result = linalg.norm(matrix, order)
            np.testing.assert_allclose(result, wanted, rtol=1e-6)
            if scipy.__version__.startswith("1.17."):  # later ones have float64 for all
                assert np.asarray(result).dtype == np.asarray(wanted).dtype
    for axis, order in ((0, None), (1, 1), (0, np.inf), ((1, 0), 1), ((1, 0), np.inf), ((-1, 0), -1), ((0, -1), -np.inf)):
        np.testing.assert_allclose(linalg.norm(a, order, axis), of_scipy.norm(A.copy(), order, axis), rtol=1e-6)
    if dtype == "float64":
        np.testing.assert_allclose(linalg.norm(a, 2), of_scipy.norm(A.copy(), 2))
    with pytest.raises(ValueError, match=r"[Ii]nvalid norm"):
        linalg.norm(a, "wrong")
    with pytest.raises(TypeError):
        linalg.norm(np.eye(2))


def test_direct_solvers(wide: cl.CommandQueue) -> None:
    A = spd() + scipy.sparse.diags_array([np.full(39, 0.5)], offsets=[1])
    b, B = np.arange(40.0), np.arange(80.0).reshape(40, 2)
    for form in (A.tocsr(), A.tocsc()):
        a, host = on(wide, form), form.tocsc()
        factors, wanted = linalg.splu(a), of_scipy.splu(host)
        for trans in "NTH":
            np.testing.assert_allclose(factors.solve(b, trans), wanted.solve(b, trans))
        assert factors.shape == wanted.shape
        assert factors.nnz == wanted.nnz
        np.testing.assert_array_equal(factors.perm_c, wanted.perm_c)
        np.testing.assert_array_equal(factors.perm_r, wanted.perm_r)
        for part in "LU":
            assert getattr(factors, part).queue == wide
            np.testing.assert_allclose(getattr(factors, part).toarray(), getattr(wanted, part).toarray())
        np.testing.assert_allclose(linalg.factorized(a)(b), of_scipy.factorized(host)(b))
        np.testing.assert_allclose(linalg.spilu(a).solve(b), of_scipy.spilu(host).solve(b))
        for right in (b, B, b[:, None], b.astype(np.float32), b + 1j, list(b)):
            result, wanted = linalg.spsolve(a, right), of_scipy.spsolve(host, right)
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted)
        for right in (b, B):
            result = linalg.spsolve(a, cl_array.to_device(wide, right))
            assert isinstance(result, cl_array.Array)
            np.testing.assert_allclose(result.get(), of_scipy.spsolve(host, right))
            assert isinstance(factors.solve(cl_array.to_device(wide, right)), cl_array.Array)
        sparse = scipy.sparse.csc_array(B)
        result = linalg.spsolve(a.tocsc(), on(wide, sparse))
        np.testing.assert_allclose(result.toarray(), of_scipy.spsolve(host, sparse).toarray())
        assert result.queue == wide
    lower = scipy.sparse.tril(A, format="csr")
    np.testing.assert_allclose(linalg.spsolve_triangular(on(wide, lower), b), of_scipy.spsolve_triangular(lower, b))


def test_lu_factors_solve_on_the_device(queue: cl.CommandQueue) -> None:
    rng, n = np.random.default_rng(5), 60
    kinds = ("float32", "complex64", *(("float64", "complex128") if describe(queue.device).fp64 else ()))
    for dtype in kinds:
        host = scipy.sparse.random_array((n, n), density=0.1, rng=rng) + scipy.sparse.diags_array(rng.random(n) + 2)
        host = scipy.sparse.csc_array(host * (1 + 0.5j) if dtype.startswith("c") else host).astype(dtype)[rng.permutation(n)]
        factors, wanted = linalg.splu(on(queue, host)), of_scipy.splu(host)
        near = {"rtol": 2e-3, "atol": 2e-4} if dtype in ("float32", "complex64") else {"rtol": 1e-9, "atol": 1e-11}
        for right in (rng.random(n), rng.random((n, 1)), rng.random((n, 11)), np.asfortranarray(rng.random((n, 3)))):
            b = right.astype(dtype)
            for trans in "NTH":
                x = wanted.solve(b, trans)
                for given in (b, cl_array.to_device(queue, b)):
                    result = factors.solve(given, trans)
                    assert isinstance(result, cl_array.Array) == isinstance(given, cl_array.Array)
                    assert result.dtype == x.dtype
                    np.testing.assert_allclose(result.get() if given is not b else result, x, **near)
            np.testing.assert_allclose(linalg.factorized(on(queue, host))(b), x if trans == "N" else wanted.solve(b), **near)
        assert factors.solve(np.zeros((n, 0), dtype)).shape == (n, 0)
        for message, call in (
            ("rhs: must have 60", lambda: factors.solve(np.zeros(61, dtype))),  # noqa: B023 - called at once
            ("trans: must be", lambda: factors.solve(np.zeros(n, dtype), "X")),  # noqa: B023
            ("rhs: must be of a dtype", lambda: factors.solve(np.zeros(n, "longdouble"))),  # noqa: B023
        ):
            with pytest.raises((ValueError, TypeError), match=message):
                call()


def test_factors_are_kept_until_the_array_changes(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    splu = of_scipy.splu
    monkeypatch.setattr(of_scipy, "splu", lambda *arguments, **named: (made.append(1), splu(*arguments, **named))[1])
    A, b = on(wide, spd()), np.arange(40.0)
    for matrix in (A, A, A):
        linalg.spsolve(matrix, b)
    assert len(made) == 1
    A.data = A.data * 2
    np.testing.assert_allclose(linalg.spsolve(A, b), of_scipy.spsolve((spd() * 2).tocsc(), b))
    assert len(made) == 2


def test_what_direct_solvers_refuse(wide: cl.CommandQueue) -> None:
    A = on(wide, spd())
    with pytest.raises(ValueError, match=r"^A: matrix must be square, has shape \(40, 20\)"):
        linalg.spsolve(on(wide, spd()[:, :20].tocsr()), np.ones(40))
    with pytest.raises(ValueError, match=r"^b: must have 40 rows, as A has, has shape \(39,\)"):
        linalg.spsolve(A, np.ones(39))
    singular = on(wide, scipy.sparse.csr_array(np.diag([1.0, 0.0])))
    with pytest.warns(linalg.MatrixRankWarning):
        assert np.isnan(linalg.spsolve(singular, np.ones(2))).all()
    with pytest.raises(RuntimeError, match="singular"):
        linalg.splu(singular)


def test_graphs(wide: cl.CommandQueue) -> None:
    A = scipy.sparse.random_array((30, 30), density=0.08, format="csr", rng=np.random.default_rng(0))
    a = on(wide, A)
    n, labels = csgraph.connected_components(a)
    of_n, of_labels = scipy.sparse.csgraph.connected_components(A)
    assert n == of_n
    np.testing.assert_array_equal(labels, of_labels)
    np.testing.assert_array_equal(csgraph.dijkstra(a, indices=[0, 3]), scipy.sparse.csgraph.dijkstra(A, indices=[0, 3]))
    for name in ("minimum_spanning_tree", "laplacian"):
        result, wanted = getattr(csgraph, name)(a), getattr(scipy.sparse.csgraph, name)(A)
        assert result.format == wanted.format
        assert result.queue == wide
        np.testing.assert_allclose(result.toarray(), wanted.toarray())
    names = {name for name in scipy.sparse.csgraph.__all__ if callable(getattr(scipy.sparse.csgraph, name))}
    assert set(csgraph.__all__) == names
    assert "Runs on the host" in csgraph.dijkstra.__doc__


def test_files(wide: cl.CommandQueue, tmp_path: Path) -> None:
    A = spd()
    for form in ("csr", "csc", "coo"):
        a = on(wide, A.asformat(form))
        clsparse_py.save_npz(tmp_path / "a.npz", a)
        assert scipy.sparse.load_npz(tmp_path / "a.npz").format == form
        result = clsparse_py.load_npz(tmp_path / "a.npz", queue=wide)
        assert (result.format, result.queue) == (form, wide)
        np.testing.assert_array_equal(result.toarray(), A.toarray())
        clsparse_py.io.mmwrite(tmp_path / "a.mtx", a, comment="of the device")
        assert clsparse_py.io.mminfo(tmp_path / "a.mtx")[:2] == (40, 40)
        result = clsparse_py.io.mmread(tmp_path / "a.mtx", queue=wide)
        assert result.format == "coo"
        np.testing.assert_allclose(result.toarray(), A.toarray())
    scipy.sparse.save_npz(tmp_path / "b.npz", scipy.sparse.dia_array(A))
    assert isinstance(clsparse_py.load_npz(tmp_path / "b.npz"), scipy.sparse.dia_array)
    clsparse_py.io.mmwrite(file := io.BytesIO(), np.eye(2))
    np.testing.assert_array_equal(clsparse_py.io.mmread(io.BytesIO(file.getvalue())), np.eye(2))
    with pytest.raises(OSError, match="nothing"):
        clsparse_py.io.mmread(tmp_path / "nothing.mtx")
