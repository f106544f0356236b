"""The analysis of a product: the number of products of each row, and the rows of each bin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._device.device import Device
from clsparse_py._memory.memory import constants
from clsparse_py._memory.workspace import current, suffices
from clsparse_py._operations.spgemm.bins import Bins
from clsparse_py._operations.spgemm.kernels import Analysis, AnalysisTotals
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import run

__all__ = ["Analysed", "Work", "analyse"]

#: Most entries of a row of A to each lane (work-item) of a team that counts the row's products; the products of a longer row are
#: counted by a whole work-group.
_MIN_LONG_PER_LANE = 32
#: Number that stands for a missing limit of a bin (class of rows) in the analysis kernel: the largest of 32 bits.
_NO_LIMIT = (1 << 32) - 1
#: Number of totals (of products, sampled entries ...) that SpGEMM's analysis kernel reports before each bin's number of rows.
_N_TOTALS = len(AnalysisTotals._fields)
#: NumPy's dtype of the number of intermediate products of a row of C, as SpGEMM's analysis kernel counts them.
_UINT32 = np.dtype(np.uint32)


class Work(NamedTuple):
    """The work of a product: its intermediate products, and how they are distributed over rows and bins.

    Attributes
    ----------
    n_products : int
        Of all rows.
    max_products, longest_row : int
        The most products of a row, and the longest row of A; 2^32 - 1 where there are more.
    bound : int
        Entries of C, at most.
    compression : float
        Products to an entry of C, in a sample of rows; 1 where there is none. If rows come in chunks, those that repeat the row
        before count as if they had no entries, as their columns are known without effort.
    taken : tuple of int
        Rows of each bin.
    """

    n_products: int
    max_products: int
    longest_row: int
    bound: int
    compression: float
    taken: tuple[int, ...]


class Analysed(NamedTuple):
    """The work of a product, with the number of products and the bin of each row.

    Attributes
    ----------
    work : Work
    products : pyopencl.array.Array
        uint32: the intermediate products of each row; 2^32 - 1 where there are more, with which no accumulator expands a row.
    bin : pyopencl.array.Array
        Of the index type: the number of the bin that takes it.
    listed : pyopencl.array.Array or None
        Row numbers, bin by bin, where they were sorted while the host waited.
    """

    work: Work
    products: cl_array.Array
    bin: cl_array.Array
    listed: cl_array.Array | None

    def list_of(self, chain: Chain, n_rows: int) -> cl_array.Array:
        """Return the numbers of all rows of C in the order of the bins that take them; rows of one bin ascend."""
        return _list_rows(chain, n_rows, self.bin, len(self.work.taken)) if self.listed is None else self.listed


def _choose_lanes(mean_length: float, max_lanes: int) -> int:
    """Return the number of work-items that count the products of one row in the analysis: a power of two."""
    lanes = 1
    while lanes < max_lanes and lanes * 4 < mean_length:
        lanes *= 2
    return lanes


def _choose_record(device: Device, index: str, work_group: int | None) -> Analysis:
    """Return the parameters of the analysis kernel that suit a device and that the device allows."""
    group = min(work_group or min(128, device.resident), device.max_work_group)
    # On a CPU device a chunk of rows keeps a core busy, so that the analysis kernel leaves no long rows to a whole work-group.
    requested = Analysis(group, index, device.resident > 1, device.portability)
    legal = requested.within(group, device.portability.lane_width)
    assert legal is not None  # a work-group has at least one work-item
    return legal


def _encode_bins(chain: Chain, bins: Bins, *, is_counted: bool) -> tuple[Any, tuple[np.uint32, np.uint32]]:
    """Return the analysis kernel's arguments: limits of bins (classes of rows), number of bins, first bin with a limit of span.

    ``is_counted``: whether memory is counted; the limits are then an array of the host, else one of the device. If no bin
    limits the span of columns, the last argument is the number of bins.
    """
    assert len(bins) <= Analysis.MAX_BINS  # all methods together have fewer
    limits = np.array(bins.limits, np.int64)
    limits[limits < 0] = _NO_LIMIT
    # A row of C whose number of intermediate products is written with b bits has at least 2^(b-1) products.
    starts = [int(np.argmax(limits[:, 0] >= (1 << bits) // 2)) for bits in range(33)]
    spanless = next((number for number, (*_, span) in enumerate(bins.limits) if span >= 0), len(bins))
    numbers = np.concatenate([starts, limits.ravel()]).astype(np.uint32)
    return numbers if is_counted else constants(chain.queue, numbers), (np.uint32(len(bins)), np.uint32(spanless))


def analyse(
    chain: Chain,
    shape: tuple[int, int],
    nnz: int,
    structure: Sequence[cl_array.Array],
    bins: Bins,
    work_group: int | None = None,
    *,
    uneven: bool = False,
) -> Analysed:
    """Count the products of each row of C, and assign the row to a bin (class of rows by size). Waits for the device once.

    Parameters
    ----------
    chain : Chain
        The commands of the product.
    shape : tuple of int
        Of C.
    nnz : int
        Entries of A.
    structure : sequence of pyopencl.array.Array
        indptr and indices of A and of B, of one dtype.
    bins : Bins
        The last takes all.
    work_group : int, optional
        Work-items in a work-group, if not those that suit the device.
    uneven : bool
        Whether several bins are likely to have rows: then these are listed at once.
    """
    n_rows, index, device = shape[0], structure[0].dtype, chain.device
    built, record = chain.build(_choose_record(device, name_of(index), work_group))
    sizes: tuple[Any, ...]
    groups, sizes = spread(device, n_rows, record.work_group)
    if record.teams:
        lanes = _choose_lanes(nnz / n_rows, record.lane_width)
        groups = min(-(-n_rows * lanes // record.work_group), 16 * device.compute_units)
        sizes = sizes[0], np.uint32(lanes), np.uint32(_MIN_LONG_PER_LANE * lanes)
    is_counted = current() is not None
    limits, numbers = chain.worked_out((bins, is_counted), lambda: _encode_bins(chain, bins, is_counted=is_counted))
    if is_counted:
        # Constants on the device would outlive the call: under a memory limit, the limits of bins are sent for this call alone.
        limits = chain.send(limits)
    products, bin_ = chain.scratch(n_rows, _UINT32), chain.scratch(n_rows, index)
    counters = chain.counters(_N_TOTALS + len(bins))
    chain.launch(built, groups, *sizes, np.uint64(shape[1]), limits, *numbers, *structure, products, bin_, counters)
    listed: list[cl_array.Array] = []
    if uneven:
        # If memory for the list of row numbers, bin by bin, is missing now, this list is made after the analysis, if at all.
        suffices(lambda: listed.append(_list_rows(chain, n_rows, bin_, len(bins))))
    # The totals of the analysis are read in one blocking read, faster than a read without blocking and a wait for its event.
    report: list[int] = chain.read(counters, _N_TOTALS + len(bins)).tolist()
    return Analysed(_work_of(report), products, bin_, listed[0] if listed else None)


def _work_of(report: list[int]) -> Work:
    """Return the work of a product (counts of products and rows of each bin) from what the analysis kernel reports."""
    totals = AnalysisTotals(*report[:_N_TOTALS])
    return Work(
        (totals.products_high << 32) + totals.products_low,
        totals.max_products,
        totals.longest_row,
        (totals.bound_high << 32) + totals.bound_low,
        totals.sampled / max(totals.sampled_entries, 1) if totals.sampled else 1.0,
        tuple(report[_N_TOTALS:]),
    )


def _list_rows(chain: Chain, n_rows: int, bin_: cl_array.Array, n_bins: int) -> cl_array.Array:
    """Enqueue the sort of row numbers by the bins that take the rows, and return sorted row numbers, ascending in a bin."""
    listed = chain.scratch(n_rows, bin_.dtype)
    run(chain, _enqueue_list, (bin_, listed), n_rows, n_bins)
    return listed


def _enqueue_list(chain: Chain, bin_: cl_array.Array, listed: cl_array.Array, n_rows: int, n_bins: int) -> None:
    """Enqueue the sort of the numbers of rows of C by the bin (class of rows) that takes each row."""
    enqueue_sort_by_key(chain, bin_, n_rows, n_bins, n_items=n_rows, sorted_items=listed)
