"""Segmented sort and merge with kernels of every shape, on made-up structures; what the host waits for; what bad pointers do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from chains import on_device, pointers_of, room
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations
from platforms import PLATFORMS, make_queue, queue_on
from pyopencl import array as cl_array

from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._primitives import reference
from clsparse_py._primitives.segment_classes import Inspection
from clsparse_py._primitives.segmented_merge import enqueue_segmented_merge
from clsparse_py._primitives.segmented_sort import SortNetwork, enqueue_segmented_sort
from clsparse_py._primitives.segments import Shape
from clsparse_py._run.launch import Chain
from clsparse_py.primitives import segmented_merge, segmented_sort

#: Kernels with work-groups of 1, 7, 48, 64 and the most, few elements to a tile so that there are many; those for CPU devices in
#: another shape than their own.
SHAPES = {
    "lanes1": Shape.lanes(1, 1, 4),
    "lanes7": Shape.lanes(7, 48, 8),
    "lanes48": Shape.lanes(48, 64, 4),
    "lanes64": Shape.lanes(64, 1 << 20, 4),
    "most": Shape.lanes(1 << 20, 7, 4),
    "chunks7": Shape.chunks(7, 1000),
}
KEYS = ("int32", "uint32", "int64", "uint64")
#: Values of several sizes, whose last bits are those of their position.
VALUES = (None, "uint8", "uint32", "complex128")


def chain_on(queue: cl.CommandQueue, lanes: int | None) -> Chain:
    """Return a chain whose lanes exchange over at most so many."""
    chain = Chain(queue)
    if lanes is not None:
        chain.device = replace(chain.device, portability=chain.device.portability.at_most(lanes))
    return chain


def keys_of(n: int, dtype: str, seed: int) -> np.ndarray:
    """Return keys from the whole range, or a few with the ends of the range among them."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    if seed % 2:
        return rng.choice(np.array([limits.min, limits.max, limits.max - 1, 0, 1], dtype), n)
    return rng.integers(limits.min, limits.max, n, dtype, endpoint=True)


def values_of(n: int, dtype: str | None) -> np.ndarray | None:
    return None if dtype is None else np.arange(n).astype("int64" if dtype == "complex128" else dtype).astype(dtype)


def check_sort(queue: cl.CommandQueue, lengths: Any, case: dict[str, Any], seed: int = 0) -> None:
    """Sort with kernels of a shape and compare."""
    ptr = pointers_of(lengths, case["index"])
    n = int(ptr[-1])
    keys, values = keys_of(n, case["key"], seed), values_of(n, case["value"])
    moved = None if values is None else on_device(queue, values)
    out_keys, out_values = room(queue, n, keys.dtype), None if values is None else room(queue, n, values.dtype)
    chain = chain_on(queue, case["lanes"])
    pointers, given_keys = on_device(queue, ptr), on_device(queue, keys)
    enqueue_segmented_sort(
        chain, pointers, ptr.size - 1, given_keys, moved, n, out_keys=out_keys, out_values=out_values, shape=SHAPES[case["shape"]]
    )
    wanted = reference.segmented_sort(ptr, keys, values)
    compare((out_keys, out_values), wanted if values is not None else (wanted, None))


def check_merge(queue: cl.CommandQueue, merges: Any, case: dict[str, Any], seed: int = 0) -> None:
    """Merge with the balanced algorithm's kernels of a shape and compare."""
    segment_ptr = pointers_of([len(merge) for merge in merges], case["index"])
    subsegment_ptr = pointers_of([length for merge in merges for length in merge], case["index"])
    n = int(subsegment_ptr[-1])
    keys, values = keys_of(n, case["key"], seed), values_of(n, case["value"])
    for begin, end in itertools.pairwise(subsegment_ptr):
        keys[begin:end].sort()
    x = tuple(on_device(queue, matrix) for matrix in (keys, values) if matrix is not None)
    target = tuple(room(queue, n, array.dtype) for array in x)
    chain = chain_on(queue, case["lanes"])
    pointers = on_device(queue, segment_ptr), on_device(queue, subsegment_ptr)
    enqueue_segmented_merge(chain, pointers, x, target, n, shape=SHAPES[case["shape"]])
    wanted = reference.segmented_sort(subsegment_ptr[segment_ptr], keys, values)  # stable, so the same
    compare(target, wanted if values is not None else (wanted,))


def compare(result: Any, wanted: Any) -> None:
    """Compare results that have an entry of 77 behind them."""
    for array, expected in zip(result, wanted, strict=True):
        if expected is not None:
            np.testing.assert_array_equal(array.get(), np.append(expected, np.array(77, expected.dtype)))


AXES = {
    "operation": ["sort", "merge"],
    "shape": list(SHAPES),
    "key": KEYS,
    "value": VALUES,
    "index": ["int32", "int64"],
    "lanes": [None, 4, 1],
}
CASES = combinations({"platform": list(PLATFORMS), **AXES})
#: One below, at and above the powers of two that networks and tiles are of, several times and mixed with empty ones.
LENGTHS = [n + d for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) for d in (-1, 0, 1)] * 2 + [0] * 20 + [3] * 50
#: As in the issue of GPU merge path: sub-segments of very different lengths beside one another.
UNEVEN = [[0, 1, 23, 123, 3234], [0, 1, 52, 556], [3234, 0], [0, 556, 0, 1], [1], [], [0, 0], [9] * 70, [], [0]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_shape(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    for seed in (0, 1):
        if case["operation"] == "sort":
            check_sort(queue_on(case["platform"]), rng.permutation(LENGTHS), case, seed)
        else:
            check_merge(queue_on(case["platform"]), UNEVEN, case, seed)


@st.composite
def structures(draw: st.DrawFn) -> list[list[int]]:
    """Draw lengths of the sub-segments of segments, with empty ones at both ends."""
    around = st.sampled_from([n + d for n in (1, 4, 8, 16, 32, 64, 128) for d in (-1, 0, 1)])
    length = st.integers(0, 9) | around | st.integers(0, 300)
    segment = st.lists(length, max_size=7) | st.integers(0, 40).map(lambda n: [1] * n) | st.integers(0, 20).map(lambda n: [0] * n)
    empty = st.integers(0, 3).map(lambda n: [[] for _ in range(n)])
    return draw(empty) + draw(st.lists(segment, max_size=8)) + draw(empty)


@settings(max_examples=40)
@given(data=st.data())
def test_any_structure(queue: cl.CommandQueue, data: st.DataObject) -> None:
    # One set of types and few shapes: each builds its kernels.
    shape = data.draw(st.sampled_from(("lanes7", "lanes64", "chunks7")))
    case = {"shape": shape, "key": "int32", "value": "uint32", "index": "int32", "lanes": None}
    merges, seed = data.draw(structures()), data.draw(st.integers(0, 9))
    check_sort(queue, [sum(merge) for merge in merges], case, seed)
    check_merge(queue, merges, case, seed)


@pytest.mark.parametrize("shape", ["lanes64", "chunks7"])
def test_long_segments(queue: cl.CommandQueue, shape: str) -> None:
    case = {"shape": shape, "key": "uint32", "value": "uint32", "index": "int32", "lanes": None}
    check_sort(queue, [5, 70_001, 0, 1 << 16, 3], case)
    check_merge(queue, [[30_000, 0, 40_001, 2], [(1 << 16) + 1], [1 << 16, 1], [400] * 90, [7] * 3000], case)


def test_pointers_of_different_types(queue: cl.CommandQueue) -> None:
    segment_ptr, subsegment_ptr = np.array([0, 2, 3]), np.array([0, 2, 5, 6])
    keys = np.array([4, 9, 1, 2, 3, 0], np.int32)
    for wide, narrow in ((np.int64, np.int32), (np.int32, np.int64)):
        given = (on_device(queue, matrix) for matrix in (segment_ptr.astype(wide), subsegment_ptr.astype(narrow), keys))
        np.testing.assert_array_equal(segmented_merge(*given).get(), [1, 2, 3, 4, 9, 0])


def test_nothing_is_sorted_where_the_pointers_are_not_valid(queue: cl.CommandQueue) -> None:
    keys = np.arange(3000, dtype=np.int32)[::-1].copy()
    for bad in ([0, 2000, 1000, 3000], [1, 3000], [0, 2999], [0, 3001], [0, 1 << 30]):
        given = on_device(queue, keys)
        with pytest.raises(ValueError, match=r"^segment_ptr: must "):
            segmented_sort(on_device(queue, np.array(bad, np.int32)), given, out=given)
        np.testing.assert_array_equal(given.get(), keys)
        chain = chain_on(queue, None)
        enqueue_segmented_sort(chain, on_device(queue, np.array(bad, np.int32)), len(bad) - 1, given, None, 3000,
                               longest=4, shape=SHAPES["lanes48"])  # fmt: skip
        chain.finish(given)
        np.testing.assert_array_equal(given.get(), keys)


def test_the_host_does_not_wait_where_no_segment_is_known_to_be_long(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Inspection) -> Any:
        raise AssertionError("waited")

    monkeypatch.setattr(Inspection, "wait", refuse)
    ptr = pointers_of([70, 3, 0, 100])
    keys, shape = keys_of(173, "int32", 0), SHAPES["lanes64"]
    given, pointers = on_device(queue, keys), on_device(queue, ptr)
    enqueue_segmented_sort(Chain(queue), pointers, 4, given, None, 173, longest=100, shape=shape)
    np.testing.assert_array_equal(given.get(), reference.segmented_sort(ptr, keys))
    with pytest.raises(AssertionError, match="waited"):
        enqueue_segmented_sort(Chain(queue), pointers, 4, given, None, 173, longest=100, shape=SHAPES["lanes7"])


@pytest.mark.parametrize("out_of_order", [False, True])
def test_results_on_any_queue(queue: cl.CommandQueue, out_of_order: bool) -> None:
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    other = make_queue(queue, mode if out_of_order else 0)
    ptr, runs = pointers_of([1000, 0, 300]), pointers_of([400, 600, 300])
    keys = keys_of(1300, "int32", 0)
    for _ in range(3):
        result = segmented_sort(on_device(other, ptr), on_device(other, keys))
        result = segmented_merge(on_device(other, pointers_of([2, 0, 1])), on_device(other, runs), result)
        np.testing.assert_array_equal(result.get(), reference.segmented_sort(ptr, keys))


def test_two_kernels_sort_all_segments_that_are_not_long(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    lengths = [1, 7, 9, 33, 120, 129, 300, 1000]
    ptr = pointers_of(lengths)
    with programs.recording() as built:
        segmented_sort(on_device(queue, ptr), cl_array.zeros(queue, sum(lengths), np.uint64))
    networks = [program.parameters for program in built if isinstance(program.parameters, SortNetwork)]
    asked = Shape.default(describe(queue.device)) if not describe(queue.device).lanes_are_loops else Shape.lanes(256, 512, 16)
    assert sorted({network.bins[0] for network in networks}) == [asked.short_bins[0], asked.medium_bins[0]]
