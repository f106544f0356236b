"""Helpers of the tests of primitives: device arrays, values whose sums are exact, and chains that take a device for another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
from hypothesis import strategies as st
from platforms import has_fp64
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain

__all__ = ["DEVICE_TYPES", "LENGTHS", "chain_on", "legal", "lengths_of_segments", "on_device", "pointers_of", "room", "values_of"]

#: A device whose work-items are the iterations of a loop has kernels of its own; both kinds run on every device.
DEVICE_TYPES = ("cpu", "gpu")

#: Around what a work-item, a work-group, a tile and a 16-bit number hold.
LENGTHS = (0, 1, 2, 3, 14, 15, 16, 255, 256, 257, 1023, 1024, 1025, 3839, 3840, 3841, 65535, 65536, 65537, 70_001)


def values_of(dtype: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return whole numbers from -3 to 3, or from 0 where there is no sign."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    low = 0 if dtype.kind == "u" else -3
    values = rng.integers(low, 4, n)
    return (values + 1j * rng.integers(-3, 4, n) if dtype.kind == "c" else values).astype(dtype)


def on_device(queue: cl.CommandQueue, values: np.ndarray) -> cl_array.Array:
    return cl_array.to_device(queue, values) if values.size else cl_array.empty(queue, 1, values.dtype)


def room(queue: cl.CommandQueue, n: int, dtype: Any) -> cl_array.Array:
    """Return an array for n entries, and one entry behind them that no kernel may change."""
    return cl_array.to_device(queue, np.full(n + 1, 77, dtype))


def chain_on(queue: cl.CommandQueue, device_type: str, *operands: cl_array.Array) -> Chain:
    chain = Chain(queue, *operands)
    chain.device = replace(chain.device, type=device_type)
    return chain


def pointers_of(lengths: Any, index: Any = np.int64) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, np.int64)))).astype(index)


def lengths_of_segments(longest: int = 300) -> st.SearchStrategy[list[int]]:
    """Return lengths of segments: any, mostly short, mostly empty, equal, all in one."""
    around = st.sampled_from([n + d for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1)])
    few, many = {"max_size": 12}, {"max_size": 150}
    empty = st.integers(0, 40).map(lambda n: [0] * n)
    some = (
        st.lists(st.integers(0, longest), **few)
        | st.lists(around, **few)
        | st.lists(st.integers(0, 3), **many)
        | st.lists(st.sampled_from([0, 0, 0, 0, 1, 50]), **many)
        | st.tuples(st.integers(0, 20), st.integers(0, 40)).map(lambda pair: [pair[0]] * pair[1])
        | st.integers(0, 3000).map(lambda n: [n])
    )
    return st.tuples(empty, some, empty).map(lambda parts: [length for part in parts for length in part])


def legal(case: Mapping[str, Any]) -> bool:
    return case["dtype"] not in ("float64", "complex128") or has_fp64(case["platform"])
