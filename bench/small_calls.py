"""Whole calls on small matrices, which take as long as the host does: ``python -m bench.small_calls`` prints microseconds.

Two tables. The driver's part: E, an empty launch through PyOpenCL, and what else each call has. Then calls on matrices of the
suite `small` (10 to 100 rows) in double precision, three numbers for each matrix: the call with a wait for its result; the call
without the wait, on an idle device; CuPy's call with its own wait, in the same process, after all of ours: OpenCL's launches take
longer once the process has a context of CUDA's, which the last line shows. Medians.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cla

import clsparse_py as sp
from bench import gallery
from clsparse_py._build import programs
from clsparse_py._device.device import default_queue

#: Calls that are timed in a row.
CALLS = 20
#: Rows of timed calls; the result is the median of their medians.
ROWS = 15
#: Rows of the matrices.
_SIZES = tuple(range(10, 101, 10))
_EMPTY = "kernel void empty(global int *out) { }"

Call = Callable[[], object]


def microseconds(call: Call, wait: Callable[[], object]) -> float:
    """Return the time of a call, which ``wait`` follows: the median over rows of their medians."""
    for _ in range(CALLS):
        call()
    wait()
    rows = []
    for _ in range(ROWS):
        taken = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            call()
            wait()
            taken.append(time.perf_counter() - begin)
        rows.append(statistics.median(taken))
    return 1e6 * statistics.median(rows)


def time_enqueue(call: Call, wait: Callable[[], object]) -> float:
    """Return the host's time of a call on an idle device, without the wait."""
    taken = []
    for _ in range(CALLS * ROWS):
        wait()
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    wait()
    return 1e6 * statistics.median(taken)


def of_driver(queue: cl.CommandQueue) -> dict[str, float]:
    """Return what single commands take."""
    program = programs.compile_source(queue.context, queue.device, _EMPTY)
    kernel = cl.Kernel(program, "empty")
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 1024)
    kernel.set_args(buffer)
    word = np.empty(1, np.int32)

    def launch() -> None:
        cl.enqueue_nd_range_kernel(queue, kernel, (32,), (32,))

    def launch_and_flush() -> None:
        launch()
        queue.flush()

    def read() -> None:
        cl.enqueue_copy(queue, word, buffer, is_blocking=True)

    def launch_and_read() -> None:
        launch()
        read()

    def launches(n: int) -> None:
        for _ in range(n):
            launch()

    def nothing() -> None:
        pass

    wait = queue.finish
    with_event, without_event = _from_c(queue, kernel, event=True), _from_c(queue, kernel, event=False)
    return {
        "launch from C, no event": time_enqueue(without_event, wait),
        "launch from C, with an event": time_enqueue(with_event, wait),
        "launch (E)": time_enqueue(launch, wait),
        "launch, of 10 in a row": time_enqueue(functools.partial(launches, 10), wait) / 10,
        "launch, set_args before": time_enqueue(lambda: (kernel.set_args(buffer), launch()), wait),
        "launch and flush": time_enqueue(launch_and_flush, wait),
        "launch and finish": microseconds(launch, wait),
        "read of 4 bytes": microseconds(read, nothing),
        "launch and read of 4 bytes": microseconds(launch_and_read, nothing),
        "finish of an idle queue": microseconds(nothing, wait),
        "buffer of 4 KiB, new": time_enqueue(lambda: cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4096), wait),
    }


def _from_c(queue: cl.CommandQueue, kernel: cl.Kernel, *, event: bool) -> Call:
    """Return a launch past PyOpenCL. What calling C takes Python itself, half a microsecond or so, is in it."""
    opencl = ctypes.CDLL("libOpenCL.so.1" if sys.platform != "win32" else "OpenCL")
    sizes, made = (ctypes.c_size_t * 1)(32), ctypes.c_void_p()
    to = ctypes.byref(made) if event else None
    enqueue, release = opencl.clEnqueueNDRangeKernel, opencl.clReleaseEvent
    enqueue.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_uint] + [ctypes.c_void_p] * 3 + [ctypes.c_uint] + [ctypes.c_void_p] * 2
    release.argtypes = [ctypes.c_void_p]
    handles = queue.int_ptr, kernel.int_ptr

    def launch() -> None:
        enqueue(*handles, 1, None, sizes, sizes, 0, None, to)
        if event:
            release(made)

    return launch


def ours(queue: cl.CommandQueue, host: scipy.sparse.csr_array) -> dict[str, Call]:
    """Return our calls on a matrix."""
    A = sp.csr_array(host, queue=queue)
    B = sp.csr_array(scipy.sparse.csr_array(host[::-1]), queue=queue)
    x = cla.to_device(queue, np.arange(host.shape[1], dtype=np.float64))
    y = cla.empty_like(x)
    rows, plan = _rows(host.shape[0]), sp.spmv_plan(A)
    return {
        "A @ A": lambda: A @ A,
        "A + B": lambda: A + B,
        "A.multiply(B)": lambda: A.multiply(B),
        "A[rows]": lambda: A[rows],
        "A.sum(axis=0)": lambda: A.sum(axis=0),
        "A.sum(axis=1)": lambda: A.sum(axis=1),
        "A.T.tocsr()": lambda: A.T.tocsr(),
        "transpose(A)": lambda: sp.transpose(A),
        "A @ x": lambda: A @ x,
        "spmv(A, x, out=y)": lambda: sp.spmv(A, x, out=y),
        "bind(A, x, y)()": plan.bind(A, x, y),
        "its launches alone": plan.bound(queue, A, x, y),
    }


def cupys(host: scipy.sparse.csr_array) -> tuple[dict[str, Call], Callable[[], object]]:
    """Return CuPy's calls on the same matrix, and its wait; no calls if it is not there."""
    try:
        import cupy
        from cupyx.scipy.sparse import csr_matrix
    except ImportError:
        return {}, lambda: None
    A, B = csr_matrix(scipy.sparse.csr_matrix(host)), csr_matrix(scipy.sparse.csr_matrix(host[::-1]))
    x = cupy.arange(host.shape[1], dtype=np.float64)
    rows = cupy.asarray(_rows(host.shape[0]))
    results: dict[str, Call] = {
        "A @ A": lambda: A @ A,
        "A + B": lambda: A + B,
        "A.multiply(B)": lambda: A.multiply(B),
        "A[rows]": lambda: A[rows],
        "A.sum(axis=0)": lambda: A.sum(axis=0).get(),
        "A.sum(axis=1)": lambda: A.sum(axis=1).get(),
        "A.T.tocsr()": lambda: A.T.tocsr(),
        "transpose(A)": lambda: A.T.tocsr(),
        "A @ x": lambda: A @ x,
    }
    return results, cupy.cuda.get_current_stream().synchronize


def _rows(n: int) -> np.ndarray[Any, Any]:
    return np.sort(np.random.default_rng(0).choice(n, n // 2, replace=False))


def of_calls(queue: cl.CommandQueue, sizes: Sequence[int]) -> dict[str, dict[int, tuple[float, float, float]]]:
    """Return microseconds of each call by the matrix's rows: whole, enqueued, and CuPy's."""
    hosts = {n: scipy.sparse.csr_array(gallery.load(f"small_{n}")) for n in sizes}
    taken: dict[str, dict[int, list[float]]] = {}
    for n, host in hosts.items():
        for name, call in ours(queue, host).items():
            taken.setdefault(name, {})[n] = [microseconds(call, queue.finish), time_enqueue(call, queue.finish), float("nan")]
    for n, host in hosts.items():
        theirs, wait = cupys(host)
        for name, call in theirs.items():
            taken[name][n][2] = microseconds(call, wait)
    return {name: {n: (whole, part, other) for n, (whole, part, other) in by.items()} for name, by in taken.items()}


def main(argv: Sequence[str]) -> int:
    """Print both tables, and return the command's exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.small_calls", description=__doc__)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=_SIZES)
    parsed = parser.parse_args(argv)
    queue = default_queue()
    print(f"{queue.device.name.strip()}, driver {queue.device.driver_version}")
    for name, taken in of_driver(queue).items():
        print(f"{name:28} {taken:7.1f}")
    print(f"{'':20} " + " ".join(f"{n:>17}" for n in parsed.sizes))
    for name, by_size in of_calls(queue, parsed.sizes).items():
        print(f"{name:20} " + " ".join(f"{whole:5.0f} {part:5.0f} {other:5.0f}" for whole, part, other in by_size.values()))
    print(f"{'launch (E), in the end':28} {of_driver(queue)['launch (E)']:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
