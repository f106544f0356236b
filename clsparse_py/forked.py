"""A process forked from one that had used a device: drivers' threads are not in it, and commands wait for ever (quirk 19)."""

from __future__ import annotations

import os

__all__ = ["is_forked", "use_device"]

_used = False
#: Whether devices cannot be used; `is_forked` for those who read it in less time than a call takes.
forked = False


def _in_child() -> None:
    global forked
    forked = _used


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
