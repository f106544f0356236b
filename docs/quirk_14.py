"""Quirk 14 in plain PyOpenCL: threads that wait, each for its own queue without order, stand still on Intel's CPU runtime.

``python docs/quirk_14.py HOW`` with HOW one of

    unordered    each read is waited for by its event: stood still in 5 of 8 runs
    finish       the queue is finished instead: in 1 of 8
    ordered      queues keep their order: in none of 8
    lock         one thread waits at a time: in none of 8
"""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pyopencl as cl

THREADS, TIMES, SECONDS = 4, 4000, 20
SOURCE = "kernel void add(global const int *a, global int *b) { b[get_global_id(0)] = a[get_global_id(0)] + 1; }"

how = sys.argv[1]
device = next(each for each in cl.get_platforms() if "Intel" in each.name).get_devices()[0]
context = cl.Context([device])
program = cl.Program(context, SOURCE).build()
done, alone = [0] * THREADS, threading.Lock()


def work(me: int) -> None:
    """Run two kernels, one after the other, and read what they made, many times."""
    properties = 0 if how == "ordered" else cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    queue = cl.CommandQueue(context, device, properties)
    a, b, c = (cl.Buffer(context, cl.mem_flags.READ_WRITE, 1024) for _ in range(3))
    cl.enqueue_fill_buffer(queue, a, np.int32(1), 0, 1024).wait()
    kernel, out = cl.Kernel(program, "add"), np.empty(256, np.int32)
    for _ in range(TIMES):
        first = kernel(queue, (256,), None, a, b)
        second = kernel(queue, (256,), None, b, c, wait_for=[first])
        read = cl.enqueue_copy(queue, out, c, wait_for=[second], is_blocking=False)
        if how == "finish":
            queue.finish()
        elif how == "lock":
            with alone:
                read.wait()
        else:
            read.wait()
        assert out[0] == 3
        done[me] += 1


threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(THREADS)]
for thread in threads:
    thread.start()
before: list[int] = []
while any(thread.is_alive() for thread in threads):
    if done == before:
        print(f"stands still after {done} rounds", flush=True)
        os._exit(1)
    before = list(done)
    time.sleep(SECONDS)
print("ends")
