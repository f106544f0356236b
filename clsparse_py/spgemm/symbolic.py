"""The structure of a product, before anything of C's size is allocated: analysed, shared out, and entries counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.primitives.scan import summed
from clsparse_py.spgemm.accumulator import Product, Result, Rows, bounded
from clsparse_py.spgemm.analysis import Work, analyse, grouped
from clsparse_py.spgemm.arguments import form_of, memory_limit_of, with_index
from clsparse_py.spgemm.canonical_values import CanonicalOperand
from clsparse_py.spgemm.choose import (
    FEW_PRODUCTS,
    IN_WINDOWS,
    alone,
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
from clsparse_py.spgemm.one_phase import roomy
from clsparse_py.spgemm.pointers import enqueue_pointers, new_pointers
from clsparse_py.spgemm.recipe import Recipe, features_of
from clsparse_py.spgemm.rules import Rule, Rules
from clsparse_py.spgemm.settings import Settings, Timer
from clsparse_py.spgemm.steps import Step, enqueue_numeric, enqueue_symbolic, foreseen, prepared
from clsparse_py.tuning.profiles import Ruling

__all__ = ["Counted", "Why", "counted", "with_memory"]

_INT32_MAX = np.iinfo(np.int32).max
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Why(NamedTuple):
    """What decided on the rules of a product; put into words by who asks.

    Attributes
    ----------
    reason : str
        What did, if no profile did.
    ruling : Ruling or None
    one_phase : bool
        Whether rows were made in one phase.
    """

    reason: str
    ruling: Ruling[Recipe] | None = None
    one_phase: bool = False

    def __str__(self) -> str:
        ruling = self.ruling
        how = "; in one phase, as its products hardly contract" if self.one_phase else ""
        return (self.reason if ruling is None else f"{ruling.label}, by {ruling.why}") + how


_GUESSED = Why("rows of A are short or alike: made as they come, with no analysis")


class Counted:
    """What is known of a product before anything of C's size is allocated.

    Attributes
    ----------
    a, b : CanonicalOperand
    chain : Chain
        What the numeric phase goes on with.
    product : Product
        With the dtype of C's indices.
    steps : sequence of Step
    indptr : pyopencl.array.Array
        Of C.
    nnz : int
        Entries of C.
    made : Result or None
        C, made already with room for all products in each row; its ``indptr`` tells where.
    why : Why
    """

    __slots__ = ("a", "b", "chain", "indptr", "made", "nnz", "product", "steps", "why")

    def __init__(
        self,
        operands: tuple[CanonicalOperand, CanonicalOperand],
        chain: Chain,
        product: Product,
        steps: Sequence[Step],
        pointers: tuple[cl_array.Array, int],
        why: Why,
        made: Result | None = None,
    ) -> None:
        self.a, self.b = operands
        self.chain, self.product, self.steps = chain, product, steps
        self.indptr, self.nnz = pointers
        self.why, self.made = why, made


def with_memory(make: Callable[[Rules | None], T], rules: Rules | None = None) -> T:
    """Return what is made by rules or, where there is not the memory for that, by windows of columns, which need the least."""
    try:
        return make(rules)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    # Not in the handler: the error keeps what was allocated so far.
    return make(IN_WINDOWS)


def counted(
    A: Matrix,
    B: Matrix,
    settings: Settings,
    rules: Rules | None,
    timer: Timer,
    *,
    counting_only: bool = False,
    pointers: tuple[cl_array.Array, int] | None = None,
) -> Counted:
    """Analyse a product, and count the entries of C. Waits for the device twice, or once if a guess of the rule holds.

    Parameters
    ----------
    A, B : csr_array
    settings : Settings
    rules : Rules or None
        The last takes all. None: those of the method, or for "auto" of the recipe that the device's profile has for this product.
    timer : Timer
    counting_only : bool
        Whether nothing is asked for but the entries of C.
    pointers : tuple of pyopencl.array.Array and int, optional
        C's ``indptr`` and its entries, if they are known: then rows are shared out among the rules, and nothing is counted.

    Raises
    ------
    RefusedError
        A kernel is refused that some rows need.
    """
    operands = a, b = _canonical(A, B)
    left, right = a.matrix, b.matrix
    queue, shape = A.queue, (A.shape[0], B.shape[1])
    m, n = shape
    form = form_of(left, right, settings.semiring)
    index = np.dtype(form.index)
    of_a = with_index(queue, left.indptr, index), with_index(queue, left.indices, index)
    of_b = of_a if right is left else (with_index(queue, right.indptr, index), with_index(queue, right.indices, index))
    structure = *of_a, *of_b
    chain = Chain(queue, *of_a, left.data) if right is left else Chain(queue, *structure, left.data, right.data)
    any_products = bool(left.nnz and right.nnz)
    limit = memory_limit_of(chain.device, settings.memory_limit)
    # Products of rows are not known yet; another array stands for them.
    product = Product(shape, *of_a, left.data, *of_b, right.data, of_a[0], 0, 0, form, limit, settings.deterministic)
    why = Why("the method was named" if settings.method != "auto" else "the recipe was given")
    if not any_products:
        indptr = new_pointers(chain, product, A.data.allocator)
        chain.fill(indptr, 0, m + 1)
        timer.ended("analysis")
        return Counted(operands, chain, product, (), (indptr, 0), why)
    known = left.facts
    inputs = side_by_side(chain.device, m, known, right.nnz / right.shape[0])
    refused = refused_of(chain.device, form)
    timer.ended("analysis")
    if settings.method == "auto" and pointers is None:
        found = _speculated(operands, chain, product, inputs, refused, A.data.allocator)
        timer.ended("symbolic")
        if found is not None:
            return found
    rules, why = _able(chain, product, rules, settings, operands, why)
    work = analyse(
        chain, shape, left.nnz, structure, rules, uneven=settings.method == "auto" and is_uneven(chain.device, m, known)
    )
    c_index = form.c_index if max(work.bound, m, n) <= _INT32_MAX else "int64"
    c_index = c_index if pointers is None else name_of(pointers[0].dtype)
    product = product._replace(
        products=work.products, n_products=work.n_products, bound=work.bound,
        form=form_of(left, right, settings.semiring, c_index),
    )  # fmt: skip
    shared = _shared(chain, product, work, settings.method, rules, inputs, refused)
    work.rule = None
    steps = [prepared(chain, product, rule, each) for rule, each in shared if rule.accumulator is not None]
    if pointers is not None:
        return Counted(operands, chain, product, steps, pointers, why)
    # Only now: beside what it took to list rows there may be no memory for it.
    counts = chain.scratch(m, np.uint32)
    if work.taken[0]:
        chain.fill(counts, 0, m)
    timer.ended("analysis")
    # Where C may be refused, or is not wanted, its entries come before its values.
    free = settings.method == "auto" and settings.max_nnz is None and not counting_only and ONE_PHASE not in refused
    one_phase = free and in_one_phase(chain.device, work, product, [each.rule for each in steps])
    phases = ("roomy",) if one_phase else ("symbolic",) if counting_only else ("symbolic", "numeric")
    what = product.form, product.deterministic, phases, tuple((step.rule.accumulator, step.rows.listed is None) for step in steps)
    chain.build_together(what, lambda: foreseen(chain.device, product, steps, phases))
    made = _in_one_phase(chain, product, steps, counts) if one_phase else None
    if made is None:
        enqueue_symbolic(chain, product, steps, counts)
        if c_index != form.c_index and max(m, n) <= _INT32_MAX and summed(chain, counts, m) <= _INT32_MAX:
            # C could have needed 64 bits; its entries, as they turn out, do not.
            product = product._replace(form=form)
    else:
        why = why._replace(one_phase=True)
        timer.ended("numeric")
    indptr = enqueue_pointers(chain, product, counts, A.data.allocator)
    nnz = int(chain.read(indptr, 1, m)[0])
    timer.ended("symbolic")
    return Counted(operands, chain, product, steps, (indptr, nnz), why, made)


def _canonical(A: Matrix, B: Matrix) -> tuple[CanonicalOperand, CanonicalOperand]:
    """Return both operands in canonical format: one, if they are the same matrix."""
    a = CanonicalOperand(A)
    return a, a if B is A else CanonicalOperand(B)


def _able(
    chain: Chain,
    product: Product,
    rules: Rules | None,
    settings: Settings,
    operands: tuple[CanonicalOperand, CanonicalOperand],
    why: Why,
) -> tuple[Rules, Why]:
    """Return the rules that were given, or those of the method, by accumulators whose kernels are not refused; and the reason."""
    device, form, n, limit = chain.device, product.form, product.shape[1], settings.memory_limit
    if rules is None:
        recipe = None
        if settings.method == "auto":
            left, right = (each.matrix for each in operands)
            ruling = decided(device, form, features_of((*left.shape, n), (left.nnz, right.nnz), left.facts))
            recipe, why = ruling.value, Why("", ruling)
        # Only on CPU devices are there accumulators as wide as B.
        widest = bounded(*product.structure, product.a_data, product.b_data) if device.is_cpu else None
        rules = rules_for(settings.method, device, form, n, limit, recipe, widest)
    elif rules is IN_WINDOWS:
        why = Why("windows of columns, as memory is missing for what was chosen")
    return without_refused(rules, device, form, n, limit), why


def _in_one_phase(chain: Chain, product: Product, steps: Sequence[Step], counts: cl_array.Array) -> Result | None:
    """Enqueue rows with room for all their products, and return them; None where memory is missing for that."""
    try:
        made = roomy(chain, product, counts)
        enqueue_numeric(chain, product._replace(memory_limit=product.memory_limit - product.room), steps, made, "roomy")
    except MemoryError as error:
        _log.info("rows are counted before they are made: %s", error)
        return None
    except RefusedError as refusal:
        RefusedError(chain.device, product.form, ONE_PHASE, refusal.error).avoid()
        return None
    return made


def _speculated(
    operands: tuple[CanonicalOperand, CanonicalOperand],
    chain: Chain,
    product: Product,
    inputs: int,
    refused: Container[object],
    allocator: Any,
) -> Counted | None:
    """Return all that there is to be known by a guess, if there is one and it is right.

    ``inputs``: as `side_by_side` says.
    """
    a, b = (each.matrix for each in operands)
    m, mean = a.shape[0], a.nnz / a.shape[0]
    known = a.facts, b.facts
    guess = guessed(chain.device, product.form, m, mean, mean * b.nnz / b.shape[0], *known)
    if guess is None or guess in refused or guess[0] in refused:
        return None
    accumulator, most = guess
    try:
        counts = chain.scratch(m, np.uint32)
        found = tried(chain, product, accumulator, min(most or _INT32_MAX, _INT32_MAX), counts, allocator)
    except BuildError as error:
        RefusedError(chain.device, product.form, guess, error).avoid()
        return None
    except MemoryError as error:
        _log.info("the product is analysed: %s", error)
        return None
    rule = settled(accumulator, found, inputs) if found else None
    if found is None or rule is None or rule.accumulator in refused:
        return None
    product = product._replace(n_products=found.n_products, bound=found.n_products)
    steps = [Step(rule, Rows(m, n_empty=found.n_empty), None)]
    return Counted(operands, chain, product, steps, (found.indptr, found.nnz), _GUESSED)


def _shared(
    chain: Chain, product: Product, work: Work, method: str, rules: Rules, inputs: int, refused: Container[object]
) -> list[tuple[Rule, Rows]]:
    """Return the rules with their rows; ``inputs`` as `side_by_side` says."""
    one: Rule | None = None
    auto, n_rows = method == "auto", product.shape[0]
    if auto and 0 < work.n_products <= FEW_PRODUCTS:
        one = small(chain.device, product.form, work.longest_row)
    elif method in ("auto", "reg-merge") and not chain.device.is_cpu:
        one = alone(work.longest_row, work.most_products, inputs)
    if one is not None and one.accumulator not in refused:
        return [(one, Rows(n_rows, n_empty=work.taken[0]))]
    each = shares(rules, work, product, refused) if auto else list(zip(rules, work.taken, strict=True))
    return grouped(chain, n_rows, work, each)
