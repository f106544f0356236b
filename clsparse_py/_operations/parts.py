"""Parts of A of equal work, for SpMV and SpMM: the cut of A into parts, and the launch that adds later pieces of cut rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.built import Built
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.partition import enqueue_partition
from clsparse_py._run.dense_product import list_arguments
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recorder
from clsparse_py._run.transfer import from_host

__all__ = ["Combine", "CutRows", "add_later_pieces", "cut_into_parts", "list_cut_rows", "power_of_two_at_most"]


def power_of_two_at_most(n: int) -> int:
    """Return the greatest power of two that is not above ``n``, which is at least 1."""
    return 1 << n.bit_length() - 1


def cut_into_parts(
    queue: cl.CommandQueue, indptr: cl_array.Array, n_rows: int, nnz: int, step: int, row_weight: int, slack: int
) -> tuple[int, list[cl_array.Array]]:
    """Cut A into parts of equal work; return their number, and arrays: first row, first entry, whether a row is cut there.

    The parameters are the parameters of `enqueue_partition`.
    """
    n_parts = max(1, -(-(nnz + row_weight * n_rows) // step))
    chain = Chain(queue, indptr)
    begins = [allocate(queue, "ends of parts", n_parts + 1, indptr.dtype) for _ in range(3)]
    enqueue_partition(chain, indptr, n_rows, nnz, n_parts, step, begins, row_weight=row_weight, slack=slack)
    chain.finish(*begins)
    return n_parts, begins


@dataclass(frozen=True)
class CutRows:
    """Rows of A that are cut: several parts of A share them.

    Attributes
    ----------
    n : int
        Number of rows.
    n_long : int
        Number of rows with many pieces, which come first.
    most : int
        Greatest number of later pieces of a row.
    rows, first, last : pyopencl.array.Array
        The cut rows, and the numbers of the first and the last later piece of a row.
    """

    n: int
    n_long: int
    most: int
    rows: cl_array.Array
    first: cl_array.Array
    last: cl_array.Array


def list_cut_rows(
    queue: cl.CommandQueue, index: np.dtype[Any], rows: np.ndarray[Any, Any], pieces: np.ndarray[Any, Any], many: int
) -> CutRows:
    """Return A's rows that several parts share, as device arrays: the rows, and the numbers of each row's second and last piece.

    Parameters
    ----------
    rows, pieces : numpy.ndarray
        The row of each later piece, and the piece's number; the pieces of a row are adjacent.
    many : int
        A row of more later pieces than this number has many.
    """
    begins = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    ends = np.concatenate((begins[1:], [rows.size])) - 1
    is_long = ends - begins >= many
    order = np.argsort(~is_long, kind="stable")

    def upload(values: np.ndarray[Any, Any]) -> cl_array.Array:
        """Return an array of one number for each cut row of A as a device array, sorted: rows of many pieces come first."""
        return from_host(queue, np.ascontiguousarray(values[order], dtype=index), copy=True)

    most = int((ends - begins).max()) + 1
    return CutRows(begins.size, int(is_long.sum()), most, upload(rows[begins]), upload(pieces[begins]), upload(pieces[ends]))


@kernel
@dataclass(frozen=True)
class Combine(ProductKernel):
    """Parameters of ``templates/spmv/combine.mako``; all are powers of two.

    Attributes
    ----------
    columns : int
        Columns of y that a work-group takes at a time.
    lanes : int
        Work-items to a column of a row of many pieces; ``columns * lanes`` is at most ``work_group``.
    """

    template = "spmv/combine"
    kind = "spmv_combine"

    columns: int
    lanes: int

    @classmethod
    def legal(
        cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int = 64, lanes: int = 32, columns: int = 1
    ) -> Combine:
        """Return parameters of the kernel that adds cut rows' pieces: the given sizes, or the largest that the device takes."""
        # Lanes that share a row exchange sums through local memory, as the lanes of a row are `columns` apart.
        record = cls(work_group, arithmetic, device.portability.at_most(1), scaled, columns, lanes)
        return record._of(min(work_group, device.max_work_group))

    def _of(self, work_group: int) -> Self:
        """Return the parameters of the kernel that adds the pieces' sums of cut rows, with at most ``work_group`` work-items."""
        work_group = power_of_two_at_most(max(work_group, 1))
        columns = min(self.columns, work_group)
        return replace(self, work_group=work_group, columns=columns, lanes=min(self.lanes, work_group // columns))

    def groups(self, n_columns: int, n_long: int, n_cut: int) -> int:
        """Return the number of work-groups that add the pieces of ``n_cut`` cut rows, of which ``n_long`` have many pieces."""
        rows = self.work_group // self.columns
        return -(-n_columns // self.columns) * (-(-n_long * self.lanes // rows) + -(-(n_cut - n_long) // rows))

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells lanes, columns and work-group, such as ``x4_c1_wg128``."""
        return f"x{self.lanes}_c{self.columns}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, columns and lanes."""
        return {**self._common(), "columns": self.columns, "lanes": self.lanes}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of the kernel that adds pieces of cut rows for at most ``work_group`` items; None if it is 0."""
        return self._of(work_group) if work_group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records by lanes to a row: 32 (""), 4 ("few"), 256 ("many"), and 8 for 32 columns of y ("columns")."""
        yield "", cls.legal(device, arithmetic, False)
        yield "few", cls.legal(device, arithmetic, False, lanes=4)
        yield "many", cls.legal(device, arithmetic, False, 256, 256)
        yield "columns", cls.legal(device, arithmetic, False, 256, 8, 32)


def add_later_pieces(
    recorder: Recorder,
    combine: Built,
    cut_rows: CutRows,
    partial: cl_array.Array,
    n_columns: int = 1,
    y_strides: tuple[int, int] = (1, 1),
) -> None:
    """Record the launch that completes y in cut rows: it adds the sums of a row's second and later pieces to y.

    Parameters
    ----------
    partial : pyopencl.array.Array
        The sums of all pieces; a sum is ``n_columns`` values.
    y_strides : tuple of int
        Values from row to row and from column to column of y.
    """
    record, index = combine.parameters, cut_rows.rows.dtype.type
    assert isinstance(record, Combine)
    groups = record.groups(n_columns, cut_rows.n_long, cut_rows.n)
    numbers = *map(np.int64, y_strides), np.uint32(n_columns), index(cut_rows.n_long), index(cut_rows.n)
    recorder.launch(combine, groups, *list_arguments(recorder), *numbers, cut_rows.rows, cut_rows.first, cut_rows.last, partial)
