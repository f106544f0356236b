"""Linear algebra on sparse arrays of the device, under the names of `scipy.sparse.linalg`.

`cg`, `bicgstab`, `gmres`, `minres`, `lsqr`, `lsmr`, `eigsh` and `lobpcg` run on the device: vectors stay there, and NumPy's are
copied. The other iterative solvers and eigensolvers are SciPy's own: they take sparse arrays of the device as they are, and ask
them for products, which run there; their vectors are NumPy arrays. Factorisations (`splu`, `spsolve` and their like) run on the
host, as their docstrings say.

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

from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    LaplacianNd,
    LinearOperator,
    MatrixRankWarning,
    bicg,
    cgs,
    gcrotmk,
    lgmres,
    onenormest,
    qmr,
    svds,
    tfqmr,
)

from clsparse_py.linalg.direct import SuperLU, factorized, inv, spilu, splu, spsolve
from clsparse_py.linalg.eigen import eigsh, lobpcg
from clsparse_py.linalg.functions import (
    aslinearoperator,
    eigs,
    expm,
    expm_multiply,
    funm_multiply_krylov,
    is_sptriangular,
    matrix_power,
    spbandwidth,
)
from clsparse_py.linalg.incomplete import block_jacobi, ic0, ilu0, isai
from clsparse_py.linalg.least_squares import lsmr, lsqr
from clsparse_py.linalg.norms import norm
from clsparse_py.linalg.preconditioners import chebyshev, jacobi
from clsparse_py.linalg.solvers import bicgstab, cg, gmres, minres
from clsparse_py.linalg.triangular import spsolve_triangular

__all__ = [
    "ArpackError",
    "ArpackNoConvergence",
    "LaplacianNd",
    "LinearOperator",
    "MatrixRankWarning",
    "SuperLU",
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
]
