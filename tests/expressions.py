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
    found = outcome(expression, {name: to_device_array(queue, value) for name, value in names.items()})
    if isinstance(wanted, Exception):
        related = isinstance(found, type(wanted)) or isinstance(wanted, type(found))
        assert isinstance(found, ERRORS), f"{about}: {wanted!r} is wanted, not {found!r}"
        assert related, f"{about}: {wanted!r} is wanted, not {found!r}"
        return
    assert not isinstance(found, Exception), f"{about}: {found!r}"
    if scipy.sparse.issparse(wanted):
        assert isinstance(found, getattr(clsparse_py, f"{wanted.format}_array")), f"{about}: {type(found)}"
        assert found.nnz == wanted.nnz, about
    else:
        assert not isinstance(wanted, np.ndarray) or isinstance(found, np.ndarray), f"{about}: {type(found)}"
    values, others = (each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in (found, wanted))
    assert (values.shape, values.dtype) == (others.shape, others.dtype), about
    tolerance = 2e-5 if values.dtype.char in "fF" else 1e-9
    np.testing.assert_allclose(values, others, rtol=tolerance, atol=tolerance / 10, err_msg=about)
