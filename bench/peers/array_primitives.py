"""The primitives as one writes them with NumPy or CuPy, whose functions have the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bench.problems.base import Array, Result
from bench.problems.primitives import Primitive, pack

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class ArrayPrimitive:
    """A primitive by functions of an array module.

    Attributes
    ----------
    operands
        What it is computed from, NumPy arrays.
    compute
        Takes the module and the operands as its arrays, and returns new ones.
    detail
        How it is done.
    packed
        Whether the first array that it returns has the keys in the lower half of 64-bit words.
    """

    operands: Result
    compute: Callable[..., Arrays]
    detail: str
    packed: bool = False

    def unpacked(self, result: Result) -> Result:
        """Return the result as the problem has it."""
        return (result[0].astype("uint32"), *result[1:]) if self.packed else result


def array_primitive(problem: Primitive) -> ArrayPrimitive:
    """Return how a problem of `OPERATIONS` is computed."""
    return _MAKERS[problem.operation](problem.operands)


def _scan(operands: dict[str, Array]) -> ArrayPrimitive:
    return ArrayPrimitive((operands["a"],), lambda xp, a: (xp.cumsum(a, dtype=a.dtype),), "cumsum")


def _reduce_by_key(operands: dict[str, Array]) -> ArrayPrimitive:
    def compute(xp: ModuleType, keys: Any, values: Any) -> Arrays:
        first = xp.ones(keys.size, dtype=bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = xp.flatnonzero(first)
        return keys[starts], xp.add.reduceat(values, starts)

    return ArrayPrimitive((operands["keys"], operands["values"]), compute, "flatnonzero, add.reduceat")


def _radix_sort(operands: dict[str, Array]) -> ArrayPrimitive:
    return ArrayPrimitive((operands["keys"], operands["values"]), _sort_pairs, "argsort, gather")


def _segmented_sum(operands: dict[str, Array]) -> ArrayPrimitive:
    # No segment is empty: of an empty one, reduceat gives the next one's first value.
    starts = operands["segment_ptr"][:-1]
    return ArrayPrimitive((starts, operands["values"]), lambda xp, s, v: (xp.add.reduceat(v, s),), "add.reduceat")


def _segmented_sort(operands: dict[str, Array]) -> ArrayPrimitive:
    words = pack(operands["segment_ptr"], operands["keys"])
    if "values" in operands:
        return ArrayPrimitive((words, operands["values"]), _sort_pairs, "argsort of (segment, key), gather", packed=True)
    return ArrayPrimitive((words,), lambda xp, w: (xp.sort(w),), "sort of (segment, key)", packed=True)


def _sort_pairs(xp: ModuleType, keys: Any, values: Any) -> Arrays:
    order = xp.argsort(keys, kind="stable")
    return keys[order], values[order]


_MAKERS: dict[str, Callable[[dict[str, Array]], ArrayPrimitive]] = {
    "inclusive_scan": _scan,
    "reduce_by_key": _reduce_by_key,
    "radix_sort": _radix_sort,
    "segmented_sum": _segmented_sum,
    "segmented_sort": _segmented_sort,
}
OPERATIONS = tuple(_MAKERS)
