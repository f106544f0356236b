"""`csr_array`, `csc_array` and `coo_array`: conversions, products, one dimension, copies and attributes, against SciPy."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array
from scipy.sparse.linalg import LinearOperator

import clsparse_py
from clsparse_py import HostFallbackWarning, coo_array, csc_array, csr_array
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._ground import errors

FORMATS = {"csr": csr_array, "csc": csc_array, "coo": coo_array}
SHAPE = (13, 9)


def host_matrix(form: str, kind: str = "canonical", dtype: Any = np.float32, index: Any = np.int32, shape: Any = SHAPE) -> Any:
    """Return a matrix of SciPy: with explicit zeros; unsorted, with duplicates; without entries."""
    rng = np.random.default_rng(len(kind))
    n = 0 if kind == "empty" else 40
    coordinates = rng.integers(0, shape[0], n), rng.integers(0, shape[1], n)
    values = rng.integers(0, 5, n).astype(dtype) * (2j if np.dtype(dtype).kind == "c" else 1)
    made = sp.coo_array((values.astype(dtype), coordinates), shape=shape)
    if kind != "unsorted with duplicates":
        made.sum_duplicates()
    if form == "coo":
        result = made
    else:
        # SciPy's own conversions add duplicates up.
        major = coordinates if kind == "unsorted with duplicates" else made.coords
        order = np.argsort(major[form == "csc"], kind="stable")
        lengths = np.bincount(major[form == "csc"], minlength=shape[form == "csc"])
        parts = made.data[order], major[form == "csr"][order], np.concatenate(([0], np.cumsum(lengths)))
        result = getattr(sp, f"{form}_array")(parts, shape=shape)
    if form == "coo":
        result.coords = tuple(coord.astype(index) for coord in result.coords)
    else:
        result.indices, result.indptr = result.indices.astype(index), result.indptr.astype(index)
    return result


KINDS = ("canonical", "unsorted with duplicates", "empty")


def assert_same(result: Any, wanted: Any, *, exactly: bool = True) -> None:
    """Compare with a result of SciPy's: format, dtypes, values."""
    if not sp.issparse(wanted):
        np.testing.assert_allclose(result, wanted, rtol=1e-5)
        assert np.asarray(result).dtype == np.asarray(wanted).dtype
        return
    assert isinstance(result, FORMATS[wanted.format]), (type(result), type(wanted))
    assert (result.format, result.shape, result.dtype) == (wanted.format, wanted.shape, wanted.dtype)
    host = result.get()
    assert type(host) is type(wanted)
    np.testing.assert_allclose(host.toarray(), wanted.toarray(), rtol=1e-5)
    if exactly:
        assert result.nnz == wanted.nnz
        for name in ("indices", "indptr", "coords"):
            if hasattr(wanted, name):
                np.testing.assert_array_equal(getattr(host, name), getattr(wanted, name))
                assert np.asarray(getattr(host, name)).dtype == np.asarray(getattr(wanted, name)).dtype


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", KINDS)
def test_conversions(queue: cl.CommandQueue, kind: str, index: Any) -> None:
    for form, dtype in zip(FORMATS, (np.float32, np.complex64, np.int8), strict=True):
        host = host_matrix(form, kind, dtype, index)
        A = FORMATS[form](host, queue=queue)
        assert_same(A, host)
        assert A.queue is queue
        for to, cls in FORMATS.items():
            wanted = host.copy().asformat(to)
            for result in (A.asformat(to), getattr(A, f"to{to}")(copy=True), cls(A), cls(host, queue=queue)):
                assert_same(result, wanted, exactly=to != "coo")
                if to == "coo" and form != "coo":
                    np.testing.assert_array_equal(result.get().coords, wanted.coords)
        assert A.asformat(form) is A
        assert A.asformat(None) is A
        assert getattr(A, f"to{form}")(copy=False) is A
        assert A.asformat(form, copy=True).data is not A.data
        np.testing.assert_array_equal(A.toarray(order="F"), host.toarray())
        assert A.toarray(order="F").flags.f_contiguous
        out = np.ones(SHAPE, dtype)
        assert A.todense(out=out) is out
        np.testing.assert_array_equal(out, host.toarray())
        on_device = cl_array.to_device(queue, np.ones(SHAPE, dtype))
        assert A.toarray(out=on_device) is on_device
        np.testing.assert_array_equal(on_device.get(), host.toarray())


def test_constructors(queue: cl.CommandQueue) -> None:
    dense = host_matrix("csr").toarray()
    coordinates = np.nonzero(dense)
    values = dense[coordinates]
    for form, cls in FORMATS.items():
        scipys = getattr(sp, f"{form}_array")
        for arg1, options in (
            (dense, {}),
            (cl_array.to_device(queue, dense), {}),
            (dense.tolist(), {"dtype": np.float32}),
            ((values, coordinates), {}),
            ((values, np.stack(coordinates)), {"shape": (20, 30)}),
            (
                (values, tuple(cl_array.to_device(queue, coordinate.astype(np.int32)) for coordinate in coordinates)),
                {"shape": SHAPE},
            ),
            ((values, cl_array.to_device(queue, np.stack(coordinates))), {"shape": SHAPE}),
            ((values, cl_array.to_device(queue, np.stack(coordinates, axis=1)).T), {"shape": SHAPE}),
            ((4, 0), {"dtype": np.int8}),
            (sp.dia_array(dense[:9]), {}),
            (sp.lil_matrix(dense), {"dtype": np.complex64}),
        ):
            given = arg1
            if isinstance(arg1, cl_array.Array):
                given = arg1.get()
            elif isinstance(arg1, tuple) and isinstance(arg1[1], cl_array.Array):
                given = arg1[0], coordinates
            elif isinstance(arg1, tuple) and isinstance(arg1[1], tuple):
                given = arg1[0], tuple(array.get() if isinstance(array, cl_array.Array) else array for array in arg1[1])
            assert_same(cls(arg1, queue=queue, **options), scipys(given, **options), exactly=form != "coo")
        for view in (lambda A: A[::-1, ::2], lambda A: A.T, lambda A: A[3:, 1:4], lambda A: A[:0], lambda A: A[:, :0]):
            result = cls(view(cl_array.to_device(queue, dense)))
            assert_same(result, scipys(view(dense)), exactly=form != "coo")
    parts = [
        cl_array.to_device(queue, np.asarray(array))
        for array in (dense[0], np.arange(9, dtype=np.int32), np.array([0, 9], np.int32))
    ]
    for cls, shape in ((csr_array, (1, 9)), (csc_array, (9, 1))):
        A = cls(tuple(parts), shape=shape)
        assert (A.data is parts[0], A.indices is parts[1], A.shape) == (True, True, shape)
        assert cls(tuple(parts), shape=shape, copy=True).data is not parts[0]
    O = coo_array((parts[0], (parts[1], parts[1])), shape=(9, 9))  # noqa: E741 - COO
    assert (O.data is parts[0], O.row is parts[1]) == (True, True)


@pytest.mark.parametrize(
    ("form", "arg1", "options", "error", "message"),
    [
        ("coo", ([1.0], ([5], [0])), {"shape": (3, 3)}, ValueError, r"^row: must lie in \[0, 3\), 1 of 1 do not"),
        ("csc", ([1.0], ([5], [0])), {"shape": (3, 3)}, ValueError, r"^row: must lie in \[0, 3\), 1 of 1 do not"),
        ("coo", ([1.0], ([0], [-1])), {}, ValueError, r"^col: must lie in \[0, n\), 1 of 1 do not"),
        ("coo", ([1.0], ([0, 1], [1])), {}, ValueError, r"^row: must have as many entries as data, has 2, not 1"),
        ("coo", ([], ([], [])), {}, ValueError, r"^shape: cannot be told from arrays without entries"),
        ("coo", ([1.0], ([0], [1])), {"shape": (5,)}, ValueError, r"^shape: must have 2 lengths"),
        ("coo", ([1.0], [0], [0, 1]), {}, ValueError, r"^arg1: a tuple must be \(data, \(row, col\)\)"),
        ("coo", ([1.0], ([0.5], [0])), {}, TypeError, r"^row: must be integers, is float64"),
        ("coo", np.ones((2, 2, 2)), {}, ValueError, r"^arg1: a dense array must have one or two dimensions, has 3"),
        ("csc", [1.0, 2.0], {}, ValueError, r"^arg1: a csc_array has two dimensions, not one"),
        ("csc", (3,), {}, ValueError, r"^arg1: a csc_array has two dimensions, not one"),
        ("csc", np.ones((2, 2, 2)), {}, ValueError, r"^arg1: a dense array must have two dimensions, has 3"),
        ("csr", 3, {}, ValueError, r"^arg1: must be a sparse matrix, a dense array or a tuple of arrays, is 3"),
        ("csr", (), {}, ValueError, r"^arg1: a tuple must be"),
        ("csr", (3.0, 3.7), {}, (TypeError, ValueError), "^arg1: "),
        ("csr", np.eye(2), {"shape": (3.0, 3.7)}, TypeError, r"^shape: must be two integers"),
        ("csr", np.eye(2), {"dtype": np.float16}, (TypeError, ValueError), r"^dtype: dtype float16 is not supported"),
        ("csr", np.eye(2), {"shape": (3, 3)}, ValueError, r"^shape: \(3, 3\) differs from that of arg1, \(2, 2\)"),
    ],
)  # fmt: skip
def test_bad_input_of_formats(
    queue: cl.CommandQueue, form: str, arg1: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        FORMATS[form](arg1, queue=queue, **{"dtype": np.float32, **options} if message else options)


@pytest.mark.parametrize("of_host", [np.float16, np.longdouble])
def test_values_that_kernels_do_not_take_are_converted_for_a_dtype(queue: cl.CommandQueue, of_host: Any) -> None:
    values, places = np.array([0.5, 2, -3], of_host), np.arange(3)
    tuples = (values, (places, places)), (values, places, np.arange(4))
    for form, arg1 in [
        *((form, arg1) for form in ("csr", "csc") for arg1 in tuples),
        ("coo", tuples[0]),
        *((form, np.diag(values)) for form in FORMATS),
    ]:
        result = FORMATS[form](arg1, dtype=np.float32, queue=queue)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result.toarray(), np.diag([0.5, 2, -3]))
        name = "data" if isinstance(arg1, tuple) else "arg1"
        with pytest.raises(TypeError, match=f"^{name}: dtype {np.dtype(of_host)} is not supported"):
            FORMATS[form](arg1, queue=queue)
    on_device = cl_array.to_device(queue, values.astype(np.float16)), *(cl_array.to_device(queue, part) for part in tuples[1][1:])
    for arg1 in (on_device, (on_device[0], (on_device[1], on_device[1]))):
        with pytest.raises(TypeError, match=r"^data: dtype float16 is not supported"):
            csr_array(arg1, dtype=np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_formats(queue: cl.CommandQueue, kind: str) -> None:
    hosts = {form: host_matrix(form, kind) for form in FORMATS}
    squares = {form: host_matrix(form, kind, shape=(9, 9)) for form in FORMATS}
    x, X = np.arange(9, dtype=np.float32), np.ones((9, 4), np.float32)
    for form, host in hosts.items():
        A = FORMATS[form](host, queue=queue)
        assert_same(A @ x, host @ x)
        assert_same(A @ X, host @ X)
        assert_same(X.T @ A.T, X.T @ host.T)
        assert_same(A.T @ np.ones(13, np.float32), host.T @ np.ones(13, np.float32))
        assert isinstance(A @ cl_array.to_device(queue, x), cl_array.Array)
        assert_same((cl_array.to_device(queue, x) @ A.T).get(), x @ host.T)
        for other, right in squares.items():
            B = FORMATS[other](right, queue=queue)
            wanted = host @ right
            for result in (A @ B, A @ right, host @ B, getattr(sp, f"{form}_matrix")(host) * B):
                assert_same(result, wanted, exactly=False)
        for other, right in hosts.items():
            B = FORMATS[other](right, queue=queue)
            for operate in (operator.add, operator.sub, operator.mul, operator.lt, operator.ne):
                wanted = operate(host.copy(), right.copy())
                for result in (operate(A, B), operate(A, right)):
                    assert_same(result, wanted, exactly=False)
            assert_same(host - B, host.copy() - right.copy(), exactly=False)
            with np.errstate(all="ignore"):
                assert_same(host / B, host / right)


@pytest.mark.filterwarnings("ignore:Comparing a sparse matrix with nan")
def test_operations_of_every_format(queue: cl.CommandQueue) -> None:
    def reductions(A: Any) -> list[Any]:
        along = [getattr(A, name)(axis=axis) for name in ("sum", "mean", "count_nonzero") for axis in (None, 0, 1, -1, -2)]
        along += [A.sum(axis=axis) for axis in ((0,), (-1,), (1, 0))]
        return [*along, A.diagonal(), A.diagonal(-2), A.diagonal(3), A.trace(1), *A.T.sum(axis=1)]

    entrywise = (
        operator.neg, abs, lambda A: A * np.float32(2), lambda A: np.float32(3) * A, lambda A: A.conj(), lambda A: A.real,
        lambda A: A.imag, lambda A: A.T, lambda A: A.transpose(copy=True), lambda A: A.copy(), lambda A: A.astype(np.int16),
        lambda A: A.astype(np.float32), lambda A: np.negative(A), lambda A: np.abs(A), lambda A: np.multiply(2, A),
        lambda A: np.add(A, A), lambda A: A == np.nan, lambda A: A != np.nan,
        lambda A: A.reshape(9, 13), lambda A: A.reshape((9, -1), order="F"), lambda A: A.reshape(-1), lambda A: A.reshape(13, 9),
        lambda A: A.T.reshape(1, -1), lambda A: A.reshape(-3, 39), lambda A: A.T.reshape(9, 13, copy=True),
    )  # fmt: skip
    dense = np.arange(13 * 9, dtype=np.float32).reshape(SHAPE)
    for form in FORMATS:
        for kind in KINDS:
            host = host_matrix(form, kind)
            A = FORMATS[form](host, queue=queue)
            for operate in entrywise:
                assert_same(operate(A), operate(host.copy()), exactly=False)
            for result, wanted in zip(reductions(A), reductions(host.copy()), strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-5)
            for result, wanted in zip(A.nonzero(), host.nonzero(), strict=True):
                np.testing.assert_array_equal(np.sort(result), np.sort(wanted))
            for operate, function in ((operator.add, np.add), (operator.sub, np.subtract), (operator.eq, np.equal)):
                for by in (operate, function):
                    assert_same(by(A, dense), operate(host, dense))
                    assert_same(by(dense, A), operate(dense, host))
            target = dense.copy()
            target += A
            product = host_product = target
            product *= A
            host_product *= host
            assert_same(product, host_product, exactly=False)
            whole = dense.astype(np.int64)
            whole += A
            assert whole.dtype == np.float64
            square = dense
            square @= A.T
            np.testing.assert_allclose(square, dense @ host.T.toarray())
            row = dense[0].copy()
            row @= (A.T @ A).tocsr()
            np.testing.assert_allclose(row, dense[0] @ (host.T @ host).toarray(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_sums_of_duplicates(queue: cl.CommandQueue, dtype: str) -> None:
    for form in FORMATS:
        host = host_matrix(form, "unsorted with duplicates", dtype)
        host.data[:] = host.data.astype(bool) * host.dtype.type(100)
        A = FORMATS[form](host, queue=queue)
        for axis in (None, 0, 1):
            np.testing.assert_allclose(A.sum(axis=axis), host.copy().sum(axis=axis), rtol=1e-6)
            if describe(queue.device).fp64:
                np.testing.assert_allclose(A.mean(axis=axis), host.copy().mean(axis=axis), rtol=1e-6)
        # In the dtype of the result, not in that of the values.
        for operate in (lambda M: M @ np.ones(M.shape[1], np.float32), lambda M: np.ones((2, M.shape[0]), np.float32) @ M):
            np.testing.assert_allclose(operate(A), operate(host.copy()), rtol=1e-6)
        if form == "coo":
            dense = np.ones(host.shape, np.float32)
            np.testing.assert_allclose(A + dense, host.copy() + dense, rtol=1e-6)


def test_shapes_without_places(queue: cl.CommandQueue) -> None:
    operations = (
        lambda A: A.tocsr(), lambda A: A.tocsc(), lambda A: A.tocoo(), lambda A: A.T, lambda A: A + A, lambda A: A @ A.T,
        lambda A: A.T @ A, lambda A: -A, lambda A: A.reshape(A.shape[::-1]), lambda A: A.copy(), lambda A: A.sum(axis=0),
        lambda A: A @ np.ones(A.shape[1], np.float32), lambda A: np.ones((2, A.shape[0]), np.float32) @ A, lambda A: A.toarray(),
    )  # fmt: skip
    for shape in ((0, 5), (5, 0), (0, 0)):
        for form in FORMATS:
            host = getattr(sp, f"{form}_array")(shape, dtype=np.float32)
            A = FORMATS[form](host, queue=queue)
            for operate in operations:
                assert_same(operate(A), operate(host), exactly=False)
    with pytest.raises(ValueError, match=r"^shape: .* has more places than 63 bits number"):
        coo_array((1 << 40, 1 << 40), dtype=np.float32, queue=queue).reshape(1 << 39, 1 << 41)


def test_methods_in_place(queue: cl.CommandQueue) -> None:
    for form in FORMATS:
        for method in ("sum_duplicates", "eliminate_zeros", "sort_indices", "prune", "check_format"):
            host = host_matrix(form, "unsorted with duplicates")
            if not hasattr(host, method):
                continue
            A = FORMATS[form](host, queue=queue)
            data = A.data
            assert getattr(A, method)() is None
            getattr(host, method)()
            assert_same(A, host)
            np.testing.assert_array_equal(A.data.get(), host.data)
            assert A.has_canonical_format == host.has_canonical_format
            assert data.size == 40, "what a caller gave is not written to"
    for cls in (csr_array, csc_array):
        A = cls(host_matrix(cls.__name__[:3], "unsorted with duplicates"), queue=queue)
        assert not A.has_sorted_indices
        n = A.nnz
        A.has_canonical_format = True
        assert A.has_sorted_indices
        A.sum_duplicates()
        assert A.nnz == n, "who says so is believed"
        A.has_sorted_indices = False
        assert not A.has_canonical_format
        A.sum_duplicates()
        assert A.nnz < n


def test_copies_and_pickles(queue: cl.CommandQueue) -> None:
    for form in FORMATS:
        for shape in (SHAPE, (30,)):
            if form == "csc" and len(shape) == 1:
                continue
            host = host_matrix(form, "unsorted with duplicates", index=np.int64) if shape == SHAPE else one_dimensional(form)
            A = FORMATS[form](host, queue=queue)
            for result in (A.copy(), copy.deepcopy(A), copy.copy(A), pickle.loads(pickle.dumps(A))):
                assert_same(result, host)
                assert result.has_canonical_format == A.has_canonical_format
                np.testing.assert_array_equal(result.data.get(), host.data)
            assert copy.copy(A).data is A.data
            assert copy.deepcopy(A).data is not A.data
            assert pickle.loads(pickle.dumps(A)).queue is clsparse_py.default_queue()


@pytest.mark.any_platform
def test_attributes_of_formats(queue: cl.CommandQueue) -> None:
    for form in FORMATS:
        host = host_matrix(form)
        A = FORMATS[form](host, queue=queue)
        for name in ("format", "shape", "ndim", "nnz", "size", "dtype", "maxprint"):
            assert getattr(A, name) == getattr(host, name), name
        assert str(A) == str(host)
        A.maxprint = 3
        assert str(A) == str(FORMATS[form](host, queue=queue, maxprint=3)) == str(type(host)(host, maxprint=3))
        A.maxprint = 50
        for dense in ("array", "dense"):
            np.testing.assert_array_equal(A.asformat(dense), host.toarray())
        for name, value in (("shape", (9, 13)), ("queue", None), ("nnz", 3), ("T", None), ("format", "csc")):
            with pytest.raises(AttributeError):
                setattr(A, name, value)
        for use, error in ((lambda: len(A), TypeError), (lambda: bool(A), ValueError), (lambda: hash(A), TypeError)):  # noqa: B023
            with pytest.raises(error):
                use()
        for use, named in (
            (lambda: np.hypot(A, A), f"np.hypot: {form}_array and {form}_array"),  # noqa: B023
            (lambda: np.floor_divide(np.ones((13, 9)), A), f"np.floor_divide: ndarray and {form}_array"),  # noqa: B023
            (lambda: np.multiply.reduce(A), f"np.multiply.reduce: {form}_array"),  # noqa: B023
            (lambda: np.sqrt(A, dtype="f4"), f"np.sqrt with dtype: {form}_array"),  # noqa: B023
        ):
            with pytest.raises(TypeError, match=f"^unsupported operand types for {named}; see A.get"):
                use()
        with pytest.raises(ValueError, match=r"^format: must be csr"):
            A.asformat("xyz")
        for axes in (0, (0, 0), (0, 1, 2)):
            with pytest.raises(ValueError, match=r"^axes: "):
                A.transpose(axes)
        for shape in ((-1, -1), (5, 5), (2, -1), (-3, -38)):
            with pytest.raises(ValueError, match=r"^shape: "):
                A.reshape(shape)
        assert repr(A).startswith(f"<{form}_array of 13 x 9, {host.nnz} stored entries, float32 values, int32 indices, on ")
        assert f"<caption>{form}_array</caption>" in A._repr_html_()
        for x in (np.array(2.0), np.ones((3, 2, 2)), "abc", 3):
            for operand in (lambda: A @ x, lambda: x @ A):  # noqa: B023
                with pytest.raises(ValueError, match=r"^x: must be an array of one or two dimensions"):
                    operand()
        with pytest.raises(ValueError, match=r"^out: "):
            A.toarray(out=cl_array.zeros(queue, (9, 13), np.float32))


@pytest.mark.any_platform
def test_others_get_their_turn(queue: cl.CommandQueue) -> None:
    class Other:
        def __rmatmul__(self, other: Any) -> str:
            return f"rmatmul {other.format}"

        __radd__ = __rmul__ = __rsub__ = __rtruediv__ = __rmatmul__

    for form in FORMATS:
        A = FORMATS[form](host_matrix(form), queue=queue)
        for operate in (operator.matmul, operator.add, operator.mul, operator.sub, operator.truediv):
            assert operate(A, Other()) == f"rmatmul {form}"
        L = LinearOperator((9, 9), matvec=lambda x: 2 * x, dtype=np.float32)
        np.testing.assert_allclose((A @ L) @ np.ones(9), 2 * (A @ np.ones(9, np.float32)))
        with pytest.raises(TypeError):
            np.arctan2(A, A)
        with pytest.raises(TypeError):
            np.add.reduce(A)


@pytest.mark.any_platform
def test_the_host_makes_other_formats(queue: cl.CommandQueue) -> None:
    host = host_matrix("csr")
    errors.warn_of_fallback.cache_clear()
    for form in ("dia", "lil", "dok"):
        with pytest.warns(HostFallbackWarning, match=rf"^A\.to{form} runs on the host"):
            result = csr_array(host, queue=queue).asformat(form)
        assert result.format == form
        np.testing.assert_array_equal(result.toarray(), host.toarray())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = getattr(csc_array(host, queue=queue), f"to{form}")()
        np.testing.assert_array_equal(result.toarray(), host.toarray())
        assert_same(csr_array(host, queue=queue) @ result.T, host @ host.T, exactly=False)


def one_dimensional(form: str, n: int = 30) -> Any:
    values = np.random.default_rng(n).integers(0, 3, n).astype(np.float32)
    return getattr(sp, f"{form}_array")(values)


def test_one_dimension(queue: cl.CommandQueue) -> None:
    square = host_matrix("csr", shape=(30, 30))
    B, X = csr_array(square, queue=queue), np.ones((30, 4), np.float32)
    for form in ("csr", "coo"):
        host = one_dimensional(form)
        v, cls = FORMATS[form](host, queue=queue), FORMATS[form]
        assert_same(v, host)
        assert isinstance(v, cls)
        for result in (
            cls(host.toarray().tolist(), dtype=np.float32, queue=queue),
            cls(host.toarray(), queue=queue),
            cls(cl_array.to_device(queue, host.toarray())),
            cls((host.data, (host.tocoo().coords[0],)), shape=(30,), queue=queue),
            cls(v),
        ):
            assert_same(result, host, exactly=False)
        assert_same(cls((7,), dtype=np.float32, queue=queue), type(host)((7,), dtype=np.float32))
        assert_same(v.tocsr(), host.tocsr())
        assert_same(v.tocoo(), host.tocoo())
        assert (v.T is v, v.ndim, len(v.nonzero())) == (True, 1, 1)
        np.testing.assert_array_equal(v.nonzero()[0], host.nonzero()[0])
        for operate in (
            operator.neg, abs, lambda A: A * np.float32(2), lambda A: A.astype(np.int8), lambda A: A.reshape(5, 6),
            lambda A: A + A, lambda A: A - A.tocoo(), lambda A: A * A, lambda A: A != A.tocsr() * 2,
            lambda A: A.reshape(30), lambda A: A.copy(), lambda A: A.maximum(A.tocoo()), lambda A: A.conj(),
        ):  # fmt: skip
            assert_same(operate(v), operate(host), exactly=False)
        for function in ("sum", "mean", "count_nonzero"):
            for axis in (None, 0, -1):
                # SciPy's own coo_array does not count along an axis if it has one dimension.
                wanted = getattr(host.tocsr(), function)(axis=axis)
                np.testing.assert_allclose(getattr(v, function)(axis=axis), wanted, rtol=1e-6)
            for axis, error in ((1, ValueError), ((0, 0), ValueError), (0.5, TypeError), ("x", TypeError)):
                with pytest.raises(error, match=r"^axis: "):
                    getattr(v, function)(axis=axis)
        for result, wanted in (
            (v @ X[:, 0], host @ X[:, 0]), (v @ X, host @ X), (X.T @ v, X.T @ host), (v @ v, host @ host), (B @ v, square @ host),
            (v @ B, host @ square), (v @ square, host @ square), (square @ v, square @ host), (B.T @ v, square.T @ host),
            (B.tocoo() @ v, square.tocoo() @ host), (B @ host, square @ host), (X.T[0] @ v, X.T[0] @ host),
        ):  # fmt: skip
            assert_same(result, wanted, exactly=False)
        assert_same((v @ cl_array.to_device(queue, X)).get(), host @ X)
        for use in (v.tocsc, v.diagonal, v.trace, lambda: v + B, lambda: v @ X.T, v.tobsr):  # noqa: B023
            with pytest.raises(ValueError):  # noqa: PT011 - each its own
                use()
        if form == "csr":
            np.testing.assert_array_equal(v.indptr.get(), host.indptr)
            with pytest.raises(ValueError, match=r"^A: must have two dimensions, has 1"):
                clsparse_py.spmv(v, X[:, 0])
        else:
            np.testing.assert_array_equal(v.row.get(), host.row)


@pytest.mark.any_platform
def test_classes_may_be_derived_from(queue: cl.CommandQueue) -> None:
    class Mine(csr_array):
        pass

    A = Mine(host_matrix("csr"), queue=queue)
    assert type(A) is type(-A) is type(A.copy()) is type(A @ A.T) is Mine
    assert_same(A, host_matrix("csr"))
    v = Mine([1.0, 0, 2], dtype=np.float32, queue=queue)
    assert (v.ndim, v @ np.ones(3, np.float32), type(v)) == (1, 3, type(csr_array([1], queue=queue)))
    assert csr_array[np.float32] is not None


@pytest.mark.any_platform
def test_parts_of_a_coo_array_are_set(queue: cl.CommandQueue) -> None:
    A, x = coo_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3), dtype=np.float32, queue=queue), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(A @ x, [1, 4, 0])
    A.row = np.array([2, 1])
    A.data = np.array([5, 6], np.float32)
    np.testing.assert_array_equal(A @ x, [0, 12, 5])
    A.data = np.ones(3, np.float32)
    with pytest.raises(ValueError, match=r"^row: must have as many entries as data, has 2, not 3"):
        A @ x
    A.coords = (np.array([0, 1, 5]), np.array([0, 1, 2]))
    for use in (lambda: A @ x, lambda: A.nnz, A.get, A.tocsr, A.sum_duplicates, lambda: -A):
        with pytest.raises(ValueError, match=r"^row: must lie in \[0, 3\), 1 of 3 do not"):
            use()
    A.col, A.row = cl_array.to_device(queue, np.array([0, 1, 2])), np.array([0, 1, 2])
    np.testing.assert_array_equal(A.toarray(), np.eye(3))


def test_what_is_there_is_used(queue: cl.CommandQueue) -> None:
    """csc @ csc is CSR's product of the operands in reverse order; what a product made is not made again."""
    A = csc_array(host_matrix("csc", shape=(9, 9)), queue=queue)
    A @ A
    with programs.recording() as built:
        A @ A
    assert not [program for program in built if "transpose" in program.parameters.template]
    B = csr_array(host_matrix("csr"), queue=queue)
    C = B.T @ B
    assert C.format == "csc"
    assert C.shape == (9, 9)
    rows = C._as_csr()
    assert (C.tocsr().get() - rows.get()).nnz == 0
    assert C.T.T._as_csr() is rows


def test_vectors_are_no_rows_of_matrices(queue: cl.CommandQueue) -> None:
    row, vector = np.array([[1, 0, 2]], np.float32), np.array([0, 3, 4], np.float32)
    for form in FORMATS:
        A, host = FORMATS[form](row, queue=queue), getattr(sp, f"{form}_array")(row)
        v = csr_array(vector, queue=queue)
        for operate in (operator.add, operator.sub, operator.lt, lambda M, w: M.maximum(w), lambda M, w: M.minimum(w)):
            with pytest.raises(ValueError, match="inconsistent shapes"):
                operate(A, v)
        assert (A == v, A != v) == (host == v.get(), host != v.get()) == (False, True)
        counts = A.count_nonzero(axis=1)
        assert counts.dtype == host.count_nonzero(axis=1).dtype


def test_rows_are_csr_arrays_of_one_dimension(queue: cl.CommandQueue) -> None:
    for form in FORMATS:
        host = host_matrix(form)
        A = FORMATS[form](host, queue=queue)
        for result, wanted in zip(A, host, strict=True):
            assert_same(result, wanted, exactly=False)


def test_tensordot(queue: cl.CommandQueue) -> None:
    matrix, other, flat = host_matrix("coo"), host_matrix("csc", "unsorted with duplicates"), one_dimensional("coo", 9)
    A, v = coo_array(matrix, queue=queue), coo_array(flat, queue=queue)
    for left, host, right, axes in (
        (A, matrix, other.T, 1), (A, matrix, other, 2), (A, matrix, other, ([0], [0])), (A, matrix, other, ((1, 0), (1, 0))),
        (A, matrix, flat, 1), (v, flat, flat, 1), (v, flat, other, ([0], [1])), (A, matrix, flat, ([-1], [0])),
    ):  # fmt: skip
        wanted = host.copy().tensordot(right.tocoo(copy=True), axes)  # SciPy sums duplicates in place
        assert_same(left.tensordot(right, axes), wanted, exactly=False)
        dense = right.toarray()
        assert_same(left.tensordot(dense, axes), np.tensordot(host.toarray(), dense, axes))
    for right, axes, message in (
        (other, 1, "differ in length"), (flat, 0, "leave 3 axes"), (other, ([2], [0]), "must be axes of A"),
        (other, ([0, 0], [0, 0]), "each once"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^axes: .*{message}"):
            A.tensordot(right, axes)


def test_what_is_kept_is_told(queue: cl.CommandQueue) -> None:
    A, x = csr_array(host_matrix("csr"), queue=queue), np.ones(13, np.float32)
    parts, transposed = (sum(part.nbytes for part in (M.data, M.indices, M.indptr)) for M in (A, clsparse_py.transpose(A)))
    assert A.explain().bytes == parts
    x @ A
    assert A.explain().bytes == A.T.explain().bytes == parts + transposed
    assert "CSR of the transposed" in repr(A.explain())
    O = A.tocoo(copy=False)  # noqa: E741 - COO
    before = O.explain().bytes
    O.T @ x
    assert O.explain().bytes == before
    O @ x[:9]
    assert O.explain().bytes > before
    A.data = A.data * np.float32(2)
    x @ A
    assert "permutation" in A.explain()._repr_html_()
    A.data = A.data
    assert A.explain().bytes > parts
    assert A.T.spmv_plan() is A._transposed().spmv_plan()


@pytest.mark.any_platform
def test_coordinates_of_every_dtype(queue: cl.CommandQueue) -> None:
    for dtype in ("bool", "uint8", "int64", "float64", "complex128"):
        if dtype in ("float64", "complex128") and not describe(queue.device).fp64:
            continue
        host = host_matrix("coo", "unsorted with duplicates", dtype)
        A = coo_array(host, queue=queue)
        assert_same(A.tocsr(), host.tocsr())
        assert_same(A.tocsc(), host.tocsc())
        A.eliminate_zeros()
        host.eliminate_zeros()
        assert_same(A, host)


@pytest.mark.any_platform
def test_dense_results_have_the_order_of_scipys(queue: cl.CommandQueue) -> None:
    dense = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    host = sp.csc_array(np.float32([[1, 0, 2, 0], [0, 0, 0, 3], [0, -4, 0, 0]]))
    on_device = cl_array.to_device(queue, dense)
    for form in ("csc", "csr", "coo"):
        S = host.asformat(form)
        A = FORMATS[form](S, queue=queue)
        for operate in (
            lambda M, D: M - D, lambda M, D: D - M, lambda M, D: M + D, lambda M, D: M.maximum(D), lambda M, D: M.minimum(D),
            lambda M, D: M > D, lambda M, D: M == D, lambda M, D: M != D, lambda M, D: M <= D,
        ):  # fmt: skip
            wanted, result = operate(S, dense), operate(A, dense)
            np.testing.assert_array_equal(result, wanted)
            assert result.flags.c_contiguous == wanted.flags.c_contiguous
        result = A - on_device
        np.testing.assert_array_equal(result.get(), host - dense)
        assert result.flags.c_contiguous
    assert coo_array(on_device).has_canonical_format
    with np.errstate(all="ignore"):
        if describe(queue.device).fp64:
            assert (csc_array(host, queue=queue) / csc_array(host, queue=queue)).flags.c_contiguous


@pytest.mark.any_platform
def test_a_vector_times_one_column_is_a_vector(queue: cl.CommandQueue) -> None:
    # As NumPy has it; SciPy has no dimension there for COO alone.
    column, z = np.float32([[1], [0], [2]]), np.float32([1, 2, 3])
    for form in FORMATS.values():
        A = form(column, queue=queue)
        assert (z @ A).shape == (A.T @ z).shape == (z @ column).shape


@pytest.mark.any_platform
def test_many_rows_take_memory_for_their_entries(queue: cl.CommandQueue) -> None:
    """Pointers to 2^31 rows would take 16 GB."""
    n, rng = 2**31 + 5, np.random.default_rng(1)
    rows, columns = np.r_[rng.integers(0, n, 90), [n - 1, n - 1, 5, 5]], np.r_[rng.integers(0, 3, 90), [2, 2, 1, 1]]
    values = rng.integers(-9, 9, 94)
    places, at = np.unique(rows * 3 + columns, return_inverse=True)
    for dtype in (np.int8, np.float32, np.complex64):
        given = values.astype(dtype)
        sums = np.zeros(places.size, dtype)
        np.add.at(sums, at, given)
        A, B = (coo_array((given, (rows, columns)), shape=(n, 3), queue=queue) for _ in range(2))
        to = np.complex64 if dtype == np.float32 else np.float32
        A.sum_duplicates()
        for result, wanted in ((A, sums), (abs(B), abs(sums)), (B.astype(to), sums.real.astype(to))):
            assert (result.shape, result.dtype) == ((n, 3), wanted.dtype)
            np.testing.assert_array_equal(result.data.get(), wanted)
            for part, of in zip(result.coords, divmod(places, 3), strict=True):
                np.testing.assert_array_equal(part.get(), of)
        assert B.sum() == sums.sum()
        np.testing.assert_array_equal(B.sum(axis=0), [sums[places % 3 == j].sum() for j in range(3)])
        if dtype != np.complex64:
            assert (B.max(), B.min()) == (sums.max(), sums.min())
            assert (B.argmax(), B.argmin()) == (places[sums.argmax()], places[sums.argmin()])
            np.testing.assert_array_equal(B.max(axis=0).toarray(), [max(0, sums[places % 3 == j].max()) for j in range(3)])
        assert B.count_nonzero() == np.count_nonzero(sums)
        np.testing.assert_array_equal(A.getnnz(axis=0), np.bincount(places % 3, minlength=3))
