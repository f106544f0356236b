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
from clsparse_py.spgemm.choose import FEW_PRODUCTS, alone, guessed, shares, small, without_spans
from clsparse_py.spgemm.rules import Rule, Rules
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
    """The analysis of a product and its symbolic phase. Waits for the device twice, or once where a guess of its rule holds.

    Parameters
    ----------
    A, B : csr_array
    settings : Settings
    rules : Rules
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

    def __init__(self, A: csr_array, B: csr_array, settings: Settings, rules: Rules, timer: Timer) -> None:
        queue, allocator = A.queue, A.data.allocator
        m, n = shape = (A.shape[0], B.shape[1])
        with timer("analysis"):
            self.a, self.b = CanonicalOperand(A), CanonicalOperand(B)
            left, right = self.a.matrix, self.b.matrix
            form = form_of(left, right, settings.semiring)
            index = np.dtype(form.index)
            structure = [with_index(queue, part, index) for part in (left.indptr, left.indices, right.indptr, right.indices)]
            chain = Chain(queue, *structure, left.data, right.data)
            counts = chain.scratch(m, np.uint32)
            limit = memory_limit_of(chain.device, settings.memory_limit)
            self.product = Product(
                shape, structure[0], structure[1], left.data, structure[2], structure[3], right.data, counts, 0, 0,
                replace(form, c_index=form.index), limit, settings.deterministic,
            )  # fmt: skip
            work: Work | None = None
            guess: _Guess | None = None
            rule: Rule | None = None
            if left.nnz and right.nnz:
                if settings.method == "auto":
                    mean = left.nnz / m
                    rule = guessed(chain.device, self.product.form, mean, mean * right.nnz / right.shape[0], m)
                    rules = rules if rule is None else without_spans(rules)
                found = analyse(chain, shape, left.nnz, structure, rules)
                guess = None if rule is None else _Guess.enqueued(chain, self.product, rule, counts, allocator)
                work = found()
        if work is not None and guess is not None and guess.holds(work):
            self.product = self.product.of(work)
            self.steps = [Step(guess.exact(work), Rows(m, n_empty=work.taken[0]), None)]
            self.indptr, self.nnz, self.chain = guess.indptr, int(chain.read(guess.indptr, 1, m)[0]), chain
            return
        with timer("analysis"):
            if work is not None:
                c_index = "int32" if max(work.n_products, m, n) <= _INT32_MAX and form.index == "int32" else "int64"
                self.product = replace(self.product.of(work), form=replace(form, c_index=c_index))
            if work is None or work.taken[0]:
                chain.fill(counts, 0, m)
            self.steps = [
                Step(rule, each, rule.accumulator.prepare(chain, self.product, each))
                for rule, each in (_shared(chain, self.product, work, settings.method, rules) if work else ())
                if rule.accumulator is not None
            ]
        with timer("symbolic"):
            for step in self.steps:
                assert step.rule.accumulator is not None  # steps are made of rules that have one
                step.rule.accumulator.enqueue_symbolic(chain, self.product, step.rows, step.state, counts)
            indptr = _pointers(chain, self.product, counts, allocator)
            self.nnz = int(chain.read(indptr, 1, m)[0])
            if indptr.dtype.itemsize == 8 and form.index == "int32" and max(self.nnz, m, n) <= _INT32_MAX:
                # Its products could have needed 64 bits; its entries, as they turn out, do not.
                indptr = converted(queue, "indptr", indptr, np.dtype(np.int32))
                chain = Chain(queue, indptr)
                self.product = replace(self.product, form=replace(self.product.form, c_index="int32"))
        self.indptr, self.chain = indptr, chain


def _pointers(chain: Chain, product: Product, counts: cl_array.Array, allocator: Any) -> cl_array.Array:
    """Return C's ``indptr``, which is enqueued."""
    m, n = product.shape
    indptr = allocated(chain.queue, f"indptr of the {m} x {n} product", m + 1, np.dtype(product.form.c_index), allocator)
    enqueue_scan(chain, counts, indptr, m, kind="pointers")
    return indptr


@dataclass(frozen=True)
class _Guess:
    """A symbolic phase that was enqueued before anything was known but means, so that the device has work while the host waits.

    Attributes
    ----------
    rule : Rule
        That all rows were made by.
    indptr : pyopencl.array.Array
        Of C, if the rule holds.
    """

    rule: Rule
    indptr: cl_array.Array

    @classmethod
    def enqueued(cls, chain: Chain, product: Product, rule: Rule, counts: cl_array.Array, allocator: Any) -> _Guess:
        """Enqueue the phase by a rule."""
        assert rule.accumulator is not None
        rule.accumulator.enqueue_symbolic(chain, product, Rows(product.shape[0]), None, counts)
        return cls(rule, _pointers(chain, product, counts, allocator))

    def holds(self, work: Work) -> bool:
        """Return whether the rule holds for all rows, and the dtype of ``indptr`` for their entries."""
        products, length, _ = self.rule.limits
        return work.most_products <= products and work.longest_row <= length and work.n_products <= _INT32_MAX

    def exact(self, work: Work) -> Rule:
        """Return the rule for the phases to come."""
        return alone(work) or self.rule


def _shared(chain: Chain, product: Product, work: Work, method: str, rules: Rules) -> list[tuple[Rule, Rows]]:
    """Return the rules with their rows."""
    one: Rule | None = None
    if method == "auto" and 0 < work.n_products <= FEW_PRODUCTS:
        one = small(chain.device, product.form, work.longest_row)
    elif method in ("auto", "reg-merge") and not chain.device.is_cpu:
        one = alone(work)
    n_rows = product.shape[0]
    if one is not None:
        return [(one, Rows(n_rows, n_empty=work.taken[0]))]
    each = shares(rules, work, product) if method == "auto" else list(zip(rules, work.taken, strict=True))
    return grouped(chain, n_rows, work, each)
