"""Krylov methods on device vectors: the passes of each, as data, and its iterations. `clsparse_py.linalg` has them for users."""
