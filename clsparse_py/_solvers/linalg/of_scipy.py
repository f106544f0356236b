"""Functions of ``scipy.sparse.linalg`` that run on the host: a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse.linalg

from clsparse_py._arrays.hosted import wrap_scipy
from clsparse_py._solvers.linalg.direct import SuperLU, wrap_solve

__all__ = [
    "bicg",
    "cgs",
    "expm",
    "factorized",
    "gcrotmk",
    "inv",
    "is_sptriangular",
    "lgmres",
    "onenormest",
    "qmr",
    "spbandwidth",
    "spilu",
    "splu",
    "svds",
    "tfqmr",
]

#: Beginning of the section Examples in the docstrings of SciPy's functions below: imports, A and b, up to the call.
_EXAMPLE = """
Examples
--------
>>> import numpy as np
>>> import clsparse_py as sp
>>> A, b = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csc"), np.ones(50)
>>> """
#: Phrase of a docstring for the result of one of SciPy's solvers, to be filled in with the name of the method.
_SOLUTION = "a solution by {}, and 0 if it is one"


def _absent(name: str) -> Callable[..., Any]:
    """Return a function that raises an AttributeError, in place of a function that the installed SciPy is too old to have."""

    def absent(*_: Any, **__: Any) -> Any:
        """Raise an AttributeError, as the installed SciPy has no function of that name."""
        raise AttributeError(f"scipy.sparse.linalg.{name}: SciPy {scipy.__version__} has no such function, a newer one has")

    absent.__name__, absent.__module__ = name, scipy.sparse.linalg.__name__
    return absent


def _row(name: str, does: str, example: str, output: object, **how: Any) -> Callable[..., Any]:
    """Return SciPy's function of a name for arrays of the device, with an example and its output in the docstring."""
    function = wrap_scipy(getattr(scipy.sparse.linalg, name, None) or _absent(name), does, **how)
    function.__doc__ = f"{function.__doc__}{_EXAMPLE}{example}\n{output}\n"
    return function


# SciPy's functions bicg to tfqmr run on the host, and ask A for products, which A's device computes.
bicg = _row("bicg", _SOLUTION.format("biconjugate gradients"), "sp.linalg.bicg(A, b)[1]", 0, multiplies=True)
cgs = _row("cgs", _SOLUTION.format("conjugate gradients squared"), "sp.linalg.cgs(A, b)[1]", 0, multiplies=True)
gcrotmk = _row("gcrotmk", _SOLUTION.format("flexible GCROT(m, k)"), "sp.linalg.gcrotmk(A, b)[1]", 0, multiplies=True)
lgmres = _row("lgmres", _SOLUTION.format("LGMRES"), "sp.linalg.lgmres(A, b)[1]", 0, multiplies=True)
onenormest = _row("onenormest", "a lower bound of the 1-norm", "float(sp.linalg.onenormest(A))", 6.0, multiplies=True)
qmr = _row("qmr", _SOLUTION.format("quasi-minimal residuals"), "sp.linalg.qmr(A, b)[1]", 0, multiplies=True)
svds = _row("svds", "some singular values with their vectors", "sp.linalg.svds(A, k=1)[1].round(2).item()", 6.0, multiplies=True)
tfqmr = _row("tfqmr", _SOLUTION.format("transpose-free QMR"), "sp.linalg.tfqmr(A, b)[1]", 0, multiplies=True)

# SciPy's functions expm to splu run on the host, on a copy of A.
expm = _row("expm", "the exponential, sparse but mostly full; `expm_multiply` needs none", "sp.linalg.expm(0 * A).nnz", 50)
factorized = _row(
    "factorized",
    "a function that solves ``A x = b`` by factors made once, for b of the host or of the device",
    "bool(np.allclose(A @ sp.linalg.factorized(A)(b), b))",
    True,
    takes="csc",
    gives=wrap_solve,
)
inv = _row("inv", "the inverse, sparse but mostly full", "bool(np.allclose(sp.linalg.inv(A) @ (A @ b), b))", True)
is_sptriangular = _row(
    "is_sptriangular",
    "whether an array is lower triangular, and whether it is upper triangular, by its stored entries",
    "sp.linalg.is_sptriangular(A)",
    (False, False),
    gives=lambda triangles, _: tuple(map(bool, triangles)),
)
spbandwidth = _row(
    "spbandwidth", "how far stored entries reach below the main diagonal, and above it", "sp.linalg.spbandwidth(A)", (1, 1)
)
spilu: Callable[..., SuperLU] = _row(
    "spilu",
    "incomplete LU factors of a square array as a `SuperLU`, to precondition with",
    "sp.linalg.cg(A, b, M=sp.linalg.LinearOperator(A.shape, sp.linalg.spilu(A).solve))[1]",
    0,
    takes="csc",
    gives=SuperLU,
)
splu: Callable[..., SuperLU] = _row(
    "splu",
    "the LU factors of a square array as a `SuperLU`, which solves for arrays of the host or of the device",
    "bool(np.allclose(A @ sp.linalg.splu(A).solve(b), b))",
    True,
    takes="csc",
    gives=SuperLU,
)
