"""Sparse arrays put side by side, one below the other, in a grid, or along a diagonal."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.kinds import issparse
from clsparse_py._arrays.functions.operands import as_rows, queue_of
from clsparse_py._build.plain import door
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert, with_index
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.placement import value_dtype_on
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.construct.blocks import Block, BlockRow, stack

__all__ = ["block_array", "block_diag", "hstack", "vstack"]

#: Type of a grid of blocks, as a list of rows; a block is an array, or None if it is empty.
Grid = list[list[Any]]


@door(on_scipy(scipy.sparse.hstack))
def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> csr_array | Any:
    """Return sparse arrays joined side by side, as one array with the columns of all.

    Parameters
    ----------
    blocks : sequence of arrays
        Sparse arrays of this package or of SciPy, and dense ones, with as many rows each; None for nothing.
    format : str, optional
        Of the result. By default "csr" if all blocks are that, "csc" if all are that, else "coo".
    dtype : dtype, optional
        Of the result; by default the one that holds the values of all blocks.

    Returns
    -------
    csr_array, csc_array or coo_array
        On the queue of the first block that has one.

    Raises
    ------
    ValueError
        A block has another number of rows, or lives in another context.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 0], [0, 2]])
    >>> sp.hstack([A, A]).toarray()
    array([[1, 0, 1, 0],
           [0, 2, 0, 2]])
    """
    return _stack_grid([list(blocks)], format, dtype)


@door(on_scipy(scipy.sparse.vstack))
def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> csr_array | Any:
    """Return sparse arrays joined one below the other, as one array with the rows of all.

    Parameters
    ----------
    blocks, format, dtype
        As for `hstack`; blocks have as many columns each.

    Returns
    -------
    csr_array, csc_array or coo_array
        As for `hstack`.

    Raises
    ------
    ValueError
        A block has another number of columns, or lives in another context.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 0], [0, 2]])
    >>> sp.vstack([A, A]).toarray()
    array([[1, 0],
           [0, 2],
           [1, 0],
           [0, 2]])
    """
    return _stack_grid([[block] for block in blocks], format, dtype)


@door(on_scipy(scipy.sparse.block_array))
def block_array(blocks: Sequence[Sequence[Any]], *, format: str | None = None, dtype: Any = None) -> csr_array | Any:
    """Return the sparse array that a grid of blocks makes up; None leaves a place of the grid empty.

    Parameters
    ----------
    blocks : sequence of sequences of arrays
        Rows of the grid, all as long. Blocks of one row have as many rows, those of one column as many columns; None for an
        empty block.
    format, dtype
        As for `hstack`.

    Returns
    -------
    csr_array, csc_array or coo_array
        As for `hstack`; "coo" by default also if a block is None.

    Raises
    ------
    ValueError
        Blocks do not go together; the message names the first that does not.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A, B = sp.csr_array([[1, 2]]), sp.csr_array([[3], [4]])
    >>> sp.block_array([[A, None], [None, B]]).toarray()
    array([[1, 2, 0],
           [0, 0, 3],
           [0, 0, 4]])
    """
    if not isinstance(blocks, (list, tuple, np.ndarray)) or not all(isinstance(row, (list, tuple, np.ndarray)) for row in blocks):
        raise ValueError("blocks must be 2-D: a sequence of sequences of arrays")
    return _stack_grid([list(row) for row in blocks], format, dtype)


@door(on_scipy(scipy.sparse.block_diag))
def block_diag(mats: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """Return a sparse array with the given arrays as blocks along its diagonal, and nothing elsewhere.

    Parameters
    ----------
    mats : sequence of arrays
        Sparse arrays of this package or of SciPy, dense two-dimensional ones, lists and numbers.
    format : str, optional
        Of the result; "coo" by default.
    dtype : dtype, optional
        As for `hstack`.

    Returns
    -------
    coo_array, or as ``format`` says

    Raises
    ------
    ValueError
        There are no arrays, or they live in different contexts.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.block_diag([sp.csr_array([[1, 2]]), 3]).toarray()
    array([[1, 2, 0],
           [0, 0, 3]])
    """
    if not len(mats):
        raise ValueError("mats: need at least one array to concatenate")
    queue = queue_of(mats)
    rows = [_convert_to_csr(f"mats[{i}]", block, queue) for i, block in enumerate(mats)]
    columns = list(itertools.accumulate((block.shape[1] for block in rows), initial=0))
    grid = [[(block, column)] for block, column in zip(rows, columns[:-1], strict=True)]
    lengths = [block.shape[0] for block in rows]
    return _join_blocks(queue, grid, lengths, columns[-1], dtype).asformat(format or "coo")


def _convert_to_csr(name: str, block: Any, queue: cl.CommandQueue) -> csr_array:
    """Return a block of `block_diag` in CSR form; a dense block of NumPy keeps its zeros as entries, as in SciPy."""
    if isinstance(block, (list, numbers.Number)):
        block = np.atleast_2d(np.asarray(block))
    elif isinstance(block, np.ndarray):
        if block.ndim != 2:
            raise ValueError(f"{name}: a dense array must have two dimensions, has {block.ndim} (shape {block.shape})")
        n_rows, n_columns = block.shape
        indices, indptr = np.tile(np.arange(n_columns), n_rows), np.arange(n_rows + 1) * n_columns
        return csr_array((block.ravel(), indices, indptr), shape=block.shape, queue=queue)
    return as_rows(name, block, queue)


def _stack_grid(blocks: Grid, format: str | None, dtype: Any) -> Any:
    """Return the sparse array that a grid of blocks makes up, in the format asked for or the format of SciPy's result."""
    if not blocks or len({len(row) for row in blocks}) != 1:
        raise ValueError("blocks must be 2-D: rows of as many blocks each, at least one")
    if not blocks[0]:
        raise IndexError("blocks: there are none")
    formats = {block.format if issparse(block) else "" for row in blocks for block in row}
    if formats == {"csc"} and format in (None, "csc"):
        # Blocks in CSC form are stacked as their transposed blocks, in CSR form.
        transposed_grid = [[block.T for block in column] for column in zip(*blocks, strict=True)]
        return _stack_in_csr(transposed_grid, dtype, transposed=True).T
    natural = "csr" if formats == {"csr"} else "coo"
    joined, target = _stack_in_csr(blocks, dtype), format or natural
    if target not in (natural, "coo"):
        joined.sum_duplicates()  # as in SciPy, which goes by way of coordinates
    return joined.asformat(target)


def _stack_in_csr(blocks: Grid, dtype: Any, *, transposed: bool = False) -> csr_array:
    """Return the array that a grid of blocks makes up, in CSR form; errors of a ``transposed`` grid name the user's places."""
    queue = queue_of(block for row in blocks for block in row)
    grid = [
        [
            None if block is None else as_rows(f"blocks[{j},{i}]" if transposed else f"blocks[{i},{j}]", block, queue)
            for j, block in enumerate(row)
        ]
        for i, row in enumerate(blocks)
    ]
    heights = _line_lengths(grid, 0, transposed=transposed)
    columns = list(itertools.accumulate(_line_lengths(grid, 1, transposed=transposed), initial=0))
    blocks_of_rows = [[(array, columns[j]) for j, array in enumerate(row) if array is not None] for row in grid]
    return _join_blocks(queue, blocks_of_rows, heights, columns[-1], dtype)


def _line_lengths(grid: list[list[csr_array | None]], axis: int, *, transposed: bool) -> list[int]:
    """Return the heights of the grid's rows of blocks (axis 0), or the widths of its columns of blocks (axis 1).

    Raises
    ------
    ValueError
        Blocks of one row of the grid differ in height, or blocks of one column in width.
    """
    lines = grid if axis == 0 else list(zip(*grid, strict=True))
    totals = []
    for i, line in enumerate(lines):
        lengths = [block.shape[axis] for block in line if block is not None]
        length = lengths[0] if lengths else 0
        if lengths.count(length) < len(lengths):
            candidates = ((j, block.shape[axis]) for j, block in enumerate(line) if block is not None)
            j, other = next(block for block in candidates if block[1] != length)
            axis_of_user = 1 - axis if transposed else axis
            name = f"blocks[{i},{j}]" if axis_of_user == 0 else f"blocks[{j},{i}]"
            line_of = f"blocks[{i},:] has incompatible row" if axis_of_user == 0 else f"blocks[:,{i}] has incompatible column"
            # SciPy's error message for a row of blocks differs from its message for a column of blocks.
            how = f"incompatible dimensions for axis {axis_of_user}"
            how = how if axis else f"Mismatching dimensions along axis {axis_of_user}: {{{length}, {other}}}"
            raise ValueError(f"{line_of} dimensions. Got {name}.shape[{axis_of_user}] == {other}, expected {length}: {how}")
        totals.append(length)
    return totals


def _join_blocks(
    queue: cl.CommandQueue, grid: list[list[tuple[csr_array, int]]], heights: list[int], n_columns: int, dtype: Any
) -> csr_array:
    """Return the matrix that rows of CSR blocks make up; ``grid`` pairs each block with its first column in the matrix."""
    blocks = [block for row in grid for block, _ in row]
    dtypes = {block.dtype for block in blocks} or {np.dtype(np.float64)}
    common = dtypes.pop() if len(dtypes) == 1 else np.result_type(*(block.dtype for block in blocks))
    value = value_dtype_on(queue, common, dtype)
    shape, nnz = (sum(heights), n_columns), sum([block.nnz for block in blocks])
    index = index_for(max(*shape, nnz), *{block.indptr.dtype for block in blocks})
    rows = [
        BlockRow([_convert_block(queue, block, column, index, value) for block, column in row], height)
        for row, height in zip(grid, heights, strict=True)
    ]
    data, indices, indptr = stack(queue, rows, index, value)
    facts = _join_facts([[block for block, _ in row] for row in grid], nnz)
    return csr_array.assembled(Structure(queue, shape, indices, indptr, facts), data)


def _convert_block(queue: cl.CommandQueue, block: csr_array, column: int, index: np.dtype[Any], value: np.dtype[Any]) -> Block:
    """Return the device arrays of a block, converted to the index dtype and the value dtype of the stacked matrix."""
    data, indices, indptr = block.parts
    if indptr.dtype != index:
        data, indices, indptr = with_index(queue, (data, indices, indptr), index)
    return Block(data if data.dtype == value else convert(queue, "data", data, value), indices, indptr, column)


def _join_facts(grid: list[list[csr_array]], nnz: int) -> Facts | None:
    """Return the facts about a stacked matrix's structure: sorted or canonical if all blocks are; None if one is unchecked."""
    all_facts = [block.facts for row in grid for block in row]
    known_facts = [facts for facts in all_facts if facts is not None]
    if len(known_facts) < len(all_facts):
        return None
    longest = [facts.longest for facts in known_facts if facts.longest is not None]
    alone = len(longest) == len(known_facts) and max(map(len, grid)) <= 1
    return Facts(
        nnz,
        sorted=all(facts.sorted for facts in known_facts),
        canonical=all(facts.canonical for facts in known_facts),
        longest=max(longest, default=0) if alone else None,
    )
