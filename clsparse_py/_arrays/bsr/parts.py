"""The arguments of `bsr_array`, converted to a structure of blocks and their values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.bsr.conversion import Size, choose_blocksize, count_blocks, flat, from_csr
from clsparse_py._arrays.csr import csr_array
from clsparse_py._formats.parts import dense_values, is_one_dimensional, is_shape
from clsparse_py._matrix.convert import convert, copied
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._matrix.placement import index_dtype, index_vector, place_part, queue_for, shape_of, value_dtype_on
from clsparse_py._memory.memory import array_of
from clsparse_py._run.transfer import from_host

__all__ = ["block_grid", "build_from_blocks", "make_blocks", "parse_blocksize", "place_blocks", "view_as_blocks"]


def parse_blocksize(blocksize: Any) -> Size:
    """Return the size of blocks as two Python integers; raise an error unless it is two positive integers."""
    lengths = tuple(blocksize) if np.iterable(blocksize) else None
    if lengths is None:
        raise TypeError(f"blocksize: must be two integers, is {blocksize!r}")
    if len(lengths) != 2:
        raise ValueError(f"blocksize: must be two integers, is {blocksize!r} (invalid blocksize)")
    rows, columns = map(operator.index, lengths)
    if rows < 1 or columns < 1:
        raise ValueError(f"blocksize: must be positive, is {(rows, columns)} (invalid blocksize)")
    return rows, columns


def block_grid(shape: tuple[int, int], size: Size) -> tuple[int, int]:
    """Return the numbers of blocks along both axes of a matrix; raise a ValueError unless blocks divide its shape."""
    if shape[0] % size[0] or shape[1] % size[1]:
        raise ValueError(f"blocksize: invalid blocksize {size}, the shape {shape} must be a multiple of it")
    return shape[0] // size[0], shape[1] // size[1]


def make_blocks(A: csr_array, blocksize: Any = None) -> tuple[Structure, cl_array.Array]:
    """Return the structure and the values of the blocks in which a matrix has entries.

    Parameters
    ----------
    A : csr_array
        A matrix of two dimensions.
    blocksize : tuple of int, optional
        The size of blocks; by default the one that `choose_blocksize` returns.

    Raises
    ------
    ValueError, TypeError
        The blocks do not divide the shape.
    """
    A.require_valid()
    shape, queue = A.structure.shape, A.queue
    size = None if blocksize is None else parse_blocksize(blocksize)
    if size is not None:
        block_grid(shape, size)
    A = A if A.has_sorted_indices else A.sorted_indices()
    if size is None:
        parts = A.parts
        size = choose_blocksize(lambda tried: count_blocks(queue, parts, shape, tried), shape, A.nnz)
    n = block_grid(shape, size)
    if size == (1, 1):
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        return A.structure, view_as_blocks(A.data, size)
    blocks, indices, indptr = from_csr(queue, A.parts, shape, size)
    return Structure.canonical(queue, n, indices, indptr), blocks


def view_as_blocks(values: cl_array.Array, size: Size) -> cl_array.Array:
    """Return a device array, whose values begin its buffer, as a three-dimensional array of blocks over the same memory."""
    n = values.size // (size[0] * size[1])
    blocks = array_of(values.queue, (n, *size), np.dtype(values.dtype), values.base_data, values.allocator)  # type: ignore[arg-type]
    blocks.events.extend(values.events)
    return blocks


def place_blocks(queue: cl.CommandQueue, data: Any, dtype: Any, *, copy: bool) -> cl_array.Array:
    """Return a three-dimensional array, NumPy's or the device's, as blocks on the device, C-contiguous from a buffer's beginning.

    Raises
    ------
    ValueError, TypeError
        The blocks have not three dimensions, or the device or the package lacks their dtype.
    """
    if not isinstance(data, cl_array.Array):
        data = np.asarray(data)
    if data.ndim != 3:
        raise ValueError(f"data: BSR data must be 3-dimensional, has {data.ndim} dimensions (shape {data.shape})")
    if min(data.shape[1:]) < 1:
        raise ValueError(f"data: blocks must have rows and columns, are {data.shape[1]} x {data.shape[2]} (invalid blocksize)")
    value = value_dtype_on(queue, data.dtype, dtype)
    if not isinstance(data, cl_array.Array):
        return from_host(queue, np.array(data, value, order="C"), copy=False)
    if not data.flags.c_contiguous:
        raise ValueError(f"data: must be C-contiguous, has strides {data.strides}")
    row = data.reshape(-1)  # type: ignore[no-untyped-call]
    return view_as_blocks(place_part(queue, "data", row, value, copy=copy), (int(data.shape[1]), int(data.shape[2])))


def build_from_blocks(
    arg1: Any, shape: Any, dtype: Any, blocksize: Any, queue: cl.CommandQueue | None, *, copy: bool, check: bool
) -> tuple[Structure, cl_array.Array]:
    """Return the structure, not yet checked, and the blocks that the arguments of `bsr_array` describe.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is of no kind that is taken, or its parts do not go together; the message names the part.
    """
    expected_shape = None if shape is None else shape_of(shape)
    if isinstance(arg1, tuple) and is_shape(arg1):
        empty_shape, size = shape_of(arg1), (1, 1) if blocksize is None else parse_blocksize(blocksize)
        n, queue = block_grid(empty_shape, size), queue_for((), queue)
        empty = np.zeros((0, *size), np.float64 if dtype is None else dtype), np.zeros(0, np.int32), np.zeros(n[0] + 1, np.int32)
        structure, data = _of_parts(empty, empty_shape, dtype, None, queue, copy=False, check=False)
    elif isinstance(arg1, tuple) and len(arg1) == 3:
        return _of_parts(arg1, expected_shape, dtype, blocksize, queue_for(arg1, queue), copy=copy, check=check)
    elif getattr(arg1, "format", None) == "bsr" and (blocksize is None or tuple(arg1.blocksize) == parse_blocksize(blocksize)):
        structure, data = _of_bsr(arg1, dtype, queue, copy=copy)
    elif is_one_dimensional(arg1):
        raise ValueError("arg1: a bsr_array has two dimensions, not one (BSR arrays don't support 1D input)")
    else:
        if not isinstance(arg1, (tuple, cl_array.Array, Matrix)) and not hasattr(arg1, "tocsr"):
            arg1 = dense_values(arg1, dtype)
            if arg1.ndim != 2:
                raise ValueError(f"arg1: must have two dimensions, has {arg1.ndim} (BSR arrays don't support {arg1.ndim}D input)")
        rows = csr_array(arg1, expected_shape, dtype, queue=queue, check=check)
        structure, data = make_blocks(rows, blocksize)
        if copy and structure is rows.structure:
            # Blocks of one entry share the arrays of the CSR form, which are therefore copied.
            structure, data = make_blocks(rows.copy(), data.shape[1:])
    shape_of_blocks = structure.shape[0] * data.shape[1], structure.shape[1] * data.shape[2]
    if expected_shape not in (None, shape_of_blocks):
        raise ValueError(f"shape: {expected_shape} differs from that of arg1, {shape_of_blocks} (inconsistent shapes)")
    return structure, data


def _of_bsr(arg1: Any, dtype: Any, queue: cl.CommandQueue | None, *, copy: bool) -> tuple[Structure, cl_array.Array]:
    """Return the structure and the blocks of a `bsr_array` of this package or of SciPy."""
    if scipy.sparse.issparse(arg1):
        parts, shape = (arg1.data, arg1.indices, arg1.indptr), shape_of(arg1.shape)
        return _of_parts(parts, shape, dtype, None, queue_for((), queue), copy=copy, check=True)
    arg1.require_valid()
    structure, data = arg1.structure, arg1.data
    queue = queue or structure.queue
    value = value_dtype_on(queue, np.dtype(data.dtype), dtype)
    if value != data.dtype:
        data = view_as_blocks(convert(queue, "data", flat(queue, data), value), data.shape[1:])
    elif copy:
        data = copied(queue, "data", data)
    if not copy and queue == structure.queue:
        return structure, data
    indices, indptr = structure.indices, structure.indptr
    if copy:
        indices, indptr = copied(queue, "indices", indices), copied(queue, "indptr", indptr)
    return structure.copied(queue, indices, indptr), data


def _of_parts(
    parts: tuple[Any, Any, Any],
    shape: tuple[int, int] | None,
    dtype: Any,
    blocksize: Any,
    queue: cl.CommandQueue,
    *,
    copy: bool,
    check: bool,
) -> tuple[Structure, cl_array.Array]:
    """Return the structure and the blocks of a constructor's argument ``(data, indices, indptr)`` of NumPy or device arrays."""
    data = place_blocks(queue, parts[0], dtype, copy=copy)
    indices, indptr = index_vector("indices", parts[1]), index_vector("indptr", parts[2])
    size = int(data.shape[1]), int(data.shape[2])
    if blocksize is not None and parse_blocksize(blocksize) != size:
        raise ValueError(
            f"blocksize: mismatching blocksize {parse_blocksize(blocksize)}, the blocks of data are {size[0]} x {size[1]}"
        )
    if not indptr.size:
        raise ValueError("indptr: must have an entry for each row of blocks, and one more, has none")
    if shape is None:
        if not indices.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it (unable to infer matrix dimensions)")
        largest = indices.get().max() if isinstance(indices, cl_array.Array) else indices.max()
        shape = (indptr.size - 1) * size[0], max(int(largest) + 1, 0) * size[1]
    n = block_grid(shape, size)
    if indptr.size != n[0] + 1:
        raise ValueError(f"indptr: must have rows of blocks + 1 = {n[0] + 1} entries, has {indptr.size}")
    if data.shape[0] != indices.size:
        raise ValueError(f"data: must have as many blocks as indices has entries, has {data.shape[0]}, not {indices.size}")
    index = index_dtype((indices, indptr), shape)
    indices, indptr = (
        place_part(queue, name, part, index, copy=copy) for name, part in (("indices", indices), ("indptr", indptr))
    )
    return Structure(queue, n, indices, indptr, vouched=not check), data
