"""Segmented sums and scans against the serial references, by both kinds of kernels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from chains import DEVICE_TYPES, chain_on, legal, lengths_of_segments, on_device, pointers_of, room, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations, uncovered_pairs
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

from clsparse_py import primitives
from clsparse_py._device.device import describe
from clsparse_py._primitives import reference
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.segmented import enqueue_segmented_scan, enqueue_segmented_sum

OPERATIONS = ("sum", "inclusive", "exclusive")
AXES: Mapping[str, Any] = {
    "operation": OPERATIONS,
    "dtype": ["bool", "int8", "uint64", "float32", "float64", "complex128"],
    "index": ["int32", "int64"],
    "work_group": [1, 7, 48, 64, "max"],
    "device_type": DEVICE_TYPES,
    "platform": list(PLATFORMS),
}
CASES = combinations(AXES, legal)
#: Empty segments at both ends and in between, segments that many parts share, and every length around a work-item's.
MIXED = [
    *([0] * 70), *range(20), 700, 0, 0, 300, 1, 2, 0, 0, 0, 1500, *([1] * 100), *([0, 3] * 50), 64, 63, 65, 255, 256, 257,
    *([0] * 90),
]  # fmt: skip


def compute(
    queue: cl.CommandQueue, device_type: str, operation: str, ptr: np.ndarray, values: np.ndarray, work_group: int | None = None
) -> np.ndarray:
    """Return the kernels' result for segments, and check that nothing is written behind it."""
    pointers, source = on_device(queue, ptr), on_device(queue, values)
    n_segments, n = ptr.size - 1, values.size
    size = n_segments if operation == "sum" else n
    out = room(queue, size, sum_dtype(values.dtype))
    chain = chain_on(queue, device_type, pointers, source, out)
    if operation == "sum":
        enqueue_segmented_sum(chain, pointers, source, out, n_segments, n, work_group)
    else:
        inclusive = operation == "inclusive"
        enqueue_segmented_scan(chain, pointers, source, out, n_segments, n, inclusive=inclusive, work_group=work_group)
    chain.finish(out)
    assert out.get()[size] == 77
    return out.get()[:size]


def expected_result(operation: str, ptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    if operation == "sum":
        return reference.segmented_sum(ptr, values)
    return reference.segmented_scan(ptr, values, exclusive=operation == "exclusive")


def test_cases_hold_every_pair() -> None:
    assert not uncovered_pairs(AXES, legal, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_kernels(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    work_group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    for lengths in (MIXED, [0] * 200, [len(MIXED)]):
        ptr = pointers_of(lengths, case["index"])
        values = values_of(case["dtype"], int(ptr[-1]), np.random.default_rng(3))
        if not values.size and case["operation"] != "sum":
            continue
        result = compute(queue, case["device_type"], case["operation"], ptr, values, work_group)
        np.testing.assert_array_equal(result, expected_result(case["operation"], ptr, values), strict=True)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
@given(data=st.data())
@settings(max_examples=40)
def test_any_segments(queue: cl.CommandQueue, device_type: str, operation: str, data: st.DataObject) -> None:
    ptr = pointers_of(data.draw(lengths_of_segments()), np.int32)
    values = values_of("int32", int(ptr[-1]), np.random.default_rng(ptr.size))
    if ptr.size == 1 or not values.size:
        # The public functions leave the device alone.
        p, v = cl_array.to_device(queue, ptr), cl_array.to_device(queue, values)
        assert not primitives.segmented_sum(p, v).get().any()
        assert primitives.segmented_scan(p, v).size == 0
        return
    result = compute(queue, device_type, operation, ptr, values, work_group=16)
    np.testing.assert_array_equal(result, expected_result(operation, ptr, values), strict=True)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@pytest.mark.parametrize(
    "lengths",
    [
        [70_001], [0] * 70_001, [1] * 70_001, [65_535, 0, 65_536, 1, 65_537], [0] * 131_072 + [70_001] + [0] * 131_072,
        [3840], [3839, 1], [3840, 3840], [0] * 3840, [0] * 3839 + [1], [2] * 1280,
    ],
    ids=lambda lengths: f"{len(lengths)}x{max(lengths)}",
)  # fmt: skip
def test_long_structures(queue: cl.CommandQueue, device_type: str, lengths: list[int]) -> None:
    ptr = pointers_of(lengths, np.int64)
    values = values_of("int32", int(ptr[-1]), np.random.default_rng(4))
    before = np.concatenate(([0], np.cumsum(values)))
    np.testing.assert_array_equal(compute(queue, device_type, "sum", ptr, values), before[ptr[1:]] - before[ptr[:-1]])
    if values.size:
        begin = np.repeat(before[ptr[:-1]], np.diff(ptr))
        np.testing.assert_array_equal(compute(queue, device_type, "inclusive", ptr, values), before[1:] - begin)
        np.testing.assert_array_equal(compute(queue, device_type, "exclusive", ptr, values), before[:-1] - begin)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
def test_what_is_not_finite_stays_in_its_segment(queue: cl.CommandQueue, device_type: str) -> None:
    values = np.ones(9000, np.float32)
    values[[10, 4000]] = np.nan, np.inf
    ptr = pointers_of([10, 5, 3000, 0, 2000, 3985], np.int32)
    sums = compute(queue, device_type, "sum", ptr, values)
    np.testing.assert_array_equal(sums, [10, np.nan, 3000, 0, np.inf, 3985])
    for operation in ("inclusive", "exclusive"):
        np.testing.assert_array_equal(
            compute(queue, device_type, operation, ptr, values), expected_result(operation, ptr, values)
        )


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
def test_results_are_bitwise_the_same_at_each_call(queue: cl.CommandQueue, device_type: str) -> None:
    rng = np.random.default_rng(5)
    ptr = pointers_of(rng.permutation([0, 3, 9000, 1, *rng.integers(0, 60, 300)]), np.int32)
    values = rng.standard_normal(int(ptr[-1])).astype(np.float32)
    exact = np.array([values[a:b].astype(np.float64).sum() for a, b in itertools.pairwise(ptr)])
    for operation in OPERATIONS:
        first, second = (compute(queue, device_type, operation, ptr, values) for _ in range(2))
        np.testing.assert_array_equal(first.view(np.uint32), second.view(np.uint32))
        if operation == "sum":
            np.testing.assert_allclose(first, exact, atol=1e-3)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex64"])
def test_functions(queue: cl.CommandQueue, dtype: str, index: str) -> None:
    ptr = pointers_of([0, 4, 0, 300, 1, 0, 0, 7, 0], index)
    values = values_of(dtype, int(ptr[-1]), np.random.default_rng(6))
    p, v = cl_array.to_device(queue, ptr), cl_array.to_device(queue, values)
    sums, scans = reference.segmented_sum(ptr, values), reference.segmented_scan(ptr, values)
    np.testing.assert_array_equal(primitives.segmented_sum(p, v).get(), sums, strict=True)
    np.testing.assert_array_equal(primitives.segmented_scan(p, v).get(), scans, strict=True)
    before = reference.segmented_scan(ptr, values, exclusive=True)
    np.testing.assert_array_equal(primitives.segmented_scan(p, v, exclusive=True).get(), before, strict=True)
    out = cl_array.empty(queue, sums.size, sums.dtype)
    assert primitives.segmented_sum(p, v, out=out) is out
    np.testing.assert_array_equal(out.get(), sums)
    # Operands and results that are parts of larger arrays; a result that is the operand.
    larger = cl_array.to_device(queue, np.full(values.size + 5, 9, sums.dtype))
    shifted = cl_array.to_device(queue, np.concatenate((values[:3], values)))[3:]
    np.testing.assert_array_equal(primitives.segmented_scan(p, shifted, out=larger[2:-3]).get(), scans)
    np.testing.assert_array_equal(larger.get()[[0, 1, -3, -2, -1]], [9] * 5)
    wide = cl_array.to_device(queue, np.repeat(ptr, 2))
    np.testing.assert_array_equal(primitives.segmented_sum(wide[::2], v).get(), sums)
    np.testing.assert_array_equal(p.get(), ptr)
    np.testing.assert_array_equal(v.get(), values)
    if dtype != "bool":
        np.testing.assert_array_equal(primitives.segmented_sum(p, v, out=v[: sums.size]).get(), sums)
        v.set(values)
        assert primitives.segmented_scan(p, v, out=v) is v
        np.testing.assert_array_equal(v.get(), scans)


def test_a_result_in_the_place_of_the_pointers(queue: cl.CommandQueue) -> None:
    ptr, values = pointers_of([1] * 4, np.int32), np.arange(4, dtype=np.int32)
    p, v = cl_array.to_device(queue, ptr), cl_array.to_device(queue, values)
    np.testing.assert_array_equal(primitives.segmented_scan(p, v, out=p[:4]).get(), values)


@pytest.mark.parametrize("function", [primitives.segmented_sum, primitives.segmented_scan])
@pytest.mark.parametrize(
    ("ptr", "message"),
    [
        ([1, 7], "segment_ptr: must begin with 0, begins with 1"),
        ([-1, 7], "segment_ptr: must begin with 0, begins with -1"),
        ([0, 5, 3, 7, 6, 7], "segment_ptr: must not decrease, does so in 2 places"),
        ([0, 6], "segment_ptr: must end with the length of values, 7, ends with 6"),
        ([0, 10_000], "segment_ptr: must end with the length of values, 7, ends with 10000"),
        ([0], "segment_ptr: must end with the length of values, 7, ends with 0"),
        ([], "segment_ptr: must have an entry for each segment and one more, is empty"),
    ],
)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_bad_pointers(queue: cl.CommandQueue, function: Any, ptr: list[int], message: str, index: Any) -> None:
    values = cl_array.to_device(queue, np.ones(7, np.float32))
    with pytest.raises(ValueError, match=message):
        function(cl_array.to_device(queue, np.array(ptr, index)), values)


@pytest.mark.parametrize("function", [primitives.segmented_sum, primitives.segmented_scan])
def test_bad_arguments(queue: cl.CommandQueue, function: Any) -> None:
    p, v = cl_array.to_device(queue, np.array([0, 3, 7])), cl_array.to_device(queue, np.ones(7, np.float32))
    for bad in (np.array([0, 3, 7]), None, [0, 3, 7]):
        with pytest.raises(TypeError, match=r"segment_ptr: must be a pyopencl.array.Array"):
            function(bad, v)
    with pytest.raises(TypeError, match="segment_ptr: must be one of int32, int64, is uint32"):
        function(p.astype(np.uint32), v)
    with pytest.raises(TypeError, match="values: dtype float16 is not supported"):
        function(p, cl_array.to_device(queue, np.ones(7, np.float16)))
    n = 2 if function is primitives.segmented_sum else 7
    with pytest.raises(ValueError, match=rf"out: must have shape \({n},\), has \(5,\)"):
        function(p, v, out=v[:5])
    with pytest.raises(TypeError, match="out: must have the result's dtype float32, has int32"):
        function(p, v, out=cl_array.empty(queue, n, np.int32))
