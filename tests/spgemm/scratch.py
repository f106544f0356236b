"""How much scratch memory operations hold at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from pyopencl import array as cl_array

from clsparse_py.launch import Chain

__all__ = ["most_scratch"]


@contextmanager
def most_scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Count the bytes of scratch memory that chains of commands hold; what is given returns the most at one time."""
    held, most = 0, 0
    plain = Chain.scratch

    def let_go(n_bytes: int) -> None:
        nonlocal held
        held -= n_bytes

    def scratch(chain: Chain, n: int, dtype: Any) -> cl_array.Array:
        nonlocal held, most
        made = plain(chain, n, dtype)
        n_bytes = max(n, 1) * np.dtype(dtype).itemsize
        held += n_bytes
        most = max(most, held)
        weakref.finalize(made, let_go, n_bytes)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Chain, "scratch", scratch)
        yield lambda: most
