"""Operands as a caller holds them: views, byte orders, unaligned and read-only memory, host and device, results in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected_product, host, random_values
from products import FAMILIES, multiply, random_csr
from pyopencl import array as cl_array

from clsparse_py import csr_array, spmv
from clsparse_py._device.device import describe


@pytest.mark.parametrize(
    "view",
    [lambda x: x[17:317], lambda x: x[::2][:300], lambda x: x[::-1][:300], lambda x: x[599::-2][:300], lambda x: x[5:305][::-1]],
    ids=["offset", "strided", "reversed", "strided and reversed", "offset and reversed"],
)
def test_views_of_x(square: tuple[sp.csr_array, csr_array], view: Any) -> None:
    matrix, A = square
    x = random_values(np.float32, 700, np.random.default_rng(1))
    wanted = expected_product(host(matrix), view(x))
    check(A @ view(x), wanted)
    on_device = cl_array.to_device(A.queue, x)
    result = A @ view(on_device)
    assert isinstance(result, cl_array.Array)
    check(result, wanted)
    out = cl_array.to_device(A.queue, np.ones(900, np.float32))
    again = spmv(A, view(on_device), alpha=2, beta=3, out=out[100:400])
    check(again, expected_product(host(matrix), view(x), alpha=2, beta=3, y=np.ones(300, np.float32)))
    np.testing.assert_array_equal(np.delete(out.get(), slice(100, 400)), 1)


def test_view_that_begins_between_two_entries(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.complex64, 300, np.random.default_rng(1))
    floats = cl_array.to_device(A.queue, np.concatenate(([9], x.view(np.float32))).astype(np.float32))
    shifted = floats[1:].view(np.complex64)
    assert shifted.offset % 8
    check(A @ shifted, expected_product(host(matrix), x))
    with pytest.raises(ValueError, match=r"^out: must begin at a multiple of 8 bytes"):
        spmv(A, cl_array.to_device(A.queue, x), out=shifted)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c8"])
def test_host_arrays_of_the_other_byte_order(square: tuple[sp.csr_array, csr_array], dtype: str) -> None:
    matrix, A = square
    x = np.arange(300).astype(dtype)
    check(A @ x, expected_product(host(matrix), x.astype(np.dtype(dtype).newbyteorder("="))))
    foreign = matrix.data.astype(dtype), matrix.indices.astype(">i8"), matrix.indptr.astype(">i4")
    check(
        csr_array(foreign, shape=matrix.shape, queue=A.queue) @ x,
        expected_product(host(matrix.astype(dtype[1:])), x.astype(dtype[1:])),
    )


@pytest.mark.parametrize("shift", [1, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_host_memory_that_opencl_calls_unaligned(queue: cl.CommandQueue, dtype: Any, shift: int) -> None:
    if dtype is np.complex128 and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    matrix = random_csr([3, 0, 200, 70], 90, 16, dtype)

    def moved(values: np.ndarray) -> np.ndarray:
        memory = np.zeros(values.nbytes + 64, np.uint8)
        begin = -memory.ctypes.data % 16 + shift
        view = memory[begin : begin + values.nbytes].view(values.dtype)
        view[:] = values
        return view

    x = moved(random_values(dtype, 90, np.random.default_rng(1)))
    out = moved(np.zeros(4, dtype))
    parts = tuple(moved(part) for part in host(matrix))
    A = csr_array(parts, shape=matrix.shape, queue=queue)
    for kernel in ("serial", "subvector8", "chunked"):
        assert multiply(A, x, kernel, out=out) is out
        check(out, expected_product(host(matrix), x))


def test_numpy_in_numpy_out_and_device_in_device_out(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.float32, 300, np.random.default_rng(1))
    wanted = expected_product(host(matrix), x)
    assert isinstance(A @ x, np.ndarray)
    assert isinstance(A @ list(x), np.ndarray)
    on_device = cl_array.to_device(A.queue, x)
    result = A @ on_device
    assert isinstance(result, cl_array.Array)
    assert result.queue is A.queue
    check(result, wanted)
    own, other = np.zeros(300, np.float32), cl_array.zeros(A.queue, 300, np.float32)
    assert spmv(A, x, out=own) is own
    assert spmv(A, on_device, out=other) is other
    np.testing.assert_array_equal(own, other.get())


def test_operands_are_not_changed(square: tuple[sp.csr_array, csr_array]) -> None:
    matrix, A = square
    x = random_values(np.float32, 300, np.random.default_rng(1))
    kept = matrix.copy(), x.copy()
    for kernel in FAMILIES:
        multiply(A, x, kernel)
    np.testing.assert_array_equal(x, kept[1])
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(A.get(), name), getattr(kept[0], name))
        np.testing.assert_array_equal(getattr(matrix, name), getattr(kept[0], name))


def test_read_only_arrays(queue: cl.CommandQueue) -> None:
    matrix = random_csr([3, 0, 200, 70], 90, 17)
    x = random_values(np.float32, 90, np.random.default_rng(1))
    for part in (*host(matrix), x):
        part.flags.writeable = False
    A = csr_array(matrix, queue=queue)
    check(A @ x, expected_product(host(matrix), x))
    out = np.zeros(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out: is read-only"):
        spmv(A, x, out=out)


def test_out_that_overlaps_x_is_refused(square: tuple[sp.csr_array, csr_array]) -> None:
    _, A = square
    x = np.ones(600, np.float32)
    on_device = cl_array.to_device(A.queue, x)
    for both in (x, on_device):
        for first, second in ((0, 0), (0, 299), (299, 0)):
            with pytest.raises(ValueError, match=r"^out: overlaps x"):
                spmv(A, both[first : first + 300], out=both[second : second + 300])
        spmv(A, both[:300], out=both[300:])  # beside each other in one buffer is well
    for first in (299, 589):  # what is read from its end on reaches back
        with pytest.raises(ValueError, match=r"^out: overlaps x"):
            spmv(A, on_device[first::-1][:300], out=on_device[:300])


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_as_a_column_keeps_its_two_dimensions(square: tuple[sp.csr_array, csr_array], order: str) -> None:
    matrix, A = square
    x = np.asarray(random_values(np.float32, (300, 1), np.random.default_rng(1)), order=order)
    result = A @ x
    assert result.shape == (300, 1)
    check(result, expected_product(host(matrix), x))
