"""The structure of a product, before anything of C's size is allocated: analysed, shared out, and entries counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.convert import converted
from clsparse_py.csr import csr_array
from clsparse_py.launch import Chain
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.semiring import Semiring
from clsparse_py.spgemm.accumulator import Product, Rows
from clsparse_py.spgemm.analysis import Work, analyse, grouped
from clsparse_py.spgemm.arguments import form_of, memory_limit_of, with_index
from clsparse_py.spgemm.canonical_values import CanonicalOperand
from clsparse_py.spgemm.choose import FEW_PRODUCTS, alone, small
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.rules import Rule
from clsparse_py.transfer import allocated

__all__ = ["Settings", "Step", "Symbolic", "Timer"]

_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Settings:
    """What a caller asks of a product, checked: the keyword arguments of `spgemm`."""

    method: str
    semiring: Semiring
    deterministic: bool
    memory_limit: int | None
    max_nnz: int | None


class Timer:
    """The seconds that each phase takes, by the host's clock; the queue is finished at the end of each where it is to measure.

    Attributes
    ----------
    seconds : dict of str to float
    """

    def __init__(self, queue: Any, *, measures: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._queue = queue
        self._measures = measures
        if measures:
            queue.finish()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add what happens inside to a phase."""
        begin = time.perf_counter()
        yield
        if self._measures:
            self._queue.finish()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - begin


@dataclass(frozen=True)
class Step:
    """The rows of one rule, and what its accumulator keeps for them."""

    rule: Rule
    rows: Rows
    state: object


class Symbolic:
    """The analysis of a product and its symbolic phase. Waits for the device twice.

    Parameters
    ----------
    A, B : csr_array
    settings : Settings
    rules : tuple of Rule
        The last takes all.
    timer : Timer

    Attributes
    ----------
    a, b : CanonicalOperand
    product : Product
        With the dtype of C's indices.
    steps : list of Step
    indptr : pyopencl.array.Array
        Of C.
    nnz : int
        Entries of C.
    chain : Chain
        What the numeric phase goes on with.
    """

    def __init__(self, A: csr_array, B: csr_array, settings: Settings, rules: tuple[Rule, ...], timer: Timer) -> None:
        queue, allocator = A.queue, A.data.allocator
        m, n = shape = (A.shape[0], B.shape[1])
        with timer("analysis"):
            self.a, self.b = CanonicalOperand(A), CanonicalOperand(B)
            left, right = self.a.matrix, self.b.matrix
            form = form_of(left, right, settings.semiring)
            index = np.dtype(form.index)
            structure = [with_index(queue, part, index) for part in (left.indptr, left.indices, right.indptr, right.indices)]
            chain = Chain(queue, *structure, left.data, right.data)
            work, shared = _analysed(chain, m, left.nnz, structure, rules, form if settings.method == "auto" else None)
            n_products = work.n_products if work else 0
            counts = chain.scratch(m, np.uint32)
            limit = memory_limit_of(chain.device, settings.memory_limit)
            c_index = "int32" if max(n_products, m, n) <= _INT32_MAX and form.index == "int32" else "int64"
            self.product = Product(
                shape, structure[0], structure[1], left.data, structure[2], structure[3], right.data,
                work.products if work else counts, n_products, replace(form, c_index=c_index), limit, settings.deterministic,
            )  # fmt: skip
            if work is None or work.taken[0]:
                chain.fill(counts, 0, m)
            self.steps = [
                Step(rule, each, rule.accumulator.prepare(chain, self.product, each))
                for rule, each in shared
                if each is not None and rule.accumulator is not None
            ]
        with timer("symbolic"):
            for step in self.steps:
                assert step.rule.accumulator is not None  # steps are made of rules that have one
                step.rule.accumulator.enqueue_symbolic(chain, self.product, step.rows, step.state, counts)
            indptr = allocated(queue, f"indptr of the {m} x {n} product", m + 1, np.dtype(c_index), allocator)
            enqueue_scan(chain, counts, indptr, m, kind="pointers")
            self.nnz = int(chain.read(indptr, 1, m)[0])
            if c_index == "int64" and form.index == "int32" and max(self.nnz, m, n) <= _INT32_MAX:
                # Its products could have needed 64 bits; its entries, as they turn out, do not.
                indptr = converted(queue, "indptr", indptr, np.dtype(np.int32))
                chain = Chain(queue, indptr)
                self.product = replace(self.product, form=replace(self.product.form, c_index="int32"))
        self.indptr, self.chain = indptr, chain


def _analysed(
    chain: Chain, n_rows: int, nnz: int, structure: list[cl_array.Array], rules: tuple[Rule, ...], free: Form | None
) -> tuple[Work | None, list[tuple[Rule, Rows | None]]]:
    """Return what is known of the work, None where there is none, and the rules with their rows.

    Where no method is named, ``free`` is the form of the product.
    """
    if not nnz or not structure[3].size:
        return None, []
    work = analyse(chain, n_rows, nnz, structure[0], structure[1], structure[2], rules)
    one = alone(rules, work.taken, work.longest_row)
    if one is None and free is not None and 0 < work.n_products <= FEW_PRODUCTS:
        one = small(chain.device, free, work.longest_row)
    if one is not None:
        return work, [(one, Rows(n_rows, n_empty=work.taken[0]))]
    return work, list(zip(rules, grouped(chain, n_rows, work, rules), strict=True))
