"""Bins of which a kernel is refused: the rows that they would take go to other bins."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from clsparse_py._spgemm.bins import Bin, Bins
from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py._spgemm.methods.dense import CHUNKED, FILLED
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.long_rows import LongRows
from clsparse_py._spgemm.strategy import auto, decided, is_narrow
from clsparse_py.device import Device

__all__ = ["without_refused"]


def without_refused(
    bins: Bins, refused: Collection[Hashable], device: Device, types: KernelTypes, n_columns: int, room: int
) -> Bins:
    """Return bins for the same rows with other accumulators for those with a refused kernel; the bins if none is refused.

    ``room``: bytes that the workspace may have.
    """
    return _without(bins, frozenset(refused), device, types, n_columns, room) if refused else bins


# Kept: bins are compared by identity, and results of the analysis are kept by them.
@functools.lru_cache(maxsize=256)
def _without(bins: Bins, refused: frozenset[Hashable], device: Device, types: KernelTypes, n_columns: int, room: int) -> Bins:
    last = (Bin("esc", Esc(bounded=True)), Bin("long-rows", LongRows(bounded=True)), FILLED)
    others = (*bins, *auto(device, types, decided(device, types).value), *last, CHUNKED)
    narrow = is_narrow(types, n_columns, room)
    able = [
        bin_
        for bin_ in others
        if bin_.accumulator and bin_.accumulator not in refused and bin_.holds(n_columns, room, narrow=narrow)
    ]
    return Bins(_replaced(bin_, able) if bin_.accumulator in refused else bin_ for bin_ in bins)


def _replaced(bin_: Bin, others: Sequence[Bin]) -> Bin:
    """Return a bin for the same rows that one of some others can take; the bin itself if none can."""
    taker = next((other for other in others if other.covers(bin_)), bin_)
    return replace(taker, max_products=bin_.max_products, max_length=bin_.max_length, max_span=bin_.max_span)
