"""Triangular systems, solved serially, without synchronisation or by levels; incomplete factors, by elimination or by sweeps."""

from clsparse_py._operations.triangular.choose import METHODS
from clsparse_py._operations.triangular.factors import eliminate, sweep_factors
from clsparse_py._operations.triangular.kernels import State
from clsparse_py._operations.triangular.solve import RightSide, Solver, get_solver

__all__ = ["METHODS", "RightSide", "Solver", "State", "eliminate", "get_solver", "sweep_factors"]
