"""Try a device's compiler in a process of its own: ``python -m clsparse_py._device.probe IDENTITY``.

The kernels hold the forms that ended compilers, made them hang or gave wrong results (quirks 2, 4 and 40): barriers in loops,
vectors passed by value to functions and built-ins, atomics on local memory, loops of many turns. The process prints `BEGINS`
before the first build, and a verdict after the last one; without a verdict the compiler ended the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import pyopencl as cl

from clsparse_py._build import programs, refusals
from clsparse_py._device.trial import BEGINS, GOOD, NONE, REFUSED, WRONG

__all__: list[str] = []

#: Work-items of a work-group of the probes, small kernels that try a device's compiler.
_GROUP = 64
#: Work-groups of a launch of a probe, a small kernel that tries a device's compiler.
_GROUPS = 4
#: Turns of the longest loop of a probe kernel: one OpenCL runtime wrongly leaves such long loops early.
_TURNS = 100_000

#: OpenCL C of the probes, small kernels that try a device's compiler.
_SOURCE = """
uint8 twisted(uint8 v, uint8 w)
{
    return rotate(v, w & 31u) + popcount(v);
}
float8 larger(float8 v, float8 w)
{
    return fmax(v, w);
}
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void probe_barriers(global const uint *a, global uint *out)
{
    local uint box[GROUP];
    const uint me = get_local_id(0), i = get_global_id(0);
    box[me] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < GROUP; step *= 2) {
        const uint before = me >= step ? box[me - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        box[me] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = box[me];
}
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void probe_vectors(global const uint *a, global uint *out)
{
    const size_t i = get_global_id(0);
    const uint8 v = vload8(i, a);
    const float8 f = larger(convert_float8(v & 1023u), (float8)(500.0f));
    vstore8(twisted(v, (uint8)(3, 5, 7, 9, 11, 13, 17, 19)) + convert_uint8(f), i, out);
}
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void probe_atomics(global const uint *a, global uint *out)
{
    local uint counts[8];
    const uint me = get_local_id(0), i = get_global_id(0);
    if (me < 8)
        counts[me] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(counts + a[i] % 8);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = counts[me % 8];
}
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void probe_turns(global const uint *a, global uint *out)
{
    const size_t i = get_global_id(0);
    const uint turns = TURNS + (a[i] & 1u);
    uint8 found = 0;
    for (uint turn = 0; turn < turns; ++turn)
        found += a[turn % (GROUP * GROUPS)];
    vstore8(found, i, out);
}
"""


def _expected_results(a: np.ndarray) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield the name of each probe (a small kernel), its work-items in a work-group, and the numbers that it has to write."""
    groups = a.reshape(_GROUPS, _GROUP)
    yield "probe_barriers", _GROUP, np.cumsum(groups, axis=1, dtype=np.uint32).ravel()
    turns = np.tile(np.array([3, 5, 7, 9, 11, 13, 17, 19], np.uint32), a.size // 8)
    bits = np.unpackbits(a.view(np.uint8)).reshape(a.size, 32).sum(axis=1, dtype=np.uint32)
    yield "probe_vectors", 1, ((a << turns) | (a >> (np.uint32(32) - turns))) + bits + np.maximum(a & 1023, 500)
    counts = np.stack([np.bincount(group % 8, minlength=8) for group in groups]).astype(np.uint32)
    yield "probe_atomics", _GROUP, np.tile(counts, (1, _GROUP // 8)).ravel()
    sums = np.cumsum(np.resize(a, _TURNS + 1), dtype=np.uint32)
    yield "probe_turns", 1, np.repeat(sums[_TURNS - 1 + (a[: a.size // 8] & 1)], 8)


def _try_out(device: cl.Device) -> tuple[str, str]:
    """Build and run the probes on a device, and return the verdict on its compiler with the name of the first wrong probe."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    numbers = {"GROUP": _GROUP, "GROUPS": _GROUPS, "TURNS": f"{_TURNS}u"}
    defines = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    program = programs.compile_source(context, device, defines + _SOURCE)
    a = np.random.default_rng(0).integers(0, 1 << 32, _GROUP * _GROUPS, dtype=np.uint32)
    flags = cl.mem_flags
    operand = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
    for name, group, expected in _expected_results(a):
        out = cl.Buffer(context, flags.WRITE_ONLY, a.nbytes)
        values = np.zeros_like(a)
        items = a.size if group > 1 else a.size // 8
        cl.Kernel(program, name)(queue, (items,), (group,), operand, out)
        cl.enqueue_copy(queue, values, out)
        if not np.array_equal(values, expected.astype(np.uint32)):
            return WRONG, name
    return GOOD, ""


def _verdict(identity: str) -> tuple[str, str]:
    """Return the verdict on the compiler of the device of this identity (`GOOD`, `WRONG`, `REFUSED` or `NONE`) and a reason."""
    try:
        present = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        device = next((candidate for candidate in present if programs.identity(candidate) == identity), None)
        if device is None:
            return NONE, "the device is not there"
        print(BEGINS, flush=True)
        return _try_out(device)
    except cl.MemoryError as error:
        return NONE, str(error)
    except cl.Error as error:
        return REFUSED, refusals.summarise(refusals.extract_log(error)) or str(error)
    except Exception as error:  # an error of this package or its imports is no verdict on the compiler
        return NONE, repr(error)


if __name__ == "__main__":
    print(*_verdict(sys.argv[1]), flush=True)
    # The process ends at once: even with a good driver its orderly end may fail, which is no verdict on the compiler.
    os._exit(0)
