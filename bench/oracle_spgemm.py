"""The contestants of `bench.oracle` for SpGEMM: sixty configurations, of the search and drawn at random.

A configuration is a strategy and all thresholds. The search measures the declared strategies, and the thresholds one step away
from the profile's, then two steps, by each strategy in turn, as far as they make a product in other ways. Drawn are strategies of
any methods that a device has, in any order, with any limits, and any thresholds of those that the search may try. The untuned
configuration, which the generic profile holds, takes part, too.

The least of sixty times is less than the time of what is fastest, as each is measured with some noise. So the fastest is measured
again, beside ``auto`` alone.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._device.device import Device
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.bins import Setting
from clsparse_py._operations.spgemm.registry import METHODS
from clsparse_py._operations.spgemm.strategy import MERGING, TAKING_ALL, decide_strategy
from clsparse_py._operations.spgemm.thresholds import thresholds_of
from clsparse_py._tuner import descent
from clsparse_py._tuner.spgemm_tunable import CANDIDATES, SpgemmProblem, SpgemmTunable

# The question whose labels are whole products.
_WHOLE = "whole"
# The question that measures the fastest labels once more.
_AGAIN = "again"
# Kind of a configuration that the search of tuning tried.
_SEARCHED = "searched"
# Kind of a configuration drawn at random.
_DRAWN = "drawn"
#: Configurations on a matrix, of which at most half are of the search: on CPU devices few thresholds make a difference.
_CONFIGURATIONS = 60
#: Intermediate products of a product that takes part: sixty larger ones take minutes.
_MAX_PRODUCTS = {"cpu": 1 << 22, "gpu": 1 << 27}
#: Limits of rows that are merged, drawn independently: entries of a row, its products for a team and for a work-item.
_LIMITS = ((4, 8, 16, 32, 64, 128, 256), (1 << 10, 1 << 13, 1 << 16), (1 << 8, 1 << 10, 1 << 12))


class AllOfSpgemm(SpgemmTunable):
    """SpGEMM with two questions.

    The first takes ``auto``, the untuned configuration, those of the search and those drawn at random; the second ``auto`` and
    the fastest of these.
    """

    questions = (_WHOLE, _AGAIN)
    #: Questions measured as descents: so the untuned configuration is measured to the end, as ``auto`` is.
    descents = (_WHOLE,)

    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> SpgemmProblem:
        """Return the product of a matrix with itself or its transposed, as tuning does; smaller ones only.

        Raises
        ------
        ValueError
            If it takes too long, or is too small.
        """
        by_columns = np.bincount(matrix.indices, minlength=matrix.shape[1])
        rows = np.diff(matrix.indptr) if matrix.shape[0] == matrix.shape[1] else by_columns
        n_products, limit = int(by_columns @ rows), _MAX_PRODUCTS["gpu" if queue.device.type & cl.device_type.GPU else "cpu"]
        if n_products > limit:
            raise ValueError(f"{name}: has {n_products:,} products, over {limit:,}")
        return super().problem(queue, name, matrix, dtype)

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label that takes part to the end, as "untuned" does."""
        return "auto" if question in self.questions else super().default(device, dtype, question, features)

    def promising(
        self,
        device: Device,  # noqa: ARG002
        dtype: str,  # noqa: ARG002
        subject: SpgemmProblem,  # noqa: ARG002
        question: str,  # noqa: ARG002
        measured: Any,
        exhaustive: bool,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the fastest label of the first question."""
        (_, times), *_ = measured[_WHOLE]
        return ("auto", min(times, key=times.__getitem__))

    def around(self, device: Device, dtype: str, subject: SpgemmProblem, question: str, label: str) -> tuple[str, ...]:  # noqa: ARG002
        """Return the labels of all other configurations."""
        types = types_of(subject.A, subject.B)
        untuned, tuned = self.thresholds(device, dtype), thresholds_of(device, types).items()
        reached = descent.label_of({name: value for name, value in tuned.items() if value != untuned[name]})
        first = decide_strategy(device, types, subject.features).label
        strategies = tuple(dict.fromkeys((first, *self.configurations(device, dtype, "strategy"))))

        def steps() -> Iterator[str]:
            tried: dict[str, tuple[str, ...]] = dict.fromkeys(strategies, (reached,))
            for _ in range(2):
                for strategy, labels in tried.items():
                    result = self.steps(device, dtype, subject, strategy, labels)
                    tried[strategy] = (*labels, *result)
                    yield from (_label(strategy, label) for label in result)

        searched = itertools.chain((_label(strategy, descent.UNTUNED) for strategy in strategies), steps())
        of_search = [*itertools.islice(_distinct(searched), _CONFIGURATIONS // 2)]
        drawn = _distinct(_draws(subject.name, tuple(_methods(device, subject)), untuned))
        return (
            *(f"{_SEARCHED}: {label}" for label in of_search),
            *(f"{_DRAWN}: {label}" for label in itertools.islice(drawn, _CONFIGURATIONS - len(of_search))),
        )

    def prepare(self, subject: SpgemmProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:  # noqa: ARG002
        """Return what multiplies once."""
        if label == "auto":
            return self.run(subject)
        if label == descent.UNTUNED:
            return super().prepare(subject, "thresholds", descent.UNTUNED)
        strategy, thresholds = label.partition(": ")[2].split(" | ")
        return self.run(subject, strategy, thresholds)

    def choices(self, measured: Mapping[str, float]) -> dict[str, float]:
        """Return the best time of each choice that ``auto`` is compared with: untuned, found by the search, drawn."""
        result = {"untuned": measured[descent.UNTUNED]} if descent.UNTUNED in measured else {}
        for kind in (_SEARCHED, _DRAWN):
            of_kind = [seconds for label, seconds in measured.items() if label.startswith(f"{kind}: ")]
            if of_kind:
                result[f"the best of those {kind}"] = min(of_kind)
        return result


def _label(strategy: str, thresholds: str) -> str:
    return f"{strategy} | {thresholds}"


def _distinct(labels: Iterator[str]) -> Iterator[str]:
    """Iterate over labels, each once."""
    seen: set[str] = set()
    for label in labels:
        if label not in seen:
            seen.add(label)
            yield label


def _methods(device: Device, subject: SpgemmProblem) -> Iterator[str]:
    """Iterate over the methods that a device has bins of."""
    types = types_of(subject.A, subject.B)
    return (name for name, bins in METHODS.items() if bins(Setting(device, types, thresholds_of(device, types))))


def _draws(name: str, methods: tuple[str, ...], untuned: Mapping[str, float]) -> Iterator[str]:
    """Iterate over configurations drawn at random, the same for a matrix on each run."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    first, last = ([method for method in methods if (method in TAKING_ALL) == taking] for taking in (False, True))
    while True:
        entries = [*rng.permutation(first)[: rng.integers(4)], rng.choice(last)]
        limited = (
            f"{entry}:{':'.join(str(rng.choice(of)) for of in _LIMITS)}" if entry in MERGING else entry for entry in entries
        )
        # A number outside of its candidates switches something off, and stays.
        on = (name for name, values in CANDIDATES.items() if values[0] <= untuned[name] <= values[-1])
        drawn = {threshold: float(rng.choice(CANDIDATES[threshold])) for threshold in on}
        changes = {name: value for name, value in drawn.items() if value != untuned[name]}
        yield _label(" ".join(limited), descent.label_of(changes))
