"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._transpose.kernels import AtOnce
from clsparse_py.arithmetic import name_of
from clsparse_py.built import Built
from clsparse_py.launch import Chain, at_rest
from clsparse_py.matrix import Matrix
from clsparse_py.memory import allocated_each
from clsparse_py.pool import arena_of
from clsparse_py.programs import note_asked, worked_out
from clsparse_py.recording import Recording, record

__all__ = ["Made", "transposed_at_once"]


class Made(NamedTuple):
    """The arrays of a transposed matrix: `moved` has values, or positions of entries."""

    indptr: cl_array.Array
    indices: cl_array.Array
    moved: cl_array.Array


def transposed_at_once(A: Matrix, *, valued: bool) -> Made | None:
    """Return the transposed of a matrix whose rows, columns and entries one work-group holds; None if they are too many.

    Parameters
    ----------
    A : Matrix
        Valid.
    valued : bool
        Whether its values are moved; else positions of entries are, the permutation that a plan keeps.
    """
    structure = A.structure
    indptr, indices, (n_rows, n_columns) = structure.indptr, structure.indices, structure.shape
    nnz = indices.size
    if not nnz or n_rows + n_columns + nnz > AtOnce.PLACES:
        return None
    index, of_values = indptr.dtype, (A.data,) if valued else ()
    moved_type = A.data.dtype if valued else index
    queue, read = structure.queue, (indptr, indices, *of_values)
    wanted = (n_columns + 1, index), (nnz, index), (nnz, moved_type)
    kind = AtOnce, index, moved_type if valued else None, n_rows, n_columns, nnz
    pool = arena_of(queue).pool
    recording = worked_out(pool.context, pool.device, kind, lambda: _recorded(Chain(queue), *kind[1:]))
    if recording is None:
        return None
    note_asked(recording.kernels)
    made = Made(*allocated_each(queue, "the transposed", wanted, A.data.allocator))
    if at_rest(queue, *read) is None:
        chain = Chain(queue, *read)
        recording.enqueue(chain, (*read, *made))
        chain.finish(*made)
    else:
        event = recording.replay(queue, [each.base_data for each in (*read, *made)])
        for each in made:
            each.events = [event]
    return made


def _recorded(
    chain: Chain, index: np.dtype[Any], of_values: np.dtype[Any] | None, n_rows: int, n_columns: int, nnz: int
) -> Recording | None:
    """Return what calls on matrices of one shape, dtypes and number of entries repeat; None without the kernel."""
    if chain.device.is_plain:
        return None
    built, kernel = chain.build(AtOnce.legal(chain.device, name_of(index), 0 if of_values is None else of_values.itemsize))
    if n_rows + n_columns + nnz > kernel.places:
        return None
    read = index, index, *(() if of_values is None else (of_values,))
    enqueue = functools.partial(_enqueue, built, n_rows, n_columns, nnz)
    return record(chain, enqueue, (*read, index, index, of_values or index))


def _enqueue(built: Built, n_rows: int, n_columns: int, nnz: int, chain: Chain, *arrays: cl_array.Array) -> None:
    chain.launch(built, 1, np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz), *arrays)
