"""Algebraic multigrid, with PyAMG's interface."""
