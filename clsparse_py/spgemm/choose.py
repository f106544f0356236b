"""The methods of SpGEMM: which rules each gives, and which rules "auto" is made of. Pure functions of device and form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from clsparse_py.device import Device
from clsparse_py.spgemm.arguments import memory_limit_of
from clsparse_py.spgemm.dense_chunked import DenseChunked
from clsparse_py.spgemm.dense_windows import DenseWindows
from clsparse_py.spgemm.esc import Esc
from clsparse_py.spgemm.esc_local import EscItem, esc_bins
from clsparse_py.spgemm.hash import Hash, hashes, large_hashes
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.long_rows import LongRows
from clsparse_py.spgemm.merge import Merge, merges
from clsparse_py.spgemm.rules import EMPTY, Rule
from clsparse_py.spgemm.sort import sorts

__all__ = ["FEW_PRODUCTS", "METHODS", "alone", "auto", "rules_for", "small"]

#: Entries of a row of A that one work-item merges by itself, at most, where all rows have so few.
_MOST_ALONE = 12

#: Rows that "auto" merges outside of CPU devices: entries of a row of A, and products, at most. A team finds columns one after
#: another, so a row with many keeps it busy when all others are done.
_LONGEST_MERGED = 128
_MOST_MERGED = 1 << 14
#: Products of a product so small that the fewest launches are best, at most; and what makes a row of it.
FEW_PRODUCTS = 1 << 15
_FEW_LANES = 8
_FEW_HEADS = 16
#: Products of a row that a single work-item merges, at most.
_MOST_MERGED_ALONE = 1 << 10


def reg_merge(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the bins of "reg-merge": by entries of a row of A."""
    return tuple(Rule("reg-merge", each, max_length=each.length) for each in merges(device, form, registers=True))


def merge(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the bins of "merge": by entries of a row of A."""
    return tuple(Rule("merge", each, max_length=each.length) for each in merges(device, form, registers=False))


def reg_sort(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "reg-sort": by products of a row."""
    return tuple(Rule("reg-sort", each, each.products, each.products) for each in sorts(registers=True))


def sort(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "sort": by products of a row."""
    return tuple(Rule("sort", each, each.products, each.products) for each in sorts(registers=False))


def dense(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the one bin of "dense": it takes any row, on CPU devices where there is room for a value of each column."""
    if not device.is_cpu or form.arithmetic is None:
        return (Rule("dense", DenseWindows()),)
    return (Rule("dense", DenseChunked(), takes_empty=True, column_bytes=form.arithmetic.result.itemsize + 1),)


def esc(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "esc": it takes any row."""
    return (Rule("esc", Esc()),)


def esc_local(device: Device, form: Form, thresholds: tuple[int, int, int] = (32, 736, 6144)) -> tuple[Rule, ...]:
    """Return the bins of "esc-local": by products of a row, which one work-item, sub-group or work-group takes at most."""
    bins = esc_bins(device, form, thresholds)
    limits = ((each.products, each.products, isinstance(each, EscItem), 0, each.max_columns(device, form)) for each in bins)
    rules = (Rule("esc-local", each, *limit) for each, limit in zip(bins, limits, strict=True))
    return *rules, Rule("esc-local", Esc(sparing=True))


def long_rows(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "long-rows": it takes any row."""
    return (Rule("long-rows", LongRows(sparing=True)),)


def _hash_rules(method: str, accumulators: tuple[Hash, ...]) -> tuple[Rule, ...]:
    return tuple(Rule(method, each, each.products, each.length) for each in accumulators)


def hash_(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the bins of "hash": by products."""
    return _hash_rules("hash", hashes(device, form, registers=False))


def reg_hash(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the bins of "reg-hash": by products."""
    return _hash_rules("reg-hash", hashes(device, form, registers=True))


def large_hash(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the bins of "large-hash": by products, above those of "hash" and smaller rows with them."""
    return _hash_rules("large-hash", large_hashes(device, form))


METHODS: dict[str, Callable[[Device, Form], tuple[Rule, ...]]] = {
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


def auto(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the rules of "auto", of which the last takes any row.

    CPU devices: dense accumulators where there is room for them. Elsewhere: rows of A with few entries are merged, as the cost of
    that grows with the entries of C and not with products; longer ones are hashed where local memory holds their products; what
    is left is merged in global memory, all such rows together.
    """
    if device.is_cpu:
        return (*dense(device, form), Rule("esc", Esc(sparing=True)))
    few = (
        replace(rule, max_products=_MOST_MERGED if each.lanes > 1 else _MOST_MERGED_ALONE)
        for rule, each in ((rule, rule.accumulator) for rule in reg_merge(device, form))
        if isinstance(each, Merge) and each.length <= _LONGEST_MERGED
    )
    return (*few, *reg_hash(device, form), *large_hash(device, form), *long_rows(device, form))


@functools.lru_cache(maxsize=256)
def small(device: Device, form: Form, longest_row: int) -> Rule | None:
    """Return the rule that makes all rows of a small product by one launch a phase; None where rows of A are long."""
    lanes = 1 if device.is_cpu else _FEW_LANES
    shapes = (each for each in merges(device, form, registers=True) if each.lanes <= lanes and each.items <= _FEW_HEADS)
    found = next((each for each in shapes if each.length >= longest_row), None)
    return None if found is None else Rule("reg-merge", found, max_length=found.length)


def alone(rules: tuple[Rule, ...], taken: tuple[int, ...], longest_row: int) -> Rule | None:
    """Return the rule by which each row is merged by a work-item, in their order, where all rows that there are suit that.

    What bins save is then less than what sorting the rows into them, and a launch for each, costs.

    Parameters
    ----------
    rules : tuple of Rule
    taken : tuple of int
        How many rows each takes.
    longest_row : int
        Of A.
    """
    used = [rule for rule, n in zip(rules, taken, strict=True) if n and rule.accumulator is not None]
    found = [rule.accumulator for rule in used if isinstance(rule.accumulator, Merge)]
    by_itself = len(found) == len(used) and all(each.registers and each.lanes == 1 for each in found)
    if not used or not by_itself or longest_row > _MOST_ALONE:
        return None
    return replace(used[-1], accumulator=Merge(1, longest_row), max_length=longest_row)


def rules_for(method: str, device: Device, form: Form, n_columns: int = 0, memory_limit: int | None = None) -> tuple[Rule, ...]:
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
    """
    room = memory_limit_of(device, memory_limit)
    return _rules(None if method == "auto" else METHODS[method], device, form, n_columns, room)


# Kept: to ask what each bin takes on a device costs more than to make a small product.
@functools.lru_cache(maxsize=256)
def _rules(
    of_method: Callable[[Device, Form], tuple[Rule, ...]] | None, device: Device, form: Form, n_columns: int, room: int
) -> tuple[Rule, ...]:
    """Return the rules of a method, or of "auto" alone, where the workspace may have so many bytes."""
    named = of_method(device, form) if of_method else ()
    rules: list[Rule] = []
    for rule in (EMPTY, *named, *auto(device, form)):
        too_wide = rule.column_bytes * n_columns > room or (rule.max_columns is not None and n_columns > rule.max_columns)
        if too_wide or any(earlier.covers(rule) for earlier in rules):
            continue
        rules.append(rule)
        if rule.takes_all:
            break
    return tuple(rules)
