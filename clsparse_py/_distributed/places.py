"""The device, context and queue of a rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyopencl as cl

from clsparse_py._device.device import choose_device, default_queue, devices, unusable
from clsparse_py._ground.errors import NoDeviceError, class_of

__all__ = ["Place", "assign_devices", "assign_place", "list_default_devices", "make_places", "split_device"]


class Place(NamedTuple):
    """A rank's command queue with its context, as the queue alone may not keep the context alive (quirk 9 of drivers).

    Attributes
    ----------
    context : pyopencl.Context
    queue : pyopencl.CommandQueue
    """

    context: cl.Context
    queue: cl.CommandQueue


def list_default_devices() -> list[cl.Device]:
    """Return the default device, followed by the other devices of its platform and type.

    Raises
    ------
    NoDeviceError
        No device can be used.
    """
    first = choose_device()
    return [
        first,
        *(device for device in devices() if device.platform == first.platform and device.type == first.type and device != first),
    ]


def assign_place(number: int, count: int) -> Place:
    """Return the context and queue of rank ``number`` of a host's ``count``, which take its devices in turns or share its CPU."""
    device = assign_devices(list_default_devices(), count)[number]
    return make_places([default_queue() if device == choose_device() else device])[0]


def assign_devices(available: Sequence[cl.Device], count: int) -> list[cl.Device]:
    """Return a device for each of ``count`` ranks: the available devices in turns, or `split_device` of a single one."""
    return (
        split_device(available[0], count)
        if len(available) == 1
        else [available[number % len(available)] for number in range(count)]
    )


def split_device(device: cl.Device, count: int) -> list[cl.Device]:
    """Return ``count`` sub-devices with equal shares of a CPU's cores; of a GPU or a CPU of one core the device ``count`` times.

    Sub-devices are repeated if the CPU has fewer cores.
    """
    units = max(1, device.max_compute_units // count)
    if count == 1 or device.max_compute_units < 2 or device.type & cl.device_type.CPU == 0:
        return [device] * count
    how: list[Any] = [cl.device_partition_property.EQUALLY, units]
    sub_devices = device.create_sub_devices(how)
    return [sub_devices[number % len(sub_devices)] for number in range(count)]


def make_places(requested: Sequence[Any]) -> list[Place]:
    """Return a `Place` (queue and context) for each requested queue or device; a device gets a new context and queue.

    Raises
    ------
    ValueError
        There is no device, or devices belong to two platforms.
    TypeError
        An entry is neither device nor queue.
    NoDeviceError
        A device cannot be used.
    """
    if not requested:
        raise ValueError("devices: there must be one at least")
    for place in requested:
        if not isinstance(place, cl.Device | cl.CommandQueue):
            raise TypeError(f"devices: must be pyopencl devices or queues, one is {class_of(place)}")
    _require_one_platform(place if isinstance(place, cl.Device) else place.device for place in requested)
    for place in requested:
        reason = unusable(place) if isinstance(place, cl.Device) else None
        if reason is not None:
            raise NoDeviceError(f"{place.name.strip()}: {reason}")
    return [Place(place.context, place) if isinstance(place, cl.CommandQueue) else _make_place(place) for place in requested]


def _make_place(device: cl.Device) -> Place:
    """Return a rank's place on a device: a new context and queue."""
    context = cl.Context([device])
    return Place(context, cl.CommandQueue(context, device))


def _require_one_platform(used_devices: Iterable[cl.Device]) -> None:
    """Raise a ValueError if devices are of several platforms."""
    names = list(dict.fromkeys(device.platform.name.strip() for device in used_devices))
    if len(names) > 1:
        raise ValueError(f"devices: must be of one platform, are of {' and '.join(names)}")
