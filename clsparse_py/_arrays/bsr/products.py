"""Products of matrices of blocks, with dense operands and with one another, by kernels for a size of blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.bsr.conversion import flat
from clsparse_py._arrays.bsr.kernels import MAX_ENTRIES, Columns, Multiply, Product, ProductChunked
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spgemm import spgemm
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives.partition import enqueue_partition
from clsparse_py._run.launch import Chain

__all__ = ["enqueue_product", "product_of_blocks"]

#: Most parts (runs of block rows), for each core of a CPU device, into which a product is cut.
_PARTS_PER_CORE = 16


def _get_row_parts(structure: Structure, queue: cl.CommandQueue) -> cl_array.Array:
    """Return the first block row of each part (run of block rows) of a product on a CPU device; parts have about equal work."""

    def make() -> cl_array.Array:
        """Return the first block row of each part (run of block rows) of the product, computed on the device."""
        chain = Chain(queue, structure.indptr)
        n_rows, n = structure.shape[0], int(structure.indices.size)
        n_parts = max(1, min(n_rows, chain.device.compute_units * _PARTS_PER_CORE))
        ends = [allocate(queue, "ends of parts", n_parts + 1, structure.indptr.dtype) for _ in range(3)]
        enqueue_partition(chain, structure.indptr, n_rows, n, n_parts, -(-(n + n_rows) // n_parts), ends, slack=n)
        chain.finish(*ends)
        queue.finish()  # a wait for the first product alone: later ones use the parts without events
        return ends[0]

    return structure.get_plan("parts of block rows", make)


def enqueue_product(
    queue: cl.CommandQueue, blocks: cl_array.Array, structure: Structure, x: cl_array.Array, y: cl_array.Array
) -> None:
    """Enqueue the product ``y = A @ x`` of a block matrix A and a dense x of one or two dimensions, of any strides.

    The operands are checked; y is C-contiguous and has entries.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    blocks : pyopencl.array.Array
        A's values, three-dimensional.
    structure : Structure
        The structure of A's blocks.
    x, y : pyopencl.array.Array
    """
    _, rows, columns = blocks.shape
    indptr, indices = structure.indptr, structure.indices
    chain = Chain(queue, blocks, indices, indptr, x, writes=(y,))
    parts = (_get_row_parts(structure, queue),) if chain.device.lanes_are_loops else ()
    device, index, item = chain.device, indptr.dtype.type, x.dtype.itemsize
    offset, y_offset = np.uint64(x.offset // item), np.uint64(y.offset // y.dtype.itemsize)
    n = parts[0].size - 1 if parts else structure.shape[0]
    operands, size = (indptr, indices, blocks, x), (rows, columns)
    types = blocks.dtype, x.dtype, indptr.dtype

    def arithmetic() -> Arithmetic:
        """Return the arithmetic of the product: the dtypes of A's values, of x and of the indices."""
        return Arithmetic(*map(name_of, types))

    is_vector = x.ndim == 1 and (x.size < 2 or x.strides[0] == item)
    if is_vector and parts:
        built, _ = chain.build_once((ProductChunked, types, *size), lambda: ProductChunked.legal(device, arithmetic(), *size))
        chain.launch(built, n, index(n), *parts, *operands, offset, y, y_offset)
    elif is_vector:
        kind = *size, Product.choose_slices(device, *size, indices.size / max(n, 1))
        built, of_teams = chain.build_once((Product, types, *kind), lambda: Product.legal(device, arithmetic(), *kind))
        teams = of_teams.work_group // math.prod(kind)
        chain.launch(built, -(-n // teams), index(n), *operands, offset, y, y_offset)
    else:
        n_columns = 1 if x.ndim == 1 else x.shape[1]
        steps = [step // item for step in (*x.strides, item)[:2]]
        # Dense X of `MAX_ENTRIES` or more columns share one kernel, whose vectors of at most 32 bytes hold fewer values of X.
        columns_kind = *size, min(n_columns, MAX_ENTRIES), steps[1] == 1
        key = Columns, types, *columns_kind
        built, of_columns = chain.build_once(key, lambda: Columns.legal(device, arithmetic(), *columns_kind))
        groups = n if parts else -(-n * n_columns // of_columns.work_group)
        chain.launch(built, groups, index(n), np.uint32(n_columns), *map(np.int64, steps), offset, *parts, *operands, y, y_offset)
    chain.finish(y)


def _enqueue_multiply(
    queue: cl.CommandQueue, a: cl_array.Array, b: cl_array.Array, c: cl_array.Array, *structures: Structure
) -> None:
    """Enqueue the kernel that computes the blocks c of the product ``A @ B`` of block matrices from their blocks, a and b.

    ``structures`` are the structures of A, B and the product.
    """
    arrays = [array for structure in structures for array in (structure.indptr, structure.indices)]
    chain, index = Chain(queue, a, b, *arrays, writes=(c,)), arrays[0].dtype
    arithmetic = Arithmetic(name_of(a.dtype), name_of(b.dtype), name_of(index))
    parts = (_get_row_parts(structures[0], queue),) if chain.device.lanes_are_loops else ()
    mean = structures[1].indices.size / max(structures[1].shape[0], 1)
    built, _ = chain.build(Multiply.legal(chain.device, arithmetic, a.shape[1], a.shape[2], b.shape[2], mean))
    chain.fill(c, 0, c.size)
    operands = *arrays[:2], a, *arrays[2:4], b, *arrays[4:], c
    if parts:
        chain.launch(built, parts[0].size - 1, index.type(parts[0].size - 1), *parts, *operands)
    else:
        chain.launch(built, structures[0].shape[0], *operands)
    chain.finish(c)


def product_of_blocks(
    queue: cl.CommandQueue, a: tuple[Structure, cl_array.Array], b: tuple[Structure, cl_array.Array]
) -> tuple[Structure, cl_array.Array]:
    """Return the structure and the blocks of the product ``A @ B`` of block matrices; SpGEMM of the patterns gives the structure.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    a, b : tuple of Structure and pyopencl.array.Array
        The valid structures and the blocks of A and B. B is canonical; A's blocks have as many columns as B's have rows.
    """
    patterns = [Matrix.assembled(pattern, flat(queue, values, pattern.indices.size)) for pattern, values in (a, b)]
    structure = spgemm(*patterns).structure
    (of_a, a_data), (of_b, b_data) = a, b
    size = structure.indices.size, a_data.shape[1], b_data.shape[2]
    c = allocate(queue, "data of the product", size, np.result_type(a_data.dtype, b_data.dtype), a_data.allocator)
    index = structure.indptr.dtype
    of_a, of_b = (_with_index(queue, pattern, index) for pattern in (of_a, of_b))
    if c.size:
        _enqueue_multiply(queue, a_data, b_data, c, of_a, of_b, structure)
    return structure, c


def _with_index(queue: cl.CommandQueue, structure: Structure, index: np.dtype[Any]) -> Structure:
    """Return a structure with its index arrays converted to a dtype; the structure itself if it has that dtype."""
    indptr = structure.indptr
    _, indices, offsets = with_index(queue, (indptr, structure.indices, indptr), index)
    return structure if offsets is indptr else structure.copied(queue, indices, offsets)
