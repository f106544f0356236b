"""Preconditioners on the device: what they multiply with, and how many iterations they spare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg as of_scipy
from platforms import make_queue
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import linalg
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def scaled_matrix(n: int = 12) -> scipy.sparse.csr_array:
    """Return a positive definite matrix whose diagonal spans two orders of magnitude."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    scale = scipy.sparse.diags_array(np.logspace(0, 1, n * n))
    return (scale @ scipy.sparse.kronsum(step, step) @ scale).tocsr()


def iterations(A: Any, b: Any, M: Any) -> int:
    seen: list[None] = []
    x, info = linalg.cg(A, b, M=M, rtol=1e-8, callback=lambda _: seen.append(None))
    assert info == 0
    np.testing.assert_allclose(A @ x, b, atol=1e-6)
    return len(seen)


def test_jacobi_is_the_inverse_of_the_diagonal(wide: cl.CommandQueue) -> None:
    host = scaled_matrix(5)
    for turn in (1, 1 + 1j):
        A = clsparse_py.csr_array(host * turn, queue=wide)
        for given in (A, A.tocsc(), host * turn):
            M = linalg.jacobi(given)
            np.testing.assert_allclose(M @ np.eye(25), np.diag(1 / (host.diagonal() * turn)), rtol=1e-12)
        np.testing.assert_allclose(M.H @ np.ones(25), np.conj(1 / (host.diagonal() * turn)), rtol=1e-12)
    unordered = make_queue(wide, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    M = linalg.jacobi(clsparse_py.csr_array(host, queue=unordered))
    np.testing.assert_allclose(M @ np.ones((25, 1)), 1 / host.diagonal()[:, None], rtol=1e-12)
    single = linalg.jacobi(clsparse_py.csr_array(host.astype(np.float32), queue=wide))
    assert single.dtype == np.float32
    assert linalg.jacobi(clsparse_py.csr_array(scipy.sparse.eye_array(3, dtype=np.int32).tocsr(), queue=wide)).dtype == np.float64


def test_chebyshev_is_symmetric_positive_definite_and_close_to_the_inverse(wide: cl.CommandQueue) -> None:
    host = scaled_matrix(5)
    A = clsparse_py.csr_array(host, queue=wide)
    bounds = tuple(of_scipy.eigsh(scipy.sparse.diags_array(1 / np.sqrt(host.diagonal())) @ host @ scipy.sparse.diags_array(
        1 / np.sqrt(host.diagonal())), k=1, which=which, return_eigenvectors=False)[0] for which in ("SA", "LA"))  # fmt: skip
    before = np.inf
    for degree in (1, 3, 9):
        M = linalg.chebyshev(A, degree)
        result = M @ np.eye(25)
        np.testing.assert_allclose(result, result.T, rtol=1e-9, atol=1e-12)
        assert np.linalg.eigvalsh(result).min() > 0
        error = np.linalg.norm(linalg.chebyshev(A, degree, bounds) @ (host @ np.eye(25)) - np.eye(25), 2)
        assert error < before
        before = error
    assert error < 0.2


def test_iterations_that_preconditioners_spare(wide: cl.CommandQueue) -> None:
    host = scaled_matrix()
    b = np.arange(144) % 7 - 2.5
    A = clsparse_py.csr_array(host, queue=wide)
    counts = [iterations(A, b, M) for M in (None, linalg.jacobi(A), linalg.chebyshev(A, 2), linalg.chebyshev(A, degree=5))]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[1] > 4 * counts[3]
    # In SciPy's solver, with vectors on the device, and in other methods.
    seen: list[None] = []
    assert of_scipy.cg(host, b, M=linalg.chebyshev(host, 5), rtol=1e-8, callback=lambda _: seen.append(None))[1] == 0
    assert abs(len(seen) - counts[3]) <= 1
    for method in ("bicgstab", "gmres", "minres"):
        for M in (linalg.jacobi(A), linalg.chebyshev(A, 2)):
            x, info = getattr(linalg, method)(A, cl_array.to_device(wide, b), M=M, rtol=1e-8)
            assert info == 0
            np.testing.assert_allclose(host @ x.get(), b, atol=1e-4)
    # Of a system in single precision, and of a complex one.
    for dtype in (np.float32, np.complex64):
        single = clsparse_py.csr_array(host.astype(dtype), queue=wide)
        x, info = linalg.cg(single, b.astype(np.float32), M=linalg.chebyshev(A, 5), rtol=1e-4)
        assert info == 0
        assert x.dtype == dtype


def test_matrices_without_a_preconditioner(wide: cl.CommandQueue) -> None:
    host = scaled_matrix().astype(np.float32)
    A = clsparse_py.csr_array(host, queue=wide)
    hollow = host - scipy.sparse.diags_array(np.where(np.arange(144) == 7, host.diagonal(), 0)).astype(np.float32)
    for make in (linalg.jacobi, linalg.chebyshev):
        with pytest.raises(ValueError, match="no zeros on its diagonal, has 1, the first in row 7"):
            make(clsparse_py.csr_array(hollow, queue=wide))
        with pytest.raises(ValueError, match="must be square"):
            make(A[:5])
    for options, message in (
        ({"degree": 0}, "degree: must be at least 1"),
        ({"bounds": (0, 1)}, "bounds: must be positive and ascend"),
        ({"bounds": (2, 1)}, "bounds: must be positive and ascend"),
    ):
        with pytest.raises(ValueError, match=message):
            linalg.chebyshev(A, **options)
    with pytest.raises(TypeError, match="complex"):
        linalg.cg(A, np.ones(144, np.float32), M=linalg.jacobi(A * 1j))
