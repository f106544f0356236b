"""`csr_array`: a sparse matrix in CSR form on an OpenCL device, whose operators call the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray, cast_target, class_of_format, combine_with_scipy, require_reversed
from clsparse_py._arrays.doors import doors
from clsparse_py._formats.canonical import with_sorted_rows, without_duplicates, without_zeros
from clsparse_py._formats.coordinates import copy_coordinates, rows_of
from clsparse_py._formats.parts import SetStructure, build_csr_parts, is_one_dimensional
from clsparse_py._formats.zero_copy import on_memory_of
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._matrix.placement import place_part, value_dtype_on, vector
from clsparse_py._operations.elementwise.methods import Elementwise
from clsparse_py._operations.indexing.methods import Indexing, resize
from clsparse_py._operations.reductions.extremes import Extremes
from clsparse_py._operations.reductions.sums import Sums
from clsparse_py._operations.spgemm import plain_product, spgemm
from clsparse_py._operations.spmm import SpmmPlan, get_spmm_plan, spmm
from clsparse_py._operations.spmv import SpmvPlan, get_spmv_plan, spmv
from clsparse_py._operations.transpose import Permutation, TransposePlan, find_permutation, transpose
from clsparse_py._operations.transpose_cache import MemoryReport, TransposeCache, report_memory
from clsparse_py._run.transfer import copy_to_host

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py._arrays.coo import coo_array
    from clsparse_py._arrays.csc import csc_array
    from clsparse_py._matrix.annotations import Extreme, Number, SciPySparse

__all__ = ["csr_array", "make_canonical"]


@doors
class csr_array(SetStructure, Elementwise, Sums, Extremes, Indexing, SparseArray, one_dimensional=False):  # noqa: N801 - SciPy's name for it
    """A sparse matrix in Compressed Sparse Row form on an OpenCL device.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, csr_array, array_like or tuple
        A sparse array of any format, SciPy's or ours; a dense array of one or two dimensions; ``(data, indices, indptr)``, NumPy
        or `pyopencl.array.Array`; ``(data, (row, col))``, whose duplicates are summed; ``(data, (col,))``, of one dimension; or a
        shape, for no entries.
    shape : tuple of int, optional
        Rows and columns, or one length. By default what ``arg1`` has, or the smallest that holds its entries.
    dtype : dtype, optional
        Of the values; by default that of ``arg1``. Bool, integers, float32, float64, complex64 and complex128 are supported, the
        64-bit floats where the device has double precision.
    copy : bool
        False, the default: `pyopencl.array` parts are used as they are, so that who writes to them writes to the matrix. True:
        they are copied. Parts from the host are always copied, on CPU devices as on GPUs.
    queue : pyopencl.CommandQueue, optional
        Where it lives and computes: by default the queue of a `pyopencl.array` part, else `clsparse_py.default_queue`.
    check : bool
        True, the default: the structure is checked on the device (one kernel, one read) before anything relies on it. With False
        the caller vouches for it.
    maxprint : int, optional
        How many entries are printed at most; by default 50.
    zero_copy : bool
        True: all three arrays are those of ``arg1`` themselves, a SciPy matrix in CSR format or three NumPy arrays. They cannot
        be written to as long as their memory is in use, so that SciPy's sorting in place raises. If that is not possible without
        a copy (for a dtype, an address, or a device with memory of its own), a ValueError says why.

    Attributes
    ----------
    format : str
        "csr".
    shape : tuple of int
    dtype : numpy.dtype
        Of the values.
    nnz : int
        Stored entries, explicit zeros and duplicates included.
    ndim : int
        2 or 1.
    queue : pyopencl.CommandQueue
    context : pyopencl.Context
        Of the queue.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing or no valid structure, or its parts live in another context; the message names the part.

    Notes
    -----
    All attributes but `data`, `indices`, `indptr` and the two flags are read-only.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array(([1, 2, 3], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    >>> A.toarray()
    array([[1, 2],
           [0, 3]])
    >>> A @ np.array([1, 1])
    array([3, 3])
    >>> (A.T + A).sum(axis=1)
    array([4, 8])
    """

    _format = "csr"
    _transpose_cache: TransposeCache
    _plan: TransposePlan[csr_array] | None
    _set_arrays: dict[str, cl_array.Array]
    _pair_type: Self  # for type checkers: see `annotations.HasPairType`

    def __new__(cls, arg1: Any = None, shape: Any = None, *options: Any, **named: Any) -> Self:
        """Return an array without content: of the one-dimensional class, if the arguments describe an array of one dimension."""
        array_class = class_of_format("csr", one_dimensional=True) if is_one_dimensional(arg1, shape) else cls
        if issubclass(array_class, cls):
            return object.__new__(array_class)  # type: ignore[no-any-return] # csr_vector is a csr_array
        # A user derived ``cls``, and ``array_class`` is no subclass of it: Python would not call the __init__ of the new array.
        return array_class(arg1, shape, *options, **named)

    if TYPE_CHECKING:
        max: Extreme[coo_array]
        min: Extreme[coo_array]
        nanmax: Extreme[coo_array]
        nanmin: Extreme[coo_array]

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        queue: cl.CommandQueue | None = None,
        check: bool = True,
        maxprint: int | None = None,
        zero_copy: bool = False,
    ) -> None:
        if zero_copy:
            arg1, shape = on_memory_of(arg1, shape, dtype, queue, copy=copy)
        self._hold(*build_csr_parts(arg1, shape, dtype, queue, copy=copy, check=check))
        self.require_valid()
        self._print_at_most(maxprint)

    @override
    def _hold(self, structure: Structure, data: cl_array.Array) -> None:
        """Set the structure and the values of a new `csr_array`, whose caches are empty."""
        super()._hold(structure, data)
        self._transpose_cache, self._plan, self._set_arrays = TransposeCache(), None, {}

    @override
    def _alias(self) -> Self:
        """Return another `csr_array` over the same device arrays, with the same cached transposed matrix and plan."""
        alias = self.sharing(self)
        alias._transpose_cache, alias._plan = self._transpose_cache, self._plan
        return alias

    @property
    def data(self) -> cl_array.Array:
        """The values, a device array of ``nnz`` entries. May be set to another, NumPy's or the device's: plans stay, and use it.

        May also be written in place. ``A @ x`` then uses what is there; products that need the transposed (``A.T @ x``,
        ``x @ A``) have to be told, by ``A.data = A.data``.
        """
        return self._data

    @data.setter
    def data(self, values: Any) -> None:
        """Replace the values of the matrix."""
        part = vector("data", values)
        self._data = place_part(self.queue, "data", part, value_dtype_on(self.queue, part.dtype, None), copy=False)
        self._transpose_cache = TransposeCache(again=self._transpose_cache.again or self._transpose_cache.transposed is not None)
        self._version += 1

    @override
    def _become(self, structure: Structure, data: cl_array.Array) -> None:
        """Replace the structure and the values of the matrix, and empty its caches."""
        super()._become(structure, data)
        self._transpose_cache, self._plan, self._set_arrays = TransposeCache(), None, {}

    @override
    def sort_indices(self) -> None:
        """Sort the column indices of each row, in place: `indices` and `data` become new arrays, and plans are dropped.

        Duplicates keep their order. If the columns are sorted, nothing changes.
        """
        if not self.has_sorted_indices:
            data, indices, indptr = with_sorted_rows(self.queue, self.parts)
            self._become(Structure(self.queue, self._structure.shape, indices, indptr), data)

    def sum_duplicates(self) -> None:
        """Sort the column indices of each row, and sum duplicates, in place: as `sort_indices`, with a new `indptr` too.

        Values are added in the order of the entries; the sum of booleans is whether one of them is True. If the format is
        canonical, nothing changes.
        """
        if not self.has_canonical_format:
            self.sort_indices()
            data, indices, indptr = without_duplicates(self.queue, self.parts)
            self._become(Structure.canonical(self.queue, self._structure.shape, indices, indptr), data)

    def eliminate_zeros(self) -> None:
        """Remove explicit zeros in place: if there are any, all three arrays are replaced and plans are dropped."""
        self.require_valid()
        (data, indices, indptr), facts_before = without_zeros(self.queue, self.parts), self.facts
        if indices is not self.indices:
            # A matrix that was not canonical may be canonical without its zeros: the new structure starts without known facts.
            is_canonical = facts_before is not None and facts_before.canonical
            new_structure = Structure.canonical if is_canonical else Structure
            self._become(new_structure(self.queue, self._structure.shape, indices, indptr), data)

    @property
    def T(self) -> csc_array:  # noqa: N802 - SciPy's name for it
        """The transposed matrix: a `csc_array` over the same arrays, without a kernel.

        Its products with dense operands need the transposed matrix in CSR form (SpTRANS, see `clsparse_py.transpose`), which is
        cached until A changes: until `data`, `indices` or `indptr` is set. With the second set of values a plan is made, which
        transposes further values by a gather. Values written into `data` in place go unnoticed by these products: after that
        say ``A.data = A.data``.
        """
        transposed: csc_array = class_of_format("csc").over(self._alias())
        return transposed

    def transpose(self, axes: Any = None, copy: bool = False) -> csc_array:
        """Return the transposed matrix as a `csc_array`, over the same arrays or, with ``copy``, with arrays of its own.

        Parameters
        ----------
        axes : None or (1, 0)
            For NumPy's sake.
        copy : bool
            False: the result is `T`. True: a matrix with arrays of its own.

        Raises
        ------
        ValueError
            ``axes`` are neither None nor (1, 0).
        """
        require_reversed(axes)
        return self.T.copy() if copy else self.T

    @override
    def _transposed(self) -> csr_array:
        """Return the cached CSR form of the transposed matrix, which callers do not change; it is dropped when A changes."""
        cache = self._transpose_cache
        if cache.transposed is None:
            # The first transposition keeps no permutation of the entries for later transpositions, which costs time and memory.
            cache.transposed = self.transpose_plan()(self.data) if cache.again else transpose(self)
        transposed: csr_array = cache.transposed
        return transposed

    @override
    def _prepare_for(self, shape: tuple[int, ...]) -> None:
        """Change the number of dimensions of the array in place, before the array is resized to ``shape``."""
        is_flat = len(shape) == 1
        if type(self) is not class_of_format("csr", one_dimensional=not is_flat):
            super()._prepare_for(shape)  # A is of a class that a user derived
        if is_flat:
            resize(self, (1, self.shape[1]))
        self.__class__ = class_of_format("csr", one_dimensional=is_flat)

    @override
    def _vector(self, values: cl_array.Array, positions: cl_array.Array, n: int) -> coo_array:
        """Return a one-dimensional `coo_array` of length n with values at positions, as reductions return it."""
        vector: coo_array = class_of_format("coo").over(self.queue, (n,), (positions,), values)
        vector.has_canonical_format = True
        return vector

    @override
    def _as_csr(self) -> csr_array:
        """Return the matrix itself, which is in CSR form."""
        return self

    @override
    def get(self) -> scipy.sparse.csr_array:
        """Return the matrix as a `scipy.sparse.csr_array` with memory of its own."""
        use_device()
        self.require_valid()
        parts = tuple(copy_to_host(part, self.queue) for part in self.parts)
        return scipy.sparse.csr_array(parts, shape=self.shape)

    @override
    def tocsr(self, copy: bool = False) -> csr_array:
        """Return the matrix itself or, with ``copy``, a copy with device arrays of its own."""
        return self.copy() if copy else self

    @override
    def tocsc(self, copy: bool = False) -> csc_array:
        """Return the matrix in CSC form, the rows of each column sorted: SpTRANS, see `clsparse_py.transpose`."""
        columns: csc_array = class_of_format("csc").over(transpose(self))
        return columns

    @override
    def tocoo(self, copy: bool = True) -> coo_array:
        """Return the matrix in COO form, in the order of its entries.

        Parameters
        ----------
        copy : bool
            False: the result shares `data` and, as `col`, `indices`.
        """
        self.require_valid()
        queue, facts, col, values = self.queue, self.facts, self.indices, self.data
        if copy:
            values, col, row = copy_coordinates(queue, (values, col, self.indptr))
        else:
            row = rows_of(queue, self.indptr, col.size)
        array: coo_array = class_of_format("coo").over(queue, self.shape, (row, col), values)
        array.has_canonical_format = facts is not None and facts.canonical
        return array

    @override
    def copy(self) -> Self:
        """Return a copy of the matrix, with device arrays of its own."""
        return self.assembled(*build_csr_parts(self, copy=True))

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return the matrix with values of another dtype; duplicates are summed then, as in SciPy.

        Integers made of floats are those of int64, cut to their bits, on every device: -1.0 is 255 as uint8, as NumPy makes it on
        most processors. What int64 does not hold is not defined.

        Parameters
        ----------
        dtype : dtype
            A dtype that `csr_array` supports.
        casting : {"no", "equiv", "safe", "same_kind", "unsafe"}
            NumPy's rule for conversions that are allowed.
        copy : bool
            False: a matrix that has the dtype is returned as it is.

        Raises
        ------
        TypeError
            The dtype is not supported, or ``casting`` forbids the conversion.
        """
        target = cast_target(self.dtype, dtype, casting)
        if self.dtype == target:
            return self.copy() if copy else self
        result = self.assembled(*build_csr_parts(self, dtype=target, copy=copy))
        result.sum_duplicates()
        return result

    # ---- products

    @overload
    def __matmul__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __matmul__(self, other: SparseArray | SciPySparse) -> Self: ...

    @overload
    def __matmul__(self, other: npt.ArrayLike) -> npt.NDArray[Any]: ...

    def __matmul__(self, other: Any) -> Any:
        """Return ``A @ other``: sparse for a sparse operand, a NumPy array for NumPy's, a device array for a device array.

        The host does not wait for a device array's values.
        For a sparse array, ours or SciPy's, the product is a `csr_array`, see `clsparse_py.spgemm`; for a one-dimensional sparse
        array it is a `coo_array` of one dimension.
        """
        if isinstance(other, cl_array.Array):  # comes first, as SciPy's `issparse` takes microseconds
            plan: SpmvPlan | None = self._structure.find_plan((SpmvPlan, self._data.dtype))
            if plan is not None and (repeated := plan.again(self._data, other)) is not None:
                return repeated
            if 0 < len(other.shape) < 3:
                return self._times(other)
        return super().__matmul__(other)

    @override
    def _times(self, dense: Any) -> Any:
        """Return the product ``A @ dense``: SpMM for a dense matrix, SpMV for a dense vector."""
        return spmm(self, dense) if len(dense.shape) == 2 else spmv(self, dense)

    @override
    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and A, computed by the cached transposed matrix."""
        A = self._transposed()
        return A._times(dense) if dense.ndim == 1 else A._times(dense.T).T

    @override
    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of A and another sparse array of this package: SpGEMM."""
        if other.ndim == 1:
            return _flatten_column(spgemm(self, other.tocsr().as_column()))
        return plain_product(self, other._as_csr())

    # A reflected operator's result has the format of SciPy's result, if the left operand is a sparse array of SciPy.

    @override
    def __radd__(self, other: Any) -> Any:
        return combine_with_scipy("__radd__", self, other) if scipy.sparse.issparse(other) else super().__radd__(other)

    @override
    def __rsub__(self, other: Any) -> Any:
        return combine_with_scipy("__rsub__", self, other) if scipy.sparse.issparse(other) else super().__rsub__(other)

    @overload
    def __rmul__(self, other: Matrix | Number) -> Self: ...

    @overload
    def __rmul__(self, other: Any) -> Any: ...

    @override
    def __rmul__(self, other: Any) -> Any:
        return combine_with_scipy("__rmul__", self, other) if scipy.sparse.issparse(other) else super().__rmul__(other)

    def __rtruediv__(self, other: Any) -> Any:
        return combine_with_scipy("__rtruediv__", self, other) if scipy.sparse.issparse(other) else NotImplemented

    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``, made at the first call and kept until the structure is replaced."""
        return get_spmv_plan(self)

    def spmm_plan(self) -> SpmmPlan:
        """Return the plan of ``A @ X`` with several columns, made at the first call and kept until the structure is replaced."""
        return get_spmm_plan(self)

    def transpose_plan(self) -> TransposePlan[csr_array]:
        """Return the plan that transposes new values of A, made at the first call and kept until the structure is replaced."""
        if self._plan is None:
            order = self._structure.get_plan(Permutation, lambda: find_permutation(self, "auto"))
            self._plan = TransposePlan(self, order)
        return self._plan

    def explain(self) -> MemoryReport:
        """Return a report, shown as a table, of the bytes of device memory that the array and its caches hold."""
        arrays = {"data": self.data, "indices": self.indices, "indptr": self.indptr}
        uses = "A.T @ x, x @ A, A.T @ B, sums of columns"
        return report_memory(repr(self), arrays, self, {"CSR of the transposed": (self._transpose_cache.transposed, uses)})


def _flatten_column(column: csr_array) -> coo_array:
    """Return a matrix of one column as a one-dimensional `coo_array`."""
    vector: coo_array = class_of_format("coo").over(
        column.queue, column.shape[:1], (rows_of(column.queue, column.indptr, column.nnz),), column.data
    )
    return vector


def make_canonical(A: csr_array) -> csr_array:
    """Return a matrix in canonical format: the matrix itself if it is canonical, else a copy with sorted, summed entries."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A
