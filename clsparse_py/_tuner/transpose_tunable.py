"""Tuning of SpTRANS: the methods to try, and their limits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._device.device import Device
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.transpose.choose import STRATEGIES, Strategy, features_of, parse
from clsparse_py._operations.transpose.methods import allocate_result
from clsparse_py._operations.transpose.plan import TransposedArrays, attempt, transpose_in_one_launch
from clsparse_py._run.launch import Chain
from clsparse_py._tuner.tunable import Tunable

__all__ = ["SpTransTunable", "TransposeProblem"]


@dataclass
class TransposeProblem:
    """A matrix to be transposed.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    host : scipy.sparse.csr_array
    A : csr_array
        The matrix on the device.
    transposed : TransposedArrays, optional
        The transposed matrix of the last run.
    """

    name: str
    queue: cl.CommandQueue
    host: Any
    A: csr_array
    transposed: TransposedArrays | None = None

    @functools.cached_property
    def reference(self) -> Any:
        """The transposed matrix as SciPy computes it."""
        return self.host.T.tocsr()


class SpTransTunable(Tunable[TransposeProblem]):
    """SpTRANS as the tuner takes it, see `tunable.Tunable`."""

    operation = "transpose"
    questions = ("method",)
    waits = True
    max_entries = (3 * 10**7, 3 * 10**6)
    entry_bytes = 128

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> TransposeProblem:
        """Return the problem of transposing a matrix, unless it is so small that one launch transposes it."""
        if not matrix.nnz:
            raise ValueError(f"{name}: has no entries")
        A = csr_array(matrix, queue=queue)
        if transpose_in_one_launch(A, valued=True) is not None:
            raise ValueError(f"{name}: is so small that one launch transposes it, whatever is chosen")
        return TransposeProblem(name, queue, matrix, A)

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the names of all strategies of SpTRANS (sparse transposition): every device runs each of them."""
        return STRATEGIES

    @override
    def features(self, problem: TransposeProblem) -> dict[str, float]:
        """Return the features of the matrix to transpose, by name: the numbers that decision trees compare."""
        return features_of(problem.A, problem.A.dtype.itemsize)

    @override
    def parse(self, question: str, label: str) -> Strategy:
        """Return the strategy of a transposition that a label names."""
        return parse(label)

    @override
    def prepare(self, problem: TransposeProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Build the kernels of a strategy of SpTRANS, and return a function that transposes the matrix by them as a call does."""
        A, strategy = problem.A, parse(label)

        def transpose() -> list[cl.Event]:
            """Transpose the problem's matrix once, and return the events of the launches."""
            problem.transposed = None  # frees the memory of the last result for the next one
            # A copy of A's structure (shape and index arrays) keeps nothing of the transposed of an earlier run.
            fresh = Matrix.assembled(A.structure.copied(A.queue, A.indices, A.indptr), A.data)
            values = allocate_result(A, "values", A.nnz, A.data.dtype)
            chain = Chain(problem.queue, A.data, A.indices, A.indptr)
            pattern, _ = attempt(chain, fresh, True, values, strategy, {})
            chain.finish(values)
            problem.transposed = TransposedArrays(pattern.indptr, pattern.indices, values)
            return list(values.events)

        transpose()
        return transpose

    @override
    def verify(self, problem: TransposeProblem) -> bool:
        """Return whether the last run transposed the matrix as SciPy does, bit by bit, after waiting for the run."""
        transposed, reference = problem.transposed, problem.reference
        if transposed is None:
            return False
        problem.queue.finish()
        pairs = (
            (transposed.indptr, reference.indptr),
            (transposed.indices, reference.indices),
            (transposed.moved, reference.data),
        )
        return all(np.array_equal(array.get(), expected) for array, expected in pairs)
