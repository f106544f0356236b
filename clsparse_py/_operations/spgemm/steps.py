"""The steps of a product: each bin's accumulator enqueues the phases of the bin's rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from pyopencl import array as cl_array

from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.kernels import RowKernel
from clsparse_py._operations.spgemm.methods.dense import WINDOWS
from clsparse_py._operations.spgemm.methods.team import Team
from clsparse_py._operations.spgemm.row_partition import Step
from clsparse_py._run.launch import Chain

__all__ = ["enqueue", "enqueue_phase", "predict_records", "prepare"]

_log = logging.getLogger(__name__)


def prepare(chain: Chain, product: Product, step: Step, listed: cl_array.Array | None) -> Step:
    """Return a step (the rows of one bin) with its accumulator's state and, if rows are listed, the list of rows."""
    assert step.bin.accumulator is not None  # rows without products have no step
    rows = step.rows if listed is None else step.rows._replace(listed=listed)
    return step._replace(rows=rows, state=step.bin.accumulator.prepare(chain, product, rows))


def predict_records(product: Product, steps: Sequence[Step], phases: Sequence[str]) -> Iterator[RowKernel]:
    """Yield parameters of the kernels that some phases of a product will take, if the bins' accumulators can predict them."""
    for step in steps:
        if isinstance(step.bin.accumulator, Team):
            for phase in phases:
                record = step.bin.accumulator.predict_record(product, step.rows, phase)
                if record is not None:
                    yield record


def enqueue_phase(chain: Chain, product: Product, steps: Sequence[Step], phase: str, C: Result | cl_array.Array) -> None:
    """Enqueue a phase of a product, bin by bin of rows; long rows come first, on a side queue, beside all others.

    Parameters
    ----------
    chain, product, steps
    phase : str
        "symbolic", or a phase that `Accumulator.enqueue_numeric` takes.
    C : Result or pyopencl.array.Array
        C's arrays; in the symbolic phase the array that takes the entries of rows.
    """
    long = [step for step in steps if step.long] if len(steps) > 1 else ()
    if long:
        with chain.side_queue() as side:
            _enqueue_each(side, product, long, phase, C)
            _enqueue_each(chain, product, [step for step in steps if not step.long], phase, C)
    else:
        _enqueue_each(chain, product, steps, phase, C)


def _enqueue_each(chain: Chain, product: Product, steps: Iterable[Step], phase: str, C: Result | cl_array.Array) -> None:
    """Enqueue a phase of a product on one queue for some steps, each the rows of one bin, one after another."""
    for bin_, rows, state, _ in steps:
        accumulator = bin_.accumulator
        assert accumulator is not None  # steps are made of bins that have one
        if isinstance(C, Result):
            accumulator.enqueue_numeric(chain, product, rows, state, C, phase)
        else:
            accumulator.enqueue_symbolic(chain, product, rows, state, C)


def enqueue(chain: Chain, product: Product, steps: Sequence[Step], C: Result, phase: str) -> Sequence[Step]:
    """Enqueue C's columns and values, or values alone, and return the steps taken: one of column windows if memory ran out."""
    if not C.data.size:
        return steps
    try:
        enqueue_phase(chain, product, steps, phase, C)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    else:
        return steps
    # Windows of columns are enqueued after the ``except`` block, where the error still holds the memory allocated so far.
    n_rows, n_made = product.shape[0], sum(step.rows.n - step.rows.n_empty for step in steps)
    windows = [Step(WINDOWS, Rows(n_rows, n_empty=n_rows - n_made))]
    enqueue_phase(chain, product, windows, phase, C)
    return windows
