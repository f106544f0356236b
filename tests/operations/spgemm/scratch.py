"""How much memory operations have in use at once, by counting: the one place where tests look at every allocation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyopencl as cl
import pytest

from clsparse_py._memory.pool import Arena

__all__ = ["Allocations", "count_buffers"]


class Allocations:
    """The log of allocations and releases, in order: sizes and buffers."""

    def __init__(self) -> None:
        self._log: list[tuple[int, int]] = []
        self._made = 0

    def add(self, n_bytes: int) -> int:
        """Note a new buffer, and return its number."""
        self._made += 1
        self._log.append((self._made, n_bytes))
        return self._made

    def drop(self, number: int, n_bytes: int) -> None:
        """Note that a buffer was let go."""
        self._log.append((number, -n_bytes))

    def peak(self, *results: Any) -> int:
        """Return the most bytes that were in use at a time, but for those of results: csr_arrays."""
        own = {
            part.base_data.number for result in results for part in (result.data, result.indices, result.indptr) if part.nbytes
        }
        held = most = 0
        for number, change in self._log:
            if number not in own:
                held += change
                most = max(most, held)
        return most


@contextmanager
def count_buffers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Allocations]:
    """Count every buffer of the device that is made inside: scratch memory, results, and what PyOpenCL's own arrays take."""
    result = Allocations()

    class Counted(cl.Buffer):
        def __init__(self, context: cl.Context, flags: int, size: int = 0, hostbuf: Any = None) -> None:
            super().__init__(context, flags, size, hostbuf)
            self.n_bytes = size or hostbuf.nbytes
            self.number = result.add(self.n_bytes)

        def __del__(self) -> None:
            result.drop(self.number, self.n_bytes)

    def lend(arena: Arena, _queue: cl.CommandQueue, n_bytes: int) -> cl.Buffer:
        """Return memory of the driver's, which it has back as soon as it is let go."""
        return Counted(arena.pool.context, cl.mem_flags.READ_WRITE, n_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(cl, "Buffer", Counted)
        patched.setattr(Arena, "allocate", lend)
        yield result
