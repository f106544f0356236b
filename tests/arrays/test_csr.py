"""`csr_array`: construction from everything, attributes, replaced parts, and what is refused."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_structure, random_values
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csr_array, transpose
from clsparse_py._device.device import describe
from clsparse_py._matrix.structure import check_structure
from clsparse_py._precision.arithmetic import OPENCL_TYPES

# [1 0 2]
# [0 0 0]
# [3 4 0]
DATA = np.array([1, 2, 3, 4], np.float32)
INDICES = np.array([0, 2, 0, 1], np.int32)
INDPTR = np.array([0, 2, 2, 4], np.int32)
DENSE = np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0]], np.float32)


INT = np.int32


def assert_is_the_matrix(A: csr_array) -> None:
    assert (A.shape, A.nnz, A.ndim, A.dtype) == ((3, 3), 4, 2, np.float32)
    for part, wanted in ((A.data, DATA), (A.indices, INDICES), (A.indptr, INDPTR)):
        assert isinstance(part, cl_array.Array)
        np.testing.assert_array_equal(part.get(), wanted)
    np.testing.assert_array_equal(A.toarray(), DENSE)
    result = A.get()
    assert isinstance(result, sp.csr_array)
    np.testing.assert_array_equal(result.toarray(), DENSE)


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_from_scipy(queue: cl.CommandQueue, kind: str) -> None:
    array = sp.csr_array((DATA, INDICES, INDPTR), shape=(3, 3)).asformat(kind)
    for matrix in (array, getattr(sp, f"{kind}_matrix")(array)):
        A = csr_array(matrix, queue=queue)
        np.testing.assert_array_equal(A.toarray(), DENSE)
        assert (A.shape, A.dtype, A.queue) == ((3, 3), np.float32, queue)


def test_from_dense_and_tuples(queue: cl.CommandQueue) -> None:
    assert_is_the_matrix(csr_array(DENSE, queue=queue))
    np.testing.assert_array_equal(csr_array([[1, 0], [0, 2]], queue=queue).toarray(), [[1, 0], [0, 2]])
    assert_is_the_matrix(csr_array(cl_array.to_device(queue, DENSE)[:], queue=queue))
    assert_is_the_matrix(csr_array((DATA, INDICES, INDPTR), queue=queue))
    assert_is_the_matrix(csr_array((list(DATA), list(INDICES), list(INDPTR)), shape=(3, 3), dtype=np.float32, queue=queue))
    rows = np.repeat(np.arange(3), np.diff(INDPTR))
    assert_is_the_matrix(csr_array((DATA, (rows, INDICES)), shape=(3, 3), queue=queue))
    device = tuple(cl_array.to_device(queue, part) for part in (DATA, INDICES, INDPTR))
    A = csr_array(device)
    assert_is_the_matrix(A)
    assert A.queue is queue
    assert (A.data, A.indices, A.indptr) == device or all(
        a is b for a, b in zip((A.data, A.indices, A.indptr), device, strict=True)
    )
    assert_is_the_matrix(csr_array((device[0], (cl_array.to_device(queue, rows), device[1])), shape=(3, 3), queue=queue))
    assert_is_the_matrix(csr_array(A))
    duplicates = csr_array((np.ones(5, np.float32), (np.zeros(5, int), np.zeros(5, int))), queue=queue)
    assert (duplicates.nnz, duplicates.shape, duplicates.toarray().item()) == (1, (1, 1), 5)


def test_device_parts_that_begin_inside_a_buffer(queue: cl.CommandQueue) -> None:
    padded = [cl_array.to_device(queue, np.concatenate((part[:1].repeat(3), part))) for part in (DATA, INDICES, INDPTR)]
    assert_is_the_matrix(csr_array(tuple(part[3:] for part in padded)))
    A = csr_array((DATA, INDICES, INDPTR), queue=queue)
    A.data, A.indices, A.indptr = (part[3:] for part in padded)
    assert_is_the_matrix(A)
    np.testing.assert_array_equal(A @ np.arange(3, dtype=np.float32), DENSE @ np.arange(3))


@pytest.mark.parametrize("view", ["strided", "reversed", "shifted"])
def test_device_parts_that_are_views(queue: cl.CommandQueue, view: str) -> None:
    def make_view(part: np.ndarray) -> cl_array.Array:
        if view == "strided":
            return cl_array.to_device(queue, np.repeat(part, 2))[::2]
        return cl_array.to_device(queue, part[::-1].copy())[::-1]

    if view == "shifted":
        shifted = cl_array.to_device(queue, np.frombuffer(b"x" + DATA.tobytes(), np.uint8))[1:].view(np.float32)
        assert_is_the_matrix(csr_array((shifted, INDICES, INDPTR), shape=(3, 3)))
        with pytest.raises(ValueError, match=r"^data: must begin at a multiple of 4 bytes in its buffer, begins at 1"):
            csr_array((shifted, INDICES, INDPTR), dtype=np.int32)
        return
    parts = tuple(make_view(part) for part in (DATA, INDICES, INDPTR))
    assert_is_the_matrix(csr_array(parts, shape=(3, 3)))
    assert_is_the_matrix(csr_array((parts[0], INDICES, parts[2]), shape=(3, 3), dtype=np.float32))
    A = csr_array((DATA, INDICES, INDPTR), queue=queue)
    A.data = parts[0]
    assert_is_the_matrix(A)


def test_longer_data_and_indices_are_pruned(queue: cl.CommandQueue) -> None:
    for behind in ([7, 7], [0, 1], [-1, 1 << 30]):
        for make in (np.asarray, lambda part: cl_array.to_device(queue, part)):
            longer = (
                make(np.append(DATA, [9, 9]).astype(np.float32)),
                make(np.append(INDICES, behind).astype(np.int32)),
                make(INDPTR),
            )
            A = csr_array(longer, shape=(3, 3), queue=queue)
            assert_is_the_matrix(A)
            assert A.has_canonical_format


@pytest.mark.parametrize("dtype", list(OPENCL_TYPES))
def test_value_types(queue: cl.CommandQueue, dtype: str) -> None:
    if dtype in ("float64", "complex128") and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    A = csr_array((DATA, INDICES, INDPTR), dtype=dtype, queue=queue)
    assert A.dtype == dtype
    np.testing.assert_array_equal(A.toarray(), DENSE.astype(dtype))
    B = csr_array(sp.csr_array(DENSE.astype(dtype)), queue=queue)
    assert B.dtype == dtype
    C = csr_array((DATA, INDICES, INDPTR), queue=queue).astype(dtype)
    assert C.dtype == dtype
    np.testing.assert_array_equal(C.toarray(), DENSE.astype(dtype))
    narrowed = B.astype(np.complex64).astype(np.bool_)
    np.testing.assert_array_equal(narrowed.toarray(), DENSE != 0)
    np.testing.assert_array_equal(B.astype(np.complex64).astype(dtype).toarray(), DENSE.astype(dtype))


def test_index_types(queue: cl.CommandQueue) -> None:
    def parts(indices: Any, indptr: Any) -> Any:
        return cl_array.to_device(queue, DATA), *(
            cl_array.to_device(queue, p.astype(t)) for p, t in ((INDICES, indices), (INDPTR, indptr))
        )

    # As SciPy does it: as they come, both of one type.
    for kept in (np.int32, np.int64):
        given = DATA, INDICES.astype(kept), INDPTR.astype(kept)
        for name in ("csr_array", "csc_array"):
            assert getattr(clsparse_py, name)(given, queue=queue).indices.dtype == getattr(sp, name)(given).indices.dtype
    for types, wanted in (((np.int32, np.int32), np.int32), ((np.int64, np.int64), np.int64), ((np.int32, np.int64), np.int64),
                          ((np.int16, np.uint8), np.int32), ((np.uint32, np.int32), np.int64)):  # fmt: skip
        A = csr_array(parts(*types), shape=(3, 3))
        assert A.indices.dtype == A.indptr.dtype == wanted
        assert_is_the_matrix(A)
    wide = csr_array((DATA, INDICES.astype(np.int64) + (1 << 40), INDPTR), shape=(3, (1 << 40) + 3), queue=queue)
    assert wide.indices.dtype == np.int64
    assert wide.get().indices.max() == (1 << 40) + 2


def test_sortedness(queue: cl.CommandQueue) -> None:
    for columns, is_sorted, is_canonical in (
        ([0, 2, 0, 1], True, True),  # falls only where a row begins
        ([0, 2, 2, 2], True, False),
        ([2, 0, 0, 1], False, False),
        ([2, 2, 2, 2], True, False),
        ([0, 1, 1, 0], False, False),
        ([0, 2, 2, 0][::1], False, False),
    ):
        A = csr_array((DATA, np.array(columns, np.int32), INDPTR), shape=(3, 3), queue=queue)
        assert (A.has_sorted_indices, A.has_canonical_format) == (is_sorted, is_canonical)
        assert (A.get().has_sorted_indices, A.get().has_canonical_format) == (is_sorted, is_canonical)
    vouched = csr_array((DATA, INDICES, INDPTR), queue=queue, check=False)
    assert vouched.has_canonical_format


@settings(max_examples=30)
@given(data=st.data())
def test_sortedness_of_random_structures(data: st.DataObject) -> None:
    from platforms import PLATFORMS, queue_on

    lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=12))
    columns = data.draw(st.lists(st.integers(0, 4), min_size=sum(lengths), max_size=sum(lengths)))
    parts = np.ones(len(columns), np.float32), np.array(columns, np.int32), np.concatenate(([0], np.cumsum(lengths)))
    rows = [columns[begin:end] for begin, end in zip(parts[2][:-1], parts[2][1:], strict=True)]
    for name in PLATFORMS:
        A = csr_array(parts, shape=(len(lengths), 5), queue=queue_on(name))
        assert A.has_sorted_indices == all(row == sorted(row) for row in rows)
        assert A.has_canonical_format == all(row == sorted(set(row)) for row in rows)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_check_at_every_work_group_size(queue: cl.CommandQueue, work_group: int, index: Any) -> None:
    lengths = np.random.default_rng(0).integers(0, 9, 3000)
    lengths[2998] = 13
    indices, indptr = random_structure(lengths, 100, np.random.default_rng(1), index)
    broken = indices.copy()
    broken[[0, 5000, -1]] = 100, -1, 1 << 30
    device = cl_array.to_device(queue, indptr)
    result = check_structure(queue, (3000, 100), cl_array.to_device(queue, indices), device, work_group)
    assert (result.nnz, result.sorted, result.canonical, result.longest) == (indices.size, False, False, 13)
    assert result.adjacent == np.count_nonzero(np.diff(indices.astype(np.int64)) == 1)
    with pytest.raises(ValueError, match=rf"^indices: must lie in \[0, 100\), 3 of {indices.size} do not"):
        check_structure(queue, (3000, 100), cl_array.to_device(queue, broken), device, work_group)


def test_copies_are_their_own(queue: cl.CommandQueue) -> None:
    A = csr_array((DATA, INDICES, INDPTR), queue=queue, copy=True)
    for other in (A.copy(), A.astype(np.float32), csr_array(A, copy=True)):
        other.data.fill(0)
        assert_is_the_matrix(A)
    assert A.astype(np.float32, copy=False) is A
    assert csr_array(A).data is A.data


def test_new_values_keep_the_plan(queue: cl.CommandQueue) -> None:
    A, x = csr_array((DATA, INDICES, INDPTR), queue=queue), np.arange(3, dtype=np.float32)
    first = A @ x
    plan = A.spmv_plan()
    A.data = cl_array.to_device(queue, DATA * 5)
    assert A.spmv_plan() is plan
    np.testing.assert_array_equal(A @ x, 5 * first)
    A.data = cl_array.to_device(queue, DATA.astype(np.complex64) * 1j)
    assert A.dtype == np.complex64
    np.testing.assert_array_equal(clsparse_py.spmv(A, x, plan=plan), 1j * first)
    np.testing.assert_array_equal(A @ x, 1j * first)
    # What is kept is chosen for a dtype.
    assert A.spmv_plan() is A.spmv_plan() is not plan
    A.data = cl_array.to_device(queue, DATA)
    assert A.spmv_plan() is plan


def test_new_structure_drops_the_plan_and_is_checked(queue: cl.CommandQueue) -> None:
    A, x = csr_array((DATA, INDICES, INDPTR), queue=queue), np.arange(3, dtype=np.float32)
    A @ x
    plan = A.spmv_plan()
    A.indices = cl_array.to_device(queue, np.array([2, 1, 0, 2], np.int32))
    assert A.spmv_plan() is not plan
    np.testing.assert_array_equal(A @ x, np.array([[0, 2, 1], [0, 0, 0], [3, 0, 4]]) @ x)
    assert not A.has_sorted_indices
    A.indices = cl_array.to_device(queue, np.array([2, 1, 0, 3], np.int32))
    for use in (lambda: A @ x, lambda: A @ x[:, None], A.get, lambda: A.nnz, lambda: A.has_sorted_indices):
        with pytest.raises(ValueError, match=r"^indices: must lie in \[0, 3\), 1 of 4 do not"):
            use()
    # Another number of entries: columns first, then what has to match them.
    A.indices = cl_array.to_device(queue, np.array([1, 2], np.int32))
    A.data = cl_array.to_device(queue, np.array([5, 6], np.float32))
    with pytest.raises(ValueError, match=r"^indptr: ends with 4, but there are only 2 indices"):
        A @ x
    A.indptr = cl_array.to_device(queue, np.array([0, 0, 1, 2], np.int32))
    np.testing.assert_array_equal(A @ x, [0, 5, 12])
    A.indices = cl_array.to_device(queue, np.array([1, 2, 0], np.int32))
    A.indptr = cl_array.to_device(queue, np.array([0, 0, 1, 3], np.int32))
    with pytest.raises(ValueError, match=r"^data: must have the 3 entries of indices, has 2"):
        A @ x


def test_a_structure_written_to_in_place_is_looked_at_again_once_it_is_set(queue: cl.CommandQueue) -> None:
    # [1 2 0]    [0 1 2]
    # [3 0 0] -> [3 0 0]
    # [0 0 4]    [0 0 4]
    A, x = csr_array((DATA, np.array([0, 1, 0, 2], INT), np.array([0, 2, 3, 4], INT)), queue=queue), DATA[:3]
    transpose(A, method="gather")
    before, plan, permutation, transposed = A.structure, A.spmv_plan(), A.transpose_plan(), A._transposed()
    assert before.symmetry is not None
    assert before.symmetry.verified
    A.indices[:] = cl_array.to_device(queue, np.array([2, 1, 0, 2], INT))
    assert A.has_sorted_indices, "the write goes unnoticed, as docs/promises.md says"
    A.indices = A.indices
    assert not A.has_sorted_indices
    assert A.structure is not before
    assert A.structure.symmetry is None
    assert A.spmv_plan() is not plan
    assert A.transpose_plan() is not permutation
    assert A._transposed() is not transposed
    after = np.array([[0, 2, 1], [3, 0, 0], [0, 0, 4]], np.float32)
    with pytest.raises(ValueError, match=r"^method: gather does not take"):
        transpose(A, method="gather")
    np.testing.assert_array_equal(transpose(A).toarray(), after.T)
    np.testing.assert_array_equal(A.T.toarray(), after.T)
    np.testing.assert_array_equal(A @ x, after @ x)
    np.testing.assert_array_equal((A @ A).toarray(), after @ after)
    # The same of row pointers.
    A.indptr[:] = cl_array.to_device(queue, np.array([0, 2, 2, 4], INT))
    A.indptr = A.indptr
    np.testing.assert_array_equal(A @ x, np.array([[0, 2, 1], [0, 0, 0], [3, 0, 4]]) @ x)
    A.indptr[:] = cl_array.to_device(queue, np.array([0, 2, 1, 4], INT))
    A.indptr = A.indptr
    with pytest.raises(ValueError, match=r"^indptr: must not decrease, does so in 1 places"):
        A @ x


def test_repr_names_shape_entries_types_and_device(queue: cl.CommandQueue) -> None:
    text = repr(csr_array((DATA, INDICES, INDPTR), queue=queue))
    where = f"on {queue.device.name}; get() copies it to the host"
    assert text == f"<csr_array of 3 x 3, 4 stored entries, float32 values, int32 indices, {where}>"


@pytest.mark.parametrize(
    ("arg1", "options", "error", "message"),
    [
        ((DATA, INDICES, INDPTR[:-1]), {"shape": (3, 3)}, ValueError, r"^indptr: must have rows \+ 1 = 4 entries, has 3"),
        ((DATA, INDICES, np.array([], INT)), {}, ValueError, r"^indptr: must have rows \+ 1 entries, has none"),
        ((DATA, INDICES, INDPTR + 1), {}, ValueError, r"^indptr: must start with 0, starts with 1"),
        ((DATA, INDICES, INDPTR + 10_000), {}, ValueError, r"^indptr: must start with 0, starts with 10000"),
        ((DATA, INDICES, np.array([0, 3, 2, 4], INT)), {}, ValueError, r"^indptr: must not decrease, does so in 1 places"),
        ((DATA, INDICES, np.array([0, -2, 2, 4], INT)), {}, ValueError, r"^indptr: must not decrease, does so in 1 places"),
        ((DATA, INDICES, np.array([-1, 2, 2, 4], INT)), {}, ValueError, r"^indptr: must start with 0, starts with -1"),
        ((DATA, INDICES, np.array([0, 2, 2, 5], INT)), {}, ValueError, r"^indptr: ends with 5, but there are only 4 indices"),
        ((DATA, INDICES, np.array([0, 1 << 30, 2, 4], INT)), {}, ValueError, r"^indptr: must not decrease"),
        ((DATA, np.array([0, 3, 0, 1], INT), INDPTR), {"shape": (3, 3)}, ValueError, r"^indices: must lie in \[0, 3\), 1 of 4"),
        ((DATA, np.array([0, -1, 0, 1], INT), INDPTR), {}, ValueError, r"^indices: must lie in \[0, 2\), 1 of 4 do not"),
        ((DATA, np.array([0, 1 << 40, 0, 1]), INDPTR), {"shape": (3, 3)}, ValueError, r"^indices: must lie in \[0, 3\), 1 of 4"),
        ((DATA[:3], INDICES, INDPTR), {}, ValueError, r"^data: must have as many entries as indices, has 3, not 4"),
        ((DATA, INDICES, INDPTR), {"shape": (3, -3)}, ValueError, r"^shape: must not be negative, is \(3, -3\)"),
        ((DATA, INDICES, INDPTR), {"shape": (3,)}, ValueError, r"^indptr: must have rows \+ 1 = 2 entries, has 4"),
        ((DATA, INDICES, INDPTR), {"shape": "33"}, TypeError, r"^shape: must be two integers, is '33'"),
        ((DATA[None], INDICES, INDPTR), {}, ValueError, r"^data: must have one dimension, has 2 \(shape \(1, 4\)\)"),
        ((DATA, INDICES[None], INDPTR), {}, ValueError, r"^indices: must have one dimension, has 2"),
        ((DATA, INDICES, INDPTR[None]), {}, ValueError, r"^indptr: must have one dimension, has 2"),
        ((DATA, INDICES + 0.5, INDPTR), {}, TypeError, r"^indices: must be integers, is float64"),
        ((DATA, INDICES, INDPTR + 0.5), {}, TypeError, r"^indptr: must be integers, is float64"),
        ((DATA.astype(object), INDICES, INDPTR), {}, TypeError, r"^data: dtype object is not supported; use one of bool, int8"),
        ((DATA.astype(np.float16), INDICES, INDPTR), {}, TypeError, r"^data: dtype float16 is not supported; use one of"),
        ((DATA, INDICES, INDPTR), {"dtype": "U3"}, TypeError, r"^dtype: dtype <U3 is not supported; use one of"),
        ((DATA[:0], INDICES[:0], np.zeros(4, INT)), {}, ValueError, r"^shape: cannot be told from arrays without entries"),
        ((DATA, INDICES), {}, ValueError, r"^arg1: a tuple must be \(data, indices, indptr\) or .*, has 2 parts"),
        (None, {}, TypeError, r"^arg1: must be a sparse matrix, a dense array or a tuple of arrays, is None"),
        ("a matrix", {}, ValueError, r"^arg1: must be a sparse matrix, a dense array or a tuple of arrays, is 'a matrix'"),
        (np.array([[None]]), {}, TypeError, r"^arg1: dtype object is not supported; use one of"),
        ([["a"]], {}, TypeError, r"^arg1: dtype <U1 is not supported; use one of"),
        (np.ones((2, 2, 2)), {}, ValueError, r"^arg1: a dense array must have two dimensions, has 3"),
        (sp.coo_array(np.ones((2, 2, 2))), {}, ValueError, r"^arg1: must have two dimensions, has 3"),
        ((DATA, INDICES, INDPTR), {"queue": "gpu"}, TypeError, r"^queue: must be a pyopencl.CommandQueue, is str"),
        ((DATA, (INDICES, -INDICES)), {"shape": (3, 3)}, ValueError, r"^col: must lie in \[0, 3\)"),
        ((DATA, (INDICES, INDICES)), {"shape": (2, 3)}, ValueError, r"^row: must lie in \[0, 2\)"),
        ((DATA, (INDICES[:3], INDICES)), {"shape": (3, 3)}, ValueError, r"^row: must have as many entries as data, has 3, not 4"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)  # fmt: skip
def test_bad_input(queue: cl.CommandQueue, arg1: Any, options: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        csr_array(arg1, **{"queue": queue, **options})


@pytest.mark.parametrize("part", [0, 1, 2])
def test_part_of_another_context(queue: cl.CommandQueue, part: int) -> None:
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context, queue.device)
    parts = [cl_array.to_device(queue, array) for array in (DATA, INDICES, INDPTR)]
    parts[part] = parts[part].__class__(other, parts[part].shape, parts[part].dtype)
    name = ("data", "indices", "indptr")[part]
    with pytest.raises(ValueError, match=rf"^{name}: lives in another context than the queue of the matrix"):
        csr_array(tuple(parts), shape=(3, 3), queue=queue)
    A = csr_array((DATA, INDICES, INDPTR), queue=queue)
    with pytest.raises(ValueError, match=rf"^{name}: lives in another context"):
        setattr(A, name, parts[part])


def test_replaced_parts_of_the_wrong_kind(queue: cl.CommandQueue) -> None:
    A = csr_array((DATA, INDICES, INDPTR), queue=queue)
    for name, values, error, message in (
        ("data", np.zeros((2, 2), np.float32), ValueError, r"^data: must have one dimension, has 2"),
        ("indices", np.zeros(4), TypeError, r"^indices: must be integers, is float64"),
        ("indptr", np.zeros(3, np.int32), ValueError, r"^indptr: must have 4 entries, has 3"),
    ):
        with pytest.raises(error, match=message):
            setattr(A, name, values)
    assert_is_the_matrix(A)


def test_parts_are_replaced_in_any_order_and_of_any_index_type(queue: cl.CommandQueue) -> None:
    A, x = csr_array((DATA, INDICES, INDPTR), queue=queue), np.arange(3, dtype=np.float32)
    given = {"data": np.array([5, 6], np.float32), "indices": np.array([1, 2]), "indptr": np.array([0, 0, 1, 2])}
    for names in itertools.permutations(given):
        B = A.copy()
        for name in names:
            setattr(B, name, given[name])
        np.testing.assert_array_equal(B @ x, [0, 5, 12])
        assert B.indices.dtype == B.indptr.dtype == np.int64
        B.indptr, B.indices = B.indptr.get().astype(np.int32), cl_array.to_device(queue, B.indices.get().astype(np.int32))
        assert B.indices.dtype == B.indptr.dtype == np.int32
        np.testing.assert_array_equal(B @ x, [0, 5, 12])
    assert_is_the_matrix(A)
    A.data = np.ones(3, np.float32)
    with pytest.raises(ValueError, match=r"^data: must have the 4 entries of indices, has 3"):
        A @ x


def test_random_values_come_back(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    indices, indptr = random_structure(rng.integers(0, 50, 2000), 3000, rng)
    matrix = sp.csr_array((random_values(np.float32, indices.size, rng), indices, indptr), shape=(2000, 3000))
    result = csr_array(matrix, queue=queue).get()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(result, name), getattr(matrix, name))


def test_a_matrix_keeps_the_context_of_its_queue(queue: cl.CommandQueue) -> None:
    """Quirk 9: not every runtime's queue does."""
    context = cl.Context([queue.device])
    A = csr_array((DATA, INDICES, INDPTR), queue=cl.CommandQueue(context, queue.device))
    del context
    gc.collect()
    assert A.queue.context == A.context
    assert_is_the_matrix(A)
    plan = A.transpose_plan()
    del A
    gc.collect()
    assert plan().get().shape == (3, 3)


@pytest.mark.any_platform
def test_lists_have_the_dtype_that_is_asked_for(queue: cl.CommandQueue) -> None:
    values, large = [2**63 + 1, 1], np.diag(np.array([2**63 + 1, 1], np.uint64))
    for A in (
        csr_array((values, ([0, 1], [0, 1])), dtype=np.uint64, queue=queue),
        csr_array((values, [0.0, 1.0], [0.0, 1.0, 2.0]), dtype=np.uint64, queue=queue),
        csr_array((values, [0, 1], [0, 1, 2]), dtype=np.uint64, queue=queue),
        clsparse_py.csc_array((values, ([0, 1], [0, 1])), dtype=np.uint64, queue=queue),
        clsparse_py.coo_array((values, ([0, 1], [0, 1])), dtype=np.uint64, queue=queue),
    ):
        np.testing.assert_array_equal(A.toarray(), large)


@pytest.mark.any_platform
def test_shapes_with_more_columns(queue: cl.CommandQueue) -> None:
    dense = np.array([[1, 0, 2], [0, 3, 0]], np.float32)
    host = sp.csr_array(dense)
    A = csr_array(host, queue=queue)
    for matrix in (host, A, dense, (host.data, host.indices, host.indptr)):
        wide = csr_array(matrix, shape=(2, 5), queue=queue)
        assert wide.shape == (2, 5)
        np.testing.assert_array_equal(wide @ np.arange(5, dtype=np.float32), host @ np.arange(3))
        np.testing.assert_array_equal(wide.T.toarray()[:3], dense.T)
        for shape in ((3, 3), (2, 2)):
            with pytest.raises(ValueError, match=r"^(shape|indptr|indices): "):
                csr_array(matrix, shape=shape, queue=queue)
    assert A.shape == (2, 3)
    v = csr_array(dense[0], queue=queue)
    assert csr_array(v, shape=(6,)).shape == (6,)
    for row in (csr_array(v, shape=(1, 3)), csr_array(dense[0], shape=(1, 3), queue=queue)):
        np.testing.assert_array_equal(row.toarray(), dense[:1])
    for cls, error in ((csr_array, TypeError), (clsparse_py.csc_array, ValueError), (clsparse_py.coo_array, TypeError)):
        with pytest.raises(error, match=r"^arg1: "):
            cls(np.array(3.0), queue=queue)
