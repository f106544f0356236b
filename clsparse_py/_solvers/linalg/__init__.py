"""Linear algebra under the names of `scipy.sparse.linalg`."""
