"""Aggregates of a graph, found node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._solvers.aggregation.aggregates import _order_nodes


def aggregates(columns: np.ndarray[Any, Any], pointers: np.ndarray[Any, Any]) -> tuple[Any, Any, int]:
    """Return the number of each node's aggregate, how many nodes before each joined one, and the number of aggregates."""
    n = pointers.size - 1
    near = [columns[pointers[i] : pointers[i + 1]] for i in range(n)]
    has_neighbour = np.array([bool((neighbours != i).any()) for i, neighbours in enumerate(near)], bool)
    reach = sum(int(i - min(neighbours.min(initial=i), i)) for i, neighbours in enumerate(near)) // n
    shift, order, _ = _order_nodes(n, reach)
    number = np.full(n, -1, pointers.dtype)
    for block in order:
        for i in range(int(block) << shift, min(n, (int(block) + 1) << shift)):
            others = near[i][near[i] != i]
            if has_neighbour[i] and not any((number[near[j]] >= 0).any() for j in others) and not (number[others] >= 0).any():
                number[i] = 0
    number[number >= 0] = np.arange((number >= 0).sum())
    before = number.copy()
    for i in np.flatnonzero((number < 0) & has_neighbour).tolist():
        roots = near[i][number[near[i]] >= 0]
        before[i] = number[roots[0]] if roots.size else -1
    joined = before.copy()
    for i in np.flatnonzero((before < 0) & has_neighbour).tolist():
        of = before[near[i]]
        counts = [(-int((of == operand).sum()), int(operand)) for operand in of[:32] if operand >= 0]
        rest = of[32:][of[32:] >= 0]
        joined[i] = min(counts)[1] if counts else rest[0] if rest.size else -1
    place = np.concatenate([[0], np.cumsum(joined >= 0)]).astype(pointers.dtype)
    return joined, place, int((number >= 0).sum())
