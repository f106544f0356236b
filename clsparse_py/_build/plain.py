"""Plain kernels: no local memory, no lanes, work-groups of one; every OpenCL device can run them.

They are what operations choose for a device with nothing (`plainly`): a loop for each work-item, in a work-group of its own.
While a thread is `with plain_kernels()`, `device.describe` describes its devices so, and all decisions follow.

They take the place of kernels that a driver's compiler refuses. A function with a `door` that cannot build a kernel is called
again, and takes plain kernels alone. If one of these is refused, too, SciPy does the operation as a whole, with copies on the
host, where SciPy has it (`clsparse_py._arrays.doors`); else the refusal is raised. Functions build their kernels before one of these
writes to an operand.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from clsparse_py._ground.errors import BuildError

if TYPE_CHECKING:
    from clsparse_py._device.device import Device

__all__ = ["are_plain", "door", "plain_kernels", "plainly"]

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class _Mode(threading.local):
    """Whether a thread's operations take plain kernels alone."""

    on = False


_mode = _Mode()


def are_plain() -> bool:
    """Return whether this thread's operations take plain kernels alone."""
    return _mode.on


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Have the operations of this thread take plain kernels alone."""
    was_on, _mode.on = _mode.on, True
    try:
        yield
    finally:
        _mode.on = was_on


@functools.lru_cache(maxsize=16)
def plainly(device: Device) -> Device:
    """Return the description of a device as one that has nothing but global memory and work-groups of one work-item."""
    return replace(
        device,
        max_work_group=1,
        local_memory=0,
        preferred_multiple=1,
        sub_group_sizes=(),
        portability=replace(device.portability.at_most(1), load_once="plain", match="local"),
    )


def door(instead: Callable[..., Any] | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Give a function a door; ``instead`` is called as it is, if a plain kernel is refused."""

    def decorate(run: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(run)
        def call(*arguments: P.args, **keywords: P.kwargs) -> T:
            try:
                return run(*arguments, **keywords)
            except BuildError as error:
                # A copy: an error that was raised holds what its callers had in hands.
                refused = error.again()
            if not are_plain():
                _log.info("%s runs by plain kernels, as %s is refused", run.__qualname__, refused.kernel)
                try:
                    with plain_kernels():
                        return run(*arguments, **keywords)
                except BuildError:
                    pass
            if instead is None:
                raise refused
            _warn(run.__qualname__, refused.kernel)
            result: T = instead(*arguments, **keywords)
            return result

        return call

    return decorate


@functools.cache
def _warn(name: str, kernel: str) -> None:
    """Say once a process that an operation runs on the host."""
    _log.warning("%s runs on the host, by SciPy, as %s is refused", name, kernel)
