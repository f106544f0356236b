"""Device arrays that NumPy is asked to work on."""

from __future__ import annotations

import operator

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import array as cl_array

from clsparse_py import csr_array

pytestmark = pytest.mark.any_platform


def test_numpys_functions_say_how_to_get_the_values(queue: cl.CommandQueue) -> None:
    values = csr_array(np.array([[1, 0], [2, 3]], np.float32), queue=queue).data
    ones = np.ones(3, np.float32)
    for call in (np.log, np.sum, np.sort, np.unique, np.add.reduce, lambda v: np.maximum(v, 1), lambda v: ones < v):
        with pytest.raises(TypeError, match=r"^np.\w+: this array is on a device.*array.get\(\).*A.get\(\)"):
            call(values)


def test_arithmetic_is_pyopencls(queue: cl.CommandQueue) -> None:
    A = csr_array(np.array([[1, 0], [2, 4]], np.float32), queue=queue)
    two = np.float32(2)
    for result, wanted in (
        (two * A.data, [2, 4, 8]), (two - A.data, [1, 0, -2]), (two / A.data, [2, 1, 0.5]), (two + A.data, [3, 4, 6]),
        (A.data * two, [2, 4, 8]),
    ):  # fmt: skip
        assert isinstance(result, type(A.data))
        np.testing.assert_array_equal(result.get(), wanted)
    A.data[:] *= 2
    np.testing.assert_array_equal(A.toarray(), [[2, 0], [4, 8]])
    assert (np.ndim(A.data), np.shape(A.data), np.size(A.data), np.iscomplexobj(A.data)) == (1, (3,), 3, False)


def test_masks_are_refused_as_pyopencl_takes_them_for_positions(queue: cl.CommandQueue) -> None:
    A = csr_array(np.array([[1, 0], [-2, 4]], np.float32), queue=queue)
    for mask in (A.data < 0, A.data.get() < 0):
        with pytest.raises(IndexError, match="a device array takes no mask"):
            A.data[mask]
        with pytest.raises(IndexError, match="a device array takes no mask"):
            A.data[mask] = 0
    values = A.data.get()
    values[values < 0] *= 2
    A.data = values
    np.testing.assert_array_equal(A.toarray(), [[1, 0], [-4, 4]])
    np.testing.assert_array_equal(A.data[cl_array.to_device(queue, np.array([2, 1], np.int32))].get(), [4, -4])


def test_methods_of_numpys_arrays_say_how_to_get_the_values(queue: cl.CommandQueue) -> None:
    values = csr_array(np.array([[1, 0], [2, 3]], np.float32), queue=queue).data
    for name in ("sort", "argsort", "tolist", "cumsum", "itemsize"):
        assert not hasattr(values, name)
        assert name not in dir(values)
        with pytest.raises(AttributeError, match=rf"^{name}: this array is on a device.*array.get\(\).*A.get\(\)"):
            getattr(values, name)
    with pytest.raises(AttributeError, match="'DeviceArray' object has no attribute 'sorts'"):
        values.sorts  # noqa: B018 - as a user would
    assert {"get", "shape", "base_data"} <= {*dir(values)}


def test_a_value_is_a_number(queue: cl.CommandQueue) -> None:
    host = np.array([[0, 1, 0], [2, 0, 3]])
    for dtype in (np.bool_, np.int8, np.uint16, np.int64, np.float32, np.complex64):
        data = csr_array(host.astype(dtype), queue=queue).data
        assert complex(data[2]) == complex(host.astype(dtype)[1, 2])
        if data.dtype.kind == "c":
            continue
        assert int(data[1]) == int(host.astype(dtype)[1, 0])
        assert float(data[1]) == float(host.astype(dtype)[1, 0])
        if data.dtype.kind == "f":
            with pytest.raises(TypeError, match="integer"):
                operator.index(data[0])
    A = csr_array(host, queue=queue)
    assert list(range(A.indptr[1], A.indptr[2])) == [1, 2]
    assert [7, 8, 9][A.indptr[1]] == np.array([7, 8, 9])[A.indptr[1]] == 8
    np.testing.assert_array_equal(np.arange(5)[A.indptr[1] : A.indptr[2]], [1, 2])
    for number in (int, float, complex, operator.index):
        for several in (A.data, A.data[:1]):
            with pytest.raises(TypeError, match=r"is no number.*array.get\(\)"):
                number(several)


def test_no_array_of_numpys_is_made_value_by_value(queue: cl.CommandQueue) -> None:
    data = csr_array(np.array([[0, 1], [2, 3]], np.float32), queue=queue).data
    for make in (np.asarray, np.array, lambda array: np.asarray(array, np.float64), lambda array: np.array([array, array])):
        for values in (data, data[0]):
            with pytest.raises(TypeError, match=r"^np.asarray: this array is on a device.*array.get\(\)"):
                make(values)
