"""Products are rounded before they are added: no compiler contracts both to one operation, so bits are NumPy's on all devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse

import clsparse_py
from clsparse_py._device.device import describe

N = 4096


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else values.astype(dtype)


def times(a: Any, b: Any) -> Any:
    """Return a product of which each operation is rounded; NumPy's own of complex values may be contracted."""
    if not np.iscomplexobj(a):
        return a * b
    result = np.empty(np.broadcast(a, b).shape, a.dtype)
    result.real = a.real * b.real - a.imag * b.imag
    result.imag = a.real * b.imag + a.imag * b.real
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_are_rounded_before_they_are_added(queue: cl.CommandQueue, dtype: str) -> None:
    if dtype in ("float64", "complex128") and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    rng = np.random.default_rng(1)
    a, X = draw(rng, (N, 2), dtype), draw(rng, (2, 8), dtype)
    host = scipy.sparse.csr_array((a.ravel(), np.tile([0, 1], N), np.arange(0, 2 * N + 1, 2)), shape=(N, 2))
    A, B = (clsparse_py.csr_array(matrix, queue=queue) for matrix in (host, scipy.sparse.csr_array(X)))
    wanted = times(a[:, :1], X[0]) + times(a[:, 1:], X[1])
    for result in (A @ X, (A @ B).toarray()):
        np.testing.assert_array_equal(result, wanted)
    for kernel in ("auto", "serial", "vector", "merge", "adaptive", "chunked"):
        plan = None if kernel == "auto" else clsparse_py.spmv_plan(A, kernel=kernel)
        np.testing.assert_array_equal(clsparse_py.spmv(A, X[:, 0].copy(), plan=plan), wanted[:, 0])
