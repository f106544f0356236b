"""Triangular systems by level sets, and incomplete factors by fixed-point sweeps. `clsparse_py.linalg` has them for users."""
