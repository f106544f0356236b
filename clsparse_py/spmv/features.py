"""Inspect: features of a matrix's row lengths, from one pass on the device and one read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py.device import describe
from clsparse_py.spmv.kernels import CountFeatures

__all__ = ["Features", "inspect"]


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
        Rows by length: empty ones, rows of 1, of 2, of 3 to 4, of 5 to 8 entries, and so on by powers of two.
    """

    n_rows: int
    n_cols: int
    nnz: int
    shortest: int
    longest: int
    variance: float
    classes: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Mean entries of a row."""
        return self.nnz / max(self.n_rows, 1)


def inspect(queue: cl.CommandQueue, shape: tuple[int, int], nnz: int, indptr: cl_array.Array, work_group: int = 128) -> Features:
    """Compute the features of a matrix on the device: one launch, one read.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    shape : tuple of int
        Rows and columns.
    nnz : int
        Stored entries.
    indptr : pyopencl.array.Array
        Valid.
    """
    n_rows, n_cols = shape
    if not n_rows:
        return Features(n_rows, n_cols, nnz, 0, 0, 0.0, (0,))
    device = describe(queue.device)
    parameters = CountFeatures(min(work_group, device.max_work_group), indptr.dtype.name)
    built = programs.build(queue.context, queue.device, parameters)
    group = built.parameters.work_group
    groups = max(1, min(-(-n_rows // group), device.compute_units * 8))
    found = cl_array.empty(queue, (groups, 4 + parameters.n_classes), np.int64)
    kernel = built.kernel(indptr.dtype.type(n_rows), indptr.data, found.data)
    cl.enqueue_nd_range_kernel(queue, kernel, (groups * group,), (group,), wait_for=indptr.events)
    host = found.get()
    mean = nnz / n_rows
    squares = host[:, 2:4].astype(np.float64).sum(axis=0)
    classes = np.trim_zeros(host[:, 4:].sum(axis=0), "b")
    return Features(
        n_rows,
        n_cols,
        nnz,
        shortest=int(host[:, 0].min()),
        longest=int(host[:, 1].max()),
        variance=max(0.0, float(squares[0] + squares[1] * 2**32) / n_rows - mean * mean),
        classes=tuple(int(count) for count in classes),
    )
