"""Inspect a product before it is made: how much work each row is, which rule takes it, and which rows each rule has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.launch import Chain, spread
from clsparse_py.primitives.radix_sort import enqueue_sort_by_key
from clsparse_py.spgemm.accumulator import Rows
from clsparse_py.spgemm.kernels import Analysis
from clsparse_py.spgemm.rules import Rule

__all__ = ["Work", "analyse", "grouped"]

#: Entries to a lane above which the whole work-group counts a row's products.
_LONG = 32


@dataclass(frozen=True)
class Work:
    """What `analyse` found.

    Attributes
    ----------
    products : pyopencl.array.Array
        uint64: the intermediate products of each row.
    rule : pyopencl.array.Array
        Of the index type: the number of the rule that takes it.
    n_products : int
        Of all rows.
    most_products, longest_row : int
        The most products of a row, and the longest row of A; 2^32 - 1 where there are more.
    taken : tuple of int
        Rows of each rule.
    bound : int or None
        Entries of C at most, where that was asked for.
    """

    products: cl_array.Array
    rule: cl_array.Array
    n_products: int
    most_products: int
    longest_row: int
    taken: tuple[int, ...]
    bound: int | None = None


def _lanes(mean_length: float, most: int) -> int:
    """Return how many work-items count a row's products: a power of two."""
    lanes = 1
    while lanes < most and lanes * 4 < mean_length:
        lanes *= 2
    return lanes


def analyse(
    chain: Chain,
    shape: tuple[int, int],
    nnz: int,
    structure: Sequence[cl_array.Array],
    rules: tuple[Rule, ...],
    work_group: int | None = None,
    *,
    bounded: bool = False,
) -> Callable[[], Work]:
    """Enqueue the count of the intermediate products of each row, and which rule takes it.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    shape : tuple of int
        Of C.
    nnz : int
        Entries of A.
    structure : sequence of pyopencl.array.Array
        indptr and indices of A and of B, of one dtype.
    rules : tuple of Rule
        The last takes all.
    work_group : int, optional
        Work-items in a work-group, if not those that suit the device.
    bounded : bool
        Whether to bound the entries of C too.

    Returns
    -------
    callable
        Waits for what was found, and returns it; what is enqueued before the call keeps the device busy.
    """
    n_rows, device = shape[0], chain.device
    a_indptr, a_indices, b_indptr, b_indices = structure
    group = min(work_group or (1 if device.is_cpu else 128), device.max_work_group)
    lanes = 1 if device.is_cpu else _lanes(nnz / n_rows, device.portability.lane_width)
    # Rows in chunks keep a core busy by themselves.
    long = 0 if device.is_cpu else _LONG * lanes
    limits = tuple(rule.limits for rule in rules)
    asked = Analysis(group, name_of(a_indptr.dtype), lanes, limits, long, device.portability, bounded)
    legal = asked.within(group, device.portability.lane_width)
    assert legal is not None  # a work-group has at least one work-item
    built, record = chain.build(legal)
    products, rule = chain.scratch(n_rows, np.uint64), chain.scratch(n_rows, a_indptr.dtype)
    n_found = 4 + len(rules) + 2 * bounded
    found = chain.scratch(n_found, np.uint32)
    chain.fill(found, 0, n_found)
    groups, sizes = spread(device, n_rows, record.work_group)
    if record.long:
        groups, sizes = min(-(-n_rows * record.lanes // record.work_group), 16 * device.compute_units), sizes[:1]
    if bounded:
        sizes += (np.uint64(shape[1]),)
    seen = (b_indptr, b_indices) if record.spans else (b_indptr,)
    chain.launch(built, groups, *sizes, a_indptr, a_indices, *seen, products, rule, found)
    read = chain.read_later(found, n_found)

    def work() -> Work:
        low, high, most, longest, *rest = (int(number) for number in read())
        taken, bound = rest[: len(rules)], rest[len(rules) :]
        n_products = (high << 32) + low
        return Work(products, rule, n_products, most, longest, tuple(taken), (bound[1] << 32) + bound[0] if bound else None)

    return work


def grouped(chain: Chain, n_rows: int, work: Work, shares: Sequence[tuple[Rule, int]]) -> list[tuple[Rule, Rows]]:
    """Return the rows of each rule that has some; they are listed unless one rule takes all.

    Parameters
    ----------
    chain : Chain
    n_rows : int
    work : Work
    shares : sequence of (Rule, int)
        Rules in their order with their numbers of rows, of which the first is for rows without products: where it costs less to
        visit them than to sort them out, another rule takes them too. The order of rows is kept within each.
    """
    n_empty = shares[0][1]
    for rule, n in shares:
        if n == n_rows or (rule.takes_empty and 0 < n == n_rows - n_empty):
            return [(rule, Rows(n_rows, n_empty=n_rows - n))]
    n_rules, index = len(work.taken), work.rule.dtype
    listed = chain.scratch(n_rows, index)
    enqueue_sort_by_key(
        chain, work.rule, n_rows, n_rules, n_items=n_rules, items=work.rule, sorted_items=chain.scratch(n_rows, index),
        sorted_values=listed,
    )  # fmt: skip
    firsts = itertools.accumulate((n for _, n in shares), initial=0)
    return [(rule, Rows(n, first, listed)) for (rule, n), first in zip(shares, firsts, strict=False) if n]
