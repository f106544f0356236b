"""Diagonal matrices in CSR form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Parts
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives.permute import Moving
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device

__all__ = ["Diagonal", "Diagonals", "from_diagonals"]


@kernel
@dataclass(frozen=True)
class Diagonals(Moving):
    """Parameters of ``templates/construct/diagonals.mako``."""

    template = "construct/diagonals"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.result.itemsize)


class Diagonal(NamedTuple):
    """A diagonal of a matrix, and where its values stand.

    Attributes
    ----------
    offset : int
        Column less row of its entries.
    first_row, length : int
        The row in which the diagonal begins, and its number of entries.
    begin, step : int
        Where its values begin among all values, and the step between values, which is 0 if one value serves all entries.
    """

    offset: int
    first_row: int
    length: int
    begin: int
    step: int


def from_diagonals(
    queue: cl.CommandQueue, diagonals: Sequence[Diagonal], values: cl_array.Array, n_rows: int, index: np.dtype[Any]
) -> Parts:
    """Return data, indices and indptr of a matrix with the given diagonals, in canonical format.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    diagonals : sequence of Diagonal
        By ascending offsets, all different.
    values : pyopencl.array.Array
        Of all diagonals.
    n_rows : int
    index : dtype
        Of indices.
    """
    chain, nnz = Chain(queue, values), sum(diagonal.length for diagonal in diagonals)
    built, record = chain.build(Diagonals(min(128, chain.device.max_work_group), name_of(index), values.dtype.itemsize))
    table = copy_to_device(queue, "a table of diagonals", np.array(diagonals, np.int64).reshape(-1, 5).T.ravel())
    data = allocate(queue, "data", nnz, values.dtype)
    indices, indptr = (allocate(queue, name, n, index) for name, n in (("indices", nnz), ("indptr", n_rows + 1)))
    sizes = np.uint64(n_rows), np.uint64(len(diagonals))
    chain.launch(built, n_rows // record.work_group + 1, *sizes, table, values, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr
