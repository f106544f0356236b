"""Lazy imports of modules, and errors for older names of SciPy."""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["__getattr__"]

#: Names of the public modules of this package that are imported at their first use.
_LATER = ("amg", "csgraph", "distributed", "graph", "io", "linalg")
#: Modules of the public functions and classes that are imported at their first use, by the name of the function or class.
_FUNCTIONS = {
    "bsr_array": "clsparse_py._arrays.bsr",
    "expand_dims": "clsparse_py._arrays.functions.axes",
    "kron": "clsparse_py._arrays.functions.kronecker",
    "kronsum": "clsparse_py._arrays.functions.kronecker",
    "load_npz": "clsparse_py._arrays.functions.npz",
    "matrix_transpose": "clsparse_py._arrays.functions.axes",
    "permute_dims": "clsparse_py._arrays.functions.axes",
    "random_array": "clsparse_py._arrays.functions.sampling",
    "save_npz": "clsparse_py._arrays.functions.npz",
    "sddmm": "clsparse_py._operations.sddmm",
    "swapaxes": "clsparse_py._arrays.functions.axes",
    "warmup": "clsparse_py._command.warmup",
}
#: Names in this package that replace older names of `scipy.sparse`, by the older name, with arguments if these differ.
_TODAY = {
    "bmat": "block_array",
    "bsr_matrix": "bsr_array",
    "coo_matrix": "coo_array",
    "csc_matrix": "csc_array",
    "csr_matrix": "csr_array",
    "dia_matrix": "dia_array",
    "diags": "diags_array(diagonals, offsets=...)",
    "dok_matrix": "dok_array",
    "eye": "eye_array(m, n, k=...)",
    "identity": "eye_array",
    "lil_matrix": "lil_array",
    "rand": "random_array((m, n), ...)",
    "random": "random_array((m, n), ...)",
    "spdiags": "diags_array(diagonals, offsets=..., shape=...)",
    "spmatrix": "sparray",
}


def __getattr__(name: str) -> Any:
    """Return a public module, class or function, imported at its first use; raise an AttributeError for any other name.

    The error says which array class or function an older name of SciPy is today.
    """
    if name in _LATER:
        return importlib.import_module(f"clsparse_py.{name}")
    if name in _FUNCTIONS:
        member = getattr(importlib.import_module(_FUNCTIONS[name]), name)
        # Python does not call `__getattr__` again for a name that the package has by now.
        setattr(sys.modules["clsparse_py"], name, member)
        return member
    today = _TODAY.get(name)
    if today is None:
        raise AttributeError(f"module 'clsparse_py' has no attribute {name!r}")
    raise AttributeError(f"module 'clsparse_py' has no {name!r}, which is SciPy's older name: use clsparse_py.{today}")
