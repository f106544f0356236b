"""The functions around sparse arrays, under SciPy's names; results are on the device. Those of few programs are loaded late."""

from __future__ import annotations

from clsparse_py.functions.diagonals import diags_array, eye_array
from clsparse_py.functions.index_types import get_index_dtype, safely_cast_index_arrays
from clsparse_py.functions.kinds import issparse, sparray
from clsparse_py.functions.stacking import block_array, block_diag, hstack, vstack
from clsparse_py.functions.triangles import find, tril, triu

__all__ = [
    "block_array",
    "block_diag",
    "diags_array",
    "eye_array",
    "find",
    "get_index_dtype",
    "hstack",
    "issparse",
    "safely_cast_index_arrays",
    "sparray",
    "tril",
    "triu",
    "vstack",
]
