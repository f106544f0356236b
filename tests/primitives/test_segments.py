"""Segmented sort and segmented merge as callers meet them, against their serial references."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations
from platforms import PLATFORMS, has_fp64, queue_on
from pyopencl import array as cl_array

from clsparse_py._build import programs
from clsparse_py._primitives import reference
from clsparse_py._primitives.segmented_merge import ALGORITHMS, enqueue_segmented_merge
from clsparse_py._primitives.segments import Shape
from clsparse_py._run.launch import Chain
from clsparse_py.primitives import segmented_merge, segmented_sort

KEYS = ("int32", "uint32", "int64", "uint64")
VALUES = (None, "int8", "float32", "complex128")
#: Lengths of segments.
LENGTHS: dict[str, list[int]] = {
    "none": [],
    "empty": [0, 0, 0],
    "one element": [1],
    "gaps at both ends": [0, 0, 3, 1, 0, 2, 0],
    "powers of two": [n + d for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) for d in (-1, 0, 1)],
    "one long": [3, 0, 70_001, 5],
    "ones": [1] * 300,
}
#: Lengths of the sub-segments of each segment.
MERGES: dict[str, list[list[int]]] = {
    "none": [],
    "no sub-segments": [[], []],
    "empty": [[0, 0], [], [0]],
    "single": [[5], [1], [0], [40]],
    "gaps": [[0, 3, 0, 0, 2], [], [0, 7], [1, 1, 1, 1, 1], [0]],
    "uneven": [[23, 0, 556, 1], [3234, 52], [1, 123]],
    "many": [[3] * 77, [0, 1] * 40, [9]],
    "one long": [[1] * 5, [5000] * 13 + [1, 0, 4000], [2, 2]],
}


def on_device(queue: cl.CommandQueue, values: Any) -> cl_array.Array:
    return cl_array.to_device(queue, np.ascontiguousarray(values))


def some_keys(n: int, dtype: str, pattern: str) -> Any:
    info, rng = np.iinfo(dtype), np.random.default_rng(n)
    if pattern == "random":
        return rng.integers(info.min, info.max, n, dtype, endpoint=True)
    return {"equal": np.full(n, 3), "two": rng.integers(0, 2, n), "sorted": np.arange(n), "reversed": np.arange(n)[::-1]}[
        pattern
    ].astype(dtype)


def compare(result: Any, wanted: Any, values: Any) -> None:
    for array, expected in zip((result,) if values is None else result, (wanted,) if values is None else wanted, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array.get(), expected)


def legal(case: dict[str, Any]) -> bool:
    return has_fp64(case["platform"]) or case["value"] not in ("float64", "complex128")


def positions(n: int, dtype: str | None) -> Any:
    """Return values that tell equal keys apart, as far as the dtype does."""
    return None if dtype is None else (np.arange(n) % 113).astype(dtype)


COMMON = {
    "platform": list(PLATFORMS),
    "key": KEYS,
    "value": VALUES,
    "index": ["int32", "int64"],
    "pattern": ["random", "equal", "two", "sorted", "reversed"],
}


@pytest.mark.parametrize("case", combinations({**COMMON, "lengths": list(LENGTHS)}, legal), ids=str)
def test_sort(case: dict[str, Any]) -> None:
    queue, ptr = queue_on(case["platform"]), np.cumsum([0, *LENGTHS[case["lengths"]]]).astype(case["index"])
    n = int(ptr[-1])
    keys, values = some_keys(n, case["key"], case["pattern"]), positions(n, case["value"])
    wanted = reference.segmented_sort(ptr, keys, values)
    given = on_device(queue, ptr), on_device(queue, keys), None if values is None else on_device(queue, values)
    compare(segmented_sort(*given), wanted, values)


def pointers(merges: list[list[int]], index: str) -> tuple[Any, Any]:
    segment_ptr = np.cumsum([0, *(len(merge) for merge in merges)]).astype(index)
    return segment_ptr, np.cumsum([0, *(length for merge in merges for length in merge)]).astype(index)


def sort_runs(keys: Any, subsegment_ptr: Any) -> Any:
    for begin, end in itertools.pairwise(subsegment_ptr):
        keys[begin:end].sort()
    return keys


SHAPES = [None, Shape.lanes(48, 64, 4), Shape.chunks(7, 33)]
MERGING = {**COMMON, "merges": list(MERGES), "algorithm": ALGORITHMS, "shape": SHAPES}


def legal_merge(case: dict[str, Any]) -> bool:
    """The balanced algorithm has tests of its own for its shapes."""
    return legal(case) and (case["shape"] is None or case["algorithm"] != "balanced")


@pytest.mark.parametrize("case", combinations(MERGING, legal_merge), ids=str)
def test_merge(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    segment_ptr, subsegment_ptr = pointers(MERGES[case["merges"]], case["index"])
    n = int(subsegment_ptr[-1])
    keys = sort_runs(some_keys(n, case["key"], case["pattern"]), subsegment_ptr)
    values = positions(n, case["value"])
    wanted = reference.segmented_merge(segment_ptr, subsegment_ptr, keys, values)
    given = [on_device(queue, matrix) for matrix in (segment_ptr, subsegment_ptr, keys)]
    given += [] if values is None else [on_device(queue, values)]
    if case["shape"] is None or not n:
        compare(segmented_merge(*given, algorithm=case["algorithm"], check=True), wanted, values)
        return
    target = tuple(cl_array.empty(queue, n, array.dtype) for array in given[2:])
    chain = Chain(queue)
    enqueue_segmented_merge(
        chain, tuple(given[:2]), tuple(given[2:]), target, n, case["algorithm"], check=True, shape=case["shape"]
    )
    chain.finish(*target)
    compare(target[0] if values is None else target, wanted, values)


@settings(max_examples=20)
@given(data=st.data())
def test_any_structure(queue: cl.CommandQueue, data: st.DataObject) -> None:
    length = st.integers(0, 70) | st.sampled_from([0, 1, 127, 128, 129, 700])
    merges = data.draw(st.lists(st.lists(length, max_size=9), max_size=9))
    segment_ptr, subsegment_ptr = pointers(merges, "int32")
    n = int(subsegment_ptr[-1])
    keys = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, data.draw(st.sampled_from([1, 5, 10**6])), n)
    keys, values = keys.astype(np.uint32), np.arange(n, dtype=np.int32)
    ptr = subsegment_ptr[segment_ptr]
    compare(
        segmented_sort(*(on_device(queue, matrix) for matrix in (ptr, keys, values))),
        reference.segmented_sort(ptr, keys, values),
        values,
    )
    keys = sort_runs(keys, subsegment_ptr)
    compare(
        segmented_merge(*(on_device(queue, matrix) for matrix in (segment_ptr, subsegment_ptr, keys, values))),
        reference.segmented_merge(segment_ptr, subsegment_ptr, keys, values),
        values,
    )


def test_out_may_be_the_arguments(queue: cl.CommandQueue) -> None:
    ptr = np.array([0, 2, 3, 900], np.int32)
    keys, values = some_keys(900, "int32", "random"), np.arange(900, dtype=np.float32)
    a, b = on_device(queue, keys), on_device(queue, values)
    segmented_sort(on_device(queue, ptr), a, b, out=(a, b))
    compare((a, b), reference.segmented_sort(ptr, keys, values), values)
    runs = sort_runs(keys.copy(), ptr)
    a, whole = on_device(queue, runs), np.array([0, 3], np.int32)
    segmented_merge(on_device(queue, whole), on_device(queue, ptr), a, out=a)
    compare(a, reference.segmented_merge(whole, ptr, runs), None)


def test_the_second_call_builds_nothing(queue: cl.CommandQueue) -> None:
    ptr, keys = on_device(queue, np.array([0, 5, 9000], np.int32)), on_device(queue, np.arange(9000, dtype=np.int32))
    whole = on_device(queue, np.array([0, 2], np.int32))

    def use() -> int:
        segmented_sort(ptr, keys)
        segmented_merge(whole, ptr, keys)
        return len(list(programs.built()))

    assert use() == use()


GOOD: dict[str, Any] = {
    "segment_ptr": np.array([0, 1, 3], np.int32),
    "subsegment_ptr": np.array([0, 2, 3, 6], np.int32),
    "keys": np.array([1, 2, 3, 1, 2, 3], np.int32),
    "values": np.arange(6, dtype=np.float32),
}


@pytest.mark.parametrize(
    ("bad", "named", "error"),
    [
        ({"segment_ptr": np.array([1, 1, 3], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([0, 3, 1], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([0, 1, 7], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([0, 1, 2], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.zeros(0, np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([0.0, 3.0])}, "segment_ptr", TypeError),
        ({"subsegment_ptr": np.array([0, 4, 3, 6], np.int32)}, "subsegment_ptr", ValueError),
        ({"subsegment_ptr": np.array([0, 2, 3, 5], np.int32)}, "subsegment_ptr", ValueError),
        ({"subsegment_ptr": np.array([0, 2, 3, 900], np.int32)}, "subsegment_ptr", ValueError),
        ({"subsegment_ptr": np.array([2, 2, 3, 6], np.int32)}, "subsegment_ptr", ValueError),
        ({"keys": np.zeros(6, np.float32)}, "keys", TypeError),
        ({"values": np.zeros(5, np.float32)}, "values", ValueError),
        ({"algorithm": "quick"}, "algorithm", ValueError),
        ({"keys": np.array([2, 1, 3, 1, 2, 3], np.int32), "check": True}, "keys", ValueError),
        ({"out": np.zeros(6, np.int32)}, "out", TypeError),
    ],
)
def test_bad_input_of_merge(queue: cl.CommandQueue, bad: dict[str, Any], named: str, error: type[Exception]) -> None:
    given = {
        name: on_device(queue, matrix) if isinstance(matrix, np.ndarray) else matrix for name, matrix in {**GOOD, **bad}.items()
    }
    with pytest.raises(error, match=f"^{named}:"):
        segmented_merge(**given)


@pytest.mark.parametrize(
    ("bad", "named", "error"),
    [
        ({"segment_ptr": np.array([0, 4, 3, 6], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([0, 900], np.int32)}, "segment_ptr", ValueError),
        ({"segment_ptr": np.array([-1, 6], np.int32)}, "segment_ptr", ValueError),
        ({"keys": np.zeros(6, np.int16)}, "keys", TypeError),
        ({"values": np.zeros(7, np.float32)}, "values", ValueError),
    ],
)
def test_bad_input_of_sort(queue: cl.CommandQueue, bad: dict[str, Any], named: str, error: type[Exception]) -> None:
    good = {"segment_ptr": GOOD["subsegment_ptr"], "keys": GOOD["keys"], "values": GOOD["values"]}
    with pytest.raises(error, match=f"^{named}:"):
        segmented_sort(**{name: on_device(queue, matrix) for name, matrix in {**good, **bad}.items()})
