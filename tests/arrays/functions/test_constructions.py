"""Functions around sparse arrays against SciPy's: formats, dtypes, values and errors."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from oracle import random_structure
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py._arrays.base import SparseArray
from clsparse_py._device.device import describe

#: Formats of SciPy's results, and those that ours have in their place.
ON_DEVICE = {"dia": "csr", "bsr": "csr"}


def host(
    dtype: str, shape: tuple[int, int], seed: int = 0, *, canonical: bool = True, index: type = np.int32
) -> scipy.sparse.csr_array:
    """Return a matrix of small whole numbers, some of them 0; unsorted and with duplicates unless it is canonical."""
    rng = np.random.default_rng(seed)
    indices, indptr = random_structure(rng.integers(0, 9, shape[0]) * (shape[1] > 0), shape[1], rng)
    values = rng.integers(-3, 4, indices.size) + (1j * rng.integers(-3, 4, indices.size) if dtype == "complex64" else 0)
    A = scipy.sparse.csr_array((values.astype(dtype), indices, indptr), shape=shape)
    if canonical:
        A.sum_duplicates()
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    return A


def same(actual: Any, wanted: Any, what: str = "") -> None:
    """Check that an array on the device is SciPy's: format, shape, dtype and values, and that its structure is valid."""
    assert isinstance(actual, SparseArray), what
    assert actual.format == ON_DEVICE.get(wanted.format, wanted.format), what
    assert actual.shape == wanted.shape, what
    assert actual.dtype == wanted.dtype, what
    result = actual.get()
    if result.format in ("csr", "csc"):
        result.check_format()
        assert (
            not actual.has_canonical_format
            or scipy.sparse.csr_array(
                (result.data, result.indices, result.indptr), shape=result.shape[:: 1 if result.format == "csr" else -1]
            ).has_canonical_format
        )
    np.testing.assert_array_equal(result.toarray(), wanted.toarray(), err_msg=what)


def on_device(value: Any, queue: cl.CommandQueue) -> Any:
    """Return SciPy's array of CSR, CSC or COO format on the device, and lists of them so."""
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(matrix, queue) for matrix in value)
    if not scipy.sparse.issparse(value):
        return value
    return getattr(clsparse_py, f"{value.format}_array")(value, queue=queue)


def attempt(call: Callable[[], Any]) -> tuple[Any, type[Exception] | None]:
    """Return a result, or the class of the error."""
    try:
        return call(), None
    except (ValueError, TypeError, IndexError) as error:
        return None, type(error)


def agree(name: str, operands: Any, queue: cl.CommandQueue, **named: Any) -> None:
    """Check that a function gives what SciPy's gives, or raises what that raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Of copies: SciPy's `permute_dims` changes its operand.
        wanted, failed = attempt(lambda: getattr(scipy.sparse, name)(*copy.deepcopy(operands), **named))
        if failed:
            with pytest.raises(failed):
                getattr(clsparse_py, name)(*on_device(operands, queue), **named)
            return
        if getattr(wanted, "dtype", np.dtype(bool)).name in ("float64", "complex128") and not describe(queue.device).fp64:
            return
        result = getattr(clsparse_py, name)(*on_device(operands, queue), **named)
    if named.get("format") == "bsr":
        assert (result.format, result.blocksize) == ("bsr", wanted.blocksize)
        np.testing.assert_array_equal(result.toarray(), wanted.toarray())
    elif named.get("format") in ("dia", "lil", "dok"):
        assert type(result) is type(wanted)
        np.testing.assert_array_equal(result.toarray(), wanted.toarray())
    else:
        same(result, wanted, f"{name} {named}")


CASES = (
    ("float32", True, np.int32), ("complex64", False, np.int64), ("bool", True, np.int64), ("int8", False, np.int32),
    ("float64", True, np.int32),
)  # fmt: skip


@pytest.mark.parametrize(("dtype", "canonical", "index"), CASES)
def test_stacks(queue: cl.CommandQueue, dtype: str, canonical: bool, index: type) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    A, B, tall, wide, none = (
        host(dtype, shape, i, canonical=canonical, index=index)
        for i, shape in enumerate(((30, 20), (30, 20), (7, 20), (30, 41), (0, 20)))
    )
    for blocks in (
        [A, B],
        [A, B, A],
        [A],
        [A, none.T.reshape(0, 20)],
        [A, wide],
        [A.tocsc(), B.tocsc()],
        [A.tocoo(), B],
        [A, A.toarray()],
    ):
        agree("hstack", (blocks,), queue)
    for blocks in ([A, B], [A, tall, none, A], [A], [A.tocsc(), tall.tocsc()], [A.tocoo(), tall.tocsc()], [A, wide]):
        agree("vstack", (blocks,), queue)
    agree("hstack", ([A, B],), queue, format="csc")
    agree("vstack", ([A, B],), queue, format="coo", dtype="float32")
    small = host("int16", (30, 5), 9)
    assert clsparse_py.hstack(on_device([A, small], queue)).dtype == scipy.sparse.hstack([A, small]).dtype
    for grid in ([[A, wide], [tall, None]], [[A, wide], [B, wide]], [[None, A], [wide, None]], [[A, None], [None, None]]):
        agree("block_array", (grid,), queue)
    turned = [[block.T for block in row] for row in ([A, tall.T.reshape(20, 7).T.tocsr().T], [A, A])]
    agree("block_array", (turned,), queue)
    for blocks in ([A, wide, tall], [A, 3, [1, 2]], [A.tocsc(), np.arange(6.0, dtype=np.float32).reshape(2, 3)], [none, A]):
        agree("block_diag", (blocks,), queue)
    agree("block_diag", ([A, wide],), queue, format="csr")


@pytest.mark.any_platform
def test_stacks_that_do_not_go_together(queue: cl.CommandQueue) -> None:
    A, B = host("float32", (3, 4)), host("float32", (2, 5))
    a, b = on_device([A, B], queue)
    for make, message in (
        (
            lambda: clsparse_py.vstack([a, b]),
            r"Got blocks\[1,0\].shape\[1\] == 5, expected 4: incompatible dimensions for axis 1",
        ),
        (
            lambda: clsparse_py.hstack([a, b]),
            r"Got blocks\[0,1\].shape\[0\] == 2, expected 3: Mismatching dimensions along axis 0",
        ),
        (
            lambda: clsparse_py.hstack([a.T, b.T]),
            r"Got blocks\[0,1\].shape\[0\] == 5, expected 4: incompatible dimensions for axis 0",
        ),
        (
            lambda: clsparse_py.vstack([a.T, b.T]),
            r"Got blocks\[1,0\].shape\[1\] == 2, expected 3: Mismatching dimensions along axis 1",
        ),
        (lambda: clsparse_py.block_array([[a, None], [b, None]]), r"Got blocks\[1,0\].shape\[1\] == 5, expected 4"),
        (lambda: clsparse_py.vstack([]), "^blocks must be 2-D"),
        (lambda: clsparse_py.block_array([a, a]), "^blocks must be 2-D"),
        (lambda: clsparse_py.block_array([[a], [a, a]]), "^blocks must be 2-D"),
        (lambda: clsparse_py.block_diag([]), "^mats: need at least one array"),
        (lambda: clsparse_py.block_diag([a, np.ones(3)]), r"^mats\[1\]: a dense array must have two dimensions"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    context = cl.Context([queue.device])  # beside its queue: quirk 9
    other = cl.CommandQueue(context)
    with pytest.raises(ValueError, match=r"blocks\[0,1\]: lives in another context"):
        clsparse_py.hstack([a, clsparse_py.csr_array(A, queue=other)])
    with pytest.raises(ValueError, match=r"^format: must be csr, csc"):
        clsparse_py.hstack([a, a], format="foo")


def test_a_stack_of_sorted_blocks_is_sorted(queue: cl.CommandQueue) -> None:
    A = on_device(host("float32", (30, 20)), queue)
    for C in (clsparse_py.hstack([A, A]), clsparse_py.vstack([A, A]), clsparse_py.kron(A, A, format="csr")):
        assert C.facts is not None
        assert C.facts.canonical
    mixed = on_device(host("float32", (30, 20), canonical=False), queue)
    assert not clsparse_py.hstack([A, mixed]).has_sorted_indices


@pytest.mark.parametrize(("dtype", "canonical", "index"), CASES)
def test_kronecker_products(queue: cl.CommandQueue, dtype: str, canonical: bool, index: type) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    A, B = host(dtype, (19, 7), canonical=canonical, index=index), host(dtype, (5, 11), 1, canonical=canonical)
    eye, full = scipy.sparse.eye_array(3, dtype=dtype, format="csr"), scipy.sparse.csr_array(np.ones((2, 3), dtype))
    pairs = [(A, B), (A, eye), (eye, A), (A, full), (A.tocsc(), B.tocoo()), (A, full.toarray())]
    pairs += [(A, scipy.sparse.csr_array((2, 3), dtype=dtype)), (scipy.sparse.csr_array((0, 3), dtype=dtype), B)]
    for pair in pairs:
        agree("kron", pair, queue)
    for form in ("csr", "csc", "coo"):
        agree("kron", (A, B), queue, format=form)
    vector = scipy.sparse.coo_array(np.array([0, 2, 0, 1], dtype))
    for pair in ((vector, vector), (vector, A), (A, vector)):
        agree("kron", pair, queue)
    square, other = host(dtype, (7, 7), canonical=canonical), host(dtype, (5, 5), 1, canonical=canonical)
    agree("kronsum", (square, other), queue)
    agree("kronsum", (square, other.tocsc()), queue, format="coo")
    for wrong in ((A, B), (square, A), (vector, square)):
        with pytest.raises(ValueError, match=r"^[AB](: kronsum requires 2D| is not square)"):
            clsparse_py.kronsum(*on_device(wrong, queue))
    with pytest.raises(ValueError, match=r"^B: must have one or two dimensions, is a scalar"):
        clsparse_py.kron(on_device(A, queue), 3)
    with pytest.raises(TypeError, match=r"^B: expected 2D array"):
        clsparse_py.kron(on_device(A, queue), np.ones((2, 2, 2)))


def test_rows_of_a_kronecker_product_that_are_cut_by_work_groups(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 3, 4000) * (rng.random(4000) < 0.2)
    lengths[1000] = 3000
    indices, indptr = random_structure(lengths, 5000, rng)
    long = scipy.sparse.csr_array((rng.integers(1, 9, indices.size).astype(np.float32), indices, indptr), shape=(4000, 5000))
    long.sum_duplicates()
    few = host("float32", (9, 4), 2)
    for pair in ((long, few), (few, long)):
        wanted = scipy.sparse.kron(*pair, format="csr")
        result = clsparse_py.kron(*on_device(pair, queue), format="csr").get()
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(result, part), getattr(wanted, part))
    wanted = scipy.sparse.hstack([long, long])
    assert (clsparse_py.hstack(on_device([long, long], queue)).get() != wanted).nnz == 0
    assert (clsparse_py.triu(on_device(long, queue), 300, format="csr").get() != scipy.sparse.triu(long, 300)).nnz == 0


def test_diagonals(queue: cl.CommandQueue) -> None:
    def compare(name: str, *operands: Any, **named: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            wanted, failed = attempt(lambda: getattr(scipy.sparse, name)(*operands, **named))
            if failed:
                with pytest.raises(failed):
                    getattr(clsparse_py, name)(*operands, queue=queue, **named)
                return
            result = getattr(clsparse_py, name)(*operands, queue=queue, **named)
        on = wanted.tocsr() if wanted.format == "dia" else wanted
        same(result, on, f"{name} {operands} {named}")
        assert result.nnz == on.nnz

    shapes = ((5, 5), (4, 7), (7, 4), (1, 3), (0, 0), (300, 300))
    for (m, n), k, form in itertools.product(shapes, (-3, -1, 0, 2), (None, "coo")):
        compare("eye_array", m, n, k=k, dtype="float32", format=form)
    compare("eye_array", 4, dtype=int, format="csc")
    values = np.arange(5, dtype=np.float32)  # one of them 0
    for operands, named in (
        ((values,), {}),
        (([values, values[1:], -values],), {"offsets": [0, 2, -3], "shape": (8, 5)}),
        (([1, values],), {"offsets": [1, 0], "shape": (5, 6), "dtype": "float32"}),
        (([1, -2, 1],), {"offsets": [1, 0, -1], "shape": (300, 300), "dtype": "int32"}),
        (([True, 2],), {"offsets": [1, 0], "shape": (3, 3), "dtype": None}),
        (([1j, 2],), {"offsets": [-1, 0], "shape": (3, 3), "dtype": "complex64"}),
        (([values, values],), {"offsets": [0, 0]}),
        (([values],), {"offsets": [9], "shape": (3, 3)}),
        (([values[:2]],), {"offsets": [0], "shape": (3, 3)}),
        (([values],), {"offsets": 0}),
        (([values],), {"offsets": [0, 1]}),
        (([],), {"offsets": []}),
        (([[]],), {"offsets": [0], "dtype": "float32"}),
    ):
        compare("diags_array", *operands, **named)
    on_it = cl_array.to_device(queue, values)
    result = clsparse_py.diags_array([on_it, 2, values[:3]], offsets=[0, -1, 2], shape=(5, 5), dtype="float32")
    assert result.queue == queue
    wanted = scipy.sparse.diags_array([values, 2, values[:3]], offsets=[0, -1, 2], shape=(5, 5), dtype="float32")
    np.testing.assert_array_equal(result.toarray(), wanted.toarray())


@pytest.mark.any_platform
def test_diagonals_of_integers_become_floats_with_a_warning_as_in_scipy(queue: cl.CommandQueue) -> None:
    if not describe(queue.device).fp64:
        with pytest.raises(TypeError, match=r"^dtype: float64 needs double precision"):
            clsparse_py.eye_array(3, queue=queue)
        return
    with pytest.warns(FutureWarning, match=r"int64 become float64"):
        assert clsparse_py.diags_array([1, 2, 3], queue=queue).dtype == np.float64


@pytest.mark.parametrize(("dtype", "canonical", "index"), CASES)
def test_triangles_and_entries(queue: cl.CommandQueue, dtype: str, canonical: bool, index: type) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    for shape in ((30, 20), (20, 30), (0, 4), (4, 0), (1, 1)):
        A = host(dtype, shape, canonical=canonical, index=index)
        for k in (-40, -3, 0, 1.5, 2, 40):
            agree("tril", (A, k), queue)
            agree("triu", (A.tocsc(), k), queue, format="csr")
        a = on_device(A, queue)
        for result, wanted in zip(clsparse_py.find(a), scipy.sparse.find(A.copy()), strict=True):
            np.testing.assert_array_equal(result, wanted)
            assert result.dtype == wanted.dtype or result.dtype.kind == "i"
    agree("tril", (A.tocoo(),), queue, format="csc")
    with pytest.raises(ValueError, match=r"^A: must have two dimensions, has 1"):
        clsparse_py.tril(clsparse_py.coo_array(np.ones(3, dtype), queue=queue))


@pytest.mark.any_platform
def test_axes(queue: cl.CommandQueue) -> None:
    A = host("float32", (5, 8))
    a, line = on_device(A, queue), scipy.sparse.coo_array(np.arange(4, dtype=np.float32))
    on_line = clsparse_py.coo_array(line, queue=queue)
    for form in (A, A.tocsc(), A.tocoo()):
        for named in ({}, {"axes": (1, 0)}, {"axes": (-1, 0)}, {"axes": (0, 1)}, {"axes": (0, 1), "copy": True}):
            agree("permute_dims", (form,), queue, **named)
        for axes in ((0, 1), (1, -2), (0, 0)):
            agree("swapaxes", (form, *axes), queue)
        # Functions of SciPy 1.18.
        ours = on_device(form, queue)
        for result in (clsparse_py.matrix_transpose(ours), clsparse_py.matrix_transpose(form), ours.mT):
            assert isinstance(result, clsparse_py.csr_array | clsparse_py.csc_array | clsparse_py.coo_array)
            same(result, form.T)
    with pytest.raises(ValueError, match=r"^A: must have two dimensions, has 1"):
        clsparse_py.matrix_transpose(on_line)
    assert clsparse_py.permute_dims(a, (0, 1)) is a
    # More dimensions than there are on the device.
    solid = clsparse_py.expand_dims(a, axis=1)
    assert isinstance(solid, scipy.sparse.coo_array)
    np.testing.assert_array_equal(solid.toarray(), scipy.sparse.expand_dims(A, axis=1).toarray())
    assert clsparse_py.swapaxes(solid, 0, 2).shape == (8, 1, 5)
    np.testing.assert_array_equal(clsparse_py.matrix_transpose(solid).toarray(), solid.toarray().swapaxes(1, 2))
    for axis in (0, 1, -1, -2):
        same(clsparse_py.expand_dims(on_line, axis=axis), scipy.sparse.expand_dims(line, axis=axis))
    for call, error, message in (
        (lambda: clsparse_py.permute_dims(a, (0,)), ValueError, "^Incorrect number of axes: 1 instead of 2"),
        (lambda: clsparse_py.permute_dims(a, (0, 0)), ValueError, "duplicate value in axis"),
        (lambda: clsparse_py.permute_dims(a, (0, 2)), ValueError, "axis out of range"),
        (lambda: clsparse_py.permute_dims(a, (0, 1.5)), TypeError, "axis must be an integer"),
        (lambda: clsparse_py.swapaxes(a, 0, 2), ValueError, "^Invalid axis: 2 is out of bounds"),
        (lambda: clsparse_py.expand_dims(on_line, axis=3), ValueError, "^Invalid axis 3 for N=1"),
        (lambda: clsparse_py.expand_dims(on_line, axis=0.5), ValueError, "^Invalid axis 0.5. Must be an integer"),
        (lambda: clsparse_py.swapaxes(a, 0.5, 1), ValueError, "^Invalid axis"),
        (lambda: clsparse_py.permute_dims(a, {0, 1}), TypeError, "axis must be an integer/tuple"),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.any_platform
def test_random_arrays_are_scipys_for_a_seed(queue: cl.CommandQueue) -> None:
    for shape, named in (
        ((40, 30), {"density": 0.1, "dtype": "float32"}),
        ((40, 30), {"density": 0.1, "dtype": "int8", "format": "csr"}),
        ((40, 30), {"dtype": "complex64", "format": "csc"}),
        ((90,), {"density": 0.2, "dtype": "float32"}),
        ((5, 5), {"density": 0.5, "data_sampler": lambda size: np.arange(size, dtype=np.float32), "dtype": np.float32}),
    ):
        same(
            clsparse_py.random_array(shape, rng=np.random.default_rng(7), queue=queue, **named),
            scipy.sparse.random_array(shape, rng=np.random.default_rng(7), **named),
        )
    with pytest.raises(ValueError, match=r"density"):
        clsparse_py.random_array((3, 3), density=2, queue=queue)
    solid = clsparse_py.random_array((3, 4, 5), density=0.5, random_state=7)
    assert isinstance(solid, scipy.sparse.coo_array)
    np.testing.assert_array_equal(solid.toarray(), scipy.sparse.random_array((3, 4, 5), density=0.5, random_state=7).toarray())


@pytest.mark.any_platform
def test_kinds(queue: cl.CommandQueue) -> None:
    a = on_device(host("float32", (3, 4)), queue)
    for value in (a, a.T, a.tocoo(), scipy.sparse.eye_array(3)):
        assert clsparse_py.issparse(value)
        # As for SciPy's own arrays.
        assert not clsparse_py.isspmatrix_csr(value)
    assert not clsparse_py.issparse(a.data)
    assert all(isinstance(matrix, clsparse_py.sparray) for matrix in (a, a.T, scipy.sparse.eye_array(3)))
    assert not isinstance(a.data, clsparse_py.sparray)
    assert issubclass(clsparse_py.csr_array, clsparse_py.sparray)


@pytest.mark.any_platform
def test_older_names_say_what_they_are_today() -> None:
    for name, today in (("csr_matrix", "csr_array"), ("eye", "eye_array"), ("bmat", "block_array"), ("random", "random_array")):
        with pytest.raises(AttributeError, match=rf"^module 'clsparse_py' has no '{name}'.*use clsparse_py.{today}(\(.*\))?$"):
            getattr(clsparse_py, name)
    with pytest.raises(AttributeError, match=r"^module 'clsparse_py' has no attribute 'csr_rays'$"):
        clsparse_py.csr_rays  # noqa: B018


@pytest.mark.any_platform
def test_index_arrays_of_another_dtype(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.random_array((9, 8), density=0.3, rng=0, dtype=np.float32)
    wide = np.array([5, 2**40])
    for form in ("csr", "csc", "coo"):
        A = getattr(clsparse_py, f"{form}_array")(host, queue=queue)
        for dtype in (np.int32, np.int64):
            result, wanted = (
                library.safely_cast_index_arrays(of, dtype) for library, of in ((clsparse_py, A), (scipy.sparse, A.get()))
            )
            for ours, theirs in zip(result, wanted, strict=True):
                assert ours.dtype == dtype
                np.testing.assert_array_equal(ours.get(), theirs)
            of_own = A.coords if form == "coo" else (A.indices, A.indptr)
            for array in (of_own, of_own[0]):
                assert clsparse_py.get_index_dtype(array, maxval=7) == A._index_dtype()
    many = clsparse_py.coo_array((np.ones(2, np.float32), (wide, wide)), queue=queue)
    with pytest.raises(ValueError, match=r"^coords\[0\]: values too large for int8s"):
        clsparse_py.safely_cast_index_arrays(many, np.int8, "int8s")
    assert clsparse_py.get_index_dtype(many.coords) == np.int64
    assert clsparse_py.get_index_dtype(many.coords, check_contents=True) == np.int64
    np.testing.assert_array_equal(clsparse_py.safely_cast_index_arrays(host)[0], host.coords[0])


@pytest.mark.any_platform
def test_stacks_by_way_of_coordinates_have_no_duplicates(queue: cl.CommandQueue) -> None:
    R = scipy.sparse.csr_array((np.float32([1, 2, 3]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    C = scipy.sparse.csc_array((R.data, R.indices, R.indptr), shape=(2, 2))
    for form, name, blocks in itertools.product((None, "csr", "csc"), ("vstack", "hstack"), ((R, R), (C, C), (R, C))):
        wanted = getattr(scipy.sparse, name)(blocks, format=form)
        result = getattr(clsparse_py, name)(
            [getattr(clsparse_py, f"{block.format}_array")(block, queue=queue) for block in blocks], form
        )
        assert (result.format, result.nnz) == (wanted.format, wanted.nnz)
        np.testing.assert_array_equal(result.toarray(), wanted.toarray())
