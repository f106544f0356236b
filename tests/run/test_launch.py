"""Chains of commands: counters that are zeros before a chain begins, and again after it."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pyopencl as cl
import pytest
from platforms import make_queue
from pyopencl import array as cl_array

from clsparse_py._memory.memory import free_memory
from clsparse_py._run.launch import Chain


@pytest.mark.parametrize("ordered", [True, False])
def test_counters_are_zeros_for_every_chain(queue: cl.CommandQueue, ordered: bool) -> None:
    free_memory()
    properties = cl.command_queue_properties
    if not ordered and not queue.device.queue_properties & properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        pytest.skip("the device keeps commands in order")
    own = make_queue(queue, 0 if ordered else properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    for n in (3, 7, 1000, 5):
        chain = Chain(own)
        first, second = chain.counters(n), chain.counters(n)
        assert first.base_data != second.base_data
        for counters in (first, second):
            np.testing.assert_array_equal(chain.read(counters, n), 0)
            chain.fill(counters, 9, n)
            np.testing.assert_array_equal(chain.read(counters, n), 9)
        chain.finish()
    free_memory()


def test_counters_of_a_chain_that_never_ends_are_no_one_elses(queue: cl.CommandQueue) -> None:
    free_memory()
    left = Chain(queue)
    counted = left.counters(4)
    left.fill(counted, 5, 4)
    other = Chain(queue)
    np.testing.assert_array_equal(other.read(other.counters(4), 4), 0)
    np.testing.assert_array_equal(left.read(counted, 4), 5)


def copies(chain: Chain, source: cl_array.Array, n: int) -> cl_array.Array:
    """Enqueue many copies, one after another, and return the last."""
    for _ in range(50):
        target = chain.scratch(n, np.uint32)
        chain.copy(target, source, n)
        source = target
    return source


@pytest.mark.parametrize("fails", [False, True])
def test_commands_beside_come_after_what_was_before_and_before_what_comes_after(queue: cl.CommandQueue, fails: bool) -> None:
    n = 100_000
    own = cl.CommandQueue(queue.context, queue.device)
    chain = Chain(own)
    first, second = chain.scratch(n, np.uint32), chain.scratch(n, np.uint32)
    chain.fill(first, 7, n)
    before = copies(chain, first, n)
    with pytest.raises(ZeroDivisionError) if fails else nullcontext(), chain.side_queue() as beside:
        assert beside.queue != own
        after = copies(beside, before, n)
        chain.fill(second, 3, n)
        beside.copy(first, after, n)
        if fails:
            raise ZeroDivisionError
    copied = copies(chain, first, n)
    chain.fill(first, 0, n)
    np.testing.assert_array_equal(chain.read(copied, n), 7)
    np.testing.assert_array_equal(chain.read(second, n), 3)
    free_memory()


def test_commands_beside_come_after_those_of_other_chains(queue: cl.CommandQueue) -> None:
    n = 1_000_000
    own = cl.CommandQueue(queue.context, queue.device)
    for round_ in range(5):
        earlier = Chain(own)
        first = earlier.scratch(n, np.uint32)
        earlier.fill(first, round_, n)
        written = copies(earlier, first, n)
        # It has no commands of its own yet, as that of a plan which takes new values.
        chain = Chain(own)
        target = chain.scratch(n, np.uint32)
        with chain.side_queue() as beside:
            beside.copy(target, written, n)
        np.testing.assert_array_equal(chain.read(target, n), round_)
    free_memory()


def test_nothing_runs_beside_where_it_is_not_wanted(queue: cl.CommandQueue) -> None:
    chain = Chain(cl.CommandQueue(queue.context, queue.device))
    with chain.side_queue(is_wanted=False) as beside:
        assert beside is chain
    assert not chain.events
