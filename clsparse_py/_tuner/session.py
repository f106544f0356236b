"""A tuning run: choose the next operation and matrix to measure within a time budget."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyopencl as cl
import scipy.sparse

from clsparse_py._device.device import Device, describe
from clsparse_py._ground.errors import BuildError
from clsparse_py._memory.memory import free_memory
from clsparse_py._tuner import descent
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.clock import Clock, DeviceLostError
from clsparse_py._tuner.corpus import Case, cases, with_values
from clsparse_py._tuner.limits import TUNER
from clsparse_py._tuner.search import OutOfTimeError, race
from clsparse_py._tuner.tunable import Tunable

__all__ = ["Observer", "Options", "Session", "default_budget"]


def default_budget(device: Device) -> float:
    """Return the default time limit of measuring, in seconds."""
    return 18 * 60.0 if device.lanes_are_loops else 8.5 * 60.0


@dataclass(frozen=True)
class Options:
    """The scope of a tuning run.

    Attributes
    ----------
    seconds : float
        That measuring may take.
    dtypes : tuple of str
        Only these; all that an operation tunes for where it is empty.
    more : tuple of Case
        Matrices to measure with besides the generated ones.
    exhaustive : bool
        Whether to measure all that could win, not the promising alone.
    largest : int or None
        Most nonzeros of a generated matrix; what device and operations allow where it is None.
    questions : tuple of str
        Only these of each operation; all where it is empty.
    """

    seconds: float
    dtypes: tuple[str, ...] = ()
    more: tuple[Case, ...] = ()
    exhaustive: bool = False
    largest: int | None = None
    questions: tuple[str, ...] = ()


class Observer(Protocol):
    """The interface of whoever is told how a tuning run goes."""

    def begins(self, operation: str, case: Case, n_done: int, seconds_left: float) -> None:
        """Take note that an operation is measured on a matrix, after so many, with so many seconds left."""

    def show(self, observation: Observation) -> None:
        """Take note of a measurement."""

    def skip(self, operation: str, case: Case, why: str) -> None:
        """Take note that an operation does not take a matrix."""


@dataclass
class _Course:
    """The progress of an operation through the training matrices.

    Attributes
    ----------
    tunable : Tunable
    dtypes : tuple of str
    questions : tuple of str
    cases : iterator of Case
        Those not yet done.
    spent : float
        Seconds, of which operations with more questions and dtypes get more.
    costs : dict of int to float
        Seconds that the last case of a size took.
    """

    tunable: Tunable[Any]
    dtypes: tuple[str, ...]
    questions: tuple[str, ...]
    cases: Iterator[Case]
    spent: float = 0.0
    costs: dict[int, float] = field(default_factory=dict)

    @property
    def behind(self) -> float:
        """The time that the operation had, relative to what it should get; the one with the least is next."""
        return self.spent / (len(self.dtypes) * (1 + len(self.questions)))

    def dtypes_for(self, case: Case) -> tuple[str, ...]:
        """Return the dtypes to measure a matrix with."""
        if case.nnz < TUNER.min_one_dtype:
            return self.dtypes
        return (self.dtypes[sum(case.name.encode()) % len(self.dtypes)],)


class _Matrices:
    """Matrices of cases, the next one made while the device measures with this one, where that doesn't disturb it."""

    def __init__(self, device: Device) -> None:
        self._ahead = None if device.lanes_are_loops else ThreadPoolExecutor(1)
        self._coming: tuple[str, Future[scipy.sparse.csr_array]] | None = None
        self._kept: tuple[str, scipy.sparse.csr_array] | None = None

    def of(self, case: Case) -> scipy.sparse.csr_array:
        if self._kept is not None and self._kept[0] == case.name:
            return self._kept[1]
        self._kept = None
        coming, self._coming = self._coming, None
        matrix = coming[1].result() if coming is not None and coming[0] == case.name else case.make()
        self._kept = case.name, matrix
        return matrix

    def expect(self, case: Case) -> None:
        if self._ahead is not None and (self._kept is None or self._kept[0] != case.name):
            self._coming = case.name, self._ahead.submit(case.make)

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.shutdown(wait=False, cancel_futures=True)


class Session:
    """Measures operations on a device.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Of `clsparse_py._tuner.clock.profiling_queue`.
    tunables : mapping of str to Tunable
        What to tune.
    options : Options
    checkpoint : Checkpoint
        Takes what is measured, and has what was measured before.
    observer : Observer
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        tunables: Mapping[str, Tunable[Any]],
        options: Options,
        checkpoint: Checkpoint,
        observer: Observer,
    ) -> None:
        self.queue = queue
        self.device = describe(queue.device)
        self.options = options
        self.checkpoint = checkpoint
        self.observer = observer
        self.clock = Clock(queue)
        self._tunables = tunables
        self._deadline = math.inf
        self._complete = True
        self._tried: set[tuple[str, str, str, str]] = set()

    def measure(self) -> bool:
        """Measure until all is done or the time is used up, and return whether all is done.

        Raises
        ------
        DeviceLostError
            The device does not answer any more. Measurements are kept.
        """
        self._deadline = time.monotonic() + self.options.seconds
        courses = [self._course(tunable) for tunable in self._tunables.values()]
        courses = [course for course in courses if course.dtypes and course.questions]
        matrices = _Matrices(self.device)
        coming = self._next(courses)
        n_done = 0
        try:
            while coming is not None and self._left() > 0:
                course, case = coming
                self.observer.begins(course.tunable.operation, case, n_done, self._left())
                begin = time.monotonic()
                try:
                    matrix = matrices.of(case)
                except (ValueError, OSError, MemoryError) as error:
                    self._skip(course, case, course.dtypes, str(error))
                    coming = self._next(courses)
                    continue
                coming = self._next(courses)
                if coming is not None:
                    matrices.expect(coming[1])
                self._case(course, case, matrix)
                if matrix.nnz >= TUNER.min_freed:
                    # Free the memory of reference cycles and of the pool for the next case.
                    gc.collect()
                    free_memory()
                took = time.monotonic() - begin
                course.spent += took
                course.costs[case.nnz] = took
                n_done += 1
        except OutOfTimeError:
            return False
        finally:
            self.checkpoint.note_stop()
            matrices.close()
            # Memory of the last case is freed before the queue is.
            free_memory()
        return coming is None and self._complete

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _course(self, tunable: Tunable[Any]) -> _Course:
        dtypes = tuple(each for each in tunable.dtypes(self.device) if each in ("any", *(self.options.dtypes or (each,))))
        largest = min(tunable.largest(self.device), self.options.largest or tunable.largest(self.device))
        questions = tuple(each for each in tunable.questions if each in (self.options.questions or (each,)))
        course = _Course(tunable, dtypes, questions, iter(()))
        course.cases = (
            case
            for case in cases(self.device, self.options.more, largest)
            if any((tunable.operation, dtype, case.name) not in self.checkpoint.done for dtype in course.dtypes_for(case))
        )
        return course

    def _next(self, courses: list[_Course]) -> tuple[_Course, Case] | None:
        """Return the next case to measure, of the operation with the least time relative to its share."""
        for course in sorted(courses, key=lambda entry: entry.behind):
            for case in course.cases:
                # Skip a size that took longer than the time left when it was last measured.
                if course.costs.get(case.nnz, 0.0) < self._left():
                    return course, case
                self._complete = False
        return None

    def _skip(self, course: _Course, case: Case, dtypes: Sequence[str], why: str) -> None:
        for dtype in dtypes:
            self.checkpoint.finish(course.tunable.operation, dtype, case.name, why or "not taken")
        self.observer.skip(course.tunable.operation, case, why)

    def _case(self, course: _Course, case: Case, matrix: scipy.sparse.csr_array) -> None:
        """Measure an operation on a matrix with all dtypes."""
        tunable = course.tunable
        if case.nnz == 0 and matrix.nnz > tunable.largest(self.device):
            self._skip(course, case, course.dtypes, f"{matrix.nnz:,} entries are too many")
            return
        for dtype in course.dtypes_for(case):
            if (tunable.operation, dtype, case.name) in self.checkpoint.done:
                continue
            values = dtype if dtype != "any" else self._any_dtype(case)
            try:
                problem = tunable.problem(self.queue, case.name, with_values(matrix, values), dtype)
                self._questions(course, dtype, case, problem)
            except (ValueError, TypeError, MemoryError, BuildError, cl.Error) as error:
                self.clock.check()
                self._skip(course, case, (dtype,), str(error))
                continue
            if course.questions == tunable.questions:
                self.checkpoint.finish(tunable.operation, dtype, case.name)

    def _any_dtype(self, case: Case) -> str:
        """Return the dtype of values that make no difference but by their size: one or the other, by the case's name."""
        return "float64" if self.device.fp64 and sum(case.name.encode()) % 2 else "float32"

    def _questions(self, course: _Course, dtype: str, case: Case, problem: Any) -> None:
        """Measure an operation's questions on a problem, except those in the checkpoint of an earlier run."""
        tunable = course.tunable
        earlier = {past.key: past for past in self.checkpoint.of(tunable.operation, dtype, case.name)}
        measured: dict[str, list[tuple[Mapping[str, float], Mapping[str, float]]]] = {}
        for question in course.questions:
            of_question = measured.setdefault(question, [])
            for number, subject in enumerate(tunable.subjects(problem, question)):
                observation = earlier.get((tunable.operation, dtype, question, case.name, number))
                if observation is None:
                    observation = self._observe(tunable, dtype, question, case, number, subject, measured)
                    self.checkpoint.add(observation)
                    self.observer.show(observation)
                of_question.append((observation.features, observation.times))

    def _list_candidates(
        self, tunable: Tunable[Any], dtype: str, question: str, subject: Any, measured: Mapping[str, Any], base: str
    ) -> Iterable[str]:
        """Return the labels to measure: those around the present one in a descent, else those that promise something."""
        if question in tunable.descents:
            return tunable.around(self.device, dtype, subject, question, base)
        return tunable.promising(self.device, dtype, subject, question, measured, self.options.exhaustive)

    def _observe(
        self,
        tunable: Tunable[Any],
        dtype: str,
        question: str,
        case: Case,
        number: int,
        subject: Any,
        measured: Mapping[str, Sequence[tuple[Mapping[str, float], Mapping[str, float]]]],
    ) -> Observation:
        operation = tunable.operation
        features = tunable.features(subject)
        default = base = tunable.default(self.device, dtype, question, features)
        if question in tunable.descents:
            base = descent.current_label([past for past in self.checkpoint.of(operation, dtype) if past.question == question])
        labels = [default, base, *self._list_candidates(tunable, dtype, question, subject, measured, base)]
        labels = [label for label in labels if (operation, dtype, question, label) not in self.checkpoint.fatal]

        def tried(label: str) -> None:
            key = (operation, dtype, question, label)
            if key not in self._tried:
                self._tried.add(key)
                self.checkpoint.trying(*key)

        try:
            result = race(
                labels,
                lambda label: tunable.prepare(subject, question, label),
                lambda: tunable.verify(subject),
                self.clock,
                keep=(default, base),
                by_host=tunable.waits,
                deadline=self._deadline,
                tried=tried,
            )
        except DeviceLostError as error:
            if error.label:
                self.checkpoint.give_up(operation, dtype, question, error.label)
            raise
        return Observation(
            operation,
            dtype,
            question,
            case.name,
            number,
            case.family,
            case.split,
            {name: float(value) for name, value in features.items()},
            default,
            result.times,
            result.noise,
            tuple(sorted(result.rough)),
            result.failed,
            result.overheads,
        )
