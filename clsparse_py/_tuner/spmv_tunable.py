"""Tunables of SpMV: the binning scheme, and the kernel of each bin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyopencl as cl
from typing_extensions import override

from clsparse_py._decisions.profiles import default
from clsparse_py._device.device import Device
from clsparse_py._operations.spmv.binning import GRANULARITIES, N_BINS, Scheme
from clsparse_py._operations.spmv.choose import BALANCED, Decision, KernelChoice, choose
from clsparse_py._operations.spmv.composition import Composer
from clsparse_py._operations.spmv.kernels import Subvector
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._tuner.spmv_problem import SpmvProblem, Subject
from clsparse_py._tuner.tunable import Tunable

__all__ = ["SpmvTunable"]

#: Labels of the binning schemes.
_SCHEMES = ("single", "fine", *(f"{name}-{U}" for name in ("coarse", "hybrid") for U in GRANULARITIES))
#: Kernels for all rows, with the parameters that are worth trying: on GPUs, and on CPU devices.
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
#: Kernels for the rows of a bin. Those of one work-group and unrolling share a launch, so there is one shape, but of cut rows.
_BIN = {
    False: ("serial/256/2", *(f"subvector{1 << k}/256/2" for k in range(1, 8)), "vector/256/2", "vector_long/256/4"),
    True: (
        *("serial/256/2", "subvector4/256/2", "subvector16/256/2", "subvector64/256/2", "vector/256/2"),
        "vector_long/256/4",
    ),
}
#: The granularities at which classes of bins are measured.
_MEASURED = "fine", "coarse-100"
#: A class of bins is measured if it has at least this share of the work.
_MIN_SHARE = 0.05
#: At each granularity, at most so many classes are measured.
_MAX_CLASSES = 4
#: Number of binned schemes that are measured whole: the most promising ones.
_SCHEMES_TRIED = 4
#: A scheme is not measured if it is likely to take so many times as long as the fastest kernel for all rows.
_HOPELESS = 2.0


class SpmvTunable(Tunable[Subject]):
    """SpMV as the tuner takes it, see `tunable.Tunable`.

    Kernels are measured on all rows and on those of classes of bins. From these a scheme with bins is composed, and those that
    are likely to be the fastest are measured whole.
    """

    operation = "spmv"
    questions = ("single", "bin", "scheme")

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the dtypes to tune for; others take the trees of the one of their size."""
        return ("float64", "float32") if device.fp64 else ("float32",)

    @override
    def largest(self, device: Device) -> int:
        """Return how many nonzeros are worth trying."""
        return min(10**7 if device.lanes_are_loops else 10**8, device.global_memory // 48)

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> Subject:
        """Return the problem of multiplying a matrix with a vector.

        Raises
        ------
        MemoryError
            The device has no room for it.
        ValueError
            The matrix has no entries.
        """
        return Subject(SpmvProblem(queue, name, matrix, dtype))

    @override
    def subjects(self, problem: Subject, question: str) -> Sequence[Subject]:
        """Return the product; of "bin" the classes of bins with most of the work, at two granularities."""
        if question != "bin":
            return (problem,)
        product = problem.problem
        classes = [bins for text in _MEASURED for bins in product.parts(Scheme.parse(text), _MIN_SHARE)[:_MAX_CLASSES]]
        return [Subject(product, bins, bins.rows(product.lengths)) for bins in classes]

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the labels that a device takes as they are."""
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
        """Return the labels worth measuring: widths near the rows' lengths; schemes by the times of their bins."""
        labels = self.configurations(device, dtype, question)
        if question != "scheme":
            return labels if exhaustive else tuple(label for label in labels if _suits(KernelChoice.parse(label), subject))
        problem = subject.problem
        of_all = [times for _, times in measured.get("single", ()) if times]
        problem.single = min(of_all[0], key=of_all[0].__getitem__) if of_all else None
        problem.composer = Composer.of(problem.loads, measured.get("bin", ()))
        if exhaustive:
            return labels
        likely = {label: problem.composer.seconds(Scheme.parse(label)) for label in labels if label != "single"}
        by_time = sorted(likely, key=likely.__getitem__)
        limit = _HOPELESS * min(of_all[0].values()) if of_all else math.inf
        return ("single", by_time[0], *(label for label in by_time[1:_SCHEMES_TRIED] if likely[label] < limit))

    @override
    def features(self, subject: Subject) -> dict[str, float]:
        """Return the features of the matrix; of bins also the granularity and the bin's number, the mean length of its rows."""
        return dict(subject.numbers)

    @override
    def parse(self, question: str, label: str) -> Scheme | KernelChoice:
        """Return a scheme or a kernel by its label.

        Raises
        ------
        ValueError
            It names none.
        """
        if question == "scheme":
            return Scheme.parse(label)
        return KernelChoice.parse(label) if question == "single" else KernelChoice.parse_for_bin(label)

    @override
    def prepare(self, subject: Subject, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return a function that multiplies once: by a kernel for all rows or for those of bins, or by a whole scheme.

        A scheme takes the kernels that were measured as the fastest on this matrix, and where none was, those of the profile.
        """
        problem = subject.problem
        if question == "bin" and subject.bins is not None:
            return problem.run_bins(subject.bins, KernelChoice.parse_for_bin(label))
        if question == "single":
            return problem.run(Decision(Scheme("single"), ((KernelChoice.parse(label),),), "measured"))
        return problem.run(_compose(problem, Scheme.parse(label)))

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label that the closest shipped profile chooses."""
        return default(device, self.operation, dtype, question, features).label

    @override
    def verify(self, subject: Subject) -> bool:
        """Return whether the last run on this subject gave the right result. Waits."""
        return subject.problem.right(subject.rows)


def _is_legal(choice: KernelChoice, device: Device, dtype: str) -> bool:
    """Return whether a device takes a kernel as it is asked for, without adaptation."""
    record = choice.record(device, Arithmetic(dtype, dtype), scaled=False)
    requested = {"work_group": choice.work_group, "items": choice.items}
    if isinstance(record, Subvector):
        requested["lanes"] = choice.lanes
    return all(getattr(record, name, value) == value for name, value in requested.items())


def _suits(choice: KernelChoice, subject: Subject) -> bool:
    """Return whether a kernel may be the fastest: no work-item has very long rows alone, nor have most nothing to do."""
    numbers = subject.numbers
    mean = longest = numbers["mean"]
    if subject.bins is not None:
        lengths = subject.problem.lengths[subject.rows]
        mean, longest = float(lengths.mean()), float(lengths.max())
    else:
        longest = numbers["longest"]
    if choice.name in BALANCED:
        return True
    if choice.name == "vector_long":
        return mean >= 1024 or (subject.bins is not None and longest >= 1 << 14)
    # A core has as much to do with one row as with another; lanes wait for each other.
    max_per_lane = 4096 if subject.problem.device.lanes_are_loops else 64
    return choice.lanes <= 4 * mean + 2 and mean <= max_per_lane * choice.lanes and longest <= 64 * max_per_lane * choice.lanes


def _compose(problem: SpmvProblem, scheme: Scheme) -> Decision:
    """Return the kernels of a scheme as a whole."""
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
