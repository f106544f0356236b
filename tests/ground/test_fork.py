"""Processes forked from one that has used a device: drivers' threads are not in them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csr_array, default_queue, describe, primitives, spgemm_plan, spmv, transpose_plan

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

S = sp.csr_array(np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0]], np.float32))
#: Seconds after which a child counts as one that hangs.
LIMIT = 20


def error_of(work: Callable[[], object]) -> str:
    try:
        work()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def in_child(work: Callable[[], object]) -> str:
    """Run a function in a forked child; return the error that it raised, "" for none, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # Whatever happens, pytest must not go on in the child; a handler in Python would wait for the call that hangs.
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LIMIT)
            os.write(writing, error_of(work).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said


def test_every_door_says_spawn(queue: cl.CommandQueue) -> None:
    A, x = csr_array(S, queue=queue), np.ones(3, np.float32)
    on_device = cl_array.to_device(queue, x)
    out, unchecked = A @ on_device, csr_array((A.data, A.indices, A.indptr), shape=(3, 3), check=False)
    for _ in range(2):
        spmv(A, on_device, out=out)
    transposition, product = transpose_plan(A), spgemm_plan(A, A)
    doors: dict[str, Callable[[], Any]] = {
        "devices": clsparse_py.devices,
        "default_queue": clsparse_py.default_queue,
        "describe": lambda: clsparse_py.describe(queue.device),
        "csr_array": lambda: csr_array(S, queue=queue),
        "repeated spmv": lambda: spmv(A, on_device, out=out),
        "spmv": lambda: A @ x,
        "spmm": lambda: A @ x[:, None],
        "transpose": lambda: clsparse_py.transpose(A),
        "transpose plan": transposition,
        "spgemm": lambda: A @ A,
        "spgemm plan": product,
        "estimate": lambda: clsparse_py.spgemm_estimate(A, A),
        "get": A.get,
        "copy": A.copy,
        "sort": unchecked.sort_indices,
        "eliminate": A.eliminate_zeros,
        "primitive": lambda: primitives.inclusive_scan(on_device),
        "warmup": lambda: clsparse_py.warmup(queue),
    }

    def try_all() -> None:
        for name, use in doors.items():
            said = error_of(use)
            assert said.startswith("RuntimeError: device: this process was forked from one that had used OpenCL"), (name, said)
            assert 'multiprocessing.get_context("spawn")' in said

    assert in_child(try_all) == ""
    np.testing.assert_array_equal(A @ x, S @ x)


def test_a_child_that_uses_no_device_is_not_disturbed(queue: cl.CommandQueue) -> None:
    A, x = csr_array(S, queue=queue), np.ones(3, np.float32)
    made: list[Any] = [A, A @ cl_array.to_device(queue, x), A @ A, A.T, transpose_plan(A), A.spmv_plan()]
    # Commands that have not ended yet never end in the child.
    gate = cl.UserEvent(queue.context)
    cl.enqueue_barrier(queue, wait_for=[gate])
    made.append(A @ made[1])
    queue.flush()

    def leave() -> None:
        assert repr(A).startswith("<csr_array of 3 x 3, 4 stored entries")
        assert (A.shape, A.nnz, A.dtype, A.has_canonical_format) == ((3, 3), 4, np.float32, True)
        np.testing.assert_array_equal(S @ x, S.toarray() @ x)
        A.spmv_plan().explain()
        made.clear()
        gc.collect()

    try:
        assert in_child(leave) == ""
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(made[-1].get(), S @ (S @ x))


def test_a_child_releases_nothing_of_pyopencls(queue: cl.CommandQueue) -> None:
    """Each object of a driver has one reference more than in the parent, so that it is never let go, whoever held it."""
    A, x = csr_array(S, queue=queue), cl_array.to_device(queue, np.ones(3, np.float32))
    event = cl.enqueue_marker(queue)
    program = cl.Program(queue.context, "kernel void nothing(global int *a) { }").build()
    made = {
        "buffer": A.data.base_data, "event": event, "context": cl.Context([queue.device]), "kernel": program.nothing,
        "part": A.data[1:].base_data, "queue": cl.CommandQueue(queue.context, queue.device), "array": x.base_data,
    }  # fmt: skip
    # A tuple and a dictionary that the collector forgets, as events refer to nothing.
    made["in a tuple"], made["in a dictionary"] = cl.enqueue_marker(queue), cl.enqueue_marker(queue)
    nested = [{"event": made.pop("in a dictionary")}, (made.pop("in a tuple"),)]
    gc.collect()
    before = (
        {name: sys.getrefcount(item) for name, item in made.items()},
        [sys.getrefcount(nested[0]["event"]), sys.getrefcount(nested[1][0])],
    )

    def look() -> None:
        for name, item in made.items():
            assert sys.getrefcount(item) > before[0][name], name
        assert sys.getrefcount(nested[0]["event"]) > before[1][0]
        assert sys.getrefcount(nested[1][0]) > before[1][1]

    assert in_child(look) == ""


BEFORE = """
import os, sys
import clsparse_py, numpy as np, scipy.sparse as sp

child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
A = clsparse_py.csr_array(sp.eye_array(3, dtype=np.float32))
assert (A @ np.ones(3, np.float32) == 1).all()
"""
AFTER = """
import os, sys
import clsparse_py, numpy as np, scipy.sparse as sp

A = clsparse_py.csr_array(sp.eye_array(3, dtype=np.float32))
y = A @ np.ones(3, np.float32)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("program", [BEFORE, AFTER], ids=["used after the fork", "left by the interpreter's exit"])
def test_a_whole_process_that_forks(program: str, tmp_path: Path) -> None:
    if program is AFTER and not describe(default_queue().device).lanes_are_loops:
        pytest.skip("quirk 19: the driver ends a forked child by a signal when the interpreter exits, whatever the child did")
    ended = subprocess.run(
        # The warning is of a fork beside threads, from Python 3.12 on.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True, text=True, timeout=LIMIT * 3, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
