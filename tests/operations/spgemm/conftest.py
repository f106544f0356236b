"""Fixtures of SpGEMM's tests."""

from __future__ import annotations

from collections.abc import Callable

import pyopencl as cl
import pytest
from accumulators import Give, Team
from platforms import queue_on

from clsparse_py._operations.spgemm import METHODS
from clsparse_py._operations.spgemm.accumulator import Accumulator
from clsparse_py._operations.spgemm.bins import Bin


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch, take_as: Callable[..., None]) -> Give:
    """Make "dense" give all rows to an accumulator, and return the queue of a team's platform."""

    def put(accumulator: Accumulator, team: Team) -> cl.CommandQueue:
        platform, many = team
        if many:
            take_as(type="gpu")
        monkeypatch.setitem(METHODS, "dense", lambda *_: (Bin("dense", accumulator),))
        return queue_on(platform)

    return put
