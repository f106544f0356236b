"""Inner products and linear combinations of blocks of vectors."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Passes, Sweeps, declare_passes

__all__ = ["Columns", "Panel"]

#: The columns of a matrix, each a vector.
Columns: TypeAlias = list[cl_array.Array]

#: Number of columns of each of two matrices that one vector pass reads.
_AT_ONCE = 4
#: Indices of columns within a block; a block is as many columns of one matrix as one vector pass reads.
_PLACES = range(_AT_ONCE)
#: Pairs of column indices: of a column in a block of the left matrix, and of a column in a block of the right matrix.
_PAIRS = [(i, j) for i in _PLACES for j in _PLACES]

# The sums are of inner products. The scalars are these inner products once ended, or factors of linear combinations.
#: Names of the scalars and sums for two blocks of columns: a scalar and a sum for each pair of a left and a right column.
LAYOUT = Layout(scalars=tuple(f"c{i}{j}" for i, j in _PAIRS), sums=tuple(f"s{i}{j}" for i, j in _PAIRS))

#: The vector pass that begins the inner products of all columns of a left block with all columns of a right block.
_PRODUCTS = Pass(
    "panel_products", reads=(*(f"l{i}" for i in _PLACES), *(f"r{j}" for j in _PLACES)),
    sums=tuple((f"s{i}{j}", f"times(conjugate(l{i}), r{j})") for i, j in _PAIRS),
)  # fmt: skip
#: The vector pass that ends the sums of inner products, and writes them to the scalars.
_TOTALS = Pass(
    "panel_totals", reads=("any",), totals=tuple(f"s{i}{j}" for i, j in _PAIRS),
    keeps=tuple((f"c{i}{j}", f"s{i}{j}") for i, j in _PAIRS),
)  # fmt: skip
#: The vector pass that adds linear combinations of a left block's columns to the columns of a right block.
_COMBINATION = Pass(
    "panel_combination", reads=tuple(f"l{i}" for i in _PLACES), updates=tuple(f"r{j}" for j in _PLACES),
    takes=tuple(f"c{i}{j}" for i, j in _PAIRS), lines=tuple(f"r{j} += times(c{i}{j}, l{i});" for i, j in _PAIRS),
)  # fmt: skip
declare_passes(LAYOUT, _PRODUCTS, _TOTALS, _COMBINATION)


class Panel:
    """Work on the columns of matrices of n rows.

    Parameters
    ----------
    chain : Chain
    n : int
    dtype : dtype
        Of all columns.
    columns : int
        The most columns that a matrix has in `products` and `combine`.
    """

    def __init__(self, chain: Chain, n: int, dtype: np.dtype[Any], columns: int) -> None:
        blocks = -(-columns // _AT_ONCE)
        self.sweeps = Sweeps(chain, n, dtype, LAYOUT, blocks * blocks)
        self._one, self._spare = self.sweeps.vector(1), [self.sweeps.vector() for _ in _PLACES]
        self._passes = Passes(self.sweeps)
        for column in (self._one, *self._spare):
            self.sweeps.fill(column)

    def columns(self, count: int) -> Columns:
        """Return ``count`` new columns, vectors on the device whose entries are 0."""
        columns = [self.sweeps.vector() for _ in range(count)]
        for column in columns:
            self.sweeps.fill(column)
        return columns

    def products(self, first: Columns, second: Columns) -> np.ndarray[Any, Any]:
        """Return the inner products of all columns of one matrix with all columns of another, as a host matrix; waits."""
        rows, columns = -(-len(first) // _AT_ONCE), -(-len(second) // _AT_ONCE)
        for i in range(rows):
            for j in range(columns):
                part = i * columns + j
                self._passes.enqueue(_PRODUCTS, part, **self._block("l", first, i), **self._block("r", second, j))
                self._passes.enqueue(_TOTALS, part, any=self._one)
        host = self.sweeps.chain.read(self.sweeps.scalars, rows * columns * len(_PAIRS))
        blocks = host.reshape(rows, columns, _AT_ONCE, _AT_ONCE).transpose(0, 2, 1, 3)
        products = blocks.reshape(rows * _AT_ONCE, columns * _AT_ONCE)[: len(first), : len(second)]
        return products.astype(np.result_type(products, np.float64))

    def combine(self, target: Columns, source: Columns, factors: np.ndarray[Any, Any]) -> None:
        """Enqueue the addition of linear combinations of a matrix's columns to the columns of another matrix."""
        rows, columns = -(-len(source) // _AT_ONCE), -(-len(target) // _AT_ONCE)
        padded = np.zeros((rows * _AT_ONCE, columns * _AT_ONCE), self.sweeps.dtype)
        padded[: len(source), : len(target)] = factors
        blocks = padded.reshape(rows, _AT_ONCE, columns, _AT_ONCE).transpose(0, 2, 1, 3)
        self.sweeps.set_all(np.ascontiguousarray(blocks).ravel())
        for i in range(rows):
            for j in range(columns):
                part = i * columns + j
                self._passes.enqueue(_COMBINATION, part, **self._block("l", source, i), **self._block("r", target, j))

    def replace(self, target: Columns, *sources: tuple[Columns, np.ndarray[Any, Any]], spare: Columns) -> None:
        """Enqueue the replacement of a matrix's columns by linear combinations of columns of several matrices, also of itself.

        ``spare`` has at least as many columns as ``target``.
        """
        used = spare[: len(target)]
        for column in used:
            self.sweeps.fill(column)
        for source, factors in sources:
            self.combine(used, source, factors)
        self.copy(target, used)

    def copy(self, target: Columns, source: Columns) -> None:
        """Enqueue the copy of the columns of a matrix to the columns of another matrix."""
        for target_column, source_column in zip(target, source, strict=True):
            self.sweeps.copy(target_column, source_column)

    def _block(self, names: str, columns: Columns, number: int) -> dict[str, cl_array.Array]:
        """Return a block of a matrix's columns, by their names in vector passes; spare columns fill the last block up."""
        block = columns[number * _AT_ONCE : (number + 1) * _AT_ONCE]
        return {f"{names}{i}": column for i, column in enumerate([*block, *self._spare[len(block) :]])}
