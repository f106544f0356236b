"""Threads: operations of all kinds at once, on shared queues and own ones; a run that stands still fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

_FULL = bool(os.environ.get("CLSPARSE_FULL"))
#: Operations of all threads together.
OPERATIONS = 20_000 if _FULL else 1000
#: Time limit of the threads, in seconds.
SECONDS = 1200 if _FULL else 240


@pytest.mark.parametrize("mode", ["ordered", "unordered"])
def test_threads_do_all_operations_at_once(queue: cl.CommandQueue, mode: str) -> None:
    unordered = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if mode == "unordered" and not queue.device.queue_properties & unordered:
        pytest.skip("the device keeps commands in order")
    if mode == "unordered" and "Intel" in queue.device.platform.name:
        pytest.skip("quirk 14: such queues stand still there, in plain PyOpenCL too")
    script = str(Path(__file__).with_name("threads.py"))
    # In a process of its own: what stands still, or ends the process, is to fail this test alone.
    command = [sys.executable, script, queue.device.platform.name, mode, str(OPERATIONS), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS + 60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("right ")
