"""Sparse matrices as operations take them: values, and a `Structure` with its facts and plans."""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, TypeVar

from clsparse_py._build.plain import are_plain
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import Facts, check_structure
from clsparse_py._memory.pool import is_released

__all__ = ["Matrix", "MatrixT", "Origin", "Parts", "Sparse", "Structure", "Symmetry", "is_sparse"]

#: The type of the values, columns and row pointers of one matrix.
Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]
_Plan = TypeVar("_Plan")
#: The class of a matrix that an operation takes, which the operation's result has too.
MatrixT = TypeVar("MatrixT", bound="Matrix", default="Matrix")


@dataclass(frozen=True)
class Symmetry:
    """The symmetry of a square matrix's pattern, as its first transposition by `gather` measures it.

    Attributes
    ----------
    sampled, missing, at_guess : int
        Numbers of entries: in the sample; of the sample without a mirror image; of the sample with it at the first guess.
    verified : bool
        Whether the format is canonical and every entry has its mirror image. False also if an entry of the sample has no mirror
        image and the other entries were not checked.
    missed, unsorted : bool
        Whether an entry outside of the sample has no mirror image; whether a row is not sorted, or holds duplicates.
    flags : pyopencl.array.Array
        The output of ``templates/transpose/sample.mako``: gathering kernels read from it whether they are to run.
    """

    sampled: int
    missing: int
    at_guess: int
    verified: bool
    missed: bool
    unsorted: bool
    flags: cl_array.Array


class Structure:
    """The structure of a compressed sparse matrix: `indices`, `indptr`, facts about them, and the plans made for them.

    Matrices that differ only in their values share one structure. Its arrays are never replaced: other arrays are another
    structure.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of the matrices that have the structure.
    shape : tuple of int
    indices, indptr : pyopencl.array.Array
        Arrays of one index type that begin their buffers.
    facts : Facts, optional
        The facts about the structure, if they are known already.
    vouched : bool
        Whether the caller vouches for the arrays; if not, they are checked before the first use.

    Attributes
    ----------
    context : pyopencl.Context
    facts : Facts or None
        The facts that are known without asking the device; None if the structure was not checked yet.
    n_given : int
        Length of ``indices`` as given; entries behind the last row are cut off when the structure is checked.
    symmetry : Symmetry or None
        None before the first transposition by `gather`.
    longest_column : int or None
        Entries of the longest column; None before the first transposition by `atomics`.
    scattered : bool or None
        Whether few entries follow shortly on an entry of a near column; None before a CPU device transposed the matrix.
    transposed : bool
        Whether a matrix of this structure was transposed before.
    """

    __slots__ = (
        "__weakref__", "_plans", "_vouched", "context", "facts", "indices", "indptr", "longest_column", "n_given", "queue",
        "scattered", "shape", "symmetry", "transposed",
    )  # fmt: skip

    def __init__(
        self,
        queue: cl.CommandQueue,
        shape: tuple[int, int],
        indices: cl_array.Array,
        indptr: cl_array.Array,
        facts: Facts | None = None,
        *,
        vouched: bool = True,
    ) -> None:
        self.queue = queue
        # A queue may not keep its context alive (quirk 9 of drivers); a device array has the context without a call of a driver.
        self.context: cl.Context = indptr.context or queue.context
        self.shape = shape
        self.indices, self.indptr = indices, indptr
        self.n_given = int(indices.size)
        self.facts = facts
        self.symmetry: Symmetry | None = None
        self.longest_column: int | None = None
        self.scattered: bool | None = None
        self.transposed = False
        self._vouched = vouched
        self._plans: dict[Hashable, Any] = {}

    @classmethod
    def canonical(
        cls, queue: cl.CommandQueue, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array
    ) -> Structure:
        """Return the structure of `indices` and `indptr` that an operation made in canonical format; they are not checked."""
        return cls(queue, shape, indices, indptr, Facts(int(indices.size), sorted=True, canonical=True))

    @property
    def nnz(self) -> int:
        """Number of stored entries of matrices of this structure."""
        self.require_valid()
        return int(self.indices.size)

    def checked(self) -> Facts:
        """Return the `Facts` about the structure (whether rows are sorted, say), which is checked first if there are none.

        Raises
        ------
        ValueError
            The arrays are no valid structure; the message says why.
        """
        if self.facts is None:
            facts = check_structure(self.queue, self.shape, self.indices, self.indptr)
            if facts.nnz < self.indices.size:
                self.indices = self.indices[: facts.nnz]
            self.facts = facts
        return self.facts

    def require_valid(self) -> None:
        """Check the structure's arrays on the device, unless they were checked before or the caller vouches for them."""
        if self.facts is None and not self._vouched:
            self.checked()

    def copied(self, queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array) -> Structure:
        """Return a structure of given copies of `indices` and `indptr` on ``queue``: with this one's facts, without plans."""
        return Structure(queue, self.shape, indices, indptr, self.facts, vouched=self._vouched)

    def find_plan(self, kind: Hashable) -> Any:
        """Return the structure's plan of a kind of operation; None if none was made, and while plain kernels are used."""
        return None if are_plain() else self._plans.get(kind)

    def get_plan(self, kind: Hashable, make: Callable[[], _Plan]) -> _Plan:
        """Return the plan of a kind of operation that all matrices of this structure share, made by ``make`` at the first call.

        A plan must not refer to the structure: the cycle, and its device memory, would stay until Python's garbage collection.
        Plain kernels have plans of their own.
        """
        if are_plain():
            kind = "plain", kind
        plan: _Plan | None = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = make()
        return plan


class Matrix:
    """A sparse matrix as operations take and return it: a `Structure`, and values in the order of its entries.

    Making one checks nothing. Classes for users, such as `csr_array`, check their arguments; operations call `require_valid`
    first.
    """

    _structure: Structure
    _data: cl_array.Array
    _version: int

    @classmethod
    def assembled(cls, structure: Structure, data: cl_array.Array) -> Self:
        """Return a matrix of a structure and values that an operation made; neither is checked or copied."""
        matrix = object.__new__(cls)
        matrix._hold(structure, data)
        return matrix

    @classmethod
    def sharing(cls, other: Matrix) -> Self:
        """Return a matrix of this class that has the structure and the values of another matrix."""
        return cls.assembled(other._structure, other._data)

    def with_values(self, values: cl_array.Array) -> Self:
        """Return a matrix of this structure and other values, in the order of the entries; the values are not copied.

        Facts and plans are shared. A structure is never changed in place: values that were computed of this matrix fit it as
        long as the indices of the matrix were not replaced in between.

        Raises
        ------
        ValueError
            There is not one value for each entry.
        """
        n, structure = values.size, self._structure
        if n not in (structure.indices.size, structure.n_given):
            raise ValueError(f"values: must have the {structure.indices.size} entries of the matrix, has {n}")
        return self.assembled(structure, values)

    def _hold(self, structure: Structure, data: cl_array.Array) -> None:
        """Set the structure and the values of a new matrix."""
        self._structure, self._data = structure, data
        self._version = 0  # grows with each replaced part

    def _become(self, structure: Structure, data: cl_array.Array) -> None:
        """Replace the structure and the values of the matrix."""
        self._structure, self._data = structure, data
        self._version += 1

    @property
    def structure(self) -> Structure:
        """The structure of the matrix: `indices`, `indptr`, facts about them, and their plans."""
        return self._structure

    @property
    def facts(self) -> Facts | None:
        """The `Facts` about the matrix's structure, as known without asking the device; None if it was not checked yet."""
        return self._structure.facts

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the matrix."""
        return self._structure.shape

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the matrix run, unless a dense operand on the device has another."""
        return self._structure.queue

    @property
    def context(self) -> cl.Context:
        """The OpenCL context of the matrix's queue."""
        return self._structure.context

    @property
    def data(self) -> cl_array.Array:
        """The values of the matrix, a device array of ``nnz`` entries. May be set to another of that length."""
        return self._data

    @data.setter
    def data(self, values: cl_array.Array) -> None:
        """Replace the values of the matrix."""
        self._data = values
        self._version += 1

    @property
    def parts(self) -> Parts:
        """The three arrays of the matrix, which belong together: the values, `indices` and `indptr`."""
        return self._data, self._structure.indices, self._structure.indptr

    @property
    def indices(self) -> cl_array.Array:
        """The column of each entry of the matrix, an array of int32 or int64. Do not write to it: facts and plans would stay."""
        return self._structure.indices

    @property
    def indptr(self) -> cl_array.Array:
        """The matrix's row pointers, ``rows + 1`` entries. Do not write to this array: facts and plans would stay."""
        return self._structure.indptr

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the matrix's values."""
        return np.dtype(self._data.dtype)

    @property
    def nnz(self) -> int:
        """Number of stored entries of the matrix."""
        self.require_valid()
        return int(self._structure.indices.size)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the columns of each row of the matrix ascend (duplicates may stand beside each other)."""
        return self._checked().sorted

    @property
    def has_canonical_format(self) -> bool:
        """Whether the columns of each row of the matrix ascend strictly: sorted and without duplicates."""
        return self._checked().canonical

    def _checked(self) -> Facts:
        """Return the `Facts` about the matrix's structure, which is checked first if there are none."""
        facts = self._structure.checked()
        self._require_values()
        return facts

    def require_valid(self) -> None:
        """Check the matrix's structure unless it was checked; operations call this before a kernel relies on the structure."""
        if self._structure.facts is None:
            self._structure.require_valid()
        self._require_values()

    def _require_values(self) -> None:
        """Drop values stored after those of the last row; raise a ValueError if some are missing or their memory is released."""
        structure, n = self._structure, self._structure.indices.size
        if is_released(self._data.base_data):
            raise ValueError("data: its memory was released")
        if self._data.size != n:
            if self._data.size != structure.n_given:
                raise ValueError(f"data: must have the {n} entries of indices, has {self._data.size}")
            self._data = self._data[:n]


class Origin:
    """The matrix that a plan was made of, and the structure that the matrix had then.

    Parameters
    ----------
    A : Matrix
        The matrix, of a valid structure.
    """

    def __init__(self, A: Matrix) -> None:
        self._matrix, self._indices = weakref.ref(A), weakref.ref(A.structure.indices)

    def check(self, name: str, values: object) -> None:
        """Raise a ValueError if ``values`` are the planned matrix's, and the matrix's structure was replaced since."""
        A = self._matrix()
        if A is not None and values is A._data and A.structure.indices is not self._indices():
            raise ValueError(f"{name}: the matrix has other indices than were planned for, which its values now go with")


class Sparse:
    """Base of the array classes of all formats."""

    @property
    def ndim(self) -> int:
        """The number of dimensions of the sparse array."""
        return len(self.shape)

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns of the sparse array or, of one dimension, its length."""

    @abc.abstractmethod
    def tocsr(self, copy: bool = False) -> Any:
        """Return the sparse array in CSR form."""


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse array of any format, ours or SciPy's."""
    return isinstance(value, (Matrix, Sparse)) or bool(scipy.sparse.issparse(value))
