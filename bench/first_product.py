"""How long a new process waits for its first product: run as a module, it prints the seconds since context creation.

Run twice, the second process shows whether the first one left all it built on disk.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pyopencl as cl

import clsparse_py as cs
from bench import gallery, machine, opencl

MATRIX = "cantilever_26"


def in_new_processes(device: str, processes: int = 2) -> list[float]:
    """Return the seconds to the first product of one new process after the other.

    Raises
    ------
    subprocess.CalledProcessError
        If one fails; what it wrote to its standard error goes to ours.
    """
    command = [sys.executable, "-m", "bench.first_product", device]
    return [
        float(subprocess.run(command, cwd=machine.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])
        for _ in range(processes)
    ]


def main(device: str) -> None:
    """Print the seconds from context creation to the first product."""
    matrix = gallery.load(MATRIX)
    x = np.ones(matrix.shape[1])
    chosen = opencl.choose(device)
    if "cl_khr_fp64" not in chosen.extensions.split():
        matrix, x = matrix.astype(np.float32), x.astype(np.float32)
    start = time.perf_counter()
    # Named, since Intel's runtime lets a context go that only its queues refer to.
    context = cl.Context([chosen])
    y = cs.csr_array(matrix, queue=cl.CommandQueue(context)) @ x
    seconds = time.perf_counter() - start
    if not np.allclose(y, matrix @ x, rtol=1e-4):
        raise SystemExit(f"first product of {MATRIX} is wrong")
    print(seconds)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
