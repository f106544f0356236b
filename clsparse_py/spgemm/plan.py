"""Plan a product, make it, and keep what new values need."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.convert import converted
from clsparse_py.csr import assembled, csr_array
from clsparse_py.device import describe
from clsparse_py.launch import Chain
from clsparse_py.parts import place_part, value_dtype
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.semiring import Semiring
from clsparse_py.spgemm.accumulator import Product, Result, Rows
from clsparse_py.spgemm.analysis import Work, analyse, grouped
from clsparse_py.spgemm.arguments import form_of, memory_limit_of, with_index
from clsparse_py.spgemm.canonical_values import CanonicalOperand
from clsparse_py.spgemm.explanation import Bin, Explanation
from clsparse_py.spgemm.rules import Rule
from clsparse_py.structure import Plans, Structure
from clsparse_py.transfer import allocated

__all__ = ["Settings", "SpgemmPlan", "Timer"]

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
class _Step:
    """The rows of one rule, and what its accumulator keeps for them."""

    rule: Rule
    rows: Rows
    state: object


class SpgemmPlan:
    """The product of two structures, for any values. Made by `spgemm_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        A's.
    shape : tuple of int
        Of C.
    nnz : int
        Entries of C.
    n_products : int
        Intermediate products.
    indptr, indices : pyopencl.array.Array
        The structure of C, which all results share.
    """

    def __init__(self, A: csr_array, B: csr_array, settings: Settings, rules: tuple[Rule, ...], timer: Timer) -> None:
        self.queue = A.queue
        self.shape = (A.shape[0], B.shape[1])
        self._settings = settings
        self._allocator = A.data.allocator
        self._plans = Plans()
        with timer("analysis"):
            self._a, self._b = CanonicalOperand(A), CanonicalOperand(B)
            left, right = self._a.matrix, self._b.matrix
            form = form_of(left, right, settings.semiring)
            index = np.dtype(form.index)
            structure = [with_index(self.queue, part, index) for part in (left.indptr, left.indices, right.indptr, right.indices)]
            chain = Chain(self.queue, *structure, left.data, right.data)
            work, rows = self._analysed(chain, left.nnz, structure, rules)
            self._work = work
            self.n_products = work.n_products if work else 0
            counts = chain.scratch(self.shape[0], np.uint32)
            limit = memory_limit_of(chain.device, settings.memory_limit)
            c_index = "int32" if max(self.n_products, *self.shape) <= _INT32_MAX and form.index == "int32" else "int64"
            self._product = Product(
                self.shape, structure[0], structure[1], left.data, structure[2], structure[3], right.data,
                work.products if work else counts, self.n_products, replace(form, c_index=c_index), limit, settings.deterministic,
            )  # fmt: skip
            if rows[0] is not None:
                chain.fill(counts, 0, self.shape[0])
            self._steps = [
                _Step(rule, each, rule.accumulator.prepare(chain, self._product, each))
                for rule, each in zip(rules, rows, strict=True)
                if each is not None and rule.accumulator is not None
            ]
        with timer("symbolic"):
            self._enqueue_symbolic(chain, counts)
            indptr = allocated(self.queue, self._what("indptr"), self.shape[0] + 1, np.dtype(c_index), self._allocator)
            enqueue_scan(chain, counts, indptr, self.shape[0], kind="pointers")
            self.nnz = int(chain.read(indptr, 1, self.shape[0])[0])
        if settings.max_nnz is not None and self.nnz > settings.max_nnz:
            raise ValueError(f"max_nnz: the product has {self.nnz:,} entries, more than {settings.max_nnz:,}")
        if c_index == "int64" and form.index == "int32" and max(self.nnz, *self.shape) <= _INT32_MAX:
            # Its products could have needed 64 bits; its entries, as they turn out, do not.
            c_index = "int32"
            indptr = converted(self.queue, "indptr", indptr, np.dtype(c_index))
            chain = Chain(self.queue, indptr)
            self._product = replace(self._product, form=replace(self._product.form, c_index=c_index))
        with timer("allocation"):
            self.indptr = indptr
            self.indices = allocated(self.queue, self._what("indices"), self.nnz, np.dtype(c_index), self._allocator)
            data = allocated(self.queue, self._what("values"), self.nnz, self._dtype, self._allocator)
        with timer("numeric"):
            self._enqueue_numeric(chain, self._product, data, "numeric")
        chain.finish(self.indptr, self.indices, data)
        self._first: csr_array | None = self._assembled(data)

    def take_first(self) -> csr_array:
        """Return the product of the values that the plan was made with; once, as the plan does not keep it."""
        first, self._first = self._first, None
        return first if first is not None else self()

    def drop_first(self) -> SpgemmPlan:
        """Let go the product that was made while planning."""
        self._first = None
        return self

    @property
    def _dtype(self) -> np.dtype[Any]:
        arithmetic = self._product.form.arithmetic
        assert arithmetic is not None  # the form of a numeric phase has one
        return arithmetic.result

    def _what(self, part: str) -> str:
        rows, columns = self.shape
        return f"{part} of the {rows} x {columns} product"

    def _analysed(
        self, chain: Chain, nnz: int, structure: list[cl_array.Array], rules: tuple[Rule, ...]
    ) -> tuple[Work | None, list[Rows | None]]:
        if not nnz or not structure[3].size:
            return None, [Rows(self.shape[0]) if self.shape[0] else None, *(None for _ in rules[1:])]
        work = analyse(chain, self.shape[0], nnz, structure[0], structure[1], structure[2], rules)
        return work, grouped(chain, self.shape[0], work)

    def _enqueue_symbolic(self, chain: Chain, counts: cl_array.Array) -> None:
        for step in self._steps:
            assert step.rule.accumulator is not None  # steps are made of rules that have one
            step.rule.accumulator.enqueue_symbolic(chain, self._product, step.rows, step.state, counts)

    def _enqueue_numeric(self, chain: Chain, product: Product, data: cl_array.Array, phase: str) -> None:
        if not self.nnz:
            return
        C = Result(self.indptr, self.indices, data)
        for step in self._steps:
            assert step.rule.accumulator is not None
            step.rule.accumulator.enqueue_numeric(chain, product, step.rows, step.state, C, phase)

    def _assembled(self, data: cl_array.Array) -> csr_array:
        known = Structure(self.nnz, sorted=True, canonical=True)
        return assembled(self.queue, self.shape, (data, self.indices, self.indptr), known, self._plans)

    def __call__(self, a_data: Any = None, b_data: Any = None, *, out: csr_array | None = None) -> csr_array:
        """Return the product of other values, which is not waited for: no analysis, no read.

        Parameters
        ----------
        a_data, b_data : pyopencl.array.Array or array_like, optional
            In the order of the entries of A and B as they were given; by default the values that they had when the plan was made.
        out : csr_array, optional
            What this plan returned for other values of these dtypes: its values are overwritten.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context, or an ``out`` that is none of this plan's results; the message names the argument.
        """
        left = self._placed("a_data", a_data, self._a, self._product.a_data)
        right = self._placed("b_data", b_data, self._b, self._product.b_data)
        product = replace(self._product, a_data=left, b_data=right)
        if out is None:
            data = allocated(self.queue, self._what("values"), self.nnz, self._dtype, self._allocator)
        else:
            data = self._target(out, left, right)
        chain = Chain(self.queue, left, right, data, self.indices)
        self._enqueue_numeric(chain, product, data, "values")
        chain.finish(data)
        if out is None:
            return self._assembled(data)
        out.data = data  # says that the values are others
        return out

    def _placed(self, name: str, given: Any, operand: CanonicalOperand, planned: cl_array.Array) -> cl_array.Array:
        """Return values on the device, in the order of the canonical operand and in the dtype planned for."""
        if given is None:
            return planned
        values = given if isinstance(given, cl_array.Array) else np.asarray(given)
        value_dtype(name, values.dtype)
        if values.shape != (operand.n_values,):
            raise ValueError(f"{name}: must have the {operand.n_values} entries of the matrix, has shape {values.shape}")
        if values.dtype != planned.dtype:
            raise TypeError(f"{name}: must have the dtype that was planned for, {planned.dtype}, has {values.dtype}")
        return operand.values(place_part(self.queue, name, values, planned.dtype, copy=False))

    def _target(self, out: Any, *operands: cl_array.Array) -> cl_array.Array:
        """Return where a result's values go."""
        if not isinstance(out, csr_array):
            raise TypeError(f"out: must be a csr_array that this plan returned, is {type(out).__name__}")
        if out.indices is not self.indices or out.indptr is not self.indptr or out.shape != self.shape:
            raise ValueError("out: must be a matrix that this plan returned, has another structure")
        if out.dtype != self._dtype:
            raise TypeError(f"out: must have the dtype of the product, {self._dtype}, has {out.dtype}")
        if self.nnz and any(out.data.base_data == each.base_data for each in operands):
            raise ValueError("out: overlaps an operand, which is read while out is written")
        return out.data

    def explain(self) -> Explanation:
        """Return which methods made which rows, and what the product is like."""
        bins = tuple(
            Bin(step.rule.method, step.rule.accumulator.describe(), step.rule.max_products, step.rule.max_length, step.rows.n)
            for step in self._steps
            if step.rule.accumulator is not None
        )
        nnz_a = self._a.matrix.nnz
        return Explanation(self._settings.method, bins, self.shape, nnz_a, self.n_products, self.nnz)

    def __repr__(self) -> str:
        rows, columns = self.shape
        device = describe(self.queue.device).name
        return f"<SpgemmPlan of a {rows} x {columns} product with {self.nnz} entries on {device}>"
