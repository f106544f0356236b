"""Comparisons of a matrix with scalars, sparse and dense matrices, against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array
from test_csr_methods import DTYPES, assert_agrees, outcome
from test_union import matrix

from clsparse_py import csr_array
from clsparse_py._device.device import describe

#: Of matrices A and B, SciPy's S, which is B, and D, which is dense.
OPERANDS = (
    "B", "S", "D", "S.T", "D[:1]", "D[:, :3]", "0", "1", "0.5", "300", "np.nan", "np.float32(2)", "[1] * 30", "None", "'text'",
)  # fmt: skip
SYMBOLS = ("==", "!=", "<", ">", "<=", ">=")


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons(queue: cl.CommandQueue, dtype: str, symbol: str) -> None:
    fp64 = describe(queue.device).fp64
    if dtype == "float64" and not fp64:
        pytest.skip("no double precision")
    other = "float32" if dtype == "bool" else dtype
    for shape, form in (
        ((40, 30), "unsorted with duplicates"),
        ((40, 30), "canonical"),
        ((0, 5), "canonical"),
        ((5, 0), "canonical"),
    ):
        host, second = matrix(dtype, shape, form, 1), matrix(other, shape, "canonical", 2)
        dense = np.random.default_rng(3).integers(0, 4, shape).astype(other)
        for operand in (*(f"A {symbol} {operand}" for operand in OPERANDS), f"S {symbol} A", f"D {symbol} A", f"1 {symbol} A"):
            # SciPy adds the duplicates of its operands up in place.
            wanted = outcome(operand, A=host.copy(), B=second, S=second, D=dense)
            result = outcome(operand, A=csr_array(host, queue=queue), B=csr_array(second, queue=queue), S=second, D=dense)
            if isinstance(result, TypeError) and not fp64 and "lacks" in str(result):
                continue
            if isinstance(wanted, bool):
                assert result is wanted, operand
                continue
            try:
                assert_agrees(result, wanted)
            except AssertionError as error:
                raise AssertionError(f"{operand}: {error}") from error
            if isinstance(result, csr_array):
                assert result.has_canonical_format
                assert result.nnz == wanted.nnz, operand


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_dense_operands_on_the_device(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (40, 30), "unsorted with duplicates", 1)
    dense = np.random.default_rng(3).integers(-2, 3, (40, 30)).astype(np.float32)
    A = csr_array(host, queue=queue)
    for values in (dense, np.asfortranarray(dense), dense.astype(np.int16)):
        given: Any = cl_array.to_device(queue, values)
        for result, wanted in ((A == given, host == dense), (A > given, host > dense), (A <= given, host <= dense)):
            assert isinstance(result, cl_array.Array)
            assert result.dtype == bool
            np.testing.assert_array_equal(result.get(), wanted)


@pytest.mark.any_platform
def test_results_that_are_nearly_full_draw_scipys_warning(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (40, 30), "canonical", 1)
    A = csr_array(host, queue=queue)
    for expression in ("A == A", "A <= A", "A == 0", "A < 1", "A != 2"):
        said = []
        for operand in (A, host):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                outcome(expression, A=operand)
            said.append([(warning.category, str(warning.message), warning.filename) for warning in caught])
        assert said[0]
        assert [message[0] for message in said[0]] == [sp.SparseEfficiencyWarning]
        assert said[0][0][1] == said[1][0][1]


@pytest.mark.any_platform
def test_a_matrix_has_no_hash(queue: cl.CommandQueue) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(csr_array((3, 3), queue=queue))
