"""Operands that are not ours at the left of every operator; ours in constructors and functions of other packages."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py import coo_array, csc_array, csr_array
from clsparse_py._arrays.base import SparseArray
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform

FORMATS = {"csr": csr_array, "csc": csc_array, "coo": coo_array}
LEFT = np.array([[0, 2, 0], [3, 0, 0], [4, 5, 1]], np.float32)
RIGHT = np.array([[1, 0, 2], [0, 0, 0], [4, 0, 3]], np.float32)
OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.eq, operator.ne, operator.lt,
    operator.gt, operator.le, operator.ge, operator.pow,
)  # fmt: skip
#: Left operands, of a queue for ours and of None for SciPy's.
OTHERS: dict[str, Callable[[cl.CommandQueue | None], Any]] = {
    "matrix": lambda _: LEFT.copy(),
    "vector": lambda _: LEFT[2].copy(),
    "column": lambda _: LEFT[:, 1:2].copy(),
    "number": lambda _: 2,
    "0": lambda _: 0,
    "NumPy's scalar": lambda _: np.float32(2),
    "no dimensions": lambda _: np.array(2, np.float32),
    "list": lambda _: LEFT.tolist(),
    "device matrix": lambda queue: cl_array.to_device(queue, LEFT) if queue else LEFT,
    "device vector": lambda queue: cl_array.to_device(queue, LEFT[2].copy()) if queue else LEFT[2],
    **{
        f"SciPy's {form}": lambda _, form=form: getattr(sp, f"{form}_array")(LEFT) for form in ("csr", "csc", "dia", "coo", "lil")
    },  # type: ignore[misc] # a default
}
#: Python asks ours for the reflected comparison, whose result has our format.
COMPARISONS = OPERATORS[5:11]


def outcome(operate: Callable[[Any, Any], Any], *operands: Any) -> Any:
    """Return a result, or the type of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return operate(*operands)
        except Exception as error:
            return type(error)


def same(result: Any, wanted: Any, kind: str, *, of_any_format: bool) -> bool:
    """Return whether a result is SciPy's: its kind, format and values."""
    if isinstance(wanted, type) or isinstance(result, type):
        return result is wanted
    if sp.issparse(wanted):
        if not isinstance(result, SparseArray) or not (of_any_format or result.format == wanted.format):
            return False
    elif not isinstance(result, cl_array.Array if kind.startswith("device") else type(wanted)):
        return False
    host = result.get() if isinstance(result, cl_array.Array) else result
    values, expected = (matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix) for matrix in (host, wanted))
    # On the device 32-bit floats stay what they are; Python's lists are of doubles.
    return values.dtype.kind == expected.dtype.kind and np.allclose(values, expected, equal_nan=True)


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_operator_has_every_left_operand(queue: cl.CommandQueue, form: str) -> None:
    A, host = FORMATS[form](RIGHT, queue=queue), getattr(sp, f"{form}_array")(RIGHT)
    wrong = []
    for kind, make in OTHERS.items():
        for operate in OPERATORS:
            wanted = outcome(operate, make(None), host)
            if getattr(wanted, "dtype", None) == np.float64 and not describe(queue.device).fp64:
                continue
            result = outcome(operate, make(queue), A)
            if not same(result, wanted, kind, of_any_format=kind.startswith("SciPy's") and operate in COMPARISONS):
                wrong.append(f"{kind} {operate.__name__} {form}: {result!r:.200}, not {wanted!r:.200}")
    assert not wrong, "\n".join(wrong)


def test_rows_and_columns_on_the_device_are_repeated(queue: cl.CommandQueue) -> None:
    row, column = LEFT[2].copy(), LEFT[:, 1:2].copy()
    for form in FORMATS.values():
        A = form(RIGHT, queue=queue)
        for dense in (row, column):
            on_device = cl_array.to_device(queue, dense)
            np.testing.assert_array_equal((A + on_device).get(), RIGHT + dense)
            np.testing.assert_array_equal((on_device - A).get(), dense - RIGHT)
            np.testing.assert_array_equal((A - on_device).get(), RIGHT - dense)
        with pytest.raises(ValueError, match=r"^other: must have shape \(3, 3\) or one that gives it, has \(.*2"):
            A + cl_array.zeros(queue, (2,), np.float32)


class Asked:
    """What asks NumPy for an array where it is made, as SciPy's constructors and others' classes do."""

    def __init__(self, A: Any, dtype: Any = None) -> None:
        self.array = np.asarray(A, dtype)


def test_numpy_has_an_array_for_one_object(queue: cl.CommandQueue) -> None:
    dense = csr_array(RIGHT, queue=queue)
    for A in (dense, dense.tocsc(), dense.tocoo(), dense.tobsr((1, 1)), dense[0]):
        for array in (np.asarray(A), Asked(A).array, np.asarray(A, object), np.asanyarray(A)):
            assert array.shape == ()
            assert array.dtype == object
            assert array[()] is A
        assert f"{A}" == repr(A) != str(A)
        what = rf"^A: is a {A.format}_array on a device, where NumPy does not compute: A.get\(\) returns it as SciPy's"
        uses: tuple[Callable[[Any], Any], ...] = (
            *(lambda A, dtype=dtype: np.asarray(A, dtype) for dtype in (float, np.complex64, int, bool)),
            lambda A: Asked(A, float), lambda A: np.array([A, A], float), lambda A: np.array(A, float, copy=True),
            float, int, complex, operator.index,
        )  # fmt: skip
        for use in uses:
            with pytest.raises(TypeError, match=what):
                use(A)


def test_functions_of_numpy_are_methods_or_say_what_to_call(queue: cl.CommandQueue) -> None:
    dense = np.array([[0, 2.25, 0], [-3, 0, 0], [4, 5, 1]], np.float32)
    column, row = np.ones(3, np.float32), {"axis": 0}
    for form in FORMATS.values():
        A = form(dense, queue=queue)
        for function, *arguments in (
            (np.sum,), (np.sum, 0), (np.mean, 1), (np.max,), (np.amax,), (np.min,), (np.amin,), (np.nanmax,), (np.nanmin,),
            (np.argmax,), (np.argmin,), (np.trace,), (np.diagonal,), (np.count_nonzero,), (np.transpose,), (np.real,), (np.imag,),
            (np.copy,), (np.round, 1), (np.around, 1), (np.reshape, (1, 9)), (np.dot, column), (np.shape,), (np.ndim,),
            (np.iscomplexobj,),
        ):  # fmt: skip
            result, wanted = function(A, *arguments), function(dense, *arguments)
            np.testing.assert_allclose(result.toarray() if isinstance(result, SparseArray) else result, wanted, rtol=1e-6)
        assert np.size(A) == A.nnz
        assert np.result_type(A, np.int64, A) == np.float64
        np.testing.assert_allclose(np.sum(A, **row), dense.sum(**row))
        assert np.copy(A).data is not A.data
        for use in (
            np.linalg.norm, np.linalg.svd, np.diag, np.where, np.atleast_2d, np.zeros_like, np.sort, np.ravel,
            lambda A: np.kron(A, A), lambda A: np.allclose(A, A), lambda A: np.concatenate([dense, A]),
            lambda A: np.dot(dense, A), lambda A: np.resize(A, (2, 2)), lambda A: np.einsum("ij->i", A),
            lambda A: np.linalg.solve(A, column),
        ):  # fmt: skip
            with pytest.raises(TypeError, match=rf"^np.\w+: A: is a {A.format}_array on a device.*A.get\(\)"):
                use(A)
        assert A.shape == (3, 3)


def test_other_packages_say_what_to_call_or_take_it(queue: cl.CommandQueue) -> None:
    A = csr_array(RIGHT @ RIGHT.T + 9 * np.eye(3, dtype=np.float32), queue=queue)
    b = np.ones(3, np.float32)
    np.testing.assert_allclose(A @ scipy.sparse.linalg.cg(A, b)[0], b, rtol=1e-4)
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    with pytest.raises(ValueError, match=r"get\(\) copies it to the host"):
        preprocessing.normalize(A)
    assert preprocessing.normalize(A.get()).shape == (3, 3)
    for name in ("tolist", "max", "argsort"):
        with pytest.raises(AttributeError, match=rf"^{name}: this array is on a device.*A.get\(\)"):
            getattr(A.data, name)
    with pytest.raises(AttributeError, match="has no attribute 'junk'"):
        A.data.junk  # noqa: B018 - the error is wanted
