"""The N-th allocation or command finds no memory: the result is right, or the error says how much there is; nothing is harmed."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import amg, coo_array, csr_array, free_memory, graph, memory_info, primitives
from clsparse_py._memory import pool

pytestmark = pytest.mark.any_platform

N = 60
#: Whether one fails or all from the N-th on, and whether the pool has what an earlier call let go.
MODES = tuple(itertools.product((True, False), repeat=2)) if os.environ.get("CLSPARSE_FULL") else ((True, True), (False, False))
COMMANDS = ("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer", "enqueue_map_buffer")
#: Drivers' words for it; PyOpenCL has a class of errors for the first alone.
ERRORS = (
    ("MEM_OBJECT_ALLOCATION_FAILURE", cl.MemoryError),
    ("OUT_OF_RESOURCES", cl.RuntimeError),
    ("OUT_OF_HOST_MEMORY", cl.RuntimeError),
    ("MAP_FAILURE", cl.RuntimeError),
    ("INVALID_BUFFER_SIZE", cl.LogicError),
)


@pytest.fixture(scope="module", autouse=True)
def what_is_there() -> None:
    """Spare the garbage collector what earlier tests left, kernels above all: it runs after each planted failure."""
    gc.collect()
    gc.freeze()


class Operands:
    """Matrices and vectors of a queue, and what they hold."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        rng = np.random.default_rng(5)
        self.queue = queue
        self.host = sp.random_array((N, N), density=0.08, format="csr", dtype=np.float32, rng=rng)
        self.host.data[:] = rng.integers(1, 5, self.host.nnz)
        self.host.data[::7] = 0
        self.arrays = {
            "values": self.host.data, "columns": self.host.indices.astype(np.int32), "offsets": self.host.indptr.astype(np.int32),
            "x": rng.integers(0, 5, N).astype(np.float32), "X": rng.integers(0, 5, (N, 3)).astype(np.float32),
            "keys": rng.integers(0, 9, 500).astype(np.uint32), "numbers": np.arange(500, dtype=np.uint32),
            "segments": np.array([0, 40, 40, 300, 500], np.int32), "merged": np.array([0, 1, 4], np.int32),
            "rows": rng.integers(0, N, 200).astype(np.int32), "cols": rng.integers(0, N, 200).astype(np.int32),
            "ones": np.ones(200, np.float32), "dense": np.ones((N, N), np.float32),
        }  # fmt: skip
        self.on = {name: cl_array.to_device(queue, array) for name, array in self.arrays.items()}
        self.out = cl_array.to_device(queue, self.arrays["x"])
        self.A = self.matrix()
        assert self.A.has_canonical_format
        self.product, self.permutation = clsparse_py.spgemm_plan(self.A, self.A), clsparse_py.transpose_plan(self.A)

    def matrix(self, **options: Any) -> csr_array:
        return csr_array(tuple(self.on[name] for name in ("values", "columns", "offsets")), shape=(N, N), **options)


def without_zeros(o: Operands) -> csr_array:
    A = o.matrix(copy=True)
    A.eliminate_zeros()
    return A


FUNCTIONS: dict[str, Callable[[Operands], Any]] = {
    "csr_array": lambda o: o.matrix(),
    "csr_array copy": lambda o: o.matrix(copy=True),
    "csr_array astype": lambda o: o.A.astype(np.complex64),
    "csr_array host": lambda o: csr_array(o.host, queue=o.queue),
    "csr_array coordinates": lambda o: csr_array((o.on["ones"], (o.on["rows"], o.on["cols"])), shape=(N, N)),
    "eliminate_zeros": without_zeros,
    "spmv": lambda o: o.A @ o.on["x"],
    "spmv new plan": lambda o: o.matrix() @ o.on["x"],
    "spmv host": lambda o: o.A @ o.arrays["x"],
    "spmv out": lambda o: clsparse_py.spmv(o.A, o.on["x"], alpha=2, beta=0, out=o.out),
    "spmv binned": lambda o: clsparse_py.spmv(
        o.A, o.on["x"], plan=clsparse_py.spmv_plan(o.A, scheme="fine", kernel="subvector4")
    ),
    "spmm": lambda o: o.A @ o.on["X"],
    "spmv strided": lambda o: o.A @ o.on["X"][:, 1],
    "rmatmul": lambda o: o.arrays["x"] @ o.matrix(),
    "spgemm": lambda o: o.A @ o.A,
    "spgemm plan": lambda o: o.product(o.on["values"]),
    "spgemm exact": lambda o: clsparse_py.spgemm_estimate(o.A, o.A, exact=True).nnz,
    "transpose": lambda o: clsparse_py.transpose(o.A),
    "transpose binned": lambda o: clsparse_py.transpose(o.A, method="binned"),
    "transpose atomics": lambda o: clsparse_py.transpose(o.A, method="atomics"),
    "transpose plan": lambda o: o.permutation(o.on["values"]),
    "T": lambda o: o.matrix().T.tocsr(),
    "tocoo": lambda o: o.matrix().tocoo(),
    "coo to csr": lambda o: o.matrix().tocoo().tocsr(),
    "reshape": lambda o: o.matrix().reshape(-1),
    "A + B": lambda o: o.A + o.A,
    "A * 2": lambda o: o.A * np.float32(2),
    "A != B": lambda o: o.A != o.A,
    "A > 1": lambda o: o.A > 1,
    "A == dense": lambda o: o.A == o.on["dense"],
    "sum": lambda o: o.A.sum(),
    "sum of columns": lambda o: o.A.sum(axis=0),
    "diagonal": lambda o: o.A.diagonal(),
    "A + dense": lambda o: o.A + o.on["dense"],
    "radix_sort": lambda o: primitives.radix_sort(o.on["keys"], o.on["numbers"]),
    "scan": lambda o: primitives.exclusive_scan(o.on["numbers"]),
    "segmented_sum": lambda o: primitives.segmented_sum(o.on["segments"], o.on["numbers"]),
    "segmented_scan": lambda o: primitives.segmented_scan(o.on["segments"], o.on["numbers"]),
    "segmented_sort": lambda o: primitives.segmented_sort(o.on["segments"], o.on["keys"], o.on["numbers"]),
    "segmented_merge": lambda o: primitives.segmented_merge(o.on["merged"], o.on["segments"], o.on["numbers"], o.on["keys"]),
    "reduce_by_key": lambda o: primitives.reduce_by_key(o.on["keys"], o.on["numbers"]),
}


def host_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """Return a result's values."""
    if isinstance(result, csr_array):
        return [array.get() for array in (result.data, result.indices, result.indptr)]
    if isinstance(result, coo_array):
        return [array.get() for array in (result.data, *result.coords)]
    if isinstance(result, tuple):
        return [value for part in result for value in host_of(part)]
    return [result.get() if isinstance(result, cl_array.Array) else np.asarray(result)]


def same(result: Any, wanted: list[np.ndarray[Any, Any]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(host_of(result), wanted, strict=True))


class Fails:
    """Counts calls, and fails the N-th, or all from it on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
        self.nth, self.once, self.seen = 0, True, 0
        self.errors = itertools.cycle(ERRORS)
        places = [(pool, "_create")] if what == "allocation" else [(cl, name) for name in COMMANDS]
        for owner, name in places:
            monkeypatch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            self.seen += 1
            if self.nth and (self.seen == self.nth or (self.seen > self.nth and not self.once)):
                code, kind = next(self.errors)
                raise kind(cl._cl._ErrorRecord("a command", getattr(cl.status_code, code), ""))
            return call(*given, **named)

        return counting


@pytest.mark.parametrize("what", ["allocation", "command"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_is_missing(queue: cl.CommandQueue, name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, operands = FUNCTIONS[name], Operands(cl.CommandQueue(queue.context, queue.device))
    wanted = host_of(function(operands))
    gc.collect()
    free_memory(operands.queue)
    blocks = memory_info(operands.queue).blocks
    fails = Fails(monkeypatch, what)
    for once, warm in MODES:
        for nth in itertools.count(1):
            if warm:
                function(operands)
            else:
                free_memory(operands.queue)
            fails.nth, fails.once, fails.seen = nth, once, 0
            try:
                result, failed = function(operands), ""
            except MemoryError as error:
                result, failed = None, str(error)
            reached, fails.nth = fails.seen >= nth, 0
            if failed:
                assert not once, failed
                assert re.search(r"[\d,]+ (bytes|in all)", failed), failed
                assert all(np.array_equal(array.get(), operands.arrays[of]) for of, array in operands.on.items())
                assert same(function(operands), wanted)
            else:
                assert same(result, wanted)
            del result
            if not reached:
                break
            gc.collect()
            free_memory(operands.queue)
            assert memory_info(operands.queue).blocks == blocks


def poisson(n: int) -> sp.csr_array:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line), dtype=np.float32)


FILLING: dict[str, Callable[[csr_array, csr_array], Any]] = {
    "spgemm": lambda A, _: A @ A,
    "spgemm hash": lambda A, _: clsparse_py.spgemm(A, A, method="hash"),
    "spgemm esc": lambda A, _: clsparse_py.spgemm(A, A, method="esc"),
    "spgemm plan": lambda A, _: clsparse_py.spgemm_plan(A, A)(A.data),
    "spgemm masked": lambda A, _: clsparse_py.spgemm(A, A, mask=A),
    "transpose atomics": lambda A, _: clsparse_py.transpose(A, method="atomics"),
    "amg": lambda _, G: amg.smoothed_aggregation_solver(G),
    "betweenness centrality": lambda _, G: graph.betweenness_centrality(abs(G), sources=range(8)),
}


@pytest.mark.parametrize("name", FILLING)
def test_a_fill_that_fails_leaves_no_memory_behind(queue: cl.CommandQueue, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a driver says of it: an error that is no lack of memory goes through to the caller."""
    own = cl.CommandQueue(queue.context, queue.device)
    rng = np.random.default_rng(5)
    A = csr_array(sp.random_array((700, 700), density=0.02, format="csr", dtype=np.float32, rng=rng), queue=own)
    G, fill, seen, nth = csr_array(poisson(12), queue=own), cl.enqueue_fill_buffer, 0, 0

    def filling(*given: Any, **named: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == nth:
            raise cl.LogicError(cl._cl._ErrorRecord("a fill", cl.status_code.INVALID_VALUE, ""))
        return fill(*given, **named)

    def left() -> int:
        gc.collect()
        free_memory(own)
        return memory_info(own).blocks

    monkeypatch.setattr(cl, "enqueue_fill_buffer", filling)
    FILLING[name](A, G)
    blocks = left()
    for nth in itertools.count(1):
        seen = 0
        with contextlib.suppress(cl.LogicError):
            FILLING[name](A, G)
        assert left() == blocks
        if seen < nth:
            break
