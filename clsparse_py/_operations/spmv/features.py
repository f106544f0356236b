"""Inspect: features of a matrix, from one pass over its row lengths and a sample of its columns on the device, and one read."""

from __future__ import annotations

import math

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.parts import cut_into_parts
from clsparse_py._operations.spmv.kernels import CountFeatures, RowNumbers, TotalFeatures
from clsparse_py._run.launch import Chain

__all__ = ["Features", "Inspected", "inspect"]

#: Decision trees compare the shares of rows that have at most 0, 1, 2, 8, 32, 128, 512 and 4096 entries: for each share, the
#: index of the last of the classes of row lengths that are summed up for it.
_SHARES = (0, 1, 2, 4, 6, 8, 10, 13)

#: Greatest number of rows whose lengths are counted by class; of a matrix with more rows, a sample of this many is counted.
_COUNTED = 1 << 13
#: Greatest number of rows whose columns are read, as a sample, for the features by which SpMV chooses kernels for a matrix.
_SAMPLES = 256
#: Greatest number of work-groups whose partial features of a matrix the host combines; a kernel combines those of more.
_FEW_GROUPS = 64
#: Number of rows for each work-item, at least, where a matrix's features are found: two rounds of a loop over four rows.
_ROWS_OF_ITEM = 8


@dataclass(frozen=True)
class Features:
    """Features of a matrix: Table I of Hou, Feng and Che, and the histogram of row lengths.

    Attributes
    ----------
    n_rows, n_cols, nnz : int
        M, N and NNZ.
    shortest, longest : int
        Entries of the shortest and of the longest row.
    variance : float
        Of the entries of a row.
    classes : tuple of int
        Rows by length: empty ones, rows of 1, of 2, of 3 to 4, of 5 to 8 entries, and so on by powers of two. Of more than 8192
        rows, as many of them, evenly spread, are counted.
    jumps : float
        How unlike neighbouring rows are: the differences of their lengths, summed up, by the number of entries.
    distance : float
        How far entries are from the diagonal, in columns: a mean over a sample. Of other than square matrices it is the diagonal
        from corner to corner.
    gap : float
        How far the columns of neighbouring entries of a row are from each other: a mean over a sample.
    """

    n_rows: int
    n_cols: int
    nnz: int
    shortest: int
    longest: int
    variance: float
    classes: tuple[int, ...]
    jumps: float = 0.0
    distance: float = 0.0
    gap: float = 0.0

    @property
    def mean(self) -> float:
        """Mean number of entries of a matrix's rows."""
        return self.nnz / max(self.n_rows, 1)

    def numbers(self, compute_units: int, itemsize: int) -> dict[str, float]:
        """Return the features of a matrix that SpMV's decision trees compare, by name, such as "mean" and "longest_by_share".

        Parameters
        ----------
        compute_units : int
            Of the device: "longest_by_share" is the longest row relative to the mean work of one compute unit.
        itemsize : int
            Bytes of a value: "bytes" is the memory of all entries, with 32-bit columns.
        """
        mean, n_counted = self.mean, max(sum(self.classes), 1)
        # Shares of a matrix's rows with at most 2^(k - 1) entries; for k = 0 of empty rows.
        shares = {f"up_to_{1 << max(k - 1, 0)}" if k else "empty": sum(self.classes[: k + 1]) / n_counted for k in _SHARES}
        return {
            "rows": self.n_rows,
            "columns": self.n_cols,
            "nnz": self.nnz,
            "bytes": self.nnz * (itemsize + 4),
            "mean": mean,
            "shortest": self.shortest,
            "longest": self.longest,
            "longest_by_mean": self.longest / mean if mean else 0.0,
            "longest_by_share": self.longest * compute_units / self.nnz if self.nnz else 0.0,
            "variance": self.variance,
            "variation": math.sqrt(self.variance) / mean if mean else 0.0,
            **shares,
            "jumps": self.jumps,
            "distance": self.distance,
            "gap": self.gap,
        }


@dataclass(frozen=True)
class Inspected:
    """A sparse matrix's structure whose features are known.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        Of the planning: keeps the order of its commands.
    device : Device
    indptr, indices : pyopencl.array.Array
    features : Features
    """

    queue: cl.CommandQueue
    device: Device
    indptr: cl_array.Array
    indices: cl_array.Array
    features: Features

    def cut(self, step: int, row_weight: int, slack: int) -> tuple[int, list[cl_array.Array]]:
        """Return the number of A's parts of equal weight, and arrays: first rows, first entries, whether a row is cut there."""
        return cut_into_parts(self.queue, self.indptr, self.features.n_rows, self.features.nnz, step, row_weight, slack)


def inspect(
    queue: cl.CommandQueue,
    shape: tuple[int, int],
    nnz: int,
    indptr: cl_array.Array,
    indices: cl_array.Array,
    work_group: int | None = None,
    samples: int = _SAMPLES,
    few_groups: int = _FEW_GROUPS,
) -> Features:
    """Return a matrix's features (sizes, row lengths, spread of columns), found on the device by one or two launches and a read.

    On a device with plain kernels, which need no features, only the sizes are given; all else is 0.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    shape : tuple of int
        Rows and columns.
    nnz : int
        Stored entries.
    indptr, indices : pyopencl.array.Array
        Valid.
    work_group : int, optional
        Work-items in a work-group; by default one on CPU devices, where it is the iterations of a core's loop.
    samples : int
        Of how many rows columns are looked at, at most.
    few_groups : int
        Results of more work-groups than these are combined on the device.
    """
    n_rows, n_cols = shape
    chain = Chain(queue, indptr, indices)
    if not n_rows or chain.device.is_plain:  # a plain device has one kernel for all matrices
        return Features(n_rows, n_cols, nnz, 0, 0, 0.0, (0,))
    group = work_group or (1 if chain.device.lanes_are_loops else 128)
    built, record = chain.build(CountFeatures(min(group, chain.device.max_work_group), indptr.dtype.name))
    groups = max(1, min(-(-n_rows // (_ROWS_OF_ITEM * record.work_group)), chain.device.compute_units * 8))
    partial = chain.scratch(groups * record.n_outputs, np.int64)
    sizes = np.uint64(n_rows), np.uint64(n_cols), np.uint32(min(n_rows, _COUNTED)), np.uint32(min(n_rows, samples))
    chain.launch(built, groups, *sizes, indptr, indices, partial)
    if groups > few_groups:
        built, _ = chain.build(TotalFeatures(min(work_group or 128, chain.device.max_work_group), indptr.dtype.name))
        total = chain.scratch(record.n_outputs, np.int64)
        chain.launch(built, record.n_outputs, np.uint64(groups), partial, total)
        numbers = chain.read(total, record.n_outputs)
    else:
        by_group = chain.read(partial, groups * record.n_outputs).reshape(record.n_outputs, groups)
        numbers = by_group.sum(axis=1)
        numbers[:2] = by_group[:2].min(axis=1)
    n_numbers = len(RowNumbers._fields)
    of_rows = RowNumbers(*numbers[:n_numbers].tolist())
    mean = nnz / n_rows
    return Features(
        n_rows,
        n_cols,
        nnz,
        of_rows.shortest,
        -of_rows.longest,
        variance=max(0.0, (of_rows.squares + of_rows.large_squares * 2**32) / n_rows - mean * mean),
        classes=tuple(np.trim_zeros(numbers[n_numbers:], "b").tolist()),
        jumps=of_rows.jumps / max(nnz, 1),
        distance=of_rows.distance / max(of_rows.entries, 1),
        gap=of_rows.gap / max(of_rows.pairs, 1),
    )
