"""The rows of each bin, and the phases of all of them: enqueued by the bins' accumulators."""

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

__all__ = ["enqueue", "enqueue_phase", "in_windows", "predict", "prepare"]

_log = logging.getLogger(__name__)


def prepare(chain: Chain, product: Product, step: Step, listed: cl_array.Array | None) -> Step:
    """Return a step with its state and, if rows are listed, their list."""
    assert step.bin.accumulator is not None  # rows without products have no step
    rows = step.rows if listed is None else step.rows._replace(listed=listed)
    return step._replace(rows=rows, state=step.bin.accumulator.prepare(chain, product, rows))


def predict(product: Product, steps: Sequence[Step], phases: Sequence[str]) -> Iterator[RowKernel]:
    """Yield the records of kernels that some phases will take, of those steps that tell."""
    for step in steps:
        if isinstance(step.bin.accumulator, Team):
            for phase in phases:
                record = step.bin.accumulator.predict_record(product, step.rows, phase)
                if record is not None:
                    yield record


def enqueue_phase(chain: Chain, product: Product, steps: Sequence[Step], phase: str, C: Result | cl_array.Array) -> None:
    """Have each step's accumulator enqueue its rows. Rows that take long come first, and others are made at the same time.

    Parameters
    ----------
    chain, product, steps
    phase : str
        "symbolic" for the entries of rows, or one that `Accumulator.enqueue_numeric` takes.
    C : Result or pyopencl.array.Array
        The latter for the entries of rows.
    """
    long = [step for step in steps if step.long] if len(steps) > 1 else ()
    if long:
        with chain.side_queue() as side:
            _enqueue_each(side, product, long, phase, C)
            _enqueue_each(chain, product, [step for step in steps if not step.long], phase, C)
    else:
        _enqueue_each(chain, product, steps, phase, C)


def _enqueue_each(chain: Chain, product: Product, steps: Iterable[Step], phase: str, C: Result | cl_array.Array) -> None:
    """Have the accumulator of each step enqueue its rows, step by step."""
    for bin_, rows, state, _ in steps:
        accumulator = bin_.accumulator
        assert accumulator is not None  # steps are made of bins that have one
        if isinstance(C, Result):
            accumulator.enqueue_numeric(chain, product, rows, state, C, phase)
        else:
            accumulator.enqueue_symbolic(chain, product, rows, state, C)


def enqueue(chain: Chain, product: Product, steps: Sequence[Step], C: Result, phase: str) -> Sequence[Step]:
    """Enqueue columns and values of all rows, or values alone, and return the steps that did: others if memory was missing."""
    if not C.data.size:
        return steps
    try:
        enqueue_phase(chain, product, steps, phase, C)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    else:
        return steps
    # Not in the handler: the error keeps the memory allocated so far.
    windows = in_windows(product, steps)
    enqueue_phase(chain, product, windows, phase, C)
    return windows


def in_windows(product: Product, steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps that make the rows of others with no workspace of their own."""
    n_rows, n_made = product.shape[0], sum(step.rows.n - step.rows.n_empty for step in steps)
    return [Step(WINDOWS, Rows(n_rows, n_empty=n_rows - n_made), None)]
