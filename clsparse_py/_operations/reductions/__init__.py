"""Reductions of sparse matrices, as SciPy's arrays have them."""

from __future__ import annotations

from clsparse_py._operations.reductions.extremes import Extremes
from clsparse_py._operations.reductions.sums import Sums

__all__ = ["Reductions"]


class Reductions(Sums, Extremes):
    """Base of matrices with reductions."""
