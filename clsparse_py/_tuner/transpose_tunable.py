"""Tunable of SpTRANS: the methods to try, and their limits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._decisions.profiles import default
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
        The same on the device.
    found : TransposedArrays, optional
        What the last run made.
    """

    name: str
    queue: cl.CommandQueue
    host: Any
    A: csr_array
    found: TransposedArrays | None = None

    @functools.cached_property
    def wanted(self) -> Any:
        """SciPy's transposed matrix."""
        return self.host.T.tocsr()


class SpTransTunable(Tunable[TransposeProblem]):
    """SpTRANS as the tuner takes it, see `tunable.Tunable`."""

    operation = "transpose"
    questions = ("method",)
    waits = True

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the dtypes to tune for: values are moved, so only their bytes count."""
        return ("any",)

    @override
    def largest(self, device: Device) -> int:
        """Return how many nonzeros are worth trying."""
        return min(3 * 10**6 if device.lanes_are_loops else 3 * 10**7, device.global_memory // 128)

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> TransposeProblem:
        """Return the problem of transposing a matrix.

        Raises
        ------
        MemoryError
            The device has no room for it.
        ValueError
            There is nothing to move, or so little that no method is chosen.
        """
        if not matrix.nnz:
            raise ValueError(f"{name}: has no entries")
        A = csr_array(matrix, queue=queue)
        if transpose_in_one_launch(A, valued=True) is not None:
            raise ValueError(f"{name}: is so small that one launch transposes it, whatever is chosen")
        return TransposeProblem(name, queue, matrix, A)

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return all strategies, of which any device takes any."""
        return STRATEGIES

    @override
    def features(self, problem: TransposeProblem) -> dict[str, float]:
        """Return the features that are known before the device is asked."""
        return features_of(problem.A, problem.A.dtype.itemsize)

    @override
    def parse(self, question: str, label: str) -> Strategy:
        """Return a strategy by its label.

        Raises
        ------
        ValueError
            It names none.
        """
        return parse(label)

    @override
    def prepare(self, problem: TransposeProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return a function that transposes the matrix by a strategy, as a plain call does. Its first call builds kernels."""
        A, strategy = problem.A, parse(label)

        def transpose() -> list[cl.Event]:
            problem.found = None  # its memory is free for the next
            # A fresh structure, so that no result of the last run is known.
            fresh = Matrix.assembled(A.structure.copied(A.queue, A.indices, A.indptr), A.data)
            values = allocate_result(A, "values", A.nnz, A.data.dtype)
            chain = Chain(problem.queue, A.data, A.indices, A.indptr)
            pattern, _ = attempt(chain, fresh, True, values, strategy, {})
            chain.finish(values)
            problem.found = TransposedArrays(pattern.indptr, pattern.indices, values)
            return list(values.events)

        transpose()
        return transpose

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the strategy of the closest shipped profile."""
        return default(device, self.operation, dtype, question, features).label

    @override
    def verify(self, problem: TransposeProblem) -> bool:
        """Return whether the last run gave SciPy's result, bit by bit. Waits."""
        if problem.found is None:
            return False
        problem.queue.finish()
        result, reference = problem.found, problem.wanted
        pairs = ((result.indptr, reference.indptr), (result.indices, reference.indices), (result.moved, reference.data))
        return all(np.array_equal(array.get(), expected) for array, expected in pairs)
