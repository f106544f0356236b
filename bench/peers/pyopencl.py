"""PyOpenCL's own scan, radix sort and, by two of its generic scans, reduction by key, on the queue under test."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyopencl.algorithm import RadixSort
from pyopencl.scan import GenericScanKernel, InclusiveScanKernel

from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls, operands_on_device
from bench.problems.primitives import Primitive

Compute = Callable[..., Arrays]


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on: that of PyOpenCL is part of every run's."""
    return {}


def contestants(operation: str, queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation not in _MAKERS:
        return []
    return [Contestant("pyopencl", functools.partial(_prepare, queue))]


def _prepare(queue: cl.CommandQueue, problem: Primitive) -> OpenclCalls:
    operands, transfer = operands_on_device(problem, queue)
    with warnings.catch_warnings():
        # Some compilers have something to say about its kernels, which is not ours to mend.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        compute = _MAKERS[problem.operation](queue.context)

    def call(on: cl.CommandQueue) -> Arrays:
        return compute(on, **{name: array.with_queue(on) for name, array in operands.items()})

    # Its commands pass by what records ours: no times by the device's clock.
    return OpenclCalls(problem, queue, call, {"transfer": transfer}, on_device=dict)


def _empty(queue: cl.CommandQueue, size: int, dtype: Any, like: cla.Array) -> cla.Array:
    return cla.empty(queue, size, dtype, allocator=like.allocator)


def _scan(context: cl.Context) -> Compute:
    scan = InclusiveScanKernel(context, np.dtype(np.int32), "a+b", neutral="0")

    def compute(queue: cl.CommandQueue, a: cla.Array) -> Arrays:
        result = _empty(queue, a.size, a.dtype, a)
        scan(a, result, queue=queue)
        return (result,)

    return compute


def _radix_sort(context: cl.Context) -> Compute:
    sort = RadixSort(context, "unsigned int *keys, unsigned int *values", "keys[i]", ["keys", "values"], key_dtype=np.uint32)

    def compute(queue: cl.CommandQueue, keys: cla.Array, values: cla.Array) -> Arrays:
        result, _ = sort(keys, values, key_bits=32, queue=queue, allocator=keys.allocator)
        return tuple(result)

    return compute


def _reduce_by_key(context: cl.Context) -> Compute:
    first = "(i == 0 || keys[i] != keys[i-1])"
    number = GenericScanKernel(
        context,
        np.int32,
        "unsigned int *keys, int *numbers, unsigned int *unique, int *count",
        first,
        "a+b",
        "0",
        f"""
        numbers[i] = item - 1;
        if {first} unique[item - 1] = keys[i];
        if (i == N - 1) *count = item;
        """,
    )
    add = GenericScanKernel(
        context,
        np.float32,
        "unsigned int *keys, int *numbers, float *values, float *sums",
        "values[i]",
        "across_seg_boundary ? b : a + b",
        "0",
        "if (i == N - 1 || keys[i] != keys[i+1]) sums[numbers[i]] = item;",
        is_segment_start_expr=first,
    )

    def compute(queue: cl.CommandQueue, keys: cla.Array, values: cla.Array) -> Arrays:
        numbers, count = _empty(queue, keys.size, np.int32, keys), _empty(queue, 1, np.int32, keys)
        unique, sums = _empty(queue, keys.size, np.uint32, keys), _empty(queue, keys.size, np.float32, keys)
        number(keys, numbers, unique, count, queue=queue)
        add(keys, numbers, values, sums, queue=queue)
        runs = int(count.get()[0])
        return unique[:runs], sums[:runs]

    return compute


_MAKERS: dict[str, Callable[[cl.Context], Compute]] = {
    "inclusive_scan": _scan,
    "radix_sort": _radix_sort,
    "reduce_by_key": _reduce_by_key,
}
