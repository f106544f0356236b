"""Solvers: Krylov methods, linear algebra under SciPy's names, multigrid."""
