"""Primitives have kernels for CPU devices and kernels for others: if one is refused, those of the other kind take its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyopencl import array as cl_array

from clsparse_py import refusals
from clsparse_py.device import Device
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain

__all__ = ["either_way", "refused_of"]

_ABOUT = "primitives"

P = ParamSpec("P")
T = TypeVar("T")


@functools.lru_cache(maxsize=16)
def _other(device: Device) -> Device:
    """Return a device that is taken for one of the other kind."""
    return replace(device, type="gpu" if device.lanes_are_loops else "cpu")


def refused_of(device: Device) -> Mapping[Any, BuildError]:
    """Return the primitives that take kernels of the other kind on a device, and the refusal of each."""
    return refusals.avoided(device, _ABOUT)


def either_way(enqueue: Callable[Concatenate[Chain, P], T]) -> Callable[Concatenate[Chain, P], T]:
    """Make a function take the kernels of the other kind of device where one of its own is refused.

    It is called again if a kernel is refused: until all kernels are built, it must not enqueue writes to arrays that it reads.
    """

    @functools.wraps(enqueue)
    def enqueued(chain: Chain, /, *arguments: P.args, **named: P.kwargs) -> T:
        device = chain.device
        avoided = refusals.avoided(device, _ABOUT)
        if not avoided or _what(enqueue.__name__, arguments) not in avoided:
            try:
                return enqueue(chain, *arguments, **named)
            except BuildError as error:
                refusals.avoid(device, _ABOUT, _what(enqueue.__name__, arguments), error)
        chain.device = _other(device)
        try:
            return enqueue(chain, *arguments, **named)
        finally:
            chain.device = device

    return enqueued


def _what(name: str, arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the name of a primitive, and the dtypes of its arrays."""
    flat = (part for each in arguments for part in (each if isinstance(each, tuple) else (each,)))
    return name, *(each.dtype.str for each in flat if isinstance(each, cl_array.Array))
