"""Quirk 43 in plain PyOpenCL: what a command costs on a queue without order, by how many have not ended.

``PYOPENCL_CTX=Portable python docs/quirk_43.py``
"""

from __future__ import annotations

import time

import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
unordered = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
ordered = cl.CommandQueue(context)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
for most in (1, 20, 100, 200, 400):
    begin, count = time.perf_counter(), 400
    for number in range(count):
        before = cl.enqueue_marker(unordered)
        unordered.flush()
        filled = cl.enqueue_fill_buffer(ordered, buffer, np.int32(1), 0, 64, wait_for=[before])
        ordered.flush()
        cl.enqueue_marker(unordered, wait_for=[filled])
        unordered.flush()
        if number % most == most - 1:
            unordered.finish()
    unordered.finish()
    print(f"{most:4} at most have not ended: {(time.perf_counter() - begin) / count * 1e3:8.3f} ms each")
