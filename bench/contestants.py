"""The interface between the runner and whoever computes a product: the library itself, and its peers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.problem import Array, Problem

# How many products are enqueued back to back for one sample, and how long a sample may take before there are fewer.
BACK_TO_BACK = 20
LONGEST_SAMPLE = 0.4


class Prepared(ABC):
    """A contestant that holds one problem's operands and can compute its product again and again.

    Attributes
    ----------
    detail
        What was chosen to compute it: an algorithm, a plan.
    once
        Seconds of what is done once a matrix: ``transfer``, ``plan``, ``first_call``, whichever there are.
    """

    detail: str = ""

    def __init__(self) -> None:
        self.once: dict[str, float] = {}

    @abstractmethod
    def poison(self) -> None:
        """Overwrite the result with NaN, so that a product that writes nothing is found out."""

    @abstractmethod
    def sample(self, repeat: int) -> dict[str, float]:
        """Compute products and return seconds a product, by way of timing; ``back_to_back`` is always among them.

        ==============  ================================================================================================
        back_to_back    ``repeat`` products in a row, start to finish, divided by ``repeat``
        single          one product on the device, its first start to its last end
        host            one call that does not wait
        wall            one call that waits
        ==============  ================================================================================================
        """

    @abstractmethod
    def result(self) -> Array:
        """Return what the last product left."""


@dataclass(frozen=True)
class Contestant:
    """Somebody who can compute a product.

    Attributes
    ----------
    name
        ``family`` or ``family/variant``.
    prepare
        Takes a problem, and returns it ready to be computed.
    """

    name: str
    prepare: Callable[[Problem], Prepared]


class HostPrepared(Prepared):
    """A product computed by a blocking call on NumPy arrays.

    Parameters
    ----------
    problem
        What to compute.
    product
        Computes it and returns the result, which may be a new array or one that it keeps.
    """

    def __init__(self, problem: Problem, product: Callable[[], Array], detail: str = "") -> None:
        super().__init__()
        self.detail = detail
        self._product = product
        self._result = np.full(problem.reference.shape, np.nan, problem.dtype)
        self.once["first_call"] = seconds_of(self._once)

    def _once(self) -> None:
        self._result = self._product()

    def poison(self) -> None:
        """Overwrite the result with NaN."""
        self._result.fill(np.nan)

    def sample(self, repeat: int) -> dict[str, float]:
        """Time ``repeat`` calls in a row."""
        return {"back_to_back": seconds_of(self._once, repeat)}

    def result(self) -> Array:
        """Return what the last product left."""
        return self._result


def seconds_of(action: Callable[[], object], repeat: int = 1) -> float:
    """Return the wall-clock seconds of one ``action``, from ``repeat`` in a row."""
    start = time.perf_counter()
    for _ in range(repeat):
        action()
    return (time.perf_counter() - start) / repeat


def products_a_sample(seconds: float) -> int:
    """Return how many products of this many seconds make a sample."""
    return int(np.clip(LONGEST_SAMPLE / max(seconds, 1e-9), 1, BACK_TO_BACK))
