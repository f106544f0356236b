"""Build kernels before the first products need them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.functions.kronecker import kron
from clsparse_py._arrays.functions.stacking import hstack
from clsparse_py._build import programs
from clsparse_py._decisions.profiles import rules
from clsparse_py._device.device import Device, describe
from clsparse_py._matrix.placement import queue_for
from clsparse_py._operations.spgemm import SpgemmPlan, spgemm_plan
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.methods.merge import merges
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import Strategy, bins_for, choosable_strategies
from clsparse_py._operations.spgemm.thresholds import thresholds_of
from clsparse_py._operations.spmm import spmm
from clsparse_py._operations.spmv import spmv_plan
from clsparse_py._operations.spmv.binning import Scheme
from clsparse_py._operations.spmv.choose import KernelChoice
from clsparse_py._operations.spmv.features import Features
from clsparse_py._operations.transpose import transpose
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import from_host

__all__ = ["warmup"]

#: Entries of a row that every SpMV kernel cuts, so that the kernel that adds the sums of a row's parts is built, too.
_LONG_ROW = 1 << 16
#: Entries of a row that one team (lanes that share a row) multiplies with a dense matrix, whatever the team's size.
_TEAM_ROW = 16
#: Row lengths of matrices that SpMV's chunked kernels distinguish: uneven with empty rows or without, and mostly empty.
_LENGTHS = ([0, 1], [1, 3], [0] * 10 + [1])
#: Numbers of columns of a dense matrix for which products with a sparse matrix have kernels of their own.
_COLUMNS = (1, 2, 4, 32)
#: Numbers of tiles (work-groups' parts of a sum of two matrices) for which the scan of the tiles' counts has other kernels.
_TILES = (2, 5000, 10_000)
#: Nodes along a side of the grids whose matrices are multiplied, enough to need the reduction kernels.
_SIDE = 128
#: Offsets of the main and upper diagonals of grids' matrices: in 1, 2 and 3 dimensions, and in 2 with diagonal neighbours.
_GRIDS = (
    (0, 1),
    (0, 1, _SIDE),
    (0, 1, _SIDE, 16 * _SIDE),
    (0, 1, _SIDE - 1, _SIDE, _SIDE + 1),
)
#: Numbers of rows that ``A[rows]`` takes: their lengths are added up by other kernels for few rows than for many.
_LISTED = (2, 1 << 14)
#: Rows of a matrix that is too large for a single work-group to add it to another matrix.
_ROWS = 1 << 12
#: Numbers of matrices side by side for which `hstack` has kernels of their own.
_BLOCKS = (1, 2, 3)
#: Most entries of a row of a band matrix whose SpGEMM kernels are built: no kernel speculates that longer rows are alike.
_WIDEST_BAND = 256


def warmup(
    queue: cl.CommandQueue | None = None,
    dtypes: Iterable[Any] = (np.float32, np.float64),
    report: Callable[[int, int], object] | None = None,
) -> int:
    """Build the kernels that products are likely to need on a device.

    The first product with a vector, or with a dense matrix of 1, 2, 4 or 32 columns, then builds nothing. The built kernels are
    those that the profile may choose for a matrix with 32-bit indices, with alpha and beta and without, and the kernels that
    check, inspect and divide a matrix. For products of sparse matrices they are the kernels of every bin of "auto", of equal
    rows, as in bands and grids of one, two and three dimensions, and of new values by a plan. Further kernels are those of
    ``A[rows]`` for listed rows, of ``A + B``, ``A.multiply(B)``, `hstack`, `vstack` and `kron`. Every kernel runs once, on a
    small matrix, because some drivers finish a build only at the first launch. Built kernels are kept on disk for later
    processes, in which this function saves the time of loading kernels.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        A queue of the device and context to build for; by default `clsparse_py.default_queue`.
    dtypes : iterable of dtype
        Dtypes of the values of A and x; dtypes that the device lacks are left out.
    report : callable, optional
        Takes, after each step, the number of finished steps and the number of all steps.

    Returns
    -------
    int
        Number of built kernels that this process did not have.

    Raises
    ------
    NoDeviceError
        No queue was given, and there is no device.
    TypeError
        A dtype is not supported, or ``queue`` is no queue.

    Examples
    --------
    For all dtypes, call ``sp.warmup()``; for no dtypes there is nothing to build:

    >>> import clsparse_py as sp
    >>> sp.warmup(dtypes=[])
    0
    """
    queue = queue_for((), queue)
    device = describe(queue.device)
    n_before = sum(1 for _ in programs.built())
    requested = dict.fromkeys(np.dtype(name) for name in dtypes)
    able = [dtype for dtype in requested if device.fp64 or dtype.name not in ("float64", "complex128")]
    steps = [step for dtype in able for step in _steps(queue, device, dtype)]
    for n_done, step in enumerate(steps, 1):
        step()  # runs the built kernels: quirk 31
        queue.finish()
        if report is not None:
            report(n_done, len(steps))
    return sum(1 for _ in programs.built()) - n_before


def _steps(queue: cl.CommandQueue, device: Device, dtype: np.dtype[Any]) -> Iterator[Callable[[], object]]:
    """Yield the steps of warming up for a dtype: functions that run products, and so build their kernels."""
    matrices = _matrices(queue, dtype)
    of_lengths = [_with_lengths(queue, dtype, lengths) for lengths in _LENGTHS]
    for scheme, kernel in _choices(device, dtype.name):
        of_chunked = of_lengths if kernel is not None and kernel.name == "chunked" else []
        yield partial(_multiply_vector, [*matrices, *of_chunked], scheme, kernel)
    for columns in _COLUMNS:
        # Sparse matrices are made anew for each width of the dense matrix, as a plan may change kernels after some products.
        # Teams of many lanes (lanes that share a row) take equal rows that are not short.
        of_teams = _with_lengths(queue, dtype, [_TEAM_ROW] * 2)
        yield partial(_multiply_columns, [*_matrices(queue, dtype), of_teams], columns)
    # `A[rows]` takes few rows in a single launch, and many or long rows in several launches.
    for A, n in ((matrices[0], 2), *((matrices[1], n) for n in _LISTED)):
        yield partial(_take_rows, A, n)
    yield partial(_unite, matrices[0])
    yield partial(_unite, csr_array(scipy.sparse.eye_array(_ROWS, dtype=dtype, format="csr"), queue=queue))
    yield partial(_scan_tiles, matrices[0])
    yield partial(_combine, matrices[0])
    types = types_of(matrices[0], matrices[0])
    for strategy in choosable_strategies(device, types):
        yield partial(_multiply_by, queue, device, dtype, strategy)
    lengths = sorted({method.length for method in merges(device, types, thresholds_of(device, types), registers=True)})
    for length in lengths:
        yield partial(_multiply_rows, queue, dtype, length)
    for length in lengths:
        if length <= _WIDEST_BAND:
            # The band matrix has enough rows for kernels of large products, and few enough that a CPU does not cut the product.
            yield partial(_square, queue, dtype, range(length), 2 * length + 4096 // length)
    for offsets in _GRIDS:
        diagonals = sorted({sign * offset for offset in offsets for sign in (-1, 1)})
        yield partial(_square, queue, dtype, diagonals, _SIDE * _SIDE)


def _matrices(queue: cl.CommandQueue, dtype: np.dtype[Any]) -> list[csr_array]:
    """Return two matrices of one column: with short rows; with an empty row, a short row and a row that every kernel cuts."""
    return [_with_lengths(queue, dtype, lengths) for lengths in ([1, 1], [0, 1, _LONG_ROW])]


def _with_lengths(queue: cl.CommandQueue, dtype: np.dtype[Any], lengths: list[int]) -> csr_array:
    """Return a matrix of one column whose row i has ``lengths[i]`` entries: duplicates, all of value 0, in the only column."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    parts = (np.zeros(indptr[-1], dtype), np.zeros(indptr[-1], np.int32), indptr)
    return csr_array(scipy.sparse.csr_array(parts, shape=(len(lengths), 1)), queue=queue)


def _multiply_vector(matrices: list[csr_array], scheme: Scheme, kernel: KernelChoice | None) -> None:
    """Multiply matrices with a vector by a scheme and kernel of SpMV, with the factor alpha and without, to build kernels."""
    for A in matrices:
        plan = spmv_plan(A, scheme=scheme, kernel=kernel)
        x, y = (from_host(A.queue, np.zeros(n, A.dtype), copy=True) for n in (1, A.shape[0]))
        for scale in (None, 1):
            plan.execute(A, x, y, alpha=scale)
        # The queue is finished, as launches read arrays of SpMV's plan, which the next turn of the loop frees.
        A.queue.finish()


def _multiply_columns(matrices: list[csr_array], columns: int) -> None:
    """Multiply matrices with a dense matrix of ``columns`` columns, with the factor alpha and without, to build kernels."""
    for A in matrices:
        X = from_host(A.queue, np.zeros((1, columns), A.dtype), copy=True)
        for scale in (None, 1):
            spmm(A, X, alpha=scale)


def _take_rows(A: csr_array, n: int) -> None:
    """Take row 1 of a matrix n times by ``A[rows]``, with the list ``rows`` on the host and on the device, to build kernels."""
    rows = np.ones(n, np.int64)
    for listed in (rows, from_host(A.queue, rows, copy=True)):
        A[listed]


def _unite(A: csr_array) -> None:
    """Add and multiply a matrix and itself entry by entry, which builds the kernels that merge two patterns."""
    for operate in (operator.add, operator.mul):
        operate(A, A)
    A.queue.finish()


def _scan_tiles(A: csr_array) -> None:
    """Scan (add up) arrays of each length in `_TILES`, to build the scan kernels that unions of matrices need."""
    for n in _TILES:
        chain = Chain(A.queue)
        counts = chain.scratch(n, A.indptr.dtype)
        chain.fill(counts, 0, n)
        enqueue_scan(chain, counts, counts, n, kind="inclusive")
    A.queue.finish()


def _combine(A: csr_array) -> None:
    """Stack copies of a matrix, and compute the matrix's Kronecker product with itself as CSR and COO, to build kernels."""
    for n in _BLOCKS:
        hstack([A] * n)
    for form in ("csr", "coo"):
        kron(A, A, format=form)
    A.queue.finish()


def _multiply_by(queue: cl.CommandQueue, device: Device, dtype: np.dtype[Any], strategy: Strategy) -> None:
    """Multiply matrices that have a row for every bin (class of rows by size) of a strategy of SpGEMM, to build kernels."""
    unit = csr_array(scipy.sparse.csr_array(np.ones((1, 1), dtype)), queue=queue)
    of_rows = bins_for("auto", device, types_of(unit, unit), strategy=strategy)
    limits = [limit for bin_ in of_rows for limit in bin_.limits if 0 < limit < _LONG_ROW]
    # The first operand has the longest row of every bin, and a longer row; rows of the second operand have one entry.
    first, second = _with_rows(queue, dtype, [*dict.fromkeys(limits), 1 + max(limits, default=0)])
    # The second plan of SpGEMM is told its bins, as "auto" has other kernels for such small products.
    for plan in (
        spgemm_plan(first, second),
        SpgemmPlan(first, second, Request(bins=of_rows)),
        spgemm_plan(transpose(second), second),
    ):
        _multiply_twice(plan)


def _multiply_twice(plan: SpgemmPlan[csr_array]) -> None:
    """Multiply twice by a plan of SpGEMM, whose second call computes new values alone, to build all of its kernels."""
    plan()
    plan()
    plan.queue.finish()


def _multiply_rows(queue: cl.CommandQueue, dtype: np.dtype[Any], length: int) -> None:
    """Multiply a row of ``length`` entries with a column of ones by a plan, to build SpGEMM's kernels for few products."""
    _multiply_twice(spgemm_plan(*_with_rows(queue, dtype, [length])))


def _square(queue: cl.CommandQueue, dtype: np.dtype[Any], offsets: Sequence[int], n: int) -> None:
    """Plan SpMV with an n x n matrix whose diagonals are at ``offsets``, transpose it and square it, to build kernels."""
    host = scipy.sparse.diags_array(np.ones(len(offsets)), offsets=offsets, shape=(n, n))
    A = csr_array(scipy.sparse.csr_array(host, dtype=dtype), queue=queue)
    A.spmv_plan()
    transpose(A)
    _multiply_twice(spgemm_plan(A, A))


def _with_rows(queue: cl.CommandQueue, dtype: np.dtype[Any], lengths: list[int]) -> tuple[csr_array, csr_array]:
    """Return the operands of a sparse product: a matrix whose row i has ``lengths[i]`` entries, and a column of ones."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    factor = scipy.sparse.csr_array((np.zeros(indices.size, dtype), indices, indptr), shape=(len(lengths), max(lengths)))
    return csr_array(factor, queue=queue), csr_array(scipy.sparse.csr_array(np.ones((max(lengths), 1), dtype)), queue=queue)


def _choices(device: Device, dtype: str) -> Iterator[tuple[Scheme, KernelChoice | None]]:
    """Yield the binning schemes and kernels of SpMV that the profile of a device may choose for a matrix."""
    numbers = {**Features(1, 1, 1, 1, 1, 0.0, ()).numbers(device.compute_units, 1), "bin": 0, "granularity": 1}
    for kernel in rules(device, "spmv", dtype, "single", numbers, KernelChoice.parse).values.values():
        yield Scheme("single"), kernel
    for scheme in rules(device, "spmv", dtype, "scheme", numbers, Scheme.parse).values.values():
        if scheme.name != "single":
            yield scheme, None
