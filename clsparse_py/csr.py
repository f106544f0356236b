"""`csr_array`: a sparse matrix in CSR form on an OpenCL device. Each operator calls one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py.forked import use_device
from clsparse_py.parts import parts_of, place, place_part, queue_for, require_device_array, shape_of, value_dtype
from clsparse_py.structure import Plans, Structure, check_structure
from clsparse_py.tables import Table
from clsparse_py.transfer import fetched

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py.annotations import SciPySparse
    from clsparse_py.spmv.plan import SpmvPlan
    from clsparse_py.transpose.plan import TransposePlan

__all__ = ["assembled", "csr_array"]


DeviceParts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]


class csr_array:  # noqa: N801 - SciPy's name for it
    """A sparse matrix in Compressed Sparse Row form on an OpenCL device.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, csr_array, array_like or tuple
        A SciPy sparse matrix of any format; a `csr_array`; a dense two-dimensional array; ``(data, indices, indptr)``, NumPy or
        `pyopencl.array.Array`; ``(data, (row, col))``, whose duplicates are summed; or ``(rows, columns)``, for no entries.
    shape : tuple of int, optional
        Rows and columns. By default what ``arg1`` has, or the smallest that holds its entries.
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

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
        Of the values.
    nnz : int
        Stored entries, explicit zeros and duplicates included.
    ndim : int
        2.
    queue : pyopencl.CommandQueue
    context : pyopencl.Context
        Of the queue.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing or no valid structure, or its parts live in another context; the message names the part.

    Notes
    -----
    All attributes but `data`, `indices` and `indptr` are read-only. On a CPU device, which can work on the host's memory, a
    matrix that shares it is made of `pyopencl.array.Array` whose buffers were made with ``USE_HOST_PTR``.
    """

    _vouched: bool
    _structure: Structure | None
    # NumPy leaves `array @ A` to us.
    __array_ufunc__ = None
    # As SciPy's and NumPy's arrays, which compare by entries.
    __hash__ = None  # type: ignore[assignment] # the way to say so

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        queue: cl.CommandQueue | None = None,
        check: bool = True,
    ) -> None:
        shape = None if shape is None else shape_of(shape)
        vouched = False
        structure: Structure | None = None
        if isinstance(arg1, csr_array):
            parts, own_shape, vouched = (arg1.data, arg1.indices, arg1.indptr), arg1.shape, arg1._vouched
        else:
            parts, own_shape, structure = parts_of(arg1, shape, dtype, queue)
        if shape not in (None, own_shape):
            raise ValueError(f"shape: {shape} differs from that of arg1, {own_shape}")
        shape = own_shape
        queue = queue_for(parts, queue)
        # What was made here, with a structure that is known, is no one else's.
        self._hold(queue, shape, place(queue, parts, shape, dtype, copy=copy and structure is None))
        self._structure = structure
        self._vouched = vouched or not check
        if not self._vouched:
            self._checked()

    def _hold(self, queue: cl.CommandQueue, shape: tuple[int, int], parts: DeviceParts) -> None:
        """Begin to be the matrix of these parts."""
        self._shape = shape
        self._queue = queue
        self._context: cl.Context = queue.context  # kept: not every driver's queue keeps it
        self._data, self._indices, self._indptr = parts
        self._plans = Plans()
        self._structure = None
        self._version = 0  # counts what is replaced
        self._kept: tuple[csr_array, int, int] | None = None  # what `T` made, and the versions of both
        self._nnz: int = self._indices.size
        self._vouched = True

    def _checked(self) -> Structure:
        """Return what is known of the structure; check it where nothing is."""
        if self._structure is None:
            found = check_structure(self.queue, self.shape, self._indices, self._indptr)
            if found.nnz < self._indices.size:
                self._indices, self._data = self._indices[: found.nnz], self._data[: found.nnz]
            self._nnz = found.nnz
            self._structure = found
        return self._structure

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the matrix run, if no operand brings another."""
        return self._queue

    @property
    def context(self) -> cl.Context:
        """The context of the queue."""
        return self._context

    @property
    def data(self) -> cl_array.Array:
        """The values, a device array of ``nnz`` entries. May be set to another of that length: plans stay, and use it.

        May also be written in place. Products then use what is there; `T` has to be told, by ``A.data = A.data``.
        """
        return self._data

    @data.setter
    def data(self, values: cl_array.Array) -> None:
        require_device_array("data", values, self.context)
        if values.ndim != 1 or values.size != self._indices.size:
            raise ValueError(f"data: must have the {self._indices.size} entries of indices, has shape {values.shape}")
        self._data = place_part(self.queue, "data", values, value_dtype("data", values.dtype), copy=False)
        self._version += 1

    @property
    def indices(self) -> cl_array.Array:
        """The column of each entry, a device array of int32 or int64. Setting it replaces the structure: plans are dropped."""
        return self._indices

    @indices.setter
    def indices(self, columns: cl_array.Array) -> None:
        require_device_array("indices", columns, self.context)
        if columns.ndim != 1 or columns.dtype != self._indptr.dtype:
            raise ValueError(f"indices: must be one-dimensional and {self._indptr.dtype}, is {columns.shape} {columns.dtype}")
        self._indices = place_part(self.queue, "indices", columns, columns.dtype, copy=False)
        self._replaced()

    @property
    def indptr(self) -> cl_array.Array:
        """Where each row begins, ``rows + 1`` entries. Setting it replaces the structure: plans are dropped."""
        return self._indptr

    @indptr.setter
    def indptr(self, offsets: cl_array.Array) -> None:
        require_device_array("indptr", offsets, self.context)
        if offsets.shape != (self.shape[0] + 1,) or offsets.dtype != self._indices.dtype:
            wanted = f"{(self.shape[0] + 1,)} and dtype {self._indices.dtype}"
            raise ValueError(f"indptr: must have shape {wanted}, is {offsets.shape} {offsets.dtype}")
        self._indptr = place_part(self.queue, "indptr", offsets, offsets.dtype, copy=False)
        self._replaced()

    def _replaced(self) -> None:
        """Forget what was known of the structure; it is checked before the next use."""
        self._plans = Plans()
        self._kept = None
        self._version += 1
        self._structure = None
        self._vouched = False
        self._nnz = self._indices.size

    def require_valid(self) -> None:
        """Check a structure that was replaced; every operation asks for this before a kernel that trusts it runs."""
        if self._structure is None and not self._vouched:
            self._checked()
            if self._data.size != self._nnz:
                raise ValueError(f"data: must have the {self._nnz} entries of indices, has {self._data.size}")

    @property
    def known_structure(self) -> Structure | None:
        """What is known of the structure without asking the device."""
        return self._structure

    @property
    def plans(self) -> Plans:
        """The plans that are kept for the structure."""
        return self._plans

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return np.dtype(self._data.dtype)

    @property
    def nnz(self) -> int:
        """How many entries are stored."""
        self.require_valid()
        return self._nnz

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the columns of each row ascend (duplicates may stand beside each other)."""
        return self._checked().sorted

    @property
    def has_canonical_format(self) -> bool:
        """Whether the columns of each row ascend strictly: sorted and without duplicates."""
        return self._checked().canonical

    def sort_indices(self) -> None:
        """Sort the columns of each row, in place: `indices` and `data` become new arrays, and plans are dropped.

        Duplicates keep their order. Where the columns are sorted, nothing changes.
        """
        if not self.has_sorted_indices:
            from clsparse_py.canonical import with_sorted_rows

            self._become(with_sorted_rows(self.queue, self._parts), None)

    def sum_duplicates(self) -> None:
        """Sort the columns of each row, and add up entries of one place, in place: as `sort_indices`, with a new `indptr` too.

        Values are added in the order of the entries; the sum of booleans is whether one of them is True. Where the format is
        canonical, nothing changes.
        """
        if not self.has_canonical_format:
            from clsparse_py.canonical import without_duplicates

            self.sort_indices()
            parts = without_duplicates(self.queue, self._parts)
            self._become(parts, Structure(parts[1].size, sorted=True, canonical=True))

    def eliminate_zeros(self) -> None:
        """Leave out entries whose value is zero, in place: where there are some, all arrays are new, and plans are dropped."""
        from clsparse_py.canonical import without_zeros

        self.require_valid()
        parts, known = without_zeros(self.queue, self._parts), self._structure
        if parts[1] is not self._indices:
            # Without some entries, rows may be sorted that were not, and duplicates may be none.
            self._become(parts, known and (Structure(parts[1].size, True, True) if known.canonical else None))

    @property
    def _parts(self) -> DeviceParts:
        return self._data, self._indices, self._indptr

    def _become(self, parts: DeviceParts, structure: Structure | None) -> None:
        """Take other parts, which are valid; ``structure`` is what is known of them."""
        self._data, self._indices, self._indptr = parts
        self._replaced()
        self._vouched, self._structure = True, structure

    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``, made at the first call and kept until the structure is replaced."""
        if self._plans.spmv is None:
            from clsparse_py.spmv import spmv_plan

            self._plans.spmv = spmv_plan(self)
        return self._plans.spmv

    def transpose_plan(self) -> TransposePlan:
        """Return the plan that transposes new values of A, made at the first call and kept until the structure is replaced."""
        if self._plans.transpose is None:
            from clsparse_py.transpose import transpose_plan

            self._plans.transpose = transpose_plan(self)
        return self._plans.transpose

    @property
    def T(self) -> csr_array:  # noqa: N802 - SciPy's name for it
        """The transposed matrix, rows sorted; see `clsparse_py.transpose`. It is kept, and the same one, until A changes.

        That is until `data`, `indices` or `indptr` is set. With the second set of values a plan is made, which transposes each
        further one by a gather. What is written into the arrays in place goes unnoticed: after that say ``A.data = A.data``. The
        kept matrix is A's, not to be written to in place either: `transpose` with ``copy=True`` gives one of its own.
        """
        from clsparse_py.transpose import transpose

        if self._kept is not None:
            transposed, of, itself = self._kept
            if (of, itself) == (self._version, transposed._version):
                return transposed
        # The first one is made without the permutation, which costs more to make and to keep.
        transposed = transpose(self) if self._kept is None else self.transpose_plan()(self.data)
        self._kept = transposed, self._version, transposed._version
        return transposed

    def transpose(self, axes: Any = None, copy: bool = False) -> csr_array:
        """Return the transposed matrix, as SciPy's method does.

        Parameters
        ----------
        axes : None or (1, 0)
            For NumPy's sake.
        copy : bool
            False: what `T` gives. True: a matrix with arrays of its own.

        Raises
        ------
        ValueError
            ``axes`` are others.
        """
        if axes is not None and not (isinstance(axes, (tuple, list)) and tuple(axes) == (1, 0)):
            raise ValueError(f"axes: must be None or (1, 0), are {axes!r}")
        return self.T.copy() if copy else self.T

    def get(self) -> scipy.sparse.csr_array:
        """Return the matrix as a `scipy.sparse.csr_array` of its own memory."""
        use_device()
        self.require_valid()
        parts = tuple(fetched(part, self.queue) for part in self._parts)
        return scipy.sparse.csr_array(parts, shape=self.shape)

    def toarray(self) -> npt.NDArray[Any]:
        """Return the matrix as a dense NumPy array; duplicates are summed."""
        return np.asarray(self.get().toarray())

    def copy(self) -> csr_array:
        """Return a matrix with arrays of its own."""
        return csr_array(self, copy=True)

    def astype(self, dtype: Any, copy: bool = True) -> csr_array:
        """Return the matrix with values of another dtype.

        Parameters
        ----------
        dtype : dtype
            One that `csr_array` supports.
        copy : bool
            False: a matrix that has the dtype is returned as it is.
        """
        dtype = value_dtype("dtype", dtype)
        if not copy and self.dtype == dtype:
            return self
        return csr_array(self, dtype=dtype, copy=copy)

    @overload
    def __matmul__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __matmul__(self, other: csr_array | SciPySparse) -> csr_array: ...

    @overload
    def __matmul__(self, other: npt.ArrayLike) -> npt.NDArray[Any]: ...

    def __matmul__(self, other: Any) -> Any:
        """Return ``A @ x`` for a dense vector or matrix x: NumPy for NumPy, device array, not waited for, for device array.

        Of a sparse matrix, `csr_array` or SciPy's, the product is a `csr_array`, see `clsparse_py.spgemm`.
        """
        if isinstance(other, csr_array):
            from clsparse_py.spgemm import spgemm

            return spgemm(self, other)
        from clsparse_py.spmm import spmm
        from clsparse_py.spmv import spmv

        if isinstance(other, cl_array.Array) and other.ndim in (1, 2):  # before SciPy is asked, which takes microseconds
            return spmm(self, other) if other.ndim == 2 else spmv(self, other)
        if scipy.sparse.issparse(other):
            return self @ csr_array(other, queue=self.queue)
        dense = _dense(other)
        if dense is None:
            return NotImplemented
        return spmm(self, dense) if dense.ndim == 2 else spmv(self, dense)

    @overload
    def __rmatmul__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __rmatmul__(self, other: SciPySparse) -> csr_array: ...

    @overload
    def __rmatmul__(self, other: npt.ArrayLike) -> npt.NDArray[Any]: ...

    def __rmatmul__(self, other: Any) -> Any:
        """Return ``x @ A`` for a dense vector or matrix x, NumPy or device array, by way of ``A.T``, which is kept.

        Of a SciPy sparse matrix, the product is a `csr_array`.
        """
        if scipy.sparse.issparse(other):
            return csr_array(other, queue=self.queue) @ self
        dense = _dense(other)
        if dense is None:
            return NotImplemented
        if dense.shape[-1] != self.shape[0]:
            of = f"{self.shape[0]} {'entries' if dense.ndim == 1 else 'columns'}"
            raise ValueError(f"x: must have {of}, as A is {self.shape[0]} x {self.shape[1]}, has shape {dense.shape}")
        return self.T @ dense if dense.ndim == 1 else (self.T @ dense.T).T

    def __bool__(self) -> bool:
        """Return whether a 1 x 1 matrix stores an entry; others have no truth value, as in SciPy."""
        if self.shape == (1, 1):
            return self.nnz != 0
        raise ValueError(f"truth value: ambiguous, as A is {self.shape[0]} x {self.shape[1]}; ask for A.nnz, or use A.get()")

    def _compare(self, other: Any) -> Any:
        """Refuse to compare entries; what is no array and no number is left to Python, as in SciPy."""
        arrays = isinstance(other, (csr_array, cl_array.Array, np.ndarray)) or scipy.sparse.issparse(other)
        if arrays or np.isscalar(other):
            what = f"a csr_array and a {type(other).__name__}"
            raise TypeError(f"comparison: {what} are not compared on the device; compare A.get(), which is SciPy's")
        return NotImplemented

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __repr__(self) -> str:
        kind = f"{self.dtype} values, {self._indptr.dtype} indices"
        rows, cols = self.shape
        return f"<csr_array of {rows} x {cols}, {self._nnz} stored entries, {kind}, on {self.queue.device.name}>"

    def _repr_html_(self) -> str:
        rows, cols = self.shape
        kinds = str(self.dtype), str(self._indptr.dtype)
        heads = "rows", "columns", "stored entries", "values", "indices", "device"
        return Table("csr_array", heads, [(f"{rows:,}", f"{cols:,}", f"{self._nnz:,}", *kinds, self.queue.device.name)]).as_html()


def _dense(other: Any) -> Any:
    """Return a dense operand of @ as an array of one or two dimensions; None where it is no array, which is left to Python.

    Raises
    ------
    ValueError
        It is a scalar, or has other dimensions.
    """
    dense = other if isinstance(other, cl_array.Array) else np.asarray(other)
    if dense.ndim in (1, 2):
        return dense
    if dense.ndim == 0 and dense.dtype.kind == "O":
        return None
    what = f"is a scalar of type {type(other).__name__}" if dense.ndim == 0 else f"has shape {dense.shape}"
    raise ValueError(f"x: must be an array of one or two dimensions, {what}")


def assembled(
    queue: cl.CommandQueue,
    shape: tuple[int, int],
    parts: DeviceParts,
    structure: Structure | None,
    plans: Plans | None = None,
) -> csr_array:
    """Return the matrix of data, indices and indptr that an operation made: nothing is checked or copied.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    shape : tuple of int
    parts : tuple of pyopencl.array.Array
    structure : Structure or None
        What is known of it; None where that has to be found out when it is asked for.
    plans : Plans, optional
        Of a matrix with the same ``indices`` and ``indptr``.
    """
    made = csr_array.__new__(csr_array)
    made._hold(queue, shape, parts)
    made._structure = structure
    made._plans = plans or made._plans
    return made
