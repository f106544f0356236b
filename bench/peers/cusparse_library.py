"""cuSPARSE as a C library: its handle, its calls, its numbers, its matrices and vectors, and workspace for calls."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from bench.contestants import DeclinedError
from bench.peers import cuda
from bench.peers.cuda import Arrays, address

# cusparseOperation_t: the matrix itself, or its transposed.
NON_TRANSPOSE, TRANSPOSE = 0, 1
# cusparseIndexBase_t: indices from 0.
ZERO_BASED = 0
# cusparseIndexType_t, by NumPy's names.
INDEX_TYPES = {"int32": 2, "int64": 3}
# cudaDataType, by NumPy's names.
VALUE_TYPES = {"float32": 0, "float64": 1}
# cusparseOrder_t, by NumPy's names.
ORDERS = {"F": 1, "C": 2}
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


def version() -> int:
    """Return the library's version: 12904 is 12.9.4."""
    number = ctypes.c_int()
    call("cusparseGetVersion", handle(), ctypes.byref(number))
    return number.value


def require(functions: tuple[str, ...]) -> None:
    """Check that the library has functions.

    Raises
    ------
    DeclinedError
        If it lacks one.
    """
    if missing := [function for function in functions if not hasattr(cuda.library("cusparse"), function)]:
        raise DeclinedError(f"this cuSPARSE has no {missing[0]}")


def make_workspace(size: ctypes.c_size_t) -> Any:
    """Return at least one byte from CuPy's pool: some functions take no null pointer."""
    import cupy

    return cupy.empty(max(size.value, 1), cupy.uint8)


class Description:
    """The state that the phases of an operation share, made and destroyed by two functions of the library."""

    def __init__(self, create: str, destroy: str) -> None:
        self._destroy = destroy
        self.pointer = ctypes.c_void_p()
        call(create, ctypes.byref(self.pointer))

    def __del__(self) -> None:
        getattr(cuda.library("cusparse"), self._destroy)(self.pointer)


def describe(operation: str) -> Description:
    """Return a new description for an operation such as ``SpGEMM``."""
    return Description(f"cusparse{operation}_createDescr", f"cusparse{operation}_destroyDescr")


class CsrDescriptor:
    """A matrix descriptor, kept for as long as the arrays that it points to; without columns and values it has no entries yet."""

    def __init__(self, shape: tuple[int, int], value_dtype: str, indptr: Any, indices: Any = None, data: Any = None) -> None:
        self.arrays = (indptr, indices, data)
        self._value_dtype = value_dtype
        self.pointer = ctypes.c_void_p()
        index_type = INDEX_TYPES[indptr.dtype.name]
        parts = [None if array is None else address(array) for array in self.arrays]
        sizes = (ctypes.c_int64(n) for n in (*shape, 0 if indices is None else indices.size))
        types = (index_type, index_type, ZERO_BASED, VALUE_TYPES[value_dtype])
        call("cusparseCreateCsr", ctypes.byref(self.pointer), *sizes, *parts, *types)

    def allocate(self) -> Arrays:
        """Allocate columns and values of a result whose number of entries the library knows now, and return its arrays."""
        import cupy

        rows, columns, entries = (ctypes.c_int64() for _ in range(3))
        call("cusparseSpMatGetSize", self.pointer, *(ctypes.byref(size) for size in (rows, columns, entries)))
        indptr = self.arrays[0]
        self.arrays = indptr, cupy.empty(entries.value, indptr.dtype), cupy.empty(entries.value, self._value_dtype)
        call("cusparseCsrSetPointers", self.pointer, *map(address, self.arrays))
        return self.arrays

    def __del__(self) -> None:
        cuda.library("cusparse").cusparseDestroySpMat(self.pointer)


def make_result(shape: tuple[int, int], value_dtype: str, index_dtype: Any) -> CsrDescriptor:
    """Return a matrix to be computed, with row pointers alone."""
    import cupy

    return CsrDescriptor(shape, value_dtype, cupy.empty(shape[0] + 1, index_dtype))


class DenseDescriptor:
    """A descriptor of a vector or a matrix, kept for as long as the array that it points to.

    Parameters
    ----------
    array
        The elements, in any shape.
    shape
        Of the vector or matrix.
    order
        Whether rows ("C") or columns ("F") of a matrix are adjacent.
    """

    def __init__(self, array: Any, shape: tuple[int, ...], order: str = "C") -> None:
        self.array = array
        self.pointer = ctypes.c_void_p()
        value_type, sizes = VALUE_TYPES[array.dtype.name], [ctypes.c_int64(n) for n in shape]
        self._kind = "DnVec" if len(shape) == 1 else "DnMat"
        if len(shape) == 1:
            call("cusparseCreateDnVec", ctypes.byref(self.pointer), *sizes, address(array), value_type)
        else:
            leading = sizes[0 if order == "F" else 1]
            call("cusparseCreateDnMat", ctypes.byref(self.pointer), *sizes, leading, address(array), value_type, ORDERS[order])

    def __del__(self) -> None:
        getattr(cuda.library("cusparse"), f"cusparseDestroy{self._kind}")(self.pointer)
