"""Expressions evaluated on SciPy's arrays and on ours: results of the same kind, format, dtype and values, or the same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse

import clsparse_py

ERRORS = (TypeError, ValueError, NotImplementedError, OverflowError, ZeroDivisionError)


def outcome(expression: str, names: dict[str, Any]) -> Any:
    """Return the value of an expression, or the error that it raises."""
    with np.errstate(all="ignore"):
        try:
            return eval(expression, {"np": np, **names})
        except ERRORS as error:
            return error


def to_device_array(queue: cl.CommandQueue, value: Any) -> Any:
    """Return SciPy's array as one of ours, of the same format; another value as it is."""
    if not scipy.sparse.issparse(value):
        return value
    return getattr(clsparse_py, f"{value.format}_array")(value, queue=queue)


def check(queue: cl.CommandQueue, expression: str, **names: Any) -> None:
    """Compare what SciPy and what we make of an expression. It must not change the values of ``names`` on the host."""
    kinds = ", ".join(f"{name} {getattr(value, 'format', '')} {getattr(value, 'dtype', '')}" for name, value in names.items())
    about = f"{expression} for {kinds}"
    wanted = outcome(expression, {name: value.copy() for name, value in names.items()})
    result = outcome(expression, {name: to_device_array(queue, value) for name, value in names.items()})
    if isinstance(wanted, Exception):
        related = isinstance(result, type(wanted)) or isinstance(wanted, type(result))
        assert isinstance(result, ERRORS), f"{about}: {wanted!r} is wanted, not {result!r}"
        assert related, f"{about}: {wanted!r} is wanted, not {result!r}"
        return
    assert not isinstance(result, Exception), f"{about}: {result!r}"
    if scipy.sparse.issparse(wanted):
        assert isinstance(result, getattr(clsparse_py, f"{wanted.format}_array")), f"{about}: {type(result)}"
        assert result.nnz == wanted.nnz, about
    else:
        assert not isinstance(wanted, np.ndarray) or isinstance(result, np.ndarray), f"{about}: {type(result)}"
    values, others = (matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix) for matrix in (result, wanted))
    assert (values.shape, values.dtype) == (others.shape, others.dtype), about
    tolerance = 2e-5 if values.dtype.char in "fF" else 1e-9
    np.testing.assert_allclose(values, others, rtol=tolerance, atol=tolerance / 10, err_msg=about)
