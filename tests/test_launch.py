"""Chains of commands: counters that are zeros before a chain begins, and again after it."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from clsparse_py.launch import Chain, free_scratch


@pytest.mark.parametrize("ordered", [True, False])
def test_counters_are_zeros_for_every_chain(queue: cl.CommandQueue, ordered: bool) -> None:
    free_scratch()
    properties = cl.command_queue_properties
    if not ordered and not queue.device.queue_properties & properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        pytest.skip("the device keeps commands in order")
    own = cl.CommandQueue(queue.context, queue.device, 0 if ordered else properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    for n in (3, 7, 1000, 5):
        chain = Chain(own)
        first, second = chain.counters(n), chain.counters(n)
        assert first.base_data != second.base_data
        for each in (first, second):
            np.testing.assert_array_equal(chain.read(each, n), 0)
            chain.fill(each, 9, n)
            np.testing.assert_array_equal(chain.read(each, n), 9)
        chain.finish()
    free_scratch()


def test_counters_of_a_chain_that_never_ends_are_no_one_elses(queue: cl.CommandQueue) -> None:
    free_scratch()
    left = Chain(queue)
    counted = left.counters(4)
    left.fill(counted, 5, 4)
    other = Chain(queue)
    np.testing.assert_array_equal(other.read(other.counters(4), 4), 0)
    np.testing.assert_array_equal(left.read(counted, 4), 5)
