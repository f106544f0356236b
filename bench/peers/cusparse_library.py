"""cuSPARSE as a C library: its handle, its calls, its numbers and its matrices."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from bench.peers import cuda
from bench.peers.cuda import address

# cusparseOperation_t: the matrix itself.
NON_TRANSPOSE = 0
# cusparseIndexBase_t: indices from 0.
ZERO_BASED = 0
# cusparseIndexType_t, by NumPy's names.
INDEX_TYPES = {"int32": 2, "int64": 3}
# cudaDataType, by NumPy's names.
VALUE_TYPES = {"float32": 0, "float64": 1}
# C types of scalars, by NumPy's names of dtypes.
SCALARS: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}


@functools.cache
def handle() -> ctypes.c_void_p:
    """Return the library's handle, on the current stream."""
    import cupy

    # cuSPARSE uses the context that is current; touching the runtime makes one.
    cupy.cuda.runtime.free(0)
    made = ctypes.c_void_p()
    call("cusparseCreate", ctypes.byref(made))
    call("cusparseSetStream", made, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))
    return made


def call(function: str, *arguments: Any) -> None:
    """Call a function of the library.

    Raises
    ------
    RuntimeError
        If it does not succeed.
    """
    status = getattr(cuda.library("cusparse"), function)(*arguments)
    if status != 0:
        raise RuntimeError(f"{function} returned status {status}")


class CsrDescriptor:
    """A matrix descriptor, kept for as long as the arrays that it points to; without columns and values it has no entries yet."""

    def __init__(self, shape: tuple[int, int], value_dtype: str, indptr: Any, indices: Any = None, data: Any = None) -> None:
        self.arrays = (indptr, indices, data)
        self.pointer = ctypes.c_void_p()
        index_type = INDEX_TYPES[indptr.dtype.name]
        parts = [None if array is None else address(array) for array in self.arrays]
        sizes = (ctypes.c_int64(n) for n in (*shape, 0 if indices is None else indices.size))
        types = (index_type, index_type, ZERO_BASED, VALUE_TYPES[value_dtype])
        call("cusparseCreateCsr", ctypes.byref(self.pointer), *sizes, *parts, *types)

    def __del__(self) -> None:
        cuda.library("cusparse").cusparseDestroySpMat(self.pointer)
