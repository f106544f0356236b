"""The OpenCL device under test: choosing it, its copy bandwidth, its own clock, and comparing arrays on it."""

from __future__ import annotations

import contextlib
import functools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from bench.contestants import calls_a_sample, seconds_of
from clsparse_py._build import programs
from clsparse_py._device.device import choose_device, devices

# Most bytes of a copy, by which bandwidth is measured.
LARGEST_COPY = 1 << 30
# Samples of a copy.
SAMPLES = 9
_WORK_GROUP = 256
# Bytes that a work-item copies.
_ELEMENT = 16
_COPY_KERNEL = """
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void copy(global const uint4 *restrict from, global uint4 *restrict to) { to[get_global_id(0)] = from[get_global_id(0)]; }
"""

# A kernel that sums splitmix64's finaliser of each word and its place: the sum does not depend on the division of the work.
_DIGEST_KERNEL = """
kernel void digest(global const uint *words, ulong first, ulong n, global ulong *sums)
{
    ulong sum = 0;
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        ulong z = words[first + i] + (i + 1) * 0x9E3779B97F4A7C15UL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9UL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBUL;
        sum += z ^ (z >> 31);
    }
    sums[get_global_id(0)] = sum;
}
"""
# Work-items of the digest kernel.
_DIGEST_ITEMS = 1 << 16


@dataclass(frozen=True)
class Copy:
    """Samples of copying ``bytes_moved`` bytes, those read and those written together."""

    how: str
    bytes_moved: int
    samples: tuple[float, ...]

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the copy in bytes a second, by the median of its samples."""
        return self.bytes_moved / statistics.median(self.samples)

    def as_json(self) -> dict[str, Any]:
        """Return what the results file holds of it."""
        return {"how": self.how, "bytes": self.bytes_moved, "samples": list(self.samples)}


def choose(substring: str = "") -> cl.Device:
    """Return the first device, in the library's order, whose name or platform contains a string.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not substring:
        return choose_device()
    result = devices()
    for device in result:
        if substring.lower() in f"{device.platform.name} {device.name}".lower():
            return device
    listed = ", ".join(f"{d.name} ({d.platform.name})" for d in result) or "none"
    raise ValueError(f"device: {substring!r} matches none of those found: {listed}")


def is_cpu(device: cl.Device) -> bool:
    """Return whether a device shares the host's cores and caches."""
    return bool(device.type & cl.device_type.CPU)


def describe(device: cl.Device) -> dict[str, Any]:
    """Return what the results file says of a device."""
    return {
        "name": device.name.strip(),
        "vendor": device.vendor.strip(),
        "type": next((name for name in ("CPU", "GPU", "ACCELERATOR") if device.type & getattr(cl.device_type, name)), "CUSTOM"),
        "driver": device.driver_version.strip(),
        "version": device.version.strip(),
        "platform": device.platform.name.strip(),
        "platform_version": device.platform.version.strip(),
        "compute_units": device.max_compute_units,
        "global_memory": device.global_mem_size,
    }


@functools.lru_cache(maxsize=1)
def profiling_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return the queue with profiling beside another one."""
    return cl.CommandQueue(queue.context, queue.device, cl.command_queue_properties.PROFILING_ENABLE)


def device_seconds(queue: cl.CommandQueue, action: Callable[[], object]) -> tuple[float, float]:
    """Return what the commands of ``action`` take by the device's clock: from the first start to the last end, without gaps too.

    Parameters
    ----------
    queue
        One with profiling, that ``action`` enqueues on; what it makes others of is profiled too.
    """
    queue.finish()
    with _record() as events:
        action()
    queue.finish()
    profiled = [event for event in events if event.command_queue.properties & cl.command_queue_properties.PROFILING_ENABLE]
    times = sorted((event.profile.start, event.profile.end) for event in profiled)
    first = last = times[0][0] if times else 0
    busy = 0
    for start, end in times:
        # Commands of several queues may run at the same time.
        busy += max(end - max(start, last), 0)
        last = max(end, last)
    return (last - first) * 1e-9, busy * 1e-9


@contextlib.contextmanager
def _record() -> Iterator[list[cl.Event]]:
    """Give the list of the events of all commands that the package enqueues meanwhile."""
    events: list[cl.Event] = []

    def recording(enqueue: Callable[..., cl.Event]) -> Callable[..., cl.Event]:
        def recorded(*arguments: Any, **named: Any) -> cl.Event:
            events.append(enqueue(*arguments, **named))
            return events[-1]

        return recorded

    with contextlib.ExitStack() as stack:
        for name in ("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer"):
            stack.enter_context(mock.patch.object(cl, name, recording(getattr(cl, name))))
        yield events


def digest(queue: cl.CommandQueue, array: cla.Array) -> int:
    """Return 64 bits that tell arrays apart by their elements' bits and places, computed on the device.

    The array's elements take a multiple of 4 bytes.
    """
    n = array.nbytes // 4
    if not n:
        return 0
    items = min(n, _DIGEST_ITEMS)
    sums = cla.empty(queue, items, np.uint64)
    kernel = cl.Kernel(programs.compile_source(queue.context, queue.device, _DIGEST_KERNEL), "digest")
    kernel(queue, (items,), None, array.base_data, np.uint64(array.offset // 4), np.uint64(n), sums.base_data)
    return int(sums.get(queue).sum())


def fill_with_ones(queue: cl.CommandQueue, array: cla.Array) -> None:
    """Set all bits of an array: NaN, or -1."""
    buffer: Any = array.base_data
    if array.nbytes:
        cl.enqueue_fill_buffer(queue, buffer, np.array([0xFF], np.uint8), array.offset, array.nbytes)


def large_copies(queue: cl.CommandQueue) -> list[Copy]:
    """Return copies too large for any cache: by the driver's buffer copy and by a kernel.

    Either may be the slower one (drivers for CPUs copy buffers with one thread), and the floor is the faster one.
    """
    device = queue.device
    size = min(device.global_mem_size // 8, device.max_mem_alloc_size, LARGEST_COPY)
    return _copies(queue, size)


def copy_of_size(queue: cl.CommandQueue, bytes_moved: int) -> Copy:
    """Return the faster copy that moves about ``bytes_moved`` bytes, again and again over the same two buffers (quirk 33)."""
    size = min(bytes_moved // 2, queue.device.max_mem_alloc_size)
    return max(_copies(queue, size), key=lambda copy: copy.bandwidth)


def _copies(queue: cl.CommandQueue, size: int) -> list[Copy]:
    granule = _WORK_GROUP * _ELEMENT
    size = max(size // granule, 1) * granule
    source, target = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    cl.enqueue_fill_buffer(queue, source, b"\x5a", 0, size)
    cl.enqueue_fill_buffer(queue, target, b"\x00", 0, size)
    kernel = cl.Kernel(programs.compile_source(queue.context, queue.device, _COPY_KERNEL), "copy")

    def by_buffer_copy() -> None:
        cl.enqueue_copy(queue, target, source, byte_count=size)

    def by_kernel() -> None:
        kernel(queue, (size // _ELEMENT,), (_WORK_GROUP,), source, target)

    def seconds(copy: Callable[[], None], repeat: int) -> float:
        def copies() -> None:
            for _ in range(repeat):
                copy()
            queue.finish()

        return seconds_of(copies) / repeat

    copies = []
    for how, copy in (("buffer copy", by_buffer_copy), ("kernel", by_kernel)):
        # The first one touches the memory and finishes the build; the second says how many make a sample.
        seconds(copy, 1)
        repeat = calls_a_sample(seconds(copy, 1) * 4)
        copies.append(Copy(how, 2 * size, tuple(seconds(copy, repeat) for _ in range(SAMPLES))))
    source.release()
    target.release()
    return copies
