"""Cached conversions of an array (CSR of the transposed, CSR of COO), and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.transpose import Permutation

__all__ = ["MemoryReport", "TransposeCache", "report_memory"]


class TransposeCache:
    """The CSR of a matrix's transposed: kept for the products that need it, by all matrices over the same arrays.

    Attributes
    ----------
    transposed : Matrix or None
        The CSR of the transposed; None before the first product that needs it.
    again : bool
        Whether the structure was transposed before, for other values: then a plan, which is a gather, is worth its memory.
    """

    __slots__ = ("again", "transposed")

    def __init__(self, transposed: Any = None, *, again: bool = False) -> None:
        self.transposed = transposed
        self.again = again


@dataclass(frozen=True)
class MemoryReport(Shown):
    """Bytes of device memory that a sparse array holds. Prints as a table.

    Attributes
    ----------
    title : str
        The array.
    entries : tuple of (str, int, str)
        The name of some memory, its bytes, and the operations that need it.
    """

    title: str
    entries: tuple[tuple[str, int, str], ...]

    __repr__ = Shown.__repr__

    @property
    def bytes(self) -> int:
        """Bytes of device memory that the report lists for a sparse array: its own arrays and what its structure caches."""
        return sum(n for _, n, _ in self.entries)

    @property
    @override
    def table(self) -> Table:
        """The report as a table: each memory's name, bytes and the operations that need it; the last row has the sum."""
        rows = [(part, f"{n:,}", user) for part, n, user in (*self.entries, ("all", self.bytes, ""))]
        return Table(self.title, ("what", "bytes", "needed by"), rows, numbers="bytes")


def report_memory(
    title: str,
    own_arrays: Mapping[str, cl_array.Array],
    A: Matrix | None,
    cached_matrices: Mapping[str, tuple[Matrix | None, str]],
) -> MemoryReport:
    """Return a report of a sparse array's device memory: own arrays, cached matrices, and the permutation of a transposition.

    An array that serves twice, as the structure of a symmetric pattern does, counts once.
    """
    counted_ids: set[int] = set()

    def size(arrays: Iterable[cl_array.Array]) -> int:
        """Return the bytes of those of the given device arrays that no earlier call counted, and note them as counted."""
        bytes_by_id = {id(array): int(array.nbytes) for array in arrays if id(array) not in counted_ids}
        counted_ids.update(bytes_by_id)
        return sum(bytes_by_id.values())

    entries = [(name, size([part]), "all operations") for name, part in own_arrays.items()]
    for name, (matrix, user) in cached_matrices.items():
        if matrix is not None:
            entries.append((name, size([matrix.data, matrix.indices, matrix.indptr]), user))
    permutation = None if A is None else A.structure.find_plan(Permutation)
    if permutation is not None:
        structure = permutation.transposed
        arrays = [permutation.positions, *(() if structure is None else (structure.indices, structure.indptr))]
        entries.append(("permutation of the transposed", size(arrays), "transposing new values"))
    return MemoryReport(title, tuple(entries))
