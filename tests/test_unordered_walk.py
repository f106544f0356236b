"""Every public name on queues without order gives what it gives on a queue in order; one that is not called fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from calls import NOT_CALLED, TABLE, call, calls, like
from pairs import exhaustive

pytestmark = pytest.mark.every_platform
CALLS = calls()
ROUNDS = 20 if exhaustive() else 3


def test_each_public_name_is_called() -> None:
    assert [name for name, expression in CALLS.items() if expression is None] == []
    used = {*CALLS, *(f"array.{name.partition('.')[2]}" for name in CALLS)}
    assert [name for name in TABLE if name not in used and name not in NOT_CALLED] == []
    assert len(CALLS) > 600


@pytest.mark.parametrize("name", [name for name, expression in CALLS.items() if expression])
def test_without_order_as_in_order(queue: cl.CommandQueue, name: str) -> None:
    without = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if not queue.device.queue_properties & without:
        pytest.skip("the device keeps commands in order")
    unordered = like(queue, without)
    expression = CALLS[name] or ""
    wanted = call(expression, queue)
    for _ in range(ROUNDS):
        result = call(expression, unordered)
        assert len(result) == len(wanted)
        for part, other in zip(result, wanted, strict=True):
            check(part, other)


def check(result: Any, wanted: Any) -> None:
    """Compare parts of results: sums may be added in another order."""
    if isinstance(wanted, (np.ndarray, np.generic, float, complex)) and np.asarray(wanted).dtype.kind in "fc":
        wanted = np.asarray(wanted)
        largest = np.max(abs(wanted), initial=0, where=np.isfinite(wanted))
        np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=1e-4 * largest)
    else:
        np.testing.assert_array_equal(result, wanted)
