"""Linear algebra on sparse arrays of the device, under the names of `scipy.sparse.linalg`.

`cg`, `bicgstab`, `gmres`, `minres`, `lsqr`, `lsmr`, `eigsh` and `lobpcg` run on the device: vectors stay there, and NumPy's are
copied. The other iterative solvers and eigensolvers are SciPy's own: they ask sparse arrays of the device for products, which run
there; their vectors are on the host. Factorisations (`splu`, `spsolve` and their like) run on the host. The first call of each
of these says so by a `HostFallbackWarning`.

Examples
--------
>>> import numpy as np
>>> import clsparse_py as sp
>>> A = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
>>> x, info = sp.linalg.cg(A, np.ones(50), rtol=1e-8)
>>> info, bool(np.allclose(A @ x, 1))
(0, True)
"""

from __future__ import annotations

from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LaplacianNd, LinearOperator, MatrixRankWarning

from clsparse_py._solvers.linalg.direct import SuperLU, spsolve
from clsparse_py._solvers.linalg.eigen import eigsh, lobpcg
from clsparse_py._solvers.linalg.functions import aslinearoperator, eigs, expm_multiply, funm_multiply_krylov, matrix_power, norm
from clsparse_py._solvers.linalg.incomplete import block_jacobi, ic0, ilu0, isai
from clsparse_py._solvers.linalg.least_squares import lsmr, lsqr
from clsparse_py._solvers.linalg.of_scipy import (
    bicg,
    cgs,
    expm,
    factorized,
    gcrotmk,
    inv,
    is_sptriangular,
    lgmres,
    onenormest,
    qmr,
    spbandwidth,
    spilu,
    splu,
    svds,
    tfqmr,
)
from clsparse_py._solvers.linalg.preconditioners import chebyshev, jacobi
from clsparse_py._solvers.linalg.solvers import bicgstab, cg, gmres, minres
from clsparse_py._solvers.linalg.triangular import spsolve_triangular
from clsparse_py._solvers.linalg.triangular_plan import TriangularPlan, triangular_plan

__all__ = [
    "ArpackError",
    "ArpackNoConvergence",
    "LaplacianNd",
    "LinearOperator",
    "MatrixRankWarning",
    "SuperLU",
    "TriangularPlan",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "block_jacobi",
    "cg",
    "cgs",
    "chebyshev",
    "eigs",
    "eigsh",
    "expm",
    "expm_multiply",
    "factorized",
    "funm_multiply_krylov",
    "gcrotmk",
    "gmres",
    "ic0",
    "ilu0",
    "inv",
    "is_sptriangular",
    "isai",
    "jacobi",
    "lgmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "matrix_power",
    "minres",
    "norm",
    "onenormest",
    "qmr",
    "spbandwidth",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
    "tfqmr",
    "triangular_plan",
]
