"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._transpose.kernels import AtOnce
from clsparse_py.arithmetic import name_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.memory import allocated_each
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
    queue = structure.queue
    chain = Chain(queue, indptr, indices, *of_values)
    kind = AtOnce, index, 0 if values is None else moved_type.itemsize, n_rows, n_columns, nnz
    built, sizes, numbers = chain.worked_out(kind, lambda: _call(chain, *kind[1:]))
    if not built:
        return None
    note_asked(built)
    wanted = (n_columns + 1, index), (nnz, index), (nnz, moved_type)
    made = Made(*allocated_each(queue, "the transposed", wanted, A.data.allocator))
    arrays = [each.base_data for each in (indptr, indices, *of_values, *made)]
    chain.launch_with(built[0], sizes, [*numbers, *arrays])
    chain.finish(*made)
    return made


class _Call(NamedTuple):
    """What calls on matrices of one shape, dtypes and number of entries share: the kernel or none, and its first arguments."""

    built: tuple[Built, ...]
    sizes: tuple[tuple[int], tuple[int]]
    numbers: tuple[np.uint32, ...]


def _call(chain: Chain, index: np.dtype[Any], value_bytes: int, n_rows: int, n_columns: int, nnz: int) -> _Call:
    """Return it; without a kernel if that is refused, or has not the room."""
    numbers = np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz)
    try:
        built, record = chain.build(AtOnce.legal(chain.device, name_of(index), value_bytes))
    except BuildError:
        return _Call((), ((0,), (0,)), numbers)
    return _Call((built,) if n_rows + n_columns + nnz <= record.places else (), built.sizes(1), numbers)
