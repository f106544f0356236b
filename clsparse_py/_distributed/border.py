"""Products with a rank's entries in other ranks' columns, added to the few rows that have entries there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._operations.spmm import spmm
from clsparse_py._operations.spmv import spmv
from clsparse_py._primitives.permute import enqueue_add_at
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["Border", "copy_positions"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds of products of matrices over ranks with vectors."""

    operation = "distributed"

    #: Least share of a rank's rows with entries in other ranks' columns at which a product computes all of the rank's rows; below
    #: this share it computes only the rows with such entries.
    min_whole_share: float = number(0.5, "share of rows", most=1)


def copy_positions(queue: cl.CommandQueue, subject: str, positions: np.ndarray[Any, Any]) -> cl_array.Array:
    """Return positions of entries in an array as a device array of int32, or of int64 if a position exceeds int32."""
    is_wide = positions.size and positions.max() > INT32_MAX
    return copy_to_device(queue, subject, positions.astype(np.int64 if is_wide else np.int32))


def _add_product(A: csr_array, x: cl_array.Array, out: cl_array.Array, alpha: float | None) -> None:
    """Enqueue ``out += alpha * A @ x`` on the queue of x and out; alpha None is 1."""
    if A.nnz:
        (spmv if x.ndim == 1 else spmm)(A, x, alpha=alpha, beta=True, out=out)


class Border:
    """The border of a matrix: its rows that have entries. Products compute these rows alone if they are few, else all rows.

    Parameters
    ----------
    A : csr_array
        A rank's part in other ranks' columns.
    """

    def __init__(self, A: csr_array) -> None:
        facts = A.structure.checked()
        indptr = copy_to_host(A.indptr, A.queue)
        self._rows = np.flatnonzero(np.diff(indptr))
        self._border: csr_array | None = None
        if 0 < self._rows.size < Thresholds.of(describe(A.queue.device)).min_whole_share * A.shape[0]:
            # The border, which is A without its empty rows, has A's entries in A's order; `add` brings the values.
            row_pointers = copy_to_device(A.queue, "rows of the border", np.append(indptr[self._rows], indptr[-1]))
            structure = Structure(A.queue, (self._rows.size, A.shape[1]), A.indices, row_pointers, facts)
            self._border = csr_array.assembled(structure, A.indices)
        self._places: dict[int, cl_array.Array] = {}

    @door()
    def add(self, A: csr_array, x: cl_array.Array, out: cl_array.Array, alpha: float | None = None) -> None:
        """Enqueue ``out += alpha * A @ x`` for A of the border's structure, over its rows with entries if few, else over all.

        The commands are on the queue of x and out; out is contiguous.
        """
        if not out.size:
            return
        if self._border is None:
            _add_product(A, x, out, alpha)
            return
        rows: Any = self._border.with_values(A.data)
        product = rows @ x if alpha is None else (spmv if x.ndim == 1 else spmm)(rows, x, alpha=alpha)
        chain = Chain(product.queue or A.queue, product, writes=(out,))
        enqueue_add_at(chain, self._locate_entries(A, 1 if x.ndim == 1 else x.shape[1]), product, out, product.size)
        chain.finish(out)

    def _locate_entries(self, A: csr_array, columns: int) -> cl_array.Array:
        """Return the flat positions, in a result of ``columns`` columns, of the entries in the border's rows; a cached array."""
        if columns not in self._places:
            positions = (self._rows[:, None] * columns + np.arange(columns)).reshape(-1)
            self._places[columns] = copy_positions(A.queue, "rows of the border", positions)
        return self._places[columns]
