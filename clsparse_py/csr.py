"""`csr_array`: a sparse matrix in CSR form on an OpenCL device. Each operator calls one operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py import programs
from clsparse_py.arithmetic import OPENCL_TYPES
from clsparse_py.convert import converted
from clsparse_py.device import default_queue, describe, in_order
from clsparse_py.transfer import contexts_match, from_host

if TYPE_CHECKING:
    from clsparse_py.spmv.plan import SpmvPlan

__all__ = ["csr_array"]


@dataclass(frozen=True)
class Check(programs.Parameters):
    """Parameters of ``templates/csr/check.mako``."""

    template = "csr/check"

    index: str

    @property
    def name(self) -> str:
        return f"csr_check_{self.index}_wg{self.work_group}"

    @property
    def prelude(self) -> str:
        return f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: indices and indptr"

    def arguments(self) -> dict[str, object]:
        return {"work_group": self.work_group}

    def within(self, work_group: int, lane_width: int) -> Self | None:  # noqa: ARG002 - it exchanges no lanes
        return type(self)(work_group, self.index) if work_group else None


@dataclass(frozen=True)
class _Structure:
    """What `_check` found."""

    nnz: int
    sorted: bool
    canonical: bool


def _check(
    queue: cl.CommandQueue, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array, work_group: int = 128
) -> _Structure:
    """Check a structure on the device, with one kernel and one read.

    Raises
    ------
    ValueError
        It is no CSR structure of that shape; the message says why.
    """
    queue = in_order(queue)
    device = describe(queue.device)
    parameters = Check(min(work_group, device.max_work_group), indptr.dtype.name)
    built = programs.build(queue.context, queue.device, parameters)
    group = built.parameters.work_group
    work = max(shape[0], indices.size, 1)
    groups = max(1, min(-(-work // group), device.compute_units * 16))
    counts = cl_array.empty(queue, (groups, 6), np.int64)
    index = indptr.dtype.type
    kernel = built.kernel(index(shape[0]), index(shape[1]), index(indices.size), indptr.base_data, indices.base_data, counts.data)
    cl.enqueue_nd_range_kernel(queue, kernel, (groups * group,), (group,), wait_for=[*indptr.events, *indices.events])
    decreasing, outside, falls, not_rises, first, last = (int(total) for total in counts.get().sum(axis=0))
    if first != 0:
        raise ValueError(f"indptr: must start with 0, starts with {first}")
    if decreasing:
        raise ValueError(f"indptr: must not decrease, does so in {decreasing} places")
    if last > indices.size:
        raise ValueError(f"indptr: ends with {last}, but there are only {indices.size} indices")
    if outside and last < indices.size:
        # What lies behind the last row is pruned and need not be columns.
        return _check(queue, shape, indices[:last], indptr, work_group)
    if outside:
        raise ValueError(f"indices: must lie in [0, {shape[1]}), {outside} of {indices.size} do not")
    if last < indices.size and not_rises:
        return _check(queue, shape, indices[:last], indptr, work_group)
    return _Structure(last, sorted=falls == 0, canonical=not_rises == 0)


def _value_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype that kernels take."""
    native: np.dtype[Any] = np.dtype(dtype).newbyteorder("=")
    if native.name not in OPENCL_TYPES:
        raise TypeError(f"{name}: dtype {native} is not supported; use one of {', '.join(OPENCL_TYPES)}")
    return native


def _shape(shape: Any) -> tuple[int, int]:
    """Return a shape as two Python integers."""
    try:
        rows, cols = (int(length) for length in shape)
    except (TypeError, ValueError):
        raise TypeError(f"shape: must be two integers, is {shape!r}") from None
    if rows < 0 or cols < 0:
        raise ValueError(f"shape: must not be negative, is {(rows, cols)}")
    return rows, cols


def _vector(name: str, part: Any) -> Any:
    """Return one of the three arrays of a CSR matrix, on host or device, as a one-dimensional array."""
    if not isinstance(part, cl_array.Array):
        part = np.asarray(part)
    elif not part.dtype.isnative:
        raise TypeError(f"{name}: must be in the host's byte order, is {part.dtype.str}")
    if part.ndim != 1:
        raise ValueError(f"{name}: must have one dimension, has {part.ndim} (shape {part.shape})")
    return part


def _index_vector(name: str, part: Any) -> Any:
    part = _vector(name, part)
    if part.dtype.kind not in "iu" and part.size:
        raise TypeError(f"{name}: must be integers, is {part.dtype}")
    return part


class csr_array:  # noqa: N801 - SciPy's name for it
    """A sparse matrix in Compressed Sparse Row form on an OpenCL device.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, csr_array, array_like or tuple
        A SciPy sparse matrix of any format; a `csr_array`; a dense two-dimensional array; ``(data, indices, indptr)``, NumPy or
        `pyopencl.array.Array`; or ``(data, (row, col))``, whose duplicates are summed.
    shape : tuple of int, optional
        Rows and columns. By default what ``arg1`` has, or the smallest that holds its entries.
    dtype : dtype, optional
        Of the values; by default that of ``arg1``. Bool, integers, float32, float64, complex64 and complex128 are supported, the
        64-bit floats where the device has double precision.
    copy : bool
        False, the default: `pyopencl.array` parts are used as they are, and so are contiguous NumPy parts on devices that work
        on the host's memory (CPU devices). The matrix then *is* that memory: who writes to one writes to the other.
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
    """

    ndim = 2
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
        if queue is not None and not isinstance(queue, cl.CommandQueue):
            raise TypeError(f"queue: must be a pyopencl.CommandQueue, is {type(queue).__name__}")
        shape = None if shape is None else _shape(shape)
        vouched = False
        if isinstance(arg1, csr_array):
            parts, own_shape, vouched = (arg1.data, arg1.indices, arg1.indptr), arg1.shape, arg1._vouched
        elif scipy.sparse.issparse(arg1):
            parts, own_shape = _from_scipy(arg1)
        elif isinstance(arg1, tuple):
            parts, own_shape = _from_tuple(arg1, shape)
        else:
            parts, own_shape = _from_scipy(_from_dense(arg1))
        if shape is not None and isinstance(arg1, csr_array) and shape != own_shape:
            raise ValueError(f"shape: {shape} differs from that of arg1, {own_shape}")
        self.shape: tuple[int, int] = own_shape if shape is None else shape
        self.queue: cl.CommandQueue = (
            queue
            or next((part.queue for part in parts if isinstance(part, cl_array.Array) and part.queue is not None), None)
            or default_queue()
        )
        self.context: cl.Context = self.queue.context  # kept: not every driver's queue keeps it
        self._place(parts, dtype, copy=copy)
        self._plan: SpmvPlan | None = None
        self._structure: _Structure | None = None
        self._nnz: int = self._indices.size
        self._vouched: bool = vouched or not check
        if not self._vouched:
            self._checked()

    def _place(self, parts: tuple[Any, Any, Any], dtype: Any, *, copy: bool) -> None:
        """Put the three arrays on the device, of matching index type and of the dtype asked for."""
        data, indices, indptr = _vector("data", parts[0]), _index_vector("indices", parts[1]), _index_vector("indptr", parts[2])
        if indptr.size != self.shape[0] + 1:
            raise ValueError(f"indptr: must have rows + 1 = {self.shape[0] + 1} entries, has {indptr.size}")
        if data.size != indices.size:
            raise ValueError(f"data: must have as many entries as indices, has {data.size}, not {indices.size}")
        value_dtype = _value_dtype("data" if dtype is None else "dtype", data.dtype if dtype is None else dtype)
        if value_dtype.name in ("float64", "complex128") and not describe(self.queue.device).fp64:
            raise TypeError(
                f"dtype: {value_dtype} needs double precision, which {self.queue.device.name} lacks; "
                f"use dtype={'float32' if value_dtype.kind == 'f' else 'complex64'}"
            )
        index_dtype = _index_dtype(indices, indptr, self.shape)
        self._data = self._placed("data", data, value_dtype, copy=copy)
        self._indices = self._placed("indices", indices, index_dtype, copy=copy)
        self._indptr = self._placed("indptr", indptr, index_dtype, copy=copy)

    def _placed(self, name: str, part: Any, dtype: np.dtype[Any], *, copy: bool) -> cl_array.Array:
        if isinstance(part, cl_array.Array):
            if not contexts_match(part, self.context):
                raise ValueError(f"{name}: lives in another context than the queue of the matrix")
            if part.dtype != dtype or (part.size > 1 and part.strides != (dtype.itemsize,)):
                return converted(self.queue, name, part, dtype)
            # Kernels take the beginning of a buffer: a part that begins inside one is copied to a buffer of its own.
            return part.copy(queue=self.queue) if copy or part.offset else part
        values = np.ascontiguousarray(part, dtype=dtype)
        return from_host(self.queue, values, copy=copy and np.may_share_memory(values, part))

    def _checked(self) -> _Structure:
        """Return what is known of the structure; check it where nothing is."""
        if self._structure is None:
            found = _check(self.queue, self.shape, self._indices, self._indptr)
            if found.nnz < self._indices.size:
                self._indices, self._data = self._indices[: found.nnz], self._data[: found.nnz]
            self._nnz = found.nnz
            self._structure = found
        return self._structure

    @property
    def data(self) -> cl_array.Array:
        """The values, a device array of ``nnz`` entries. May be set to another of that length: plans stay, and use it."""
        return self._data

    @data.setter
    def data(self, values: cl_array.Array) -> None:
        _require_device_array("data", values, self.context)
        if values.ndim != 1 or values.size != self._indices.size:
            raise ValueError(f"data: must have the {self._indices.size} entries of indices, has shape {values.shape}")
        self._data = self._placed("data", values, _value_dtype("data", values.dtype), copy=False)

    @property
    def indices(self) -> cl_array.Array:
        """The column of each entry, a device array of int32 or int64. Setting it replaces the structure: plans are dropped."""
        return self._indices

    @indices.setter
    def indices(self, columns: cl_array.Array) -> None:
        _require_device_array("indices", columns, self.context)
        if columns.ndim != 1 or columns.dtype != self._indptr.dtype:
            raise ValueError(f"indices: must be one-dimensional and {self._indptr.dtype}, is {columns.shape} {columns.dtype}")
        self._indices = self._placed("indices", columns, columns.dtype, copy=False)
        self._replaced()

    @property
    def indptr(self) -> cl_array.Array:
        """Where each row begins, ``rows + 1`` entries. Setting it replaces the structure: plans are dropped."""
        return self._indptr

    @indptr.setter
    def indptr(self, offsets: cl_array.Array) -> None:
        _require_device_array("indptr", offsets, self.context)
        if offsets.shape != (self.shape[0] + 1,) or offsets.dtype != self._indices.dtype:
            wanted = f"{(self.shape[0] + 1,)} and dtype {self._indices.dtype}"
            raise ValueError(f"indptr: must have shape {wanted}, is {offsets.shape} {offsets.dtype}")
        self._indptr = self._placed("indptr", offsets, offsets.dtype, copy=False)
        self._replaced()

    def _replaced(self) -> None:
        """Forget what was known of the structure; it is checked before the next use."""
        self._plan = None
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

    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``, made at the first call and kept until the structure is replaced."""
        from clsparse_py.spmv import spmv_plan

        if self._plan is None:
            self._plan = spmv_plan(self)
        return self._plan

    def get(self) -> scipy.sparse.csr_array:
        """Return the matrix as a `scipy.sparse.csr_array` of its own memory."""
        self.require_valid()
        parts = (self._data.get(), self._indices.get(), self._indptr.get())
        return scipy.sparse.csr_array(parts, shape=self.shape)

    def toarray(self) -> np.ndarray[Any, Any]:
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
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return csr_array(self, dtype=dtype, copy=copy)

    def __matmul__(self, other: Any) -> Any:
        """Return ``A @ x`` for a dense vector or matrix x: NumPy for NumPy, device array, not waited for, for device array."""
        from clsparse_py.spmm import spmm
        from clsparse_py.spmv import spmv

        if isinstance(other, csr_array) or scipy.sparse.issparse(other):
            return NotImplemented
        if np.isscalar(other):
            raise ValueError("x: must be an array; a scalar cannot be an operand of @, use * on the values instead")
        dense = other if isinstance(other, cl_array.Array) else np.asarray(other)
        return spmm(self, dense) if dense.ndim == 2 else spmv(self, dense)

    def __repr__(self) -> str:
        kind = f"{self.dtype} values, {self._indptr.dtype} indices"
        rows, cols = self.shape
        return f"<csr_array of {rows} x {cols}, {self._nnz} stored entries, {kind}, on {self.queue.device.name}>"


def _require_device_array(name: str, values: Any, context: cl.Context) -> None:
    if not isinstance(values, cl_array.Array):
        raise TypeError(f"{name}: must be a pyopencl.array.Array, is {type(values).__name__}")
    if not contexts_match(values, context):
        raise ValueError(f"{name}: lives in another context than the queue of the matrix")


def _from_scipy(matrix: Any) -> tuple[tuple[Any, Any, Any], tuple[int, int]]:
    if matrix.ndim != 2:
        raise ValueError(f"arg1: must have two dimensions, has {matrix.ndim}")
    rows = matrix.tocsr()
    return (rows.data, rows.indices, rows.indptr), (int(rows.shape[0]), int(rows.shape[1]))


def _from_dense(values: Any) -> scipy.sparse.csr_array:
    if isinstance(values, cl_array.Array):
        values = values.get()
    if values is None or isinstance(values, (str, bytes)):
        raise TypeError(f"arg1: must be a sparse matrix, a dense array or a tuple of arrays, is {type(values).__name__}")
    dense = np.asarray(values)
    if dense.dtype.name not in OPENCL_TYPES:
        raise TypeError(f"arg1: dtype {dense.dtype} is not supported; use one of {', '.join(OPENCL_TYPES)}")
    if dense.ndim != 2:
        raise ValueError(f"arg1: a dense array must have two dimensions, has {dense.ndim} (shape {dense.shape})")
    return scipy.sparse.csr_array(dense)


def _from_tuple(arg1: tuple[Any, ...], shape: tuple[int, int] | None) -> tuple[tuple[Any, Any, Any], tuple[int, int]]:
    """Return the three arrays and the shape of a tuple of two or three parts."""
    if len(arg1) == 2 and isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
        data, (row, col) = arg1
        data, row, col = (part.get() if isinstance(part, cl_array.Array) else part for part in (data, row, col))
        data, places = _vector("data", data), {"row": _index_vector("row", row), "col": _index_vector("col", col)}
        dtype = _value_dtype("data", data.dtype)
        if shape is None and not data.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        for (name, place), length in zip(places.items(), shape or (None, None), strict=True):
            if place.size != data.size:
                raise ValueError(f"{name}: must have as many entries as data, has {place.size}, not {data.size}")
            outside = int(np.count_nonzero((place < 0) | (place >= length) if length is not None else place < 0))
            if outside:
                end = "n" if length is None else length
                raise ValueError(f"{name}: must lie in [0, {end}), {outside} of {place.size} do not")
        # Without entries, an array of any type is one of no indices.
        whole = tuple(place if place.size else place.astype(np.int32) for place in places.values())
        return _from_scipy(scipy.sparse.coo_array((data.astype(dtype, copy=False), whole), shape=shape))
    if len(arg1) != 3:
        raise ValueError(f"arg1: a tuple must be (data, indices, indptr) or (data, (row, col)), has {len(arg1)} parts")
    data, indices, indptr = _vector("data", arg1[0]), _index_vector("indices", arg1[1]), _index_vector("indptr", arg1[2])
    _value_dtype("data", data.dtype)
    if not indptr.size:
        raise ValueError("indptr: must have rows + 1 entries, has none")
    if shape is None:
        if not indices.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        largest = indices.get().max() if isinstance(indices, cl_array.Array) else indices.max()
        shape = indptr.size - 1, max(int(largest) + 1, 0)
    if isinstance(indices, np.ndarray) and isinstance(indptr, np.ndarray):
        # As SciPy does with arrays from outside: 32 bits where all fits. Done here, so that a matrix keeps its own index type.
        index = _narrowest(indices, indptr, shape)
        indices, indptr = indices.astype(index, copy=False), indptr.astype(index, copy=False)
    return (data, indices, indptr), shape


def _narrowest(indices: np.ndarray[Any, Any], indptr: np.ndarray[Any, Any], shape: tuple[int, int]) -> type:
    """Return int32 where the dimensions and all entries fit, int64 elsewhere."""
    limit = np.iinfo(np.int32)
    for part in (indices, indptr):
        if part.dtype != np.int32 and part.size and (part.max() > limit.max or part.min() < limit.min):
            return np.int64
    return np.int64 if max(shape) > limit.max else np.int32


def _index_dtype(indices: Any, indptr: Any, shape: tuple[int, int]) -> np.dtype[Any]:
    """Return the index type of a matrix: 64 bits where one of its arrays or a dimension needs them."""
    wide = any(part.dtype.itemsize > 4 or part.dtype == np.uint32 for part in (indices, indptr))
    return np.dtype(np.int64 if wide or max(shape) > np.iinfo(np.int32).max else np.int32)
