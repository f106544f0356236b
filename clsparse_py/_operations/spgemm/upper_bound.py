"""C in the room of its upper bound, and its compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Result
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.kernels import OfProduct
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain

__all__ = ["Compaction", "CompactionChunked", "enqueue_compaction", "new_loose", "upper_bound_fits"]


@kernel
@dataclass(frozen=True)
class Compaction(OfProduct):
    """Parameters of ``templates/spgemm/compact.mako``."""

    template = "spgemm/compact"

    #: Entries that a work-item moves at a time.
    ITEMS: ClassVar[int] = 4
    #: Entries that a work-item moves in all.
    ALL: ClassVar[int] = 8

    @property
    def tile(self) -> int:
        """Number of entries of C that a work-group of the compaction moves."""
        return self.work_group * self.ALL

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `OfProduct`'s, entries of a tile, and entries that a work-item moves at a time."""
        return {**super().arguments(), "tile": self.tile, "items": self.ITEMS}


@kernel
@dataclass(frozen=True)
class CompactionChunked(OfProduct):
    """Parameters of ``templates/spgemm/compact_chunked.mako``."""

    template = "spgemm/compact_chunked"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}


def upper_bound_fits(product: Product, work: Work, bins: Sequence[Bin]) -> bool:
    """Return whether the workspace holds C uncounted, with an entry for each product, beside what the accumulators need."""
    room, least = product.upper_bytes, max((bin_.min_bytes for bin_ in bins), default=0)
    spare = product.free if product.allow_upper_bound else product.spare(int(work.n_products / work.compression))
    return room + max(room, least) <= product.free and room + least <= spare


def new_loose(chain: Chain, product: Product, counts: cl_array.Array) -> Result:
    """Return new arrays for C with room for all products of each row; ``counts`` takes the number of entries of each row."""
    index, n = product.kind.c_index, product.n_products
    begins = chain.scratch(product.shape[0] + 1, index)
    enqueue_scan(chain, product.products, begins, product.shape[0], kind="pointers")
    return Result(begins, chain.scratch(n, index), chain.scratch(n, product.kind.result), counts)


def enqueue_compaction(
    chain: Chain, product: Product, loose: Result, C: Result, nnz: int, chunks: tuple[int, cl_array.Array] | None
) -> None:
    """Enqueue the compaction of C's columns and values, entry by entry, or chunk by chunk if rows were made in ``chunks``."""
    if not nnz:
        return
    rooms, types = (loose.indptr, loose.indices, loose.data), product.types
    if chunks is not None:
        built, _ = chain.build(CompactionChunked(1, types))
        n_chunks, chunk_row = chunks
        chain.launch(built, n_chunks, np.uint32(n_chunks), chunk_row, *rooms, C.indptr, C.indices, C.data)
    else:
        built, record = chain.build(Compaction(min(256, chain.device.max_work_group), types))
        sizes = np.uint32(product.shape[0]), np.uint32(nnz)
        chain.launch(built, -(-nnz // record.tile), *sizes, *rooms, C.indptr, C.indices, C.data)
