"""Divide: which device takes which rows, by a model of two numbers a device. No device is asked here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clsparse_py.records import dataclass

__all__ = ["Division", "Load", "Speed", "divide", "rows_by_device"]

#: Devices share a product if that is expected to take less than this of the fastest one's time.
_PAYS = 0.95
#: A device is throughput-oriented beside another that moves bytes at most this times as fast, and launches in at most this of its
#: time: one numbers-only reading of "CPU" and "GPU" (Hou, Feng and Che, Section VI).
_OTHER_KIND = 0.5
#: Rows are divided by length if the longest has this many times the mean entries.
_UNEVEN = 16.0


@dataclass(frozen=True)
class Speed:
    """The two numbers of a device, and those of the way to it.

    Attributes
    ----------
    bytes_per_second : float
        At which products move a matrix.
    seconds_per_launch : float
        Of a product that moves next to nothing, from NumPy's vectors to NumPy's: what the host does for it counts.
    link_bytes_per_second : float
        Between the host's memory and the device's own; infinite if they are one.
    """

    bytes_per_second: float
    seconds_per_launch: float
    link_bytes_per_second: float = float("inf")


@dataclass(frozen=True)
class Load:
    """What a product moves, in bytes: A; x and y, which travel to devices that the operands are not on."""

    matrix: int
    x: int
    y: int


@dataclass(frozen=True)
class Division:
    """Which share of A's bytes each device takes, and the seconds that this and its alternatives are expected to take.

    Attributes
    ----------
    shares : tuple of float
        One a device, in their order; together 1.
    seconds : float
        Of the product so divided.
    alone : tuple of float
        Of the product on each device alone.
    together : float
        Of the devices' speeds what is left if they work at the same time.
    by_length : bool
        Whether the longest rows go to the device that launches fastest, in place of equal stretches of rows in order.
    """

    shares: tuple[float, ...]
    seconds: float
    alone: tuple[float, ...]
    together: float
    by_length: bool = False

    def all_to(self, device: int) -> Division:
        """Return the division that gives one device all."""
        return Division(_all_to(device, len(self.shares)), self.alone[device], self.alone, self.together)


def _all_to(device: int, n: int) -> tuple[float, ...]:
    return tuple(float(at == device) for at in range(n))


def divide(speeds: Sequence[Speed], load: Load, together: float = 1.0, home: int | None = None, uneven: float = 1.0) -> Division:
    """Divide a product between devices so that they are expected to end at the same time; one takes all if that is as fast.

    Parameters
    ----------
    speeds : sequence of Speed
        In the order in which devices are launched.
    load : Load
    together : float
        Of the speeds what is left if all work at the same time.
    home : int or None
        The device whose memory x and y are in; None: the host's.
    uneven : float
        Entries of the longest row by the mean.
    """
    alone = tuple(each.seconds_per_launch + load.matrix / each.bytes_per_second + _way(speeds, load, at, home, 1.0)
                  for at, each in enumerate(speeds))  # fmt: skip
    best = min(range(len(speeds)), key=alone.__getitem__)
    shares, seconds = _level(speeds, load, together, home)
    if sum(share > 0 for share in shares) < 2 or seconds >= _PAYS * alone[best]:
        return Division(_all_to(best, len(speeds)), alone[best], alone, together)
    used = [speed for speed, share in zip(speeds, shares, strict=True) if share]
    fast, quick = max(used, key=lambda each: each.bytes_per_second), min(used, key=lambda each: each.seconds_per_launch)
    of_two_kinds = (
        quick.bytes_per_second <= _OTHER_KIND * fast.bytes_per_second
        and quick.seconds_per_launch <= _OTHER_KIND * fast.seconds_per_launch
    )
    return Division(shares, seconds, alone, together, by_length=of_two_kinds and uneven >= _UNEVEN)


def _way(speeds: Sequence[Speed], load: Load, at: int, home: int | None, share: float) -> float:
    """Return the seconds in which x and a share of y travel between a device and where the operands are."""
    if at == home:
        return 0.0
    n_bytes = load.x + share * load.y
    links = [speeds[at].link_bytes_per_second] + ([speeds[home].link_bytes_per_second] if home is not None else [])
    return float(sum(n_bytes / link for link in links))


def _level(speeds: Sequence[Speed], load: Load, together: float, home: int | None) -> tuple[tuple[float, ...], float]:
    """Return shares with which all devices that take part end at the same time, and that time.

    Devices are launched one after another, so that each begins later by the launches before it; y is taken to travel in
    proportion to their speeds.
    """
    part = list(range(len(speeds)))
    while True:
        total = sum(speeds[at].bytes_per_second for at in part)
        begins, begin = {}, 0.0
        for at in part:
            begin += speeds[at].seconds_per_launch
            begins[at] = begin + _way(speeds, load, at, home, speeds[at].bytes_per_second / total)
        end = (load.matrix / together + sum(speeds[at].bytes_per_second * begins[at] for at in part)) / total
        late = [at for at in part if begins[at] >= end]
        if not late or len(part) == 1:
            break
        part.remove(max(late, key=begins.__getitem__))
    taken = {at: speeds[at].bytes_per_second * (end - begins[at]) for at in part}
    whole = sum(taken.values()) or 1.0
    return tuple(taken.get(at, 0.0) / whole for at in range(len(speeds))), end


def rows_by_device(
    division: Division, indptr: np.ndarray[Any, Any], speeds: Sequence[Speed], entry_bytes: int, row_bytes: int
) -> list[slice | np.ndarray[Any, Any]]:
    """Return the rows of each device that has a share: stretches of rows in order, or lists of rows if they go by length.

    Parameters
    ----------
    division : Division
    indptr : numpy.ndarray
    speeds : sequence of Speed
        Those that were divided by.
    entry_bytes, row_bytes : int
        What an entry and a row weigh.
    """
    used = [at for at, share in enumerate(division.shares) if share]
    if not division.by_length:
        weights = indptr.astype(np.int64) * entry_bytes + np.arange(indptr.size) * row_bytes
        cuts = _cuts(weights, [division.shares[at] for at in used])
        found: dict[int, Any] = {at: slice(*cut) for at, cut in zip(used, cuts, strict=True)}
    else:
        lengths = np.diff(indptr).astype(np.int64)
        # The longest rows first, by powers of two: rows of one bin stay in order.
        order = np.argsort(-np.frexp(np.maximum(lengths, 0.5))[1], kind="stable")
        weights = np.concatenate(([0], np.cumsum(lengths[order] * entry_bytes + row_bytes)))
        quickest = sorted(used, key=lambda at: speeds[at].seconds_per_launch)
        cuts = _cuts(weights, [division.shares[at] for at in quickest])
        found = {at: np.sort(order[begin:end]) for at, (begin, end) in zip(quickest, cuts, strict=True)}
    return [found.get(at, slice(0, 0)) for at in range(len(division.shares))]


def _cuts(weights: np.ndarray[Any, Any], shares: Sequence[float]) -> list[tuple[int, int]]:
    """Return where each share of the rows begins and ends, given the weight of all rows before each, and of all."""
    ends = np.searchsorted(weights, np.cumsum(shares)[:-1] * weights[-1]).tolist()
    return list(zip([0, *ends], [*ends, weights.size - 1], strict=True))
