"""Estimates of the memory that a product takes, before anything of its size is allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from clsparse_py._build.plain import door
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.spgemm.accumulator import workspace_bound
from clsparse_py._operations.spgemm.analysis import Work, analyse
from clsparse_py._operations.spgemm.arguments import check_operands, types_of
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.canonical_values import CanonicalOperand
from clsparse_py._operations.spgemm.explanation import ProductSizes
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.dense_chunked import worker_bytes, workers_on
from clsparse_py._operations.spgemm.pipeline import inspect_structure
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import is_narrow
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import SciPySparse

__all__ = ["Estimate", "min_bytes", "spgemm_estimate"]

#: Most products of a row in each class of an estimate's histogram of rows; rows with more are in one more class.
CLASSES = (0, *(1 << bit for bit in range(25)))
#: Bins (classes of rows), without accumulators, by which the analysis counts the rows in each class of an estimate's histogram.
_CLASS_BINS = Bins((EMPTY, *(Bin("", None, max_products=most) for most in CLASSES[1:]), Bin("", None)))
#: Bytes of workspace that an estimate of SpGEMM allows for kernels' counters (totals), in a product of any size.
_COUNTER_BYTES = 4096
#: Bytes of workspace that an estimate allows for each compute unit of the device.
_UNIT_BYTES = 512
#: Number of matrix entries for which the per-tile data of scans and sorts takes one byte of an estimate's workspace.
_ENTRIES_PER_TILE_BYTE = 8


@dataclass(frozen=True)
class Estimate(ProductSizes):
    """The work and the memory that a product takes. Made by `spgemm_estimate`. Prints as a table.

    Attributes
    ----------
    shape : tuple of int
        Of C.
    nnz_a, n_products : int
        Entries of A, without duplicates, and intermediate products.
    nnz : int
        Entries of C: their number, or an upper bound, as ``exact`` says.
    exact : bool
    c_bytes : int
        Bytes of C's three arrays.
    workspace_bytes : int
        The most bytes in use beside A, B and C at a time, if there is no limit and the method is "auto".
    min_bytes : int
        The least ``memory_limit`` that is enough, for any method.
    expansion_bytes : int
        Bytes of all products with their columns, expanded at once. Methods that expand in global memory take at most this, and
        never more than ``memory_limit``.
    histogram : tuple of (int, int)
        For each class of rows, the most products of a row, and the number of rows; -1 for the last class, which has no limit.
        Classes without rows are left out.
    """

    shape: tuple[int, int]
    nnz_a: int
    n_products: int
    nnz: int
    exact: bool
    c_bytes: int
    workspace_bytes: int
    min_bytes: int
    expansion_bytes: int
    histogram: tuple[tuple[int, int], ...]

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The estimate as a table: sizes and bytes in the title, then the number of rows of each class by products of a row."""
        rows, columns = self.shape
        bound = "" if self.exact else "at most "
        title = (
            f"SpGEMM, estimate of a {rows} x {columns} product: {self.n_products:,} products, {bound}{self.nnz:,} entries; "
            f"bytes: C {bound}{self.c_bytes:,}, workspace at most {self.workspace_bytes:,}, with the least memory_limit "
            f"{self.min_bytes:,}"
        )
        classes = [("more" if most < 0 else f"{most:,}", f"{n_rows:,}") for most, n_rows in self.histogram]
        return Table(title, ("products of a row up to", "rows"), classes, numbers="rows")


@door()
def spgemm_estimate(A: Matrix, B: Matrix | SciPySparse, *, exact: bool = False) -> Estimate:
    """Estimate the work and the memory of ``A @ B`` before it is made.

    Waits for the device once, or twice if ``exact``; an operand that is not in canonical format is copied into it.

    Parameters
    ----------
    A : csr_array
        m x k.
    B : csr_array or SciPy sparse matrix
        k x n.
    exact : bool
        False: the entries of C are bounded, row by row, by the products and by the columns. True: the symbolic phase counts them.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError, TypeError
        Shapes, contexts or dtypes that do not go together.
    MemoryError
        The device has not the memory for the analysis or, if ``exact``, for the symbolic phase of one row.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> sp.spgemm_estimate(A, A).n_products
    4
    """
    A, B = check_operands(A, B, plus_times)
    of_a, of_b = CanonicalOperand(A), CanonicalOperand(B)
    left, right = of_a.matrix, of_b.matrix
    types = types_of(left, right)
    arithmetic, index = types.arithmetic, np.dtype(types.index)
    assert isinstance(arithmetic, Arithmetic)  # of a numeric phase
    m, n = shape = (left.shape[0], right.shape[1])
    work: Work | None = None
    if left.nnz and right.nnz:
        structure = *of_a.arrays(index)[:2], *of_b.arrays(index)[:2]
        work = analyse(Chain(A.queue, *structure), shape, left.nnz, structure, _CLASS_BINS).work
    n_products, bound = (work.n_products, work.bound) if work else (0, 0)
    rows_of_classes = work.taken if work else (m, *(0 for _ in CLASSES))
    nnz = inspect_structure(left, right, Request(), counting_only=True)[1].nnz if exact and work else bound
    c_index = index.itemsize if max(nnz, m, n) <= INT32_MAX else 8
    c_bytes = (m + 1) * c_index + nnz * (c_index + arithmetic.result.itemsize)
    column = 8 if types.wide else 4
    device = describe(A.queue.device)
    return Estimate(
        shape,
        left.nnz,
        n_products,
        nnz,
        exact,
        c_bytes=c_bytes,
        workspace_bytes=_max_workspace(device, types, A, B, n) + 2 * c_bytes if work else 0,
        min_bytes=min_bytes(device, types, A, B),
        expansion_bytes=n_products * (column + arithmetic.result.itemsize),
        histogram=tuple((most, rows) for most, rows in zip((*CLASSES, -1), rows_of_classes, strict=True) if rows),
    )


def _max_workspace(device: Device, types: KernelTypes, A: Matrix, B: Matrix, n_columns: int) -> int:
    """Return the most bytes of workspace that the method "auto" takes beside twice the bytes of C."""
    n_bytes = workspace_bound(*(part for matrix in (A, B) for part in (matrix.indptr, matrix.indices, matrix.data)))
    if device.resident == 1 and is_narrow(types, n_columns, n_bytes):
        n_bytes += workers_on(device) * worker_bytes(n_columns, types)
    return n_bytes + copy_bytes(A, B, types)


def min_bytes(device: Device, types: KernelTypes, A: Matrix, B: Matrix) -> int:
    """Return the least bytes of workspace that a product needs: by windows of columns, whose accumulator takes no memory.

    The analysis keeps numbers of each row, the symbolic phase the entries of each row, and operands are copied in canonical
    format and in one index type.
    """
    index, m = np.dtype(types.index).itemsize, A.shape[0]
    copies = copy_bytes(A, B, types)
    if not (A.nnz and B.nnz):
        return copies
    return copies + (4 + index) * m + m // _ENTRIES_PER_TILE_BYTE + _UNIT_BYTES * device.compute_units + _COUNTER_BYTES


def copy_bytes(A: Matrix, B: Matrix, types: KernelTypes) -> int:
    """Return the most bytes of copies of both operands in canonical format and with one index type."""
    return sum(_copy_bytes(matrix, np.dtype(types.index).itemsize) for matrix in (A, B))


def _copy_bytes(matrix: Matrix, index: int) -> int:
    """Return the most bytes of a matrix's copy in canonical format with indices of ``index`` bytes; 0 if it needs no copy."""
    n, rows, own_index = matrix.nnz, matrix.shape[0] + 1, matrix.indptr.dtype.itemsize
    n_bytes = 0 if own_index == index else index * (n + rows)
    if not matrix.has_canonical_format:
        # For a copy in canonical format, positions of entries are sorted and summed like values; both are in memory at once.
        value = matrix.dtype.itemsize
        n_bytes += (10 * own_index + 2 * value + max(value, 8) + 12) * n + 4 * own_index * rows + n // _ENTRIES_PER_TILE_BYTE
    return n_bytes
