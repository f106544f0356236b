"""A device that understates everything: PoCL with the limits of the weakest devices, which the driver's stand-ins here keep.

``python understated.py SIZE [SCRIPT OPTION ...]`` runs a script of this folder, the workload by default. Work-groups have at most
SIZE work-items: 64, or 1 as kernels with barriers have on Apple's CPUs. There are 16 KiB of local memory, allocations of 128 MiB,
no sub-groups, no double precision and no 64-bit atomics: a Mali or an old Intel GPU refuses more than that.
"""

from __future__ import annotations

import functools
import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._build import programs, refusals
from clsparse_py._device import device as devices
from clsparse_py._device.device import Device, Portability
from clsparse_py._memory import pool

__all__ = ["LOCAL_MEMORY", "MAX_ALLOCATION", "install"]

LOCAL_MEMORY = 16 << 10  # bytes
MAX_ALLOCATION = 128 << 20  # bytes
#: The built-ins of atomics on 64-bit integers.
_ATOMICS_64 = re.compile(r"\b(atom_\w+)\s*\(")


def _refusal(code: int, text: str, kind: type[cl.Error] = cl.RuntimeError) -> cl.Error:
    """Return the error by which PyOpenCL reports that a driver refuses something."""
    return kind(cl._cl._ErrorRecord(msg=text, code=code, routine="understated"))


def install(work_group: int) -> None:
    """Make every device of this process one that understates everything, and its driver refuse all that goes beyond.

    Parameters
    ----------
    work_group : int
        Work-items in the largest work-group.
    """
    described = devices._describe

    @functools.cache
    def understated(device: cl.Device) -> Device:
        return replace(
            described(device),
            type="gpu" if work_group > 1 else "cpu",
            max_work_group=work_group,
            local_memory=LOCAL_MEMORY,
            max_allocation=MAX_ALLOCATION,
            preferred_multiple=min(16, work_group),
            sub_group_sizes=(),
            fp64=False,
            fp16=False,
            int64_atomics=False,
            float_atomics=False,
            forward_progress=False,
            svm=(),
            portability=Portability(fp64=False),
        )

    devices._describe = understated
    # What this device's compiler refuses, the real one does not.
    key_of = refusals._key
    refusals._key = lambda identity: key_of(f"{identity}, understated to {work_group}")
    _limit_work_groups(work_group)
    _limit_programs()
    _limit_allocations()


def _limit_work_groups(work_group: int) -> None:
    limit, enqueue = programs._work_group_limit, cl.enqueue_nd_range_kernel

    def limit_of(kernel: cl.Kernel, device: cl.Device) -> int:
        return min(limit(kernel, device), work_group)

    def enqueue_within(queue: cl.CommandQueue, kernel: cl.Kernel, sizes: Any, local: Any, *more: Any, **named: Any) -> cl.Event:
        if local is not None and np.prod(local) > work_group:
            raise _refusal(cl.status_code.INVALID_WORK_GROUP_SIZE, f"{kernel.function_name}: work-groups of {local}")
        return enqueue(queue, kernel, sizes, local, *more, **named)

    programs._work_group_limit = limit_of
    programs._runs_empty = lambda *_: False
    cl.enqueue_nd_range_kernel = enqueue_within


def _limit_programs() -> None:
    build, compiled = programs._build_kernel, programs.compile_source

    def kernel_within(context: cl.Context, device: cl.Device, *record: Any) -> tuple[cl.Program, cl.Kernel]:
        program, kernel = build(context, device, *record)
        n_bytes = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, device)
        if n_bytes > LOCAL_MEMORY:
            raise _refusal(cl.status_code.OUT_OF_RESOURCES, f"{kernel.function_name}: {n_bytes} bytes of local memory")
        return program, kernel

    def compile_within(context: cl.Context, device: cl.Device, source: str, options: tuple[str, ...] = ()) -> cl.Program:
        # The preprocessor may leave out what a source has of them.
        names = sorted(set(_ATOMICS_64.findall(source)))
        lacking = "".join(f"#define {name} lacks_{name}\n" for name in names)
        return compiled(context, device, lacking + source, options)

    programs._build_kernel, programs.compile_source = kernel_within, compile_within


def _limit_allocations() -> None:
    create, make_pool = pool._create, pool.Pool.__init__

    def create_within(context: cl.Context, n_bytes: int, *more: Any) -> cl.Buffer:
        if n_bytes > MAX_ALLOCATION:
            raise _refusal(cl.status_code.INVALID_BUFFER_SIZE, f"{n_bytes} bytes", cl.LogicError)
        return create(context, n_bytes, *more)

    def make_within(self: pool.Pool, context: cl.Context, device: cl.Device) -> None:
        make_pool(self, context, device)
        self.largest = min(self.largest, MAX_ALLOCATION)

    pool._create, pool.Pool.__init__ = create_within, make_within


if __name__ == "__main__":
    size, script, *options = [*sys.argv[1:], "workload.py"] if len(sys.argv) == 2 else sys.argv[1:]
    install(int(size))
    sys.argv = [script, *options]
    runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")
