"""The measurements of a tuning run: the next operation and matrix are chosen within a time budget."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyopencl as cl
import scipy.sparse

from clsparse_py._decisions.kernel_hashes import hash_of
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.errors import BuildError
from clsparse_py._memory.memory import free_memory
from clsparse_py._tuner import descent
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.clock import Clock, DeviceLostError
from clsparse_py._tuner.corpus import Case, cases, with_values
from clsparse_py._tuner.limits import TUNER
from clsparse_py._tuner.progress import Progress
from clsparse_py._tuner.search import OutOfTimeError, Race, race
from clsparse_py._tuner.tunable import Tunable

__all__ = ["Options", "Session", "default_budget"]


def default_budget(device: Device) -> float:
    """Return the default time limit of measuring in a tuning run on a device, in seconds."""
    return 18 * 60.0 if device.lanes_are_loops else 8.5 * 60.0


@dataclass(frozen=True)
class Options:
    """The scope of a tuning run.

    Attributes
    ----------
    seconds : float
        Time limit of measuring.
    dtypes : tuple of str
        The dtypes to tune for; empty: all dtypes of an operation.
    more : tuple of Case
        Matrices to measure with besides the generated ones.
    exhaustive : bool
        Whether to measure every label that could win, not only the promising ones.
    largest : int or None
        Most entries of a generated matrix; None: as many as device and operations allow.
    questions : tuple of str
        The questions to ask; empty: all questions of an operation.
    """

    seconds: float
    dtypes: tuple[str, ...] = ()
    more: tuple[Case, ...] = ()
    exhaustive: bool = False
    largest: int | None = None
    questions: tuple[str, ...] = ()


@dataclass
class _Course:
    """The progress of an operation through the training matrices.

    Attributes
    ----------
    tunable : Tunable
    dtypes : tuple of str
    questions : tuple of str
    cases : iterator of Case
        The cases that are not finished.
    spent : float
        Seconds of measuring the operation so far.
    costs : dict of int to float
        Seconds of the last case, by its number of entries.
    """

    tunable: Tunable[Any]
    dtypes: tuple[str, ...]
    questions: tuple[str, ...]
    cases: Iterator[Case]
    spent: float = 0.0
    costs: dict[int, float] = field(default_factory=dict)

    @property
    def behind(self) -> float:
        """The seconds spent on measuring the operation, divided by its share: dtypes times (1 + questions)."""
        return self.spent / (len(self.dtypes) * (1 + len(self.questions)))

    def dtypes_for(self, case: Case) -> tuple[str, ...]:
        """Return the dtypes of values to measure the operation with on a matrix: one only if the matrix is large."""
        if case.nnz < TUNER.min_one_dtype:
            return self.dtypes
        return (self.dtypes[sum(case.name.encode()) % len(self.dtypes)],)


class _Matrices:
    """The matrices of cases: a thread generates the next one while a device that is not the host measures with the last one."""

    def __init__(self, device: Device) -> None:
        self._ahead = None if device.lanes_are_loops else ThreadPoolExecutor(1)
        self._coming: tuple[str, Future[scipy.sparse.csr_array]] | None = None
        self._last: tuple[str, scipy.sparse.csr_array] | None = None

    def get(self, case: Case) -> scipy.sparse.csr_array:
        """Return the matrix of a case, generated now unless it is the last matrix or one that the thread generates ahead."""
        if self._last is not None and self._last[0] == case.name:
            return self._last[1]
        self._last = None
        coming, self._coming = self._coming, None
        matrix = coming[1].result() if coming is not None and coming[0] == case.name else case.make()
        self._last = case.name, matrix
        return matrix

    def expect(self, case: Case) -> None:
        """Begin to generate the matrix of the next case in a thread, unless the device is a CPU or the matrix is there."""
        if self._ahead is not None and (self._last is None or self._last[0] != case.name):
            self._coming = case.name, self._ahead.submit(case.make)

    def close(self) -> None:
        """End the thread that generates matrices."""
        if self._ahead is not None:
            self._ahead.shutdown(wait=False, cancel_futures=True)


class Session:
    """The measurement of operations on a device.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A queue of `clsparse_py._tuner.clock.profiling_queue`.
    tunables : mapping of str to Tunable
        The operations to tune.
    options : Options
    checkpoint : Checkpoint
        The measurements of earlier runs, to which new ones are added.
    progress : Progress
        The display of the run.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        tunables: Mapping[str, Tunable[Any]],
        options: Options,
        checkpoint: Checkpoint,
        progress: Progress,
    ) -> None:
        self.queue = queue
        self.device = describe(queue.device)
        self.options = options
        self.checkpoint = checkpoint
        self.progress = progress
        self.clock = Clock(queue)
        self._tunables = tunables
        self._deadline = math.inf
        self._complete = True
        self._tried: set[tuple[str, str, str, str]] = set()

    def measure(self) -> bool:
        """Measure operations until all matrices are finished or the time is used up, and return whether all are finished.

        Raises
        ------
        DeviceLostError
            The device does not answer any more. Measurements are kept.
        """
        self._deadline = time.monotonic() + self.options.seconds
        courses = [self._start_course(tunable) for tunable in self._tunables.values()]
        courses = [course for course in courses if course.dtypes and course.questions]
        matrices = _Matrices(self.device)
        coming = self._choose_next(courses)
        n_done = 0
        try:
            while coming is not None and self._seconds_left() > 0:
                course, case = coming
                self.progress.begins(course.tunable.operation, case, n_done, self._seconds_left())
                begin = time.monotonic()
                try:
                    matrix = matrices.get(case)
                except (ValueError, OSError, MemoryError) as error:
                    self._skip(course, case, course.dtypes, str(error))
                    coming = self._choose_next(courses)
                    continue
                coming = self._choose_next(courses)
                if coming is not None:
                    matrices.expect(coming[1])
                self._measure_case(course, case, matrix)
                if matrix.nnz >= TUNER.min_freed:
                    # Memory of reference cycles and of the memory pool is freed for the next matrix.
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
            # Memory of the last matrix is freed before the queue is.
            free_memory()
        return coming is None and self._complete

    def _seconds_left(self) -> float:
        """Return the seconds until the deadline of measuring."""
        return self._deadline - time.monotonic()

    def _start_course(self, tunable: Tunable[Any]) -> _Course:
        """Return the course of an operation (its progress through the matrices) at the first matrix that is not finished."""
        options = self.options
        dtypes = tuple(dtype for dtype in tunable.dtypes(self.device) if dtype in ("any", *(options.dtypes or (dtype,))))
        largest = min(tunable.largest(self.device), options.largest or tunable.largest(self.device))
        questions = tuple(question for question in tunable.questions if question in (options.questions or (question,)))
        course = _Course(tunable, dtypes, questions, iter(()))
        course.cases = (
            case
            for case in cases(self.device, options.more, largest)
            if any((tunable.operation, dtype, case.name) not in self.checkpoint.done for dtype in course.dtypes_for(case))
        )
        return course

    def _choose_next(self, courses: list[_Course]) -> tuple[_Course, Case] | None:
        """Return the operation with least time for its share that has a matrix for which time is left, and this matrix.

        None if no operation has one.
        """
        for course in sorted(courses, key=lambda course: course.behind):
            for case in course.cases:
                # A matrix is skipped if the last matrix of its size took longer to measure than the time that is left.
                if course.costs.get(case.nnz, 0.0) < self._seconds_left():
                    return course, case
                self._complete = False
        return None

    def _skip(self, course: _Course, case: Case, dtypes: Sequence[str], why: str) -> None:
        """Note and show that an operation is not measured on a matrix with some dtypes, and why."""
        for dtype in dtypes:
            self.checkpoint.finish(course.tunable.operation, dtype, case.name, why or "not taken")
        self.progress.skip(course.tunable.operation, case, why)

    def _measure_case(self, course: _Course, case: Case, matrix: scipy.sparse.csr_array) -> None:
        """Measure an operation on a matrix with each dtype not yet finished, only one if the matrix is large; note failures."""
        tunable = course.tunable
        if case.nnz == 0 and matrix.nnz > tunable.largest(self.device):
            self._skip(course, case, course.dtypes, f"{matrix.nnz:,} entries are too many")
            return
        for dtype in course.dtypes_for(case):
            if (tunable.operation, dtype, case.name) in self.checkpoint.done:
                continue
            values = dtype if dtype != "any" else self._choose_dtype(case)
            try:
                problem = tunable.problem(self.queue, case.name, with_values(matrix, values), dtype)
                self._measure_questions(course, dtype, case, problem)
            except (ValueError, TypeError, MemoryError, BuildError, cl.Error) as error:
                self.clock.check()
                self._skip(course, case, (dtype,), str(error))
                continue
            if course.questions == tunable.questions:
                self.checkpoint.finish(tunable.operation, dtype, case.name)

    def _choose_dtype(self, case: Case) -> str:
        """Return the dtype of a matrix's values where only their size matters: float32 or float64, by the matrix's name."""
        return "float64" if self.device.fp64 and sum(case.name.encode()) % 2 else "float32"

    def _measure_questions(self, course: _Course, dtype: str, case: Case, problem: Any) -> None:
        """Measure all questions of the tuner about an operation on a problem, except those that an earlier run measured."""
        tunable = course.tunable
        earlier = {past.key: past for past in self.checkpoint.select(tunable.operation, dtype, case.name)}
        measured: dict[str, list[tuple[Mapping[str, float], Mapping[str, float]]]] = {}
        for question in course.questions:
            of_question = measured.setdefault(question, [])
            for number, subject in enumerate(tunable.subjects(problem, question)):
                observation = earlier.get((tunable.operation, dtype, question, case.name, number))
                if observation is None:
                    observation = self._observe(tunable, dtype, question, case, number, subject, measured)
                    self.checkpoint.add(observation)
                    self.progress.show(observation)
                of_question.append((observation.features, observation.times))

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
        """Measure kernels or methods on a problem: around the present thresholds in a descent, else the promising labels."""
        operation = tunable.operation
        features = tunable.features(subject)
        default = base = tunable.default(self.device, dtype, question, features)
        if question in tunable.descents:
            base = descent.current_label([past for past in self.checkpoint.select(operation, dtype) if past.question == question])
            candidates = tunable.around(self.device, dtype, subject, question, base)
        else:
            candidates = tunable.promising(self.device, dtype, subject, question, measured, self.options.exhaustive)
        outcome = self._race(tunable, dtype, question, subject, (default, base), candidates)
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
            outcome.times,
            outcome.noise,
            tuple(sorted(outcome.rough)),
            outcome.failed,
            outcome.overheads,
            hash_of(operation),
        )

    def _race(
        self, tunable: Tunable[Any], dtype: str, question: str, subject: Any, keep: tuple[str, ...], candidates: Iterable[str]
    ) -> Race:
        """Race kernels or methods on a problem, and return the race; those that ended an earlier process are left out."""

        def key_of(label: str) -> tuple[str, str, str, str]:
            """Return the key of a kernel or method in the file of measurements: operation, dtype, question and label."""
            return tunable.operation, dtype, question, label

        def tried(label: str) -> None:
            """Note in the file of measurements that a kernel or method runs for the first time in this session."""
            if key_of(label) not in self._tried:
                self._tried.add(key_of(label))
                self.checkpoint.note_trial(*key_of(label))

        try:
            return race(
                [label for label in (*keep, *candidates) if key_of(label) not in self.checkpoint.fatal],
                lambda label: tunable.prepare(subject, question, label),
                lambda: tunable.verify(subject),
                self.clock,
                keep=keep,
                by_host=tunable.waits,
                deadline=self._deadline,
                tried=tried,
            )
        except DeviceLostError as error:
            if error.label:
                self.checkpoint.note_fatal(*key_of(error.label))
            raise
