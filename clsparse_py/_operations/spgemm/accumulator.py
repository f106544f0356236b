"""The interface of accumulators, which turn the intermediate products of rows into rows of C; every method has some.

Objects that each call makes anew are named tuples: a frozen dataclass takes microseconds to make, while the device is idle.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Parts
from clsparse_py._memory.workspace import current
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._run.launch import Chain

__all__ = ["Accumulator", "Product", "Result", "Rows", "workspace_bound"]

#: Bytes of workspace that a sparse product C = A @ B may take beside twice the bytes of A, B and C, however small these are.
_BASE_BYTES = 1 << 20


class Product(NamedTuple):
    """The operands of C = A @ B as kernels take them: indices of one dtype, B's rows sorted and without duplicates.

    Attributes
    ----------
    shape : tuple of int
        Of C.
    a_indptr, a_indices, b_indptr, b_indices : pyopencl.array.Array
    a_data, b_data : pyopencl.array.Array
        The values, which may differ from call to call; the structure may not.
    products : pyopencl.array.Array
        uint32: the intermediate products of each row, 2^32 - 1 if there are more.
    n_products : int
        Of all rows.
    bound : int
        Entries of C, at most.
    kind : Kind
        Of the device and the operands' types, of which ``c_index`` is that of C.
    memory_limit : int
        Bytes that the workspace may have at a time, see `free`.
    deterministic, allow_upper_bound : bool
        As asked for.
    workspace : int
        The bound of the workspace but for twice the bytes of C, see `workspace_bound`.
    """

    shape: tuple[int, int]
    a_indptr: cl_array.Array
    a_indices: cl_array.Array
    a_data: cl_array.Array
    b_indptr: cl_array.Array
    b_indices: cl_array.Array
    b_data: cl_array.Array
    products: cl_array.Array
    n_products: int
    bound: int
    kind: Kind
    memory_limit: int
    deterministic: bool
    allow_upper_bound: bool
    workspace: int

    @property
    def types(self) -> KernelTypes:
        """Types of operands and values in the product's kernels, in the numeric phase."""
        return self.kind.types

    @property
    def upper_bytes(self) -> int:
        """Upper bound of the bytes of C's columns and values: as if no two intermediate products fell on the same entry."""
        return self.n_products * (self.kind.result.itemsize + self.kind.c_index.itemsize)

    @property
    def free(self) -> int:
        """Bytes of the product's workspace that are not in use, or the workspace's limit if memory is not counted."""
        workspace = current()
        return self.memory_limit if workspace is None else workspace.room

    def spare(self, entries: int = 0) -> int:
        """Return the bytes of free workspace that an accumulator with bounded workspace may take.

        ``entries``: number of entries that C is expected to have.
        """
        kind, m = self.kind, self.shape[0]
        index = kind.index.itemsize
        c_bytes = (m + entries) * kind.c_index.itemsize + entries * kind.result.itemsize
        # Workspace already in use: arrays of each row's number of products, of its number of entries, and of row numbers.
        return min(self.free, self.workspace + 2 * c_bytes - (8 + index) * m)

    @property
    def structure(self) -> tuple[cl_array.Array, ...]:
        """The row pointers and columns of A and B: the arguments of ``SPGEMM_STRUCTURE`` in ``cl/spgemm.cl``."""
        return self.a_indptr, self.a_indices, self.b_indptr, self.b_indices


def workspace_bound(*operands: cl_array.Array) -> int:
    """Return the bytes that the workspace may have beside twice the bytes of C: twice the bytes of the operands, and 1 MiB."""
    return 2 * sum(operand.nbytes for operand in operands) + _BASE_BYTES


class Rows(NamedTuple):
    """The rows of C that one accumulator makes.

    Attributes
    ----------
    n : int
        Number of rows, at least one.
    first : int
        Place of the first row in ``listed``.
    listed : pyopencl.array.Array or None
        Row numbers, ascending; None for all rows of the product.
    n_empty : int
        Number of rows without products.
    """

    n: int
    first: int = 0
    listed: cl_array.Array | None = None
    n_empty: int = 0

    @property
    def where(self) -> tuple[Any, ...]:
        """The kernel arguments ``SPGEMM_ROWS``: number of rows and, if rows are listed, the first one's place and the list."""
        return (np.uint64(self.n),) if self.listed is None else (np.uint64(self.n), np.uint64(self.first), self.listed)


class Result(NamedTuple):
    """The arrays of C: row pointers, columns and values. The "values" phase reads the columns, others write them.

    In the "upper_bound" phase rows have room for all their products, and ``counts`` takes their entries.
    """

    indptr: cl_array.Array
    indices: cl_array.Array
    data: cl_array.Array
    counts: cl_array.Array | None = None

    @property
    def parts(self) -> Parts:
        """C's values, columns and row pointers, in this order."""
        return self.data, self.indices, self.indptr


class Accumulator(Protocol):
    """Turns the intermediate products of rows into rows of C, in two phases. Frozen: a state holds the data of one product."""

    def prepare(self, chain: Chain, product: Product, rows: Rows) -> object:
        """Return the accumulator's state for rows of C: data for all phases and later products of new values. May wait."""
        ...

    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:
        """Enqueue the kernels that count the entries of some rows of C; ``counts[row]`` receives the count of that row."""
        ...

    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:
        """Enqueue the kernels that make columns and values of rows of C; with ``phase`` "values" values alone. Never waits."""
        ...

    def describe(self) -> str:
        """Return the accumulator's parameters in a few words, for `SpgemmPlan.explain`."""
        ...
