"""Count the entries of C: by speculation, by a symbolic phase, or by the upper bound."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.analysis import Work, analyse
from clsparse_py._operations.spgemm.decide import Decision, Reason, Speculation, speculation_for, staged_entries
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._operations.spgemm.operands import Operands
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.row_partition import Partition, Step, numeric_bin, partition_of
from clsparse_py._operations.spgemm.speculation import speculate
from clsparse_py._operations.spgemm.steps import enqueue_phase, predict_records, prepare
from clsparse_py._operations.spgemm.timer import Timer
from clsparse_py._operations.spgemm.upper_bound import new_loose, upper_bound_fits
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import add_up, enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["Counted", "count", "partition_rows"]

_log = logging.getLogger(__name__)

#: Reason that explanations give for a product whose rows one merge kernel counted without analysis: a speculation that held.
_SPECULATED = Reason("rows of A are short or alike: made as they come, with no analysis")


@dataclass
class Counted:
    """The row pointers of C, and the steps that make its columns and values.

    Attributes
    ----------
    product : Product
        Its kind has the dtype of C's indices.
    steps : sequence of Step
        The rows of each bin.
    indptr : pyopencl.array.Array
        Of C.
    nnz : int
        Entries of C.
    reason : Reason
    loose : Result or None
        C's rows, each in the room of its upper bound; None if the steps are still to make them.
    """

    product: Product
    steps: Sequence[Step]
    indptr: cl_array.Array
    nnz: int
    reason: Reason
    loose: Result | None = None


def count(operands: Operands, request: Request, timer: Timer, *, counting_only: bool = False) -> Counted:
    """Count the entries of C's rows, and return C's structure without columns. Waits twice, or once if a speculation holds.

    Parameters
    ----------
    operands : Operands
    request : Request
    timer : Timer
    counting_only : bool
        Whether the symbolic phase is all that is needed, so that no kernels of the numeric phase are built.
    """
    if not (operands.a.nnz and operands.b.nnz):
        return _empty_structure(operands, timer)
    timer.end_phase("analysis")
    chain, kind = operands.chain, operands.product.kind
    speculation = speculation_for(kind, operands.features) if request.is_auto else None
    if speculation is not None:
        counted = _count_by_speculation(operands, speculation)
        timer.end_phase("symbolic")
        if counted is not None:
            return counted
    product, work, partition = partition_rows(operands, operands.decision(request))
    counts, indptr = operands.new_counts(product.kind.c_index)
    if work.taken[0]:  # rows without products
        chain.fill(counts, 0, product.shape[0])
    timer.end_phase("analysis")
    loose: Result | None = None
    if partition.suits_upper_bound and upper_bound_fits(product, work, [step.bin for step in partition.steps]):
        loose = _enqueue_upper_bound(chain, product, partition, counts)
        timer.end_phase("numeric")
    if loose is None:
        _build_together(chain, product, partition, ("symbolic",) if counting_only else ("symbolic", "numeric"))
        enqueue_phase(chain, product, partition.steps, "symbolic", counts)
        if product.kind is not kind and max(product.shape) <= INT32_MAX and add_up(chain, counts, product.shape[0]) <= INT32_MAX:
            # C's indices, for which 64 bits were allowed, turn out to need 32 bits.
            product = product._replace(kind=kind)
    indptr = operands.new_pointers(product.kind.c_index) if indptr is None else indptr
    run(chain, enqueue_scan, (counts, indptr), product.shape[0], "pointers")
    nnz = int(chain.read(indptr, 1, product.shape[0])[0])
    timer.end_phase("symbolic")
    reason = partition.reason._replace(upper_bound=loose is not None)
    return Counted(product, partition.steps, indptr, nnz, reason, loose)


def _empty_structure(operands: Operands, timer: Timer) -> Counted:
    """Return the structure of the empty product C of operands of which one has no entries."""
    chain, product = operands.chain, operands.product
    indptr = operands.new_pointers(product.kind.c_index)
    chain.fill(indptr, 0, product.shape[0] + 1)
    timer.end_phase("symbolic")
    return Counted(product, (), indptr, 0, Reason("there are no products"))


def _count_by_speculation(operands: Operands, speculation: Speculation) -> Counted | None:
    """Return the row pointers of C, counted by one merge kernel for all rows; None if rows or memory do not suit the kernel."""
    product = operands.product
    try:
        max_products = min(speculation.max_products or INT32_MAX, INT32_MAX)
        speculated = speculate(operands, speculation.accumulator, max_products)
    except MemoryError as error:
        _log.info("the product is analysed: %s", error)
        return None
    if speculated is None:
        return None
    kind = product.kind
    bin_ = numeric_bin(kind.thresholds, speculation, speculated, staged_entries(kind, operands.features))
    if bin_ is None:
        return None
    product = product._replace(n_products=speculated.n_products, bound=speculated.n_products)
    steps = (Step(bin_, Rows(product.shape[0], n_empty=speculated.n_empty)),)
    return Counted(product, steps, speculated.indptr, speculated.nnz, _SPECULATED)


def partition_rows(
    operands: Operands, decision: Decision, c_index: np.dtype[Any] | None = None
) -> tuple[Product, Work, Partition]:
    """Analyse the rows of a product; return the product with rows' numbers of products, its work, and its partition. Waits once.

    Parameters
    ----------
    operands : Operands
    decision : Decision
        The bins of the analysis.
    c_index : numpy.dtype, optional
        Of C's indices if C is there; by default one that C's upper bound fits in.
    """
    chain, product = operands.chain, operands.product
    (m, n), kind = product.shape, product.kind
    analysis = analyse(chain, (m, n), operands.a.nnz, product.structure, decision.bins, uneven=decision.is_uneven)
    work = analysis.work
    partition = partition_of(kind, operands.features, decision, work, operands.budget)
    if c_index is None:
        c_index = kind.c_index if max(work.bound, m, n) <= INT32_MAX else np.dtype(np.int64)
    if c_index != kind.c_index:
        kind = kind_of(kind.device, replace(kind.types, c_index=name_of(c_index)))
    product = product._replace(kind=kind, products=analysis.products, n_products=work.n_products, bound=work.bound)
    listed = analysis.list_of(chain, m) if partition.is_listed else None
    # The analysis' result, the bin number of each row of C, is freed, as the accumulators may need its memory.
    del analysis
    return product, work, partition._replace(steps=[prepare(chain, product, step, listed) for step in partition.steps])


def _enqueue_upper_bound(chain: Chain, product: Product, partition: Partition, counts: cl_array.Array) -> Result | None:
    """Enqueue the making of C's rows uncounted, in memory for all products, and return the arrays; None if memory is missing."""
    _build_together(chain, product, partition, ("upper_bound",))
    try:
        loose = new_loose(chain, product, counts)
        within_limit = product._replace(memory_limit=product.memory_limit - product.upper_bytes)
        enqueue_phase(chain, within_limit, partition.steps, "upper_bound", loose)
    except MemoryError as error:
        _log.info("rows are counted before they are made: %s", error)
        return None
    return loose


def _build_together(chain: Chain, product: Product, partition: Partition, phases: tuple[str, ...]) -> None:
    """Build the kernels of a product's bins (classes of rows by size) for some phases, in parallel."""
    steps = partition.steps
    accumulators = tuple(step.bin.accumulator for step in steps)
    key = product.types, product.deterministic, phases, partition.is_listed, accumulators
    chain.build_together(key, lambda: predict_records(product, steps, phases))
