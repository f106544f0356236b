"""Cases of segmented sort and merge: every kernel with every index type, size of a value and work-group size, in rotation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from primitive_cases import room, to_device
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import primitives
from clsparse_py._primitives import reference
from clsparse_py._primitives.segmented_merge import ALGORITHMS, enqueue_segmented_merge
from clsparse_py._primitives.segmented_sort import enqueue_segmented_sort
from clsparse_py._primitives.segments import Shape
from clsparse_py._run.launch import Chain

Array = np.ndarray[Any, Any]
Case = partial[None]

KEYS = ("int32", "uint32", "int64", "uint64")
#: Sub-segments of each segment, and their lengths: empty ones at both ends and in between, segments of one, short ones in long
#: segments, and long ones.
SUBSEGMENTS = (0, 1, 3, 0, 40, 5, 1, 2, 0)
LENGTHS = (0, 30, 0, 9, 0, *([0, 1, 5, 3] * 10), 90, 0, 31, 64, 2, 70, 50, 0)


def shapes(work_groups: tuple[int, ...]) -> list[Shape]:
    """Return shapes with few elements to a tile, so that there are several tiles and rounds."""
    tiled = [Shape.lanes(group, merge, 4) for group, merge in zip(work_groups, work_groups[1:] + work_groups[:1], strict=True)]
    return [*tiled, Shape.chunks(1, 20), Shape.chunks(7, 33)]


def keys_of(n: int, dtype: str, *, few: bool) -> Array:
    """Return keys from the whole range of a dtype, or few different ones."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(n)
    return rng.integers(0, 3, n).astype(dtype) if few else rng.integers(info.min, info.max, n, dtype, endpoint=True)


def sorting(key: str, value: np.dtype[Any] | None, index: type[Any], shape: Shape, few: bool) -> None:
    """Sort segments in place and compare: a few for each network, and one of two tiles or more."""
    lengths = (0, 1, 2, 3, 9, 17, 33, 0, min(shape.tile, 70), shape.tile + 1, min(3 * shape.tile - 1, 300), 0)
    ptr = np.cumsum((0, *lengths)).astype(index)
    n = int(ptr[-1])
    keys, values = keys_of(n, key, few=few), None if value is None else numbers(n, value)
    given = [to_device(part) for part in (keys, values) if part is not None]
    chain = Chain(clsparse_py.default_queue(), *given)
    pointers = to_device(ptr)
    enqueue_segmented_sort(chain, pointers, len(lengths), given[0], given[1] if len(given) > 1 else None, n, shape=shape)
    chain.finish(*given)
    wanted = reference.segmented_sort(ptr, keys, values)
    for part, expected in zip(given, [wanted] if values is None else wanted, strict=True):
        same(part, expected)


def merging(algorithm: str, key: str, value: np.dtype[Any] | None, index: type[Any], shape: Shape, few: bool) -> None:
    """Merge sub-segments and compare."""
    segment_ptr, subsegment_ptr = (np.cumsum((0, *counts)).astype(index) for counts in (SUBSEGMENTS, LENGTHS[: sum(SUBSEGMENTS)]))
    n = int(subsegment_ptr[-1])
    keys, values = keys_of(n, key, few=few), None if value is None else numbers(n, value)
    for begin, end in itertools.pairwise(subsegment_ptr):
        keys[begin:end].sort()
    x = tuple(to_device(part) for part in (keys, values) if part is not None)
    target = tuple(room(n, part.dtype) for part in x)
    chain = Chain(clsparse_py.default_queue(), *x)
    given = to_device(segment_ptr), to_device(subsegment_ptr)
    enqueue_segmented_merge(chain, given, x, target, n, algorithm, check=True, shape=shape)
    chain.finish(*target)
    wanted = reference.segmented_merge(segment_ptr, subsegment_ptr, keys, values)
    for part, expected in zip(target, [wanted] if values is None else wanted, strict=True):
        same(part, expected)


def functions() -> None:
    """Call the public functions on views, with results that go to views and to the operands themselves."""
    queue = clsparse_py.default_queue()
    subsegment_ptr, segment_ptr = np.array([0, 30, 50, 50, 99]), np.array([0, 3, 3, 4], np.int32)
    keys, values = keys_of(99, "int32", few=True), numbers(99, np.dtype(np.float32))
    for begin, end in itertools.pairwise(subsegment_ptr):
        keys[begin:end].sort()
    runs, segments = to_device(subsegment_ptr), to_device(segment_ptr)
    given, moved = (primitives_view(part) for part in (keys, values))
    wanted = reference.segmented_merge(segment_ptr, subsegment_ptr, keys, values)
    for part, expected in zip(primitives.segmented_merge(segments, runs, given, moved, check=True), wanted, strict=True):
        same(part, expected)
    out = to_device(keys[::-1].copy()), to_device(values)
    bounds = to_device(subsegment_ptr)
    primitives.segmented_sort(bounds, *out, out=out)
    for part, expected in zip(out, reference.segmented_sort(subsegment_ptr, keys[::-1], values), strict=True):
        same(part, expected)
    queue.finish()


def primitives_view(values: Array) -> Any:
    """Return a device array that is every second entry of another."""
    return to_device(np.repeat(values, 2))[::2]


def segment_cases(dtypes: tuple[np.dtype[Any], ...], work_groups: tuple[int, ...]) -> Iterator[Case]:
    """All cases of segmented sort and merge. Values are moved alone: one dtype of each size stands for all."""
    sizes = {dtype.itemsize: dtype for dtype in dtypes}
    forms, moved = shapes(work_groups), (None, *sizes.values())
    for i, value in enumerate((*moved, *moved)):
        # The tiles of the largest work-group are dear to simulate: once is enough.
        shape = forms[(i + i // len(forms)) % len(forms)]
        kinds = KEYS[(i + i // 4) % 4], value, INDEX_TYPES[(i + i // len(moved)) % 2], shape, bool(i % 3)
        if shape.work_group < max(work_groups) or i < len(forms):
            yield partial(sorting, *kinds)
        yield partial(merging, "balanced", *kinds)
    for i, algorithm in enumerate(ALGORITHMS[:2] * 2):
        yield partial(merging, algorithm, KEYS[i], moved[i % 2], INDEX_TYPES[i // 2], forms[0], True)
    yield partial(functions)
