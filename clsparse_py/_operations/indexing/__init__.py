"""Indexing of sparse matrices, as SciPy's arrays have it: `A[...]` read and written."""
