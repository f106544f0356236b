"""What stands in the brackets: against SciPy's, in shape and error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from clsparse_py._operations.indexing.key import parse
from clsparse_py._operations.indexing.positions import Listed

SHAPE = (5, 6)
KEYS = (
    "1", "-5", "np.uint8(3)", "np.array(2)", "True", "1, 2", "1, None", "None, 1", "1, None, 2", "None, 1, 1", "...", "..., 1",
    "1, ...", "()", "slice(None)", "slice(4, 1, -2)", "slice(9, 9)", "1, slice(0, 5, 2)", "[1, -1]", "[]", "[], []",
    "[1, 2], [3, 4]", "[1, 2], None, [3, 4]", "None, [1, 2], 2", "[[1], [2]], [3, 4]", "[[1, 2], [0, 3]], 4",
    "[[1, 2], [0, 3]], [[1, 1], [2, 2]]", "[True, False, True, False, False]", "slice(None), np.arange(6) > 2",
    "np.ones((5, 6), bool)", "np.zeros((5, 6), bool)", "sp.csr_array(np.eye(5, 6, dtype=bool))", "np.ix_([1, 2], [0, 3])",
    "[1, 2], slice(1, 3)", "None", "slice(1, 3), [1]", "np.array([1, 2], np.uint8)", "1.0", "1.5", "'a'", "5", "-6", "0, 6",
    "[5]", "[0, -6]", "1, 2, 3", "[True, False]", "[1, 2], [1, 2, 3]", "..., ...", "sp.csr_array([[1]])", "[[True] * 5] * 5",
    "{}", "[[1, 2], [3]]", "[1.0, -2.0], 3", "np.array([[5.0]])", "[np.inf]",
)  # fmt: skip


def shape_of(expression: str) -> Any:
    """Return the shape of what SciPy finds, or the error."""
    A = sp.csr_array(np.arange(30.0).reshape(SHAPE))
    try:
        return A[eval(expression)].shape
    except (IndexError, ValueError, TypeError) as error:
        # COO arrays have more dimensions.
        return A.tocoo()[eval(expression)].shape if ">2D" in str(error) else error


@pytest.mark.parametrize("expression", KEYS)
def test_keys_have_the_shapes_and_errors_of_scipy(expression: str) -> None:
    wanted = shape_of(expression)
    if isinstance(wanted, Exception):
        with pytest.raises(type(wanted), match=r"^index"):
            parse(eval(expression), SHAPE)
    else:
        assert parse(eval(expression), SHAPE).shape == wanted


def test_positions_are_in_range() -> None:
    rows, columns = parse(([-1, 0, 4], slice(None, None, -2)), SHAPE).index
    assert isinstance(rows, Listed)
    np.testing.assert_array_equal(rows.values, [4, 0, 4])
    assert columns == range(5, -1, -2)
    given = np.array([-1, 2])
    parse(given, SHAPE)
    np.testing.assert_array_equal(given, [-1, 2])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (7, r"^index \(7\) out of range: axis 0 has 5 positions"),
        ((0, [1, -7]), r"^index \(-7\) out of range: axis 1 has 6 positions"),
        (np.ones(4, bool), r"^index: a mask from axis 0 on must have shape \(5,\), has \(4,\)"),
        ((1, 2, 3), "^index: too many indices, 3: the matrix has 2 axes"),
        ("rows", "^index: "),
        (np.zeros((2, 2, 2), int), "^index: an array must have one or two dimensions, has 3"),
        ([0.5], "^index: arrays must be of integers or booleans, has one of float64 with a fraction"),
    ],
)
def test_messages_say_what_came_and_what_is_needed(key: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        parse(key, SHAPE)
