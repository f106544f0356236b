"""The memory that a product takes, before anything of its size is allocated."""

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
from clsparse_py._operations.spgemm.min_workspace import copy_bytes, min_bytes
from clsparse_py._operations.spgemm.pipeline import inspect_structure
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import is_narrow
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import SciPySparse

__all__ = ["Estimate", "spgemm_estimate"]

#: The most products of a row in each class of the histogram; beyond them there is one more.
CLASSES = (0, *(1 << bit for bit in range(25)))
#: Bins that count the rows of each class.
_BINS = Bins((EMPTY, *(Bin("", None, max_products=most) for most in CLASSES[1:]), Bin("", None)))


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
        Entries of C: as many, or at most so many, as ``exact`` says.
    exact : bool
    c_bytes : int
        Of C's three arrays.
    workspace_bytes : int
        At most in use beside A, B and C at a time, if there is no limit and the method is "auto".
    min_bytes : int
        The least ``memory_limit`` that is enough, for any method.
    expansion_bytes : int
        Of all products with their columns, expanded at once. Methods that expand in global memory take at most this, and never
        more than ``memory_limit``.
    histogram : tuple of (int, int)
        Most products of a row, and how many rows have so many, more than the class before allows; -1 for the last class, which
        has no limit. Classes without rows are left out.
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
    bins = _BINS
    work: Work | None = None
    if left.nnz and right.nnz:
        structure = *of_a.arrays(index)[:2], *of_b.arrays(index)[:2]
        work = analyse(Chain(A.queue, *structure), shape, left.nnz, structure, bins).work
    n_products, bound = (work.n_products, work.bound) if work else (0, 0)
    rows_of_classes = work.taken if work else (m, *(0 for _ in CLASSES))
    nnz = _count(left, right) if exact and work else bound
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
        workspace_bytes=_most_bytes(device, types, A, B, n) + 2 * c_bytes if work else 0,
        min_bytes=min_bytes(device, types, A, B),
        expansion_bytes=n_products * (column + arithmetic.result.itemsize),
        histogram=tuple((most, rows) for most, rows in zip((*CLASSES, -1), rows_of_classes, strict=True) if rows),
    )


def _most_bytes(device: Device, types: KernelTypes, A: Matrix, B: Matrix, n_columns: int) -> int:
    """Return the most bytes of workspace that "auto" takes, beside twice the bytes of C."""
    n_bytes = workspace_bound(*(part for matrix in (A, B) for part in (matrix.indptr, matrix.indices, matrix.data)))
    if device.resident == 1 and is_narrow(types, n_columns, n_bytes):
        n_bytes += workers_on(device) * worker_bytes(n_columns, types)
    return n_bytes + copy_bytes(A, B, types)


def _count(left: Matrix, right: Matrix) -> int:
    """Return the entries of C, by the symbolic phase."""
    return inspect_structure(left, right, Request(), counting_only=True)[1].nnz
