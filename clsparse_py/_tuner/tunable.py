"""The interface between the tuner and an operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import pyopencl as cl

from clsparse_py._device.device import Device

__all__ = ["OPERATIONS", "Tunable", "tunables"]

Problem = TypeVar("Problem")

#: The module and class of each operation's tunable; imported by the tuner alone.
_DECLARED = {
    "spmv": "clsparse_py._tuner.spmv_tunable:SpmvTunable",
    "transpose": "clsparse_py._tuner.transpose_tunable:SpTransTunable",
    "segmented_sort": "clsparse_py._tuner.sort_tunable:SegmentedSortTunable",
    "spgemm": "clsparse_py._tuner.spgemm_tunable:SpgemmTunable",
    "masked": "clsparse_py._tuner.masked_tunable:MaskedTunable",
}
#: The operations that can be tuned.
OPERATIONS = tuple(_DECLARED)


class Tunable(Protocol[Problem]):
    """An operation that can be tuned. Operations derive from it, for the sake of the methods that have a body here.

    An operation has *questions*, each answered by a decision tree over *features*. An answer is a *label*, which names a
    configuration: a method, or a kernel with its parameters. A *problem*, made of a matrix, is what configurations are measured
    on; a *subject* is the problem or a part of it that a question is asked of. Only the operation knows what is inside.

    Attributes
    ----------
    operation : str
        Its name in a profile.
    questions : tuple of str
        In the order in which they are to be tuned: answers to one may use those to the ones before it.
    waits : bool
        Whether a run waits for the device inside, so that the host's clock tells what a caller feels, not that of the events.
    descents : tuple of str
        Those of the questions that ask for numbers which are the same for all matrices: they are found by `tuning.descent`, and
        go into a profile as thresholds.
    """

    waits: ClassVar[bool] = False
    descents: ClassVar[tuple[str, ...]] = ()

    @property
    def operation(self) -> str: ...
    @property
    def questions(self) -> tuple[str, ...]: ...

    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the dtypes to tune for on a device; ("any",) where values make no difference."""

    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> Problem:
        """Return a problem made of a ``scipy.sparse.csr_array``, on the device; ``queue`` is to be a profiling one.

        Raises
        ------
        MemoryError
            The device has no room for it.
        ValueError
            The operation has nothing to do there, as to multiply a matrix with itself that is not square.
        """

    def largest(self, device: Device) -> int:
        """Return how many nonzeros of a matrix are worth trying at most, whatever the memory allows."""
        return min(10**8, device.global_memory // 64)

    def subjects(self, problem: Problem, question: str) -> Sequence[Problem]:  # noqa: ARG002 - that of one question
        """Return the subjects of a question: mostly the problem itself; for questions about bins, each bin."""
        return (problem,)

    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the labels that are legal on a device, the default for any features among the first."""

    def promising(
        self,
        device: Device,
        dtype: str,
        subject: Problem,  # noqa: ARG002 - here all are
        question: str,
        measured: Mapping[str, Sequence[tuple[Mapping[str, float], Mapping[str, float]]]],  # noqa: ARG002
        exhaustive: bool,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the labels that are worth measuring on a subject, given what was measured of the questions before this one.

        Parameters
        ----------
        device, dtype : Device, str
        subject : Problem
        question : str
        measured : mapping
            By question, for each of this problem's subjects: its features, and seconds by label.
        exhaustive : bool
            Whether all that could win is to be measured, for an oracle.
        """
        return self.configurations(device, dtype, question)

    def around(self, device: Device, dtype: str, subject: Problem, question: str, label: str) -> tuple[str, ...]:  # noqa: ARG002
        """Return the labels one step of a descent away from a label, as far as the subject is made otherwise by them."""
        return ()

    def features(self, subject: Problem) -> dict[str, float]:
        """Return the numbers that decision trees compare, as they are known when the operation has to decide."""

    def parse(self, question: str, label: str) -> object:
        """Return the meaning of a label.

        Raises
        ------
        ValueError
            It is none of this question's.
        """

    def prepare(self, subject: Problem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Build a configuration for a subject and return what enqueues it once on the problem's queue.

        What is returned gives the events of its commands, whose times by the device's clock add up to that of the run.

        Raises
        ------
        BuildError, MemoryError, ValueError, pyopencl.Error
            The device does not build or run it, or it does not suit this subject: it is recorded and skipped.
        """

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label that is chosen untuned, by the closest shipped profile."""

    def verify(self, subject: Problem) -> bool:
        """Return whether the last run on this subject gave the right result. Waits."""


def tunables(operations: Iterable[str] = OPERATIONS) -> dict[str, Tunable[Any]]:
    """Return the tunables by operation: of all `OPERATIONS`, or of the named ones."""
    by_operation: dict[str, Tunable[Any]] = {}
    for operation in operations:
        module, name = _DECLARED[operation].split(":")
        by_operation[operation] = getattr(importlib.import_module(module), name)()
    return by_operation
