"""Ways of doing the same, measured in turns."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

__all__ = ["times_in_turns"]

#: Rounds that are measured at least.
_ROUNDS = 5


def times_in_turns(calls: Sequence[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Return the seconds of calls that take turns, five or more of each, after a round that may build kernels.

    The order changes from round to round, as what runs before a call decides what caches hold and which cores are awake.

    Parameters
    ----------
    calls : sequence of callable
        Each returns when it is done.
    seconds : float
        That all of them may take together; five rounds are measured if it is less.
    """
    order, found = list(range(len(calls))), [list[float]() for _ in calls]
    shuffle = random.Random(0).shuffle
    for call in calls:
        call()
    end = time.monotonic() + seconds
    while len(found[0]) < _ROUNDS or time.monotonic() < end:
        shuffle(order)
        for at in order:
            begin = time.perf_counter()
            calls[at]()
            found[at].append(time.perf_counter() - begin)
    return found
