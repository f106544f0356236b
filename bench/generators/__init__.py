"""Generators of the benchmark matrices: patterns first, values last, NumPy and SciPy only."""
