"""Count the entries of C: by speculation, by a symbolic phase, or by the upper bound."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.all_rows import staged_entries
from clsparse_py._operations.spgemm.analysis import Work, analyse
from clsparse_py._operations.spgemm.decide import Decision, Reason, Speculation, speculation_for
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._operations.spgemm.new_arrays import new_counts, new_pointers
from clsparse_py._operations.spgemm.operands import Operands
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.row_partition import Partition, Step, numeric_bin, partition_of
from clsparse_py._operations.spgemm.speculation import speculate
from clsparse_py._operations.spgemm.steps import enqueue_phase, predict, prepare
from clsparse_py._operations.spgemm.timer import Timer
from clsparse_py._operations.spgemm.upper_bound import fits, new_loose
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import add_up, enqueue_scan
from clsparse_py._run.recording import run

__all__ = ["Counted", "PartitionedProduct", "count", "partition_rows"]

_log = logging.getLogger(__name__)

#: The reason for the bins of a product whose speculation held.
_SPECULATED = Reason("rows of A are short or alike: made as they come, with no analysis")


@dataclass
class Counted:
    """The structure of a product but for its columns, and the steps that make it.

    Attributes
    ----------
    product : Product
        With the dtype of C's indices.
    steps : sequence of Step
        The rows of each bin.
    indptr : pyopencl.array.Array
        Of C.
    nnz : int
        Entries of C.
    reason : Reason
    loose : Result or None
        C's rows, made already, each in the room that its upper bound takes; None if they are still to be made.
    """

    product: Product
    steps: Sequence[Step]
    indptr: cl_array.Array
    nnz: int
    reason: Reason
    loose: Result | None = None


class PartitionedProduct(NamedTuple):
    """A product whose rows are shared out among bins.

    Attributes
    ----------
    product : Product
        With the products of its rows.
    steps : list of Step
        Of ``shares``, prepared.
    work : Work
    shares : Partition
    """

    product: Product
    steps: list[Step]
    work: Work
    shares: Partition


def count(operands: Operands, request: Request, timer: Timer, *, counting_only: bool = False) -> Counted:
    """Return the structure of C but for its columns. Waits for the device twice, or once if a speculation holds.

    Parameters
    ----------
    operands : Operands
    request : Request
    timer : Timer
    counting_only : bool
        Whether C is not to be made afterwards, so that kernels for that are not built.
    """
    if not (operands.a.nnz and operands.b.nnz):
        return _without_products(operands, timer)
    timer.end_phase("analysis")
    chain, kind = operands.chain, operands.product.kind
    speculation = speculation_for(kind, operands.features) if request.is_auto else None
    if speculation is not None:
        counted = _speculative(operands, speculation)
        timer.end_phase("symbolic")
        if counted is not None:
            return counted
    shared = partition_rows(operands, operands.decision(request))
    product, steps = shared.product, shared.steps
    counts, indptr = new_counts(chain, product, operands.allocator)
    if shared.work.taken[0]:  # rows without products
        chain.fill(counts, 0, product.shape[0])
    timer.end_phase("analysis")
    loose: Result | None = None
    if shared.shares.suits_upper_bound and fits(product, shared.work, [step.bin for step in steps]):
        loose = _by_upper_bound(operands, shared, counts)
        timer.end_phase("numeric")
    if loose is None:
        product = _exact(operands, shared, counts, ("symbolic",) if counting_only else ("symbolic", "numeric"))
    indptr = new_pointers(chain, product, operands.allocator) if indptr is None else indptr
    run(chain, enqueue_scan, (counts, indptr), product.shape[0], "pointers")
    nnz = int(chain.read(indptr, 1, product.shape[0])[0])
    timer.end_phase("symbolic")
    return Counted(product, steps, indptr, nnz, shared.shares.reason._replace(upper_bound=loose is not None), loose)


def _without_products(operands: Operands, timer: Timer) -> Counted:
    """Return the structure of a product without entries."""
    chain, product = operands.chain, operands.product
    indptr = new_pointers(chain, product, operands.allocator)
    chain.fill(indptr, 0, product.shape[0] + 1)
    timer.end_phase("symbolic")
    return Counted(product, (), indptr, 0, Reason("there are no products"))


def _speculative(operands: Operands, speculation: Speculation) -> Counted | None:
    """Return the structure of a product by one symbolic kernel for all rows; None if rows are to be analysed after all."""
    chain, product = operands.chain, operands.product
    try:
        max_products = min(speculation.max_products or INT32_MAX, INT32_MAX)
        speculated = speculate(chain, product, speculation.accumulator, max_products, operands.allocator)
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


def partition_rows(operands: Operands, decision: Decision, c_index: np.dtype[Any] | None = None) -> PartitionedProduct:
    """Analyse a product, and share its rows out among bins. Waits for the device once.

    Parameters
    ----------
    operands : Operands
    decision : Decision
        For the product.
    c_index : numpy.dtype, optional
        Of C's indices if C is there; by default one that C's upper bound fits in.
    """
    chain, product = operands.chain, operands.product
    (m, n), kind = product.shape, product.kind
    analysis = analyse(chain, (m, n), operands.a.nnz, product.structure, decision.bins, uneven=decision.is_uneven)
    work = analysis.work
    shares = partition_of(kind, operands.features, decision, work, operands.budget)
    if c_index is None:
        c_index = kind.c_index if max(work.bound, m, n) <= INT32_MAX else np.dtype(np.int64)
    if c_index != kind.c_index:
        kind = kind_of(kind.device, replace(kind.types, c_index=name_of(c_index)))
    product = product._replace(kind=kind, products=analysis.products, n_products=work.n_products, bound=work.bound)
    listed = analysis.list_of(chain, m) if shares.is_listed else None
    # The lists of rows are made, and the numbers of bins are not needed any more.
    del analysis
    return PartitionedProduct(product, [prepare(chain, product, step, listed) for step in shares.steps], work, shares)


def _by_upper_bound(operands: Operands, shared: PartitionedProduct, counts: cl_array.Array) -> Result | None:
    """Enqueue rows of C, each in the room that all its products take, and their entries; None if memory is missing for that."""
    chain, product, steps = operands.chain, shared.product, shared.steps
    _build_together(operands, shared, ("upper_bound",))
    try:
        loose = new_loose(chain, product, counts)
        within_limit = product._replace(memory_limit=product.memory_limit - product.upper_bytes)
        enqueue_phase(chain, within_limit, steps, "upper_bound", loose)
    except MemoryError as error:
        _log.info("rows are counted before they are made: %s", error)
        return None
    return loose


def _exact(operands: Operands, shared: PartitionedProduct, counts: cl_array.Array, phases: tuple[str, ...]) -> Product:
    """Enqueue the symbolic phase, and return the product with the index dtype that C turns out to need."""
    chain, product, kind = operands.chain, shared.product, operands.product.kind
    _build_together(operands, shared, phases)
    enqueue_phase(chain, product, shared.steps, "symbolic", counts)
    m = product.shape[0]
    if product.kind is not kind and max(product.shape) <= INT32_MAX and add_up(chain, counts, m) <= INT32_MAX:
        # C could have needed 64 bits; its entries, as they turn out, do not.
        return product._replace(kind=kind)
    return product


def _build_together(operands: Operands, shared: PartitionedProduct, phases: tuple[str, ...]) -> None:
    """Build the kernels of some phases at the same time."""
    product, steps, shares = shared.product, shared.steps, shared.shares
    accumulators = tuple(step.bin.accumulator for step in steps)
    key = product.types, product.deterministic, phases, shares.is_listed, accumulators
    operands.chain.build_together(key, lambda: predict(product, steps, phases))
