"""The structure of a product, before anything of C's size is allocated: analysed, shared out, and entries counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._spgemm.analysis import Work, analyse, grouped
from clsparse_py._spgemm.arguments import form_of, with_index
from clsparse_py._spgemm.bins import Rule, Rules
from clsparse_py._spgemm.canonical_values import CanonicalOperand
from clsparse_py._spgemm.decide import (
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
from clsparse_py._spgemm.fallback import ONE_PHASE, RefusedError, refused_of, without_refused
from clsparse_py._spgemm.kind import kind_of
from clsparse_py._spgemm.methods.base import Product, Result, Rows, bounded
from clsparse_py._spgemm.new_arrays import new_counts, new_pointers
from clsparse_py._spgemm.settings import Settings, Timer
from clsparse_py._spgemm.speculation import tried
from clsparse_py._spgemm.steps import Step, enqueue_numeric, enqueue_symbolic, foreseen, prepared
from clsparse_py._spgemm.strategy import Recipe, features_of
from clsparse_py._spgemm.upper_bound import roomy
from clsparse_py.arithmetic import name_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.primitives.scan import enqueue_scan, summed
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
    A, B : Matrix
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
    begun = _begun(A, B, settings)
    if begun.any_products:
        timer.ended("analysis")
        if settings.method == "auto" and pointers is None:
            found = _speculated(begun)
            timer.ended("symbolic")
            if found is not None:
                return found
        return _analysed(begun, rules, timer, counting_only=counting_only, pointers=pointers)
    chain, product = begun.chain, begun.product
    indptr = new_pointers(chain, product, begun.allocator)
    chain.fill(indptr, 0, product.shape[0] + 1)
    timer.ended("analysis")
    why = Why("the recipe was given" if settings.method == "auto" else "the method was named")
    return Counted(begun.operands, chain, product, (), (indptr, 0), why)


class _Begun(NamedTuple):
    """A product of which nothing was asked of the device yet.

    Attributes
    ----------
    settings : Settings
    operands : tuple of CanonicalOperand
        A and B.
    chain : Chain
        What all phases go on with.
    product : Product
        Products of its rows are not known yet; another array stands for them.
    any_products : bool
        Whether both operands have entries.
    inputs : int
        As `side_by_side` says.
    refused : mapping
        What products of its kind do without.
    allocator : callable or None
        Of C.
    """

    settings: Settings
    operands: tuple[CanonicalOperand, CanonicalOperand]
    chain: Chain
    product: Product
    any_products: bool
    inputs: int
    refused: Mapping[Hashable, BuildError]
    allocator: Any


def _begun(A: Matrix, B: Matrix, settings: Settings) -> _Begun:
    """Return a product with operands in the form that kernels take."""
    a = CanonicalOperand(A)
    # A matrix that is multiplied by itself is looked at, and put into canonical format, once.
    b = a if B is A else CanonicalOperand(B)
    queue, (m, k), (_, n) = A.queue, A.shape, B.shape
    form = form_of(a.matrix, b.matrix, settings.semiring)
    index = np.dtype(form.index)
    of_a = with_index(queue, a.indptr, index), with_index(queue, a.indices, index)
    of_b = of_a if b is a else (with_index(queue, b.indptr, index), with_index(queue, b.indices, index))
    chain = Chain(queue, *of_a, a.data) if b is a else Chain(queue, *of_a, a.data, *of_b, b.data)
    any_products = a.nnz > 0 < b.nnz
    kind = kind_of(chain.device, form)
    limit = kind.memory if settings.memory_limit is None else int(settings.memory_limit)
    product = Product((m, n), *of_a, a.data, *of_b, b.data, of_a[0], 0, 0, kind, limit, settings.deterministic)
    inputs = side_by_side(chain.device, m, a.known, b.nnz / k) if any_products else 0
    refused = refused_of(chain.device, form)
    return _Begun(settings, (a, b), chain, product, any_products, inputs, refused, A.data.allocator)


def _speculated(begun: _Begun) -> Counted | None:
    """Return all that there is to be known by a guess, if there is one and it is right."""
    (a, b), chain, product, refused = begun.operands, begun.chain, begun.product, begun.refused
    m, mean, mean_of_b = product.shape[0], a.nnz / product.shape[0], b.nnz / b.matrix.shape[0]
    guess = guessed(product.kind, m, mean, mean * mean_of_b, a.known, b.known)
    if guess is None or (refused and (guess in refused or guess.accumulator in refused)):
        return None
    max_products = min(guess.max_products or _INT32_MAX, _INT32_MAX)
    try:
        found = tried(chain, product, guess.accumulator, max_products, begun.allocator)
    except BuildError as error:
        RefusedError(chain.device, product.form, guess, error).avoid()
        return None
    except MemoryError as error:
        _log.info("the product is analysed: %s", error)
        return None
    rule = settled(guess, found, begun.inputs) if found else None
    if found is None or rule is None or (refused and rule.accumulator in refused):
        return None
    product = product._replace(n_products=found.n_products, bound=found.n_products)
    steps = (Step(rule, Rows(m, n_empty=found.n_empty), None),)
    return Counted(begun.operands, chain, product, steps, (found.indptr, found.nnz), _GUESSED)


def _analysed(
    begun: _Begun, rules: Rules | None, timer: Timer, *, counting_only: bool, pointers: tuple[cl_array.Array, int] | None
) -> Counted:
    """Return the structure of a product by its analysis; arguments as for `counted`."""
    settings, (a, b), chain, product = begun.settings, begun.operands, begun.chain, begun.product
    (m, n), kind, auto = product.shape, product.kind, settings.method == "auto"
    rules, why = _able(begun, rules)
    uneven = auto and is_uneven(chain.device, m, a.known)
    work = analyse(chain, (m, n), a.nnz, product.structure, rules, uneven=uneven)
    c_index = kind.c_index if max(work.bound, m, n) <= _INT32_MAX else np.dtype(np.int64)
    c_index = c_index if pointers is None else pointers[0].dtype
    if c_index != kind.c_index:
        form = form_of(a.matrix, b.matrix, settings.semiring, name_of(c_index))
        product = product._replace(kind=kind_of(chain.device, form))
    product = product._replace(products=work.products, n_products=work.n_products, bound=work.bound)
    shared = _shared(begun, product, work, rules)
    work.rule = None
    steps = [prepared(chain, product, rule, each) for rule, each in shared if rule.accumulator is not None]
    if pointers is not None:
        return Counted(begun.operands, chain, product, steps, pointers, why)
    # Only now: beside what it took to list rows there may be no memory for them.
    counts, indptr = new_counts(chain, product, begun.allocator)
    if work.taken[0]:
        chain.fill(counts, 0, m)
    timer.ended("analysis")
    # Where C may be refused, or is not wanted, its entries come before its values.
    free = auto and settings.max_nnz is None and not counting_only and ONE_PHASE not in begun.refused
    one_phase = free and in_one_phase(chain.device, work, product, [each.rule for each in steps])
    phases = ("roomy",) if one_phase else ("symbolic",) if counting_only else ("symbolic", "numeric")
    what = product.form, product.deterministic, phases, tuple((step.rule.accumulator, step.rows.listed is None) for step in steps)
    chain.build_together(what, lambda: foreseen(product, steps, phases))
    made = _in_one_phase(chain, product, steps, counts) if one_phase else None
    if made is None:
        enqueue_symbolic(chain, product, steps, counts)
        if c_index != kind.c_index and max(m, n) <= _INT32_MAX and summed(chain, counts, m) <= _INT32_MAX:
            # C could have needed 64 bits; its entries, as they turn out, do not.
            product = product._replace(kind=kind)
    else:
        why = why._replace(one_phase=True)
        timer.ended("numeric")
    indptr = new_pointers(chain, product, begun.allocator) if indptr is None else indptr
    enqueue_scan(chain, counts, indptr, m, kind="pointers")
    nnz = int(chain.read(indptr, 1, m)[0])
    timer.ended("symbolic")
    return Counted(begun.operands, chain, product, steps, (indptr, nnz), why, made)


def _able(begun: _Begun, rules: Rules | None) -> tuple[Rules, Why]:
    """Return the rules that were given, or those of the method, by accumulators whose kernels are not refused; and the reason."""
    settings, product, device = begun.settings, begun.product, begun.chain.device
    form, n, limit, auto = product.form, product.shape[1], settings.memory_limit, settings.method == "auto"
    why = Why("the recipe was given" if auto else "the method was named")
    if rules is None:
        recipe = None
        if auto:
            a, b = begun.operands
            ruling = decided(device, form, features_of((*a.matrix.shape, n), (a.nnz, b.nnz), a.known))
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


def _shared(begun: _Begun, product: Product, work: Work, rules: Rules) -> list[tuple[Rule, Rows]]:
    """Return the rules with their rows."""
    one: Rule | None = None
    method, refused, n_rows = begun.settings.method, begun.refused, product.shape[0]
    if method == "auto" and 0 < work.n_products <= FEW_PRODUCTS:
        one = product.kind.once(small, work.longest_row)
    elif method in ("auto", "reg-merge") and not begun.chain.device.is_cpu:
        one = alone(work.longest_row, work.most_products, begun.inputs)
    if one is not None and one.accumulator not in refused:
        return [(one, Rows(n_rows, n_empty=work.taken[0]))]
    each = shares(rules, work, product, refused) if method == "auto" else list(zip(rules, work.taken, strict=True))
    return grouped(begun.chain, n_rows, work, each)
