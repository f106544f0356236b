"""Sparse linear algebra on any OpenCL device, with SciPy's vocabulary."""

from typing import TYPE_CHECKING

try:
    from clsparse_py import primitives
    from clsparse_py._device import runtimes
    from clsparse_py._ground import cache_dirs
except ModuleNotFoundError as error:
    needed = f"clsparse_py needs {error.name}, which this Python lacks: pip install '.[pocl]' in clsparse_py's folder brings all"
    raise ModuleNotFoundError(needed, name=error.name) from None
from scipy.sparse import (
    SparseEfficiencyWarning,
    SparseWarning,
    isspmatrix,
    isspmatrix_bsr,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    isspmatrix_dia,
    isspmatrix_dok,
    isspmatrix_lil,
)

from clsparse_py._arrays.coo import coo_array
from clsparse_py._arrays.csc import csc_array
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.functions import (
    block_array,
    block_diag,
    dia_array,
    diags_array,
    dok_array,
    eye_array,
    find,
    get_index_dtype,
    hstack,
    issparse,
    lil_array,
    safely_cast_index_arrays,
    sparray,
    tril,
    triu,
    vstack,
)
from clsparse_py._device.device import default_queue, describe, devices
from clsparse_py._ground.errors import BuildError, HostFallbackWarning, NoDeviceError
from clsparse_py._ground.late_names import __getattr__ as __getattr__
from clsparse_py._memory.memory import free_memory, memory_info
from clsparse_py._memory.order import record_use
from clsparse_py._operations.spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._operations.spmm import spmm, spmm_plan
from clsparse_py._operations.spmv import spmv, spmv_plan
from clsparse_py._operations.transpose import transpose, transpose_plan
from clsparse_py._precision.semiring import Semiring, max_times, min_plus, or_and, plus_pair, plus_times

if TYPE_CHECKING:
    # Public names that few processes use are imported at their first use (`late_names.__getattr__`), as the imports take long.
    from clsparse_py import amg, csgraph, distributed, graph, io, linalg
    from clsparse_py._arrays.bsr import bsr_array
    from clsparse_py._arrays.functions.axes import expand_dims, matrix_transpose, permute_dims, swapaxes
    from clsparse_py._arrays.functions.kronecker import kron, kronsum
    from clsparse_py._arrays.functions.npz import load_npz, save_npz
    from clsparse_py._arrays.functions.sampling import random_array
    from clsparse_py._command.warmup import warmup
    from clsparse_py._operations.sddmm import sddmm
del TYPE_CHECKING

__version__ = "0.2.0"

# OpenCL drivers read the cache folders and libraries set here when PyOpenCL first lists platforms: quirks 8 and 34.
cache_dirs.provide()
runtimes.register()
del cache_dirs, runtimes

__all__ = [
    "BuildError",
    "HostFallbackWarning",
    "NoDeviceError",
    "Semiring",
    "SparseEfficiencyWarning",
    "SparseWarning",
    "amg",
    "block_array",
    "block_diag",
    "bsr_array",
    "coo_array",
    "csc_array",
    "csgraph",
    "csr_array",
    "default_queue",
    "describe",
    "devices",
    "dia_array",
    "diags_array",
    "distributed",
    "dok_array",
    "expand_dims",
    "eye_array",
    "find",
    "free_memory",
    "get_index_dtype",
    "graph",
    "hstack",
    "io",
    "issparse",
    "isspmatrix",
    "isspmatrix_bsr",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "isspmatrix_dok",
    "isspmatrix_lil",
    "kron",
    "kronsum",
    "lil_array",
    "linalg",
    "load_npz",
    "matrix_transpose",
    "max_times",
    "memory_info",
    "min_plus",
    "or_and",
    "permute_dims",
    "plus_pair",
    "plus_times",
    "primitives",
    "random_array",
    "record_use",
    "safely_cast_index_arrays",
    "save_npz",
    "sddmm",
    "sparray",
    "spgemm",
    "spgemm_estimate",
    "spgemm_plan",
    "spmm",
    "spmm_plan",
    "spmv",
    "spmv_plan",
    "swapaxes",
    "transpose",
    "transpose_plan",
    "tril",
    "triu",
    "vstack",
    "warmup",
]
