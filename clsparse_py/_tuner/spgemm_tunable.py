"""Tuning of SpGEMM: the strategy, the accumulators of its bins, and thresholds."""

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

#: Most intermediate products of a row that a team of work-items merges, in the SpGEMM strategies to measure.
_MERGED = 1 << 16
#: Most intermediate products of a row that a single work-item merges, in the SpGEMM strategies to measure.
_ALONE = 1 << 10
#: SpGEMM strategies to measure, each with the greatest lengths of A's rows that the method in place of "{}" merges (0: no such
#: method); True: where a compute unit holds several work-items.
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
#: Most intermediate products of a sparse product that is measured; True: where a compute unit holds several work-items.
_MAX_PRODUCTS = {True: 1 << 31, False: 1 << 27}
#: Values of each threshold of SpGEMM that the coordinate descent tries, in ascending order.
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
#: Labels of the accumulators to measure for a bin of rows; True: where a compute unit holds several work-items.
_CHOICES = {
    True: (GIVEN, LAST, "reg-merge:together", "hash", "reg-hash", "large-hash", "dense-windows", "esc-local", "esc"),
    False: (GIVEN, LAST, "reg-merge:together", "hash", "dense", "dense-windows", "esc"),
}
#: Most bins (classes of rows by size) of a sparse product that are measured.
_MAX_BINS = 3


def _strategy_labels(*, several: bool) -> tuple[str, ...]:
    """Return the labels of the SpGEMM strategies to measure; ``several``: a compute unit holds several work-items."""
    merged = {
        longest: f"reg-merge:{longest}:{_MERGED}:{_ALONE}" if longest else ""
        for _, lengths in _METHODS[several]
        for longest in lengths
    }
    return tuple(
        " ".join(methods.format(merged[longest]).split()) for methods, lengths in _METHODS[several] for longest in lengths
    )


@dataclass
class SpgemmProblem:
    """A product of sparse matrices to be measured, or a bin of it.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    host : tuple of scipy.sparse.csr_array
        Both operands.
    A, B : csr_array
        The operands on the device.
    features : dict of str to float
        The features of the product before its analysis, or of the bin.
    bin : int, optional
        The number of the bin whose accumulator is in question, among the bins of the untuned strategy.
    bin_labels : tuple of str
        The choices by which different accumulators compute the rows of the bin.
    C : csr_array, optional
        The product of the last run.
    """

    name: str
    queue: cl.CommandQueue
    host: tuple[Any, Any]
    A: csr_array
    B: csr_array
    features: dict[str, float]
    bin: int | None = None
    bin_labels: tuple[str, ...] = ()
    C: csr_array | None = field(default=None, repr=False)

    @functools.cached_property
    def applied(self) -> tuple[Any, Any, Any]:
        """The check of the product A @ B: a random vector x, A @ (B @ x), and abs(A) @ (abs(B) @ x) to bound rounding errors."""
        first, second = (factor.astype(np.float64) for factor in self.host)
        x = np.random.default_rng(1).random(second.shape[1]).astype(self.A.dtype)
        return x, first @ (second @ x), abs(first) @ (abs(second) @ x)


def _with_most_work(bins: Bins, work: Work) -> list[int]:
    """Return the indices of the few bins (classes of rows by size) that may have most intermediate products, largest first."""
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
    #: Least multiplications of a product to tune with: a smaller one takes the host's time, not the device's.
    min_products: ClassVar[int] = 1 << 15
    #: Most bytes of device memory that an intermediate product of SpGEMM takes, in C and in workspace together.
    product_bytes: ClassVar[int] = 48
    max_entries = (10**7, 10**6)
    entry_bytes = 16 * product_bytes
    #: Least share of all multiplications for a bin to be measured.
    min_share: ClassVar[float] = 0.1

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the real dtypes of the device to tune SpGEMM for, as the size of a value decides between accumulators."""
        return ("float32", "float64") if device.fp64 else ("float32",)

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> SpgemmProblem:
        """Return the problem of multiplying a matrix with itself, or with its transposed if it is not square."""
        first = matrix.astype(dtype)
        second = first if first.shape[0] == first.shape[1] else first.T.tocsr()
        device, n_products = describe(queue.device), int(np.diff(second.indptr)[first.indices].sum(dtype=np.int64))
        if n_products < self.min_products:
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
        """Return the labels of SpGEMM's strategies, of the accumulators of a bin of rows, or of the first steps of a descent."""
        if question == "thresholds":
            return descent.UNTUNED, *descent.neighbours(descent.UNTUNED, self.thresholds(device, dtype), CANDIDATES)
        if question == "bin":
            return _CHOICES[device.resident > 1]
        return _strategy_labels(several=device.resident > 1)

    @override
    def subjects(self, problem: SpgemmProblem, question: str) -> Sequence[SpgemmProblem]:
        """Return the whole product, or for the question "bin" the bins with most of the work that several accumulators can do."""
        if question != "bin":
            return (problem,)
        device, dtype = describe(problem.queue.device), problem.A.dtype.name
        request = Request(strategy=parse(self.default(device, dtype, "strategy", problem.features)))
        with override_thresholds(self._changed_thresholds(device, dtype, descent.UNTUNED)):
            operands = operands_of(problem.A, problem.B, request)
            features, product = operands.features, operands.product
            kind = product.kind
            if speculation_for(kind, features) is not None:
                return ()
            decision = decide(kind, features, request, operands.budget)
            work = analyse(operands.chain, product.shape, operands.a.nnz, product.structure, decision.bins).work
            operands.chain.finish()

            def shares(choices: Mapping[int, Choice]) -> object:
                """Return the accumulator and the number of rows of every bin under some choices of accumulators."""
                shares_of_bins = refine(kind, features, decision._replace(choices=choices), work, operands.budget).shares
                return [(bin_.accumulator, n) for bin_, n in shares_of_bins]

            shared, subjects = ProductFeatures(kind, features, decision.bins, work), []
            for number in _with_most_work(decision.bins, work):
                # The accumulator that the bin has now comes first: of accumulators with equal effect only the first is measured.
                ways = {str(shares({number: parse_choice(GIVEN)})): GIVEN}
                for label in _CHOICES[device.resident > 1]:
                    ways.setdefault(str(shares({number: parse_choice(label)})), label)
                if len(ways) > 1:
                    features_of_bin = BinFeatures(shared, number)
                    by_name = {name: features_of_bin[name] for name in NAMES}
                    subjects.append(replace(problem, features=by_name, bin=number, bin_labels=tuple(ways.values())))
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
        """Return the accumulators that compute a bin of rows in different ways or, for a whole product, all strategies."""
        if subject.bin is not None:
            return subject.bin_labels
        return super().promising(device, dtype, subject, question, measured, exhaustive)

    def thresholds(self, device: Device, dtype: str) -> Mapping[str, float]:
        """Return SpGEMM's untuned thresholds on a device, those of the closest shipped profiles, by name."""
        return Thresholds.untuned(device, dtype).items()

    def _changed_thresholds(self, device: Device, dtype: str, label: str) -> Thresholds:
        """Return SpGEMM's untuned thresholds with the changes that a label of thresholds names."""
        return Thresholds.from_values({**self.thresholds(device, dtype), **descent.changes_of(label)})

    @override
    def around(self, device: Device, dtype: str, subject: SpgemmProblem, question: str, label: str) -> tuple[str, ...]:
        """Return the labels of thresholds, one step from a label, that change the bins of rows or the product's accumulators."""
        return self.steps(device, dtype, subject, self.default(device, dtype, "strategy", subject.features), (label,))

    def steps(self, device: Device, dtype: str, subject: SpgemmProblem, strategy: str, labels: Sequence[str]) -> tuple[str, ...]:
        """Return threshold labels one step from the given labels, if the strategy then computes the product in a further way."""
        works: dict[tuple[tuple[int, int, int], ...], Work] = {}
        request = Request(strategy=parse(strategy))
        untuned = self.thresholds(device, dtype)
        ways, steps = [self._describe_way(device, dtype, subject, request, label, works) for label in labels], []
        for neighbour in dict.fromkeys(
            neighbour for label in labels for neighbour in descent.neighbours(label, untuned, CANDIDATES)
        ):
            with suppress(BuildError, MemoryError, ValueError, cl.Error):
                way = self._describe_way(device, dtype, subject, request, neighbour, works)
                if way not in ways:
                    ways.append(way)
                    steps.append(neighbour)
        return tuple(steps)

    def _describe_way(
        self,
        device: Device,
        dtype: str,
        subject: SpgemmProblem,
        request: Request,
        label: str,
        works: dict[tuple[tuple[int, int, int], ...], Work],
    ) -> object:
        """Return a value that is equal for labels of thresholds by which SpGEMM runs alike: accumulators, their rows and more.

        ``works`` holds the results of analyses by the limits of bins, so that the device analyses a product once for each.
        """
        with override_thresholds(self._changed_thresholds(device, dtype, label)):
            operands = operands_of(subject.A, subject.B, request)
            features, product = operands.features, operands.product
            kind = product.kind
            if speculation_for(kind, features) is not None:
                # Whether SpGEMM's speculation that neighbouring rows are alike holds is known only after the symbolic phase.
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
        """Return the features of a sparse product or of a bin of its rows, by name: the numbers that decision trees compare."""
        return subject.features

    @override
    def parse(self, question: str, label: str) -> Strategy | Choice | Mapping[str, float]:
        """Return the strategy of SpGEMM, the accumulator of a bin, or the changes of thresholds that a label names."""
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
        """Build SpGEMM's kernels, and return a function that computes the product by a strategy, accumulator or thresholds."""
        if question == "strategy":
            return self.run(subject, label, descent.UNTUNED)
        device, dtype = describe(subject.queue.device), subject.A.dtype.name
        strategy = self.default(device, dtype, "strategy", subject.features)
        if subject.bin is not None:
            return self.run(subject, strategy, descent.UNTUNED, {subject.bin: parse_choice(label)})
        return self.run(subject, strategy, label)

    def run(
        self,
        subject: SpgemmProblem,
        strategy: str | None = None,
        thresholds: str | None = None,
        choices: Mapping[int, Choice] | None = None,
    ) -> Callable[[], list[cl.Event]]:
        """Return the function that computes the product, analysis included, by a strategy, by thresholds and by choices for bins.

        The device's profile decides whatever is None.
        """
        A, B = subject.A, subject.B
        request = Request(strategy=None if strategy is None else parse(strategy), choices=choices)
        device, dtype = describe(subject.queue.device), A.dtype.name
        numbers = None if thresholds is None else self._changed_thresholds(device, dtype, thresholds)

        def compute() -> list[cl.Event]:
            """Compute the sparse product once, and return the events of the commands that write its values."""
            subject.C = None  # frees the memory of the last product for the next one
            with nullcontext() if numbers is None else override_thresholds(numbers):
                C = multiply(A, B, request)
            subject.C = csr_array.assembled(Structure.canonical(A.queue, (A.shape[0], B.shape[1]), C.indices, C.indptr), C.data)
            return list(C.data.events)

        compute()
        return compute

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label of the strategy or accumulator by the closest shipped profile, or "untuned" for thresholds."""
        return descent.UNTUNED if question == "thresholds" else super().default(device, dtype, question, features)

    @override
    def verify(self, subject: SpgemmProblem) -> bool:
        """Return whether the last product C has canonical rows and the right values, as applied to a vector."""
        if subject.C is None:
            return False
        # A new matrix is made of the arrays of C, so that the check reads from the entries whether rows are sorted.
        C = csr_array(subject.C.parts, shape=subject.C.shape)
        try:
            if not C.has_canonical_format:
                return False
        except ValueError:
            return False
        x, expected, scale = subject.applied
        return bool(np.all(np.abs(C @ x - expected) <= 1e3 * np.finfo(C.dtype).eps * scale))
