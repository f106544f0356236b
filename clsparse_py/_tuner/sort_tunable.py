"""Tuning of segmented sort: the method by segment length, and work-group sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._device.device import Device
from clsparse_py._primitives.segmented_sort import enqueue_segmented_sort, features_of
from clsparse_py._primitives.segments import Elements, Shape
from clsparse_py._run.launch import Chain
from clsparse_py._tuner.tunable import Tunable

__all__ = ["SegmentedSortTunable", "SortProblem"]

#: Shapes (kernel sizes) of segmented sort to measure; True: for devices on which a work-item sorts whole segments.
_SHAPES = {
    False: (
        Shape.lanes(256, 512, 16),
        Shape.lanes(128, 256, 16),
        Shape.lanes(512, 512, 16),
        Shape.lanes(128, 256, 8),
        Shape.lanes(256, 512, 8),
        Shape.lanes(512, 512, 8),
        Shape.lanes(256, 512, 16, 32),
        Shape.lanes(256, 512, 16, 64),
        Shape.lanes(256, 256, 16),
    ),
    True: (
        Shape.chunks(1),
        Shape.chunks(1, block=16),
        Shape.chunks(1, block=32),
        Shape.chunks(1, block=48),
        Shape.chunks(1, block=64),
        Shape.chunks(1, 1 << 13, 32),
        Shape.chunks(1, 1 << 20, 32),
        Shape.chunks(8),
    ),
}
#: Dtypes of the sorted keys and of their values, None for no values: as SpTRANS sorts, and as columns with values.
_KINDS: tuple[tuple[str, str | None], ...] = (("uint64", None), ("int32", "int64"))


@dataclass
class SortProblem:
    """Segments to be sorted, as long as the rows of a matrix.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    pointers : pyopencl.array.Array
    keys : pyopencl.array.Array
    values : pyopencl.array.Array or None
    out : tuple of pyopencl.array.Array
        Arrays of the sorted keys, and of their values if there are any.
    others : tuple of SortProblem
        The same segments with keys and values of other types.
    """

    name: str
    queue: cl.CommandQueue
    pointers: cl_array.Array
    keys: cl_array.Array
    values: cl_array.Array | None
    out: tuple[cl_array.Array, ...]
    others: tuple[SortProblem, ...] = field(default=())

    @property
    def elements(self) -> Elements:
        """The dtypes of the sorted keys and of their values."""
        return Elements.of(self.keys, self.values)

    @functools.cached_property
    def reference(self) -> tuple[Any, ...]:
        """The keys and values of all segments as NumPy's stable sort orders them."""
        lengths, keys = np.diff(self.pointers.get()), self.keys.get()
        order = np.lexsort((keys, np.repeat(np.arange(lengths.size), lengths)))
        return (keys[order], *(() if self.values is None else (self.values.get()[order],)))


class SegmentedSortTunable(Tunable[SortProblem]):
    """Segmented sort as the tuner takes it, see `tunable.Tunable`."""

    operation = "segmented_sort"
    questions = ("shape",)
    waits = True
    max_entries = (10**7, 3 * 10**6)
    entry_bytes = 256

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> SortProblem:
        """Return the problem of sorting segments of keys as long as a matrix's rows, once without and once with values."""
        n = int(matrix.indptr[-1])
        if not n:
            raise ValueError(f"{name}: has no entries")
        pointers = cl_array.to_device(queue, matrix.indptr)
        problems = []
        for key, value in _KINDS:
            rng = np.random.default_rng(n)
            keys = cl_array.to_device(queue, rng.integers(0, np.iinfo(key).max, n, dtype=key))
            values = cl_array.to_device(queue, np.arange(n, dtype=value)) if value else None
            out = tuple(cl_array.empty_like(array) for array in (keys, values) if array is not None)
            kind = f"{name}, {key} keys{' and values' if value else ''}"
            problems.append(SortProblem(kind, queue, pointers, keys, values, out))
        problems[0].others = tuple(problems[1:])
        return problems[0]

    @override
    def subjects(self, problem: SortProblem, question: str) -> Sequence[SortProblem]:
        """Return the problems of sorting the same segments with keys and values of each of several dtypes."""
        return (problem, *problem.others)

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the names of segmented sort's shapes (kernel sizes) whose work-groups fit a device; the first if none fits."""
        shapes = _SHAPES[device.lanes_are_loops]
        fitting = tuple(str(shape) for shape in shapes if max(shape.work_group, shape.merge_group) <= device.max_work_group)
        return fitting or (str(shapes[0]),)

    @override
    def features(self, problem: SortProblem) -> dict[str, float]:
        """Return the features of the segments to sort, by name: the numbers that decision trees compare."""
        return features_of(problem.elements, problem.keys.size, problem.pointers.size - 1)

    @override
    def parse(self, question: str, label: str) -> Shape:
        """Return the `Shape` of a segmented sort's kernels that a label names."""
        return Shape.parse(label)

    @override
    def prepare(self, problem: SortProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Build segmented sort's kernels, whose sizes ``label`` names, and return a function that sorts the segments by them."""
        shape, out_values = Shape.parse(label), problem.out[1] if problem.values is not None else None

        def sort() -> list[cl.Event]:
            """Sort the problem's segments once, and return the events of the launches."""
            chain = Chain(problem.queue)
            enqueue_segmented_sort(
                chain, problem.pointers, problem.pointers.size - 1, problem.keys, problem.values, problem.keys.size,
                out_keys=problem.out[0], out_values=out_values, shape=shape,
            )  # fmt: skip
            chain.finish(*problem.out)
            return chain.events

        sort()
        return sort

    @override
    def verify(self, problem: SortProblem) -> bool:
        """Return whether the last run sorted the segments as NumPy's stable sort does, after waiting for the run."""
        problem.queue.finish()
        pairs = zip(problem.out, problem.reference, strict=True)
        return all(np.array_equal(array.get(), expected) for array, expected in pairs)
