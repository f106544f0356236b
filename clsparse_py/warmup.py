"""Building early what the first products would build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py.csr import csr_array
from clsparse_py.device import Device, default_queue, describe
from clsparse_py.semiring import plus_times
from clsparse_py.spgemm import SpgemmPlan, spgemm_plan
from clsparse_py.spgemm.arguments import form_of
from clsparse_py.spgemm.choose import choosable, rules_for
from clsparse_py.spgemm.symbolic import Settings, Timer
from clsparse_py.spmm import spmm
from clsparse_py.spmv import spmv_plan
from clsparse_py.spmv.binning import Scheme
from clsparse_py.spmv.choose import KernelChoice
from clsparse_py.spmv.features import Features
from clsparse_py.tuning.profiles import rules

__all__ = ["warmup"]

# Longer than what any kernel takes in one part, so that the launch that adds the parts of a row is built too.
_LONG_ROW = 1 << 16
# Rows of A in small sparse products: as long as each shape that merges them takes.
_SHORT_ROWS = (1, 2, 4, 8, 16)
# Numbers of columns for which SpMM takes kernels of their own.
_COLUMNS = (1, 2, 4)


def warmup(queue: cl.CommandQueue | None = None, dtypes: Iterable[Any] = (np.float32, np.float64)) -> int:
    """Build the kernels that products are likely to need on a device.

    The first product with a vector or a dense matrix then builds nothing. These are the kernels that the profile may choose for
    a matrix with 32-bit indices, with alpha and beta and without, and those that check, inspect and divide one. For products of
    sparse matrices they are those of each rule of "auto", and for new values by a plan. Each runs once, on a small matrix,
    because some drivers finish a build only at the first launch. Across processes what was built is kept on disk; there it saves
    the time of loading it.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        Of the device and context to build for; by default `clsparse_py.default_queue`.
    dtypes : iterable of dtype
        Of the values of A and x. Those that the device lacks are left out.

    Returns
    -------
    int
        How many kernels were built that this process did not have.

    Raises
    ------
    NoDeviceError
        No queue was given, and there is no device.
    TypeError
        A dtype is not supported.
    """
    queue = default_queue() if queue is None else queue
    device = describe(queue.device)
    before = sum(1 for _ in programs.built())
    for dtype in dict.fromkeys(np.dtype(each) for each in dtypes):
        if not device.fp64 and dtype.name in ("float64", "complex128"):
            continue
        matrices = _matrices(queue, dtype)
        operands = [cl_array.zeros(queue, (1, columns), dtype) for columns in _COLUMNS]
        # A plan holds what its launches read: it has to outlive them.
        choices = list(_choices(device, dtype.name))
        plans = [(A, spmv_plan(A, scheme=scheme, kernel=kernel)) for A in matrices for scheme, kernel in choices]
        y = cl_array.zeros(queue, max(A.shape[0] for A in matrices), dtype)
        for scale in (None, 1):
            for A, plan in plans:
                plan.execute(A, operands[0], y, alpha=scale)
            for X in operands:
                spmm(matrices[0], X, alpha=scale)
        for product in _sparse_products(queue, device, dtype):
            product()
        queue.finish()
    return sum(1 for _ in programs.built()) - before


def _matrices(queue: cl.CommandQueue, dtype: np.dtype[Any]) -> list[csr_array]:
    """Return a matrix of short rows, and one with an empty row, a short one, and one that every kernel cuts."""
    made = []
    for lengths in ([1, 1], [0, 1, _LONG_ROW]):
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        parts = (np.zeros(indptr[-1], dtype), np.zeros(indptr[-1], np.int32), indptr)
        made.append(csr_array(scipy.sparse.csr_array(parts, shape=(len(lengths), 1)), queue=queue))
    return made


def _sparse_products(queue: cl.CommandQueue, device: Device, dtype: np.dtype[Any]) -> Iterator[SpgemmPlan]:
    """Plan sparse products: with a row for every rule that the profile may choose, and small ones, which have their own."""
    one = csr_array(scipy.sparse.csr_array(np.ones((1, 1), dtype)), queue=queue)
    form = form_of(one, one)
    for recipe in choosable(device, form):
        of_rows = rules_for("auto", device, form, recipe=recipe)
        limits = [limit for rule in of_rows for limit in rule.limits if 0 < limit < _LONG_ROW]
        # Rows of as many entries as each rule may take, and one beyond them all; rows of the other operand have one entry.
        left, right = _with_rows(queue, dtype, [*dict.fromkeys(limits), 1 + max(limits, default=0)])
        # A recipe of its own is not "auto", which would take such a product for a small one.
        settings = Settings(str(recipe), plus_times, deterministic=True, memory_limit=None, max_nnz=None)
        yield spgemm_plan(left, right)
        yield SpgemmPlan(left, right, settings, of_rows, Timer(queue, measures=False))
        yield spgemm_plan(right.T, right)
    for length in _SHORT_ROWS:
        yield spgemm_plan(*_with_rows(queue, dtype, [length]))


def _with_rows(queue: cl.CommandQueue, dtype: np.dtype[Any], lengths: list[int]) -> tuple[csr_array, csr_array]:
    """Return operands of a sparse product: rows of these lengths, and a column of ones."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    left = scipy.sparse.csr_array((np.zeros(indices.size, dtype), indices, indptr), shape=(len(lengths), max(lengths)))
    return csr_array(left, queue=queue), csr_array(scipy.sparse.csr_array(np.ones((max(lengths), 1), dtype)), queue=queue)


def _choices(device: Device, dtype: str) -> Iterator[tuple[str, KernelChoice | None]]:
    """Yield the schemes and kernels that the profile of a device may choose for a matrix."""
    numbers = {**Features(1, 1, 1, 1, 1, 0.0, ()).numbers(device.compute_units, 1), "bin": 0, "granularity": 1}
    for kernel in rules(device, "spmv", dtype, "single", numbers, KernelChoice.parse).values.values():
        yield "single", kernel
    for scheme in rules(device, "spmv", dtype, "scheme", numbers, Scheme.parse).values.values():
        if scheme.name != "single":
            yield str(scheme), None
