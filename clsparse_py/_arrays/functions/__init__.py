"""The functions around sparse arrays, under SciPy's names; results are on the device. Those of few programs are loaded late."""

from __future__ import annotations

from clsparse_py._arrays.functions.diagonals import diags_array, eye_array
from clsparse_py._arrays.functions.index_types import get_index_dtype, safely_cast_index_arrays
from clsparse_py._arrays.functions.kinds import dia_array, dok_array, issparse, lil_array, sparray
from clsparse_py._arrays.functions.stacking import block_array, block_diag, hstack, vstack
from clsparse_py._arrays.functions.triangles import find, tril, triu

__all__ = [
    "block_array",
    "block_diag",
    "dia_array",
    "diags_array",
    "dok_array",
    "eye_array",
    "find",
    "get_index_dtype",
    "hstack",
    "issparse",
    "lil_array",
    "safely_cast_index_arrays",
    "sparray",
    "tril",
    "triu",
    "vstack",
]
