"""`bsr_array`: a sparse matrix of dense blocks on an OpenCL device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray, cast_target, require_reversed
from clsparse_py._arrays.bsr.conversion import flat, gather, mark_nonzero_blocks, to_csr
from clsparse_py._arrays.bsr.kernels import MAX_ENTRIES
from clsparse_py._arrays.bsr.parts import build_from_blocks, make_blocks, parse_blocksize, place_blocks, view_as_blocks
from clsparse_py._arrays.bsr.products import enqueue_product, product_of_blocks
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.delegation import BY_SCALAR, OF_SUMS, OF_VALUES, Delegating, delegate, result_of
from clsparse_py._arrays.doors import doors
from clsparse_py._formats.canonical import with_marked, with_sorted_rows, without_duplicates
from clsparse_py._formats.parts import SetStructure
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._matrix.convert import copied
from clsparse_py._matrix.matrix import Matrix, Structure, is_sparse
from clsparse_py._matrix.operands import check_scale, dense_operand, result_for
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.operands import is_scalar
from clsparse_py._operations.indexing.methods import Indexing
from clsparse_py._operations.transpose import Permutation, find_permutation
from clsparse_py._operations.transpose_cache import MemoryReport, report_memory
from clsparse_py._precision.semiring import plus_times
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

if TYPE_CHECKING:
    from clsparse_py._arrays.coo import coo_array
    from clsparse_py._arrays.csc import csc_array

__all__ = ["bsr_array"]

#: Names of elementwise operations on a `bsr_array` and a sparse array of the same shape whose result is a `bsr_array`.
_OF_BLOCKS = frozenset(("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "multiply"))


@doors
class bsr_array(SetStructure, Indexing, Delegating, one_dimensional=False):  # noqa: N801 - SciPy's name for it
    """A sparse matrix of dense blocks of one size, in Block Sparse Row form, on an OpenCL device.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, array of ours, array_like or tuple
        A sparse array of any format, SciPy's or ours; a dense two-dimensional array; ``(data, indices, indptr)``, NumPy or
        `pyopencl.array.Array`, of which ``data`` has three dimensions: blocks, their rows and their columns;
        ``(data, (row, col))``, whose duplicates are summed; or ``(rows, columns)``, for no blocks.
    shape : tuple of int, optional
        Rows and columns. By default what ``arg1`` has, or the smallest that holds its blocks.
    dtype, copy, queue, check, maxprint
        As for `csr_array`.
    blocksize : tuple of int, optional
        Rows and columns of a block, which divide the shape. By default that of ``arg1`` or, if it has none, the largest of 1, 2,
        3, 4 and 6 rows whose blocks are well filled, as SciPy chooses.

    Attributes
    ----------
    format : str
        "bsr".
    blocksize : tuple of int
        Rows and columns of a block.
    data : pyopencl.array.Array
        The blocks, three-dimensional. May be set to others of the same size.
    indices, indptr : pyopencl.array.Array
        The column of each block, counted in blocks, and where each row of blocks begins.
    shape : tuple of int
    dtype : numpy.dtype
        Of the values.
    nnz : int
        Stored entries, zeros of blocks included.
    ndim : int
        2.
    queue : pyopencl.CommandQueue
    context : pyopencl.Context
        Of the queue.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing or no valid structure, blocks do not divide the shape, or parts live in another context; the
        message names the part.

    See Also
    --------
    csr_array.tobsr : A matrix of another format as blocks.

    Notes
    -----
    Products with dense vectors and matrices have kernels for the size of blocks up to 64 entries: a block costs one index, where
    CSR stores one for each entry. Blocks of one entry, and larger ones, are multiplied by way of CSR; so are done indexing,
    reductions and operations entry by entry, whose results are of SciPy's formats. That CSR is kept until the matrix changes:
    until `data` is set. After values were written into `data` in place, say ``A.data = A.data``.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.bsr_array((np.array([[[1, 2], [3, 4]], [[5, 0], [0, 5]]]), [0, 1], [0, 1, 2]))
    >>> A.toarray()
    array([[1, 2, 0, 0],
           [3, 4, 0, 0],
           [0, 0, 5, 0],
           [0, 0, 0, 5]])
    >>> A @ np.array([1, 1, 1, 1])
    array([3, 7, 5, 5])
    >>> A.T.blocksize, A.nnz
    ((2, 2), 8)
    """

    _format = "bsr"
    _pair_type: Self  # for type checkers: see `annotations.HasPairType`
    _structure: Structure
    _data: cl_array.Array

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        blocksize: Any = None,
        *,
        queue: cl.CommandQueue | None = None,
        check: bool = True,
        maxprint: int | None = None,
    ) -> None:
        self._become(*build_from_blocks(arg1, shape, dtype, blocksize, queue, copy=copy, check=check))
        self.require_valid()
        self._print_at_most(maxprint)

    @classmethod
    def over(cls, structure: Structure, data: cl_array.Array) -> Self:
        """Return the `bsr_array` of a structure and a three-dimensional array of blocks, which are neither checked nor copied."""
        array = object.__new__(cls)
        array._become(structure, data)
        return array

    @classmethod
    def of_rows(cls, A: csr_array, blocksize: Any = None) -> Self:
        """Return a `csr_array` converted to a `bsr_array`; see `csr_array.tobsr`."""
        return cls.over(*make_blocks(A, blocksize))

    @override
    def _become(self, structure: Structure, data: cl_array.Array) -> None:
        """Replace the structure and the blocks of the matrix, and empty its caches."""
        self._structure, self._data = structure, data
        self._csr: csr_array | None = None
        self._transposed_blocks: Self | None = None
        self._set_arrays = {}

    @override
    def _checked(self) -> Facts:
        """Return the `Facts` about the matrix's structure (whether blocks are sorted, say), after a check if they are unknown."""
        self.require_valid()
        return self._structure.checked()

    @override
    def _alias(self) -> Self:
        """Return another `bsr_array` over the same device arrays, with the same cached matrices."""
        alias = self.over(self._structure, self._data)
        alias._csr, alias._transposed_blocks = self._csr, self._transposed_blocks
        return alias

    # ---- attributes

    @property
    def blocksize(self) -> tuple[int, int]:
        """The numbers of rows and columns of a block."""
        _, rows, columns = self._data.shape
        return int(rows), int(columns)

    @property
    @override
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the matrix."""
        (rows, columns), (n_rows, n_columns) = self.blocksize, self._structure.shape
        return n_rows * rows, n_columns * columns

    @property
    @override
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the matrix's values."""
        return np.dtype(self._data.dtype)

    @property
    @override
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the matrix run, unless a dense operand on the device has another queue."""
        return self._structure.queue

    @property
    @override
    def nnz(self) -> int:
        """The number of stored entries, zeros of blocks included."""
        self.require_valid()
        return int(self._data.size)

    @property
    def structure(self) -> Structure:
        """The structure (sparsity pattern) of the matrix's blocks, with the known facts about the structure, and its plans."""
        return self._structure

    @property
    def data(self) -> cl_array.Array:
        """The blocks, a device array of three dimensions. May be set to an array of the same shape, NumPy's or the device's."""
        return self._data

    @data.setter
    def data(self, blocks: Any) -> None:
        """Replace the blocks of the matrix by as many others of the same size, and empty its caches."""
        values = place_blocks(self.queue, blocks, None, copy=False)
        if values.shape != self._data.shape:
            raise ValueError(f"data: must have shape {self._data.shape}, has {values.shape}")
        self._become(self._structure, values)

    def require_valid(self) -> None:
        """Check the matrix's structure unless it was checked before, and drop the blocks stored after those of the last row."""
        self._structure.require_valid()
        n, n_data = self._structure.indices.size, self._data.shape[0]
        if n_data != n:
            if n_data != self._structure.n_given:
                raise ValueError(f"data: must have the {n} blocks of indices, has {n_data}")
            rows, columns = self.blocksize
            self._data = view_as_blocks(flat(self.queue, self._data, n * rows * columns), self.blocksize)

    # ---- methods that change the array in place, and copies

    def _block_pattern(self) -> Matrix:
        """Return the pattern of the matrix's blocks as a CSR matrix, with one entry, of any value, for each block."""
        self.require_valid()
        return Matrix.assembled(self._structure, flat(self.queue, self._data, self._data.shape[0]))

    def _number_blocks(self) -> cl_array.Array:
        """Return a device array of the numbers 0, 1, 2, ..., one for each block of the matrix."""
        n, index = self.indices.size, self.indptr.dtype
        return copy_to_device(self.queue, "numbers of blocks", np.arange(n, dtype=index))

    @override
    def sort_indices(self) -> None:
        """Sort the blocks of each block row by column, stably, in place; unless sorted, `data` and `indices` become new."""
        if not self.has_sorted_indices:
            numbers, indices, indptr = with_sorted_rows(self.queue, (self._number_blocks(), self.indices, self.indptr))
            data = gather(self.queue, self._data, numbers, "moved")
            self._become(Structure(self.queue, self._structure.shape, indices, indptr), data)

    def sum_duplicates(self) -> None:
        """Sort the blocks of each row of blocks by column, and replace blocks at the same place by their sum, in place."""
        if self.has_canonical_format:
            return
        queue = self.queue
        numbers, indices, indptr = with_sorted_rows(queue, (self._number_blocks(), self.indices, self.indptr))
        ones = copy_to_device(queue, "counts of blocks", np.ones(indices.size, indptr.dtype))
        counts, indices, indptr = without_duplicates(queue, (ones, indices, indptr))
        starts, chain = allocate(queue, "places of blocks", indices.size + 1, indptr.dtype), Chain(queue, counts)
        enqueue_scan(chain, counts, starts, indices.size, kind="pointers")
        chain.finish(starts)
        data = gather(queue, self._data, numbers, "summed", starts)
        self._become(Structure.canonical(queue, self._structure.shape, indices, indptr), data)

    def eliminate_zeros(self) -> None:
        """Remove the blocks whose entries are all zero, in place: if there are any, all arrays are new."""
        self.require_valid()
        facts_before, numbers = self._structure.facts, self._number_blocks()
        parts = numbers, self.indices, self.indptr
        remaining, indices, indptr = with_marked(self.queue, parts, mark_nonzero_blocks(self.queue, self._data))
        if remaining is not numbers:
            data = gather(self.queue, self._data, remaining, "moved")
            is_canonical = facts_before is not None and facts_before.canonical
            new_structure = Structure.canonical if is_canonical else Structure
            self._become(new_structure(self.queue, self._structure.shape, indices, indptr), data)

    @override
    def copy(self) -> Self:
        """Return a copy of the matrix, with device arrays of its own."""
        self.require_valid()
        parts = (copied(self.queue, name, getattr(self._structure, name)) for name in ("indices", "indptr"))
        return self.over(self._structure.copied(self.queue, *parts), copied(self.queue, "data", self._data))

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return the matrix with values of another dtype; duplicates are summed then, as in SciPy. See `csr_array.astype`."""
        target = cast_target(self.dtype, dtype, casting)
        if target == self.dtype:
            return self.copy() if copy else self
        result = type(self)(self, dtype=target)
        result.sum_duplicates()
        return result

    # ---- conversions

    @property
    def T(self) -> Self:  # noqa: N802 - SciPy's name for it
        """The transposed matrix, with values of its own; the order of its blocks is cached in the structure."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Self:  # noqa: ARG002 - always its own
        """Return the transposed matrix as a `bsr_array`: block (i, j) is this matrix's block (j, i), transposed.

        Parameters
        ----------
        axes : None or (1, 0)
            For NumPy's sake.
        copy : bool
            The result always has arrays of its own, but may share a symmetric structure.

        Raises
        ------
        ValueError
            ``axes`` are neither None nor (1, 0).
        """
        require_reversed(axes)
        pattern = self._block_pattern()
        order = self._structure.get_plan(Permutation, lambda: find_permutation(pattern, "auto"))
        data = gather(self.queue, self._data, order.positions, "transposed")
        return self.over(order.transposed or self._structure, data)

    def _transposed(self) -> Self:
        """Return the cached transposed matrix, which callers do not change; it is dropped when this matrix changes."""
        if self._transposed_blocks is None:
            self._transposed_blocks = self.transpose()
        return self._transposed_blocks

    @override
    def get(self) -> Any:
        """Return the matrix as a `scipy.sparse.bsr_array` with memory of its own."""
        use_device()
        self.require_valid()
        parts = tuple(copy_to_host(part, self.queue) for part in (self._data, self.indices, self.indptr))
        return scipy.sparse.bsr_array(parts, shape=self.shape)

    @override
    def tocsr(self, copy: bool = False) -> csr_array:
        """Return the matrix in CSR form, zeros of blocks included; without ``copy``, over the same arrays if blocks are 1 x 1."""
        self.require_valid()
        if self.blocksize == (1, 1):
            rows = csr_array.assembled(self._structure, flat(self.queue, self._data))
            return rows.copy() if copy else rows
        data, indices, indptr = to_csr(self.queue, (self._data, self.indices, self.indptr), self.shape)
        block_facts = self._structure.facts
        facts = None
        # Sorted blocks with duplicates may make unsorted rows: a row has the columns of a block, then those of its duplicate.
        if block_facts is not None and block_facts.sorted == block_facts.canonical:
            facts = Facts(int(indices.size), sorted=block_facts.sorted, canonical=block_facts.canonical)
        return csr_array.assembled(Structure(self.queue, self.shape, indices, indptr, facts), data)

    @override
    def tocsc(self, copy: bool = False) -> csc_array:
        """Return the matrix in CSC form, the row indices of each column sorted."""
        return self._as_csr().tocsc()

    @override
    def tocoo(self, copy: bool = True) -> coo_array:
        """Return the matrix in COO form, row by row, zeros of blocks included."""
        return self.tocsr(copy=copy).tocoo(copy=False)

    @override
    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Self:
        """Return the `bsr_array` itself; with ``copy``, a copy; for another ``blocksize``, a new one with blocks of that size."""
        if blocksize is not None and parse_blocksize(blocksize) != self.blocksize:
            return self.of_rows(self._as_csr(), blocksize)
        return self.copy() if copy else self

    @override
    def _as_csr(self) -> csr_array:
        """Return the matrix's cached CSR form, which callers do not change; it is dropped when the matrix changes."""
        if self._csr is None:
            self._csr = self.tocsr()
        return self._csr

    # ---- indexing

    @override
    def _compressed(self) -> tuple[csr_array, bool]:
        """Return the CSR form that is indexed in place of the matrix; False says that the CSR form is not transposed."""
        return self._as_csr(), False

    @override
    def _to_change(self) -> tuple[csr_array, bool]:
        """Return the CSR form to which values are assigned in place of the matrix; False says that it is not transposed."""
        return self._as_csr()._alias(), False

    @override
    def _apply_change(self, A: csr_array) -> None:
        """Take over the entries of A, the CSR form to which values were assigned, as blocks of the same size."""
        self._become(*make_blocks(A, self.blocksize))

    # ---- products

    @property
    def has_kernels(self) -> bool:
        """Whether the matrix's size of blocks has kernels for products with dense operands; if not, the CSR form multiplies."""
        rows, columns = self.blocksize
        return 1 < rows * columns <= MAX_ENTRIES

    @override
    def _times(self, dense: Any) -> Any:
        """Return the product ``A @ dense`` of the block matrix A and a dense vector or matrix."""
        if not self.has_kernels:
            return self._as_csr()._times(dense)
        self.require_valid()
        A: Any = self
        name = "x" if dense.ndim == 1 else "X"
        x, on_device = dense_operand(A, name, dense, dense.ndim)
        dtype = check_scale(A, x, None, None, None, plus_times)
        result = result_for(A, name, x, dense, None, dtype, (self.shape[0], *x.shape[1:]), on_device=on_device)
        if result.array.size:
            enqueue_product(x.queue or self.queue, self._data, self._structure, x, result.array)
        return result.deliver()

    @override
    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and A, computed by the cached transposed matrix."""
        A = self._transposed()
        return A._times(dense) if dense.ndim == 1 else A._times(dense.T).T

    @override
    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of the block matrix A and another sparse array of this package."""
        if other.ndim == 1:
            return self._as_csr()._times_sparse(other)
        if self.shape[1] != other.shape[0]:
            raise ValueError(
                f"B: must have {self.shape[1]} rows, as A is {self._shape_as_text()}, has {other.shape[0]} (dimension mismatch)"
            )
        (rows, inner), wide = self.blocksize, other.blocksize[1] if isinstance(other, bsr_array) else 1
        if rows * inner * wide == 1 or max(rows * inner, inner * wide, rows * wide) > MAX_ENTRIES:
            return self.of_rows(self._as_csr()._times_sparse(other), (rows, wide))
        self.require_valid()
        B = other.tobsr((inner, wide))
        if not B.has_canonical_format:
            B = B.copy()
            B.sum_duplicates()
        return self.over(*product_of_blocks(self.queue, (self._structure, self._data), (B.structure, B.data)))

    # ---- entry by entry, and along axes

    def diagonal(self, k: int = 0) -> np.ndarray[Any, Any]:
        """Return the values on the k-th diagonal, where duplicates are added up; as `csr_array.diagonal`."""
        return self._as_csr().diagonal(k)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the values on a diagonal; ``offset`` is the number k of `diagonal`."""
        return self._as_csr().trace(offset)

    def nonzero(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the rows and the columns of stored entries that are not 0, row by row, as NumPy arrays."""
        return self._as_csr().nonzero()

    @override
    def _entrywise(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return the result of an elementwise operation: a `bsr_array` if SciPy's result is one, else the CSR form's result."""
        if name in OF_VALUES or name in OF_SUMS or (name in BY_SCALAR and is_scalar(arguments[0])):
            return self._on_values(name, *arguments, **named)
        result = result_of(self._as_csr(), name, *arguments, **named)
        if name in ("maximum", "minimum") and is_scalar(arguments[0]) and getattr(np, name)(0, arguments[0]):
            return self.of_rows(result)  # the result has an entry at each place
        is_pair = name in _OF_BLOCKS and is_sparse(arguments[0]) and arguments[0].shape == self.shape
        return self.of_rows(result, self.blocksize) if is_pair else result

    def _on_values(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return the result of an elementwise operation that changes each stored value by itself, such as ``-A`` or ``A * 2``."""
        A = self
        if name in OF_SUMS and not self.has_canonical_format:
            A = self.copy()
            A.sum_duplicates()
        result = result_of(A._values_as_row(), name, *arguments, **named)
        if not isinstance(result, csr_array):
            return result
        return self.over(A._structure, view_as_blocks(result.data, self.blocksize))

    @override
    def _scale(self, factor: Any) -> None:
        """Multiply the stored values of the matrix by a scalar, in place."""
        row = self._values_as_row()
        row._scale(factor)
        self._become(self._structure, view_as_blocks(row.data, self.blocksize))

    def _values_as_row(self) -> csr_array:
        """Return a matrix of one row with the blocks' stored values, for operations that read values alone."""
        self.require_valid()
        n, values = self._data.size, flat(self.queue, self._data)
        # This row's structure is a dummy that operations on values never read: any array of the right length is its `indices`.
        return csr_array.assembled(Structure.canonical(self.queue, (1, max(1, n)), values, self.indptr), values)

    @override
    def _along(self, name: str, axis: Any = None, *arguments: Any, **named: Any) -> Any:
        """Return the result of the reduction ``name``, such as a sum, along an axis, computed from the CSR form."""
        return getattr(self._as_csr(), name)(axis, *arguments, **named)

    def explain(self) -> MemoryReport:
        """Return a report, shown as a table, of the bytes of device memory that the array and its caches hold."""
        arrays = {"data": self._data, "indices": self.indices, "indptr": self.indptr}
        transposed: Any = self._transposed_blocks
        caches = {"CSR": (self._csr, "operations by way of CSR"), "blocks of the transposed": (transposed, "x @ A")}
        return report_memory(repr(self), arrays, None, caches)


delegate(bsr_array)
