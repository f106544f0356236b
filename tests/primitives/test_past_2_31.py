"""Lengths past 2^31, where the device has the memory."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import array as cl_array
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel

from clsparse_py import describe, primitives

N = (1 << 31) + 1001
#: Arrays of 4 N bytes that a test takes, with workspace.
ARRAYS = 6

pytestmark = pytest.mark.every_platform


@pytest.fixture
def large(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue whose device has the memory."""
    device = describe(queue.device)
    if device.lanes_are_loops or device.global_memory < ARRAYS * 4 * N or queue.device.max_mem_alloc_size < 4 * N:
        pytest.skip(f"{device.name} has not the memory, or is a CPU")
    return queue


def scattered_keys(queue: cl.CommandQueue) -> cl_array.Array:
    """N different keys, in no order: a bijection of 32 bits."""
    keys = cl_array.empty(queue, N, np.uint32)
    ElementwiseKernel(queue.context, "uint *keys", "keys[i] = (uint)i * 2654435769u", "scattered")(keys)
    return keys


def out_of_order(keys: cl_array.Array) -> int:
    """How many keys are not larger than the one before."""
    count = ReductionKernel(
        keys.queue.context, np.int64, neutral="0", reduce_expr="a + b", map_expr="i && keys[i - 1] >= keys[i]",
        arguments="uint *keys",
    )  # fmt: skip
    return int(count(keys).get())


def total(keys: cl_array.Array) -> int:
    """The sum of keys modulo 2^64."""
    add = ReductionKernel(
        keys.queue.context, np.uint64, neutral="0", reduce_expr="a + b", map_expr="keys[i]", arguments="uint *keys"
    )
    return int(add(keys).get())


def test_scan(large: cl.CommandQueue) -> None:
    ones = cl_array.empty(large, N, np.uint32)
    ones.fill(1)
    result = primitives.inclusive_scan(ones, out=ones)
    assert out_of_order(result) == 0
    assert result[:3].get().tolist() == [1, 2, 3]
    assert result[N - 2 :].get().tolist() == [N - 1, N]


def test_radix_sort(large: cl.CommandQueue) -> None:
    keys = scattered_keys(large)
    wanted = total(keys)
    result = primitives.radix_sort(keys)
    assert result.size == N
    assert out_of_order(result) == 0
    assert total(result) == wanted


def test_segmented_sum(large: cl.CommandQueue) -> None:
    ones = cl_array.empty(large, N, np.uint32)
    ones.fill(1)
    bounds = np.array([0, 5, 5, N - 7, N], np.int64)
    result = primitives.segmented_sum(cl_array.to_device(large, bounds), ones)
    np.testing.assert_array_equal(result.get(), np.diff(bounds))


def test_segmented_sort(large: cl.CommandQueue) -> None:
    keys = scattered_keys(large)
    wanted = total(keys)
    bounds = np.array([0, N // 2, N], np.int64)
    result = primitives.segmented_sort(cl_array.to_device(large, bounds), keys)
    assert out_of_order(result) == int(result[N // 2 - 1].get() >= result[N // 2].get())
    assert total(result) == wanted
