"""The operands of SpGEMM: checked, and put into the form that kernels take."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py.arithmetic import Arithmetic, name_of
from clsparse_py.convert import converted
from clsparse_py.device import Device
from clsparse_py.errors import class_of
from clsparse_py.matrix import Matrix, MatrixT
from clsparse_py.parts import made_of
from clsparse_py.semiring import Semiring, plus_times
from clsparse_py.spgemm.kernels import Form

__all__ = ["check_limits", "check_operands", "form_of", "memory_limit_of", "with_index"]

#: By default the workspace may take this share of the device's memory.
WORKSPACE_SHARE = 0.5
_INT32_MAX, _UINT32_MAX = np.iinfo(np.int32).max, np.iinfo(np.uint32).max


def check_operands(A: MatrixT, B: Any, semiring: Any) -> tuple[MatrixT, Matrix]:
    """Return both operands as matrices of one context whose shapes go together.

    Raises
    ------
    ValueError, TypeError
        They are no such matrices; the message names the argument.
    """
    if not isinstance(A, Matrix):
        raise TypeError(f"A: must be a clsparse_py.csr_array, is {class_of(A)}")
    if scipy.sparse.issparse(B):
        if B.ndim != 2:
            raise ValueError(f"B: must have two dimensions, has {B.ndim} (shape {B.shape})")
        B = Matrix.assembled(*made_of(B, queue=A.queue))
    if not isinstance(B, Matrix):
        raise TypeError(f"B: must be a csr_array or a SciPy sparse matrix, is {type(B).__name__}")
    if A.context is not B.context and A.context != B.context:
        raise ValueError("B: lives in another context than A")
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"B: must have {A.shape[1]} rows, as A is {A.shape[0]} x {A.shape[1]}, is {B.shape[0]} x {B.shape[1]}")
    if not isinstance(semiring, Semiring):
        raise TypeError(f"semiring: must be one of clsparse_py.semiring, is {type(semiring).__name__}")
    A.require_valid()
    B.require_valid()
    semiring.result_dtype(A.dtype, B.dtype)  # raises where it has none
    return A, B


def check_limits(memory_limit: Any, max_nnz: Any) -> None:
    """Check the arguments that bound a product.

    Raises
    ------
    ValueError, TypeError
        One is no number of bytes or entries.
    """
    for name, limit, least in (("memory_limit", memory_limit, 1), ("max_nnz", max_nnz, 0)):
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)):
            raise TypeError(f"{name}: must be an integer or None, is {type(limit).__name__}")
        if limit < least:
            raise ValueError(f"{name}: must be at least {least}, is {limit}")


def memory_limit_of(device: Device, memory_limit: int | None) -> int:
    """Return how many bytes the workspace may have."""
    return int(device.global_memory * WORKSPACE_SHARE) if memory_limit is None else int(memory_limit)


def with_index(queue: cl.CommandQueue, part: cl_array.Array, index: np.dtype[Any]) -> cl_array.Array:
    """Return an index array in the dtype that kernels take."""
    return part if part.dtype == index else converted(queue, "indices", part, index)


def form_of(A: Matrix, B: Matrix, semiring: Semiring = plus_times, c_index: str = "") -> Form:
    """Return the form of the numeric phase of a product; by default C's indices are the wider ones of A's and B's.

    Kernels take A's indices as they are: a copy of A's ``indptr`` could take more memory than all else. B's are narrowed for them
    if they can be.
    """
    widths = A.indptr.dtype.itemsize, B.indptr.dtype.itemsize
    narrowed = widths == (4, 8) and max(B.nnz, B.shape[1]) <= _INT32_MAX
    index, wider = "int64" if 8 in widths and not narrowed else "int32", "int64" if 8 in widths else "int32"
    return _form(index, B.shape[1] > _UINT32_MAX, name_of(A.dtype), name_of(B.dtype), semiring.name, c_index or wider)


@functools.lru_cache(maxsize=256)
def _form(index: str, wide: bool, a: str, b: str, semiring: str, c_index: str) -> Form:
    return Form("numeric", index, wide, Arithmetic(a, b, index, semiring), c_index)
