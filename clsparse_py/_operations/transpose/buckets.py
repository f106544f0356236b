"""SpTRANS by buckets of columns: entries are moved once to buckets of adjacent columns, and buckets are sorted.

A bucket that one work-group holds is sorted in local memory. Longer buckets are cut into parts, whose columns are counted first.
The host waits for nothing. For devices with local memory of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Examples, kernels
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.transpose.bucket_kernels import (
    ALONE,
    RUN,
    BucketCount,
    BucketMove,
    BucketOrder,
    BucketSplit,
    BucketStarts,
)
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import Transposition
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._run.launch import Chain

__all__ = ["MAX_BITS", "Kernels", "Shape", "enqueue_buckets", "kernels_of", "shape_of"]

#: Greatest number of bits of a bucket's number, or of a column within a bucket of columns, whose counters fit local memory.
MAX_BITS = 11
#: Shapes of a tile of entries that go to buckets of columns, best first: work-items of a work-group, entries to a work-item.
_TILES = ((512, 8), (256, 8), (128, 16))


@dataclass(frozen=True)
class Shape:
    """The shape of a transposition by buckets of columns: tests vary the shape, and tuning may.

    Attributes
    ----------
    move_group, move_items : int
        Work-items of a work-group that moves entries to buckets, and entries of a tile to each.
    order_group, order_items : int
        Work-items of a work-group that puts a bucket in order, and entries to each.
    bits : int
        Of the number of a bucket.
    small : bool
        Whether work-groups add counts up by themselves, which saves launches: where entries are few.
    """

    move_group: int
    move_items: int
    order_group: int
    order_items: int
    bits: int
    small: bool = False

    @property
    def capacity(self) -> int:
        """Most entries of a bucket of columns that one work-group puts in order."""
        return self.order_group * self.order_items


def shape_of(device: Device, index: str, value_bytes: int, size: tuple[int, int], n: int) -> Shape | None:
    """Return the shape of a transposition of n entries by buckets of columns; None if a radix sort takes the place of buckets.

    That is so if columns have more bits than two digits, if lanes have no instruction that finds equal digits, or if local
    memory is too small.
    """
    column_bits, limits = _count_bits(size[1]), Thresholds.of(device)
    if column_bits > 2 * MAX_BITS or n >= 1 << 32 or device.portability.match != "ptx":
        return None
    for group, items in _TILES:
        bits = _choose_bucket_bits(column_bits, limits.moderate_bits)
        few_bits = min(bits, limits.few_entries_bits)
        fits = column_bits - few_bits <= limits.moderate_bits and group >= 1 << limits.few_entries_bits
        small = n <= limits.max_few_entries and fits
        shape = Shape(group, items, group, items, few_bits if small else bits, small)
        kernels = kernels_of(device, index, value_bytes, size, shape)
        if group <= device.max_work_group and kernels.fit and kernels.local_memory + RESERVED <= device.local_memory:
            return shape
    return None


def _count_bits(n: int) -> int:
    """Return the number of bits that row or column numbers below n need."""
    return max(1, (n - 1).bit_length())


def _choose_bucket_bits(column_bits: int, moderate: int) -> int:
    """Return the bits of a bucket's number: all of a column's bits if ``moderate`` or fewer, else half of them or more."""
    if column_bits <= moderate:
        return column_bits
    bits_within = moderate if column_bits <= 2 * moderate else MAX_BITS
    return max(column_bits - bits_within, -(-column_bits // 2))


@dataclass(frozen=True)
class Kernels:
    """The parameter records of the kernels of a transposition by buckets; None for kernels that are not launched.

    If buckets are columns, entries are only moved; if entries are few, nothing is scanned.
    """

    count: BucketCount
    move: BucketMove
    starts: BucketStarts | None
    order: BucketOrder | None
    split: BucketSplit | None

    @property
    def all(self) -> tuple[Parameters, ...]:
        """The parameter records of the bucket kernels that a transposition launches."""
        records = self.count, self.move, self.starts, self.order, self.split
        return tuple(record for record in records if record is not None)

    @property
    def fit(self) -> bool:
        """Whether the parameters of all bucket kernels of a transposition are legal, apart from local memory."""
        return self.move.legal and (self.order is None or self.order.legal)

    @property
    def local_memory(self) -> int:
        """Greatest bytes of local memory that a work-group of one of the bucket kernels takes."""
        return max(self.move.local_memory, 0 if self.order is None else self.order.local_memory)


def kernels_of(device: Device, index: str, value_bytes: int, size: tuple[int, int], shape: Shape) -> Kernels:
    """Return the parameter records of the bucket kernels that transpose a matrix; ``value_bytes``: 0 to move positions."""
    bits, low, row_bits = shape.bits, _count_bits(size[1]) - shape.bits, _count_bits(size[0])
    last, portability = low == 0, device.portability
    word = "ulong" if (index == "int64" if last else low + row_bits > 32) else "uint"
    group, items = shape.move_group, shape.move_items
    small = shape.small
    move = BucketMove(group, index, value_bytes, portability, bits, items, word, small, shape.capacity, last)
    count = BucketCount(group, index, bits, move.tile)
    starts = None if small else BucketStarts(min(Thresholds.of(device).starts_group, device.max_work_group), index, bits)
    if last:
        return Kernels(count, move, starts, None, None)
    # On GPUs a bucket kernel's work-group with nothing to do ends at once; on CPU devices a return before a barrier is unsafe.
    skips = portability.match == "ptx"
    moved_bytes = value_bytes or np.dtype(index).itemsize
    order = BucketOrder(shape.order_group, index, moved_bytes, portability, low, shape.order_items, word, small)
    if small:
        return Kernels(count, move, None, order, None)
    return Kernels(count, move, starts, order, BucketSplit(group, index, low, shape.capacity, word, order.record, skips))


def enqueue_buckets(chain: Chain, task: Transposition, shape: Shape) -> None:
    """Enqueue the transposition of a matrix by buckets of columns, for GPUs.

    Raises
    ------
    BuildError
        A kernel is refused; nothing was enqueued.
    """
    indptr, indices, _, to_indptr, to_indices, to_values, size, n = task
    n_rows, n_cols = size
    kernels = kernels_of(chain.device, name_of(indices.dtype), task.value_bytes, size, shape)
    built: dict[str, Any] = {parameters.template: chain.build(parameters) for parameters in kernels.all}
    bits, low, row_bits = shape.bits, _count_bits(n_cols) - shape.bits, _count_bits(n_rows)
    chunks, buckets = -(-n // kernels.count.chunk), 1 << bits
    counts, bounds = chain.scratch((chunks + 1) * buckets, np.uint32), chain.scratch(3 * (buckets + 1), np.uint32)
    first_rows = chain.scratch(chunks, indptr.dtype)
    entries, rows, columns = np.uint32(n), np.int64(n_rows), np.int64(n_cols)

    def launch(record: Parameters, groups: int, *arguments: Any) -> None:
        """Launch the built bucket kernel of a parameter record."""
        chain.launch(built[record.template][0], groups, *arguments)

    launch(kernels.count, chunks, entries, np.uint32(low), rows, indptr, indices, first_rows, counts)
    if kernels.starts is not None:
        launch(kernels.starts, buckets // built[kernels.starts.template][1].columns, np.uint32(chunks), counts)
    moving = (
        entries,
        np.uint32(low),
        np.uint32(row_bits),
        rows,
        indptr,
        indices,
        counts,
        first_rows,
        *task.value_arguments,
        bounds,
    )
    if kernels.order is None:
        launch(kernels.move, chunks, *moving, columns, to_indptr, to_indices, to_values)
        return
    order = kernels.order
    words = chain.scratch(n, np.uint64 if order.record or order.word == "ulong" else np.uint32)
    in_buckets = () if order.record else (chain.scratch(n, to_values.dtype),)
    launch(kernels.move, chunks, *moving, words, *in_buckets)
    # Upper bounds of the numbers of all buckets' parts and runs of parts: a bucket of several parts has over `capacity` entries.
    several = n // shape.capacity
    parts, runs = buckets + several, 2 * several // RUN + min(buckets, several // ALONE)
    wide = np.uint32(buckets), np.uint32(row_bits)
    of_several: tuple[cl_array.Array, ...] = ()
    if kernels.split is not None:
        of_several = chain.scratch(parts << low, np.uint32), chain.scratch(runs << low, np.uint32)
        launch(kernels.split, runs, *wide, bounds, words, *of_several)
    launch(
        kernels.order, parts, entries, *wide, columns, bounds, *of_several, words, *in_buckets, to_indptr, to_indices, to_values
    )


@kernels
def _examples(device: Device, arithmetic: Arithmetic) -> Examples:
    """Yield examples of bucket kernels: of two steps that move values, and of one step that moves positions."""
    # Without an instruction that finds equal digits, eight lanes share counters of digits: fewer entries fit local memory.
    has_large_groups = device.portability.match == "ptx" and device.max_work_group >= 512
    group, items, bits = (512, 8, 9) if has_large_groups else (min(64, device.max_work_group), 4, 6)
    shape = Shape(group, items, group, items, bits)
    two = kernels_of(device, arithmetic.index, np.dtype(arithmetic.a).itemsize, (1000, 1 << 2 * bits), shape)
    for record in two.all:
        yield "", record
    yield "last", kernels_of(device, arithmetic.index, 0, (1000, 1 << bits), shape).move
