"""SpTRANS by buckets on CPU devices, if columns are scattered: entries are moved to buckets of columns, and each is put in order.

Counting by column alone moves each entry to a place of its own; if no entry near it was moved there shortly before, none of these
places is in a cache. Buckets are few enough that the ends of all are, and each is small enough to stay in a core's cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.transpose.kernels import Transposition
from clsparse_py._operations.transpose.thresholds import Thresholds
from clsparse_py._precision.arithmetic import OPENCL_TYPES, name_of
from clsparse_py._primitives.permute import Moving
from clsparse_py._primitives.radix_kernels import AHEAD, RadixChunkCount, RadixChunkScatter, RadixChunkStarts
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["BucketFinish", "Nearness", "enqueue_bucket_chunks", "enqueue_nearness", "is_scattered"]

#: Bits of a bucket's number, by default.
BITS = 8
#: Most bits of a column within its bucket.
MAX_LOW = 12


@kernel
@dataclass(frozen=True)
class Nearness(OfStructure):
    """Parameters of ``templates/transpose/nearness.mako``."""

    template = "transpose/nearness"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}

    SAMPLES: ClassVar[int] = 256
    WINDOW: ClassVar[int] = 64
    DISTANCE: ClassVar[int] = 4

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "samples": self.SAMPLES, "window": self.WINDOW, "distance": self.DISTANCE}


@kernel
@dataclass(frozen=True)
class BucketFinish(Moving):
    """Parameters of ``templates/transpose/bucket_finish.mako``.

    Attributes
    ----------
    word : str
        NumPy's name of the type that holds a column within a bucket and a row.
    """

    template = "transpose/bucket_finish"
    variants: ClassVar[Variants] = {"": {"work_group": 1, "word": "uint32"}, "wide": {"work_group": 1, "word": "uint64"}}

    word: str

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "ahead": AHEAD}

    @property
    @override
    def prelude(self) -> str:
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.word]} W;  // {self.word}: column within a bucket, and row"


def is_scattered(chain: Chain, A: Matrix, value_bytes: int) -> bool:
    """Return whether buckets are faster than counting by column alone; the first answer for a structure waits for a sample."""
    device, n, limits = chain.device, A.nnz, Thresholds.of(chain.device)
    large = n * (A.indices.dtype.itemsize + value_bytes) >= limits.min_bucket_bytes and A.shape[1] >= limits.min_bucket_columns
    if device.is_plain or not (device.lanes_are_loops and device.compute_units <= limits.max_bucket_cores and large):
        return False
    if n <= Nearness.WINDOW:
        return False  # too few to look at a sample
    if A.structure.scattered is None:
        n_near = allocate(chain.queue, "how many columns of a sample are near others", 1, np.uint32)
        run(chain, enqueue_nearness, (A.indices, n_near), n)
        A.structure.scattered = bool(chain.read(n_near, 1)[0] <= limits.max_near_samples)
    return A.structure.scattered


def enqueue_nearness(chain: Chain, indices: cl_array.Array, n_near: cl_array.Array, n: int) -> None:
    """Enqueue a look at a sample of n entries, more than `Nearness.WINDOW`: found[0] of them have a near column before them."""
    sample, _ = chain.build(Nearness(1, name_of(indices.dtype)))
    chain.launch(sample, 1, np.uint64(n), indices, n_near)


def enqueue_bucket_chunks(chain: Chain, task: Transposition, bits: int = BITS) -> None:
    """Enqueue a transposition.

    ``bits`` are those of a bucket's number, more if buckets would have more columns than MAX_LOW bits number.

    Raises
    ------
    BuildError
        A kernel is refused; nothing was enqueued.
    """
    indptr, indices, _, to_indptr, to_indices, to_values, shape, n = task
    index, positions = name_of(indices.dtype), task.values is None
    row_bits, column_bits = (max(1, (length - 1).bit_length()) for length in shape)
    bits = min(max(bits, column_bits - MAX_LOW), column_bits)
    low = column_bits - bits
    word = "uint32" if low + row_bits <= 32 else "uint64"
    count, _ = chain.build(RadixChunkCount(1, index, index))
    sums_of, _ = chain.build(RadixChunkStarts(1, index, "sum"))
    scan, _ = chain.build(RadixChunkStarts(1, index, "scan"))
    scatter, _ = chain.build(
        RadixChunkScatter(1, index, index, word, "rows", False, to_values.dtype.itemsize, positions, False, highest=True)
    )
    finish, _ = chain.build(BucketFinish(1, index, to_values.dtype.itemsize, word))

    cores = chain.device.compute_units
    per_chunk = -(-n // cores)
    chunks, ranges = -(-n // per_chunk), cores * Thresholds.of(chain.device).ranges_per_core
    counts, sums = chain.scratch(chunks << bits, indices.dtype), chain.scratch(ranges, indices.dtype)
    bounds = chain.scratch((1 << bits) + 1, indices.dtype)
    words, in_buckets = chain.scratch(n, np.dtype(word)), chain.scratch(n, to_values.dtype)
    of_columns = chain.scratch(1 << column_bits, indices.dtype)
    common = np.uint64(n), np.uint64(per_chunk), np.uint64(chunks), np.uint32(low), np.uint32(bits), np.uint64(0)
    scanned = np.uint64(chunks), np.uint32(bits), np.uint64(ranges), counts, sums
    chain.launch(count, chunks, *common, indices, counts)
    chain.launch(sums_of, ranges, *scanned)
    chain.launch(scan, ranges, *scanned, np.uint64(1 << bits), bounds)
    making = np.uint32(row_bits), np.int64(shape[0]), indptr
    chain.launch(scatter, chunks, *common, indices, counts, *making, *task.value_arguments, words, in_buckets)
    buckets = (shape[1] - 1 >> low) + 1
    sizes = np.uint64(buckets), np.uint32(low), np.uint32(row_bits), np.uint64(shape[1])
    chain.launch(finish, buckets, *sizes, bounds, words, in_buckets, of_columns, to_indptr, to_indices, to_values)
