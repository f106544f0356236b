"""CSR from coordinates, and `sort_indices`, `sum_duplicates` and `eliminate_zeros`, against SciPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_structure
from pairs import combinations
from platforms import PLATFORMS, has_fp64, make_queue, queue_on
from pyopencl import array as cl_array

from clsparse_py import csr_array
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._formats import canonical, coordinates

AXES: Mapping[str, Any] = {
    "dtype": ["bool", "uint8", "int32", "float32", "float64", "complex64", "complex128"],
    "index": ["int32", "int64"],
    "work_group": [1, 7, 48, 64, "max"],
    "platform": list(PLATFORMS),
}


def legal(case: Mapping[str, Any]) -> bool:
    """Doubles need a device that has them."""
    return case["dtype"] not in ("float64", "complex128") or has_fp64(case["platform"])


CASES = combinations(AXES, legal)


def numbers(dtype: Any, n: int, seed: int = 0) -> np.ndarray:
    """Return whole numbers, some of them zero, whose sums are exact whatever their order; integers overflow."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    values = rng.integers(0 if dtype.kind in "ub" else -3, 4, n)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-3, 4, n)).astype(dtype)
    return (values * (30 if dtype.kind in "iu" else 1)).astype(dtype)


def duplicates(n_cols: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and indptr of rows of many lengths: unsorted, with duplicates, and one column that fills a row."""
    rng = np.random.default_rng(1)
    lengths = rng.permutation([0] * 30 + [*range(12), 31, 32, 33, 127, 128, 129, 600, 1025])
    indices, indptr = random_structure(lengths, n_cols, rng)
    indices[indptr[-6] : indptr[-5]] = 7
    return indices, indptr


_STRUCTURE = duplicates()
INDICES = _STRUCTURE[0]
INDPTR = _STRUCTURE[1]
SHAPE = INDPTR.size - 1, 60


def parts_of(queue: cl.CommandQueue, dtype: Any, index: Any) -> tuple[cl_array.Array, ...]:
    parts = numbers(dtype, INDICES.size), INDICES.astype(index), INDPTR.astype(index)
    return tuple(cl_array.to_device(queue, part) for part in parts)


def scipy_parts(dtype: Any) -> sp.csr_array:
    return sp.csr_array((numbers(dtype, INDICES.size), INDICES.copy(), INDPTR.copy()), shape=SHAPE)


def assert_parts(result: Any, wanted: sp.csr_array, index: Any = None) -> None:
    for part, name in zip(result, ("data", "indices", "indptr"), strict=True):
        np.testing.assert_array_equal(part.get(), getattr(wanted, name))
        assert part.dtype == (wanted.dtype if name == "data" else index or part.dtype)


def assert_same(A: csr_array, wanted: sp.csr_array) -> None:
    assert_parts((A.data, A.indices, A.indptr), wanted)
    assert (A.shape, A.nnz) == (wanted.shape, wanted.nnz)


def sort_stably(matrix: sp.csr_array) -> sp.csr_array:
    """Return a matrix with sorted rows whose duplicates keep their order, which SciPy's own sort does not promise."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((np.arange(matrix.nnz), matrix.indices, rows))
    return sp.csr_array((matrix.data[order], matrix.indices[order], matrix.indptr.copy()), shape=matrix.shape)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_step(case: dict[str, Any]) -> None:
    queue = queue_on(case["platform"])
    group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    check_every_step(queue, case["dtype"], case["index"], group)


@pytest.mark.parametrize("device_type", ["cpu", "gpu"])
def test_every_step_as_devices_of_either_type_take_it(
    queue: cl.CommandQueue, device_type: str, take_as: Callable[..., None]
) -> None:
    take_as(type=device_type)
    check_every_step(queue, "float32", "int32", 64)


def check_every_step(queue: cl.CommandQueue, dtype: str, index: str, group: int) -> None:
    parts = parts_of(queue, dtype, index)
    wanted = sort_stably(scipy_parts(dtype))
    in_order = canonical.with_sorted_rows(queue, parts)
    assert_parts(in_order, wanted, index)
    wanted.sum_duplicates()
    summed = canonical.without_duplicates(queue, in_order, group)
    assert_parts(summed, wanted, index)
    assert canonical.without_duplicates(queue, summed, group) is summed
    wanted.eliminate_zeros()
    left = canonical.without_zeros(queue, summed, group)
    assert_parts(left, wanted, index)
    assert canonical.without_zeros(queue, left, group) is left
    # Nothing that was given is written to.
    assert_parts(parts, scipy_parts(dtype), index)
    # The same from coordinates in any order.
    rows = np.repeat(np.arange(SHAPE[0]), np.diff(INDPTR)).astype(index)
    order = np.random.default_rng(2).permutation(rows.size)
    data = numbers(dtype, rows.size)
    pairs = {"row": rows[order], "col": INDICES[order].astype(index)}
    result, shape = coordinates.from_coordinates(queue, data[order], pairs, SHAPE, np.dtype(dtype))
    wanted = sp.coo_array((data[order], (rows[order], INDICES[order])), shape=SHAPE).tocsr()
    assert_parts(result, wanted)
    assert (shape, result[1].size) == (SHAPE, wanted.nnz)


@settings(max_examples=40)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    data=st.data(),
    dtype=st.sampled_from(["int8", "bool", "float32", "complex64"]),
    told=st.booleans(),
)
def test_random_coordinates(shape: tuple[int, int], data: st.DataObject, dtype: str, told: bool) -> None:
    places = data.draw(st.lists(st.tuples(*(st.integers(0, length - 1) for length in shape)), min_size=not told, max_size=40))
    row, col = np.array(places, np.int64).reshape(-1, 2).T
    values = numbers(dtype, row.size)
    wanted = sp.coo_array((values, (row, col)), shape=shape if told else None).tocsr()
    for name in PLATFORMS:
        A = csr_array((values, (row, col)), shape=shape if told else None, queue=queue_on(name))
        assert_same(A, wanted)
        assert A.has_canonical_format
        assert A.indices.dtype == wanted.indices.dtype
        zeros = wanted.copy()
        zeros.eliminate_zeros()
        A.eliminate_zeros()
        assert_same(A, zeros)


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("number", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_coordinates_of_any_integers(queue: cl.CommandQueue, number: str, on_device: bool) -> None:
    row, col = (np.array(part, number) for part in ([4, 0, 4, 2, 4], [1, 3, 1, 0, 0]))
    data = np.arange(1, 6, dtype=np.float32)
    place = (lambda part: cl_array.to_device(queue, part)) if on_device else (lambda part: part)
    wanted = sp.coo_array((data, (row.astype(int), col.astype(int)))).tocsr()
    A = csr_array((place(data), (place(row), place(col))), queue=queue)
    assert_same(A, wanted)
    assert A.queue is queue
    # Parts that are views of arrays.
    views = [place(np.repeat(part, 2))[::2] for part in (data, row, col)]
    assert_same(csr_array((views[0], (views[1], views[2])), queue=queue), wanted)
    padded = [place(np.concatenate((part[:2], part)))[2:] for part in (data, row, col)]
    assert_same(csr_array((padded[0], (padded[1], padded[2])), queue=queue), wanted)
    assert_same(
        csr_array((place(data), (place(row), place(col))), shape=(9, 9), dtype=np.int16, queue=queue), expected_in_int16(wanted)
    )


def expected_in_int16(wanted: sp.csr_array) -> sp.csr_array:
    larger = wanted.copy()
    larger.resize((9, 9))
    return larger.astype(np.int16)


def test_values_are_added_in_the_dtype_asked_for(queue: cl.CommandQueue) -> None:
    data, place = np.full(4, 100, np.int8), np.zeros(4, int)
    assert csr_array((data, (place, place)), queue=queue).data.get().tolist() == [np.int8(-112)]
    assert csr_array((data, (place, place)), dtype=np.int32, queue=queue).data.get().tolist() == [400]
    assert csr_array((data > 0, (place, place)), queue=queue).data.get().tolist() == [True]


def test_columns_past_32_bits(queue: cl.CommandQueue) -> None:
    col = np.array([1 << 40, 3, 1 << 40], np.int64)
    A = csr_array((np.ones(3, np.float32), ([0, 0, 0], col)), queue=queue)
    assert A.shape == (1, (1 << 40) + 1)
    assert A.indices.dtype == np.int64
    np.testing.assert_array_equal(A.indices.get(), [3, 1 << 40])
    np.testing.assert_array_equal(A.data.get(), [1, 2])
    with pytest.raises(MemoryError, match=r"^indptr of a 1099511627777 x 4 matrix: 1,099,511,627,778 entries of int64 need"):
        csr_array((np.ones(3, np.float32), (col, [0, 1, 3])), queue=queue)


@pytest.mark.parametrize("on_device", [False, True])
def test_rows_and_columns_that_are_outside(queue: cl.CommandQueue, on_device: bool) -> None:
    place = (lambda part: cl_array.to_device(queue, part)) if on_device else (lambda part: part)
    good, data = place(np.zeros(3, np.int64)), place(np.ones(3, np.float32))
    for bad, shape, told in (
        (np.array([0, 2, 5]), (2, 2), r"\[0, 2\), 2 of 3 do not"),
        (np.array([-1, 0, 0]), (2, 2), r"\[0, 2\), 1 of 3 do not"),
        (np.array([-1, 0, 0]), None, r"\[0, n\), 1 of 3 do not"),
        (np.array([1 << 40, 0, 0]), (2, 2), r"\[0, 2\), 1 of 3 do not"),
        (np.array([1 << 63, 0, 0], np.uint64), None, r"\[0, n\), 1 of 3 do not"),
        (np.array([0, 0, 0]), (0, 0), r"\[0, 0\), 3 of 3 do not"),
    ):
        for name, pair in (("row", (place(bad), good)), ("col", (good, place(bad)))):
            if shape == (0, 0) and name == "col":
                continue
            with pytest.raises(ValueError, match=rf"^{name}: must lie in {told}"):
                csr_array((data, pair), shape=shape, queue=queue)


def test_coordinates_of_another_context(queue: cl.CommandQueue) -> None:
    context = cl.Context([queue.device])  # quirk 9
    other = cl.CommandQueue(context, queue.device)
    parts = {"data": np.ones(2, np.float32), "row": np.zeros(2, np.int32), "col": np.arange(2, dtype=np.int32)}
    for name in parts:
        placed = {label: cl_array.to_device(other if label == name else queue, part) for label, part in parts.items()}
        with pytest.raises(ValueError, match=rf"^{name}: lives in another context than the queue of the matrix"):
            csr_array((placed["data"], (placed["row"], placed["col"])), queue=queue)


@pytest.mark.parametrize("ordered", [True, False])
def test_methods_work_in_place(queue: cl.CommandQueue, ordered: bool) -> None:
    if not ordered:
        queue = make_queue(queue, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    x = np.arange(SHAPE[1], dtype=np.int32)
    wanted = scipy_parts(np.int32)
    y = wanted @ x
    A = csr_array(parts_of(queue, np.int32, np.int32), shape=SHAPE)
    assert not A.has_sorted_indices
    np.testing.assert_array_equal(A @ x, y)
    plan, transposed = A.spmv_plan(), A._transposed()
    assert A.sort_indices() is None
    assert A.has_sorted_indices
    assert not A.has_canonical_format
    assert_same(A, sort_stably(wanted))
    assert A.spmv_plan() is not plan
    assert A._transposed() is not transposed
    np.testing.assert_array_equal(A @ x, y)
    wanted.sum_duplicates()
    assert A.sum_duplicates() is None
    assert A.has_canonical_format
    assert_same(A, wanted)
    np.testing.assert_array_equal(A @ x, y)
    assert A.eliminate_zeros() is None
    wanted.eliminate_zeros()
    assert A.has_canonical_format
    assert_same(A, wanted)
    np.testing.assert_array_equal(A @ x, y)
    np.testing.assert_array_equal(A.T.toarray(), wanted.T.toarray())


def test_what_is_in_order_stays_as_it_is(queue: cl.CommandQueue) -> None:
    A = csr_array(sp.csr_array(np.triu(np.ones((5, 5), np.float32))), queue=queue)
    parts, plan = (A.data, A.indices, A.indptr), A.spmv_plan()
    for method in (A.sort_indices, A.sum_duplicates, A.eliminate_zeros):
        method()
        assert all(new is old for new, old in zip((A.data, A.indices, A.indptr), parts, strict=True))
        assert A.spmv_plan() is plan


def test_zeros_of_all_kinds(queue: cl.CommandQueue) -> None:
    for data, left in (
        (np.array([0.0, -0.0, np.nan, 1e-45, np.inf], np.float32), 3),
        (np.array([0, 1j, -0.0, 1, complex(0, np.nan)], np.complex64), 3),
        (np.array([False, True, False, True, False]), 2),
        (np.zeros(5, np.int64), 0),
    ):
        A = csr_array((data, np.arange(5), np.array([0, 2, 2, 5])), shape=(3, 5), queue=queue)
        A.eliminate_zeros()
        assert A.nnz == left
        wanted = sp.csr_array((data, np.arange(5), np.array([0, 2, 2, 5])), shape=(3, 5))
        wanted.eliminate_zeros()
        assert_same(A, wanted)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("device_type", ["cpu", "gpu"])
def test_zeros_beside_duplicates_keep_their_signs(
    queue: cl.CommandQueue, device_type: str, take_as: Callable[..., None], dtype: str
) -> None:
    take_as(type=device_type)
    zeros = np.array([-0.0, -0.0, 0.0, -0.0, -0.0, 0.0, 1, -1], "float32")
    data = zeros if dtype == "float32" else np.array([complex(a, b) for a, b in zip(zeros, zeros[::-1], strict=True)], dtype)
    S = sp.csr_array((data, np.array([0, 1, 1, 2, 2, 3, 4, 4]), np.array([0, 5, 5, 8])), shape=(3, 5))
    wanted = sp.csr_array(S, copy=True)
    wanted.sum_duplicates()
    A = csr_array(S, queue=queue)
    A.sum_duplicates()
    for part in ("real", "imag"):
        np.testing.assert_array_equal(*(np.signbit(getattr(array, part)) for array in (A.get().data, wanted.data)))
    functions = csr_array(S, queue=queue).arcsinh().get(), wanted.arcsinh()
    np.testing.assert_allclose(*(function.data for function in functions), rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 5)])
def test_no_entries(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    A = csr_array((np.zeros(0, np.float32), ([], [])), shape=shape, queue=queue)
    for method in (A.sort_indices, A.sum_duplicates, A.eliminate_zeros):
        method()
    assert (A.shape, A.nnz, A.dtype) == (shape, 0, np.float32)
    np.testing.assert_array_equal(A.indptr.get(), np.zeros(shape[0] + 1))


def test_one_place_for_all(queue: cl.CommandQueue) -> None:
    n = 70_000
    zeros = np.zeros(n, np.int32)
    A = csr_array((np.ones(n, np.int32), (zeros, zeros)), shape=(3, 3), queue=queue)
    assert_same(A, sp.csr_array(([n], ([0], [0])), shape=(3, 3), dtype=np.int32))


def test_a_structure_that_is_wrong_is_refused(queue: cl.CommandQueue) -> None:
    A = csr_array(parts_of(queue, np.float32, np.int32), shape=SHAPE)
    for name in ("sort_indices", "sum_duplicates", "eliminate_zeros"):
        A.indices = cl_array.to_device(queue, INDICES + 1)
        with pytest.raises(ValueError, match=r"^indices: must lie in \[0, 60\)"):
            getattr(A, name)()


def test_a_second_call_builds_nothing(queue: cl.CommandQueue) -> None:
    def use() -> int:
        rows = np.repeat(np.arange(SHAPE[0]), np.diff(INDPTR))
        csr_array((numbers("float32", rows.size), (rows, INDICES)), queue=queue).eliminate_zeros()
        csr_array(parts_of(queue, np.float32, np.int32), shape=SHAPE).sum_duplicates()
        return len(list(programs.built()))

    assert use() == use()
