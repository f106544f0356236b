"""Algebraic multigrid on the device, with PyAMG's interface.

Examples
--------
>>> import numpy as np
>>> import clsparse_py as sp
>>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
>>> ml = sp.amg.smoothed_aggregation_solver(A)
>>> x, info = ml.solve(np.ones(500), tol=1e-8, accel="cg", return_info=True)
>>> info
0
"""

from __future__ import annotations

from clsparse_py._solvers.amg.galerkin import RapPlan, rap_plan
from clsparse_py._solvers.amg.interchange import from_pyamg
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.setup import smoothed_aggregation_solver
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.amg.solver import MultilevelSolver

__all__ = [
    "Level",
    "MultilevelSolver",
    "RapPlan",
    "Smoother",
    "from_pyamg",
    "rap_plan",
    "smoothed_aggregation_solver",
]
