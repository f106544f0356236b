"""Sampled products of dense matrices."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array
from supposed import describe_as

from clsparse_py import csr_array, sddmm
from clsparse_py._ground.errors import BuildError
from clsparse_py._operations.sddmm import _Sampling


@pytest.mark.refusals
def test_equals_the_product_at_the_places(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    M = scipy.sparse.random_array((50, 60), density=0.2, rng=rng, format="csr")
    for index, k, dtypes in (
        (np.int32, 1, (np.float32, np.float32)), (np.int64, 7, (np.int32, np.int32)), (np.int32, 37, (np.complex64, np.float32)),
        (np.int32, 64, (np.float32, np.float32)), (np.int32, 0, (np.float32, np.float32)),
    ):  # fmt: skip
        parts = M.data, M.indices.astype(index), M.indptr.astype(index)
        A = csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=M.shape)
        X, Y = (rng.integers(-5, 5, shape).astype(dtype) for shape, dtype in zip(((50, k), (k, 60)), dtypes, strict=True))
        wanted = np.where(M.toarray() != 0, X @ Y, 0)
        x, y = cl_array.to_device(queue, X), cl_array.to_device(queue, np.asfortranarray(Y))
        for left, right in ((X, Y), (X, np.asfortranarray(Y)), (x, y), (x, cl_array.to_device(queue, Y)), (X[::-1][::-1], y)):
            result = sddmm(A, left, right)
            assert result.indices is A.indices
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(result.toarray(), wanted)
    refusal = BuildError("refused", log="", parameters=None, source=None)
    with patch("clsparse_py._operations.sddmm.Sampled.legal", side_effect=refusal):
        np.testing.assert_array_equal(sddmm(A, X, Y).toarray(), wanted)


def test_teams_of_gpus(queue: cl.CommandQueue) -> None:
    # As a GPU would have it: a team to a row if rows are alike, or adjacent entries to a work-group.
    rng = np.random.default_rng(2)
    uneven = scipy.sparse.random_array((90, 60), density=0.1, rng=rng, format="csr")
    alike = scipy.sparse.csr_array(scipy.sparse.diags_array(np.ones((3, 60)), offsets=[-1, 0, 7], shape=(60, 60)))
    long = scipy.sparse.csr_array(scipy.sparse.vstack([uneven, np.ones((10, 60)), scipy.sparse.csr_array((5, 60))]))
    with describe_as(type="gpu"):
        for M in (long, alike):
            X, Z = (rng.integers(-5, 5, (n, 12)).astype(np.float32) for n in M.shape)
            x, z = cl_array.to_device(queue, X), cl_array.to_device(queue, Z)
            result = sddmm(csr_array(M, queue=queue), x, z.T).data.get()
            rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
            np.testing.assert_array_equal(result, np.einsum("ek,ek->e", X[rows], Z[M.indices]))


def test_known_operands(queue: cl.CommandQueue) -> None:
    # The second call with the same objects takes the short way: it sees what was written to them since, and another structure.
    rng = np.random.default_rng(5)
    S = scipy.sparse.random_array((30, 20), density=0.2, rng=rng, format="csr")
    M, X, Z = csr_array(S, queue=queue), rng.random((30, 6)), rng.random((20, 6))
    rows = np.repeat(np.arange(30), np.diff(S.indptr))
    x, y = cl_array.to_device(queue, X), cl_array.to_device(queue, Z).T
    results = [sddmm(M, x, y) for _ in range(3)]
    for scale in (2.0, 3.0):
        x.set(scale * X)
        for _ in range(2):
            np.testing.assert_allclose(sddmm(M, x, y).data.get(), scale * np.einsum("ek,ek->e", X[rows], Z[S.indices]))
    for result in results:
        np.testing.assert_allclose(result.data.get(), np.einsum("ek,ek->e", X[rows], Z[S.indices]))
    assert sddmm(M[:4], x[:4], y).shape == (4, 20)


def test_another_thread_may_drop_a_launch_at_once(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dropped(dict[Any, Any]):
        """Launches that other threads drop as soon as they are kept."""

        def __setitem__(self, kind: Any, launch: Any) -> None:
            super().__setitem__(kind, launch)
            self.clear()

    init = _Sampling.__init__

    def with_other_threads(sampling: Any) -> None:
        init(sampling)
        sampling._launches = Dropped()

    monkeypatch.setattr(_Sampling, "__init__", with_other_threads)
    mask = csr_array(np.eye(5, dtype=np.float32), queue=queue)
    for inner in (1, 6):
        result = sddmm(mask, np.ones((5, inner), np.float32), np.ones((inner, 5), np.float32))
        np.testing.assert_array_equal(result.toarray(), inner * np.eye(5))


def test_gradients_of_spmm(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(1)
    host = scipy.sparse.random_array((20, 30), density=0.2, rng=rng, format="csr", dtype=np.float32)
    A, X, G = csr_array(host, queue=queue), rng.random((30, 4), np.float32), rng.random((20, 4), np.float32)
    step = np.float32(1e-2)
    of_values = sddmm(A, G, X.T).data.get()
    for entry in (0, 11):
        more = host.copy()
        more.data[entry] += step
        np.testing.assert_allclose(((more @ X - host @ X) * G).sum() / step, of_values[entry], rtol=1e-2)


def test_bad_input(queue: cl.CommandQueue) -> None:
    M, X, Y = csr_array(np.eye(3), queue=queue), np.ones((3, 2)), np.ones((2, 3))
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    for error, message, operands in (
        (ValueError, r"^X: must have 3 rows", (np.ones((2, 2)), Y)),
        (ValueError, r"^Y: must have 3 columns", (X, np.ones((2, 2)))),
        (ValueError, r"^Y: must have 2 rows", (X, np.ones((3, 3)))),
        (ValueError, r"^X: must have 2 dimensions", (np.ones(3), Y)),
        (TypeError, r"^Y: dtype .* is not supported", (X, Y.astype(object))),
        (ValueError, r"^X: lives in another context", (cl_array.to_device(other, X), Y)),
    ):
        with pytest.raises(error, match=message):
            sddmm(M, *operands)
    with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array"):
        sddmm(np.eye(3), X, Y)
