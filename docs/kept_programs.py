"""Whether a runtime gives memory back with a released program, in plain PyOpenCL: 1,000 kernels are built and released.

``PYOPENCL_CTX=Intel python docs/kept_programs.py``
"""

from __future__ import annotations

import gc
from pathlib import Path

import pyopencl as cl

_MB = 1 << 20


def resident() -> float:
    """Return the megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / _MB


context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
SOURCE = "kernel void add_NUMBER(global int *a) { local int b[64]; int i = get_local_id(0); b[i] = a[i] + NUMBER;\n"
SOURCE += "barrier(CLK_LOCAL_MEM_FENCE); for (int k = 0; k < 64; k++) a[i] += b[(i + k) % 64] * k; }\n"
for number in range(1001):
    # Not by `cl.Program(context, source)`, which keeps binaries of its own.
    program = cl.Program(cl._cl._Program(context, SOURCE.replace("NUMBER", str(number)))).build()
    kernel = cl.Kernel(program, f"add_{number}")
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))
    queue.finish()
    del kernel, program
    if number in (0, 100, 500, 1000):
        gc.collect()
        print(f"{number:5} kernels built and released: {resident():7.0f} MB")
