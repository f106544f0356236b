"""The OpenCL platforms that the tests run on."""

from __future__ import annotations

import functools
import re

import pyopencl as cl

import clsparse_py
from clsparse_py._device.device import describe, unusable

__all__ = ["PLATFORMS", "has_fp64", "make_queue", "queue_on"]


def _list_usable() -> dict[str, cl.Device]:
    """Return a usable device of each kind by a short name: eight equal cards are one."""
    kinds = {}
    for device in clsparse_py.devices():
        if unusable(device) is None:
            kinds.setdefault((device.platform.name, device.platform.version, device.name), device)
    named: dict[str, cl.Device] = {}
    for device in kinds.values():
        words = re.findall(r"[a-z0-9]+", device.platform.name.lower())
        name = "pocl" if words[:3] == ["portable", "computing", "language"] else words[0]
        named[name if name not in named else f"{name}{len(named)}"] = device
    return named


#: By a short name, as in test ids.
PLATFORMS = _list_usable()


@functools.cache
def _make_queue(name: str) -> tuple[cl.Context, cl.CommandQueue]:
    """Return context and queue (quirk 9)."""
    context = cl.Context([PLATFORMS[name]])
    return context, cl.CommandQueue(context, PLATFORMS[name])


def queue_on(name: str) -> cl.CommandQueue:
    """Return this run's queue on a platform."""
    return _make_queue(name)[1]


def has_fp64(name: str) -> bool:
    """Return whether a platform's device has double precision."""
    return describe(PLATFORMS[name]).fp64


#: Out-of-order queues of tests, which live as long as the process: quirk 44.
_unordered: list[cl.CommandQueue] = []


def make_queue(beside: cl.CommandQueue, properties: int) -> cl.CommandQueue:
    """Return a new queue on the device of another one."""
    queue = cl.CommandQueue(beside.context, beside.device, properties)
    if properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        _unordered.append(queue)
    return queue
