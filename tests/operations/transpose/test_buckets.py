"""SpTRANS by buckets of columns: every step against SciPy bit by bit, the shape that is chosen, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import random_values
from pyopencl import array as cl_array

from clsparse_py import csr_array, transpose
from clsparse_py._device.device import RESERVED, Portability, describe
from clsparse_py._ground.errors import BuildError
from clsparse_py._operations.transpose import methods
from clsparse_py._operations.transpose.bucket_kernels import ALONE, RUN
from clsparse_py._operations.transpose.buckets import Shape, enqueue_buckets, kernels_of, shape_of
from clsparse_py._operations.transpose.kernels import Transposition
from clsparse_py._run.launch import Chain

#: 32 work-items, 128 entries to a tile and to a part of a bucket.
STEPS = {
    "two steps": Shape(32, 4, 32, 4, 5),
    "values apart": Shape(32, 4, 32, 4, 6),
    "counts added up": Shape(32, 4, 32, 4, 5, small=True),
    "one step": Shape(32, 4, 32, 4, 9),
}


def uneven(n_rows: int = 400, n_cols: int = 300, n: int = 6000) -> sp.csr_array:
    """Return a matrix of unsorted rows with duplicates, empty ones among them, whose first columns have most entries."""
    rng = np.random.default_rng(2)
    lengths = rng.multinomial(n, rng.dirichlet(np.full(n_rows, 0.2)))
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = (n_cols * rng.random(n) ** 4).astype(np.int32)
    return sp.csr_array((np.arange(n, dtype=np.float64), indices, indptr), shape=(n_rows, n_cols))


UNEVEN = uneven()


def transposed(
    queue: cl.CommandQueue, host: sp.csr_array, shape: Shape, dtype: Any, index: Any, *, positions: bool
) -> tuple[np.ndarray, ...]:
    """Return the transposed of a matrix by buckets of a shape: row pointers, columns, and values or positions."""
    parts = random_values(dtype, host.nnz, np.random.default_rng(1)), host.indices.astype(index), host.indptr.astype(index)
    data, indices, indptr = (cl_array.to_device(queue, part) for part in parts)
    made = [cl_array.empty(queue, n, kind) for n, kind in ((host.shape[1] + 1, index), (host.nnz, index))]
    moved = cl_array.empty(queue, host.nnz, index if positions else dtype)
    chain = Chain(queue, data, indices, indptr)
    task = Transposition(indptr, indices, None if positions else data, *made, moved, host.shape, host.nnz)
    enqueue_buckets(chain, task, shape)
    chain.finish(moved, *made)
    result = moved.get()
    return made[0].get(), made[1].get(), parts[0][result] if positions else result, parts[0]


def check(result: tuple[np.ndarray, ...], host: sp.csr_array) -> None:
    """Compare with SciPy's transposed."""
    indptr, indices, moved, values = result
    wanted = sp.csr_array((np.arange(host.nnz), host.indices, host.indptr), shape=host.shape).T.tocsr()
    np.testing.assert_array_equal(indptr, wanted.indptr)
    np.testing.assert_array_equal(indices, wanted.indices)
    np.testing.assert_array_equal(moved, values[wanted.data])


@pytest.mark.parametrize("name", STEPS)
def test_steps(queue: cl.CommandQueue, name: str) -> None:
    at = list(STEPS).index(name)
    dtype, index = ("float32", "complex64", "int16", "uint8")[at], (np.int32, np.int64)[at % 2]
    parts = np.bincount(UNEVEN.indices >> 4) / STEPS[name].capacity
    assert parts.max() > 2 * RUN  # counted in runs
    assert np.any((parts > 1) & (parts <= ALONE - 1))  # counted by each part
    check(transposed(queue, UNEVEN, STEPS[name], dtype, index, positions=name == "counts added up"), UNEVEN)


@pytest.mark.any_platform
def test_a_bucket_of_many_runs(queue: cl.CommandQueue) -> None:
    """Runs are longer where a bucket would have more than 64 of them."""
    host = uneven(90, 14, 80_000)
    assert np.bincount(host.indices >> 3)[0] > 64 * RUN * 128
    check(transposed(queue, host, Shape(32, 4, 32, 4, 1), "float32", np.int32, positions=False), host)


@pytest.mark.any_platform
def test_words_of_64_bits(queue: cl.CommandQueue) -> None:
    """A column within a bucket of 2048 and one of five million rows do not fit in 32 bits."""
    host = uneven(5_000_000, 30_000, 900)
    shape = Shape(32, 4, 32, 4, 4)
    assert kernels_of(describe(queue.device), "int32", 4, host.shape, shape).move.word == "ulong"
    check(transposed(queue, host, shape, "float32", np.int32, positions=False), host)


def test_a_shape_fits(queue: cl.CommandQueue) -> None:
    lanes = Portability("ptx", 32, "ptx", match="ptx")
    device = replace(describe(queue.device), type="gpu", portability=lanes, local_memory=48 << 10, max_work_group=1024)
    for n_cols in (1, 2, 1000, 5000, 1 << 20, 1 << 22):
        for n in (1, 10_000, 10**6, 10**9):
            for value_bytes in (0, 1, 8, 16):
                size = 10**6, n_cols
                shape = shape_of(device, "int32", value_bytes, size, n)
                assert shape is not None
                kernels = kernels_of(device, "int32", value_bytes, size, shape)
                assert kernels.fit
                assert kernels.local_memory + RESERVED <= device.local_memory
    assert shape_of(device, "int32", 8, (10, (1 << 22) + 1), 100) is None
    assert shape_of(device, "int64", 8, (10, 10), 1 << 32) is None
    assert shape_of(replace(device, local_memory=4 << 10), "int32", 8, (10, 10), 100) is None
    assert shape_of(replace(device, portability=Portability()), "int32", 8, (10, 10), 100) is None


def test_a_radix_sort_takes_the_place_of_what_is_refused(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_as(type="gpu")
    asked = []

    def refuse(*arguments: Any) -> None:
        asked.append(arguments[-1])
        raise BuildError("refused", log="", parameters=None, source=None)

    monkeypatch.setattr(methods, "shape_of", lambda *_: STEPS["two steps"])
    monkeypatch.setattr(methods, "enqueue_buckets", refuse)
    host = UNEVEN[:50]
    result = transpose(csr_array(host, queue=queue), method="binned")
    assert asked == [STEPS["two steps"]]
    np.testing.assert_array_equal(result.toarray(), host.T.toarray())
