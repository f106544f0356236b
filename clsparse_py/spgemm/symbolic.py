"""The structure of a product, before anything of C's size is allocated: analysed, shared out, and entries counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.convert import converted
from clsparse_py.csr import csr_array
from clsparse_py.device import Device
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.records import dataclass
from clsparse_py.semiring import Semiring
from clsparse_py.spgemm.accumulator import Accumulator, Product, Result, Rows, bounded
from clsparse_py.spgemm.analysis import Work, analyse, grouped
from clsparse_py.spgemm.arguments import form_of, memory_limit_of, with_index
from clsparse_py.spgemm.canonical_values import CanonicalOperand
from clsparse_py.spgemm.choose import (
    FEW_PRODUCTS,
    IN_WINDOWS,
    WINDOWS,
    alone,
    are_long,
    decided,
    guessed,
    in_one_phase,
    is_uneven,
    rules_for,
    settled,
    shares,
    side_by_side,
    small,
)
from clsparse_py.spgemm.fallback import ONE_PHASE, RefusedError, refused_of, without_refused
from clsparse_py.spgemm.guess import tried
from clsparse_py.spgemm.kernels import Form, RowKernel
from clsparse_py.spgemm.one_phase import roomy
from clsparse_py.spgemm.pointers import enqueue_pointers, new_pointers
from clsparse_py.spgemm.recipe import features_of
from clsparse_py.spgemm.rules import Rule, Rules
from clsparse_py.spgemm.team import Team
from clsparse_py.workspace import counting, suffices

__all__ = ["Settings", "Step", "Symbolic", "Timer", "enqueued", "with_memory"]

_INT32_MAX = np.iinfo(np.int32).max
_UNMEASURED = nullcontext()
_log = logging.getLogger(__name__)

T = TypeVar("T")


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

    def __call__(self, phase: str) -> AbstractContextManager[None]:
        """Add what happens inside to a phase."""
        return self._measured(phase) if self._measures else _UNMEASURED

    @contextmanager
    def _measured(self, phase: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self._queue.finish()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - begin


class Step(NamedTuple):
    """The rows of one rule, and what its accumulator keeps for them.

    ``long``: they are few, and each takes long; those of other rules are made at the same time.
    """

    rule: Rule
    rows: Rows
    state: object
    long: bool = False


def enqueue_steps(chain: Chain, form: Form, steps: Sequence[Step], enqueue: Callable[[Accumulator, Chain, Step], None]) -> None:
    """Have each step's accumulator enqueue a phase of its rows. Long ones come first, and others are made at the same time.

    Raises
    ------
    RefusedError
        A kernel of an accumulator is refused.
    """
    with chain.beside(any(step.long for step in steps)) as beside:
        for step in sorted(steps, key=lambda each: not each.long):
            assert step.rule.accumulator is not None  # steps are made of rules that have one
            try:
                enqueue(step.rule.accumulator, beside if step.long else chain, step)
            except BuildError as error:
                raise RefusedError(chain.device, form, step.rule.accumulator, error) from error


def enqueue_symbolic(chain: Chain, product: Product, steps: Sequence[Step], counts: cl_array.Array) -> None:
    """Have each step's accumulator enqueue the entries of its rows."""

    def enqueue(accumulator: Accumulator, on: Chain, step: Step) -> None:
        accumulator.enqueue_symbolic(on, product, step.rows, step.state, counts)

    enqueue_steps(chain, product.form, steps, enqueue)


def enqueue_numeric(chain: Chain, product: Product, steps: Sequence[Step], C: Result, phase: str) -> None:
    """Have each step's accumulator enqueue columns and values of its rows, or what else a phase makes of them."""

    def enqueue(accumulator: Accumulator, on: Chain, step: Step) -> None:
        accumulator.enqueue_numeric(on, product, step.rows, step.state, C, phase)

    enqueue_steps(chain, product.form, steps, enqueue)


def enqueued(chain: Chain, product: Product, steps: Sequence[Step], C: Result, phase: str) -> Sequence[Step]:
    """Enqueue columns and values of all rows, or values alone, and return the steps that did: others if memory was missing."""
    if not C.data.size or suffices(lambda: enqueue_numeric(chain, product, steps, C, phase)):
        return steps
    n_rows, n_made = product.shape[0], sum(step.rows.n - step.rows.n_empty for step in steps)
    windows = [Step(WINDOWS, Rows(n_rows, n_empty=n_rows - n_made), None)]
    enqueue_numeric(chain, product, windows, C, phase)
    return windows


def prepared(chain: Chain, product: Product, rule: Rule, rows: Rows) -> Step:
    """Return the step of a rule's rows.

    Raises
    ------
    RefusedError
        A kernel of the accumulator is refused.
    """
    assert rule.accumulator is not None  # rows without products have no step
    try:
        state = rule.accumulator.prepare(chain, product, rows)
    except BuildError as error:
        raise RefusedError(chain.device, product.form, rule.accumulator, error) from error
    return Step(rule, rows, state, are_long(chain.device, rule, rows.n, product.shape[0]))


def with_memory(make: Callable[[Rules | None], T], rules: Rules | None = None) -> T:
    """Return what is made by rules or, where there is not the memory for that, by windows of columns, which need the least."""
    try:
        return make(rules)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    # Not in the handler: the error keeps what was allocated so far.
    return make(IN_WINDOWS)


def foreseen(device: Device, product: Product, steps: Sequence[Step], phases: Sequence[str]) -> Iterator[RowKernel]:
    """Yield the records of kernels that some phases will take, of those steps that tell."""
    for step in steps:
        if isinstance(step.rule.accumulator, Team):
            for phase in phases:
                record = step.rule.accumulator.foreseen(device, product, step.rows, phase)
                if record is not None:
                    yield record


class Symbolic:
    """The analysis of a product and its symbolic phase. Waits for the device twice, or once where a guess of its rule holds.

    Parameters
    ----------
    A, B : csr_array
    settings : Settings
    rules : Rules or None
        The last takes all. None: those of the method, or for "auto" of the recipe that the device's profile has for this product.
    timer : Timer
    counting_only : bool
        Whether nothing is asked for but the entries of C.

    Attributes
    ----------
    a, b : CanonicalOperand
    product : Product
        With the dtype of C's indices.
    steps : sequence of Step
    made : Result or None
        C, made already with room for all products in each row; its ``indptr`` tells where.
    indptr : pyopencl.array.Array
        Of C.
    nnz : int
        Entries of C.
    chain : Chain
        What the numeric phase goes on with.
    why : str
        What decided on the rules.

    Raises
    ------
    RefusedError
        A kernel is refused that some rows need.
    """

    def __init__(
        self, A: csr_array, B: csr_array, settings: Settings, rules: Rules | None, timer: Timer, *, counting_only: bool = False
    ) -> None:
        self.why = "the method was named" if settings.method != "auto" else "the recipe was given"
        self.made: Result | None = None
        self.steps: Sequence[Step] = ()
        self._settings, self._allocator = settings, A.data.allocator
        queue = A.queue
        m, n = shape = (A.shape[0], B.shape[1])
        with timer("analysis"):
            self.a, self.b = CanonicalOperand(A), CanonicalOperand(B)
            left, right = self.a.matrix, self.b.matrix
            form = form_of(left, right, settings.semiring)
            index = np.dtype(form.index)
            structure = [with_index(queue, part, index) for part in (left.indptr, left.indices, right.indptr, right.indices)]
            chain = self.chain = Chain(queue, *structure, left.data, right.data)
            self._refused = refused_of(chain.device, form)
            limit, any_products = memory_limit_of(chain.device, settings.memory_limit), bool(left.nnz and right.nnz)
            counts = chain.scratch(m, np.uint32) if any_products else structure[0]
            self.product = Product(
                shape, structure[0], structure[1], left.data, structure[2], structure[3], right.data, counts, 0, 0,
                form, limit, settings.deterministic,
            )  # fmt: skip
            if not any_products:
                self.indptr, self.nnz = new_pointers(chain, self.product, self._allocator), 0
                chain.fill(self.indptr, 0, m + 1)
                return
            self._inputs = side_by_side(chain.device, m, left.known_structure, right.nnz / right.shape[0])
        if settings.method == "auto":
            with timer("symbolic"):
                known = suffices(lambda: self._guess(chain, left, right, counts)) and bool(self.steps)
            if known:
                self.why = "rows of A are short or alike: made as they come, with no analysis"
                return
        with timer("analysis"):
            rules = self._able(chain, rules, left, right)
            uneven = settings.method == "auto" and is_uneven(chain.device, m, left.known_structure)
            work = analyse(chain, shape, left.nnz, structure, rules, uneven=uneven)
            c_index = "int32" if max(work.n_products, m, n) <= _INT32_MAX and form.index == "int32" else "int64"
            self.product = self.product._replace(
                products=work.products, n_products=work.n_products, bound=work.bound,
                form=form_of(left, right, settings.semiring, c_index),
            )  # fmt: skip
            if work.taken[0]:
                chain.fill(counts, 0, m)
            shared = self._shared(chain, work, settings.method, rules)
            work.rule = None
            self.steps = [prepared(chain, self.product, rule, each) for rule, each in shared if rule.accumulator is not None]
        # Where C may be refused, or is not wanted, its entries come before its values.
        free = settings.method == "auto" and settings.max_nnz is None and not counting_only and ONE_PHASE not in self._refused
        one_phase = free and in_one_phase(chain.device, work, self.product, [each.rule for each in self.steps])
        phases = ("roomy",) if one_phase else ("symbolic",) if counting_only else ("symbolic", "numeric")
        what = self.product.form, phases, tuple((step.rule.accumulator, step.rows.listed is None) for step in self.steps)
        chain.build_together(what, lambda: foreseen(chain.device, self.product, self.steps, phases))
        if one_phase:
            with timer("numeric"):
                self.made = self._in_one_phase(chain, counts)
        with timer("symbolic"):
            if self.made is None:
                enqueue_symbolic(chain, self.product, self.steps, counts)
            indptr = enqueue_pointers(chain, self.product, counts, self._allocator)
            self.nnz = int(chain.read(indptr, 1, m)[0])
            if indptr.dtype.itemsize == 8 and form.index == "int32" and max(self.nnz, m, n) <= _INT32_MAX:
                # Its products could have needed 64 bits; its entries, as they turn out, do not.
                with counting(None):
                    indptr = converted(queue, "indptr", indptr, np.dtype(np.int32))
                self.chain = Chain(queue, indptr)
                self.product = self.product._replace(form=form_of(left, right, settings.semiring, "int32"))
        self.indptr = indptr

    def _able(self, chain: Chain, rules: Rules | None, left: csr_array, right: csr_array) -> Rules:
        """Return the rules that were given, or those of the method, by accumulators whose kernels are not refused."""
        method, limit, form, n = self._settings.method, self._settings.memory_limit, self.product.form, self.product.shape[1]
        if rules is None:
            recipe = None
            if method == "auto":
                features = features_of((*left.shape, n), (left.nnz, right.nnz), left.known_structure)
                ruling = decided(chain.device, form, features)
                recipe, self.why = ruling.value, f"{ruling.label}, by {ruling.why}"
            # Only on CPU devices are there accumulators as wide as B.
            widest = bounded(*self.product.structure, left.data, right.data) if chain.device.is_cpu else None
            rules = rules_for(method, chain.device, form, n, limit, recipe, widest)
        elif rules is IN_WINDOWS:
            self.why = "windows of columns, as memory is missing for what was chosen"
        return without_refused(rules, chain.device, form, n, limit)

    def _in_one_phase(self, chain: Chain, counts: cl_array.Array) -> Result | None:
        """Enqueue rows with room for all their products, and return them; None where memory is missing for that."""
        try:
            made = roomy(chain, self.product, counts)
            left = self.product._replace(memory_limit=self.product.memory_limit - self.product.room)
            enqueue_numeric(chain, left, self.steps, made, "roomy")
        except MemoryError as error:
            _log.info("rows are counted before they are made: %s", error)
            return None
        except RefusedError as refusal:
            RefusedError(chain.device, self.product.form, ONE_PHASE, refusal.error).avoid()
            return None
        self.why += "; in one phase, as its products hardly contract"
        return made

    def _guess(self, chain: Chain, A: csr_array, B: csr_array, counts: cl_array.Array) -> None:
        """Find all that there is to be known by a guess, if it is right."""
        m, mean = A.shape[0], A.nnz / A.shape[0]
        known = A.known_structure, B.known_structure
        guess = guessed(chain.device, self.product.form, m, mean, mean * B.nnz / B.shape[0], *known)
        if guess is None or guess in self._refused or guess[0] in self._refused:
            return
        accumulator, most = guess
        try:
            found = tried(chain, self.product, accumulator, min(most or _INT32_MAX, _INT32_MAX), counts, self._allocator)
        except BuildError as error:
            RefusedError(chain.device, self.product.form, guess, error).avoid()
            return
        rule = settled(accumulator, found, self._inputs) if found else None
        if found is None or rule is None or rule.accumulator in self._refused:
            return
        self.product = self.product._replace(n_products=found.n_products, bound=found.n_products)
        self.steps = [Step(rule, Rows(m, n_empty=found.n_empty), None)]
        self.indptr, self.nnz = found.indptr, found.nnz

    def _shared(self, chain: Chain, work: Work, method: str, rules: Rules) -> list[tuple[Rule, Rows]]:
        """Return the rules with their rows."""
        one: Rule | None = None
        if method == "auto" and 0 < work.n_products <= FEW_PRODUCTS:
            one = small(chain.device, self.product.form, work.longest_row)
        elif method in ("auto", "reg-merge") and not chain.device.is_cpu:
            one = alone(work.longest_row, work.most_products, self._inputs)
        n_rows = self.product.shape[0]
        if one is not None and one.accumulator not in self._refused:
            return [(one, Rows(n_rows, n_empty=work.taken[0]))]
        auto = method == "auto"
        each = shares(rules, work, self.product, self._refused) if auto else list(zip(rules, work.taken, strict=True))
        return grouped(chain, n_rows, work, each)
