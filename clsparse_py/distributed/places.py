"""Which device a rank has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyopencl as cl

from clsparse_py.device import choose_device, default_queue, devices, unusable
from clsparse_py.errors import NoDeviceError, class_of

__all__ = ["like_the_default", "parts_of", "queue_of_host_rank", "queues_on"]


def like_the_default() -> list[cl.Device]:
    """Return the devices of the platform and type of the one that calls without a queue use, which comes first.

    Raises
    ------
    NoDeviceError
        There is none.
    """
    first = choose_device()
    return [first, *(each for each in devices() if each.platform == first.platform and each.type == first.type and each != first)]


def queue_of_host_rank(number: int) -> cl.CommandQueue:
    """Return the queue of one of several ranks on a host, which take its devices in turns."""
    there = like_the_default()
    if number % len(there) == 0:
        return default_queue()
    return queues_on([there[number % len(there)]])[0]


def parts_of(device: cl.Device, count: int) -> list[cl.Device]:
    """Return as many devices: sub-devices of a CPU with an equal share of its cores, in turns where there are fewer cores."""
    units = max(1, device.max_compute_units // count)
    if device.max_compute_units < 2 or device.type & cl.device_type.CPU == 0:
        return [device] * count
    how: list[Any] = [cl.device_partition_property.EQUALLY, units]
    made = device.create_sub_devices(how)
    return [made[number % len(made)] for number in range(count)]


def queues_on(places: Sequence[Any]) -> list[cl.CommandQueue]:
    """Return a queue for each device, in a context of its own; queues that are given are taken as they are.

    Raises
    ------
    ValueError
        There is none, or they belong to two platforms.
    TypeError
        One is neither device nor queue.
    NoDeviceError
        A device cannot be used.
    """
    if not places:
        raise ValueError("devices: there must be one at least")
    for each in places:
        if not isinstance(each, cl.Device | cl.CommandQueue):
            raise TypeError(f"devices: must be pyopencl devices or queues, one is {class_of(each)}")
    _require_one_platform(each if isinstance(each, cl.Device) else each.device for each in places)
    for each in places:
        reason = unusable(each) if isinstance(each, cl.Device) else None
        if reason is not None:
            raise NoDeviceError(f"{each.name.strip()}: {reason}")
    return [each if isinstance(each, cl.CommandQueue) else cl.CommandQueue(cl.Context([each]), each) for each in places]


def _require_one_platform(found: Iterable[cl.Device]) -> None:
    names = list(dict.fromkeys(each.platform.name.strip() for each in found))
    if len(names) > 1:
        raise ValueError(f"devices: must be of one platform, are of {' and '.join(names)}")
