"""The operands of SpGEMM: checked, and put into the form that kernels take."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from clsparse_py._device.device import Device
from clsparse_py._formats.parts import matrix_of
from clsparse_py._ground.errors import class_of
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._matrix.matrix import Matrix, MatrixT, is_sparse
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import Semiring, plus_times

__all__ = ["check_limits", "check_operands", "memory_limit_of", "require_at_most", "types_of"]

#: Default limit of a product's workspace (memory beside A, B and C), as a share of the device's memory.
WORKSPACE_SHARE = 0.5
#: Most columns of B that SpGEMM's kernels number with 32 bits.
_UINT32_MAX = np.iinfo(np.uint32).max


def check_operands(A: MatrixT, B: Any, semiring: Any) -> tuple[MatrixT, Matrix]:
    """Return the operands A and B of a product, B as a matrix of A's OpenCL context; raise if they or the semiring do not suit.

    Raises
    ------
    ValueError, TypeError
        They are no such matrices; the message names the argument.
    """
    if not isinstance(A, Matrix):
        raise TypeError(f"A: must be a clsparse_py.csr_array, is {class_of(A)}")
    if not isinstance(B, Matrix) and not is_sparse(B):
        raise TypeError(f"B: must be a csr_array or a SciPy sparse matrix, is {type(B).__name__}")
    for name, operand in (("A", A), ("B", B)):
        if len(operand.shape) != 2:
            raise ValueError(f"{name}: must have two dimensions, has {len(operand.shape)} (shape {operand.shape})")
    if not isinstance(B, Matrix):
        B = matrix_of(A.queue, B)
    (m, k), (rows, n), context = A.shape, B.shape, A.context
    if context is not B.context and context != B.context:
        raise ValueError("B: lives in another context than A")
    if k != rows:
        raise ValueError(f"B: must have {k} rows, as A is {m} x {k}, is {rows} x {n} (dimension mismatch)")
    if not isinstance(semiring, Semiring):
        raise TypeError(f"semiring: must be one of clsparse_py._precision.semiring, is {type(semiring).__name__}")
    A.require_valid()
    if B is not A:
        B.require_valid()
    return A, B


def check_limits(memory_limit: Any, max_nnz: Any) -> None:
    """Check that ``memory_limit`` (bytes) is None or an integer of at least 1, and ``max_nnz`` (entries) one of at least 0.

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


def require_at_most(nnz: int, max_nnz: int | None) -> None:
    """Raise a ValueError if a product has more than ``max_nnz`` entries; None is no limit."""
    if max_nnz is not None and nnz > max_nnz:
        raise ValueError(f"max_nnz: the product has {nnz:,} entries, more than {max_nnz:,}")


def memory_limit_of(device: Device, memory_limit: int | None) -> int:
    """Return the bytes that a product's workspace may have: ``memory_limit``, or the default of the device if None."""
    return int(device.global_memory * WORKSPACE_SHARE) if memory_limit is None else int(memory_limit)


def types_of(A: Matrix, B: Matrix, semiring: Semiring = plus_times, c_index: str = "") -> KernelTypes:
    """Return the dtypes of a product's kernels in the numeric phase; by default C's indices are the wider of A's and B's.

    Kernels take A's indices as they are: a copy of A's ``indptr`` could take more memory than all else. B's are narrowed for them
    if they can be.

    Raises
    ------
    TypeError
        The semiring is not defined on the operands' dtypes.
    """
    widths, n = (A.indptr.dtype.itemsize, B.indptr.dtype.itemsize), B.shape[1]
    index = wider = "int64" if 8 in widths else "int32"
    if widths == (4, 8) and max(B.nnz, n) <= INT32_MAX:
        index = "int32"
    return _numeric_types(index, n > _UINT32_MAX, A.data.dtype, B.data.dtype, semiring, c_index or wider)


@functools.lru_cache(maxsize=256)
def _numeric_types(index: str, wide: bool, a: np.dtype[Any], b: np.dtype[Any], semiring: Semiring, c_index: str) -> KernelTypes:
    """Return the types of a product's kernels in the numeric phase; raise a TypeError if the semiring takes no such values."""
    semiring.result_dtype(a, b)  # raises a TypeError if there is none
    return KernelTypes("numeric", index, wide, Arithmetic(a.name, b.name, index, semiring.name), c_index)
