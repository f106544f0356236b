"""From times of kernels on the rows of bins to kernels for all bins of a scheme, and to the likely time of the scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spmv.binning import N_BINS, Scheme, Side

__all__ = ["CLASSES", "Composer", "Loads", "class_of"]

#: Classes of SpMV's bins of rows that are measured together, as (first bin, last bin plus 1): rows of about equal lengths.
CLASSES = ((0, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, N_BINS - 1), (N_BINS - 1, N_BINS))


def class_of(number: int) -> int:
    """Return the index in `CLASSES` of the class that has the bin (rows of one length) of this number."""
    return next(i for i, (_, end) in enumerate(CLASSES) if number < end)


#: For each bin (rows of one length), in the order of the bins' numbers: the index in `CLASSES` of the bin's class.
_CLASS_OF_BIN = np.array([class_of(number) for number in range(N_BINS)])


class Loads:
    """The load of each class of SpMV's bins under each binning scheme: entries plus rows.

    Parameters
    ----------
    lengths : numpy.ndarray
        Of a matrix's rows.
    """

    def __init__(self, lengths: np.ndarray[Any, Any]) -> None:
        self.lengths = lengths
        self._blocks: dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}

    def of(self, side: Side) -> np.ndarray[Any, Any]:
        """Return, for each class of bins, the load (entries plus rows) of its virtual rows in the set that ``side`` describes."""
        if side.block == 1:
            return np.bincount(_classify(self.lengths), self.lengths + 1.0, len(CLASSES))
        entries, fine = self._sum_blocks(side.block)
        is_in_side = np.ones(entries.size, bool)
        if side.threshold >= 0:
            is_in_side = (entries >= side.threshold * side.block) == bool(side.side)
        if side.granularity == 1:
            loads: np.ndarray[Any, Any] = fine[is_in_side].sum(axis=0)
            return loads
        return np.bincount(_classify(entries // side.block), np.where(is_in_side, entries + side.block, 0), len(CLASSES))

    def _sum_blocks(self, size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return, for each block of ``size`` adjacent rows, its entries, and its load (entries plus rows) by length class."""
        if size not in self._blocks:
            # The entries of large blocks of rows are counted as sums over smaller blocks: single rows are summed once.
            smaller = max((block for block in self._blocks if size % block == 0), default=0)
            if smaller:
                begins = np.arange(0, self._blocks[smaller][0].size, size // smaller)
                entries, fine = (np.add.reduceat(block, begins, axis=0) for block in self._blocks[smaller])
            else:
                begins = np.arange(0, self.lengths.size, size)
                entries = np.add.reduceat(self.lengths, begins)
                cells = np.arange(self.lengths.size) // size * len(CLASSES) + _classify(self.lengths)
                fine = np.bincount(cells, self.lengths + 1.0, begins.size * len(CLASSES)).reshape(begins.size, len(CLASSES))
            self._blocks[size] = entries, fine
        return self._blocks[size]


def _classify(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the indices in `CLASSES` (classes of bins) of rows with the given numbers of entries."""
    classes: np.ndarray[Any, Any] = _CLASS_OF_BIN[np.minimum(numbers, N_BINS - 1)]
    return classes


@dataclass(frozen=True)
class Composer:
    """Composes binning schemes of SpMV from measurements of the bins of one matrix.

    Attributes
    ----------
    loads : Loads
    best : mapping of (int, int) to (str, float)
        By granularity and class of bins: the fastest label, and seconds for each entry and row.
    """

    loads: Loads
    best: Mapping[tuple[int, int], tuple[str, float]]

    @classmethod
    def of(cls, loads: Loads, measurements: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> Composer:
        """Return the composer of binning schemes for measurements: pairs of a bin's features and kernels' seconds by label."""
        best = {}
        for features, times in measurements:
            if not times:
                continue
            granularity, row_class = int(features["granularity"]), class_of(int(features["bin"]))
            scheme = Scheme("coarse", granularity) if granularity > 1 else Scheme("fine")
            label = min(times, key=times.__getitem__)
            best[granularity, row_class] = label, times[label] / max(loads.of(scheme.sides[0])[row_class], 1.0)
        return cls(loads, best)

    def label(self, side: Side, number: int) -> str | None:
        """Return the label of the fastest SpMV kernel for a bin's class at the nearest granularity; None if none was measured."""
        nearest = self._nearest(side.granularity, class_of(number))
        return nearest[0] if nearest else None

    def seconds(self, scheme: Scheme) -> float:
        """Return the expected seconds of an SpMV product by a binning scheme; infinite if no kernel of any bin was measured."""
        if not self.best:
            return math.inf
        usual = float(np.median([rate for _, rate in self.best.values()]))
        total = 0.0
        for side in scheme.sides:
            for row_class, weight in enumerate(self.loads.of(side)):
                nearest = self._nearest(side.granularity, row_class)
                total += weight * (nearest[1] if nearest else usual)
        return total

    def _nearest(self, granularity: int, row_class: int) -> tuple[str, float] | None:
        """Return a bin class's fastest kernel at the nearest granularity, and its seconds an entry or row; None if unmeasured."""
        granularities = [other for other, number in self.best if number == row_class]
        if not granularities:
            return None
        return self.best[min(granularities, key=lambda other: abs(math.log(other / granularity))), row_class]
