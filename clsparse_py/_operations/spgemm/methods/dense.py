"""The bins of "dense": sums of a row's span, window by window or, on CPU devices, of all columns of B."""

from __future__ import annotations

from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.methods.dense_span import dense_spans
from clsparse_py._operations.spgemm.methods.dense_windows import DenseWindows

__all__ = ["CHUNKED", "FILLED", "WINDOWS", "dense", "dense_span", "dense_windows"]

#: Any row on CPU devices, with an accumulator as wide as B.
CHUNKED = Bin("dense", DenseChunked(), takes_empty=True, as_wide=True)
#: Any row, with no workspace.
WINDOWS = Bin("dense", DenseWindows(entries=1), takes_empty=True)
#: Rows whose windows have many entries.
FILLED = Bin("dense", DenseWindows(ahead=8))


def dense(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of "dense": one for any row if work-items are few, as there is room for a value of each column then."""
    if on.device.resident > 1 or on.types.arithmetic is None:
        return *dense_span(on), FILLED
    return (CHUNKED,)


def dense_span(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of "dense" for rows that span few columns: on CPU devices none."""
    if on.device.resident == 1:
        return ()
    return tuple(Bin("dense", accumulator, max_span=accumulator.columns) for accumulator in dense_spans(*on))


def dense_windows(_on: Setting) -> tuple[Bin, ...]:
    """Return the bin of "dense" for any row, window by window."""
    return (FILLED,)
