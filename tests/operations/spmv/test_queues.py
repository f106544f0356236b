"""Products on queues of every kind and from several threads, and what a second product does not do again."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected_product, host, random_values
from platforms import make_queue
from products import random_csr
from pyopencl import array as cl_array

from clsparse_py import csr_array, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._operations import spmv as _spmv
from clsparse_py._operations.spmv.choose import KernelChoice

# Rows that are split over several work-groups: their partial sums are what executions could take from each other.
SPLIT = KernelChoice("merge", 16, items=4)


@pytest.mark.parametrize("properties", ["in order", "out of order", "profiling"])
def test_queues_of_every_kind(queue: cl.CommandQueue, properties: str) -> None:
    kinds = cl.command_queue_properties
    bits = {"in order": 0, "out of order": kinds.OUT_OF_ORDER_EXEC_MODE_ENABLE, "profiling": kinds.PROFILING_ENABLE}[properties]
    other = make_queue(queue, bits)
    matrix = sp.csr_array(np.ones((3, 60_000), np.float32))
    A = csr_array(matrix, queue=other)
    plan = spmv_plan(A, kernel=SPLIT)
    for _ in range(3):
        vectors = [cl_array.to_device(other, np.full(60_000, i, np.float32)) for i in range(8)]
        results = [spmv(A, x, plan=plan) for x in vectors]
        assert all(y.queue is other for y in results)
        for i, y in enumerate(results):
            np.testing.assert_array_equal(y.get(), i * 60_000)


def test_two_queues_share_a_plan(queue: cl.CommandQueue) -> None:
    queues = queue, cl.CommandQueue(queue.context, queue.device)
    A = csr_array(sp.csr_array(np.ones((3, 60_000), np.float32)), queue=queue)
    plan = spmv_plan(A, kernel=SPLIT)
    for _ in range(3):
        vectors = [cl_array.to_device(queues[i % 2], np.full(60_000, i, np.float32)) for i in range(8)]
        results = [spmv(A, x, plan=plan) for x in vectors]
        assert [y.queue for y in results] == [x.queue for x in vectors]
        for i, y in enumerate(results):
            np.testing.assert_array_equal(y.get(), i * 60_000)


def test_a_product_waits_for_what_its_operands_wait_for(queue: cl.CommandQueue) -> None:
    other = cl.CommandQueue(queue.context, queue.device)
    n = 200_000
    identity = csr_array(sp.eye_array(n, format="csr", dtype=np.float32), queue=queue)
    x = cl_array.zeros(queue, n, np.float32)
    x += 1
    y = identity @ x  # on `queue`
    z = spmv(identity, y.with_queue(other))  # on `other`, after it
    np.testing.assert_array_equal(z.get(), 1)


def test_threads_build_and_multiply_at_once(queue: cl.CommandQueue) -> None:
    programs.clear()
    matrix = random_csr(np.random.default_rng(5).integers(0, 300, 300), 300, 19)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, 300, np.random.default_rng(1))
    wanted = (A @ x).tobytes()
    programs.clear()
    wrong: list[Any] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        try:
            own = csr_array(matrix, queue=cl.CommandQueue(queue.context, queue.device))
            wrong.extend(result for _ in range(20) if (result := (own @ x)).tobytes() != wanted)
            wrong.extend(result for _ in range(20) if (result := (A @ x)).tobytes() != wanted)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_second_call_renders_and_builds_nothing(square: tuple[sp.csr_array, csr_array], monkeypatch: pytest.MonkeyPatch) -> None:
    _, A = square
    x = cl_array.to_device(A.queue, np.ones(300, np.float32))
    first = (A @ x).get()

    def refuse(*_: Any) -> None:
        raise AssertionError("rendered again")

    monkeypatch.setattr(programs, "render", refuse)
    with programs.recording() as built:
        second = A @ x
    assert not built
    np.testing.assert_array_equal(second.get(), first)
    # Another matrix asks for kernels, but none is built anew.
    with programs.recording() as built:
        again = csr_array(A, copy=True) @ x
    assert built
    np.testing.assert_array_equal(again.get(), first)


def test_nothing_is_reported_by_warnings(queue: cl.CommandQueue) -> None:
    programs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csr_array(random_csr([1, 2, 3], 10, 20), queue=queue) @ np.ones(10, np.float32)


def test_a_product_with_the_same_operands_is_checked_once(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_csr(np.random.default_rng(5).integers(0, 40, 300), 300, 15)
    A = csr_array(matrix, queue=queue)
    x, other = (cl_array.to_device(queue, random_values(np.float32, 300, np.random.default_rng(i))) for i in range(2))
    out = cl_array.zeros(queue, 300, np.float32)
    checked = []
    dense_operand = _spmv.dense_operand
    monkeypatch.setattr(_spmv, "dense_operand", lambda *given, **named: checked.append(given) or dense_operand(*given, **named))

    def times(n: int, wanted: Any, **options: Any) -> None:
        checked.clear()
        for _ in range(3):
            assert spmv(A, x, out=out, **options) is out
        assert len(checked) == n
        check(out, wanted)

    times(1, expected_product(host(matrix), x.get()))
    times(0, expected_product(host(matrix), x.get()))
    times(1, expected_product(host(matrix), x.get(), alpha=2), alpha=2)
    times(1, expected_product(host(matrix), x.get(), alpha=3), alpha=3)
    times(3, expected_product(host(matrix), x.get(), alpha=3), alpha=np.array(3))  # may be another number next time
    # What was written to the operands counts, and other operands are checked.
    x.set(other.get())
    times(1, expected_product(host(matrix), other.get()))
    A.data = cl_array.to_device(queue, matrix.data * 2)
    times(1, expected_product(host(matrix * 2), other.get()))
    with pytest.raises(ValueError, match=r"^x: must have 300 rows"):
        spmv(A, x[:299], out=out)
    # So is a structure that was replaced, even by itself.
    plan = A.spmv_plan()
    times(0, expected_product(host(matrix * 2), other.get()), plan=plan)
    A.indices = A.indices
    A.indices.fill(300)
    with pytest.raises(ValueError, match=r"^indices: must lie in"):
        spmv(A, x, out=out, plan=plan)
