"""Products in the rows that a mask lets through."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py import csr_array, min_plus, plus_times, spmv
from clsparse_py._build.plain import are_plain
from clsparse_py._ground.errors import BuildError
from clsparse_py._operations.spmv.masked import MaskedRows


def test_rows_are_taken_and_others_stay(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    host = scipy.sparse.random_array((200, 90), density=0.1, rng=rng, format="csr", dtype=np.float32)
    host[3] = 0
    A, x, mask = csr_array(host, queue=queue), rng.random(90, np.float32), rng.random(200) < 0.4
    whole = host @ x
    for given in (mask, mask.astype(float), cl_array.to_device(queue, mask), cl_array.to_device(queue, mask.astype(np.int32))[:]):
        np.testing.assert_allclose(spmv(A, x, mask=given), np.where(mask, whole, 0), rtol=1e-5)
    before = rng.random(200, np.float32)
    for complement in (False, True):
        wanted = np.where(mask != complement, whole, before)
        out = before.copy()
        assert spmv(A, x, mask=mask, complement=complement, out=out) is out
        np.testing.assert_allclose(out, wanted, rtol=1e-5)
        on_device = cl_array.to_device(queue, before)
        strided = cl_array.to_device(queue, np.repeat(x, 2))[::2]
        spmv(A, strided, mask=mask, complement=complement, out=on_device)
        np.testing.assert_allclose(on_device.get(), wanted, rtol=1e-5)


def test_other_semirings_and_index_types(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array(np.array([[1, 0, 5], [0, 0, 0], [2, 7, 0], [0, 0, 3]]))
    parts = (host.data, host.indices.astype(np.int64), host.indptr.astype(np.int64))
    A = csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=host.shape)
    x, most = np.array([10, 20, 30]), np.iinfo(np.int64).max
    assert spmv(A, x, mask=[1, 1, 0, 1], semiring=min_plus).tolist() == [11, most, most, 33]
    legal = MaskedRows.legal
    asked: list[bool] = []

    def refused(*arguments: Any) -> MaskedRows:
        asked.append(are_plain())
        if not are_plain():
            raise BuildError("no", log="", parameters=None, source=None)
        return legal(*arguments)

    with patch("clsparse_py._operations.spmv.masked.MaskedRows.legal", refused):
        assert spmv(A, x, mask=[1, 1, 0, 1], semiring=min_plus).tolist() == [11, most, most, 33]
    assert asked == [False, True]
    empty = csr_array((0, 3), queue=queue)
    assert spmv(empty, x, mask=np.zeros(0, bool)).shape == (0,)


def test_bad_input(queue: cl.CommandQueue) -> None:
    A, x = csr_array(np.eye(3), queue=queue), np.ones(3)
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    for error, message, named in (
        (ValueError, r"^mask: must have shape \(3,\), as A has 3 rows, has \(4,\)", {"mask": np.ones(4)}),
        (TypeError, r"^mask: must be of booleans or real numbers", {"mask": np.ones(3, complex)}),
        (ValueError, r"^mask: lives in another context", {"mask": cl_array.to_device(other, np.ones(3, np.uint8))}),
        (ValueError, r"^complement: belongs to a mask", {"complement": True}),
        (ValueError, r"^alpha: does not go with a mask", {"mask": np.ones(3), "alpha": 2}),
        (ValueError, r"^plan: does not go with a mask", {"mask": np.ones(3), "plan": A.spmv_plan()}),
    ):
        with pytest.raises(error, match=message):
            spmv(A, x, semiring=plus_times, **named)
