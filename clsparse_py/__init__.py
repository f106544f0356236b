"""Sparse linear algebra on any OpenCL device, with SciPy's vocabulary."""

try:
    from clsparse_py import homes, primitives, runtimes
except ModuleNotFoundError as error:
    needed = f"clsparse_py needs {error.name}, which this Python lacks: pip install '.[pocl]' in clsparse_py's folder brings all"
    raise ModuleNotFoundError(needed, name=error.name) from None
from clsparse_py._spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._spmm import spmm
from clsparse_py._spmv import spmv, spmv_plan
from clsparse_py._transpose import transpose, transpose_plan
from clsparse_py._warmup import warmup
from clsparse_py.coo import coo_array
from clsparse_py.csc import csc_array
from clsparse_py.csr import csr_array
from clsparse_py.device import default_queue, describe, devices
from clsparse_py.errors import BuildError, HostFallbackWarning, NoDeviceError
from clsparse_py.memory import free_memory, memory_info, record_use
from clsparse_py.semiring import max_times, min_plus, or_and, plus_pair, plus_times

__version__ = "0.1.0"

# Before PyOpenCL is first asked for platforms: quirks 8 and 34.
homes.provide()
runtimes.register()

__all__ = [
    "BuildError",
    "HostFallbackWarning",
    "NoDeviceError",
    "coo_array",
    "csc_array",
    "csr_array",
    "default_queue",
    "describe",
    "devices",
    "free_memory",
    "max_times",
    "memory_info",
    "min_plus",
    "or_and",
    "plus_pair",
    "plus_times",
    "primitives",
    "record_use",
    "spgemm",
    "spgemm_estimate",
    "spgemm_plan",
    "spmm",
    "spmv",
    "spmv_plan",
    "transpose",
    "transpose_plan",
    "warmup",
]
