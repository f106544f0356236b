"""Run kernels with one planted fault each on the default device: what finds faults has to find these."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import default_queue

#: The kernels by name, and what of Oclgrind's message names the fault.
FAULTS = {
    "local_race": "data race at local",
    "global_race": "data race at global",
    "out_of_bounds": "Invalid write",
    "uninitialised": "ninitialized value",
    "divergent_barrier": "divergence",
}

SOURCE = """
kernel void local_race(global const int *never_written, global int *out)
{
    local int box[4];
    const uint me = get_local_id(0);
    box[me] = me;
    out[get_global_id(0)] = box[(me + 1) % 4]; // no barrier before it
}
kernel void global_race(global const int *never_written, global int *out)
{
    out[0] = get_global_id(0);
}
kernel void out_of_bounds(global const int *never_written, global int *out)
{
    out[get_global_id(0) + 1] = 1;
}
kernel void uninitialised(global const int *never_written, global int *out)
{
    out[get_global_id(0)] = never_written[get_global_id(0)] > 3 ? 5 : 7;
}
kernel void divergent_barrier(global const int *never_written, global int *out)
{
    if (get_local_id(0) > 1)
        barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = 1;
}
kernel void faultless(global const int *never_written, global int *out)
{
    out[get_global_id(0)] = 1;
}
"""

if __name__ == "__main__":
    queue = default_queue()
    program = cl.Program(queue.context, SOURCE).build()
    for name in (*FAULTS, "faultless"):
        arrays = [cl_array.empty(queue, 8, np.int32) for _ in range(2)]
        kernel = cl.Kernel(program, name)
        kernel.set_args(*(array.data for array in arrays))
        cl.enqueue_nd_range_kernel(queue, kernel, (8,), (4,))
        queue.finish()
