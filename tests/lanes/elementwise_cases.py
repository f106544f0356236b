"""Cases of operators that apply entry by entry: every kernel with every dtype and index type, in rotation."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse
from primitive_cases import to_device
from supposed import suppose
from transpose_cases import RAGGED, on_device
from values import INDEX_TYPES, numbers, same

from clsparse_py._operations.elementwise import union
from clsparse_py._operations.elementwise.operators import OPERATORS, UFUNCS
from clsparse_py._operations.elementwise.union_kernels import Thresholds

Case = partial[None]


def canonical(seed: int) -> scipy.sparse.csr_array:
    """Return a pattern in canonical format, with empty rows and a long one."""
    rng = np.random.default_rng(seed)
    lengths = (0, 3, 1, 0, 0, 19, 2, 9, 17, 1, 22, 0, 5, 0)
    indices = [np.sort(rng.permutation(23)[:length]) for length in lengths]
    indptr = np.cumsum((0, *lengths))
    return scipy.sparse.csr_array((np.ones(indptr[-1]), np.concatenate(indices), indptr), shape=(len(lengths), 23))


def check_union(operator: str, dtype: np.dtype[Any], index: type[Any], shape: tuple[int, int]) -> None:
    """Apply an operator to two matrices by each kind of kernels, with one, few and many tiles of a size, and compare."""
    first, second = canonical(1), canonical(2)
    values = numbers(first.nnz, dtype), numbers(second.nnz, dtype)
    wanted = OPERATORS[operator].of_scipy(
        *(scipy.sparse.csr_array((v, m.indices, m.indptr), shape=m.shape) for v, m in zip(values, (first, second), strict=True))
    )
    A, B = (on_device(m, v, index) for v, m in zip(values, (first, second), strict=True))
    at_once = -(-(first.nnz + second.nnz + first.shape[0] + 1) // shape[1])
    for way, places, group in (
        (union._combine_by_chunks, 0, 0),
        (union._combine_by_tiles, 1 << 15, 0),
        (union._combine_by_tiles, 0, 0),
        (union._combine_by_tiles, 0, at_once),
    ):
        shapes = {"tile_group": shape[0], "tile_span": shape[1], "single_group": group, "single_span": shape[1]}
        limits = suppose(Thresholds, max_few_places=places, **shapes)
        with patch.object(union, "_combine_places", way), patch.object(Thresholds, "of", limits):
            result = union.combine(operator, A, B)
        for part in ("data", "indices", "indptr"):
            same(getattr(result, part), getattr(wanted, part).astype(getattr(result, part).dtype))
        assert result.dtype == wanted.dtype


def values(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Scale values, take absolute ones, read a diagonal, and add entries to a dense matrix."""
    given = numbers(RAGGED.nnz, dtype)
    A = on_device(RAGGED, given, index)
    factor = dtype.type(3)
    same((A * factor).data, given * factor)
    few = given[: canonical(1).nnz]
    # Square roots are rounded one way or another.
    np.testing.assert_allclose(abs(on_device(canonical(1), few, index)).data.get(), np.abs(few), rtol=1e-6)
    for sorted_rows, form in enumerate((RAGGED, canonical(1))):
        of = on_device(form, numbers(form.nnz, dtype), index)
        same(
            of.diagonal(-2),
            scipy.sparse.csr_array((numbers(form.nnz, dtype), form.indices, form.indptr), shape=form.shape).diagonal(-2),
        )
        assert of.has_sorted_indices == bool(sorted_rows)
    host = scipy.sparse.csr_array((given, RAGGED.indices, RAGGED.indptr), shape=RAGGED.shape)
    dense = numbers(RAGGED.shape, dtype)
    same(A + dense, host + dense)
    same(A + to_device(dense) if dtype.kind != "b" else A + dense, host + dense)


def compare(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Compare with a scalar, a sparse and a dense matrix, so that results are sparse and nearly full."""
    first, second = canonical(1), canonical(2)
    A, B = (on_device(matrix, numbers(matrix.nnz, dtype), index) for matrix in (first, second))
    host, other = (scipy.sparse.csr_array((numbers(m.nnz, dtype), m.indices, m.indptr), shape=m.shape) for m in (first, second))
    dense = numbers(first.shape, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        for result, wanted in ((A == B, host == other), (A == dtype.type(0), host == dtype.type(0)), (A != B, host != other)):
            same(result.toarray(), wanted.toarray())
        same(A == dense, host == dense)


def with_dense(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Multiply with a dense matrix, place by place and at entries, and a row and a column with each of its rows and columns."""
    form = canonical(1)
    A, host = on_device(form, numbers(form.nnz, dtype), index), scipy.sparse.csr_array(form, dtype=dtype)
    host.data = numbers(form.nnz, dtype)
    dense = numbers(form.shape, dtype)
    for result, wanted in ((A * dense, host * dense), (A * dense[:, :1], host * dense[:, :1])):
        same(result.toarray(), wanted.toarray())
    same(A.maximum(dense), host.maximum(dense))
    for shape, other in (((1, 23), dense), ((14, 1), dense)):
        one = scipy.sparse.csr_array(np.ones(shape, dtype))
        same((on_device(one, one.data, index) * other).toarray(), (one * other).toarray())


def functions(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Apply functions and powers to values."""
    form = canonical(1)
    given = numbers(form.nnz, dtype)
    A = on_device(form, given, index)
    np.testing.assert_allclose(A.power(3).data.get(), given**3, rtol=1e-5)
    if dtype.kind in "fc":
        for name, function in UFUNCS.items():
            if function.expression(dtype):
                with np.errstate(all="ignore"):
                    wanted = function.on_arrays(given)
                np.testing.assert_allclose(getattr(A, name)().data.get(), wanted, rtol=1e-4, atol=1e-5)


def extremes(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Find the largest and smallest values of rows and of all, and where they are."""
    form = canonical(1)
    A, host = on_device(form, numbers(form.nnz, dtype), index), scipy.sparse.csr_array(form, dtype=dtype)
    host.data = numbers(form.nnz, dtype)
    for name, axis in (("max", 1), ("nanmin", None), ("argmax", 1), ("argmin", None)):
        result, wanted = (getattr(matrix, name)(axis) for matrix in (A, host))
        same(*(matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix) for matrix in (result, wanted)))


def elementwise_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Operators, dtypes and index types, in rotation."""
    rotation = itertools.cycle(dtypes)
    for i, operator in enumerate(operator.name for operator in OPERATORS.values() if not operator.opposite):
        yield partial(check_union, operator, next(rotation), INDEX_TYPES[i % 2], ((7, 3), (32, 2), (128, 16))[i % 3])
    for i, dtype in enumerate(dtypes):
        yield partial(values, dtype, INDEX_TYPES[i % 2])
        yield partial(compare, dtype, INDEX_TYPES[i % 2])
        yield partial(with_dense, dtype, INDEX_TYPES[i % 2])
        yield partial(functions, dtype, INDEX_TYPES[i % 2])
        if i < 3:
            yield partial(extremes, dtype, INDEX_TYPES[i % 2])
