"""Work of a kernel done by the host with NumPy, if the device's compiler refuses the kernel and no other computes the same."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import refusals
from clsparse_py.device import describe
from clsparse_py.errors import BuildError
from clsparse_py.pool import arena_of
from clsparse_py.transfer import placed

__all__ = ["or_by_host", "placed", "refused_of"]

_ABOUT = "by the host"

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def refused_of(device: Any) -> Mapping[Any, BuildError]:
    """Return the functions that the host computes for a device (as `_key` names them), each with its refusal."""
    return refusals.avoided(device, _ABOUT)


def or_by_host(
    host: Callable[Concatenate[cl.CommandQueue, P], T],
) -> Callable[[Callable[Concatenate[cl.CommandQueue, P], T]], Callable[Concatenate[cl.CommandQueue, P], T]]:
    """Decorate a function that launches kernels: if one of them is refused, ``host`` computes the result with NumPy.

    ``host`` takes the same arguments, and waits for the device. The decorated function must build all its kernels before one of
    them writes to an operand: ``host`` reads the operands again.
    """

    def decorate(
        run: Callable[Concatenate[cl.CommandQueue, P], T],
    ) -> Callable[Concatenate[cl.CommandQueue, P], T]:
        @functools.wraps(run)
        def either(queue: cl.CommandQueue, /, *arguments: P.args, **named: P.kwargs) -> T:
            device = describe(arena_of(queue).pool.device)  # to ask the queue takes longer
            avoided = refused_of(device)
            if not avoided or _key(run.__name__, arguments) not in avoided:
                try:
                    return run(queue, *arguments, **named)
                except BuildError as error:
                    refusals.avoid(device, _ABOUT, _key(run.__name__, arguments), error)
                    _log.info("the host does what %s is for, with copies to and from %s", error.kernel, device.name)
            return host(queue, *arguments, **named)

        return either

    return decorate


def _key(name: str, arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the key of a kind of call: the function's name, and the dtypes that it is called with."""
    flat = (part for each in arguments for part in (each if isinstance(each, tuple) else (each,)))
    dtypes = (each.dtype if isinstance(each, cl_array.Array) else each for each in flat)
    return name, *(each.str for each in dtypes if isinstance(each, np.dtype))
