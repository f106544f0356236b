"""Dense vectors divided among ranks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._arrays.base import SparseArray
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division, by_rows, require_division
from clsparse_py._distributed.redivision import move_entries
from clsparse_py._distributed.shared import Distributed, collective, describe, extend_history, require_same_ranks, spell
from clsparse_py._ground.errors import class_of
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.placement import value_dtype
from clsparse_py._operations.indexing.positions import contiguous
from clsparse_py._run.transfer import contexts_match, copy_to_device

__all__ = ["compute_norm_share", "multiply", "on_device", "own_entries", "require_operand", "vector"]


class vector(Distributed):  # noqa: N801 - as the arrays' names
    """A dense vector whose entries are divided among ranks, or several side by side: the columns of a dense matrix.

    ``+``, ``-``, ``*`` and ``/`` take vectors divided alike and numbers, and work on the device. Every rank has a part, and all
    call the same methods in the same order.

    Parameters
    ----------
    own : array_like or pyopencl.array.Array
        This rank's entries, of one dimension, or rows, of two. A device array is not copied if it is in C order.
    comm : Communicator
    division : Division, optional
        By default entries are numbered in the order of ranks.
    queue : pyopencl.CommandQueue, optional
        Where this rank's part lives; by default ``comm.queue``, and that of a device array.

    Attributes
    ----------
    own : pyopencl.array.Array
        This rank's entries.
    comm : Communicator
    division : Division

    Raises
    ------
    ValueError
        On all ranks: dtypes, numbers of columns or divisions differ, or a rank has not as many entries as the division says.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     x = team.vector(np.array([3.0, 0.0, 4.0]))
    ...     x.norm(), (2 * x + x).allgather()
    (5.0, array([ 9.,  0., 12.]))
    """

    def __init__(
        self, own: Any, comm: Communicator, division: Division | None = None, queue: cl.CommandQueue | None = None
    ) -> None:
        with comm.agreeing(division=division) as facts:
            require_division("division", division)
            values = on_device(comm.queue if queue is None else queue, own)
            facts.update(dtype=values.dtype, columns=values.shape[1:])
        lengths = [int(length) for length in comm.allgather(values.shape[0])]
        if division is None:
            division = Division(np.cumsum([0, *lengths]))
        expected = [division.length(rank) for rank in range(division.size)]
        if expected != lengths:
            raise ValueError(f"division: gives the ranks {expected} entries, and they have {lengths}")
        self.own, self.comm, self.division = values, comm, division

    @classmethod
    def over(cls, own: cl_array.Array, comm: Communicator, division: Division) -> Self:
        """Return the vector over ranks that has each rank's entries on its device, which are not checked. Not collective."""
        instance = object.__new__(cls)
        instance.own, instance.comm, instance.division = own, comm, division
        return instance

    @classmethod
    def zeros(cls, division: Division, comm: Communicator, dtype: Any = np.float64, columns: int | None = None) -> Self:
        """Return a vector of zeros over ranks, or ``columns`` vectors side by side. Not collective."""
        n = division.length(comm.rank)
        entries = copy_to_device(comm.queue, "x", np.zeros(n * (1 if columns is None else columns), dtype))
        return cls.over(entries if columns is None else _reshape(entries, (n, columns)), comm, division)

    @classmethod
    def scattered(cls, x: Any, comm: Communicator, division: Division | None = None, root: int = 0) -> Self:
        """Divide the array x, which only the rank ``root`` has, among all ranks, and return the vector over ranks.

        Parameters
        ----------
        x : array_like
            On the root; what other ranks give is not looked at.
        comm : Communicator
        division : Division, optional
            By default into equal shares.
        root : int
        """
        with comm.agreeing():
            shares = _divide(np.asarray(x), division, comm.size) if comm.rank == root else None
        with comm.together():
            entries, cuts = comm.scatter(shares, root)
        return cls(entries, comm, cuts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole vector."""
        return (self.division.n, *self.own.shape[1:])

    @property
    def ndim(self) -> int:
        """The number of dimensions of the vector, 1 or 2."""
        return len(self.own.shape)

    @property
    def size(self) -> int:
        """The number of entries of the whole vector."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the vector's entries."""
        dtype: np.dtype[Any] = np.dtype(self.own.dtype)
        return dtype

    def __len__(self) -> int:
        return self.division.n

    def __repr__(self) -> str:
        part = self.division.part(self.comm.rank)
        return (
            f"<distributed vector of shape {self.shape}, {self.dtype}: rank {self.comm.rank} of {self.comm.size} "
            f"has {part.start} to {part.stop}>"
        )

    # ---- arithmetic, entry by entry

    def _combine(self, other: Any, apply: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
        """Return an operator's result, entry by entry, for this vector and an operand, which is at the left if ``reflected``."""
        operand = self._read_operand(other)
        if operand is NotImplemented:
            return NotImplemented
        return self._derive(
            apply(*((operand, self.own) if reflected else (self.own, operand))), _describe_step(apply, other, reflected), other
        )

    def _derive(self, own: cl_array.Array, step: str, *operands: Any) -> Self:
        """Return a vector of new entries, divided as this one; its history, a text that ranks compare, has the ``step``."""
        derived = self.over(own, self.comm, self.division)
        derived.history = extend_history(step, self, *(operand for operand in operands if isinstance(operand, vector)))
        return derived

    def _read_operand(self, other: Any) -> Any:
        """Return this rank's entries of an operand that is a vector over ranks, or the scalar; else NotImplemented."""
        if np.bool_ in (self.dtype, getattr(other, "dtype", None)):
            raise TypeError("vectors of booleans have no arithmetic; use astype")
        if isinstance(other, vector):
            self._require_alike(other)
            return other.own
        if isinstance(other, np.ndarray) and other.ndim == 0:
            return other[()]
        return other if np.isscalar(other) else NotImplemented

    def _require_alike(self, other: vector) -> None:
        """Raise a ValueError if the other vector has another shape or division than this vector, or is over other ranks."""
        require_same_ranks("vector", other, self.comm)
        if other.division != self.division or other.own.shape != self.own.shape:
            raise ValueError(f"vectors must be divided alike, are of shapes {self.shape} and {other.shape}: {other.division}")

    def __add__(self, other: Any) -> Any:
        return self._combine(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, _subtract)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, _subtract, reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, operator.mul)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._combine(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combine(other, operator.truediv, reflected=True)

    def __neg__(self) -> Self:
        return self._derive(-self.own, "neg")

    def _in_place(self, other: Any, apply: Callable[[Any, Any], Any]) -> Any:
        """Apply an in-place operator to the vector's entries and an operand, and return the vector."""
        operand = self._read_operand(other)
        if operand is NotImplemented:
            return NotImplemented
        if self.own.size:
            self.own = apply(self.own, operand)
        self.history = self._derive(self.own, _describe_step(apply, other), other).history
        return self

    def __iadd__(self, other: Any) -> Self:
        return self._in_place(other, operator.iadd)  # type: ignore[no-any-return]

    def __isub__(self, other: Any) -> Self:
        if isinstance(other, vector) and self.dtype.kind == other.dtype.kind == "u":
            return self.__iadd__(-other.astype(self.dtype))
        return self._in_place(other, operator.isub)  # type: ignore[no-any-return]

    def __imul__(self, other: Any) -> Self:
        return self._in_place(other, operator.imul)  # type: ignore[no-any-return]

    def axpy(self, a: Any, x: vector) -> Self:
        """Add ``a * x`` to the vector in place, and return the vector. Not collective."""
        self += a * x
        return self

    def conj(self) -> Self:
        """Return the complex conjugate of the vector, which is the vector itself if it is real. Not collective."""
        return self._derive(self.own.conj(), "conj") if self.dtype.kind == "c" else self

    def copy(self) -> Self:
        """Return a copy of the vector with memory of its own. Not collective."""
        return self._derive(self.own.copy(), "copy")

    def astype(self, dtype: Any) -> Self:
        """Return the vector with entries of another dtype. Not collective."""
        target, queue = value_dtype("dtype", dtype), self.own.queue or self.comm.queue
        converted = convert(queue, "x", _reshape(self.own, (self.own.size,)), target)
        return self._derive(_reshape(converted, self.own.shape), f"astype {target}")

    # ---- numbers: products, sums and norms over ranks, whose shares are added in the order of ranks

    def dot(self, other: vector) -> Any:
        """Return the dot product with another vector, without conjugation; see `vdot`.

        Parameters
        ----------
        other : vector
            Of one dimension, divided alike.

        Returns
        -------
        scalar
            The same on all ranks.
        """
        return self._dot_product(other, "dot", np.dot)

    def vdot(self, other: vector) -> Any:
        """Return the dot product of the vector's complex conjugate with another vector."""
        return self._dot_product(other, "vdot", np.vdot)

    @collective
    def _dot_product(self, other: vector, name: str, by_numpy: Callable[[Any, Any], Any]) -> Any:
        """Return the dot product of two vectors over ranks: of floating numbers on the devices, of others by NumPy."""
        if not isinstance(other, vector):
            raise TypeError(f"{name}: needs a vector over the same ranks, is given {class_of(other)}")
        self._require_alike(other)
        if self.ndim != 1:
            raise ValueError(f"{name}: needs vectors of one dimension, has {self.ndim}")
        dtype = np.result_type(self.dtype, other.dtype)
        if self.own.size == 0:
            share = dtype.type(0)
        elif dtype.kind in "fc":
            share = getattr(cl_array, name)(self.own, other.own).get()
        else:
            share = by_numpy(self.own.get(), other.own.get())
        return self.comm.sum(np.asarray(share, dtype), f"{name}({describe(self, other)})").astype(dtype)[()]

    @collective
    def sum(self) -> Any:
        """Return the sum of the vector's entries of all ranks, in the dtype of NumPy's sum."""
        dtype = np.zeros(0, self.dtype).sum().dtype
        if self.own.size == 0:
            share = dtype.type(0)
        elif self.dtype.kind in "fc":
            share = cl_array.sum(self.own).get()
        else:
            share = self.own.get().sum()
        return self.comm.sum(np.asarray(share, dtype), f"sum({describe(self)})")[()]

    @collective
    def norm(self, ord: Any = 2) -> float:  # noqa: A002 - NumPy's name for it
        """Return the 2-, 1- or infinity norm of the vector; several columns count as one vector.

        Parameters
        ----------
        ord : {2, 1, inf}
            The root of the sum of squares, the sum of sizes, the largest size.

        Raises
        ------
        ValueError
            It is another.
        """
        if ord not in (1, 2, np.inf):
            raise ValueError(f"ord: must be 1, 2 or inf, is {ord!r}")
        share, note = compute_norm_share(self.own, ord), f"norm({describe(self)}, {ord})"
        if ord == np.inf:
            return float(self.comm.max(share, note))
        return float(np.sqrt(self.comm.sum(share, note)) if ord == 2 else self.comm.sum(share, note))

    # ---- to the host

    @collective
    def gather(self, root: int = 0) -> Any:
        """Return the whole vector as a NumPy array on the rank ``root``, and None on other ranks."""
        shares = self.comm.gather(self.own.get(), root, f"gather({describe(self)})")
        return None if shares is None else np.concatenate(shares)

    @collective
    def allgather(self) -> np.ndarray[Any, Any]:
        """Return the whole vector as a NumPy array on every rank."""
        return np.concatenate(self.comm.allgather(self.own.get(), f"allgather({describe(self)})"))


def _subtract(a: Any, b: Any) -> Any:
    """Return ``a - b`` of device arrays and numbers; unsigned as ``a + (-b)``, as PyOpenCL would multiply b by -1."""
    if not isinstance(b, cl_array.Array):
        return a - b
    dtype = np.result_type(a.dtype if isinstance(a, cl_array.Array) else a, b.dtype)
    return a + -b.astype(dtype) if dtype.kind == "u" else a - b


def _describe_step(apply: Callable[[Any, Any], Any], other: Any, reflected: bool = False) -> str:
    """Return the text of a vector's operation with a vector or a number, for the history of its result."""
    return f"{'r' if reflected else ''}{apply.__name__} {'vector' if isinstance(other, vector) else spell(other)}"


def compute_norm_share(own: cl_array.Array, ord: Any) -> np.float64:  # noqa: A002 - NumPy's name for it
    """Return a rank's share of a vector's norm: the sum of squares (``ord`` 2) or of sizes (1), or the largest size (inf)."""
    if own.size == 0:
        return np.float64(0)
    flat = _reshape(own, (own.size,))
    if own.dtype.kind not in "fc":
        sizes = np.abs(flat.get().astype(np.float64))
        return np.float64(sizes.max() if ord == np.inf else sizes.sum() if ord == 1 else (sizes * sizes).sum())
    if ord == 2:
        return np.float64(cl_array.vdot(flat, flat).get().real)
    sizes = abs(flat)
    return np.float64((cl_array.max if ord == np.inf else cl_array.sum)(sizes).get())


def _require_dimensions(values: Any) -> None:
    """Raise a ValueError if the array of a vector's entries has neither one nor two dimensions."""
    if values.ndim not in (1, 2):
        raise ValueError(f"x: must have one or two dimensions, has {values.ndim}")


def on_device(queue: cl.CommandQueue, own: Any) -> cl_array.Array:
    """Return a rank's entries as a device array in C order: the entries themselves if they are one, else a copy.

    Raises
    ------
    ValueError, TypeError
        The entries have another number of dimensions, or a dtype or byte order that kernels do not take.
    """
    values = own if isinstance(own, cl_array.Array) else np.asarray(own)
    _require_dimensions(values)
    dtype = value_dtype("x", values.dtype)
    if not isinstance(values, cl_array.Array):
        flat = copy_to_device(queue, "x", np.ascontiguousarray(values, dtype).reshape(-1))
    elif not values.dtype.isnative:
        raise TypeError(f"x: must be in the host's byte order, is {values.dtype.str}")
    elif values.flags.c_contiguous:
        return values
    else:
        flat = contiguous(values.queue or queue, "x", values, dtype)
    entries: cl_array.Array = _reshape(flat, values.shape)
    return entries


def _divide(array: np.ndarray[Any, Any], division: Division | None, size: int) -> list[tuple[np.ndarray[Any, Any], Division]]:
    """Return for each rank the pair of its entries of an array and the array's division among ranks."""
    _require_dimensions(array)
    require_division("division", division)
    cuts = by_rows(array.shape[0], size) if division is None else division
    if cuts.n != array.shape[0] or cuts.size != size:
        raise ValueError(f"x: has {array.shape[0]} rows for {size} ranks, and is to be divided as {cuts}")
    return [(array[cuts.part(rank)], cuts) for rank in range(size)]


def _reshape(values: Any, shape: tuple[int, ...]) -> Any:
    """Return a contiguous array in another shape; no new object if the shape is the same."""
    return values if values.shape == shape else values.reshape(shape)


def multiply(A: Any, other: Any, of_x: Division, of_y: Division, times: Callable[[cl_array.Array], cl_array.Array]) -> Any:
    """Return the product of a matrix over ranks with a `vector`, NumPy or device array; ``times`` multiplies this rank's entries.

    NotImplemented for sparse matrices and numbers.
    """
    rank, queue = A.comm.rank, A.queue
    if isinstance(other, vector):
        require_operand("x", other, A)
        product = vector.over(times(own_entries("x", other, of_x)), A.comm, of_y)
        product.history = extend_history("@", A, other)
        return product
    if isinstance(other, SparseArray) or scipy.sparse.issparse(other) or np.isscalar(other):
        return NotImplemented
    if isinstance(other, cl_array.Array):
        require_operand("x", other, A)
        _require_length(other, of_x.length(rank), f"this rank's part of x, as A is {A.shape[0]} x {A.shape[1]}")
        return times(other)
    dense = np.asarray(other)
    _require_length(dense, of_x.n, f"x, as A is {A.shape[0]} x {A.shape[1]}")
    entries = np.ascontiguousarray(dense[of_x.part(rank)])
    product = vector.over(times(on_device(queue, entries)), A.comm, of_y)
    product.history = extend_history(f"@ {dense.dtype}", A)
    return product.allgather()


def require_operand(name: str, x: vector | cl_array.Array, A: Any) -> None:
    """Raise a ValueError, whose message has the name, if a vector is over other ranks than A, or in another context than A."""
    if isinstance(x, vector):
        require_same_ranks(name, x, A.comm)
    if not contexts_match(x.own if isinstance(x, vector) else x, A.queue.context):
        raise ValueError(f"{name}: lives in another context than A")


def own_entries(name: str, x: vector, division: Division) -> cl_array.Array:
    """Return this rank's entries of a vector in the given division; if the vector is divided otherwise, all ranks move entries.

    Raises
    ------
    ValueError
        The vector has another length, or is of other ranks; the message has its name.
    """
    if x.division == division:
        return x.own
    if x.division.n != division.n or x.division.size != division.size:
        raise ValueError(f"{name}: is divided as {x.division}, and the matrix needs {division}")
    return move_entries(x.own, x.comm, x.division, division)


def _require_length(x: Any, n: int, reason: str) -> None:
    """Raise a ValueError if the dense operand x of a product has not n rows."""
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ValueError(f"x: must have {n} rows, {reason}, has shape {x.shape}")
