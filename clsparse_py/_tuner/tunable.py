"""The interface between the tuner and an operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import pyopencl as cl

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device

__all__ = ["OPERATIONS", "Tunable", "tunables"]

Problem = TypeVar("Problem")

#: Module and class of each operation's `Tunable`, the interface between the operation and the tuner, by the operation's name.
_DECLARED = {
    "spmv": "clsparse_py._tuner.spmv_tunable:SpmvTunable",
    "transpose": "clsparse_py._tuner.transpose_tunable:SpTransTunable",
    "segmented_sort": "clsparse_py._tuner.sort_tunable:SegmentedSortTunable",
    "spgemm": "clsparse_py._tuner.spgemm_tunable:SpgemmTunable",
    "masked": "clsparse_py._tuner.masked_tunable:MaskedTunable",
}
#: Names of the operations that can be tuned, such as "spmv".
OPERATIONS = tuple(_DECLARED)


class Tunable(Protocol[Problem]):
    """An operation that can be tuned; a class of each operation derives from this one.

    An operation has *questions*, each answered by a decision tree over *features*. An answer is a *label*, which names a
    configuration: a method, or a kernel with its parameters. A *problem*, made of a matrix, is what configurations are measured
    on; a *subject* is the problem, or a part of the problem, that a question is asked about. The tuner looks into neither.

    Attributes
    ----------
    operation : str
        The operation's name in a profile.
    questions : tuple of str
        The questions in the order of tuning: an answer may depend on the answers to earlier questions.
    waits : bool
        Whether a run waits for the device itself, so that the host's clock measures the time of a call, and the events do not.
    max_entries : tuple of int
        Entries of the largest matrix to tune with: on GPUs, and on devices whose lanes are loops.
    entry_bytes : int
        Device memory of an entry of the largest matrix, in bytes.
    descents : tuple of str
        The questions that ask for numbers which are the same for all matrices: `_tuner.descent` answers these, and a profile
        holds the answers as thresholds.
    """

    waits: ClassVar[bool] = False
    max_entries: ClassVar[tuple[int, int]] = (10**8, 10**8)
    entry_bytes: ClassVar[int] = 64
    descents: ClassVar[tuple[str, ...]] = ()

    @property
    def operation(self) -> str:
        """The operation's name in a profile, such as "spmv"."""
        ...

    @property
    def questions(self) -> tuple[str, ...]:
        """The names of the operation's questions, such as "method", in the order of tuning."""
        ...

    def dtypes(self, device: Device) -> tuple[str, ...]:  # noqa: ARG002 - some operations ask the device
        """Return the dtypes of values to tune the operation for on a device; ("any",) if the dtype makes no difference."""
        return ("any",)

    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> Problem:
        """Return the problem to measure: the operation on a ``scipy.sparse.csr_array``, with its arrays on the queue's device.

        Raises
        ------
        MemoryError
            The problem does not fit the device's memory.
        ValueError
            The operation has nothing to do with the matrix, or so much that it takes too long.
        """

    def largest(self, device: Device) -> int:
        """Return the number of entries of the largest matrix to tune the operation with on a device."""
        return min(self.max_entries[device.lanes_are_loops], device.global_memory // self.entry_bytes)

    def subjects(self, problem: Problem, question: str) -> Sequence[Problem]:  # noqa: ARG002 - some operations ask the question
        """Return the parts of a problem that a question of the tuner is asked about: the whole, or its bins (classes of rows)."""
        return (problem,)

    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the labels (methods, or kernels with parameters) that may answer a question on a device, likely ones first."""

    def promising(
        self,
        device: Device,
        dtype: str,
        subject: Problem,  # noqa: ARG002 - by default all labels are measured
        question: str,
        measured: Mapping[str, Sequence[tuple[Mapping[str, float], Mapping[str, float]]]],  # noqa: ARG002
        exhaustive: bool,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the labels (methods or kernels) that are worth measuring on a problem, in view of times of earlier questions.

        Parameters
        ----------
        device, dtype : Device, str
        subject : Problem
        question : str
        measured : mapping
            For each earlier question, of each subject of this problem: its features, and seconds by label.
        exhaustive : bool
            Whether every label that could win is measured, as for an oracle.
        """
        return self.configurations(device, dtype, question)

    def around(self, device: Device, dtype: str, subject: Problem, question: str, label: str) -> tuple[str, ...]:  # noqa: ARG002
        """Return labels of thresholds, one step of a descent from a label, that change a problem's kernels; none by default."""
        return ()

    def features(self, subject: Problem) -> dict[str, float]:
        """Return the features of a problem, or of a part of it, by name: the numbers that decision trees compare."""

    def parse(self, question: str, label: str) -> object:
        """Return the method, or the kernel with its parameters, that a label names as the answer to a question of the tuner.

        Raises
        ------
        ValueError
            The question has no such label.
        """

    def prepare(self, subject: Problem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Build the kernels of a configuration, and return the function that runs the operation on a problem once by them.

        The function returns the events of the run's commands, by which the device's clock times the run.

        Raises
        ------
        BuildError, MemoryError, ValueError, pyopencl.Error
            The device does not build or run the configuration, or it does not suit this subject: it is recorded and skipped.
        """

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label (method or kernel) that the closest shipped profile chooses for the features of a problem, untuned."""
        return profiles.default(device, self.operation, dtype, question, features).label

    def verify(self, subject: Problem) -> bool:
        """Return whether the last run of the operation on a problem gave the right result, after waiting for the run."""


def tunables(operations: Iterable[str] = OPERATIONS) -> dict[str, Tunable[Any]]:
    """Return a new `Tunable`, the tuner's interface to an operation, of each operation by name."""
    by_operation: dict[str, Tunable[Any]] = {}
    for operation in operations:
        module, name = _DECLARED[operation].split(":")
        by_operation[operation] = getattr(importlib.import_module(module), name)()
    return by_operation
