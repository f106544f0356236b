"""Relative speeds of devices, by which products are divided among them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import numpy as np
import pyopencl as cl

from clsparse_py._device.device import describe
from clsparse_py._device.ranking import find_standing
from clsparse_py._ground import cache
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spmv.plan import SpmvPlan
from clsparse_py._run.transfer import from_host

__all__ = ["measure", "read_speed", "speeds_of"]

#: Number of entries of the matrix whose SpMV products are timed for a device's speed: more than most devices' caches hold. Fewer
#: where a device's greatest allocation has less room.
_ENTRIES = 1 << 24
#: Number of entries in each row of the matrix whose SpMV products are timed for a device's speed.
_ROW = 8
#: Number of SpMV products in a timed batch, after which the host waits: many, so that the device is seldom idle.
_BATCH = 10
#: Number of timed batches of SpMV products, of which the fastest counts as a device's speed.
_TRIES = 5


def _cache_key(device: cl.Device) -> str:
    """Return the key of a device's measured speed in the cache; parts of a device differ by their number of compute units."""
    description = describe(device)
    names = [
        description.platform,
        device.version,
        description.name,
        description.driver_version,
        description.compute_units,
        device.max_clock_frequency,
    ]
    return cache.key_of("bytes a second", json.dumps(names))


def read_speed(device: cl.Device) -> float | None:
    """Return the bytes a second that SpMV moves on a device, as `clsparse tune` measured; None if the device was not tuned."""
    return cache.load(_cache_key(device), _parse_speed)


def _parse_speed(content: bytes) -> float:
    """Return the bytes a second that SpMV moves on a device, from a cache file's content; refuse a speed that is not positive."""
    speed = float(json.loads(content))
    if not 0 < speed < float("inf"):
        raise ValueError("a speed is positive")
    return speed


def speeds_of(devices: Sequence[cl.Device]) -> tuple[tuple[float, ...], str]:
    """Return the relative speeds of devices, by which an SpMV product is divided, and the speeds' source in words.

    Bytes a second, if they were measured on all of the devices. Else what the default device is chosen by: ranks, if profiles
    tell those of all, which are of one type and size; or compute units times lanes times clock rate, if all tell one.
    """
    names = [device.name.strip() for device in devices]
    measured_speeds = [read_speed(device) for device in devices]
    known_speeds = [speed for speed in measured_speeds if speed is not None]
    if len(known_speeds) == len(devices):
        listing = ", ".join(f"{name} {speed / 1e9:.3g} GB/s" for name, speed in zip(names, known_speeds, strict=True))
        return tuple(known_speeds), f"the bytes a second that `clsparse tune` measured: {listing}"
    described = [describe(device) for device in devices]
    ranks = [
        rank
        for description in described
        if (rank := find_standing(description.name, description.platform, description.type)[1]) is not None
    ]
    if len(ranks) == len(devices) and len({(description.type, description.compute_units) for description in described}) == 1:
        weights, measure_name = ranks, "the ranks of profiles"
    else:
        widths = [device.native_vector_width_float for device in devices]
        lanes = [
            description.compute_units * max(description.portability.lane_width, width)
            for description, width in zip(described, widths, strict=True)
        ]
        clocks = [device.max_clock_frequency for device in devices]
        weights = [n * clock for n, clock in zip(lanes, clocks, strict=True)] if all(clocks) else list(map(float, lanes))
        measure_name = "compute units times lanes times clock rate" if all(clocks) else "compute units times lanes"
    listing = ", ".join(f"{name} {speed:.3g}" for name, speed in zip(names, weights, strict=True))
    missing = dict.fromkeys(name for name, speed in zip(names, measured_speeds, strict=True) if speed is None)
    return tuple(map(float, weights)), f"{measure_name}: {listing}; `clsparse tune` did not measure {', '.join(missing)}"


def measure(queue: cl.CommandQueue) -> float:
    """Measure the bytes a second that SpMV products move on a queue's device; write the speed to the cache, and return it."""
    rows = max(min(_ENTRIES, describe(queue.device).max_allocation // 8) // _ROW, _ROW)
    indptr = np.arange(rows + 1, dtype=np.int32) * np.int32(_ROW)
    columns = (np.arange(rows, dtype=np.int32)[:, None] + np.arange(_ROW, dtype=np.int32)).ravel() % np.int32(rows)
    host = columns, indptr, np.ones(columns.size, np.float32), np.ones(rows, np.float32)
    indices, pointers, data, x = (from_host(queue, part, copy=False) for part in host)
    facts = Facts(columns.size, sorted=False, canonical=False)
    A = Matrix.assembled(Structure(queue, (rows, rows), indices, pointers, facts), data)
    y = allocate(queue, "a product", rows, np.float32)
    plan, seconds = SpmvPlan.of(A, "auto", None), []
    for _ in range(1 + _TRIES):  # the first batch builds kernels
        begin = time.perf_counter()
        for _ in range(_BATCH):
            plan.execute(A, x, y)
        queue.finish()
        seconds.append(time.perf_counter() - begin)
    n_bytes = sum(part.nbytes for part in host) + y.nbytes
    speed = _BATCH * n_bytes / min(seconds)
    cache.write(_cache_key(queue.device), json.dumps(speed).encode())
    return speed
