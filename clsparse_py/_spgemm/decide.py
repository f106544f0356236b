"""The methods of SpGEMM: which rules each gives, and which a recipe is made of. Pure functions of device, form and features."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from clsparse_py._spgemm.analysis import Work
from clsparse_py._spgemm.arguments import memory_limit_of
from clsparse_py._spgemm.bins import EMPTY, Rule, Rules
from clsparse_py._spgemm.kernels import Form
from clsparse_py._spgemm.kind import Kind
from clsparse_py._spgemm.methods.base import Product
from clsparse_py._spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._spgemm.methods.dense_span import dense_spans
from clsparse_py._spgemm.methods.dense_windows import DenseWindows
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.esc_local import EscGroup, EscItem, EscTeam, esc_bins
from clsparse_py._spgemm.methods.hash import Hash, hashes, large_hashes
from clsparse_py._spgemm.methods.long_rows import LongRows
from clsparse_py._spgemm.methods.merge import Merge, merges
from clsparse_py._spgemm.methods.sort import Sort, max_columns_of, sorts
from clsparse_py._spgemm.speculation import MAX_MERGED_BY_ITEM, Speculated
from clsparse_py._spgemm.strategy import Part, Recipe, features_of
from clsparse_py._spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py.arithmetic import name_of
from clsparse_py.device import Device
from clsparse_py.structure import Facts
from clsparse_py.tuning import profiles

__all__ = [
    "DENSE_CHUNKED",
    "IN_WINDOWS",
    "METHODS",
    "WINDOWS",
    "Method",
    "Speculation",
    "alone",
    "are_long",
    "auto",
    "choosable",
    "decided",
    "guessed",
    "in_one_phase",
    "is_narrow",
    "is_uneven",
    "parse",
    "rules_for",
    "settled",
    "shares",
    "side_by_side",
    "small",
]

#: What is staged of B is reckoned in so many entries, as each number has a kernel of its own.
_INPUTS = 128
#: C's rows are counted in numbers of 32 bits.
_MAX_ROOM = (1 << 31) - 1
#: Accumulators that can make rows in the room of their upper bound.
_BY_UPPER_BOUND = (Sort, EscTeam, EscGroup)
#: What a product is taken to be like where nothing is known of it.
_TYPICAL = features_of((1 << 20, 1 << 20, 1 << 20), (1 << 23, 1 << 23))
_FILLED = DenseWindows()
#: What makes any row on CPU devices, with an accumulator as wide as B.
DENSE_CHUNKED = Rule("dense", DenseChunked(), takes_empty=True, as_wide=True)
#: What makes any row with no workspace of its own.
WINDOWS = Rule("dense", DenseWindows(parts=1), takes_empty=True)
IN_WINDOWS = Rules((EMPTY, WINDOWS))


def reg_merge(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the bins of "reg-merge": by entries of a row of A."""
    return tuple(Rule("reg-merge", each, max_length=each.length) for each in merges(device, form, thresholds, registers=True))


def merge(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the bins of "merge": by entries of a row of A."""
    return tuple(Rule("merge", each, max_length=each.length) for each in merges(device, form, thresholds, registers=False))


def _sort_rules(method: str, accumulators: tuple[Sort, ...]) -> tuple[Rule, ...]:
    return tuple(
        Rule(method, each, each.products, each.products, max_columns=max_columns_of(each.products)) for each in accumulators
    )


def reg_sort(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "reg-sort": by products of a row."""
    return _sort_rules("reg-sort", sorts(thresholds, registers=True))


def sort(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "sort": by products of a row."""
    return _sort_rules("sort", sorts(thresholds, registers=False))


def dense(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "dense": on CPU devices one for any row, where there is room for a value of each column."""
    if not device.is_cpu or form.arithmetic is None:
        spans = (Rule("dense", each, max_span=each.columns) for each in dense_spans(device, form))
        return *spans, Rule("dense", DenseWindows())
    return (DENSE_CHUNKED,)


def esc(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "esc": it takes any row."""
    return (Rule("esc", Esc()),)


def esc_local(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the bins of "esc-local": by products of a row, which one work-item, sub-group or work-group takes at most."""
    rules = (
        Rule(
            "esc-local", each, each.products, each.length, takes_empty=isinstance(each, EscItem),
            least_bytes=each.least_bytes(device, form), max_columns=each.max_columns(device, form),
        )
        for each in esc_bins(device, form, thresholds)
    )  # fmt: skip
    return *rules, Rule("esc-local", Esc(bounded=True))


def long_rows(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "long-rows": it takes any row."""
    return (Rule("long-rows", LongRows(bounded=True)),)


def _hash_rules(method: str, accumulators: tuple[Hash, ...]) -> tuple[Rule, ...]:
    return tuple(Rule(method, each, each.products, each.length) for each in accumulators)


def hash_(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "hash": by products."""
    return _hash_rules("hash", hashes(device, form, registers=False))


def reg_hash(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "reg-hash": by products."""
    return _hash_rules("reg-hash", hashes(device, form, registers=True))


def large_hash(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "large-hash": by products, above those of "hash" and smaller rows with them."""
    return _hash_rules("large-hash", large_hashes(device, form))


Method = Literal[
    "auto", "reg-merge", "merge", "reg-sort", "sort", "dense", "esc", "hash", "reg-hash", "large-hash", "esc-local", "long-rows"
]
METHODS: dict[str, Callable[[Device, Form, Thresholds], tuple[Rule, ...]]] = {
    "reg-merge": reg_merge,
    "merge": merge,
    "reg-sort": reg_sort,
    "sort": sort,
    "dense": dense,
    "esc": esc,
    "hash": hash_,
    "reg-hash": reg_hash,
    "large-hash": large_hash,
    "esc-local": esc_local,
    "long-rows": long_rows,
}


def dense_span(device: Device, form: Form, thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the bins of "dense" for rows that span few columns: on CPU devices none."""
    return tuple(rule for rule in dense(device, form, thresholds) if rule.max_span is not None)


#: What recipes are made of.
_PARTS = {**METHODS, "dense-span": dense_span}


@functools.lru_cache(maxsize=64)
def parse(label: str) -> Recipe:
    """Return the recipe that a label names.

    Raises
    ------
    ValueError
        It names none.
    """
    return Recipe.parse(label, _PARTS)


def decided(device: Device, form: Form, features: Mapping[str, float] = _TYPICAL) -> profiles.Ruling[Recipe]:
    """Return the recipe that the device's profile has for a product; see `strategy.features_of`."""
    assert form.arithmetic is not None  # of a numeric phase
    return profiles.decide(device, "spgemm", name_of(form.arithmetic.result), "strategy", features, parse)


def choosable(device: Device, form: Form) -> tuple[Recipe, ...]:
    """Return all recipes that the device's profile may choose."""
    assert form.arithmetic is not None  # of a numeric phase
    found = profiles.rules(device, "spgemm", name_of(form.arithmetic.result), "strategy", _TYPICAL, parse)
    return tuple(found.values.values())


def auto(device: Device, form: Form, recipe: Recipe) -> tuple[Rule, ...]:
    """Return the rules of "auto", of which the last takes any row."""
    thresholds = thresholds_of(device, form)
    return tuple(rule for part in recipe.parts for rule in _of_part(device, form, part, thresholds))


def _of_part(device: Device, form: Form, part: Part, thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the rules of a part of a recipe: with limits for even rows, in global memory with little of it."""
    found, limits = _PARTS[part.method](device, form, thresholds), part.limits
    if part.method in ("esc", "esc-local"):
        return *found[:-1], Rule(part.method, Esc(bounded=True, expected_fill=thresholds.expected_fill))
    if limits is None:
        return found
    merging = ((rule, rule.accumulator) for rule in found if isinstance(rule.accumulator, Merge))
    return tuple(
        replace(rule, max_products=limits.most if each.lanes > 1 else limits.most_alone, even=True)
        for rule, each in merging
        if each.length <= limits.longest
    )


def _merging(accumulator: Merge) -> Rule:
    """Return the rule by which an accumulator merges all rows that it holds."""
    return Rule("reg-merge", accumulator, max_length=accumulator.length)


def small(kind: Kind, thresholds: Thresholds, longest_row: int) -> Rule | None:
    """Return the rule that makes all rows of a small product by one launch a phase; None if rows of A are long."""
    found = _small(kind, thresholds, longest_row)
    return _merging(found) if found else None


def _small(kind: Kind, thresholds: Thresholds, longest_row: int) -> Merge | None:
    shapes = merges(kind.device, kind.form, thresholds, registers=True)
    held = (each for each in shapes if each.lanes <= thresholds.max_small_lanes and each.items <= thresholds.max_small_items)
    return next((each for each in held if each.length >= longest_row), None)


@functools.lru_cache(maxsize=256)
def _alone(longest_row: int, inputs: int) -> Rule:
    return Rule("reg-merge", Merge(1, longest_row, staged_b=inputs), max_length=longest_row)


def alone(thresholds: Thresholds, longest_row: int, most_products: int, inputs: int) -> Rule | None:
    """Return the rule by which one work-item each merges all rows, in their order; None if they are too long.

    ``inputs``: as `side_by_side` says.
    """
    if not 0 < longest_row <= thresholds.max_item_length or most_products > thresholds.max_item_products:
        return None
    return _alone(longest_row, inputs)


def are_long(kind: Kind, rule: Rule, n_rows: int, n_all: int) -> bool:
    """Return whether rows leave most of a device idle for long, which other rows of the product can have meanwhile."""
    few = n_rows <= kind.thresholds.max_side_groups * kind.device.compute_units
    return few and n_rows < n_all and isinstance(rule.accumulator, EscGroup)


def is_uneven(thresholds: Thresholds, n_rows: int, A: Facts | None) -> bool:
    """Return whether several rules are likely to have rows, by what is known of A."""
    return A is not None and A.longest is not None and A.longest * n_rows > thresholds.min_listed_by_mean * A.nnz


def side_by_side(kind: Kind, n_rows: int, A: Facts | None, mean_row_of_b: float) -> int:
    """Return how many entries the rows of B have that neighbouring rows of A name together; 0 if they share few of them.

    Neighbouring columns of A are those that the next row has too, as in grids: of a row, only the others are new.
    """
    portability = kind.device.portability
    if portability.lanes == "local" or A is None or A.adjacent < max(kind.thresholds.min_staged_share * A.nnz, 1):
        return 0
    named = ((A.nnz - A.adjacent) * portability.lane_width + A.adjacent) / n_rows
    return math.ceil(named * mean_row_of_b / _INPUTS) * _INPUTS


class Speculation(NamedTuple):
    """What may hold all rows of a product.

    Attributes
    ----------
    accumulator : Merge
    rule : Rule
        By which it takes rows.
    max_products : int or None
        The most products that it is for; None for no limit.
    """

    accumulator: Merge
    rule: Rule
    max_products: int | None


def guessed(
    kind: Kind, n_rows: int, mean_row: float, mean_products: float, A: Facts | None, B: Facts | None
) -> Speculation | None:
    """Return what may hold all rows of a product; None where nothing may.

    Told by means, and by what is known of the structures: rows that are alike are merged where many columns of A are neighbours,
    whose rows of B are likely to have columns in common.
    """
    of_a, of_b = A.longest if A else None, B.longest if B else None
    if of_b is not None and of_b > MAX_MERGED_BY_ITEM:
        return None
    limits, n_products, mergeable = kind.thresholds, mean_products * n_rows, mean_products <= MAX_MERGED_BY_ITEM
    few = n_products <= limits.max_small_products // 2
    if A is None or of_a is None:
        return kind.once(_guessed, limits, math.ceil(1.5 * mean_row) * (2 if few else 1), few, False, mergeable)
    uniform = of_a <= limits.max_longest_by_mean * mean_row and of_a * n_products <= limits.max_speculative_work
    alike = uniform and A.adjacent >= limits.min_adjacent_share * A.nnz
    return kind.once(_guessed, limits, of_a, few, alike, mergeable)


def _guessed(kind: Kind, limits: Thresholds, longest: int, few: bool, alike: bool, mergeable: bool) -> Speculation | None:
    """Return the guess for rows of A up to some length, of a product with few products, or with rows that are ``alike``.

    ``mergeable``: a work-item by itself merges the products of a mean row.
    """
    if few:
        found = _small(kind, limits, longest)
        return Speculation(found, _merging(found), int(limits.max_small_products)) if found else None
    if longest <= limits.max_item_length:
        found = Merge(1, longest) if mergeable else None
    else:
        shapes = merges(kind.device, kind.form, limits, registers=True) if alike else ()
        fitting = (each for each in shapes if longest <= each.length <= limits.max_speculative_length)
        found = next((each for each in fitting if mergeable or each.lanes > 1), None)
    return Speculation(found, _merging(found), None) if found else None


def settled(thresholds: Thresholds, speculation: Speculation, guess: Speculated, inputs: int) -> Rule | None:
    """Return the rule of a numeric phase whose symbolic phase was guessed right; None if rows had better not be merged."""
    if speculation.accumulator.length <= thresholds.max_item_length:
        return alone(thresholds, guess.longest_row, 0, inputs) or speculation.rule
    compresses = guess.n_products >= thresholds.min_merged_compression * guess.nnz
    return speculation.rule if compresses or guess.n_products <= thresholds.max_small_products else None


def shares(rules: Rules, work: Work, product: Product, refused: Container[object] = ()) -> list[tuple[Rule, int]]:
    """Return the rules of "auto" with the numbers of rows that they take in the end, adjacent rows of the list each.

    Rules for even rows hand theirs on to the last one where rows are very uneven; else rows to be sorted are merged where several
    products make an entry. A few rows go with those of the next rule of their method, if it takes them too with an accumulator of
    the same kind. Where rows of B have some entries in each window of columns, windows take what would be expanded, unless they
    are among the accumulators that are ``refused``.
    """
    limits, kept, taken, last = product.kind.thresholds, list(rules), list(work.taken), len(rules) - 1
    mean = work.n_products / max(sum(taken[1:]), 1)
    if work.most_products > limits.max_products_by_mean * mean:
        while last > 1 and (rules[last - 1].even or not taken[last - 1]):
            last -= 1
        taken[last:] = [*(0 for _ in taken[last:-1]), sum(taken[last:])]
    elif work.compression >= limits.min_merged_compression:
        merging = next((rule for rule in rules if rule.even and (rule.max_length or 0) >= work.longest_row), None)
        sorting = [number for number, rule in enumerate(rules) if rule.method == "reg-sort"]
        if merging is not None and sorting:
            kept[sorting[-1]], taken[sorting[-1]] = merging, sum(taken[number] for number in sorting)
            taken[sorting[0] : sorting[-1]] = [0] * (len(sorting) - 1)
    columns = min(_FILLED.columns_of(product.form), product.shape[1])
    filled = work.n_products * columns >= limits.min_window_entries * product.a_indices.size * product.shape[1]
    if isinstance(rules[-1].accumulator, Esc) and filled and _FILLED not in refused:
        first = next(number for number, rule in enumerate(rules) if rule.method == rules[-1].method)
        taken[first:] = [*(0 for _ in taken[first:-1]), sum(taken[first:])]
        kept[-1] = Rule("dense", _FILLED)
    held, joined = [number for number in range(1, len(rules)) if taken[number]], rules.joined
    for number, later in itertools.pairwise(held):
        rule, other = kept[number], kept[later]
        given = rule is rules[number] and other is rules[later]
        if (joined[number][later] if given else rule.joins(other)) and _few(limits, taken[number], rule, other):
            taken[later] += taken[number]
            taken[number] = 0
    return list(zip(kept, taken, strict=True))


def in_one_phase(work: Work, product: Product, rules: Sequence[Rule]) -> bool:
    """Return whether a row is made with room for all its products, and moved, rather than counted first.

    If products hardly contract, and rows are so short that what they are made of takes longer to find than they take to move.
    """
    limits, n_rows, room = product.kind.thresholds, product.shape[0], product.upper_bytes
    contracts = work.compression > limits.max_upper_compression
    if contracts or not 0 < work.n_products <= limits.max_upper_mean * n_rows or max(work.n_products, n_rows) > _MAX_ROOM:
        return False
    least = max((rule.least_bytes for rule in rules), default=0)
    fits = room + max(room, least) <= product.free and room + least <= product.spare(int(work.n_products / work.compression))
    return fits and all(isinstance(rule.accumulator, _BY_UPPER_BOUND) for rule in rules)


def _few(thresholds: Thresholds, n_rows: int, rule: Rule, other: Rule) -> bool:
    """Return whether rows are so few that they had better go with those of another rule of their method."""
    if isinstance(rule.accumulator, Sort):
        return n_rows * ((other.max_products or 0) - (rule.max_products or 0)) <= thresholds.max_joined_places
    return n_rows < thresholds.max_joined_rows


def rules_for(
    method: str,
    device: Device,
    form: Form,
    n_columns: int = 0,
    memory_limit: int | None = None,
    recipe: Recipe | None = None,
    accumulator_limit: int | None = None,
) -> Rules:
    """Return the rules of a method, rows without products first; rows that it cannot hold go to the rules of "auto".

    Parameters
    ----------
    method : str
        "auto" or a name in `METHODS`.
    device : Device
    form : Form
        Of the numeric phase.
    n_columns : int
        Of B.
    memory_limit : int, optional
        Bytes that the workspace may have.
    recipe : Recipe, optional
        Of "auto"; by default the one that the profile has for a product of which nothing is known.
    accumulator_limit : int, optional
        Bytes that an accumulator as wide as B may have; by default as many as the workspace.
    """
    room, chosen = memory_limit_of(device, memory_limit), recipe or decided(device, form).value
    narrow = is_narrow(form, n_columns, room if accumulator_limit is None else min(room, accumulator_limit))
    of_method = None if method == "auto" else METHODS[method]
    return _rules(of_method, device, form, thresholds_of(device, form), n_columns, room, narrow, chosen)


def is_narrow(form: Form, n_columns: int, limit: int) -> bool:
    """Return whether an accumulator as wide as B, a value and a bit for each column and some more, has so many bytes at most."""
    assert form.arithmetic is not None  # of a numeric phase
    return (form.arithmetic.result.itemsize + 1) * n_columns <= limit


# Kept: to ask what each bin takes on a device costs more than to make a small product.
@functools.lru_cache(maxsize=256)
def _rules(
    of_method: Callable[[Device, Form, Thresholds], tuple[Rule, ...]] | None,
    device: Device,
    form: Form,
    thresholds: Thresholds,
    n_columns: int,
    room: int,
    narrow: bool,
    recipe: Recipe,
) -> Rules:
    """Return the rules of a method, or of a recipe alone, where the workspace may have so many bytes."""
    named = of_method(device, form, thresholds) if of_method else ()
    rules: list[Rule] = []
    for rule in (EMPTY, *named, *auto(device, form, recipe)):
        if not rule.holds(n_columns, room, narrow=narrow) or any(earlier.covers(rule) for earlier in rules):
            continue
        rules.append(rule)
        if rule.takes_all:
            break
    return Rules(rules)
