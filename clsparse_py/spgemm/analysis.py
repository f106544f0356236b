"""Inspect a product before it is made: how much work each row is, which rule takes it, and which rows each rule has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.launch import Chain, spread
from clsparse_py.primitives.radix_sort import enqueue_sort_by_key
from clsparse_py.spgemm.accumulator import Rows
from clsparse_py.spgemm.kernels import Analysis
from clsparse_py.spgemm.rules import Rule

__all__ = ["Work", "analyse", "grouped"]


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


def _lanes(mean_length: float, work_group: int) -> int:
    """Return how many work-items count a row's products: a power of two that divides the work-group size."""
    lanes = 1
    while lanes < 32 and lanes * 4 < mean_length and work_group % (2 * lanes) == 0:
        lanes *= 2
    return lanes


def analyse(
    chain: Chain,
    n_rows: int,
    nnz: int,
    a_indptr: cl_array.Array,
    a_indices: cl_array.Array,
    b_indptr: cl_array.Array,
    rules: tuple[Rule, ...],
    work_group: int | None = None,
    bounded_by: int | None = None,
) -> Work:
    """Count the intermediate products of each row, and find the rule that takes it. Waits for the device once.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    n_rows, nnz : int
        Rows and entries of A.
    a_indptr, a_indices, b_indptr : pyopencl.array.Array
        Of one dtype.
    rules : tuple of Rule
        The last takes all.
    work_group : int, optional
        Work-items in a work-group, if not those that suit the device.
    bounded_by : int, optional
        Columns of B: bound the entries of C too.
    """
    device = chain.device
    group = min(work_group or (1 if device.is_cpu else 128), device.max_work_group)
    lanes = 1 if device.is_cpu else _lanes(nnz / n_rows, group)
    record = Analysis(group, name_of(a_indptr.dtype), lanes, tuple(rule.limits for rule in rules), bounded_by is not None)
    built, built_record = chain.build(record)
    products, rule = chain.scratch(n_rows, np.uint64), chain.scratch(n_rows, a_indptr.dtype)
    n_found = 4 + len(rules) + (0 if bounded_by is None else 2)
    found = chain.scratch(n_found, np.uint32)
    chain.fill(found, 0, n_found)
    sizes: tuple[Any, ...]
    if built_record.lanes == 1:
        groups, sizes = spread(device, n_rows, built_record.work_group)
    else:
        groups, sizes = -(-n_rows * built_record.lanes // built_record.work_group), tuple(map(np.uint64, (n_rows, 1, 1, 1)))
    if bounded_by is not None:
        sizes += (np.uint64(bounded_by),)
    chain.launch(built, groups, *sizes, a_indptr, a_indices, b_indptr, products, rule, found)
    low, high, most, longest, *rest = (int(number) for number in chain.read(found, n_found))
    taken, bound = rest[: len(rules)], rest[len(rules) :]
    return Work(products, rule, (high << 32) + low, most, longest, tuple(taken), (bound[1] << 32) + bound[0] if bound else None)


def grouped(chain: Chain, n_rows: int, work: Work, rules: tuple[Rule, ...]) -> list[Rows | None]:
    """Return the rows of each rule, None for a rule without rows; they are listed unless one rule takes all.

    The first rule is for rows without products: where it costs less to visit them than to sort them out, another takes them too.
    The order of rows is kept within each rule.
    """
    n_empty = work.taken[0]
    for rule, n in zip(rules, work.taken, strict=True):
        if n == n_rows or (rule.takes_empty and 0 < n == n_rows - n_empty):
            return [Rows(n_rows, n_empty=n_rows - n) if each is rule else None for each in rules]
    n_rules, index = len(work.taken), work.rule.dtype
    listed = chain.scratch(n_rows, index)
    enqueue_sort_by_key(
        chain, work.rule, n_rows, n_rules, n_items=n_rules, items=work.rule, sorted_items=chain.scratch(n_rows, index),
        sorted_values=listed,
    )  # fmt: skip
    rows: list[Rows | None] = []
    first = 0
    for n in work.taken:
        rows.append(Rows(n, first, listed) if n else None)
        first += n
    return rows
