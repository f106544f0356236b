"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._transpose.kernels import AtOnce
from clsparse_py.arithmetic import name_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.memory import allocated
from clsparse_py.programs import Built, note_asked

__all__ = ["Made", "transposed_at_once"]


class Made(NamedTuple):
    """The arrays of a transposed matrix: `moved` has values, or positions of entries."""

    indptr: cl_array.Array
    indices: cl_array.Array
    moved: cl_array.Array


def transposed_at_once(A: Matrix, values: cl_array.Array | None) -> Made | None:
    """Return the transposed of a matrix whose rows, columns and entries one work-group holds; None if they are too many.

    Parameters
    ----------
    A : Matrix
        Valid.
    values : pyopencl.array.Array or None
        Moved; without them positions of entries are, the permutation that a plan keeps.
    """
    structure = A.structure
    indptr, indices, (n_rows, n_columns) = structure.indptr, structure.indices, structure.shape
    nnz = indices.size
    if not nnz or n_rows + n_columns + nnz > AtOnce.PLACES:
        return None
    index, of_values = indptr.dtype, () if values is None else (values,)
    moved_type = index if values is None else values.dtype
    chain = Chain(structure.queue, indptr, indices, *of_values)
    kind = AtOnce, index, 0 if values is None else moved_type.itemsize
    built, places = chain.worked_out(kind, lambda: _built(chain, name_of(index), kind[2]))
    if n_rows + n_columns + nnz > places:
        return None
    note_asked(built)
    queue, allocator = structure.queue, A.data.allocator
    made = Made(
        allocated(queue, "indptr of the transposed", n_columns + 1, index, allocator),
        allocated(queue, "indices of the transposed", nnz, index, allocator),
        allocated(queue, "values of the transposed", nnz, moved_type, allocator),
    )
    sizes = np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz)
    chain.launch(built[0], 1, *sizes, indptr, indices, *of_values, *made)
    chain.finish(*made)
    return made


def _built(chain: Chain, index: str, value_bytes: int) -> tuple[tuple[Built, ...], int]:
    """Return the kernel, and how many places it takes; no kernel and none if it is refused."""
    try:
        built, record = chain.build(AtOnce.legal(chain.device, index, value_bytes))
    except BuildError:
        return (), 0
    return (built,), record.places
