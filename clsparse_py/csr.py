"""`csr_array`: a sparse matrix in CSR form on an OpenCL device. Each operator calls one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._spgemm import spgemm
from clsparse_py._spmm import spmm
from clsparse_py._spmv import SpmvPlan, kept_plan, spmv
from clsparse_py._transpose import Permutation, TransposePlan, permutation, transpose
from clsparse_py.canonical import with_sorted_rows, without_duplicates, without_zeros
from clsparse_py.elementwise.methods import Elementwise
from clsparse_py.forked import use_device
from clsparse_py.matrix import Structure
from clsparse_py.parts import made_of
from clsparse_py.placement import place_part, require_device_array, value_dtype
from clsparse_py.reductions import Reductions
from clsparse_py.structure import Facts
from clsparse_py.tables import Table
from clsparse_py.transfer import fetched

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py.annotations import SciPySparse

__all__ = ["csr_array"]


DeviceParts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]


class csr_array(Elementwise, Reductions):  # noqa: N801 - SciPy's name for it
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

    _kept: tuple[csr_array, int, int] | None
    _plan: TransposePlan[csr_array] | None
    # NumPy leaves `array @ A` to us.
    __array_ufunc__ = None

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
        self._hold(*made_of(arg1, shape, dtype, queue, copy=copy, check=check))
        self.require_valid()

    def _hold(self, structure: Structure, data: cl_array.Array) -> None:
        super()._hold(structure, data)
        self._kept = None  # the result of `T`, and the versions of both matrices
        self._plan = None

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def data(self) -> cl_array.Array:
        """The values, a device array of ``nnz`` entries. May be set to another of that length: plans stay, and use it.

        May also be written in place. Products then use what is there; `T` has to be told, by ``A.data = A.data``.
        """
        return self._data

    @data.setter
    def data(self, values: cl_array.Array) -> None:
        require_device_array("data", values, self.context)
        if values.ndim != 1 or values.size != self.indices.size:
            raise ValueError(f"data: must have the {self.indices.size} entries of indices, has shape {values.shape}")
        self._data = place_part(self.queue, "data", values, value_dtype("data", values.dtype), copy=False)
        self._version += 1

    @property
    def indices(self) -> cl_array.Array:
        """The column of each entry, a device array of int32 or int64. Setting it replaces the structure: plans are dropped.

        The matrix does not notice if you write into the array in place: it goes on with what it knows of the old columns (whether
        rows are sorted, whether the pattern is symmetric) and with the plans made for them. Say ``A.indices = A.indices`` after
        that: the structure is checked again before its next use. Do the same for other matrices that share the array, and make
        plans anew that you keep yourself.
        """
        return self._structure.indices

    @indices.setter
    def indices(self, columns: cl_array.Array) -> None:
        require_device_array("indices", columns, self.context)
        if columns.ndim != 1 or columns.dtype != self.indptr.dtype:
            raise ValueError(f"indices: must be one-dimensional and {self.indptr.dtype}, is {columns.shape} {columns.dtype}")
        self._replace_structure(place_part(self.queue, "indices", columns, columns.dtype, copy=False), self.indptr)

    @property
    def indptr(self) -> cl_array.Array:
        """Where each row begins, ``rows + 1`` entries. Setting it replaces the structure: plans are dropped.

        If you write into the array in place, say ``A.indptr = A.indptr`` after that, as for `indices`.
        """
        return self._structure.indptr

    @indptr.setter
    def indptr(self, offsets: cl_array.Array) -> None:
        require_device_array("indptr", offsets, self.context)
        if offsets.shape != (self.shape[0] + 1,) or offsets.dtype != self.indices.dtype:
            wanted = f"{(self.shape[0] + 1,)} and dtype {self.indices.dtype}"
            raise ValueError(f"indptr: must have shape {wanted}, is {offsets.shape} {offsets.dtype}")
        self._replace_structure(self.indices, place_part(self.queue, "indptr", offsets, offsets.dtype, copy=False))

    def _replace_structure(self, indices: cl_array.Array, indptr: cl_array.Array) -> None:
        """Take another structure, of which nothing is known: it is checked before its first use."""
        self._become(Structure(self.queue, self.shape, indices, indptr, vouched=False), self._data)

    def _become(self, structure: Structure, data: cl_array.Array) -> None:
        """Take other parts."""
        self._structure, self._data, self._kept, self._plan = structure, data, None, None
        self._version += 1

    def sort_indices(self) -> None:
        """Sort the columns of each row, in place: `indices` and `data` become new arrays, and plans are dropped.

        Duplicates keep their order. Where the columns are sorted, nothing changes.
        """
        if not self.has_sorted_indices:
            data, indices, indptr = with_sorted_rows(self.queue, self._parts)
            self._become(Structure(self.queue, self.shape, indices, indptr), data)

    def sum_duplicates(self) -> None:
        """Sort the columns of each row, and add up entries of one place, in place: as `sort_indices`, with a new `indptr` too.

        Values are added in the order of the entries; the sum of booleans is whether one of them is True. Where the format is
        canonical, nothing changes.
        """
        if not self.has_canonical_format:
            self.sort_indices()
            data, indices, indptr = without_duplicates(self.queue, self._parts)
            self._become(Structure.canonical(self.queue, self.shape, indices, indptr), data)

    def eliminate_zeros(self) -> None:
        """Leave out entries whose value is zero, in place: where there are some, all arrays are new, and plans are dropped."""
        self.require_valid()
        (data, indices, indptr), known = without_zeros(self.queue, self._parts), self.facts
        if indices is not self.indices:
            # Without some entries, rows may be sorted that were not, and duplicates may be none.
            facts = Facts(indices.size, sorted=True, canonical=True) if known is not None and known.canonical else None
            self._become(Structure(self.queue, self.shape, indices, indptr, facts), data)

    @property
    def _parts(self) -> DeviceParts:
        return self.data, self.indices, self.indptr

    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``, made at the first call and kept until the structure is replaced."""
        return kept_plan(self)

    def transpose_plan(self) -> TransposePlan[csr_array]:
        """Return the plan that transposes new values of A, made at the first call and kept until the structure is replaced."""
        if self._plan is None:
            found = self._structure.kept(Permutation, lambda: permutation(self, "auto"))
            self._plan = TransposePlan(self, found)
        return self._plan

    @property
    def T(self) -> csr_array:  # noqa: N802 - SciPy's name for it
        """The transposed matrix, rows sorted; see `clsparse_py.transpose`. It is kept, and the same one, until A changes.

        That is until `data`, `indices` or `indptr` is set. With the second set of values a plan is made, which transposes each
        further one by a gather. Values written into `data` in place go unnoticed: after that say ``A.data = A.data``. The
        kept matrix is A's, not to be written to in place either: `transpose` with ``copy=True`` gives one of its own.
        """
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

    def _transposed(self) -> csr_array:
        return self.T

    def get(self) -> scipy.sparse.csr_array:
        """Return the matrix as a `scipy.sparse.csr_array` of its own memory."""
        use_device()
        self.require_valid()
        parts = tuple(fetched(part, self.queue) for part in self._parts)
        return scipy.sparse.csr_array(parts, shape=self.shape)

    def toarray(self) -> npt.NDArray[Any]:
        """Return the matrix as a dense NumPy array; duplicates are summed."""
        return np.asarray(self.get().toarray())

    todense = toarray

    @property
    def format(self) -> str:
        """``"csr"``."""
        return "csr"

    @property
    def size(self) -> int:
        """Stored entries, as `nnz`."""
        return self.nnz

    def tocsr(self, copy: bool = False) -> csr_array:
        """Return the matrix itself or, with ``copy``, one with arrays of its own."""
        return self.copy() if copy else self

    def sorted_indices(self) -> csr_array:
        """Return a copy of the matrix with the columns of each row in ascending order, as `sort_indices` leaves them."""
        found = self.copy()
        found.sort_indices()
        return found

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
            return spgemm(self, other)
        if isinstance(other, cl_array.Array) and other.ndim in (1, 2):  # before SciPy is asked, which takes microseconds
            return spmm(self, other) if other.ndim == 2 else spmv(self, other)
        if scipy.sparse.issparse(other):
            return spgemm(self, other)
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

    def dot(self, other: Any) -> Any:
        """Return ``A @ other`` or, of a scalar, ``A * other``."""
        return self * other if np.isscalar(other) else self @ other

    def matvec(self, x: Any) -> Any:
        """Return ``A @ x`` for a vector x of n entries, or of n x 1, whose shape the result has.

        With `matvec`, `rmatvec`, `matmat` and `rmatmat`, the matrix serves all of `scipy.sparse.linalg`.
        """
        return self @ x

    def rmatvec(self, x: Any) -> Any:
        """Return ``A.conj().T @ x`` for a vector x of m entries, or of m x 1. ``A.T`` is kept."""
        return _conjugate(self.T @ _conjugate(x)) if self.dtype.kind == "c" else self.T @ x

    def matmat(self, X: Any) -> Any:
        """Return ``A @ X`` for a matrix X of n rows."""
        return self @ X

    def rmatmat(self, X: Any) -> Any:
        """Return ``A.conj().T @ X`` for a matrix X of m rows. ``A.T`` is kept."""
        return self.rmatvec(X)

    def __bool__(self) -> bool:
        """Return whether a 1 x 1 matrix stores an entry; others have no truth value, as in SciPy."""
        if self.shape == (1, 1):
            return self.nnz != 0
        raise ValueError(f"truth value: ambiguous, as A is {self.shape[0]} x {self.shape[1]}; ask for A.nnz, or use A.get()")

    def __repr__(self) -> str:
        kind = f"{self.dtype} values, {self.indptr.dtype} indices"
        rows, cols = self.shape
        return f"<csr_array of {rows} x {cols}, {self.indices.size} stored entries, {kind}, on {self.queue.device.name}>"

    def _repr_html_(self) -> str:
        rows, cols = self.shape
        kinds = str(self.dtype), str(self.indptr.dtype)
        heads = "rows", "columns", "stored entries", "values", "indices", "device"
        return Table(
            "csr_array", heads, [(f"{rows:,}", f"{cols:,}", f"{self.indices.size:,}", *kinds, self.queue.device.name)]
        ).as_html()


def _conjugate(values: Any) -> Any:
    """Return the conjugates of a NumPy or device array."""
    return values.conj() if isinstance(values, cl_array.Array) else np.conj(values)


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
