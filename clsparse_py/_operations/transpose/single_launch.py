"""Small matrices, transposed by one launch of one work-group."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.programs import note_asked
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import form_of
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import AtOnce
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, record

__all__ = ["TransposedArrays", "transpose_in_one_launch"]


class TransposedArrays(NamedTuple):
    """The arrays of a transposed matrix: `moved` has values, or positions of entries."""

    indptr: cl_array.Array
    indices: cl_array.Array
    moved: cl_array.Array


def transpose_in_one_launch(A: Matrix, *, valued: bool) -> TransposedArrays | None:
    """Return the transposed of a small matrix, by one launch of one work-group; None if rows, columns and entries are too many.

    Parameters
    ----------
    A : Matrix
        Valid.
    valued : bool
        Whether values of A are moved; else positions of entries are moved: the permutation that a plan keeps.
    """
    structure = A.structure
    data = A.data
    value_dtype = data.dtype if valued else structure.indptr.dtype
    call = structure.get_plan((AtOnce, value_dtype, valued), lambda: _record(structure, value_dtype, valued))
    if call is None:
        return None
    recording, forms = call
    note_asked(recording.kernels)
    inputs = (structure.indptr, structure.indices, data) if valued else (structure.indptr, structure.indices)
    return TransposedArrays(*recording.make(structure.queue, "the transposed", inputs, forms, data.allocator))


def _record(
    structure: Structure, value_dtype: np.dtype[Any], valued: bool
) -> tuple[Recording, tuple[tuple[Any, ...], ...]] | None:
    """Return the recording of a structure's transposition, and the forms of its results; None if the kernel does not take it."""
    sizes, index = (*structure.shape, structure.indices.size), structure.indptr.dtype
    chain = Chain(structure.queue)
    if not sizes[2] or sum(sizes) > Thresholds.of(chain.device).max_at_once:
        return None

    def work_out() -> Recording | None:
        """Return the recording of the launch; None if the device is plain, or the matrix too large for its kernel."""
        if chain.device.is_plain:
            return None
        built, kernel = chain.build(AtOnce.legal(chain.device, name_of(index), value_dtype.itemsize if valued else 0))
        if sum(sizes) > kernel.places:
            return None
        input_dtypes = index, index, *((value_dtype,) * valued)
        return record(chain, functools.partial(_enqueue, built, *sizes), (*input_dtypes, index, index, value_dtype))

    recording = chain.worked_out((AtOnce, index, value_dtype, valued, *sizes), work_out)
    sizes_and_dtypes = (sizes[1] + 1, index), (sizes[2], index), (sizes[2], value_dtype)
    return (
        None if recording is None else (recording, tuple(form_of(structure.context, n, dtype) for n, dtype in sizes_and_dtypes))
    )


def _enqueue(built: Built, n_rows: int, n_columns: int, nnz: int, chain: Chain, *arrays: cl_array.Array) -> None:
    """Enqueue the launch of the one work-group that transposes a matrix."""
    chain.launch(built, 1, np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz), *arrays)
