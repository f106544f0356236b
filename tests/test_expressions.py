"""Expressions of several operations on arrays of any formats, drawn by Hypothesis, against SciPy."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from platforms import PLATFORMS, queue_on

from clsparse_py import coo_array, csc_array, csr_array

FORMATS = {"csr": csr_array, "csc": csc_array, "coo": coo_array}
#: Rows and columns: one number, so that all operands go together.
N = 6

#: Of two arrays.
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "A + B": operator.add,
    "A - B": operator.sub,
    "A * B": operator.mul,
    "A @ B": operator.matmul,
    "A.maximum(B)": lambda A, B: A.maximum(B),
    "A != B": lambda A, B: (A != B).astype(np.int64),
}
#: Of one array.
SINGLES: dict[str, Callable[[Any], Any]] = {
    "-A": operator.neg,
    "abs(A)": abs,
    "A * 3": lambda A: A * 3,
    "A.T": lambda A: A.T,
    "A.tocsr()": lambda A: A.tocsr(),
    "A.tocsc()": lambda A: A.tocsc(),
    "A.tocoo()": lambda A: A.tocoo(),
    "A.copy()": lambda A: A.copy(),
    "A.reshape": lambda A: A.reshape(N * N).reshape(N, N, order="F"),
    "A.sum_duplicates()": lambda A: A.sum_duplicates() or A,
    "A.eliminate_zeros()": lambda A: A.eliminate_zeros() or A,
    "A[::-1]": lambda A: A.tocsr()[::-1],
    "A[:, [...]]": lambda A: A.tocsc()[:, [0, 0, 3, 1, 5, 2]],
}


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Return a matrix of SciPy in any of the formats: unsorted, with duplicates and zeros, or in canonical format."""
    places = draw(st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.integers(-2, 2)), max_size=14))
    row, col, values = np.array(places, np.int64).reshape(-1, 3).T
    made = sp.coo_array((values, (row.astype(np.int32), col.astype(np.int32))), shape=(N, N))
    return made.asformat(draw(st.sampled_from(list(FORMATS))))


@settings(max_examples=60)
@given(
    operands=st.lists(matrices(), min_size=2, max_size=3),
    steps=st.lists(st.tuples(st.sampled_from([*PAIRS, *SINGLES]), st.integers(0, 2)), min_size=1, max_size=6),
)
def test_expressions_of_several_operations(operands: list[Any], steps: list[tuple[str, int]]) -> None:
    for name in PLATFORMS:
        queue = queue_on(name)
        # SciPy sums duplicates of its operands in place.
        wanted, others = operands[0].copy(), [each.copy() for each in operands]
        found, on_device = (
            FORMATS[wanted.format](wanted, queue=queue),
            [FORMATS[each.format](each, queue=queue) for each in others],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            for step, which in steps:
                if step in PAIRS:
                    which %= len(others)
                    wanted, found = PAIRS[step](wanted, others[which]), PAIRS[step](found, on_device[which])
                else:
                    wanted, found = SINGLES[step](wanted), SINGLES[step](found)
                assert (found.format, found.shape, found.dtype) == (wanted.format, wanted.shape, wanted.dtype), step
                np.testing.assert_array_equal(found.toarray(), wanted.toarray(), err_msg=step)
