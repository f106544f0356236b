"""A process forked from one that had used a device: drivers' threads are not in it, and commands wait for ever (quirk 19)."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any

__all__ = ["is_forked", "use_device"]

#: Whether this process, or the one that it was forked from, used a device.
_used = False
#: Whether this process was forked after devices were used; a variable is faster to read than a call of `is_forked`.
forked = False


def _in_child() -> None:
    global forked
    forked = _used
    if forked:
        _keep_all()


def _keep_all() -> None:
    """Keep all objects of PyOpenCL for ever: to release one is a call of the driver, which may end the process (quirk 19)."""
    kinds: set[type[Any]] = {dict, tuple}
    pending: list[type[Any]] = [referent for referent in vars(sys.modules["pyopencl._cl"]).values() if isinstance(referent, type)]
    while pending:
        kinds.update(pending)
        pending = [below for kind in pending for below in type.__subclasses__(kind)]
    frame, ahead = sys._getframe(), gc.get_objects()
    while frame.f_back is not None:  # frames of running functions are not tracked by the collector
        frame = frame.f_back
        ahead.append(frame.f_locals)
    keys: set[int] = set()
    while ahead:
        met = {id(referent): referent for referent in gc.get_referents(*ahead) if type(referent) in kinds}
        ahead = []
        for key in met.keys() - keys:
            if not isinstance(met[key], (dict, tuple)):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(met[key]))
            elif not gc.is_tracked(met[key]):  # the collector does not track objects without tracked members
                ahead.append(met[key])
        keys.update(met)


def use_device() -> None:
    """Take note that this process uses devices. Called before anything is asked of a driver.

    Raises
    ------
    RuntimeError
        The process was forked from one that had used a device.
    """
    global _used
    if forked:
        raise RuntimeError(
            "device: this process was forked from one that had used OpenCL, which does not work in forks; start processes with "
            'multiprocessing.get_context("spawn"), or fork before the first use of a device'
        )
    _used = True


def is_forked() -> bool:
    """Return whether devices cannot be used, and what runs on them cannot be waited for."""
    return forked


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_in_child)
