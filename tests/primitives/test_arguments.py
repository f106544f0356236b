"""Arguments that all primitives refuse, and where results go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from chains import DEVICE_TYPES, chain_on, pointers_of
from pyopencl import array as cl_array

from clsparse_py import primitives
from clsparse_py._device.device import describe
from clsparse_py._primitives import arguments
from clsparse_py._run.launch import Chain

pytestmark = pytest.mark.any_platform


@pytest.mark.parametrize("function", [primitives.exclusive_scan, primitives.inclusive_scan])
def test_what_is_no_vector(queue: cl.CommandQueue, function: Any) -> None:
    for bad in (None, 3, [1, 2], np.arange(3)):
        with pytest.raises(TypeError, match=r"a: must be a pyopencl\.array\.Array, is "):
            function(bad)
    with pytest.raises(ValueError, match=r"a: must have one dimension, has 2 \(shape \(2, 3\)\)"):
        function(cl_array.zeros(queue, (2, 3), np.int32))
    with pytest.raises(TypeError, match="a: must be in the host's byte order, is >i4"):
        function(cl_array.Array(queue, 3, np.dtype(">i4")))
    with pytest.raises(TypeError, match="a: dtype float16 is not supported; use one of bool, "):
        function(cl_array.empty(queue, 3, np.float16))


def test_arrays_without_a_queue(queue: cl.CommandQueue) -> None:
    values, ptr = cl_array.to_device(queue, np.ones(3, np.float32)), cl_array.to_device(queue, pointers_of([3]))
    with pytest.raises(ValueError, match=r"a: has no queue; use its with_queue\(queue\)"):
        primitives.inclusive_scan(values.with_queue(None))
    # That of another operand serves.
    assert primitives.segmented_sum(ptr.with_queue(None), values).get() == 3
    assert primitives.segmented_sum(ptr, values.with_queue(None)).get() == 3


def test_arrays_of_another_context(queue: cl.CommandQueue) -> None:
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context, queue.device)
    here, there = (cl_array.to_device(array, np.arange(3, dtype=np.int64)) for array in (queue, other))
    with pytest.raises(ValueError, match="values: lives in another context than keys"):
        primitives.reduce_by_key(here, there)
    with pytest.raises(ValueError, match="values: lives in another context than segment_ptr"):
        primitives.segmented_sum(here, there)
    with pytest.raises(ValueError, match="out: lives in another context than the operands"):
        primitives.inclusive_scan(here, out=there)


def test_double_precision_where_there_is_none(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    class Single:
        fp64 = False

    values = cl_array.to_device(queue, np.ones(3, np.float32))
    if describe(queue.device).fp64:
        values = values.astype(np.float64)
        monkeypatch.setattr(arguments, "describe", lambda _: Single)
        with pytest.raises(TypeError, match=r"a: float64 needs double precision, which .* lacks; use single precision"):
            primitives.inclusive_scan(values)
    else:
        with pytest.raises(TypeError, match=r"a: float64 needs double precision, which .* lacks; use single precision"):
            primitives.inclusive_scan(cl_array.empty(queue, 3, np.float64))


def test_bad_outputs(queue: cl.CommandQueue) -> None:
    a = cl_array.to_device(queue, np.ones(6, np.float32))
    for bad in (np.ones(6, np.float32), 3, (a,)):
        with pytest.raises(TypeError, match=r"out: must be a pyopencl\.array\.Array, is "):
            primitives.inclusive_scan(a, out=bad)
    with pytest.raises(ValueError, match=r"out: must have shape \(6,\), has \(3, 2\)"):
        primitives.inclusive_scan(a, out=cl_array.empty(queue, (3, 2), np.float32))
    with pytest.raises(TypeError, match="out: must have the result's dtype float32, has float64"):
        primitives.inclusive_scan(a, out=cl_array.empty(queue, 6, np.float64))
    with pytest.raises(TypeError, match="out: must have the result's dtype int64, has bool"):
        primitives.inclusive_scan(a.astype(np.int8).view(bool), out=a.astype(np.int8).view(bool))
    with pytest.raises(ValueError, match=r"out: must be contiguous, has strides \(8,\)"):
        primitives.inclusive_scan(a, out=cl_array.empty(queue, 12, np.float32)[::2])
    bytes_ = cl_array.zeros(queue, 40, np.int8)
    with pytest.raises(ValueError, match="out: must begin at a multiple of 4 bytes in its buffer, begins at 2"):
        primitives.inclusive_scan(a, out=bytes_[2:26].view(np.float32))
    with pytest.raises(ValueError, match="a: must begin at a multiple of 4 bytes in its buffer, begins at 1"):
        primitives.inclusive_scan(bytes_[1:25].view(np.float32))


def test_pairs_of_outputs(queue: cl.CommandQueue) -> None:
    a = cl_array.zeros(queue, 3, np.int32)
    assert arguments.split_outputs(None, second=True) == (None, None)
    assert arguments.split_outputs(a, second=False) == (a, None)
    assert arguments.split_outputs((a[:2], a[2:]), second=True)[1].shape == (1,)
    for bad in (a, (a,), [a, a], (a, a, a)):
        with pytest.raises(TypeError, match=r"out: must be a tuple \(keys, values\), is "):
            arguments.split_outputs(bad, second=True)


def test_operands_are_not_copied_without_need(queue: cl.CommandQueue) -> None:
    a = cl_array.to_device(queue, np.arange(6, dtype=np.int32))
    assert arguments.prepare_keys(queue, "keys", a) is a
    assert arguments.prepare_values(queue, "values", a[:3], beside=("keys", 3)).base_data is a.base_data
    for part in (slice(1, None), slice(None, None, 2), slice(None, None, -1)):
        placed = arguments.prepare_keys(queue, "keys", a[part])
        assert placed.base_data is not a.base_data
        assert placed.offset == 0
        np.testing.assert_array_equal(placed.get(), np.arange(6)[part])


def test_a_result_beside_its_operands(queue: cl.CommandQueue) -> None:
    a, b = (cl_array.zeros(queue, 6, np.int32) for _ in range(2))
    chain = Chain(queue)

    def written(out: cl_array.Array | None, **options: Any) -> cl_array.Array:
        return arguments.prepare_output(chain, "out", out, 3, np.dtype(np.int32), a, **options).array

    assert written(b[:3]).base_data is b.base_data
    assert written(a[:3], in_place=a).base_data is a.base_data
    # Apart: what shares its buffer with an operand, or begins inside it.
    for out in (a[:3], a[3:], b[1:4]):
        assert written(out).base_data not in (a.base_data, b.base_data)
    fresh = arguments.prepare_output(chain, "out", None, 3, np.dtype(np.int32), a)
    assert fresh.deliver(chain) is fresh.array


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 10_000])
@pytest.mark.parametrize("device_type", DEVICE_TYPES)
def test_every_bad_place_in_pointers_is_found(queue: cl.CommandQueue, device_type: str, index: Any, work_group: int) -> None:
    ptr = pointers_of([0, 2, 0, 5] * 300, index)
    end = int(ptr[-1])

    def check(bad: np.ndarray) -> None:
        chain = chain_on(queue, device_type)
        arguments.check_pointers(chain, "segment_ptr", cl_array.to_device(queue, bad), end, work_group=work_group)

    check(ptr)
    for place in (1, 2, 599, 600, ptr.size - 2):
        bad = ptr.copy()
        bad[place] = end + 1
        with pytest.raises(ValueError, match="segment_ptr: must not decrease, does so in 1 places"):
            check(bad)
    with pytest.raises(ValueError, match=f"must end with the length of values, {end}, ends with {end - 5}"):
        check(ptr[:-1])
