"""Products that SpMV is tuned on: a matrix, or the rows of some of its bins, with the right result at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._device.device import describe
from clsparse_py._operations.spmv.binning import N_BINS, Scheme, Side
from clsparse_py._operations.spmv.builder import Builder
from clsparse_py._operations.spmv.choose import Decision, KernelChoice
from clsparse_py._operations.spmv.composition import CLASSES, Composer, Loads
from clsparse_py._operations.spmv.features import inspect
from clsparse_py._operations.spmv.plan import SpmvPlan
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.dense_product import DenseProduct
from clsparse_py._run.launch import Chain

__all__ = ["Bins", "SpmvProblem"]


@dataclass(frozen=True)
class Bins:
    """Rows that are multiplied alone: those in bins from ``begin`` to before ``end`` of a side of a scheme."""

    scheme: Scheme
    begin: int
    end: int

    @property
    def side(self) -> Side:
        """The side of the scheme, which has only one."""
        return self.scheme.sides[0]

    def rows(self, lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the mask of a matrix's rows that fall into these bins, by the lengths of all its rows."""
        granularity = self.side.granularity
        work = np.add.reduceat(lengths, np.arange(0, lengths.size, granularity))
        number = np.minimum(work // granularity, N_BINS - 1)
        return np.repeat((number >= self.begin) & (number < self.end), granularity)[: lengths.size]


def _like(matrix: Any, values: np.ndarray[Any, Any]) -> Any:
    """Return a SciPy matrix with the structure of another one."""
    return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


class SpmvProblem:
    """A product ``y = A @ x``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A profiling one.
    name : str
    matrix : scipy.sparse.csr_array
    dtype : str
        Of the values of A and x.

    Attributes
    ----------
    A : csr_array
    x, y : pyopencl.array.Array
    features : Features
        Of A.
    lengths : numpy.ndarray
        Of A's rows.
    loads : Loads
        The work of classes of bins.
    single : str or None
        The fastest kernel for all rows, once it is known.
    composer : Composer or None
        Makes schemes from measurements of bins, once there are some.
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
        # In double precision, and by magnitude: a sum of n products is off by n roundings of these at most.
        wide, wide_x = values.astype(np.float64), host_x.astype(np.float64)
        self._wanted = _like(matrix, wide) @ wide_x
        self._tolerance = (_like(matrix, np.abs(wide)) @ wide_x) * (self.lengths + 4.0) * float(np.finfo(dtype).eps)
        self.A = csr_array(_like(matrix, values), queue=queue)
        self.x = cl_array.to_device(queue, host_x)
        self.y = cl_array.zeros(queue, matrix.shape[0], np.dtype(dtype))
        self.features = inspect(queue, self.A.shape, self.A.nnz, self.A.indptr, self.A.indices)
        self.single: str | None = None
        self.composer: Composer | None = None

    def parts(self, scheme: Scheme, share: float) -> list[Bins]:
        """Return the classes of a scheme's bins that have at least a share of the work, those with the most first."""
        weights = self.loads.of(scheme.sides[0])
        by_work = np.argsort(-weights, kind="stable")
        return [Bins(scheme, *CLASSES[i]) for i in by_work if weights[i] > share * weights.sum()]

    def run(self, decision: Decision) -> Callable[[], list[cl.Event]]:
        """Return a function that runs the whole product, as decided, once."""
        plan = SpmvPlan(self.A, self.features, decision)
        plan.settle(self.A, self.x, self.y)
        self._spoil()
        return lambda: plan.execute(self.A, self.x, self.y)

    def run_bins(self, bins: Bins, choice: KernelChoice) -> Callable[[], list[cl.Event]]:
        """Return a function that runs a kernel on the rows of some bins once."""
        decision = Decision(bins.scheme, ((choice,) * N_BINS,), "measured alone")
        plan = SpmvPlan(self.A, self.features, decision)
        builder = Builder(plan.inspected, Arithmetic(self.dtype, self.dtype, self.A.indptr.dtype.name), scaled=False)
        builder.add_binned(decision, range(bins.begin, bins.end))
        self._spoil()
        product = DenseProduct(builder.recorder.recording(), self.queue)
        return lambda: product.run(self.queue, (self.A.data, self.x, self.y), ())

    def right(self, rows: np.ndarray[Any, Any] | slice = slice(None)) -> bool:
        """Return whether the last run gave the right result in these rows. Waits."""
        y = self.y.get(self.queue)[rows].astype(np.float64)
        return bool(np.all(np.abs(y - self._wanted[rows]) <= self._tolerance[rows]))

    def _spoil(self) -> None:
        """Overwrite the result, so that values of an earlier run are not taken for those of the next."""
        chain = Chain(self.queue, writes=(self.y,))
        chain.fill(self.y, np.nan, self.y.size)
        chain.finish(self.y)


@dataclass
class Subject:
    """The subject of a question: a whole product, or some of its bins."""

    problem: SpmvProblem
    bins: Bins | None = None
    rows: np.ndarray[Any, Any] | slice = field(default_factory=lambda: slice(None))

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """The features that decision trees compare."""
        problem = self.problem
        numbers = problem.features.numbers(problem.device.compute_units, np.dtype(problem.dtype).itemsize)
        if self.bins is None:
            return numbers
        # The name of the bin with the mean work of this class.
        lengths, granularity = problem.lengths[self.rows], self.bins.side.granularity
        middle = min(max(round(float(lengths.mean())), self.bins.begin), self.bins.end - 1)
        return {**numbers, "granularity": granularity, "bin": middle}
