"""Tunables of SpGEMM: the strategy (methods by rows), and thresholds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._decisions.profiles import default
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.errors import BuildError
from clsparse_py._matrix.matrix import Structure
from clsparse_py._operations.spgemm.analysis import Work, analyse
from clsparse_py._operations.spgemm.bin_choice import NAMES, BinFeatures, ProductFeatures
from clsparse_py._operations.spgemm.bins import Bins
from clsparse_py._operations.spgemm.count import count
from clsparse_py._operations.spgemm.decide import decide, speculation_for
from clsparse_py._operations.spgemm.features import Features
from clsparse_py._operations.spgemm.operands import operands_of
from clsparse_py._operations.spgemm.pipeline import multiply
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.row_partition import partition_of, refine
from clsparse_py._operations.spgemm.strategy import GIVEN, LAST, Choice, Strategy, parse, parse_choice
from clsparse_py._operations.spgemm.thresholds import Thresholds, override_thresholds
from clsparse_py._operations.spgemm.timer import UNTIMED
from clsparse_py._operations.spgemm.upper_bound import upper_bound_fits
from clsparse_py._tuner import descent
from clsparse_py._tuner.tunable import Tunable

__all__ = ["CANDIDATES", "SpgemmProblem", "SpgemmTunable"]

#: Most products of a row that a team merges.
_MERGED = 1 << 16
#: Most products of a row that a single work-item merges.
_ALONE = 1 << 10
#: Strategy templates and merge limits (entries of a row of A, 0: no merge) to try. Keys, as in the tables below: whether a
#: compute unit holds several work-items at a time.
_METHODS = {
    True: (
        ("reg-sort dense-span {} esc", (256, 0, 64)),
        ("reg-sort {} esc", (256,)),
        ("reg-sort dense-span {} large-hash long-rows", (0, 256)),
        ("dense-span {} reg-hash large-hash long-rows", (0,)),
        ("{} reg-hash large-hash long-rows", (0,)),
        ("reg-sort dense-span {} esc-local", (0, 256)),
        ("reg-sort dense-span {} hash esc-local", (0,)),
        ("reg-sort {} esc-local", (0,)),
        ("esc-local", (0,)),
    ),
    False: (("{} dense esc", (0, 4, 8, 16)), ("hash dense esc", (0,)), ("esc", (0,))),
}
#: Most entries of a matrix that is measured.
_MAX_NNZ = {True: 10**7, False: 10**6}
#: Most intermediate products of a product that is measured.
_MAX_PRODUCTS = {True: 1 << 31, False: 1 << 27}
#: Values of the thresholds that the search tries, each beside those of the others where it stands.
CANDIDATES: dict[str, tuple[float, ...]] = {
    "max_small_products": (1 << 14, 1 << 15, 1 << 16, 1 << 17),
    "max_small_lanes": (1, 4, 8, 16),
    "max_small_items": (8, 16, 32),
    "max_item_length": (6, 12, 16, 24),
    "max_item_products": (1 << 8, 1 << 10, 1 << 12),
    "max_item_steps": (1 << 9, 1 << 10, 1 << 11, 1 << 12),
    "max_light_length": (12, 16, 24, 32),
    "max_speculative_length": (128, 256, 512, 1024),
    "max_speculative_work": (1 << 32, 1 << 34, 1 << 36),
    "max_longest_by_mean": (1.5, 2, 3, 4),
    "min_adjacent_share": (0.1, 0.25, 0.5),
    "min_staged_share": (0.1, 0.25, 0.5),
    "min_listed_by_mean": (1, 2, 4, 16),
    "min_merged_compression": (2, 3, 4, 6),
    "max_joined_rows": (1 << 8, 1 << 10, 1 << 12),
    "max_joined_places": (1 << 19, 1 << 21, 1 << 23),
    "max_side_groups": (1, 4, 16),
    "max_upper_compression": (1.1, 1.25, 1.5, 2, 4, 16),
    "max_upper_mean": (8, 16, 32, 128, 512),
    "expected_fill": (0.25, 0.5, 1),
    "esc_item_products": (8, 16, 32),
    "esc_team_products": (368, 736, 1472),
    "esc_group_products": (3072, 6144, 12288),
    "sort_items": (2, 4, 8),
    "merge_items": (4, 8, 16),
    "min_merge_items": (2, 4, 8),
    "merge_item_length": (8, 16, 32),
    "max_merge_lanes": (8, 16, 32),
    "max_hash_products": (256, 512, 1024),
    "max_walked_products": (512, 1024, 2048, 4096, 8192),
    "hash_items": (2, 4, 8, 16),
    "large_hash_lanes": (64, 128, 256),
    "large_hash_items": (2, 4, 8),
    "max_slots": (1024, 2048, 4096),
    "min_span": (256, 512, 1024),
    "max_span": (2048, 4096, 8192),
    "min_paired_span": (1024, 2048, 4096),
    "span_entries": (32, 64, 128),
    "span_loads": (1, 2, 4),
}
#: Accumulators to try for a bin in place of the strategy's.
_CHOICES = {
    True: (GIVEN, LAST, "reg-merge:together", "hash", "reg-hash", "large-hash", "dense-windows", "esc-local", "esc"),
    False: (GIVEN, LAST, "reg-merge:together", "hash", "dense", "dense-windows", "esc"),
}
#: Most bins of a product that are measured.
_MAX_BINS = 3


def _labels(*, several: bool) -> tuple[str, ...]:
    """Return the labels of the declared strategies."""
    merged = {
        longest: f"reg-merge:{longest}:{_MERGED}:{_ALONE}" if longest else ""
        for _, lengths in _METHODS[several]
        for longest in lengths
    }
    return tuple(
        " ".join(methods.format(merged[longest]).split()) for methods, lengths in _METHODS[several] for longest in lengths
    )


@dataclass
class BinOfProduct:
    """A bin of a sparse product, whose accumulator is in question.

    Attributes
    ----------
    number : int
        Among those of the untuned strategy.
    labels : tuple of str
        The choices by which other accumulators make the rows, each other way once.
    """

    number: int
    labels: tuple[str, ...]


@dataclass
class SpgemmProblem:
    """A product of sparse matrices to be measured.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    host : tuple of scipy.sparse.csr_array
        Both operands.
    A, B : csr_array
        The same on the device.
    features : dict of str to float
        What is known before the analysis.
    bin : BinOfProduct, optional
        The bin that is asked about, if one is.
    C : csr_array, optional
        What the last run made.
    """

    name: str
    queue: cl.CommandQueue
    host: tuple[Any, Any]
    A: csr_array
    B: csr_array
    features: dict[str, float]
    bin: BinOfProduct | None = None
    C: csr_array | None = field(default=None, repr=False)

    @functools.cached_property
    def applied(self) -> tuple[Any, Any, Any]:
        """A vector, the product applied to it, and the same with the absolute values of all numbers."""
        first, second = (factor.astype(np.float64) for factor in self.host)
        x = np.random.default_rng(1).random(second.shape[1]).astype(self.A.dtype)
        return x, first @ (second @ x), abs(first) @ (abs(second) @ x)


def _with_most_work(bins: Bins, work: Work) -> list[int]:
    """Return the numbers of the bins with most of the products, as far as their limits tell."""
    products = [
        n * min(bin_.max_products or work.max_products, work.max_products) for bin_, n in zip(bins, work.taken, strict=True)
    ]
    ranked = sorted(range(1, len(bins)), key=products.__getitem__, reverse=True)[:_MAX_BINS]
    return [number for number in ranked if products[number] > SpgemmTunable.min_share * sum(products)]


class SpgemmTunable(Tunable[SpgemmProblem]):
    """SpGEMM as the tuner takes it, see `tunable.Tunable`: a matrix times itself or, if not square, its transposed."""

    operation = "spgemm"
    questions = ("bin", "strategy", "thresholds")
    descents = ("thresholds",)
    waits = True
    #: Least multiplications of a product that is tuned with: smaller ones measure the host.
    min_products: ClassVar[int] = 1 << 15
    #: Most bytes of an intermediate product, in C and workspace.
    product_bytes: ClassVar[int] = 48
    #: Least share of all multiplications for a bin to be measured.
    min_share: ClassVar[float] = 0.1

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the real dtypes that the device computes with: accumulators differ by their size."""
        return ("float32", "float64") if device.fp64 else ("float32",)

    @override
    def largest(self, device: Device) -> int:
        """Return how many nonzeros are worth trying: a product has many times more."""
        return min(_MAX_NNZ[device.resident > 1], device.global_memory // (16 * self.product_bytes))

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> SpgemmProblem:
        """Return the problem of multiplying a matrix with itself or, where it is not square, with its transposed.

        Raises
        ------
        MemoryError
            The device has no room for the product.
        ValueError
            It is so small that one bin makes it all, or so large that it would take too long.
        """
        first = matrix.astype(dtype)
        second = first if first.shape[0] == first.shape[1] else first.T.tocsr()
        device, n_products = describe(queue.device), int(np.diff(second.indptr)[first.indices].sum(dtype=np.int64))
        if n_products <= self.min_products:
            raise ValueError(f"{name}: has so few products, {n_products:,}, that one bin makes all rows")
        if n_products > _MAX_PRODUCTS[device.resident > 1]:
            raise ValueError(f"{name}: has {n_products:,} products, which take long")
        if n_products * self.product_bytes > device.global_memory // 2:
            raise MemoryError(f"{name}: {n_products:,} products may need more memory than {device.name} has")
        A = csr_array(first, queue=queue)
        B = A if second is first else csr_array(second, queue=queue)
        entry_bytes = B.dtype.itemsize + B.indices.dtype.itemsize
        features = Features((*first.shape, second.shape[1]), (first.nnz, second.nnz), A.facts, B.facts, entry_bytes)
        return SpgemmProblem(name, queue, (first, second), A, B, features.by_name(device))

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the declared strategies, whose last methods take what a device has no room for, or a descent's first steps."""
        if question == "thresholds":
            return descent.UNTUNED, *descent.neighbours(descent.UNTUNED, self.thresholds(device, dtype), CANDIDATES)
        if question == "bin":
            return _CHOICES[device.resident > 1]
        return _labels(several=device.resident > 1)

    @override
    def subjects(self, problem: SpgemmProblem, question: str) -> Sequence[SpgemmProblem]:
        """Return the product; of "bin" the bins with most of the work that other accumulators could make, too."""
        if question != "bin":
            return (problem,)
        device, dtype = describe(problem.queue.device), problem.A.dtype.name
        request = Request(strategy=parse(self.default(device, dtype, "strategy", problem.features)))
        with override_thresholds(self._changed(device, dtype, descent.UNTUNED)):
            operands = operands_of(problem.A, problem.B, request)
            features, product = operands.features, operands.product
            kind = product.kind
            if speculation_for(kind, features) is not None:
                return ()
            decision = decide(kind, features, request, operands.budget)
            work = analyse(operands.chain, product.shape, operands.a.nnz, product.structure, decision.bins).work
            operands.chain.finish()

            def shares(choices: Mapping[int, Choice]) -> object:
                shares_of_bins = refine(kind, features, decision._replace(choices=choices), work, operands.budget).shares
                return [(bin_.accumulator, n) for bin_, n in shares_of_bins]

            shared, subjects = ProductFeatures(kind, features, decision.bins, work), []
            for number in _with_most_work(decision.bins, work):
                # The unchanged choices come first, as labels with equal effect are measured once.
                ways = {str(shares({number: parse_choice(GIVEN)})): GIVEN}
                for label in _CHOICES[device.resident > 1]:
                    ways.setdefault(str(shares({number: parse_choice(label)})), label)
                if len(ways) > 1:
                    features_of_bin = BinFeatures(shared, number)
                    of_bin = BinOfProduct(number, tuple(ways.values()))
                    subjects.append(replace(problem, features={name: features_of_bin[name] for name in NAMES}, bin=of_bin))
            return subjects

    @override
    def promising(
        self,
        device: Device,
        dtype: str,
        subject: SpgemmProblem,
        question: str,
        measured: Mapping[str, Sequence[tuple[Mapping[str, float], Mapping[str, float]]]],
        exhaustive: bool,
    ) -> tuple[str, ...]:
        """Return the labels by which a product, or a bin of it, is made in different ways."""
        if subject.bin is not None:
            return subject.bin.labels
        return super().promising(device, dtype, subject, question, measured, exhaustive)

    def thresholds(self, device: Device, dtype: str) -> Mapping[str, float]:
        """Return the thresholds of the closest shipped profiles."""
        return Thresholds.untuned(device, dtype).items()

    def _changed(self, device: Device, dtype: str, label: str) -> Thresholds:
        return Thresholds.from_values({**self.thresholds(device, dtype), **descent.changes_of(label)})

    @override
    def around(self, device: Device, dtype: str, subject: SpgemmProblem, question: str, label: str) -> tuple[str, ...]:
        """Return the labels by which other bins make the rows, or in another way, than by a label, each other way once."""
        return self.steps(device, dtype, subject, self.default(device, dtype, "strategy", subject.features), (label,))

    def steps(self, device: Device, dtype: str, subject: SpgemmProblem, strategy: str, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the labels of thresholds one step away from some labels by which a strategy makes the product in other ways."""
        works: dict[tuple[tuple[int, int, int], ...], Work] = {}
        request = Request(strategy=parse(strategy))
        untuned = self.thresholds(device, dtype)
        ways, steps = [self._way(device, dtype, subject, request, label, works) for label in labels], []
        for neighbour in dict.fromkeys(
            neighbour for label in labels for neighbour in descent.neighbours(label, untuned, CANDIDATES)
        ):
            with suppress(BuildError, MemoryError, ValueError, cl.Error):
                way = self._way(device, dtype, subject, request, neighbour, works)
                if way not in ways:
                    ways.append(way)
                    steps.append(neighbour)
        return tuple(steps)

    def _way(
        self,
        device: Device,
        dtype: str,
        subject: SpgemmProblem,
        request: Request,
        label: str,
        works: dict[tuple[tuple[int, int, int], ...], Work],
    ) -> object:
        """Return the number of rows of each accumulator under some thresholds, and the reason for the strategy.

        ``works`` keeps what the analysis found by the limits of bins: what is decided by it takes no device.
        """
        with override_thresholds(self._changed(device, dtype, label)):
            operands = operands_of(subject.A, subject.B, request)
            features, product = operands.features, operands.product
            kind = product.kind
            if speculation_for(kind, features) is not None:
                # Only the symbolic phase tells whether it holds.
                counts = count(operands, request, UNTIMED)
                return [(step.bin.accumulator, step.rows.n) for step in counts.steps], counts.reason
            decision = decide(kind, features, request, operands.budget)
            bins = decision.bins
            work = works.get(bins.limits)
            if work is None:
                chain = operands.chain
                work = works[bins.limits] = analyse(chain, product.shape, operands.a.nnz, product.structure, bins).work
                chain.finish()
            shares = partition_of(kind, features, decision, work, operands.budget)
            steps = [(bin_.accumulator, bin_.limits, rows, long) for bin_, rows, _, long in shares.steps]
            made_of = product._replace(n_products=work.n_products, bound=work.bound)
            loose = shares.suits_upper_bound and upper_bound_fits(made_of, work, [step.bin for step in shares.steps])
            return steps, loose, decision.is_uneven

    @override
    def features(self, subject: SpgemmProblem) -> dict[str, float]:
        """Return the features known before the analysis."""
        return subject.features

    @override
    def parse(self, question: str, label: str) -> Strategy | Choice | Mapping[str, float]:
        """Return the meaning of a label: a strategy, an accumulator of a bin, or changes of thresholds.

        Raises
        ------
        ValueError
            It names none.
        """
        if question == "strategy":
            return parse(label)
        if question == "bin":
            return parse_choice(label)
        changes = descent.changes_of(label)
        for name, value in changes.items():
            if value not in CANDIDATES.get(name, ()):
                raise ValueError(f"{name[:80]}={value:g} is no threshold that is tried")
        return changes

    @override
    def prepare(self, subject: SpgemmProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return the function that makes the product, analysis included, by a strategy, a choice for a bin or thresholds.

        Its first call builds kernels.
        """
        if question == "strategy":
            return self.run(subject, label, descent.UNTUNED)
        device, dtype = describe(subject.queue.device), subject.A.dtype.name
        strategy = self.default(device, dtype, "strategy", subject.features)
        if subject.bin is not None:
            return self.run(subject, strategy, descent.UNTUNED, {subject.bin.number: parse_choice(label)})
        return self.run(subject, strategy, label)

    def run(
        self,
        subject: SpgemmProblem,
        strategy: str | None = None,
        thresholds: str | None = None,
        choices: Mapping[int, Choice] | None = None,
    ) -> Callable[[], list[cl.Event]]:
        """Return the function that makes the product by labels of a strategy and of thresholds, and by choices for bins.

        What is not given is the device's profile's.
        """
        A, B = subject.A, subject.B
        request = Request(strategy=None if strategy is None else parse(strategy), choices=choices)
        numbers = None if thresholds is None else self._changed(describe(subject.queue.device), A.dtype.name, thresholds)

        def make() -> list[cl.Event]:
            subject.C = None  # its memory is free for the next
            with nullcontext() if numbers is None else override_thresholds(numbers):
                C = multiply(A, B, request)
            subject.C = csr_array.assembled(Structure.canonical(A.queue, (A.shape[0], B.shape[1]), C.indices, C.indptr), C.data)
            return list(C.data.events)

        make()
        return make

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the answer of the closest shipped profile, or that no threshold is changed."""
        if question == "thresholds":
            return descent.UNTUNED
        return default(device, self.operation, dtype, question, features, parse_choice if question == "bin" else parse).label

    @override
    def verify(self, subject: SpgemmProblem) -> bool:
        """Return whether the last product is one: rows sorted, without duplicates, and right when applied to a vector. Waits."""
        if subject.C is None:
            return False
        product = subject.C
        # The facts of C are not believed: another matrix of its arrays is checked.
        unknown = csr_array(product.parts, shape=product.shape)
        try:
            if not unknown.has_canonical_format:
                return False
        except ValueError:
            return False
        x, expected, scale = subject.applied
        return bool(np.all(np.abs(unknown @ x - expected) <= 1e3 * np.finfo(product.dtype).eps * scale))
