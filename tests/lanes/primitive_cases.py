"""Cases of the primitives: every kernel of theirs with every dtype, work-group size and index type, in rotation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import primitives
from clsparse_py._primitives import reference
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.arguments import check_pointers
from clsparse_py._primitives.reduce import KeyRuns
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segmented import enqueue_segmented_scan, enqueue_segmented_sum
from clsparse_py._run.launch import Chain

Array = np.ndarray[Any, Any]
Case = partial[None]

#: A device is taken for one whose work-items are the iterations of a loop, and for one with many lanes.
TYPES = ("cpu", "gpu")
#: Lengths of segments: empty ones at both ends and in between, one that many parts share, and many short ones.
SEGMENTS = (0, 0, 1, 5, 0, 400, 0, 0, 0, 15, 16, 17, 1, 2, 3, 0, *([0, 1, 4] * 40), 0, 0, 90, 0, 0)
STRUCTURES = (SEGMENTS, (0, 0, 0), (1,), (700,), (1,) * 300, (0,) * 400 + (3,) + (0,) * 400)


def to_device(values: Array) -> cl_array.Array:
    """Return a device array; it has an entry where there are no values."""
    queue = clsparse_py.default_queue()
    return cl_array.to_device(queue, values) if values.size else cl_array.zeros(queue, 1, values.dtype)


def room(n: int, dtype: Any) -> cl_array.Array:
    """Return a device array that nothing was written to."""
    return cl_array.empty(clsparse_py.default_queue(), max(n, 1), dtype)


def chain_on(device_type: str, *operands: cl_array.Array) -> Chain:
    """Return a chain that takes the device for one of a type."""
    chain = Chain(clsparse_py.default_queue(), *operands)
    chain.device = replace(chain.device, type=device_type)
    return chain


def scan(dtype: np.dtype[Any], kind: str, n: int, work_group: int, device_type: str) -> None:
    """Scan and compare."""
    a = numbers(n, dtype)
    source, target = to_device(a), room(n + 1, sum_dtype(dtype))
    chain = chain_on(device_type, source)
    enqueue_scan(chain, source, target, n, kind=kind, work_group=work_group)
    chain.finish(target)
    through = np.concatenate((np.zeros(1, target.dtype), reference.inclusive_scan(a)))
    same(
        target.get()[: n + (kind == "pointers")], {"inclusive": through[1:], "exclusive": through[:-1], "pointers": through}[kind]
    )


def segments(lengths: tuple[int, ...], dtype: np.dtype[Any], index: type[Any], work_group: int, device_type: str) -> None:
    """Check the pointers of segments, sum and scan them, and compare."""
    ptr = np.cumsum((0, *lengths)).astype(index)
    a = numbers(int(ptr[-1]), dtype)
    pointers, source, n = to_device(ptr), to_device(a), a.size
    sums, scanned, before = (room(size, sum_dtype(dtype)) for size in (len(lengths), n, n))
    chain = chain_on(device_type, pointers, source)
    check_pointers(chain, "segment_ptr", pointers, n, work_group=work_group)
    enqueue_segmented_sum(chain, pointers, source, sums, len(lengths), n, work_group)
    again = room(len(lengths), sum_dtype(dtype))
    enqueue_segmented_sum(chain, pointers, source, again, len(lengths), n, work_group, longest=max(lengths))
    if n:
        for target, inclusive in ((scanned, True), (before, False)):
            enqueue_segmented_scan(chain, pointers, source, target, len(lengths), n, inclusive=inclusive, work_group=work_group)
    chain.finish(sums, again, scanned, before)
    for result in (sums, again):
        same(result.get(), reference.segmented_sum(ptr, a))
    same(scanned.get()[:n], reference.segmented_scan(ptr, a))
    same(before.get()[:n], reference.segmented_scan(ptr, a, exclusive=True))


def runs(lengths: tuple[int, ...], dtype: str, work_group: int, device_type: str) -> None:
    """List the runs of equal keys and compare."""
    keys = np.repeat(np.arange(len(lengths)) % 7, lengths).astype(dtype)
    source = to_device(keys)
    chain = chain_on(device_type, source)
    result = KeyRuns(chain, source, keys.size, work_group)
    unique = room(result.n_runs, dtype)
    starts = result.enqueue_list(unique)
    chain.finish(unique, starts)
    wanted = reference.reduce_by_key(keys, np.ones(keys.size, np.int32))
    same(unique.get(), wanted[0])
    same(np.diff(starts.get()), wanted[1])


def functions() -> None:
    """Call the public functions on views, with results that go to views and to the operands themselves."""
    queue = clsparse_py.default_queue()
    a, ptr = numbers(200, np.dtype(np.float32)), np.array([0, 0, 30, 99], np.int64)
    padded = cl_array.to_device(queue, np.repeat(a, 2))
    same(primitives.inclusive_scan(padded[::2]), reference.inclusive_scan(a))
    out = cl_array.zeros(queue, 203, np.float32)
    same(primitives.exclusive_scan(padded[::2], out=out[3:]), reference.exclusive_scan(a))
    values, pointers = cl_array.to_device(queue, a)[101:], cl_array.to_device(queue, ptr)
    same(primitives.segmented_sum(pointers, values), reference.segmented_sum(ptr, a[101:]))
    same(primitives.segmented_scan(pointers, values, out=values), reference.segmented_scan(ptr, a[101:]))
    keys = numbers(200, np.dtype(np.uint32)) // 2
    result = primitives.reduce_by_key(cl_array.to_device(queue, keys), cl_array.to_device(queue, a))
    for part, wanted in zip(result, reference.reduce_by_key(keys, a), strict=True):
        same(part, wanted)


def sum_cases(dtypes: tuple[np.dtype[Any], ...], work_groups: tuple[int, ...]) -> Iterator[Case]:
    """Scans, segmented sums and scans, and runs of keys."""
    kinds, lengths = ("exclusive", "inclusive", "pointers"), (300, 1, 16, 105, 106, 0)
    for i, (dtype, device_type) in enumerate(itertools.product(dtypes, TYPES)):
        work_group = work_groups[(i + i // 5) % len(work_groups)]
        yield partial(scan, dtype, kinds[i % 3], lengths[i % 6], work_group, device_type)
        structure, index = STRUCTURES[(i // 2) % len(STRUCTURES)], INDEX_TYPES[i % 2]
        yield partial(segments, structure, dtype, index, work_group, device_type)
        yield partial(segments, SEGMENTS, dtype, INDEX_TYPES[1 - i % 2], work_groups[i % len(work_groups)], device_type)
    for i, work_group in enumerate(work_groups):
        yield partial(scan, np.dtype(np.int32), "pointers", 700, work_group, "gpu")
        yield partial(runs, SEGMENTS, ("int32", "uint64")[i % 2], work_group, "gpu")
    yield partial(scan, np.dtype(np.int32), "pointers", 40_000, 1, "cpu")
    yield partial(runs, SEGMENTS, "int64", 1, "cpu")
    yield partial(functions)


def primitive_cases(dtypes: tuple[np.dtype[Any], ...], work_groups: tuple[int, ...]) -> Iterator[Case]:
    """All cases of the primitives."""
    yield from sum_cases(dtypes, work_groups)
