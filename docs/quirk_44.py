"""Quirk 44 in plain PyOpenCL: a queue without order that is released before its commands have ended.

``PYOPENCL_CTX=Intel python docs/quirk_44.py``, or with ``finish`` behind it, which is right.
"""

from __future__ import annotations

import faulthandler
import sys

import numpy as np
import pyopencl as cl

faulthandler.dump_traceback_later(20, exit=True)
context = cl.create_some_context(interactive=False)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
ordered = cl.CommandQueue(context)
for number in range(5000):
    unordered = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    for _ in range(3):
        filled = cl.enqueue_fill_buffer(ordered, buffer, np.int32(1), 0, 64)
        ordered.flush()
        cl.enqueue_barrier(unordered, wait_for=[filled])
        last = cl.enqueue_fill_buffer(unordered, buffer, np.int32(1), 0, 64)
        unordered.flush()
    if sys.argv[1:] == ["finish"]:
        unordered.finish()
    del unordered, last
    cl.enqueue_fill_buffer(ordered, buffer, np.int32(1), 0, 64).wait()
    if number in (0, 10, 100, 1000):
        print(number, "queues were released", flush=True)
