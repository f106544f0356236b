"""Inspect: features of a matrix's row lengths, from one pass on the device and one read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py.device import describe
from clsparse_py.spmv.kernels import CountFeatures

__all__ = ["Features", "inspect"]

#: Which classes of row lengths trees know: empty rows, and those of up to 1, 2, 8, 32, 128, 512 and 4096 entries.
_SHARES = (0, 1, 2, 4, 6, 8, 10, 13)


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
        """Mean entries of a row."""
        return self.nnz / max(self.n_rows, 1)

    def numbers(self, compute_units: int, itemsize: int) -> dict[str, float]:
        """Return what decision trees compare.

        Parameters
        ----------
        compute_units : int
            Of the device: "longest_by_share" is the longest row relative to what one of them has to do.
        itemsize : int
            Bytes of a value: "bytes" is what entries take, their columns in 32 bits.
        """
        rows, mean = max(self.n_rows, 1), self.mean
        # Rows of up to 2^k entries, as a share of all.
        shares = {f"up_to_{1 << max(k - 1, 0)}" if k else "empty": sum(self.classes[: k + 1]) / rows for k in _SHARES}
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
