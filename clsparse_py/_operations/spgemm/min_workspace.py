"""The least workspace of any product."""

from __future__ import annotations

import numpy as np

from clsparse_py._device.device import Device
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.spgemm.kernels import KernelTypes

__all__ = ["copy_bytes", "min_bytes"]

#: Bytes for counters.
_FIXED = 4096
#: Bytes for each compute unit.
_OF_UNIT = 512
#: Entries to a byte that scans and sorts keep of tiles.
_OF_TILES = 8


def min_bytes(device: Device, types: KernelTypes, A: Matrix, B: Matrix) -> int:
    """Return the bytes of workspace with which a product is made in any case: by windows of columns, which take none.

    That is the analysis' numbers of each row, the entries of each row, and copies of operands in canonical format and in one
    index type.
    """
    index, m = np.dtype(types.index).itemsize, A.shape[0]
    copies = copy_bytes(A, B, types)
    if not (A.nnz and B.nnz):
        return copies
    return copies + (4 + index) * m + m // _OF_TILES + _OF_UNIT * device.compute_units + _FIXED


def copy_bytes(A: Matrix, B: Matrix, types: KernelTypes) -> int:
    """Return the bytes that it takes at most to put operands into the form that kernels take."""
    return sum(_copy_bytes(matrix, np.dtype(types.index).itemsize) for matrix in (A, B))


def _copy_bytes(matrix: Matrix, index: int) -> int:
    """Return the bytes that it takes at most to copy a matrix in canonical format, with indices of ``index`` bytes."""
    n, rows, own_index = matrix.nnz, matrix.shape[0] + 1, matrix.indptr.dtype.itemsize
    n_bytes = 0 if own_index == index else index * (n + rows)
    if not matrix.has_canonical_format:
        # Numbers of entries, which are sorted and summed as values are; both at once.
        value = matrix.dtype.itemsize
        n_bytes += (10 * own_index + 2 * value + max(value, 8) + 12) * n + 4 * own_index * rows + n // _OF_TILES
    return n_bytes
