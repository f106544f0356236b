"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._transpose.kernels import AtOnce
from clsparse_py.arithmetic import name_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain, at_rest
from clsparse_py.lowering import Lowered, lower
from clsparse_py.matrix import Matrix
from clsparse_py.memory import Shapes, allocated_each
from clsparse_py.programs import Built, known

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
    kind = AtOnce, index, moved_type if valued else None, n_rows, n_columns, nnz
    arena = at_rest(queue, *read)
    call: _Call | None = known(arena.pool.context, arena.pool.device, kind) if arena is not None else None
    if call is not None and arena is not None and A.data.allocator is None and call.commands:
        new = call.results.new(queue, arena)
        if new is not None:
            made = Made(*new)
            event = call.commands[0].enqueue_at_rest(arena, queue, (*read, *made))
            for each in made:
                each.events = [event]
            return made
    chain = Chain(queue, *read)
    call = chain.worked_out(kind, functools.partial(_call, chain, *kind[1:]))
    if not call.commands:
        return None
    wanted = (n_columns + 1, index), (nnz, index), (nnz, moved_type)
    made = Made(*allocated_each(queue, "the transposed", wanted, A.data.allocator))
    call.commands[0].enqueue(chain, (*read, *made))
    chain.finish(*made)
    return made


class _Call(NamedTuple):
    """What calls on matrices of one shape, dtypes and number of entries repeat: commands, or none where the kernel is refused."""

    commands: tuple[Lowered, ...]
    results: Shapes


def _call(chain: Chain, index: np.dtype[Any], of_values: np.dtype[Any] | None, n_rows: int, n_columns: int, nnz: int) -> _Call:
    """Return it; without commands also if the kernel has not the room."""
    item, moved = 0 if of_values is None else of_values.itemsize, of_values or index
    results = Shapes((n_columns + 1, index), (nnz, index), (nnz, moved))
    try:
        built, record = chain.build(AtOnce.legal(chain.device, name_of(index), item))
    except BuildError:
        return _Call((), results)
    if n_rows + n_columns + nnz > record.places:
        return _Call((), results)
    read = index, index, *(() if of_values is None else (of_values,))
    return _Call(
        (lower(chain, functools.partial(_enqueue, built, n_rows, n_columns, nnz), (*read, index, index, moved)),), results
    )


def _enqueue(built: Built, n_rows: int, n_columns: int, nnz: int, chain: Chain, *arrays: cl_array.Array) -> None:
    chain.launch(built, 1, np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz), *arrays)
