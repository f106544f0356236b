"""Tuning of SpMV: the binning scheme, and the kernel of each bin."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._device.device import Device, describe
from clsparse_py._operations.spmv.binning import GRANULARITIES, N_BINS, Scheme, Side
from clsparse_py._operations.spmv.builder import Builder
from clsparse_py._operations.spmv.choose import BALANCED, Decision, KernelChoice, choose
from clsparse_py._operations.spmv.composition import CLASSES, Composer, Loads
from clsparse_py._operations.spmv.features import inspect
from clsparse_py._operations.spmv.kernels import Subvector
from clsparse_py._operations.spmv.plan import SpmvPlan
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.dense_product import DenseProduct
from clsparse_py._run.launch import Chain
from clsparse_py._tuner.tunable import Tunable

__all__ = ["Bins", "SpmvProblem", "SpmvTunable", "Subject"]

#: Labels of SpMV's binning schemes, which put rows into bins by their lengths.
_SCHEMES = ("single", "fine", *(f"{name}-{U}" for name in ("coarse", "hybrid") for U in GRANULARITIES))
#: Labels of SpMV kernels to measure on all rows of a matrix; True: for devices whose lanes are loops, such as CPUs.
_SINGLE = {
    False: (
        *("serial/128/2", "serial/256/2", "serial/512/4", "subvector2/128/1", "subvector2/128/2", "subvector2/256/4"),
        *(f"subvector{width}/128/{unroll}" for width in (4, 8, 16, 32) for unroll in (2, 4)),
        *(
            "subvector8/256/1",
            "subvector16/256/1",
            "subvector32/256/2",
            "subvector64/256/2",
            "subvector128/256/2",
            "vector/128/2",
            "vector/256/4",
        ),
        *("adaptive/64/8", "adaptive/128/4", "adaptive/128/5", "adaptive/128/6", "adaptive/128/8", "adaptive/256/3"),
        *("adaptive/256/4", "adaptive/512/2", "adaptive/1024/3", "adaptive/1024/4"),
        *(f"nonzero_split/{shape}" for shape in ("128/4", "256/2", "256/4", "512/2", "1024/2")),
        *("narrow/128/5", "narrow/128/6", "narrow/128/8", "narrow/256/6", "merge/128/7", "merge/256/5", "vector_long/256/4"),
    ),
    True: (
        *(f"chunked/1/{chunks}" for chunks in (32, 4, 8, 16, 64, 128)),
        *("serial/64/2", "serial/256/2", "serial/16/4", "subvector4/64/2", "subvector8/64/2", "vector/64/4"),
        *("adaptive/128/5", "adaptive/64/8", "nonzero_split/256/2", "merge/128/7", "vector_long/64/4"),
    ),
}
# SpMV kernels for bins share a launch if they have one work-group size and unrolling.
#: Labels of SpMV kernels to measure on a bin (class of rows by length); True: for devices whose lanes are loops, such as CPUs.
_BIN = {
    False: ("serial/256/2", *(f"subvector{1 << k}/256/2" for k in range(1, 8)), "vector/256/2", "vector_long/256/4"),
    True: (
        *("serial/256/2", "subvector4/256/2", "subvector16/256/2", "subvector64/256/2", "vector/256/2"),
        "vector_long/256/4",
    ),
}
#: Labels of the binning schemes of SpMV in whose bins (classes of rows by length) kernels are measured.
_MEASURED = "fine", "coarse-100"
#: Least share of a product's work that a class of bins (of about equal row lengths) has if its kernels are measured.
_MIN_SHARE = 0.05
#: Most classes of bins (of about equal row lengths) of a binning scheme that are measured.
_MAX_CLASSES = 4
#: Most binning schemes, "single" aside, by which a whole product is measured: those that are expected to be the fastest.
_SCHEMES_TRIED = 4
#: Least expected time, in times of the fastest kernel for all rows, at which a binning scheme other than the best isn't measured.
_HOPELESS = 2.0


@dataclass(frozen=True)
class Bins:
    """A range of bins of a scheme whose rows are multiplied alone: from ``begin`` to before ``end``."""

    scheme: Scheme
    begin: int
    end: int

    @property
    def side(self) -> Side:
        """The only side of the binning scheme: its virtual rows, which are groups of as many rows as the granularity says."""
        return self.scheme.sides[0]

    def rows(self, lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the mask of a matrix's rows that fall into the range of bins, by the lengths of all rows."""
        granularity = self.side.granularity
        work = np.add.reduceat(lengths, np.arange(0, lengths.size, granularity))
        bins = np.minimum(work // granularity, N_BINS - 1)
        return np.repeat((bins >= self.begin) & (bins < self.end), granularity)[: lengths.size]


def _with_values(matrix: Any, values: np.ndarray[Any, Any]) -> Any:
    """Return a SciPy matrix with the structure of another one and values of its own."""
    return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


class SpmvProblem:
    """A product ``y = A @ x`` to be measured.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A profiling queue.
    name : str
    matrix : scipy.sparse.csr_array
    dtype : str
        The dtype of the values of A and x.

    Attributes
    ----------
    A : csr_array
    x, y : pyopencl.array.Array
    features : Features
        The features of A.
    lengths : numpy.ndarray
        The lengths of A's rows.
    loads : Loads
        The work of classes of bins.
    single : str or None
        The fastest kernel for all rows, once it is known.
    composer : Composer or None
        Composes schemes from the times of bins, once bins were measured.
    """

    def __init__(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> None:
        if not matrix.nnz:
            raise ValueError(f"{name}: has no entries")
        self.queue = queue
        self.device = describe(queue.device)
        self.name = name
        self.dtype = dtype
        values = np.asarray(matrix.data, dtype)
        host_x = np.random.default_rng(0).uniform(0.5, 1.5, matrix.shape[1]).astype(dtype)
        self.lengths = np.diff(matrix.indptr).astype(np.int64)
        self.loads = Loads(self.lengths)
        # A sum of n products is off by at most n roundings of the sum of their magnitudes.
        wide, wide_x = values.astype(np.float64), host_x.astype(np.float64)
        self._reference = _with_values(matrix, wide) @ wide_x
        self._tolerance = (_with_values(matrix, np.abs(wide)) @ wide_x) * (self.lengths + 4.0) * float(np.finfo(dtype).eps)
        self.A = csr_array(_with_values(matrix, values), queue=queue)
        self.x = cl_array.to_device(queue, host_x)
        self.y = cl_array.zeros(queue, matrix.shape[0], np.dtype(dtype))
        self.features = inspect(queue, self.A.shape, self.A.nnz, self.A.indptr, self.A.indices)
        self.single: str | None = None
        self.composer: Composer | None = None

    def list_classes(self, scheme: Scheme, share: float) -> list[Bins]:
        """Return the classes of a binning scheme's bins that have more than a share of the product's work, the largest first."""
        weights = self.loads.of(scheme.sides[0])
        by_work = np.argsort(-weights, kind="stable")
        return [Bins(scheme, *CLASSES[i]) for i in by_work if weights[i] > share * weights.sum()]

    def run(self, decision: Decision) -> Callable[[], list[cl.Event]]:
        """Return a function that computes the product A @ x once, by the kernels of a decision."""
        plan = SpmvPlan(self.A, self.features, decision)
        plan.settle(self.A, self.x, self.y)
        self._spoil()
        return lambda: plan.execute(self.A, self.x, self.y)

    def run_bins(self, bins: Bins, choice: KernelChoice) -> Callable[[], list[cl.Event]]:
        """Return a function that runs an SpMV kernel once on the rows of a range of bins."""
        decision = Decision(bins.scheme, ((choice,) * N_BINS,), "measured alone")
        plan = SpmvPlan(self.A, self.features, decision)
        builder = Builder(plan.inspected, Arithmetic(self.dtype, self.dtype, self.A.indptr.dtype.name), scaled=False)
        builder.add_binned(decision, range(bins.begin, bins.end))
        self._spoil()
        product = DenseProduct(builder.recorder.recording(), self.queue)
        return lambda: product.run(self.queue, (self.A.data, self.x, self.y), ())

    def is_right(self, rows: np.ndarray[Any, Any] | slice = slice(None)) -> bool:
        """Return whether the last run of the product wrote the right values to some rows of y, after waiting for the run."""
        y = self.y.get(self.queue)[rows].astype(np.float64)
        return bool(np.all(np.abs(y - self._reference[rows]) <= self._tolerance[rows]))

    def _spoil(self) -> None:
        """Fill the result y of the product with NaN, so that no value of an earlier run passes for one of the next."""
        chain = Chain(self.queue, writes=(self.y,))
        chain.fill(self.y, np.nan, self.y.size)
        chain.finish(self.y)


@dataclass
class Subject:
    """The subject of a question about SpMV: a whole product, or the rows of a range of bins."""

    problem: SpmvProblem
    bins: Bins | None = None

    @functools.cached_property
    def rows(self) -> np.ndarray[Any, Any] | slice:
        """The rows of the matrix that are multiplied: a mask of the rows in the bins, or the slice of all rows."""
        return slice(None) if self.bins is None else self.bins.rows(self.problem.lengths)

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """The features of the product, or of the bins, that decision trees compare."""
        problem = self.problem
        numbers = problem.features.numbers(problem.device.compute_units, np.dtype(problem.dtype).itemsize)
        if self.bins is None:
            return numbers
        # The feature "bin" is the mean length of the bins' rows, as the number of a bin is about the length of its rows.
        mean_length = round(float(problem.lengths[self.rows].mean()))
        middle = min(max(mean_length, self.bins.begin), self.bins.end - 1)
        return {**numbers, "granularity": self.bins.side.granularity, "bin": middle}


class SpmvTunable(Tunable[Subject]):
    """SpMV as the tuner takes it, see `tunable.Tunable`.

    Kernels are measured on all rows, and on the rows of classes of bins. From these times the time of a scheme with bins is
    estimated, and the schemes that are likely to be the fastest are measured whole.
    """

    operation = "spmv"
    questions = ("single", "bin", "scheme")
    max_entries = (10**8, 10**7)
    entry_bytes = 48

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the real dtypes of the device to tune SpMV for; other dtypes take the trees of the real dtype of their size."""
        return ("float64", "float32") if device.fp64 else ("float32",)

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> Subject:
        """Return the problem of multiplying a matrix with a vector."""
        return Subject(SpmvProblem(queue, name, matrix, dtype))

    @override
    def subjects(self, problem: Subject, question: str) -> Sequence[Subject]:
        """Return the whole product, or for the question "bin" the classes of bins with most of the work, at two granularities."""
        if question != "bin":
            return (problem,)
        product = problem.problem
        classes = [bins for label in _MEASURED for bins in product.list_classes(Scheme.parse(label), _MIN_SHARE)[:_MAX_CLASSES]]
        return [Subject(product, bins) for bins in classes]

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return labels of SpMV's binning schemes, or of kernels that a device builds with their labels' sizes."""
        if question == "scheme":
            return _SCHEMES
        labels = (_SINGLE if question == "single" else _BIN)[device.lanes_are_loops]
        return tuple(label for label in labels if _is_legal(KernelChoice.parse(label), device, dtype))

    @override
    def promising(
        self,
        device: Device,
        dtype: str,
        subject: Subject,
        question: str,
        measured: Mapping[str, Sequence[tuple[Mapping[str, float], Mapping[str, float]]]],
        exhaustive: bool,
    ) -> tuple[str, ...]:
        """Return SpMV kernels that suit the rows' lengths, or binning schemes that are likely fast by the times of their bins."""
        labels = self.configurations(device, dtype, question)
        if question != "scheme":
            return labels if exhaustive else tuple(label for label in labels if _suits(KernelChoice.parse(label), subject))
        problem = subject.problem
        times = next((times for _, times in measured.get("single", ()) if times), {})
        problem.single = min(times, key=times.__getitem__, default=None)
        problem.composer = Composer.of(problem.loads, measured.get("bin", ()))
        if exhaustive:
            return labels
        likely = {label: problem.composer.seconds(Scheme.parse(label)) for label in labels if label != "single"}
        by_time = sorted(likely, key=likely.__getitem__)
        limit = _HOPELESS * min(times.values(), default=math.inf)
        return ("single", by_time[0], *(label for label in by_time[1:_SCHEMES_TRIED] if likely[label] < limit))

    @override
    def features(self, subject: Subject) -> dict[str, float]:
        """Return the features of the matrix; for bins also their granularity, and their number: the mean length of their rows."""
        return dict(subject.numbers)

    @override
    def parse(self, question: str, label: str) -> Scheme | KernelChoice:
        """Return the binning scheme or the kernel of SpMV that a label names."""
        if question == "scheme":
            return Scheme.parse(label)
        return KernelChoice.parse(label) if question == "single" else KernelChoice.parse_for_bin(label)

    @override
    def prepare(self, subject: Subject, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return a function that computes A @ x once: by one kernel for all rows or for the rows of bins, or by a whole scheme.

        A scheme takes the kernels that were measured as the fastest on this matrix, else the kernels of the profile.
        """
        problem = subject.problem
        if question == "bin" and subject.bins is not None:
            return problem.run_bins(subject.bins, KernelChoice.parse_for_bin(label))
        if question == "single":
            return problem.run(Decision(Scheme("single"), ((KernelChoice.parse(label),),), "measured"))
        return problem.run(_compose(problem, Scheme.parse(label)))

    @override
    def verify(self, subject: Subject) -> bool:
        """Return whether the last product A @ x is right in the rows that were multiplied, after waiting for the run."""
        return subject.problem.is_right(subject.rows)


def _is_legal(choice: KernelChoice, device: Device, dtype: str) -> bool:
    """Return whether a device builds an SpMV kernel with exactly the sizes that its label names."""
    record = choice.record(device, Arithmetic(dtype, dtype), scaled=False)
    requested = {"work_group": choice.work_group, "items": choice.items}
    if isinstance(record, Subvector):
        requested["lanes"] = choice.lanes
    return all(getattr(record, name, value) == value for name, value in requested.items())


def _suits(choice: KernelChoice, subject: Subject) -> bool:
    """Return whether an SpMV kernel may be the fastest: no work-item has very long rows alone, nor are most work-items idle."""
    if choice.name in BALANCED:
        return True
    lengths = subject.problem.lengths[subject.rows]
    mean, longest = float(lengths.mean()), float(lengths.max())
    if choice.name == "vector_long":
        return mean >= 1024 or (subject.bins is not None and longest >= 1 << 14)
    # Work-items of a GPU that run in lockstep wait for the longest of their rows; a core of a CPU waits for no other row.
    max_per_lane = 4096 if subject.problem.device.lanes_are_loops else 64
    return choice.lanes <= 4 * mean + 2 and mean <= max_per_lane * choice.lanes and longest <= 64 * max_per_lane * choice.lanes


def _compose(problem: SpmvProblem, scheme: Scheme) -> Decision:
    """Return SpMV's decision for a binning scheme: the fastest measured kernel of each bin, else the untuned kernel."""
    untuned = choose(problem.features, problem.device, str(scheme), None, problem.dtype)
    if scheme.name == "single":
        kernel = KernelChoice.parse(problem.single) if problem.single else untuned.kernels[0][0]
        return Decision(scheme, ((kernel,),), "measured")
    if problem.composer is None:
        return untuned
    kernels = []
    for side, fallback in zip(scheme.sides, untuned.kernels, strict=True):
        labels = [problem.composer.label(side, number) for number in range(N_BINS)]
        pairs = zip(labels, fallback, strict=True)
        kernels.append(tuple(KernelChoice.parse_for_bin(label) if label else choice for label, choice in pairs))
    return Decision(scheme, tuple(kernels), "measured")
