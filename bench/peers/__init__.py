"""The peers: one module each, found by asking it whether it can run here."""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("scipy", "mkl", "numba", "graphblas", "cusparse", "numpy", "cupy", "pyopencl", "pyamg", "amgcl", "cuda_codes")


def load(name: str) -> ModuleType:
    """Return a peer's module.

    It has ``available() -> str | None``, the reason why it cannot run here or None; ``versions() -> dict[str, str]``; and
    ``contestants(operation, queue) -> list[Contestant]``, where the queue is for those who compute with OpenCL.

    Raises
    ------
    ValueError
        If there is no such peer.
    """
    if name not in NAMES:
        raise ValueError(f"peer: got {name!r}, needs one of {', '.join(NAMES)}")
    return importlib.import_module(f"bench.peers.{name}")
