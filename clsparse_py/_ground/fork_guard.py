"""Refusal of devices in a forked process, which lacks the drivers' threads, so that commands would wait for ever (quirk 19)."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any

__all__ = ["use_device"]

#: Whether this process, or the process that it was forked from, used an OpenCL device.
_used = False
#: Whether this process was forked after OpenCL devices were used: then it can neither enqueue commands nor wait for them.
forked = False


def _guard_child() -> None:
    """Note in a forked process whether its parent used devices; if so, keep PyOpenCL's objects from being released."""
    global forked
    forked = _used
    if forked:
        _keep_objects()


def _keep_objects() -> None:
    """Keep all objects of PyOpenCL for ever: releasing an object calls the driver, which may end the process (quirk 19)."""
    kinds: set[type[Any]] = {dict, tuple}
    pending: list[type[Any]] = [referent for referent in vars(sys.modules["pyopencl._cl"]).values() if isinstance(referent, type)]
    while pending:
        kinds.update(pending)
        pending = [below for kind in pending for below in type.__subclasses__(kind)]
    frame, ahead = sys._getframe(), gc.get_objects()
    while frame.f_back is not None:  # the garbage collector does not track frames of running functions
        frame = frame.f_back
        ahead.append(frame.f_locals)
    seen_ids: set[int] = set()
    while ahead:
        referents = {id(referent): referent for referent in gc.get_referents(*ahead) if type(referent) in kinds}
        ahead = []
        for key in referents.keys() - seen_ids:
            if not isinstance(referents[key], (dict, tuple)):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(referents[key]))
            elif not gc.is_tracked(referents[key]):  # the garbage collector does not track containers without tracked members
                ahead.append(referents[key])
        seen_ids.update(referents)


def use_device() -> None:
    """Note that this process uses devices, before a driver is asked; raise an error if forked from one that had.

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


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_guard_child)
