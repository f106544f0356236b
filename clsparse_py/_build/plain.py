"""Plain kernels: no local memory, no lanes, work-groups of one work-item; every OpenCL device can run them.

Operations choose plain kernels for a device that has nothing else (`plainly`): each work-item runs a loop, in a work-group of its
own. While a thread is `with plain_kernels()`, `device.describe` describes devices this way, and all decisions follow.

Plain kernels replace kernels that a driver's compiler refuses. A function with a `door` that cannot build a kernel is called
again with plain kernels alone. If a plain kernel is refused, too, SciPy does the operation as a whole, with copies on the
host, if SciPy has the operation (`clsparse_py._arrays.doors`); else the refusal is raised. A function builds all of its
kernels before one of them writes to an operand.
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

__all__ = ["are_plain", "door", "explain_plain", "plain_kernels", "plainly"]

_log = logging.getLogger(__name__)

#: Parameters of a function that `door` decorates, for type checkers.
P = ParamSpec("P")
#: Type of the result of a function that `door` decorates, for type checkers.
T = TypeVar("T")


class _Mode(threading.local):
    """The mode of a thread: whether its operations take plain kernels alone."""

    on = False


_mode = _Mode()


def are_plain() -> bool:
    """Return whether this thread's operations take plain kernels alone: no local memory, work-groups of one work-item."""
    return _mode.on


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Let the operations of this thread take plain kernels alone within a ``with`` block."""
    was_on, _mode.on = _mode.on, True
    try:
        yield
    finally:
        _mode.on = was_on


@functools.lru_cache(maxsize=16)
def plainly(device: Device) -> Device:
    """Return the description of a device as if it had nothing but global memory and work-groups of one work-item."""
    return replace(
        device,
        max_work_group=1,
        local_memory=0,
        preferred_multiple=1,
        sub_group_sizes=(),
        portability=replace(device.portability.at_most(1), load_once="plain", match="local"),
    )


def explain_plain(*named: str) -> str:
    """Return the reason for plain kernels, for explanations; they take the place of what was ``named``, unless that is "auto"."""
    given = " and ".join(name for name in named if name != "auto")
    return f"plain kernels, in place of {given}" if given else "plain kernels"


def door(instead: Callable[..., Any] | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that runs a function anew by plain kernels if a kernel is refused, and if one of these is, ``instead``.

    Without ``instead`` the first refusal is raised.
"""

    def decorate(run: Callable[P, T]) -> Callable[P, T]:
        """Return the function ``run`` with fallbacks: plain kernels if a kernel is refused, then ``instead`` or an error."""

        @functools.wraps(run)
        def call(*arguments: P.args, **keywords: P.kwargs) -> T:
            """Call the decorated function, again by plain kernels if a kernel is refused, and at last ``instead``, or raise."""
            try:
                return run(*arguments, **keywords)
            except BuildError as error:
                # A copy of the error is kept, as a raised error holds the local variables of its callers.
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
    """Warn once in a process that an operation runs on the host, as the device's compiler refuses a kernel."""
    _log.warning("%s runs on the host, by SciPy, as %s is refused", name, kernel)
