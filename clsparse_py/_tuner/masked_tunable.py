"""Tuning of masked products: the accumulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._device.device import Device, describe
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spgemm.mask import prepare_masked_product
from clsparse_py._operations.spgemm.masked_rows import (
    LABELS,
    Lookup,
    Masked,
    enqueue_masked,
    features_of,
    parse,
    record_of,
    takes_teams,
    workers_of,
)
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain
from clsparse_py._tuner.tunable import Tunable

__all__ = ["MaskedProblem", "MaskedTunable"]

#: Number of the first rows of a masked product that are compared with SciPy's sums.
_CHECKED_ROWS = 64


@dataclass
class MaskedProblem:
    """The product of a square matrix with itself under a mask, which is its own pattern.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    host : scipy.sparse.csr_array
    product : Masked
    sums : pyopencl.array.Array
        The sum of products at each place of the mask.
    marks : pyopencl.array.Array
        Nonzero at each place of the mask that has products.
    """

    name: str
    queue: cl.CommandQueue
    host: Any
    product: Masked
    sums: cl_array.Array
    marks: cl_array.Array

    @functools.cached_property
    def reference(self) -> Any:
        """SciPy's values of the masked product at all entries of the mask in the first `_CHECKED_ROWS` rows."""
        rows = self.host[:_CHECKED_ROWS].astype(np.float64)
        products = (rows @ self.host.astype(np.float64)).toarray()
        return products[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices]


class MaskedTunable(Tunable[MaskedProblem]):
    """Products under a mask as the tuner takes them, see `tunable.Tunable`."""

    operation = "masked"
    questions = ("accumulator",)
    max_entries = (3 * 10**6, 10**6)
    entry_bytes = 256
    #: Most multiplications of a product that is tuned with; larger ones take too long.
    max_products: ClassVar[int] = 3 * 10**8

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> MaskedProblem:
        """Return the problem of multiplying a square matrix with itself, masked by its own pattern."""
        if matrix.shape[0] != matrix.shape[1] or not matrix.nnz:
            raise ValueError(f"{name}: is not square, or has no entries")
        if int(np.diff(matrix.indptr)[matrix.indices].sum()) > self.max_products:
            raise ValueError(f"{name}: has too many products")
        A = csr_array(matrix.astype(np.float32), queue=queue)
        A.sum_duplicates()
        product = prepare_masked_product(A, A, A, plus_times)
        sums, marks = allocate(queue, "sums", A.nnz, np.float32), allocate(queue, "marks", A.nnz, np.uint8)
        return MaskedProblem(name, queue, A.get(), product, sums, marks)

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the labels of a masked product's accumulators to measure: tables of columns ("chunked:places") on CPUs only."""
        teams = tuple(label for label in LABELS if takes_teams(device) and parse(label).window)
        return (*teams, *(("chunked:places",) if device.lanes_are_loops else ()), "chunked:search")

    @override
    def features(self, problem: MaskedProblem) -> dict[str, float]:
        """Return the features of a masked product by name: the numbers that decision trees compare."""
        return dict(features_of(problem.product, workers_of(describe(problem.queue.device))))

    @override
    def parse(self, question: str, label: str) -> Lookup:
        """Return the accumulator of a masked product that a label names."""
        return parse(label)

    @override
    def prepare(self, problem: MaskedProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Build the kernel of an accumulator, and return a function that computes the masked product by it."""
        record = record_of(describe(problem.queue.device), problem.product, parse(label))

        def multiply() -> list[cl.Event]:
            """Compute the masked product once, and return the events of its launches."""
            chain = Chain(problem.queue, *problem.product.a, *problem.product.mask)
            enqueue_masked(chain, problem.product, record, problem.sums, problem.marks)
            chain.finish(problem.sums, problem.marks)
            return chain.events

        multiply()
        return multiply

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label that the closest shipped profile chooses, or "chunked:search" if that is no label for the device."""
        label = super().default(device, dtype, question, features)
        return label if label in self.configurations(device, dtype, question) else "chunked:search"

    @override
    def verify(self, problem: MaskedProblem) -> bool:
        """Return whether the last masked product has SciPy's sums in the checked rows, after waiting for the run."""
        problem.queue.finish()
        expected = problem.reference
        sums, marks = (array.get()[: expected.size] for array in (problem.sums, problem.marks))
        return bool(np.allclose(np.where(marks != 0, sums, 0), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max(initial=0)))
