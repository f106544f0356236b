"""Dense accumulators for CPU devices: a few workers claim chunks of rows, each with an array as long as a row of C is wide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfListed
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.partition import enqueue_partition
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = ["DenseChunked", "DenseChunkedKernel", "Masks", "worker_bytes", "workers_on"]

#: Columns of C to a 64-bit word of the bits in which a worker (a work-item of the dense kernel) marks a row's columns.
_BITS = 64
#: Bytes of the counter of the chunks of rows of C that workers (work-items) of the dense kernel have claimed.
_CLAIMED_BYTES = 4
#: Number of chunks that rows of C are cut into for each worker, a work-item with a dense accumulator of its own.
_CHUNKS = 32
#: Work that a row of C counts for beside its products, in products, when rows are cut into chunks of equal work.
_ROW_WEIGHT = 8
#: Products of a short row of C for which a worker has memory: 32, and eight more, as rows of B are copied by eight entries.
_ROOM = 32 + 8
#: Most consecutive rows of B with the same columns that a worker adds to the sums of a row of C in one loop.
_BLOCK = 4
#: Entries of A's row between the entry whose row of B is prefetched and the entry whose products are being added.
_DISTANCE = 12
#: Most entries of a row of B for which it has no bit masks, as its columns are set one by one.
_FEW = 4
#: Columns between the first and the last of a row of C, from which on a worker's sums would not stay in a core's cache.
_FAR = 1 << 15
#: Value of `_State.n_words` for each row of B if no bit masks are made: so large that a row's columns are set one by one.
_NO_MASKS = 0xFFFFFFFC


@kernel
@dataclass(frozen=True)
class Masks(OfStructure):
    """Parameters of ``templates/spgemm/masks.mako``."""

    template = "spgemm/masks"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and ``few``, the most entries of a row of B without bit masks."""
        return {**super().arguments(), "few": _FEW}


@kernel
@dataclass(frozen=True)
class DenseChunkedKernel(OfListed):
    """Parameters of ``templates/spgemm/dense_chunked.mako``; the work-group is one work-item."""

    template = "spgemm/dense_chunked"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: macros of a device whose lanes exchange nothing, and the base's prelude."""
        return f"{Portability().defines}\n{super().prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `OfListed`'s, whether rows are listed, whether short ones go apart, limits, phase."""
        return {
            **super().arguments(),
            "listed": self.listed,
            "short": not self.types.wide and self.types.phase != "values",
            "room": _ROOM,
            "block": _BLOCK,
            "few": _FEW,
            "distance": _DISTANCE,
            "far": _FAR,
            **self.types.is_phase,
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "symbolic", "numeric", "values" and "upper_bound"."""
        types = KernelTypes.of_same(arithmetic)
        yield "", cls(1, types, listed=True)
        for phase in ("symbolic", "numeric", "values", "upper_bound"):
            yield phase, cls(1, types.of(phase), listed=False)


@dataclasses.dataclass
class _State:
    """Data of one product.

    Attributes
    ----------
    n_chunks : int
        Chunks of rows.
    chunk_row : pyopencl.array.Array
        The first row of each chunk, and the number of rows.
    n_words : pyopencl.array.Array
        For each row of B four times the number of its mask words, plus flags (see ``templates/spgemm/masks.mako``).
    masks : tuple of pyopencl.array.Array
        Masks of B's rows; empty once C has its structure.
    """

    n_chunks: int
    chunk_row: cl_array.Array
    n_words: cl_array.Array
    masks: tuple[cl_array.Array, ...]


def workers_on(device: Device) -> int:
    """Return the number of workers (work-items that claim chunks of rows) on a device: one more than compute units.

    A runtime may give two workers to a compute unit.
    """
    return device.compute_units + 1


def _words_of_bits(n_words: int, phase: str) -> int:
    """Return the number of 64-bit words in which a worker (a work-item) marks columns of C in a phase of the product."""
    return n_words * (2 if phase == "upper_bound" else 1) + -(-n_words // _BITS)


def worker_bytes(n_columns: int, types: KernelTypes) -> int:
    """Return the bytes of a worker's arrays (sums, bits, products of a short row) for a product with ``n_columns`` columns."""
    n_words = -(-n_columns // _BITS)
    value = types.value_bytes
    bits = 8 * _words_of_bits(n_words, types.phase) if types.phase != "values" else 0
    return value * (_BITS * n_words + _ROOM) + bits + 8 * _ROOM


@dataclass(frozen=True)
class DenseChunked:
    """An accumulator for rows of any kind, in workspace that grows with the columns of B.

    Attributes
    ----------
    workers : int, optional
        Most work-items that claim chunks; by default the number that `workers_on` returns.
    """

    workers: int | None = None

    def prepare(self, chain: Chain, product: Product, rows: Rows) -> _State:  # noqa: ARG002 - chunks are cut from all rows
        """Return rows cut into chunks of equal work, and bit masks of B's rows if these are worth their time and memory.

        Raises
        ------
        MemoryError
            The memory limit does not hold one worker's arrays; the message says how much is needed.
        """
        n_rows = product.shape[0]
        n_chunks = min(n_rows, _CHUNKS * self._workers(chain, product, product.types))
        offsets = chain.scratch(n_rows + 1, np.int64)
        enqueue_scan(chain, product.products, offsets, n_rows, kind="pointers")
        starts = [chain.scratch(n_chunks + 1, np.int64) for _ in range(3)]
        weight = product.n_products + n_rows * _ROW_WEIGHT
        step, never = -(-weight // n_chunks), weight + 1  # a chunk ends where a row does
        enqueue_partition(
            chain, offsets, n_rows, product.n_products, n_chunks, step, starts, row_weight=_ROW_WEIGHT, slack=never, work_group=1
        )
        chunk_row = starts[0]
        del offsets, starts
        n_rows_b, nnz_b = product.b_indptr.size - 1, product.b_indices.size
        n_words = chain.scratch(n_rows_b, np.uint32)
        # A product A @ B that reads each entry of B less than once on average takes less time than the making of B's bit masks.
        n_masks = nnz_b if product.n_products >= nnz_b else 0
        if 12 * n_masks > min(product.spare(), product.free - worker_bytes(product.shape[1], product.types)):
            n_masks = 0
        masks = chain.scratch(n_masks, np.uint32), chain.scratch(n_masks, np.uint64)
        if n_masks:
            compress, _ = chain.build(Masks(1, product.types.index))
            groups, strides = spread(chain.device, n_rows_b, 1)
            chain.launch(compress, groups, *strides, product.b_indptr, product.b_indices, *masks, n_words)
        else:
            chain.fill(n_words, _NO_MASKS, n_rows_b)
        return _State(n_chunks, chunk_row, n_words, masks)

    def chunks(self, state: Any) -> tuple[int, cl_array.Array]:
        """Return the number of chunks that the rows of C were cut into, and the first row of each chunk."""
        return state.n_chunks, state.chunk_row

    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: Any, counts: cl_array.Array) -> None:
        """Enqueue the dense kernel that counts the entries of each row of C."""
        self._enqueue(chain, product, rows, state, "symbolic", counts)

    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: Any, C: Result, phase: str) -> None:
        """Enqueue the dense kernel that makes columns and values of each row of C, or values alone."""
        counts = (C.counts,) if phase == "upper_bound" else ()
        self._enqueue(chain, product, rows, state, phase, product.a_data, product.b_data, C.indptr, C.indices, C.data, *counts)
        if phase == "numeric":
            state.masks = ()

    def _enqueue(self, chain: Chain, product: Product, rows: Rows, state: _State, phase: str, *results: Any) -> None:
        """Enqueue the dense kernel for one phase of all rows of C, whose chunks workers (work-items) claim."""
        types = product.types.of(phase)
        built, _ = chain.build(DenseChunkedKernel(1, types, rows.listed is not None))
        workers = min(self._workers(chain, product, types), state.n_chunks)
        n_words = -(-product.shape[1] // _BITS)
        claimed = chain.scratch(1, np.uint32)
        chain.fill(claimed, 0, 1)
        sizes = np.uint64(n_words), np.uint64(product.b_indices.size)
        chunks = np.uint32(state.n_chunks), state.chunk_row, claimed, *sizes, product.products
        scratch: tuple[cl_array.Array, ...] = (chain.scratch(workers * 2 * _ROOM, np.uint32),)
        if types.arithmetic is not None:
            for n in (_ROOM, n_words * _BITS):
                scratch += (chain.scratch(workers * n, types.arithmetic.result),)
        if phase != "values":
            scratch += chain.scratch(workers * _words_of_bits(n_words, phase), np.uint64), *state.masks
        chain.launch(built, workers, *rows.where, *product.structure, *results, *chunks, *scratch, state.n_words)

    def _workers(self, chain: Chain, product: Product, types: KernelTypes) -> int:
        """Return how many workers (work-items) have room in the workspace for dense accumulators; a MemoryError if none has."""
        size = worker_bytes(product.shape[1], types)
        fitting = (product.free - _CLAIMED_BYTES) // size
        if fitting < 1:
            raise MemoryError(
                f"memory_limit: a dense accumulator of {product.shape[1]:,} columns needs {size:,} bytes, "
                f"of the limit {product.free:,} are left"
            )
        return min(fitting, self.workers or workers_on(chain.device))

    def describe(self) -> str:
        """Return the parameters of the dense accumulator in a few words, for `SpgemmPlan.explain`."""
        return "chunks of rows" if self.workers is None else f"chunks of rows, {self.workers} workers"
