"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.programs import note_asked
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocated_each
from clsparse_py._operations.transpose.kernels import AtOnce
from clsparse_py._operations.transpose.thresholds import Thresholds
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, record

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
    queue, index, data = structure.queue, structure.indptr.dtype, A.data
    moved = data.dtype if valued else index
    recording = structure.kept((AtOnce, moved, valued), lambda: _recorded(structure, moved, valued))
    if recording is None:
        return None
    note_asked(recording.kernels)
    nnz = structure.indices.size
    wanted = (structure.shape[1] + 1, index), (nnz, index), (nnz, moved)
    read = (structure.indptr, structure.indices, data) if valued else (structure.indptr, structure.indices)
    made = Made(*allocated_each(queue, "the transposed", wanted, data.allocator))
    recording.make(queue, read, made)
    return made


def _recorded(structure: Structure, moved: np.dtype[Any], valued: bool) -> Recording | None:
    """Return what calls on matrices of one shape, dtypes and number of entries repeat; None without the kernel."""
    sizes, index = (*structure.shape, structure.indices.size), structure.indptr.dtype
    chain = Chain(structure.queue)
    if not sizes[2] or sum(sizes) > Thresholds.of(chain.device).max_at_once:
        return None

    def work_out() -> Recording | None:
        if chain.device.is_plain:
            return None
        built, kernel = chain.build(AtOnce.legal(chain.device, name_of(index), moved.itemsize if valued else 0))
        if sum(sizes) > kernel.places:
            return None
        read = index, index, *((moved,) * valued)
        return record(chain, functools.partial(_enqueue, built, *sizes), (*read, index, index, moved))

    return chain.worked_out((AtOnce, index, moved, valued, *sizes), work_out)


def _enqueue(built: Built, n_rows: int, n_columns: int, nnz: int, chain: Chain, *arrays: cl_array.Array) -> None:
    chain.launch(built, 1, np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz), *arrays)
