"""Whether a runtime gives memory back with a released program, in plain PyOpenCL: 1,000 kernels are built and released.

``PYOPENCL_CTX=Intel python docs/kept_programs.py [AT_A_TIME]``, where so many are kept before they are released together.

It does. Built and released one by one, 1,000 kernels add 10 MB to a process on Intel's runtime, 2026.22, and 500 add 15 MB on
PoCL 3.0-rc2. Of 200 that are kept each takes 1.8 MB and 1.1 MB. Memory of those that are released is used again: eight times 50
that are kept and released together take 381 MB after the first time and 384 MB after the eighth on Intel's runtime, 231 and
233 MB on PoCL. The C library gives it back to the system when it is asked to (``malloc_trim``).
"""

from __future__ import annotations

import gc
import sys
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
at_a_time, kept = int(sys.argv[1]) if len(sys.argv) > 1 else 1, []
for number in range(1001):
    # Not by `cl.Program(context, source)`, which keeps binaries of its own.
    program = cl.Program(cl._cl._Program(context, SOURCE.replace("NUMBER", str(number)))).build()
    kernel = cl.Kernel(program, f"add_{number}")
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))
    queue.finish()
    kept.append((program, kernel))
    if len(kept) == at_a_time:
        before = resident()
        del kernel, program
        kept.clear()
        gc.collect()
        if number in (0, 100, 500, 1000) or at_a_time > 1:
            print(f"{number:5} kernels built: {before:7.0f} MB, and {resident():7.0f} MB when they are released")
