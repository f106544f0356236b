"""The two numbers of a device that products are divided by: measured once, and kept on disk."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import cache
from clsparse_py._spmv.division import Speed
from clsparse_py._spmv.plan import SpmvPlan
from clsparse_py.device import describe
from clsparse_py.matrix import Matrix, Structure
from clsparse_py.memory import allocated
from clsparse_py.order import note_written
from clsparse_py.pool import arena_of
from clsparse_py.structure import Facts
from clsparse_py.transfer import from_host, on_host, to_host

__all__ = ["forget", "measure", "measure_together", "speed_of", "together"]

_log = logging.getLogger(__name__)

#: Entries of the matrices that are measured with: one that leaves nothing to do, and one beyond the caches of most CPUs; on
#: devices that are through with that in less than `_LONG` seconds, one that is larger still.
_FEW, _MANY, _MOST = 1 << 8, 1 << 23, 1 << 25
_LONG = 1e-3
_ROW = 8  # entries a row
_SECONDS = 0.1  # that repetitions of one product take, at least three of them
_TRIES = 8  # of all devices at once

_speeds: dict[str, Speed] = {}
_together: dict[str, float] = {}


def forget() -> None:
    """Forget what this process knows; what is on disk stays."""
    _speeds.clear()
    _together.clear()


def _identity(device: cl.Device) -> str:
    """Return the key of a device: parts of a device are other devices by their number of compute units."""
    of = describe(device)
    return json.dumps([of.platform, device.version, of.name, of.driver_version, of.compute_units, device.max_clock_frequency])


def speed_of(queue: cl.CommandQueue) -> Speed:
    """Return the speed of a queue's device: as `clsparse tune` measured it, or an earlier process; else it is measured now."""
    identity = _identity(queue.device)
    found = _speeds.get(identity) or cache.load(cache.key_of("speed", identity), _kept)
    if found is None:
        return measure(queue)
    _speeds[identity] = found
    return found


def _kept(content: bytes) -> Speed:
    found = Speed(*map(float, json.loads(content)))
    if not min(found.bytes_per_second, found.seconds_per_launch, found.link_bytes_per_second) > 0:
        raise ValueError("speeds are positive")
    return found


def measure(queue: cl.CommandQueue) -> Speed:
    """Measure the speed of a queue's device, and keep it."""
    begin, identity, device = time.perf_counter(), _identity(queue.device), describe(queue.device)
    few = _product(queue, _FEW)
    launch, least = _shortest(few, few.of_host), _shortest(few)
    n, seconds = _MANY, 0.0
    while n * 8 <= device.max_allocation:
        seconds = _shortest(_product(queue, n))
        if seconds >= _LONG or n >= _MOST:
            break
        n *= 4
    arena_of(queue).pool.empty()
    # On a device whose allocations are that small, a launch is all there is to know.
    moved = n * 8 + n // _ROW * 8
    speed = moved / max(seconds - least, 1e-9) if seconds else moved / launch
    found = Speed(speed, launch, math.inf if device.aliases_host else _link(queue))
    _speeds[identity] = found
    kept = cache.key_of("speed", identity)
    cache.write(kept, json.dumps([found.bytes_per_second, found.seconds_per_launch, found.link_bytes_per_second]).encode())
    _log.info(
        "%s moves %.3g bytes a second in products and takes %.3g s a launch; measured in %.2g s and kept",
        device.name, found.bytes_per_second, found.seconds_per_launch, time.perf_counter() - begin,
    )  # fmt: skip
    return found


def together(queues: Sequence[cl.CommandQueue]) -> float:
    """Return what is left of devices' speeds if they work at the same time: from an earlier measurement, or measured now.

    Devices that share a memory, or cores, are not as fast together as each of them alone.
    """
    identity = _identity_of_all(queues)
    found = _together.get(identity) or cache.load(cache.key_of("together", identity), _kept_share)
    if found is None:
        return measure_together(queues)
    _together[identity] = found
    return found


def _identity_of_all(queues: Sequence[cl.CommandQueue]) -> str:
    return json.dumps(sorted(_identity(queue.device) for queue in queues))


def _kept_share(content: bytes) -> float:
    found = float(json.loads(content))
    if not 0 < found <= 1:
        raise ValueError("it is a share")
    return found


def measure_together(queues: Sequence[cl.CommandQueue]) -> float:
    """Measure what is left of devices' speeds if they work at the same time, and keep it."""
    identity, found = _identity_of_all(queues), _measured_together(queues)
    cache.write(cache.key_of("together", identity), json.dumps(found).encode())
    _log.info("%d devices keep %.0f %% of their speeds together; measured and kept", len(queues), 100 * found)
    _together[identity] = found
    return found


def _measured_together(queues: Sequence[cl.CommandQueue]) -> float:
    """Let each device do what takes it as long as the others, first alone and then all at once; return the loss.

    Least times, as it is kept: a host that is busy for once is not to keep devices apart. Plans try what follows from it.
    """
    n = min(_MANY, *(describe(queue.device).max_allocation // 16 for queue in queues))
    runs = [_product(queue, n) for queue in queues]
    alone = [_shortest(run) for run in runs]
    often = [max(1, round(2 * max(alone) / each)) for each in alone]
    expected = max(times * each for times, each in zip(often, alone, strict=True))
    taken = math.inf
    for _ in range(_TRIES):
        begin = time.perf_counter()
        for run, queue, times in zip(runs, queues, often, strict=True):
            for _ in range(times):
                run()
            queue.flush()
        for queue in queues:
            queue.finish()
        taken = min(taken, time.perf_counter() - begin)
    return min(1.0, max(0.01, expected / taken))


class _product:  # noqa: N801 - a function that keeps its operands
    """A product of a banded matrix on a queue, to be enqueued any number of times."""

    def __init__(self, queue: cl.CommandQueue, n: int) -> None:
        rows = max(n // _ROW, 1)
        indptr = np.arange(rows + 1, dtype=np.int32) * _ROW
        columns = (np.arange(rows, dtype=np.int32)[:, None] + np.arange(_ROW, dtype=np.int32)).ravel() % np.int32(rows)
        values, x = np.ones(rows * _ROW, np.float32), np.ones(rows, np.float32)
        self.queue = queue
        placed = [from_host(queue, part, copy=False) for part in (columns, indptr, values, x)]
        structure = Structure(queue, (rows, rows), placed[0], placed[1], Facts(rows * _ROW, sorted=False, canonical=False))
        self.A, self.x = Matrix.assembled(structure, placed[2]), placed[3]
        self.y: cl_array.Array = allocated(queue, "a product", rows, np.float32)
        self.host_x, self.host_y = x, np.empty(rows, np.float32)
        self.plan = SpmvPlan.of(self.A, "auto", None)

    def __call__(self) -> None:
        self.plan.execute(self.A, self.x, self.y, queue=self.queue)

    def of_host(self) -> None:
        """Compute a product of vectors of the host, with all that the host does for it."""
        x, y = from_host(self.queue, self.host_x, copy=False), to_host(self.queue, self.host_y)
        note_written(y, self.plan.execute(self.A, x, y, queue=self.queue)[-1])
        on_host(y, self.host_y)


def _shortest(of: _product, call: Callable[[], None] | None = None) -> float:
    """Return the shortest of the times in which a product, or another call of it, was enqueued and had ended."""
    call = call or of
    call()
    of.queue.finish()
    found: list[float] = []
    while len(found) < 3 or sum(found) < _SECONDS:
        begin = time.perf_counter()
        call()
        of.queue.finish()
        found.append(time.perf_counter() - begin)
    return min(found)


def _link(queue: cl.CommandQueue, n_bytes: int = 1 << 24) -> float:
    """Return how many bytes a second travel between NumPy's memory and the device's, the slower way of the two."""
    host: Any = np.ones(n_bytes, np.uint8)
    device: Any = allocated(queue, "a copy", n_bytes, np.uint8).base_data
    found: list[float] = []
    for target, source in ((device, host), (host, device)):
        times = []
        for _ in range(4):
            begin = time.perf_counter()
            cl.enqueue_copy(queue, target, source, is_blocking=True)
            times.append(time.perf_counter() - begin)
        found.append(n_bytes / min(times))
    return min(found)
