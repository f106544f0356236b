"""The Kronecker product of two sparse matrices, written straight from their rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop, enqueue_loop
from clsparse_py._matrix.matrix import Parts
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import divide_tiles, work_group_of
from clsparse_py._operations.elementwise.operators import OPERATORS, lines_of_two
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._run.launch import Chain

__all__ = ["KRON_POINTERS", "Kron", "compute_kron_entries", "compute_kron_pointers"]


@kernel
@dataclass(frozen=True)
class Kron(OfStructure):
    """Parameters of ``templates/construct/kron.mako``.

    Attributes
    ----------
    a, b : str
        NumPy's names of the dtypes of both matrices' values.
    coordinates : bool
        Whether the rows of entries are written, too.
    """

    template = "construct/kron"

    a: str
    b: str
    coordinates: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the Kronecker product's values, in which they are computed."""
        return np.result_type(self.a, self.b)

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the types of indices and values, and the product of two values."""
        lines = lines_of_two(self.a, self.b, self.dtype.name, OPERATORS["multiply"].expression(self.dtype))
        return "\n".join([super().prelude, *lines])

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "", which writes columns and values of entries, and "coordinates", which writes rows, too."""
        for variant, coordinates in (("", False), ("coordinates", True)):
            yield variant, cls(work_group_of(device), arithmetic.index, arithmetic.a, arithmetic.x, coordinates)


#: Loop that writes the row pointers of a Kronecker product.
KRON_POINTERS = declare_loop(
    "construct/kron_pointers",
    "Where each row of the Kronecker product of two sparse matrices begins, and the last one ends, of the row pointers of A "
    "and B, which has b_rows.",
    "ulong b_rows, const I *a_indptr, const I *b_indptr, I *indptr",
    "const ulong i = row / b_rows, k = row - i * b_rows;",
    "const I a_length = row + 1 < n ? a_indptr[i + 1] - a_indptr[i] : 0;",
    "indptr[row] = a_indptr[i] * b_indptr[b_rows] + a_length * b_indptr[k];",
    counter="row",
)


def compute_kron_entries(
    queue: cl.CommandQueue, a: Parts, b: Parts, b_columns: int, *, coordinates: bool
) -> tuple[cl_array.Array, ...]:
    """Return the values and columns of a Kronecker product's entries, row by row; a third array, rows, only if ``coordinates``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    a, b : tuple of pyopencl.array.Array
        data, indices and indptr of both matrices, valid, with entries; the index dtype, of both, holds the numbers of the
        product's entries, rows and columns.
    b_columns : int
        Columns of B.
    coordinates : bool
        Whether rows of entries are wanted.
    """
    a_data, a_indices, a_indptr = a
    b_data, b_indices, b_indptr = b
    chain, index, n = Chain(queue, *a, *b), a_indptr.dtype, a_indices.size * b_indices.size
    record = Kron(work_group_of(chain.device), name_of(index), name_of(a_data.dtype), name_of(b_data.dtype), coordinates)
    built, record = chain.build(record)
    groups, sizes = divide_tiles(chain.device, n, record.work_group)
    data = allocate(queue, "data of the Kronecker product", n, record.dtype, a_data.allocator)
    indices = allocate(queue, "indices of the Kronecker product", n, index, a_data.allocator)
    rows = (allocate(queue, "rows of the Kronecker product", n, index, a_data.allocator),) if coordinates else ()
    shape = (index.type(size) for size in (a_indptr.size - 1, b_indptr.size - 1, b_columns))
    operands = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    chain.launch(built, groups, *sizes, *shape, *operands, *rows, indices, data)
    chain.finish(data, indices, *rows)
    return data, indices, *rows


def compute_kron_pointers(queue: cl.CommandQueue, a_indptr: cl_array.Array, b_indptr: cl_array.Array) -> cl_array.Array:
    """Return a Kronecker product's row pointers from those of its two factors, of one dtype; each factor has rows."""
    chain, n_rows = Chain(queue, a_indptr, b_indptr), math.prod(pointers.size - 1 for pointers in (a_indptr, b_indptr))
    indptr = allocate(queue, "indptr of the Kronecker product", n_rows + 1, a_indptr.dtype, a_indptr.allocator)
    b_rows = np.uint64(b_indptr.size - 1)
    enqueue_loop(chain, KRON_POINTERS, n_rows + 1, (name_of(a_indptr.dtype),), b_rows, a_indptr, b_indptr, indptr)
    chain.finish(indptr)
    return indptr
