"""Reduction by key against the serial reference, by both kinds of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from chains import DEVICE_TYPES, chain_on, lengths_of_segments, on_device, room, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations, uncovered_pairs
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

from clsparse_py import primitives
from clsparse_py._device.device import describe
from clsparse_py._primitives import reference
from clsparse_py._primitives.reduce import KeyRuns

KEYS = ("int32", "uint32", "int64", "uint64")
AXES: Mapping[str, Any] = {
    "keys": KEYS,
    "work_group": [1, 7, 48, 64, "max"],
    "device_type": DEVICE_TYPES,
    "platform": list(PLATFORMS),
}
CASES = combinations(AXES)


def check_runs(queue: cl.CommandQueue, device_type: str, keys: np.ndarray, work_group: int | None = None) -> None:
    """Check which runs are found, and that nothing is written behind them."""
    source = on_device(queue, keys)
    chain = chain_on(queue, device_type, source)
    runs = KeyRuns(chain, source, keys.size, work_group)
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    assert runs.n_runs == starts.size
    unique = room(queue, runs.n_runs, keys.dtype)
    result = runs.enqueue_list(unique)
    chain.finish(unique, result)
    np.testing.assert_array_equal(unique.get(), [*keys[starts], 77])
    np.testing.assert_array_equal(result.get(), np.append(starts, keys.size))


def test_cases_hold_every_pair() -> None:
    assert not uncovered_pairs(AXES, lambda _: True, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_kernels(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    work_group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    rng = np.random.default_rng(1)
    extreme = np.array([0, np.iinfo(case["keys"]).max, np.iinfo(case["keys"]).min, 5], case["keys"])
    for n in (1, 2, 700, 15 * work_group):
        # Mostly runs of one, and long ones.
        check_runs(queue, case["device_type"], rng.choice(extreme, n), work_group)
        check_runs(queue, case["device_type"], np.repeat(extreme, n)[:n], work_group)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@pytest.mark.parametrize("n", [3839, 3840, 3841, 65_535, 65_536, 65_537, 70_001])
def test_lengths(queue: cl.CommandQueue, device_type: str, n: int) -> None:
    for keys in (np.zeros(n, np.uint32), np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.uint32) // 10):
        check_runs(queue, device_type, keys)


@pytest.mark.parametrize("device_type", DEVICE_TYPES)
@given(lengths=lengths_of_segments())
@settings(max_examples=40)
def test_any_runs(queue: cl.CommandQueue, device_type: str, lengths: list[int]) -> None:
    keys = np.repeat(np.arange(len(lengths)) % 3, lengths).astype(np.int32)
    if keys.size:
        check_runs(queue, device_type, keys, work_group=16)


@given(data=st.data())
@settings(max_examples=25)
def test_any_reduction(queue: cl.CommandQueue, data: st.DataObject) -> None:
    lengths = data.draw(lengths_of_segments(50))
    keys = np.repeat(np.arange(len(lengths)) * 7 % 5 - 2, lengths).astype(np.int64)
    values = values_of("float32", keys.size, np.random.default_rng(len(lengths)))
    result = primitives.reduce_by_key(cl_array.to_device(queue, keys), cl_array.to_device(queue, values))
    for part, wanted in zip(result, reference.reduce_by_key(keys, values), strict=True):
        np.testing.assert_array_equal(part.get(), wanted, strict=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 900])
def test_function(queue: cl.CommandQueue, dtype: str, n: int) -> None:
    rng = np.random.default_rng(2)
    keys, values = np.sort(rng.integers(0, 200, n)).astype(np.int32), values_of(dtype, n, rng)
    k, v = cl_array.to_device(queue, keys), cl_array.to_device(queue, values)
    unique, sums = reference.reduce_by_key(keys, values)
    result = primitives.reduce_by_key(k, v)
    np.testing.assert_array_equal(result[0].get(), unique, strict=True)
    np.testing.assert_array_equal(result[1].get(), sums, strict=True)
    np.testing.assert_array_equal(k.get(), keys)
    np.testing.assert_array_equal(v.get(), values)
    # Arrays with room for more, and views that begin inside their buffers.
    out = cl_array.to_device(queue, np.full(n + 3, 9, keys.dtype)), cl_array.to_device(queue, np.full(n + 5, 9, sums.dtype))[2:]
    result = primitives.reduce_by_key(k, v, out=out)
    for part, whole, wanted in zip(result, out, (unique, sums), strict=True):
        np.testing.assert_array_equal(part.get(), wanted)
        np.testing.assert_array_equal(whole.get(), np.append(wanted, [9] * (whole.size - wanted.size)))
    # In the place of the operands.
    if sums.dtype == values.dtype:
        result = primitives.reduce_by_key(k, v, out=(k, v))
        np.testing.assert_array_equal(result[0].get(), unique)
        np.testing.assert_array_equal(result[1].get(), sums)


def test_bad_arguments(queue: cl.CommandQueue) -> None:
    k, v = cl_array.to_device(queue, np.arange(7, dtype=np.int32)), cl_array.to_device(queue, np.ones(7, np.float32))
    with pytest.raises(TypeError, match="keys: must be one of int32, uint32, int64, uint64, is float32"):
        primitives.reduce_by_key(v, v)
    with pytest.raises(TypeError, match="keys: must be one of int32, uint32, int64, uint64, is int16"):
        primitives.reduce_by_key(k.astype(np.int16), v)
    with pytest.raises(ValueError, match="values: must have as many entries as keys, 7, has 6"):
        primitives.reduce_by_key(k, v[:6])
    with pytest.raises(TypeError, match=r"keys: must be a pyopencl.array.Array, is ndarray"):
        primitives.reduce_by_key(np.arange(7), v)
    with pytest.raises(TypeError, match=r"out: must be a tuple \(keys, values\), is Array"):
        primitives.reduce_by_key(k, v, out=k)
    with pytest.raises(ValueError, match=r"out: must have shape \(7,\), has \(6,\)"):
        primitives.reduce_by_key(k, v, out=(cl_array.empty(queue, 6, np.int32), v))
    with pytest.raises(TypeError, match="out: must have the result's dtype int32, has float32"):
        primitives.reduce_by_key(k, v, out=(cl_array.empty(queue, 7, np.float32), v))
