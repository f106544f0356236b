"""Products that are bound to their operands."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from platforms import make_queue
from products import random_csr
from pyopencl import array as cl_array

from clsparse_py import csr_array, memory_info, min_plus, spmv, spmv_plan
from clsparse_py._memory import memory
from clsparse_py._operations.spmv.choose import KernelChoice

pytestmark = pytest.mark.any_platform

SHAPE = 300, 200
#: Rows that are split over several work-groups: two launches.
SPLIT = KernelChoice("merge", 16, items=4)


@pytest.fixture
def host() -> sp.csr_array:
    rng = np.random.default_rng(0)
    result = random_csr(rng.integers(0, 20, SHAPE[0]), SHAPE[1], 0)
    result.data = rng.integers(1, 5, result.nnz).astype(np.float32)
    return result


def vectors(queue: cl.CommandQueue) -> tuple[cl_array.Array, cl_array.Array]:
    x = np.random.default_rng(1).integers(1, 5, SHAPE[1]).astype(np.float32)
    return cl_array.to_device(queue, x), cl_array.zeros(queue, SHAPE[0], np.float32)


def pool_array(queue: cl.CommandQueue, values: np.ndarray[Any, Any]) -> cl_array.Array:
    """Return an array in memory of the pool, as results are."""
    array = memory.allocate(queue, "a test", values.size, values.dtype)
    array.set(values)
    return array


@pytest.mark.parametrize("properties", ["in order", "out of order"])
@pytest.mark.parametrize("kernel", [None, SPLIT], ids=["one launch", "two launches"])
def test_calls_compute_anew(queue: cl.CommandQueue, host: sp.csr_array, properties: str, kernel: Any) -> None:
    out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    other = make_queue(queue, out_of_order if properties == "out of order" else 0)
    A, (x, y) = csr_array(host, queue=other), vectors(other)
    run = spmv_plan(A, kernel=kernel).bind(A, x, y)
    assert run.out is y
    for factor in (1, 2, 3):
        x *= 2  # by PyOpenCL, in place or in a new buffer
        if x.base_data is not run._operands[1].base_data:
            pytest.fail("x has other memory")
        A.data.set(host.data * factor)
        for _ in range(3):
            assert run() is y
        np.testing.assert_array_equal(y.get(), factor * (host @ x.get()))


def test_what_else_is_written_in_between(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    run, other = spmv_plan(A).bind(A, x, y), cl.CommandQueue(queue.context, queue.device)
    wanted = host @ x.get()
    for _ in range(3):
        run()
        y.fill(7)
        run()
        np.testing.assert_array_equal(y.get(), wanted)
        # Another queue reads what is written, and writes what is read.
        z = spmv(csr_array(sp.eye_array(SHAPE[0], format="csr", dtype=np.float32), queue=other), y.with_queue(other))
        x.with_queue(other).fill(1)
        run()
        np.testing.assert_array_equal(z.get(), wanted)
        wanted = host @ x.get()
        np.testing.assert_array_equal(y.get(), wanted)


def test_arrays_are_those_of_the_binding(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    run, wanted = spmv_plan(A).bind(A, x, y), host @ x.get()
    A.data = cl_array.to_device(queue, 2 * host.data)
    np.testing.assert_array_equal(run().get(), wanted)
    del A, x, y
    gc.collect()
    np.testing.assert_array_equal(run().get(), wanted)
    np.testing.assert_array_equal(run().get(), wanted)


def test_semirings(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    run = spmv_plan(A).bind(A, x, y, semiring=min_plus)
    np.testing.assert_array_equal(run().get(), spmv(A, x, semiring=min_plus).get())


def test_bad_input(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    plan = spmv_plan(A)
    wide = cl_array.zeros(queue, 2 * SHAPE[1], np.float32)
    for arguments, error, message in (
        ((A, x.get(), y), TypeError, r"^x: must be a pyopencl.array.Array, is ndarray"),
        ((A, x, None), TypeError, r"^out: must be a pyopencl.array.Array, is NoneType"),
        ((A, y, y), ValueError, r"^x: must have 200 rows"),
        ((A, x, x), ValueError, r"^out: must have shape \(300,\)"),
        ((A, x, cl_array.zeros(queue, SHAPE[0], np.int32)), TypeError, r"^out: must have the result's dtype float32"),
        ((A, wide[::2], y), ValueError, r"^x: must be contiguous"),
        ((csr_array(host, queue=queue), x, y), ValueError, r"^plan: was made for another structure"),
    ):
        with pytest.raises(error, match=message):
            plan.bind(*arguments)


def test_arrays_that_are_others_by_now(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    run = spmv_plan(A).bind(A, x, y)
    run()
    held, x.base_data = x.base_data, cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, x.nbytes)
    with pytest.raises(ValueError, match=r"^x: has other memory than when the product was bound to it"):
        run()
    x.base_data = held
    y.shape, y.size = (SHAPE[0] - 1,), SHAPE[0] - 1
    with pytest.raises(ValueError, match=r"^out: had shape \(300,\) when the product was bound to it, has \(299,\)"):
        run()


def test_known_arrays_that_were_resized(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    for _ in range(3):
        spmv(A, x, out=y)
    y.shape, y.size = (SHAPE[0] - 1,), SHAPE[0] - 1
    with pytest.raises(ValueError, match=r"^out: must have shape \(300,\), has \(299,\)"):
        spmv(A, x, out=y)
    for _ in range(3):
        A @ x
    x.shape, x.size = (SHAPE[1] - 1,), SHAPE[1] - 1
    with pytest.raises(ValueError, match=r"^x: must have 200 rows"):
        A @ x


@pytest.mark.parametrize("of_the_pool", [True, False])
def test_memory_that_was_released(queue: cl.CommandQueue, host: sp.csr_array, of_the_pool: bool) -> None:
    wanted = host @ np.ones(SHAPE[1], np.float32)
    for name in ("x", "out", "A.data"):
        A = csr_array(host, queue=queue)
        arrays = {"x": np.ones(SHAPE[1], np.float32), "out": np.zeros(SHAPE[0], np.float32), "A.data": host.data}
        if of_the_pool:
            of = {name: pool_array(queue, values) for name, values in arrays.items()}
        else:
            of = {name: cl_array.to_device(queue, values) for name, values in arrays.items()}
        A.data, x, y = of["A.data"], of["x"], of["out"]
        run = spmv_plan(A).bind(A, x, y)
        for _ in range(3):
            run()
            spmv(A, x, out=y)
            A @ x
        np.testing.assert_array_equal(y.get(), wanted)
        buffer: Any = of[name].base_data
        buffer.release()
        if of_the_pool:
            # It is another array's by now.
            other = pool_array(queue, arrays[name])
            with pytest.raises(ValueError, match=rf"^{name}: its memory was released"):
                run()
            with pytest.raises(ValueError, match=rf"^{name.removeprefix('A.')}: its memory was released"):
                spmv(A, x, out=y)
            if name != "out":
                with pytest.raises(ValueError, match=rf"^{name.removeprefix('A.')}: its memory was released"):
                    A @ x
            del other
        else:
            run()  # which keeps it


def test_arrays_on_another_queue(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    run, other, wanted = spmv_plan(A).bind(A, x, y), cl.CommandQueue(queue.context, queue.device), host @ x.get()
    for of_x, of_y in ((other, queue), (other, other), (queue, other), (queue, queue)):
        for _ in range(3):
            run()
            spmv(A, x, out=y)
            z = A @ x
        np.testing.assert_array_equal(y.get(), wanted)
        np.testing.assert_array_equal(z.get(), wanted)
        x.queue, y.queue = of_x, of_y
        x.fill(2)
        wanted = host @ np.full(SHAPE[1], 2, np.float32)
    context = cl.Context([queue.device])
    x.queue = cl.CommandQueue(context)
    with pytest.raises(ValueError, match=r"^x: lives in another context than A"):
        A @ x


def test_new_memory_of_known_arrays(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    # Products with the same x, and new results or the same: each sees the memory that x has then.
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    for factor in (1, 2):
        x.base_data = cl_array.to_device(queue, x.get() * factor).base_data
        wanted = host @ x.get()
        for _ in range(3):
            np.testing.assert_array_equal((A @ x).get(), wanted)
            np.testing.assert_array_equal(spmv(A, x, out=y).get(), wanted)


def test_new_memory_in_the_place_of_other_memory(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    # Python soon gives the place of a buffer that is let go to another one, which is not to be taken for it.
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    for factor in range(1, 5):
        for _ in range(3):
            spmv(A, x, out=y)
        place, values = id(x.base_data), np.full(SHAPE[1], factor, np.float32)
        memory: Any = x.base_data
        kept: Any = cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)  # else the driver may do likewise
        del memory
        for _ in range(100):
            x.base_data = cl_array.to_device(queue, values).base_data
            if id(x.base_data) == place:
                break
        y.finish()
        np.testing.assert_array_equal(spmv(A, x, out=y).get(), host @ values)
        np.testing.assert_array_equal((A @ x).get(), host @ values)
        kept.release()


def test_memory_goes_with_its_array(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A, (x, _) = csr_array(host, queue=queue), vectors(queue)
    x, y = x + 0, csr_array(host, queue=queue) @ x
    x = spmv(csr_array(sp.eye_array(SHAPE[1], format="csr", dtype=np.float32), queue=queue), x)
    spmv(A, x, out=y)
    spmv(A, x, out=y)
    before = memory_info(queue).blocks
    del x, y
    assert memory_info(queue).blocks == before - 2


@pytest.mark.parametrize("interrupted", [1, 2])
def test_products_after_an_interrupted_one(
    queue: cl.CommandQueue, host: sp.csr_array, monkeypatch: pytest.MonkeyPatch, interrupted: int
) -> None:
    # Some of its kernels have the arguments of the product that was not made.
    A, (x, y) = csr_array(host, queue=queue), vectors(queue)
    plan, wanted = spmv_plan(A, kernel=SPLIT), host @ x.get()
    for _ in range(3):
        spmv(A, x, out=y, plan=plan)
    enqueue, calls = cl.enqueue_nd_range_kernel, 0

    def failing(*given: Any) -> cl.Event:
        nonlocal calls
        calls += 1
        if calls == interrupted:
            raise KeyboardInterrupt
        return enqueue(*given)

    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_nd_range_kernel", failing)
        with pytest.raises(KeyboardInterrupt):
            spmv(A, 2 * x, plan=plan)
    for _ in range(2):
        np.testing.assert_array_equal(spmv(A, x, out=y, plan=plan).get(), wanted)
        np.testing.assert_array_equal(spmv(A, x, plan=plan).get(), wanted)
