"""SpTRANS by buckets on CPU devices, if columns are scattered: entries are moved to buckets of columns, and buckets are sorted.

A counting sort by column alone moves an entry to a place that is in no cache, unless an entry of a near column was moved shortly
before. Buckets are few enough that the ends of all buckets stay in caches, and so small that a bucket stays in a core's cache.
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
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import Transposition
from clsparse_py._precision.arithmetic import OPENCL_TYPES, name_of
from clsparse_py._primitives.permute import Moving
from clsparse_py._primitives.radix_kernels import AHEAD, RadixChunkCount, RadixChunkScatter, RadixChunkStarts
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["BucketFinish", "Nearness", "enqueue_bucket_chunks", "enqueue_nearness", "is_scattered"]

#: Default number of bits of the number of a bucket, a range of adjacent columns, in a transposition on CPU devices.
BITS = 8
#: Most bits of a column's number within its bucket, a range of adjacent columns.
MAX_LOW = 12


@kernel
@dataclass(frozen=True)
class Nearness(OfStructure):
    """Parameters of ``templates/transpose/nearness.mako``."""

    template = "transpose/nearness"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}

    #: Number of a matrix's entries that are sampled for near columns.
    SAMPLES: ClassVar[int] = 256
    #: Number of entries before a sampled entry that are compared with it.
    WINDOW: ClassVar[int] = 64
    #: Greatest difference of two columns that count as near.
    DISTANCE: ClassVar[int] = 4

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, numbers of samples and of entries compared, distance of near columns."""
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
        """Return the template's arguments: the record's fields, and ``ahead``, the prefetch distance in entries."""
        return {**super().arguments(), "ahead": AHEAD}

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: types of indices, values and words (column within a bucket, and row)."""
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.word]} W;  // {self.word}: column within a bucket, and row"


def is_scattered(chain: Chain, A: Matrix, value_bytes: int) -> bool:
    """Return whether to transpose by buckets, not by a counting sort: on CPUs of few cores, if A is large and scattered.

    A is scattered if few of a sample's entries follow shortly after an entry in a nearby column. The first answer for a structure
    waits for the sample.
    """
    device, n, limits = chain.device, A.nnz, Thresholds.of(chain.device)
    large = n * (A.indices.dtype.itemsize + value_bytes) >= limits.min_bucket_bytes and A.shape[1] >= limits.min_bucket_columns
    if device.is_plain or not (device.lanes_are_loops and device.compute_units <= limits.max_bucket_cores and large):
        return False
    if n <= Nearness.WINDOW:
        return False  # there are too few entries for a sample
    if A.structure.scattered is None:
        n_near = allocate(chain.queue, "how many columns of a sample are near others", 1, np.uint32)
        run(chain, enqueue_nearness, (A.indices, n_near), n)
        A.structure.scattered = bool(chain.read(n_near, 1)[0] <= limits.max_near_samples)
    return A.structure.scattered


def enqueue_nearness(chain: Chain, indices: cl_array.Array, n_near: cl_array.Array, n: int) -> None:
    """Enqueue the count of sampled entries, of a matrix's n, that follow shortly after an entry in a nearby column."""
    sample, _ = chain.build(Nearness(1, name_of(indices.dtype)))
    chain.launch(sample, 1, np.uint64(n), indices, n_near)


def enqueue_bucket_chunks(chain: Chain, task: Transposition, bits: int = BITS) -> None:
    """Enqueue the transposition of a matrix by buckets of columns, for CPU devices.

    ``bits`` is the number of bits of a bucket's number; it grows if columns within a bucket would need more than MAX_LOW bits.

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
    count, _ = chain.build(RadixChunkCount(1, index, f"u{index}"))
    starts, _ = chain.build(RadixChunkStarts(1, index))
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
    scanned = np.uint64(chunks), np.uint32(bits), np.uint64(ranges), counts, sums, np.uint64(1 << bits), bounds
    chain.launch(count, chunks, *common, indices, counts)
    for scans in (0, 1):
        chain.launch(starts, ranges, *scanned, np.uint32(scans))
    making = np.uint32(row_bits), np.int64(shape[0]), indptr
    chain.launch(scatter, chunks, *common, indices, counts, *making, *task.value_arguments, words, in_buckets)
    buckets = (shape[1] - 1 >> low) + 1
    sizes = np.uint64(buckets), np.uint32(low), np.uint32(row_bits), np.uint64(shape[1])
    chain.launch(finish, buckets, *sizes, bounds, words, in_buckets, of_columns, to_indptr, to_indices, to_values)
