"""Methods that sparse arrays of all formats share: conversions, products, NumPy's functions, pickling, printing."""

from __future__ import annotations

import abc
import importlib
import math
import operator
import sys
import types
from collections.abc import Callable, Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, overload

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._arrays.numpy_functions import METHODS, OPERATORS, REFUSED, UNARY_FUNCTIONS
from clsparse_py._ground.errors import runs_on_host
from clsparse_py._ground.tables import Table
from clsparse_py._matrix.matrix import Matrix, Sparse
from clsparse_py._matrix.placement import value_dtype
from clsparse_py._memory.device_array import OF_NO_VALUES
from clsparse_py._memory.overlap import require_inside
from clsparse_py._operations.elementwise.dense import make_dense
from clsparse_py._operations.elementwise.in_place import InPlace
from clsparse_py._run.transfer import contexts_match

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py._arrays.bsr import bsr_array
    from clsparse_py._arrays.coo import coo_array
    from clsparse_py._arrays.csc import csc_array
    from clsparse_py._arrays.csr import csr_array
    from clsparse_py._matrix.annotations import HasPairType, SciPySparse

__all__ = [
    "ON_DEVICE",
    "SparseArray",
    "cast_target",
    "class_of_format",
    "combine_with_scipy",
    "dense_operand_of",
    "on_device",
    "require_reversed",
]

#: Names of the formats of sparse arrays that live on an OpenCL device; dia, lil and dok arrays are SciPy's, on the host.
ON_DEVICE = ("csr", "csc", "coo", "bsr")
_Class = TypeVar("_Class")
#: Sparse array classes of this package, by the name of the format and by whether arrays of the class have one dimension.
_CLASSES: dict[tuple[str, bool], Any] = {}


def class_of_format(name: str, *, one_dimensional: bool = False) -> Any:
    """Return the sparse array class of the format ``name``, "csr", say: for two dimensions, or for one if ``one_dimensional``."""
    if name == "bsr":
        importlib.import_module("clsparse_py._arrays.bsr")  # few processes use `bsr_array`, which the import registers
    return _CLASSES[name, one_dimensional]


def on_device(queue: cl.CommandQueue, value: Any) -> SparseArray:
    """Return a sparse array as one of this package: ours unchanged, SciPy's copied to the device (dia, lil and dok as CSR)."""
    if isinstance(value, SparseArray):
        return value
    name = value.format if value.format in ON_DEVICE else "csr"
    array: SparseArray = class_of_format(name, one_dimensional=value.ndim == 1)(value, queue=queue)
    return array


def combine_with_scipy(name: str, A: SparseArray, other: Any) -> Any:
    """Return ``other - A`` (if ``name`` is ``__rsub__``, say) for a sparse array ``other`` of SciPy, computed on the device."""
    if name == "__rmul__" and isinstance(other, scipy.sparse.spmatrix):
        name = "__rmatmul__"  # `*` of SciPy's matrices is the product of matrices
    if name == "__radd__" and other.format == "dia":
        return A + other
    return getattr(on_device(A.queue, other), name.replace("__r", "__", 1))(A)


def dense_operand_of(other: Any) -> Any:
    """Return the dense operand x of ``A @ x`` as an array of one or two dimensions; None for an object that is no array.

    Raises
    ------
    ValueError
        The operand is a scalar, or has more dimensions.
    """
    dense = other if isinstance(other, cl_array.Array) else np.asarray(other)
    if dense.ndim in (1, 2):
        return dense
    if dense.ndim == 0 and dense.dtype.kind == "O":
        return None
    problem = (
        f"is a scalar of type {type(other).__name__}: use A * x (Scalar operands are not allowed)"
        if dense.ndim == 0
        else f"has shape {dense.shape}"
    )
    raise ValueError(f"x: must be an array of one or two dimensions, {problem}")


def cast_target(current: np.dtype[Any], dtype: Any, casting: str) -> np.dtype[Any]:
    """Return the NumPy dtype that `astype` converts values to, named by ``dtype``; raise if ``casting`` or the package forbids.

    Raises
    ------
    TypeError
        The dtype is not supported, or ``casting``, one of NumPy's rules, forbids the conversion.
    """
    target = value_dtype("dtype", dtype)
    if not np.can_cast(current, target, casting):  # type: ignore[arg-type] # one of NumPy's rules, or NumPy says so
        raise TypeError(f"dtype: {current} values cannot be cast to {target} by the rule {casting!r}")
    return target


def require_reversed(axes: Any) -> None:
    """Raise a ValueError unless the ``axes`` of a transposition of two dimensions are None or (1, 0)."""
    if axes is not None and not (isinstance(axes, (tuple, list)) and tuple(axes) == (1, 0)):
        raise ValueError(f"axes: must be None or (1, 0), are {axes!r}")


def _resolve_shape(lengths: tuple[Any, ...], old_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the new shape from the arguments of `SparseArray.reshape`; a negative length is computed from the others.

    Raises
    ------
    TypeError, ValueError
        The new shape has another number of places, or is no shape.
    """
    if not lengths:
        raise TypeError("shape: is missing")
    new_lengths = lengths[0] if len(lengths) == 1 and np.ndim(lengths[0]) else lengths
    shape, size = [operator.index(number) for number in new_lengths], math.prod(old_shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"shape: must have one or two dimensions, is {tuple(shape)}")
    unknown = [axis for axis, length in enumerate(shape) if length < 0]
    if len(unknown) > 1:
        raise ValueError("shape: can only specify one unknown dimension")
    for axis in unknown:
        product = math.prod(length for length in shape if length >= 0)
        shape[axis] = size // product if product else 0
    if math.prod(shape) != size:
        raise ValueError(f"shape: cannot reshape array of {size} places, {old_shape}, into {tuple(new_lengths)}")
    return tuple(shape)


class SparseArray(InPlace, Sparse):
    """Base of `csr_array`, `csc_array`, `coo_array` and `bsr_array`."""

    _format: ClassVar[str]
    _vector_type: coo_array  # for type checkers: see `annotations.HasVectorType`
    # Priority of a sparse array's operators, above the priority of the operators of NumPy's and PyOpenCL's arrays.
    __array_priority__ = 200.0
    #: Most entries of a sparse array that are printed; as in SciPy, an array may have a number of its own.
    maxprint: int = 50
    # Sparse arrays are unhashable, as SciPy's and NumPy's are: `==` compares entries.
    __hash__ = None  # type: ignore[assignment] # the way to say so

    # The type csr_array[np.float32] is for annotations, as with SciPy's classes.
    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __init_subclass__(cls, one_dimensional: bool | None = None, **options: Any) -> None:
        """Register a subclass as its format's class for one dimension (``one_dimensional``), two (False) or both (None)."""
        super().__init_subclass__(**options)
        if hasattr(cls, "_format"):
            for dimensions in (False, True) if one_dimensional is None else (one_dimensional,):
                _CLASSES.setdefault((cls._format, dimensions), cls)

    # ---- members that the class of each format defines

    @property
    @abc.abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array's values."""

    @property
    @abc.abstractmethod
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the array run, unless a dense operand on the device has another queue."""

    @property
    @abc.abstractmethod
    def nnz(self) -> int:
        """The number of stored entries."""

    @abc.abstractmethod
    def get(self) -> Any:
        """Return a copy of the array on the host: SciPy's array of the same format, with memory of its own."""

    @abc.abstractmethod
    def copy(self) -> Self:
        """Return a copy of the sparse array, with device arrays of its own."""

    @abc.abstractmethod
    def _alias(self) -> Self:
        """Return another sparse array object over the same device arrays as this array."""

    @abc.abstractmethod
    def _as_csr(self) -> csr_array:
        """Return the array's CSR form with two dimensions (a vector as one row), often cached: callers must not change it."""

    def _times(self, dense: Any) -> Any:
        """Return the product ``A @ dense`` of the sparse array A and a dense vector or matrix."""
        return self._as_csr()._times(dense)

    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and the sparse array A, whose shapes match."""
        return self._as_csr()._dense_times(dense)

    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of the sparse array A and another sparse array of this package."""
        return self._as_csr()._times_sparse(other)

    # ---- attributes

    @property
    def format(self) -> str:
        """The name of the array's format: "csr", "csc", "coo" or "bsr"."""
        return self._format

    @property
    def context(self) -> cl.Context:
        """The OpenCL context of the array's queue."""
        return self.queue.context

    @property
    def size(self) -> int:
        """The number of stored entries, as `nnz`."""
        return self.nnz

    def __len__(self) -> int:
        """Raise a TypeError, as the length of a sparse array is ambiguous; SciPy's arrays do the same."""
        raise TypeError("length: ambiguous for a sparse array; ask for A.nnz or A.shape[0]")

    def __bool__(self) -> bool:
        """Return whether a 1 x 1 array stores an entry; raise a ValueError for an array of another shape, as SciPy does."""
        if self.shape == (1, 1):
            return self.nnz != 0
        raise ValueError(f"truth value: ambiguous, as A is {self._shape_as_text()}; ask for A.nnz, or use A.get()")

    @property
    def mT(self) -> Any:  # noqa: N802 - SciPy's name for it
        """The transposed matrix, as ``A.T``; a ValueError for an array of one dimension."""
        if self.ndim < 2:
            raise ValueError(f"A: must have two dimensions, has {self.ndim}")
        return self.T  # type: ignore[attr-defined] # of each format

    # ---- conversions

    @abc.abstractmethod
    def tocsc(self, copy: bool = False) -> csc_array:
        """Return the array in CSC form."""

    @abc.abstractmethod
    def tocoo(self, copy: bool = True) -> coo_array:
        """Return the array in COO form."""

    def asformat(self, format: str | None, copy: bool = False) -> Any:  # noqa: A002 - SciPy's name for it
        """Return the array in the format ``format``; if it has that format or ``format`` is None, the array itself or a ``copy``.

        Parameters
        ----------
        format : {"csr", "csc", "coo", "bsr", "dia", "lil", "dok", "array", "dense"} or None
            "dia", "lil" and "dok" are SciPy's classes, on the host; the last two a dense NumPy array.
        copy : bool
            True: the result has arrays of its own.

        Raises
        ------
        ValueError
            There is no such format.
        """
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format in ("array", "dense"):
            return self.toarray()
        convert = getattr(self, f"to{format}", None) if format in ("csr", "csc", "coo", "dia", "bsr", "lil", "dok") else None
        if convert is None:
            raise ValueError(f"format: must be csr, csc, coo, dia, bsr, lil or dok, is {format!r}")
        return convert(copy=copy)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> coo_array | Self:
        """Return the entries as a `coo_array` of another shape with as many places; for the same shape, A itself or a ``copy``.

        Parameters
        ----------
        shape : int or tuple of int
            One length may be negative: it is computed from the others.
        order : {"C", "F"}
            The order in which places are counted: by rows, or by columns.
        copy : bool
            True: the result shares no array with this one.

        Raises
        ------
        TypeError, ValueError
            The shape has another number of places, or is no shape.
        """
        new_shape = _resolve_shape(shape, self.shape)
        if new_shape == self.shape:
            return self.copy() if copy else self
        if order not in ("C", "F"):
            raise ValueError(f"order: must be C or F, is {order!r}")
        return self.tocoo(copy=copy)._reshaped(new_shape, order)

    @runs_on_host("A.todia")
    def todia(self, copy: bool = False) -> Any:  # noqa: ARG002 - always its own
        """Return a `scipy.sparse.dia_array`, made on the host."""
        return self.get().todia()

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> bsr_array:
        """Return the array as a `bsr_array`: the blocks in which the array has entries, sorted, duplicates summed.

        Parameters
        ----------
        blocksize : tuple of int, optional
            Rows and columns of a block. By default the largest of 1, 2, 3, 4 and 6 rows whose blocks are well filled.
        copy : bool
            False: blocks of one entry may share arrays.

        Raises
        ------
        ValueError, TypeError
            The blocks do not divide the shape, or the array has one dimension.
        """
        if self.ndim == 1:
            raise ValueError("A: Cannot convert an array of one dimension; bsr_array takes two")
        blocks: bsr_array = class_of_format("bsr")(self._as_csr(), blocksize=blocksize, copy=copy)
        return blocks

    @runs_on_host("A.tolil")
    def tolil(self, copy: bool = False) -> Any:  # noqa: ARG002 - always its own
        """Return a `scipy.sparse.lil_array`, made on the host."""
        return self.get().tolil()

    @runs_on_host("A.todok")
    def todok(self, copy: bool = False) -> Any:  # noqa: ARG002 - always its own
        """Return a `scipy.sparse.dok_array`, made on the host."""
        return self.get().todok()

    @overload
    def toarray(self, order: Any = None, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]: ...

    @overload
    def toarray(self, order: None, out: cl_array.Array) -> cl_array.Array: ...

    @overload
    def toarray(self, *, out: cl_array.Array) -> cl_array.Array: ...

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """Return the array as a dense one, duplicates summed: a new NumPy array, or ``out`` of NumPy or the device, overwritten.

        Parameters
        ----------
        order : {"C", "F"}, optional
            The order of a new NumPy array.
        out : numpy.ndarray or pyopencl.array.Array, optional
            An array of the same shape and dtype, to overwrite and return. A device array is C-contiguous and begins its buffer.

        Raises
        ------
        ValueError
            ``out`` has another shape or dtype, or ``order`` is given beside it.
        """
        if isinstance(out, cl_array.Array):
            return self._write_dense(out, order)
        dense = self.get().toarray(order=order, out=out)
        return np.asarray(dense) if out is None else out

    todense = toarray

    def _write_dense(self, out: cl_array.Array, order: Any) -> Any:
        """Overwrite a dense device array with the sparse array's values, 0 where none is stored, and return the dense array."""
        if order is not None:
            raise ValueError("order: cannot be given beside out")
        if out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError(f"out: must have shape {self.shape} and dtype {self.dtype}, has {out.shape} and {out.dtype}")
        if out.offset or (out.size and not out.flags.c_contiguous):
            raise ValueError("out: must be C-contiguous and begin its buffer")
        if not contexts_match(out, self.context):
            raise ValueError("out: lives in another context than A")
        require_inside("out", out)
        A = self._as_csr()
        A.require_valid()
        return make_dense(A, A.dtype, out)

    # ---- products

    @overload
    def __matmul__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __matmul__(self: HasPairType[_Class], other: SparseArray | SciPySparse) -> _Class: ...

    @overload
    def __matmul__(self, other: SparseArray | SciPySparse) -> Any: ...

    @overload
    def __matmul__(self, other: npt.ArrayLike) -> npt.NDArray[Any]: ...

    def __matmul__(self, other: Any) -> Any:
        """Return ``A @ other``: sparse for a sparse operand, a NumPy array for NumPy's, a device array for a device array.

        The host does not wait for values of a device array. The product of sparse arrays has A's format, but CSR if A is COO.
        """
        if scipy.sparse.issparse(other):
            other = on_device(self.queue, other)
        if isinstance(other, SparseArray):
            if self.queue is not other.queue and self.context != other.context:
                raise ValueError("B: lives in another context than A")
            return self._times_sparse(other)
        dense = dense_operand_of(other)
        if dense is None:
            # SciPy's LinearOperator would convert A to a NumPy array in ``A @ other``: A is made a LinearOperator instead.
            # Without the import of `scipy.sparse.linalg` by the program, ``other`` cannot be a LinearOperator.
            linalg = sys.modules.get("scipy.sparse.linalg")
            is_operator = linalg is not None and isinstance(other, linalg.LinearOperator)
            return linalg.aslinearoperator(self) @ other if linalg is not None and is_operator else NotImplemented
        return self._times(dense)

    @overload
    def __rmatmul__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __rmatmul__(self, other: SciPySparse) -> Any: ...

    @overload
    def __rmatmul__(self, other: npt.ArrayLike) -> npt.NDArray[Any]: ...

    def __rmatmul__(self, other: Any) -> Any:
        """Return the product ``other @ A`` for a dense array, NumPy's or the device's, or a sparse array of SciPy."""
        if scipy.sparse.issparse(other):
            return on_device(self.queue, other) @ self
        dense = dense_operand_of(other)
        if dense is None:
            return NotImplemented
        if dense.shape[-1] != self.shape[0]:
            expected = f"{self.shape[0]} {'entries' if dense.ndim == 1 else 'columns'}"
            shown = self._shape_as_text()
            raise ValueError(f"x: must have {expected}, as A is {shown}, has shape {dense.shape} (dimension mismatch)")
        return self._dense_times(dense)

    @overload
    def dot(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def dot(self: HasPairType[_Class], other: SparseArray) -> _Class: ...

    @overload
    def dot(self, other: complex | np.number[Any]) -> Self: ...

    @overload
    def dot(self, other: npt.NDArray[Any]) -> npt.NDArray[Any]: ...

    @overload
    def dot(self, other: Any) -> Any: ...

    def dot(self, other: Any) -> Any:
        """Return the product ``A @ other`` or, of a scalar, ``A * other``."""
        return self * other if np.isscalar(other) else self @ other  # type: ignore[operator] # of each format

    def matvec(self, x: Any) -> Any:
        """Return the product ``A @ x`` of an m x n matrix A and a vector x, of shape (n,) or (n, 1): of shape (m,) or (m, 1).

        With `matvec`, `rmatvec`, `matmat` and `rmatmat`, the array serves all of `scipy.sparse.linalg`.
        """
        return self @ x

    def rmatvec(self, x: Any) -> Any:
        """Return the product ``A.conj().T @ x`` of an m x n matrix A and a vector x of m entries, from ``x.conj() @ A``."""
        if self.dtype.kind != "c":
            return self._transposed_times(x)
        return _conjugate(self._transposed_times(_conjugate(x)))

    def _transposed_times(self, x: Any) -> Any:
        """Return the product ``A.T @ x`` of the transposed array and a dense x, computed as ``x @ A``."""
        return x @ self if np.ndim(x) == 1 else (x.T @ self).T

    def matmat(self, X: Any) -> Any:
        """Return the product ``A @ X`` of an m x n matrix A and a dense matrix X of n rows."""
        return self @ X

    def rmatmat(self, X: Any) -> Any:
        """Return the product ``A.conj().T @ X`` of an m x n matrix A and a dense X of m rows, computed as by `rmatvec`."""
        return self.rmatvec(X)

    # ---- NumPy's functions

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **options: Any) -> Any:
        """Return a NumPy ufunc's result, ``np.add``'s, say, by A's operator or method for it; raise a TypeError without one."""
        if out and options.get("axes") in _AXES_IN_PLACE:
            options = {}
        result = NotImplemented if method != "__call__" or options else _apply_ufunc(ufunc, inputs)
        if result is NotImplemented and all(
            isinstance(operand, (SparseArray, np.ndarray, np.generic, Number)) for operand in inputs
        ):
            types = " and ".join(type(operand).__name__ for operand in inputs)
            raise TypeError(
                f"unsupported operand types for np.{ufunc.__name__}{_describe_call(method, options)}: {types}; see A.get()"
            )
        if result is NotImplemented or not out:
            return result
        (target,) = out
        if not isinstance(target, np.ndarray):
            return NotImplemented
        is_alike = isinstance(result, np.ndarray) and result.shape == target.shape
        fits = is_alike and np.can_cast(result.dtype, target.dtype, "same_kind")
        if not fits:
            return result  # x *= A gives x what x * A is, as with SciPy's arrays
        target[...] = result
        return target

    def __array_function__(self, function: Callable[..., Any], types: Any, arguments: Any, options: Any) -> Any:
        """Call the method for a NumPy function; run those that read no values, such as `numpy.shape`; refuse all others."""
        if function in OF_NO_VALUES:
            return function.__wrapped__(*arguments, **options)  # type: ignore[attr-defined] # a NumPy function in Python
        if function is np.result_type:
            return np.result_type(*(operand.dtype if isinstance(operand, SparseArray) else operand for operand in arguments))
        name = function.__name__
        if name in METHODS and arguments and isinstance(arguments[0], SparseArray):
            method = getattr(arguments[0], METHODS[name])
            return method(*arguments[1:], **options) if callable(method) else method
        return self._refuse_number(f"np.{name}: A")

    if not TYPE_CHECKING:  # by NumPy's types, ``x @ A`` would be an operator of NumPy's

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
            """Return a NumPy array of one object, the sparse array, so that operators of NumPy's arrays leave the call to ours.

            Raises
            ------
            TypeError
                ``dtype`` is a dtype of numbers.
            """
            if dtype is not None and np.dtype(dtype) != object:
                self._refuse_number()
            boxed = np.empty((), object)
            boxed[()] = self
            return boxed

    def _refuse_number(self, name: str = "A") -> NoReturn:
        """Raise the TypeError for a conversion of a sparse array to a number or NumPy array; it names `get` and `toarray`."""
        reason = f"is a {self.format}_array on a device, where NumPy does not compute"
        raise TypeError(f"{name}: {reason}: A.get() returns it as SciPy's, A.toarray() as NumPy's")

    __index__ = __int__ = __float__ = __complex__ = _refuse_number

    # ---- copies

    def __copy__(self) -> Self:
        return self._alias()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the array of SciPy that `get` returns, and the device's name; the array is loaded on the default queue."""
        return _load, (self.format, self.get(), self.queue.device.name)

    # ---- text of an array

    @abc.abstractmethod
    def _index_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the array's indices: int32 or int64."""

    def _n_stored(self) -> int:
        """Return the number of the array's stored values, without a check of the structure."""
        return int(self.data.size)

    def __str__(self) -> str:
        """Return the text of SciPy's array with the same entries: at most `maxprint` entries."""
        host = self.get()
        host.maxprint = self.maxprint
        return str(host)

    def _shape_as_text(self) -> str:
        """Return the shape of the array as text, such as "3 x 4"."""
        return " x ".join(map(str, self.shape))

    def _print_at_most(self, maxprint: int | None) -> None:
        """Set how many entries of the array are printed at most, unless ``maxprint`` is None."""
        if maxprint is not None:
            self.maxprint = operator.index(maxprint)

    def __format__(self, spec: str) -> str:
        """Return the text of `repr`, formatted by ``spec`` as a string is; the entries are not read."""
        return format(repr(self), spec)

    def __repr__(self) -> str:
        kind = f"{self.dtype} values, {self._index_dtype()} indices"
        shown = self._shape_as_text() if self.ndim == 2 else f"length {self.shape[0]}"
        name = self.queue.device.name
        # The text of `repr` names `get`, as packages that know no sparse arrays of a device put this text into their errors.
        where = f"on {name}; get() copies it to the host"
        return f"<{self.format}_array of {shown}, {self._n_stored()} stored entries, {kind}, {where}>"

    def _repr_html_(self) -> str:
        """Return the array's shape, number of entries, types and device as a table in HTML."""
        kinds = f"{self._n_stored():,}", str(self.dtype), str(self._index_dtype()), self.queue.device.name
        lengths = ("rows", "columns") if self.ndim == 2 else ("length",)
        heads = *lengths, "stored entries", "values", "indices", "device"
        return Table(f"{self.format}_array", heads, [(*(f"{length:,}" for length in self.shape), *kinds)]).as_html()


def _load(format: str, host: Any, device: str) -> SparseArray:  # noqa: A002, ARG001 - the name is there to be read in a pickle
    """Return the sparse array that was pickled: a copy, on the default queue's device, of the SciPy array in the pickle."""
    array: SparseArray = class_of_format(format, one_dimensional=host.ndim == 1)(host, copy=True)
    return array


def _conjugate(values: Any) -> Any:
    """Return the complex conjugates of the values of a NumPy or device array."""
    return values.conj() if isinstance(values, cl_array.Array) else np.conj(values)


def _describe_call(method: str, options: Mapping[str, Any]) -> str:
    """Return the method and the options of a call of a NumPy ufunc as text for an error; "" for a plain call."""
    return ("" if method == "__call__" else f".{method}") + (f" with {', '.join(options)}" if options else "")


#: Values of the argument ``axes`` in NumPy's call of ``np.matmul`` for ``x @= A``: for a matrix x, and for a vector x.
_AXES_IN_PLACE = [(-2, -1)] * 3, [(-1,), (-2, -1), (-1,)]


def _apply_ufunc(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Return the result of a NumPy ufunc on operands, a sparse array among them; NotImplemented if no operator implements it.

    The ufuncs of `REFUSED`, such as ``np.sign``, raise the error given there.
    """
    if ufunc in REFUSED:
        name = ufunc.__name__
        raise REFUSED[ufunc](f"numpy.{name}: takes no sparse array, as with SciPy's; use A.{name}()")
    if len(inputs) == 1:
        function = UNARY_FUNCTIONS.get(ufunc)
        return NotImplemented if function is None else function(inputs[0])
    if ufunc not in OPERATORS:
        return NotImplemented
    forward, reflected = OPERATORS[ufunc]
    left, right = inputs
    for operand, other, name in ((left, right, forward), (right, left, reflected)):
        if isinstance(operand, (SparseArray, Matrix)) and hasattr(operand, name):
            result = getattr(operand, name)(other)
            if result is not NotImplemented:
                return result
    return NotImplemented
