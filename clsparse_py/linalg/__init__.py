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

import scipy.sparse.linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LaplacianNd, LinearOperator, MatrixRankWarning

from clsparse_py.hosted import hosted
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

#: Functions of SciPy that ask A for products: what each returns, and the rest of a call in an example with its result.
_SOLUTION = "a solution by {}, and 0 if it is one"
_OF_SCIPY = {
    "bicg": (_SOLUTION.format("biconjugate gradients"), "(A, b)[1]", 0),
    "cgs": (_SOLUTION.format("conjugate gradients squared"), "(A, b)[1]", 0),
    "gcrotmk": (_SOLUTION.format("flexible GCROT(m, k)"), "(A, b)[1]", 0),
    "lgmres": (_SOLUTION.format("LGMRES"), "(A, b)[1]", 0),
    "onenormest": ("a lower bound of the 1-norm, by products", "(A).item()", 6.0),
    "qmr": (_SOLUTION.format("quasi-minimal residuals"), "(A, b)[1]", 0),
    "svds": ("some singular values, and their vectors", "(A, k=1)[1].round(2).item()", 6.0),
    "tfqmr": (_SOLUTION.format("transpose-free quasi-minimal residuals"), "(A, b)[1]", 0),
}
_EXAMPLE = """
Examples
--------
>>> import numpy as np
>>> import clsparse_py as sp
>>> A, b = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50)), np.ones(50)
>>> sp.linalg."""
for _name, (_does, _call, _result) in _OF_SCIPY.items():
    globals()[_name] = hosted(getattr(scipy.sparse.linalg, _name), _does, multiplies=True)
    globals()[_name].__doc__ += f"{_EXAMPLE}{_name}{_call}\n{_result}\n"

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
