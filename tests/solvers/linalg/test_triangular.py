"""Triangular systems on the device against SciPy's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg as of_scipy
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import BuildError, linalg
from clsparse_py._build import programs
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._operations.triangular import level_sets
from clsparse_py._operations.triangular.choose import Thresholds
from tests.solvers.linalg.test_incomplete import grid
from tests.supposed import suppose

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def random(dtype: Any) -> scipy.sparse.csr_array:
    """Return a matrix of 200 rows with a strong diagonal."""
    rng = np.random.default_rng(0)
    result = scipy.sparse.random_array((200, 200), density=0.02, rng=rng) + 4 * scipy.sparse.eye_array(200)
    return scipy.sparse.csr_array(result * (1 + 0.3j) if np.dtype(dtype).kind == "c" else result).astype(dtype)


def test_triangular_systems_are_scipys(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    # Row by row, and by level sets with a launch for each level.
    monkeypatch.setattr(level_sets, "_WIDE_ON_CPU", 0)
    for max_serial in (1000, 0):
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_serial=max_serial))
        for dtype, near in (("float64", 1e-12), ("complex128", 1e-12), ("float32", 1e-4)):
            host = random(dtype)
            A = clsparse_py.csr_array(host, queue=wide)
            for lower, unit in ((True, False), (True, True), (False, False), (False, True)):
                part = (scipy.sparse.tril if lower else scipy.sparse.triu)(host).tocsr()
                for b in (rng.standard_normal(200).astype(dtype), rng.standard_normal((200, 3)).astype(dtype)):
                    wanted = of_scipy.spsolve_triangular(part.copy(), b, lower, unit_diagonal=unit)
                    result = linalg.spsolve_triangular(A, b, lower, unit_diagonal=unit)
                    assert result.dtype == wanted.dtype
                    np.testing.assert_allclose(result, wanted, rtol=near, atol=near)
                    on_device = linalg.spsolve_triangular(A, cl_array.to_device(wide, b), lower, unit_diagonal=unit)
                    assert isinstance(on_device, cl_array.Array)
                    np.testing.assert_array_equal(on_device.get(), result)
    host, b = random("float64"), rng.standard_normal(200)
    part = scipy.sparse.tril(host).tocsr()
    wanted = of_scipy.spsolve_triangular(part, b)
    # Other formats, index types, duplicates; levels are those of the structure, values may change.
    wide_index = clsparse_py.csr_array((part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64)), queue=wide)
    twice = clsparse_py.csr_array(
        (np.repeat(part.data / 2, 2), np.repeat(part.indices, 2), 2 * part.indptr), shape=part.shape, queue=wide
    )
    for A in (part, part.tocsc(), part.tocoo(), clsparse_py.csc_array(part.tocsc(), queue=wide), wide_index, twice):
        np.testing.assert_allclose(linalg.spsolve_triangular(A, b), wanted, rtol=1e-9)
    wide_index.data = 2 * wide_index.data
    np.testing.assert_allclose(linalg.spsolve_triangular(wide_index, b), wanted / 2, rtol=1e-9)
    whole = clsparse_py.csr_array(np.array([[2, 0], [1, 4]]), queue=wide)
    np.testing.assert_array_equal(linalg.spsolve_triangular(whole, [2, 9]), [1, 2])
    # A chain, of which each row is a level.
    chain = clsparse_py.diags_array([-np.ones(299), np.ones(300)], offsets=[-1, 0], shape=(300, 300), queue=wide).tocsr()
    np.testing.assert_array_equal(linalg.spsolve_triangular(chain, np.ones(300)), np.arange(1, 301))


def test_triangles_in_any_format_are_converted_as_they_stand(wide: cl.CommandQueue) -> None:
    # Rows that are not sorted, and duplicates: values of a converted matrix once met the columns of the given one.
    unsorted = [7, 2, 1, 4], [0, 1, 0, 2], [0, 1, 3, 4]
    twice = [7, 1, 1, 1, 4], [0, 0, 1, 1, 2], [0, 1, 4, 5]
    for values, indices, indptr in (unsorted, twice):
        for dtype in (np.int8, np.int64, np.float32, np.float64, np.complex64, np.complex128):
            A = clsparse_py.csr_array((np.array(values, dtype), indices, indptr), shape=(3, 3), queue=wide)
            for of_b in (np.int32, np.float32, np.float64, np.complex64, np.complex128):
                for b in (np.array([7, 5, 8], of_b), cl_array.to_device(wide, np.array([7, 5, 8], of_b))):
                    result = linalg.spsolve_triangular(A, b)
                    np.testing.assert_allclose(
                        result.get() if isinstance(result, cl_array.Array) else result, [1, 2, 2], rtol=1e-6
                    )
            # Levels are found once for all dtypes.
            assert (
                len({id(level_sets.get_level_sets(matrix.structure, upper=False)) for matrix in (A, A.with_values(A.indices))})
                == 1
            )


def test_triangles_of_other_devices(wide: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: Any) -> None:
    host, b = random("float64"), np.arange(200.0)
    wanted = [of_scipy.spsolve_triangular((scipy.sparse.tril, scipy.sparse.triu)[i](host).tocsr(), b, not i) for i in (0, 1)]
    take_as(type="gpu")
    for threshold in (0, 8):
        monkeypatch.setattr(level_sets, "_WIDE", threshold)
        A = clsparse_py.csr_array(host, queue=wide)
        for i in (0, 1):
            np.testing.assert_allclose(linalg.spsolve_triangular(A, b, not i), wanted[i], rtol=1e-9)


def test_triangular_systems_that_are_none(wide: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(grid(), queue=wide)
    for message, arguments in (("b: must have 144", (A, np.ones(5))), ("A: must be square", (A[:5], np.ones(5)))):
        with pytest.raises(ValueError, match=message):
            linalg.spsolve_triangular(*arguments)
    with pytest.raises(np.linalg.LinAlgError, match="diagonal has a zero"):
        linalg.spsolve_triangular(clsparse_py.diags_array([1.0, 0.0, 1.0], queue=wide), np.ones(3))
    assert np.isnan(linalg.spsolve_triangular(A, np.full(144, np.nan))).all()
    empty = clsparse_py.csr_array((0, 0), queue=wide)
    assert linalg.spsolve_triangular(empty, np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.refusals
def test_triangles_if_kernels_are_refused(wide: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host, b = random("float64"), np.arange(200.0)
    build = programs.build
    for refused, plain in itertools.product(
        ("triangular/levels", "triangular/solve", "triangular/serial", "triangular/ends"), (True, False)
    ):

        def refusing(
            context: cl.Context, device: cl.Device, parameters: programs.Parameters, kind: str = refused, plain: bool = plain
        ) -> Any:
            if parameters.template == f"triangular/{kind}" and not (plain and are_plain()):
                raise BuildError("planted", log="", parameters=parameters, source=None)
            return build(context, device, parameters)

        monkeypatch.setattr(programs, "build", refusing)
        A = clsparse_py.csr_array(host, queue=wide)
        for lower in (True, False):
            part = (scipy.sparse.tril if lower else scipy.sparse.triu)(host).tocsr()
            wanted = of_scipy.spsolve_triangular(part.copy(), b, lower)
            np.testing.assert_allclose(linalg.spsolve_triangular(A, b, lower), wanted, rtol=1e-9)
