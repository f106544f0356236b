"""A list of the products of C = A @ B, in the order of C's entries: the positions of each product's factors in A and B.

A plan keeps the list, so that new values take neither search nor sort. The list is made once, by a sort of all products. It pays
after some calls, if rows are made by accumulators that look for the place of each product.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Accumulator, Product
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfProduct
from clsparse_py._operations.spgemm.methods.dense import DenseSpan
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.row_partition import Step
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain

__all__ = ["ListKernel", "ListedProducts", "ProductList", "first_list_call", "make_product_list"]

#: Most bytes of memory for each intermediate product while a plan's list of products is made.
_MADE_BYTES = 28
#: Most bytes for each intermediate product in the list of products that a plan keeps.
_KEPT_BYTES = 10


@kernel
@dataclass(frozen=True)
class ListKernel(OfProduct):
    """Parameters of ``templates/spgemm/product_list.mako``.

    Attributes
    ----------
    phase : str
        Name of the phase, as the template has it.
    items : int
        Products of a work-item in the phase "places".
    place : str
        The OpenCL type of a place in A within a tile, in the phase "factors".
    """

    template = "spgemm/product_list"

    phase: str
    items: int = 0
    place: str = ""

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "near", "lengths", "places" and "tiles"."""
        group, types = min(128, device.max_work_group), KernelTypes.of_same(arithmetic).of("values")
        yield "", cls(group, types, "factors", place="uint")
        yield "near", cls(group, types, "factors", place="ushort")
        for phase, items in (("lengths", 0), ("places", 8), ("tiles", 0)):
            yield phase, cls(group, types, phase, items)


@kernel
@dataclass(frozen=True)
class ListedProducts(OfProduct):
    """Parameters of ``templates/spgemm/listed_products.mako``.

    Attributes
    ----------
    items : int
        Products of a work-item in a tile.
    place : str
        As in `ListKernel`.
    """

    template = "spgemm/listed_products"

    items: int
    place: str

    #: Number of equal parts of a tile's room; the last one is for products of an entry of C that begins in the parts before.
    PARTS: ClassVar[int] = 8

    @property
    def window(self) -> int:
        """Number of products in a tile's window (range): entries of C whose first product lies there belong to the tile."""
        room = self.work_group * self.items
        return room - room // self.PARTS

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory of a work-group of the kernel that makes C's values by a list of products."""
        return self.work_group * (self.items + 1) * self.types.value_bytes

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "" and "near"."""
        group, types = min(128, device.max_work_group), KernelTypes.of_same(arithmetic).of("values")
        yield "", cls(group, types, 8, "uint")
        yield "near", cls(group, types, 4, "ushort")


@dataclass(frozen=True, eq=False)
class ProductList:
    """Positions of the two factors of each intermediate product.

    Attributes
    ----------
    kernel : ListedProducts
    n_tiles : int
    arrays : tuple of pyopencl.array.Array
        The kernel's first arguments.
    """

    kernel: ListedProducts
    n_tiles: int
    arrays: tuple[cl_array.Array, ...]

    def enqueue(self, chain: Chain, a_data: cl_array.Array, b_data: cl_array.Array, c_data: cl_array.Array) -> None:
        """Enqueue the kernel that makes C's values from values of A and B by the list of products."""
        built, _ = chain.build(self.kernel)
        chain.launch(built, self.n_tiles, *self.arrays, a_data, b_data, c_data)


def first_list_call(product: Product, steps: Sequence[Step], nnz: int) -> int | None:
    """Return the number of the plan's call that begins to make the list of intermediate products; None if no call does.

    There is no list if most rows are merged by a work-item each, or have a sum for each column that they span, as such kernels
    read B's rows side by side; nor if memory is missing for it.
    """
    n = product.n_products
    if not 0 < n <= INT32_MAX or max(nnz, product.a_indices.size, product.b_indices.size) > INT32_MAX:
        return None
    limits, free = product.kind.thresholds, product.free
    if _MADE_BYTES * n > limits.list_made_share * free or _KEPT_BYTES * n > limits.list_kept_share * free:
        return None
    rows_by_accumulator = [(step.bin.accumulator, step.rows.n - step.rows.n_empty) for step in steps]
    half = sum(rows for _, rows in rows_by_accumulator) / 2
    if sum(rows for accumulator, rows in rows_by_accumulator if _reads_side_by_side(accumulator)) >= half:
        return None
    merged = sum(rows for accumulator, rows in rows_by_accumulator if isinstance(accumulator, Merge))
    limits = product.kind.thresholds
    return limits.list_after_merged if merged > half else limits.list_after


def _reads_side_by_side(accumulator: Accumulator | None) -> bool:
    """Return whether an accumulator's lanes read rows of B side by side, so that a list of products is no faster."""
    return isinstance(accumulator, DenseSpan) or (isinstance(accumulator, Merge) and accumulator.lanes == 1)


def make_product_list(
    queue: cl.CommandQueue, product: Product, indptr: cl_array.Array, indices: cl_array.Array
) -> Generator[cl.Event, None, ProductList]:
    """Make the list of where the factors of A @ B's products are, in the order of C's entries; a generator that `Upgrade` runs.

    Raises
    ------
    MemoryError, BuildError
    """
    chain = Chain(queue, *product.structure, indptr, indices)
    types, n, n_rows = product.types.of("values"), product.n_products, np.uint64(product.shape[0])
    nnz_of_a, nnz, limits = product.a_indices.size, indices.size, product.kind.thresholds
    entry_products, numbers, first = _sort_products(chain, product, indptr, indices)
    items = limits.list_few_items if n < limits.list_few_products * nnz else limits.list_items
    kernel = _choose_values_kernel(chain, product, items)
    n_tiles = -(-n // kernel.window)
    tiles = tuple(chain.scratch(n_tiles + 1, np.uint32) for _ in range(3))
    widest = chain.counters(1)
    numbers_of = np.uint32(n_tiles), np.uint32(kernel.window), np.uint32(nnz), n_rows
    _launch(chain, product, "tiles", n_tiles + 1, *numbers_of, first, product.a_indptr, indptr, *tiles, widest)
    read_widest = chain.read_later(widest, 1)
    queue.flush()
    yield chain.events[-1]
    if int(read_widest()[0]) > np.iinfo(np.uint16).max:
        kernel = replace(kernel, place="uint")
    a_places, b_places = chain.scratch(n, np.uint16 if kernel.place == "ushort" else np.uint32), chain.scratch(n, np.uint32)
    begins = chain.scratch(nnz, np.uint16)
    of_products = entry_products, product.a_indices, product.b_indptr, numbers, first
    built, _ = chain.build(ListKernel(kernel.work_group, types, "factors", place=kernel.place))
    chain.launch(built, n_tiles, np.uint32(nnz_of_a), *of_products, *tiles, a_places, b_places, begins)
    chain.finish(a_places, b_places, begins)
    return ProductList(kernel, n_tiles, (*tiles, a_places, b_places, begins))


def _sort_products(
    chain: Chain, product: Product, indptr: cl_array.Array, indices: cl_array.Array
) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
    """Sort product numbers by entry of C; return each A entry's first product, sorted numbers, each C entry's first place.

    The number of a product is its place in the order of A's entries.
    """
    n, nnz_of_a, nnz = product.n_products, product.a_indices.size, indices.size
    entry_products = chain.scratch(nnz_of_a + 1, np.int32)
    _launch(chain, product, "lengths", nnz_of_a, np.uint32(nnz_of_a), product.a_indices, product.b_indptr, entry_products)
    enqueue_scan(chain, entry_products, entry_products, nnz_of_a, kind="pointers")
    places = chain.scratch(n, np.int32)
    arguments = np.uint32(n), np.uint32(nnz_of_a), np.uint64(product.shape[0]), entry_products
    items = product.kind.thresholds.list_items
    _launch(chain, product, "places", n, *arguments, *product.structure, indptr, indices, places, items=items)
    numbers, first = chain.scratch(n, np.int32), chain.scratch(nnz + 1, np.int32)
    enqueue_sort_by_key(chain, places, n, nnz, n_items=n, sorted_items=numbers, pointers=first)
    return entry_products, numbers, first


def _launch(chain: Chain, product: Product, phase: str, n_items: int, *arguments: Any, items: int = 0) -> None:
    """Launch the kernel of one phase of making a list of products, for ``n_items`` items, ``items`` to a work-item."""
    group = min(product.kind.thresholds.list_group, chain.device.max_work_group)
    built, record = chain.build(ListKernel(group, product.types.of("values"), phase, items))
    chain.launch(built, -(-n_items // (record.work_group * max(items, 1))), *arguments)


def _choose_values_kernel(chain: Chain, product: Product, items: int) -> ListedProducts:
    """Return the parameters, as built, of the kernel that makes C's values by a list of products: they set the size of tiles."""
    group, types = min(product.kind.thresholds.list_group, chain.device.max_work_group), product.types.of("values")
    candidates = (ListedProducts(group, types, items >> halvings, "ushort") for halvings in range(items.bit_length()))
    return chain.build(chain.device.fitting(candidates, lambda record: record.local_bytes))[1]
