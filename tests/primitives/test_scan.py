"""Scans against NumPy's sums and the serial references, by both kinds of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from chains import DEVICE_TYPES, LENGTHS, chain_on, legal, on_device, room, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations, uncovered_pairs
from platforms import PLATFORMS, make_queue, queue_on
from pyopencl import array as cl_array

from clsparse_py import primitives
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._primitives import reference
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.scan import enqueue_scan

KINDS = ("exclusive", "inclusive", "pointers")
AXES: Mapping[str, Any] = {
    "kind": KINDS,
    "dtype": ["bool", "int8", "uint64", "float32", "float64", "complex128"],
    "work_group": [1, 7, 48, 64, "max"],
    "device_type": DEVICE_TYPES,
    "in_place": [False, True],
    "platform": list(PLATFORMS),
}
CASES = combinations(AXES, legal)


def expected_scan(values: np.ndarray, kind: str, target: Any) -> np.ndarray:
    through = np.concatenate((np.zeros(1, target), np.cumsum(values, dtype=target)))
    return {"exclusive": through[:-1], "inclusive": through[1:], "pointers": through}[kind]


def run_scan(
    queue: cl.CommandQueue, device_type: str, values: np.ndarray, kind: str, target: Any = None, work_group: int | None = None
) -> np.ndarray:
    """Return the scan of values, and check that nothing is written behind it."""
    dtype = sum_dtype(values.dtype) if target is None else np.dtype(target)
    source, n = on_device(queue, values), values.size + (kind == "pointers")
    out = room(queue, n, dtype)
    chain = chain_on(queue, device_type, source, out)
    enqueue_scan(chain, source, out, values.size, kind=kind, work_group=work_group)
    chain.finish(out)
    assert out.get()[n] == 77
    return out.get()[:n]


def test_cases_hold_every_pair() -> None:
    assert not uncovered_pairs(AXES, legal, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_kernels(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    work_group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    rng = np.random.default_rng(3)
    # Three levels of tiles with the smallest work-group, several tiles and a part of one with the others.
    for n in (1, 15 * work_group + 1, 400 if work_group == 1 else 40 * work_group + 5):
        values = values_of(case["dtype"], n, rng)
        expected = expected_scan(values, case["kind"], sum_dtype(values.dtype))
        with programs.recording() as built:
            result = run_scan(queue, case["device_type"], values, case["kind"], work_group=work_group)
        np.testing.assert_array_equal(result, expected, strict=True)
        groups = {program.parameters.work_group for program in built}
        assert max(groups) <= work_group
        if case["in_place"] and values.dtype == expected.dtype:
            both = room(queue, n + 1, values.dtype)
            both[:n] = cl_array.to_device(queue, values)
            chain = chain_on(queue, case["device_type"], both)
            enqueue_scan(chain, both, both, n, kind=case["kind"], work_group=work_group)
            chain.finish(both)
            np.testing.assert_array_equal(both.get()[: expected.size], expected)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths(queue: cl.CommandQueue, device_type: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    for n in LENGTHS:
        values = values_of("int32", n, rng)
        np.testing.assert_array_equal(run_scan(queue, device_type, values, kind), expected_scan(values, kind, np.int32))


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@pytest.mark.parametrize(("source", "target"), [("int32", "int64"), ("uint8", "int32"), ("bool", "int32"), ("int16", "float32")])
def test_sums_are_made_in_the_dtype_of_the_result(queue: cl.CommandQueue, device_type: str, source: str, target: str) -> None:
    values = np.full(5000, np.iinfo(source).max if source != "bool" else True, source)
    expected = expected_scan(values, "inclusive", target)
    if target == "float32":
        values = values_of(source, 5000, np.random.default_rng(0))
        expected = expected_scan(values, "inclusive", target)
    np.testing.assert_array_equal(run_scan(queue, device_type, values, "inclusive", target), expected, strict=True)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@given(data=st.data())
@settings(max_examples=25)
def test_any_length(queue: cl.CommandQueue, device_type: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 3000) | st.sampled_from([239, 240, 241, 479, 480, 481, 57_599, 57_600, 57_601]))
    kind = data.draw(st.sampled_from(KINDS))
    values = values_of("int32", n, np.random.default_rng(n))
    result = run_scan(queue, device_type, values, kind, work_group=16)
    np.testing.assert_array_equal(result, expected_scan(values, kind, np.int32))


def test_results_are_bitwise_the_same_at_each_call(queue: cl.CommandQueue) -> None:
    values = np.random.default_rng(5).standard_normal(20_000).astype(np.float32)
    for device_type in DEVICE_TYPES:
        first, second = (run_scan(queue, device_type, values, "inclusive") for _ in range(2))
        np.testing.assert_array_equal(first.view(np.uint32), second.view(np.uint32))
        np.testing.assert_allclose(first, np.cumsum(values.astype(np.float64)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["exclusive_scan", "inclusive_scan"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 500])
def test_functions(queue: cl.CommandQueue, name: str, dtype: str, n: int) -> None:
    values = values_of(dtype, n, np.random.default_rng(6))
    a = cl_array.to_device(queue, values)
    function, expected = getattr(primitives, name), getattr(reference, name)(values)
    result = function(a)
    assert isinstance(result, cl_array.Array)
    assert result.queue is a.queue
    np.testing.assert_array_equal(result.get(), expected, strict=True)
    np.testing.assert_array_equal(a.get(), values)
    out = cl_array.empty(queue, n, expected.dtype)
    assert function(a, out=out) is out
    np.testing.assert_array_equal(out.get(), expected)
    # A part of a larger array, which stays as it is beside the result; then the operand itself.
    larger = cl_array.to_device(queue, np.full(n + 5, 9, expected.dtype))
    np.testing.assert_array_equal(function(a, out=larger[3 : 3 + n]).get(), expected)
    np.testing.assert_array_equal(larger.get(), np.concatenate(([9] * 3, expected, [9] * 2)))
    if expected.dtype == values.dtype:
        np.testing.assert_array_equal(function(a, out=a).get(), expected)


def test_views_are_scanned(queue: cl.CommandQueue) -> None:
    values = values_of("float32", 1000, np.random.default_rng(7))
    a = cl_array.to_device(queue, values)
    for part in (slice(3, None), slice(None, None, 2), slice(998, None, -3), slice(5, 5)):
        np.testing.assert_array_equal(primitives.inclusive_scan(a[part]).get(), reference.inclusive_scan(values[part]))
    shifted = a[:999]
    np.testing.assert_array_equal(primitives.inclusive_scan(shifted, out=a[1:]).get(), reference.inclusive_scan(values[:999]))


def test_an_out_of_order_queue(queue: cl.CommandQueue) -> None:
    properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    try:
        loose = make_queue(queue, properties)
    except cl.Error:
        pytest.skip("the device has no such queues")
    values = values_of("int32", 100_000, np.random.default_rng(8))
    a = cl_array.to_device(loose, values)
    np.testing.assert_array_equal(primitives.inclusive_scan(primitives.inclusive_scan(a)).get(), values.cumsum().cumsum())


def test_the_second_call_builds_nothing(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    a = cl_array.to_device(queue, np.ones(100_000, np.float32))
    primitives.inclusive_scan(a)
    monkeypatch.setattr(programs, "_build", lambda *_: pytest.fail("built again"))
    primitives.inclusive_scan(a)
