"""Threads that do all operations at once, on queues of their own and shared ones. `test_threads.py` runs it in another process.

Prints "right N" at the end; a wrong result, or a thread that stands still, ends the process.
"""

from __future__ import annotations

import faulthandler
import gc
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse as sp
from pyopencl import array as cl_array

from clsparse_py import (
    csr_array,
    free_memory,
    memory_info,
    primitives,
    spgemm,
    spgemm_plan,
    spmm,
    spmv,
    transpose,
    transpose_plan,
)

N = 120
THREADS = 8


class Case:
    """A matrix on a queue, its plans, and what must come out of each operation."""

    def __init__(self, queue: cl.CommandQueue, host: sp.csr_array) -> None:
        self.queue, self.host = queue, host
        self.A = csr_array(host, queue=queue)
        self.squared, self.transposed = spgemm_plan(self.A, self.A), transpose_plan(self.A)
        self.square, self.mirrored = host @ host, host.T.tocsr()
        self.operations: tuple[Callable[[cl.CommandQueue, np.random.Generator], bool], ...] = (
            self.times_vector, self.times_host, self.into_out, self.times_columns, self.times_itself, self.by_plan,
            self.transpose, self.new_values, self.read, self.canonical, self.primitive, self.views,
        )  # fmt: skip

    def vector(self, queue: cl.CommandQueue, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], cl_array.Array]:
        x = rng.integers(0, 5, N).astype(np.float32)
        return x, cl_array.to_device(queue, x)

    def times_vector(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        x, on_device = self.vector(queue, rng)
        return bool(np.array_equal((self.A @ (self.A @ on_device)).get(), self.host @ (self.host @ x)))

    def times_host(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        x, _ = self.vector(queue, rng)
        return bool(np.array_equal(self.A @ x, self.host @ x))

    def into_out(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        x, on_device = self.vector(queue, rng)
        y, z = (cl_array.to_device(queue, np.zeros(N, np.float32)) for _ in range(2))
        for _ in range(3):
            spmv(self.A, on_device, out=y)
            spmv(self.A, y, out=z)
            spmv(self.A, z, out=y)
        return bool(np.array_equal(y.get(), self.host @ (self.host @ (self.host @ x))))

    def times_columns(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        X = rng.integers(0, 5, (N, 3)).astype(np.float32)
        return bool(np.array_equal(spmm(self.A, cl_array.to_device(queue, X)).get(), self.host @ X))

    def same(self, result: csr_array, wanted: sp.csr_array) -> bool:
        return bool(np.array_equal(result.get().toarray(), wanted.toarray()))

    def times_itself(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:  # noqa: ARG002
        return self.same(spgemm(self.A, self.A), self.square)

    def by_plan(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:  # noqa: ARG002
        factor = np.float32(rng.integers(1, 4))
        return self.same(self.squared(self.host.data * factor), self.square * factor)

    def transpose(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:  # noqa: ARG002
        return self.same(transpose(self.A), self.mirrored)

    def new_values(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        factor = np.float32(rng.integers(1, 4))
        data = cl_array.to_device(queue, self.host.data * factor)
        return self.same(self.transposed(data), self.mirrored * factor)

    def read(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:  # noqa: ARG002
        return self.same(self.A, self.host) and self.same(self.A.copy(), self.host)

    def canonical(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        row, col = rng.integers(0, N, (2, 300))
        values = rng.integers(1, 5, 300).astype(np.float32)
        made = csr_array((values, (row, col)), shape=(N, N), queue=queue)
        return self.same(made, sp.csr_array((values, (row, col)), shape=(N, N)))

    def primitive(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        keys = rng.integers(0, 50, 2000).astype(np.uint32)
        values = np.arange(2000, dtype=np.uint32)
        result = primitives.radix_sort(*(cl_array.to_device(queue, array) for array in (keys, values)))
        order = np.argsort(keys, kind="stable")
        return all(np.array_equal(array.get(), wanted[order]) for array, wanted in zip(result, (keys, values), strict=True))

    def views(self, queue: cl.CommandQueue, rng: np.random.Generator) -> bool:
        x, on_device = self.vector(queue, rng)
        y = self.A @ on_device.with_queue(queue)
        part = y[10:60]
        del y, on_device
        if rng.integers(0, 40) == 0:
            free_memory()
        return bool(np.array_equal(part.get(), (self.host @ x)[10:60]))


def run(device: cl.Device, mode: str, operations: int) -> list[str]:
    """Run a number of operations in threads, and return the failures."""
    context = cl.Context([device])
    properties = {"ordered": 0, "unordered": cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE}[mode]
    rng = np.random.default_rng(3)
    host = sp.random_array((N, N), density=0.04, format="csr", dtype=np.float32, rng=rng)
    host.data[:] = rng.integers(1, 4, host.nnz)
    host.sort_indices()
    shared = Case(cl.CommandQueue(context, device, properties), host)
    assert all(operation(shared.queue, rng) for operation in shared.operations)  # builds
    wrong: list[str] = []
    start = threading.Barrier(THREADS)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            own = Case(cl.CommandQueue(context, device, properties), host)
            start.wait()
            for i in range(operations // THREADS):
                case, queue = ((own, own.queue), (shared, shared.queue), (shared, own.queue))[rng.integers(0, 3)]
                operation = case.operations[(i + seed) % len(case.operations)]
                if not operation(queue, rng):
                    wrong.append(f"{operation.__name__} on {'its own' if case is own else 'a shared'} matrix")
        except BaseException:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def main() -> None:
    """Run what the command line names: platform, mode, how many operations, and after how many seconds to give up."""
    platform, mode, operations, seconds = sys.argv[1:]
    faulthandler.dump_traceback_later(float(seconds), exit=True)
    device = next(candidate for candidate in cl.get_platforms() if platform in candidate.name).get_devices()[0]
    if wrong := run(device, mode, int(operations)):
        raise SystemExit("\n".join(wrong[:5]))
    gc.collect()
    if left := memory_info().blocks:
        raise SystemExit(f"{left} blocks are used by no one")
    print(f"right {operations}")


if __name__ == "__main__":
    main()
