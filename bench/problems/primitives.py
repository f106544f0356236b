"""The primitives' problems: made inputs, named by their kind and number of elements, and what must come out.

All values are whole numbers small enough that every order of summation gives the same sum, so that results are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.problems.base import Array, ExactProblem, Result

# Elements of a sorted piece of segmented merge.
SUBSEGMENT = 1000
# Sorted pieces of a segment of segmented merge.
SUBSEGMENTS = 16
# Elements of the longest segment of segmented sort and sum; lengths are uniform from 1 on.
LONGEST_SEGMENT = 1000
# Most repeats of a key of reduce_by_key, which are uniform from 1 on.
LONGEST_RUN = 16


@dataclass(frozen=True, eq=False)
class Primitive(ExactProblem):
    """A primitive applied to some arrays.

    Attributes
    ----------
    operands
        The arrays by the names of the primitive's parameters, in their order.
    sizes
        What the results file says of them; ``rounds`` is how often an element takes part in a merge, on average.
    """

    operands: dict[str, Array]
    sizes: dict[str, float]

    @property
    def minimal_bytes(self) -> int:
        """The bytes of operands and results, each array once; of a merge, its elements read and written once a round."""
        if "rounds" in self.sizes:
            return round(2 * sum(part.nbytes for part in self.reference) * self.sizes["rounds"])
        return sum(part.nbytes for part in (*self.operands.values(), *self.reference))

    def described(self) -> dict[str, Any]:
        """Return the numbers of elements, segments and so on."""
        return {"sizes": self.sizes}


# Operands, results and sizes of an input.
Made = tuple[dict[str, Array], Result, dict[str, float]]
# A function that makes operands, results and sizes of an input, by its kind and number of elements.
Make = Callable[[np.random.Generator, str, int], Made]


@dataclass(frozen=True)
class Family:
    """A primitive's inputs.

    Attributes
    ----------
    makes
        What the results file calls the dtypes of keys and values, and who makes an input of them.
    kinds
        The kinds of inputs that there are.
    sizes
        Elements on a GPU and on a CPU, in the suites other than ``quick``.
    """

    makes: dict[str, Make]
    kinds: tuple[str, ...]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]


def _scan(rng: np.random.Generator, _kind: str, size: int) -> Made:
    a = rng.integers(-8, 8, size, dtype=np.int32)
    return {"a": a}, (np.cumsum(a, dtype=np.int32),), {"elements": size}


def _reduce_by_key(rng: np.random.Generator, _kind: str, size: int) -> Made:
    starts = _pointer(rng, "uniform", size, LONGEST_RUN)[:-1]
    unique = rng.permutation(starts.size).astype(np.uint32)
    keys = np.repeat(unique, np.diff(starts, append=size))
    values = _whole_numbers(rng, size)
    sums = np.add.reduceat(values, starts)
    return {"keys": keys, "values": values}, (unique, sums), {"elements": size, "runs": starts.size}


def _radix_sort(rng: np.random.Generator, _kind: str, size: int) -> Made:
    keys, values = _random_keys(rng, size), np.arange(size, dtype=np.uint32)
    return {"keys": keys, "values": values}, _sort_pairs(keys, [slice(0, size)]), {"elements": size}


def _segmented_sum(rng: np.random.Generator, kind: str, size: int) -> Made:
    pointer, values = _pointer(rng, kind, size, LONGEST_SEGMENT), _whole_numbers(rng, size)
    sums = np.add.reduceat(values, pointer[:-1])
    return {"segment_ptr": pointer, "values": values}, (sums,), {"elements": size, "segments": sums.size}


def _segmented_sort(rng: np.random.Generator, _kind: str, size: int) -> Made:
    pointer, keys = _pointer(rng, "uniform", size, LONGEST_SEGMENT), _random_keys(rng, size)
    return {"segment_ptr": pointer, "keys": keys}, (np.sort(pack(pointer, keys)).astype(np.uint32),), _sizes(pointer)


def _segmented_sort_pairs(rng: np.random.Generator, kind: str, size: int) -> Made:
    operands, (keys,), sizes = _segmented_sort(rng, kind, size)
    order = np.argsort(pack(**operands), kind="stable").astype(np.uint32)
    return {**operands, "values": np.arange(size, dtype=np.uint32)}, (keys, order), sizes


def _segmented_merge(rng: np.random.Generator, kind: str, size: int) -> Made:
    count = size // SUBSEGMENT
    pieces = _random_keys(rng, count * SUBSEGMENT).reshape(count, SUBSEGMENT)
    pieces.sort(axis=1)
    # The skewed kind has one segment of half of all sub-segments at the beginning.
    first = [0] if kind == "uniform" else [0, count // 2]
    segments = np.append(first, np.arange(first[-1] + SUBSEGMENTS, count + SUBSEGMENTS, SUBSEGMENTS).clip(max=count))
    pointer = segments.astype(np.int32)
    subsegments = np.arange(0, pieces.size + 1, SUBSEGMENT, dtype=np.int32)
    rounds = np.ceil(np.log2(np.diff(pointer))) @ np.diff(pointer) / count
    operands = {
        "segment_ptr": pointer,
        "subsegment_ptr": subsegments,
        "keys": pieces.ravel(),
        "values": np.arange(pieces.size, dtype=np.uint32),
    }
    bounds = subsegments[pointer]
    reference = _sort_pairs(operands["keys"], [slice(*pair) for pair in itertools.pairwise(bounds)])
    return operands, reference, {**_sizes(bounds), "subsegments": count, "rounds": float(rounds)}


_UNIFORM = ("uniform",)
_BOTH = ("uniform", "skewed")
PRIMITIVES: dict[str, Family] = {
    "inclusive_scan": Family({"int32": _scan}, _UNIFORM, ((10**8,), (10**7,))),
    "reduce_by_key": Family({"uint32-float32": _reduce_by_key}, _UNIFORM, ((10**8,), (10**7,))),
    "radix_sort": Family({"uint32-uint32": _radix_sort}, _UNIFORM, ((10**7, 10**8), (10**6, 10**7))),
    "segmented_sum": Family({"float32": _segmented_sum}, _BOTH, ((10**8,), (10**7,))),
    "segmented_sort": Family(
        {"uint32": _segmented_sort, "uint32-uint32": _segmented_sort_pairs}, _UNIFORM, ((10**7,), (10**6, 10**7))
    ),
    # The smaller size is for the simple algorithm, which on a GPU has one work-item merge half of a skewed input.
    "segmented_merge": Family({"uint32-uint32": _segmented_merge}, _BOTH, ((10**6, 10**8), (10**6, 10**7))),
}
# Elements of an input of the suite ``quick``.
QUICK = 10**5


def inputs(operation: str, suite: str, *, cpu: bool) -> list[str]:
    """Return the names of a primitive's inputs in a suite: of few elements in ``quick``, else as many as the device suits."""
    family = PRIMITIVES[operation]
    sizes = (QUICK,) if suite == "quick" else family.sizes[cpu]
    return [f"{kind}_{size:.0e}".replace("+0", "") for size in sizes for kind in family.kinds]


def make(name: str, operation: str, dtype: str) -> Primitive:
    """Make a primitive's input from its name, and what must come out.

    Raises
    ------
    ValueError
        If there is no such input.
    """
    kind, _, size = name.rpartition("_")
    family = PRIMITIVES[operation]
    if kind not in family.kinds:
        raise ValueError(f"input: got {name!r}, {operation} needs one of {', '.join(family.kinds)} with a size, like uniform_1e6")
    operands, reference, sizes = family.makes[dtype](np.random.default_rng(0), kind, int(float(size)))
    return Primitive(name, operation, dtype, reference, operands, sizes)


def pack(segment_ptr: Array, keys: Array) -> Array:
    """Return each key below its segment's number in a 64-bit word, so that sorting the words sorts every segment."""
    segments = np.repeat(np.arange(segment_ptr.size - 1, dtype=np.uint64), np.diff(segment_ptr))
    return segments << np.uint64(32) | keys


def _pointer(rng: np.random.Generator, kind: str, size: int, longest: int) -> Array:
    """Return the pointer of segments of 1 to ``longest`` elements; of the skewed kind, the first one holds half of all."""
    begin = 0 if kind == "uniform" else size // 2
    lengths = rng.integers(1, longest, -(-2 * size // longest) + 64, endpoint=True)
    ends = begin + np.cumsum(lengths)
    return np.concatenate([[0, begin] if begin else [0], ends[ends < size], [size]]).astype(np.int32)


def _random_keys(rng: np.random.Generator, size: int) -> Array:
    return rng.integers(0, 2**32, size, dtype=np.uint32)


def _whole_numbers(rng: np.random.Generator, size: int) -> Array:
    # Of both signs, so that even the sum of 10^8 of them stays where float32 is exact.
    return rng.integers(-2, 2, size, endpoint=True, dtype=np.int8).astype(np.float32)


def _sort_pairs(keys: Array, segments: Sequence[slice]) -> Result:
    """Return keys and their places in each segment, sorted stably by key."""
    # A key and its place in one word: no two words are equal, so that any sort is stable.
    words = keys.astype(np.uint64) << np.uint64(32) | np.arange(keys.size, dtype=np.uint64)
    for segment in segments:
        words[segment].sort()
    return (words >> np.uint64(32)).astype(np.uint32), words.astype(np.uint32)


def _sizes(pointer: Array) -> dict[str, float]:
    return {"elements": int(pointer[-1]), "segments": pointer.size - 1}
