"""Radix sort against its serial reference, and the sort of a matrix's entries by column against SciPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pairs import combinations
from platforms import PLATFORMS, has_fp64, queue_on
from pyopencl import array as cl_array

from clsparse_py._build import programs
from clsparse_py._device.device import Portability, describe
from clsparse_py._precision.arithmetic import OPENCL_TYPES
from clsparse_py._primitives import reference
from clsparse_py._primitives.radix_kernels import RadixScatter
from clsparse_py._primitives.radix_sort import Shape, enqueue_radix_sort, enqueue_sort_by_key
from clsparse_py._run.launch import Chain
from clsparse_py.primitives import radix_sort

KEYS = ("int32", "uint32", "int64", "uint64")


def on_device(queue: cl.CommandQueue, values: Any) -> cl_array.Array:
    return cl_array.to_device(queue, np.ascontiguousarray(values))


def compare(queue: cl.CommandQueue, keys: Any, values: Any = None, bits: Any = None) -> None:
    """Sort and compare with the reference."""
    expected = reference.radix_sort(keys, values, bits=bits)
    result = radix_sort(on_device(queue, keys), None if values is None else on_device(queue, values), bits=bits)
    for array, wanted in zip((result,) if values is None else result, (expected,) if values is None else expected, strict=True):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array.get(), wanted)


LENGTHS = (0, 1, 2, 10, 255, 256, 257, 1019, 1024, 1029, 4091, 70_001)


@pytest.mark.parametrize("case", combinations({"key": KEYS, "n": LENGTHS, "value": [None, *OPENCL_TYPES]}), ids=str)
def test_keys_and_values(queue: cl.CommandQueue, case: dict[str, Any]) -> None:
    if case["value"] in ("float64", "complex128") and not describe(queue.device).fp64:
        pytest.skip("the device has no double precision")
    rng, limits, n = np.random.default_rng(case["n"]), np.iinfo(case["key"]), case["n"]
    keys = rng.integers(limits.min, limits.max, n, case["key"], endpoint=True)
    keys[: n // 2] = keys[n // 2 : n // 2 * 2]  # equal ones, whose order is seen by the values
    values = None if case["value"] is None else (np.arange(n) % 251).astype(case["value"])
    compare(queue, keys, values)


@given(data=st.data())
def test_windows(queue: cl.CommandQueue, data: st.DataObject) -> None:
    key = np.dtype(data.draw(st.sampled_from(KEYS)))
    limits = np.iinfo(key)
    some = st.sampled_from([limits.min, limits.max, 0, 1, 7, 1 << 20])
    keys = np.array(data.draw(st.lists(some | st.integers(int(limits.min), int(limits.max)), max_size=300)), key)
    low = data.draw(st.integers(0, 8 * key.itemsize))
    bits = low, data.draw(st.integers(low, 8 * key.itemsize))
    compare(queue, keys, np.arange(keys.size, dtype=np.uint32), bits)


@pytest.mark.parametrize("valued", [True, False])
@pytest.mark.parametrize("passes", [1, 2, 3, 4, 5])
def test_passes_to_and_fro(queue: cl.CommandQueue, passes: int, valued: bool) -> None:
    n, bits = 3001, 4 * passes
    keys = np.random.default_rng(passes).integers(0, 1 << bits, n, np.uint32)
    values = np.arange(n, dtype=np.uint32)
    given, wanted = ((on_device(queue, keys), on_device(queue, values)) for _ in range(2))
    shape = replace(Shape.defaults(describe(queue.device), n)[0], bits=4)
    chain = Chain(queue, *given, *wanted)
    moved = (given[1], wanted[1]) if valued else (None, None)
    enqueue_radix_sort(chain, given[0], wanted[0], *moved, n, (0, bits), overwrites=True, shape=shape)
    chain.finish(*wanted)
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(wanted[0].get(), keys[order])
    np.testing.assert_array_equal(wanted[1].get(), order if valued else values)


@pytest.mark.parametrize("pattern", ["equal", "two", "sorted", "reversed"])
def test_patterns(queue: cl.CommandQueue, pattern: str) -> None:
    n = 5003
    keys = {"equal": np.full(n, 7), "two": np.arange(n) % 2, "sorted": np.arange(n), "reversed": np.arange(n)[::-1]}[pattern]
    compare(queue, keys.astype(np.int32), np.arange(n, dtype=np.int64))


def test_out(queue: cl.CommandQueue) -> None:
    keys, values = np.array([3, -1, 3, 0], np.int32), np.arange(4, dtype=np.float32)
    a, b = on_device(queue, keys), on_device(queue, values)
    radix_sort(a, b, out=(a, b))
    np.testing.assert_array_equal(a.get(), [-1, 0, 3, 3])
    np.testing.assert_array_equal(b.get(), [1, 3, 0, 2])
    apart = cl_array.zeros(queue, 6, np.int32)
    radix_sort(on_device(queue, keys)[1:], out=apart[2:5])
    np.testing.assert_array_equal(apart.get(), [0, 0, -1, 0, 3, 0])


def test_the_second_call_builds_nothing(queue: cl.CommandQueue) -> None:
    keys = on_device(queue, np.arange(1000, dtype=np.int32)[::-1])
    radix_sort(keys)
    before = len(list(programs.built()))
    radix_sort(keys)
    assert len(list(programs.built())) == before


@pytest.mark.parametrize(
    ("arguments", "named", "error"),
    [
        ({"keys": np.zeros(3, np.float32)}, "keys", TypeError),
        ({"keys": np.zeros(3, np.int16)}, "keys", TypeError),
        ({"values": np.zeros(2, np.float32)}, "values", ValueError),
        ({"bits": 7}, "bits", TypeError),
        ({"bits": (0.5, 3)}, "bits", TypeError),
        ({"bits": (5, 3)}, "bits", ValueError),
        ({"bits": (0, 33)}, "bits", ValueError),
        ({"bits": (-1, 3)}, "bits", ValueError),
        ({"out": np.zeros(2, np.int32)}, "out", ValueError),
        ({"out": np.zeros(3, np.int64)}, "out", TypeError),
    ],
)
def test_bad_input(queue: cl.CommandQueue, arguments: dict[str, Any], named: str, error: type[Exception]) -> None:
    given = {"keys": np.zeros(3, np.int32)} | arguments
    given = {name: on_device(queue, matrix) if isinstance(matrix, np.ndarray) else matrix for name, matrix in given.items()}
    with pytest.raises(error, match=f"^{named}:"):
        radix_sort(**given)


def test_host_array() -> None:
    with pytest.raises(TypeError, match=r"^keys:"):
        radix_sort(np.zeros(3, np.int32))  # type: ignore[arg-type] # what it refuses


AXES = {
    "platform": list(PLATFORMS),
    "shape": [
        *(
            Shape(False, group, items, bits, 0, counts)
            for group, items, bits, counts in [
                (1, 5, 2, 0),
                (7, 3, 4, 1 << 30),
                (48, 2, 3, 0),
                (64, 4, 5, 1 << 30),
                (256, 16, 8, 0),
            ]
        ),
        Shape(False, 1 << 20, 8, 7, 0),
        Shape(True, 1, 1, 22, 1),
        Shape(True, 7, 1, 6, 40),
    ],
    "size": [(100, 1, 50), (1, 300, 100), (70, 5000, 20_000), (40, 9, 0), (3000, 90_000, 9000)],
    "index": ["int32", "int64"],
    "value": ["float32", "complex64", "int8", "complex128"],
    "source": ["rows", "items", "positions"],
    "moves": ["values", "positions"],
}


def legal(case: dict[str, Any]) -> bool:
    return has_fp64(case["platform"]) or case["value"] != "complex128"


@pytest.mark.parametrize("case", combinations(AXES, legal), ids=str)
def test_sort_by_key(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    m, n, nnz = case["size"]
    rng = np.random.default_rng(nnz)
    places = rng.integers(0, m, nnz), rng.integers(0, n, nnz)
    matrix = scipy.sparse.coo_array((np.ones(nnz), places), shape=(m, n)).tocsr()
    count, index = matrix.nnz, np.dtype(case["index"])
    matrix.data = (np.arange(count) % 120).astype(case["value"])
    expected, rows = matrix.T.tocsr(), np.repeat(np.arange(m), np.diff(matrix.indptr))
    columns, values = on_device(queue, matrix.indices.astype(index)), on_device(queue, matrix.data)
    moves = case["moves"] == "values"
    items = cl_array.empty(queue, count, index)
    moved, pointers = cl_array.empty(queue, count, matrix.dtype if moves else index), cl_array.empty(queue, n + 1, index)
    # What gives the items; without it they are the entries' positions, and what is expected is their items.
    given = {"rows": {"indptr": matrix.indptr}, "items": {"items": rows}, "positions": {}}[case["source"]]
    chain = Chain(queue)
    enqueue_sort_by_key(
        chain, columns, count, n, n_items=m if given else count, sorted_items=items, values=values if moves else None,
        sorted_values=moved, pointers=pointers, shape=case["shape"],
        **{name: on_device(queue, part.astype(index)) for name, part in given.items()},
    )  # fmt: skip
    chain.finish(items, moved, pointers)
    np.testing.assert_array_equal(pointers.get(), expected.indptr)
    np.testing.assert_array_equal(items.get() if given else rows[items.get()], expected.indices)
    np.testing.assert_array_equal(moved.get() if moves else matrix.data[moved.get()], expected.data)


def test_wide_words(queue: cl.CommandQueue) -> None:
    """Keys and items that do not fit together in 32 bits travel in 64."""
    n, limit = 2000, 1 << 30
    rng = np.random.default_rng(0)
    keys, items = rng.integers(0, 1 << 20, n).astype(np.int32), rng.integers(0, limit, n).astype(np.int32)
    sorted_items = cl_array.empty(queue, n, np.int32)
    for shape in (Shape(False, 64, 4, 8, 0), Shape(True, 1, 1, 8, 3)):
        chain = Chain(queue)
        given = on_device(queue, keys), on_device(queue, items)
        enqueue_sort_by_key(chain, given[0], n, 1 << 20, n_items=limit, items=given[1], sorted_items=sorted_items, shape=shape)
        chain.finish(sorted_items)
        np.testing.assert_array_equal(sorted_items.get(), items[np.argsort(keys, kind="stable")])


def test_shapes_fit_a_device(queue: cl.CommandQueue) -> None:
    small = replace(describe(queue.device), local_memory=16 << 10, max_work_group=64, type="gpu", portability=Portability())
    for shape in Shape.defaults(small, 10**7):
        for value_bytes in (0, 16):
            cut = shape.legal(small, "int64", value_bytes, pointers=True, word_bytes=8)
            kernel = RadixScatter(
                cut.work_group, small.portability, "int64", "uint64", "uint64", cut.bits, cut.items, "rows", False, False,
                value_bytes, False, True,
            )  # fmt: skip
            assert kernel.local_memory <= small.local_memory
            assert cut.bits >= 1
            assert cut.items >= 1
    with pytest.raises(ValueError, match="local memory"):
        shape.legal(replace(small, local_memory=64), "int64", 16, pointers=True, word_bytes=8)
