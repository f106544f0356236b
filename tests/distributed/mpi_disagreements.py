"""A program of two ranks or more that differ, run by `test_mpi` with mpiexec; and of one that fails where nobody looks."""

from __future__ import annotations

import sys
import time

import disagreements
import pyopencl as cl

import clsparse_py
from clsparse_py import distributed


def main(platform: str, how: str) -> None:
    """Check all that differs; or fail, or end, on the last rank, which others wait for."""
    device = next(device for device in clsparse_py.devices() if device.platform.name == platform)
    context = cl.Context([device])
    comm = distributed.world(disagreements.TIME_LIMIT, cl.CommandQueue(context))
    if how == "differ":
        print(f"rank {comm.rank}: {disagreements.check(comm)} cases", flush=True)
        return
    begin = time.monotonic()
    try:
        # The last rank may be through while another is still in it: that one is told of the failure there.
        comm.barrier()
        if comm.rank == comm.size - 1:
            {"fail": lambda: {}["wrong"], "end": sys.exit}[how]()
        comm.sum(1.0)
    except distributed.RankError as error:
        print(f"{error}, after {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
