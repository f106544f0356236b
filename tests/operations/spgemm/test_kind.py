"""Decisions that products of one kind share are made once; a small product needs little memory beside its result."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix
from scratch import count_buffers

from clsparse_py import describe
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._precision.arithmetic import Arithmetic

pytestmark = pytest.mark.any_platform

TYPES = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float32", "float32"), c_index="int32")


def test_a_kind_is_made_once(queue: cl.CommandQueue) -> None:
    assert kind_of(describe(queue.device), TYPES) is kind_of(describe(queue.device), TYPES)


def test_entries_are_counted_in_the_memory_of_row_pointers(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sp.csr_array(sp.eye_array(6000, format="csr", dtype=np.float32))
    A = device_matrix(queue, host)
    _ = A @ A
    with count_buffers(monkeypatch) as allocations:
        C = A @ A
    assert_product(C, host, host)
    assert allocations.peak(C) < C.indptr.nbytes // 2
