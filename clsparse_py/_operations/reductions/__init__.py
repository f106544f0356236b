"""Reductions of sparse matrices, as SciPy's arrays have them: `sums` and `extremes`."""
