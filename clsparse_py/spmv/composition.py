"""From times of kernels on the rows of bins to kernels for all bins of a scheme, and to what the scheme is likely to take."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clsparse_py.spmv.binning import N_BINS, Scheme, Side

__all__ = ["CLASSES", "Composer", "class_of", "loads"]

#: Bins that are measured together: their rows have about as many entries.
CLASSES = ((0, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, N_BINS - 1), (N_BINS - 1, N_BINS))


@functools.cache
def class_of(number: int) -> int:
    """Return which of `CLASSES` a bin belongs to."""
    return next(i for i, (_, end) in enumerate(CLASSES) if number < end)


_CLASS_OF_BIN = np.array([class_of(number) for number in range(N_BINS)])


def loads(lengths: np.ndarray[Any, Any], side: Side) -> np.ndarray[Any, Any]:
    """Return how much a side of a scheme has of each class of bins: entries and rows, added up.

    Parameters
    ----------
    lengths : numpy.ndarray
        Of the rows.
    side : Side
        See ``templates/spmv/binning.mako``.
    """
    n_rows = lengths.size
    work = np.add.reduceat(lengths, np.arange(0, n_rows, side.granularity)) if side.granularity > 1 else lengths
    classes = _CLASS_OF_BIN[np.minimum(work // side.granularity, N_BINS - 1)]
    weights = work + side.granularity
    if side.threshold >= 0:
        blocks = np.add.reduceat(lengths, np.arange(0, n_rows, side.block))
        long_rows = np.repeat(blocks >= side.threshold * side.block, side.block // side.granularity)[: work.size]
        weights = np.where(long_rows == bool(side.side), weights, 0)
    return np.bincount(classes, weights, len(CLASSES))


@dataclass(frozen=True)
class Composer:
    """Composes schemes from what was measured of the bins of one matrix.

    Attributes
    ----------
    lengths : numpy.ndarray
        Of the matrix's rows.
    best : mapping of (int, int) to (str, float)
        By granularity and class of bins: the fastest label, and seconds for each entry and row.
    """

    lengths: np.ndarray[Any, Any]
    best: Mapping[tuple[int, int], tuple[str, float]]

    @classmethod
    def of(cls, lengths: np.ndarray[Any, Any], measured: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> Composer:
        """Return the composer for what was measured: features of bins, and seconds by label."""
        best = {}
        weights: dict[int, np.ndarray[Any, Any]] = {}
        for features, times in measured:
            if not times:
                continue
            granularity, of = int(features["granularity"]), class_of(int(features["bin"]))
            if granularity not in weights:
                scheme = Scheme("coarse", granularity) if granularity > 1 else Scheme("fine")
                weights[granularity] = loads(lengths, scheme.sides[0])
            label = min(times, key=times.__getitem__)
            best[granularity, of] = label, times[label] / max(weights[granularity][of], 1.0)
        return cls(lengths, best)

    def label(self, side: Side, number: int) -> str | None:
        """Return the fastest label for a bin, by that of its class at the nearest granularity; None where none was measured."""
        found = self._nearest(side.granularity, class_of(number))
        return found[0] if found else None

    def seconds(self, scheme: Scheme) -> float:
        """Return what a scheme with bins is likely to take; infinite where nothing was measured."""
        if not self.best:
            return math.inf
        usual = float(np.median([rate for _, rate in self.best.values()]))
        total = 0.0
        for side in scheme.sides:
            for of, weight in enumerate(loads(self.lengths, side)):
                found = self._nearest(side.granularity, of)
                total += weight * (found[1] if found else usual)
        return total

    def _nearest(self, granularity: int, of: int) -> tuple[str, float] | None:
        known = [each for each, number in self.best if number == of]
        if not known:
            return None
        return self.best[min(known, key=lambda each: abs(math.log(each / granularity))), of]
