"""Expansion, sort and contraction in global memory, for rows of any length: "esc" and "long-rows".

"esc", the reference of Dalton et al.: the products of a slice of rows are expanded to keys (row and column as one number), sorted
by the bits in use, and contracted: a run of equal keys is an entry of C. The order of products is kept for new values, if memory
allows: new values are expanded, gathered in this order and summed.

"long-rows", the SpGEMM of Ji et al., "Segmented merge", Section 4.3: a segmented merge takes the place of the sort. An entry of A
names a sorted row of B, a sub-segment of its row of C, so that the products of all rows of a slice are merged together.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import Any, cast

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import enqueue_loop
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.methods.esc_kernels import (
    ESC_MARK,
    ESC_MARK_NUMBERED,
    EscCarry,
    EscContract,
    EscCount,
    EscEntries,
    EscExpand,
    EscRows,
)
from clsparse_py._operations.spgemm.methods.slices import Slice, cut_into_slices
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_radix_sort, scratch_bytes
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segmented_merge import enqueue_segmented_merge
from clsparse_py._run.launch import Chain

__all__ = ["Esc", "esc", "long_rows"]

#: Bytes of the number of an intermediate product, its place in the order of the expansion.
_NUMBER_BYTES = 4


@dataclasses.dataclass
class _Sorted:
    """A slice's products in order.

    Attributes
    ----------
    entry_at, entry_products : pyopencl.array.Array
        The place of each entry of A, and the number of its first product.
    keys : pyopencl.array.Array or None
        The sorted keys; None once C's columns are made.
    numbers : pyopencl.array.Array
        The numbers of the products in sorted order; bit 31 is set if an entry of C begins.
    runs_before, tile_first : pyopencl.array.Array
        The first entry of C of each row, and of each tile of the contraction.
    """

    entry_at: cl_array.Array
    entry_products: cl_array.Array
    keys: cl_array.Array | None
    numbers: cl_array.Array
    runs_before: cl_array.Array
    tile_first: cl_array.Array

    @property
    def kept_bytes(self) -> int:
        """Bytes of the arrays of a slice's (adjacent rows') sorted products, kept for products A @ B with new values."""
        kept_arrays = self.entry_at, self.entry_products, self.numbers, self.runs_before, self.tile_first
        return sum(array.nbytes for array in kept_arrays)


@dataclasses.dataclass
class _State:
    """The rows' entries and products, and the sorted products that are kept of slices, by the slice's number.

    Attributes
    ----------
    max_needed : int
        Most bytes that a slice needs.
    """

    entries_before: cl_array.Array
    products_before: cl_array.Array
    slices: tuple[Slice, ...]
    column_bits: int
    max_needed: int = 0
    kept: dict[int, _Sorted] = field(default_factory=dict)

    def key_dtype(self, part: Slice) -> np.dtype[Any]:
        """Return the dtype of the keys, row and column as one number, by which a slice's products are sorted."""
        return np.dtype(np.uint32 if self.column_bits + part.row_bits <= 32 else np.uint64)


@dataclass(frozen=True)
class Esc:
    """An accumulator that expands, sorts and contracts in global memory, for any rows.

    Attributes
    ----------
    work_group : int
        Most work-items in a work-group of the accumulator's own kernels.
    bounded : bool
        Whether slices, and arrays kept of them, take no more than `Product.spare` allows, but for single rows that need it.
        Else the fewer slices, the better.
    expected_fill : float
        The share of the bound of C's entries that C is taken to have.
    merges : bool
        Whether a segmented merge takes the place of the sort. A merge waits for the device once; new values of a product of
        several slices, which wait for nothing, are sorted all the same.
    """

    work_group: int = 128
    bounded: bool = False
    expected_fill: float = 0.0
    merges: bool = False

    def describe(self) -> str:
        """Return the accumulator's steps (expansion, sort or merge, contraction) in a few words, for `SpgemmPlan.explain`."""
        return f"expansion, {'segmented merge' if self.merges else 'radix sort'} and contraction in global memory"

    def _group(self, chain: Chain) -> int:
        """Return the number of work-items in a work-group of ESC's kernels (expand, sort, contract), as the device allows."""
        return min(self.work_group, chain.device.max_work_group)

    def _contraction(self, chain: Chain, product: Product, rows: Rows, key: np.dtype[Any], phase: str) -> EscContract:
        """Return the parameters of the kernel that contracts a slice's sorted products to entries of C in a phase of SpGEMM."""
        # The phase "values" of the contraction reads no keys (row and column as one number): any dtype of keys does.
        name = "uint32" if phase == "values" else name_of(key)
        return EscContract.legal(chain.device, product.types.of(phase), rows.listed is not None, name, self._group(chain))

    def _needs(self, chain: Chain, product: Product, part: Slice, key_bytes: int, column_bits: int) -> int:
        """Return the bytes of workspace that a slice of rows takes while its products are expanded, sorted and contracted."""
        n, index_bytes, value_bytes = part.n, product.types.index_bytes, product.types.value_bytes
        pair = key_bytes + _NUMBER_BYTES
        tiles = n // self._contraction(chain, product, Rows(1), np.dtype(np.uint64), "values").tile + 1
        structure = part.n_entries * (8 + index_bytes) + 8 * part.n_rows + 4 * tiles + part.n_entries // 64 + 8192
        sorting = 2 * n * pair + self._sort_bytes(chain, part, key_bytes, column_bits)
        marking = n * (pair + 5) + n // 64
        contracting = n * (pair + value_bytes) + tiles * value_bytes
        return structure + max(sorting, marking, contracting)

    def _sort_bytes(self, chain: Chain, part: Slice, key_bytes: int, column_bits: int) -> int:
        """Return the bytes that the sort or merge of a slice of rows' products takes, beside its input and output arrays."""
        sorting = scratch_bytes(chain.device, part.n, column_bits + part.row_bits, key_bytes, _NUMBER_BYTES)
        if not self.merges:
            return sorting
        # Memory of the segmented merge: the output of its rounds (passes); segments, lists of segments, tiles and counts.
        merging = part.n * (key_bytes + _NUMBER_BYTES) + 24 * part.n_rows + part.n // 16 + 512 * chain.device.compute_units + 4096
        return max(sorting, merging)

    def _budget(self, product: Product, rows: Rows, entries: int) -> int:
        """Return the bytes of workspace for slices (adjacent rows) of C and their kept arrays, if C has ``entries`` entries."""
        if not self.bounded:
            return product.free
        return product.spare(entries) - 16 * (rows.n + 1)

    def prepare(self, chain: Chain, product: Product, rows: Rows) -> object:
        """Return rows cut into slices (adjacent rows) that fit in the workspace; waits unless one slice has all of C's rows.

        Raises
        ------
        MemoryError
            A row does not fit, or slices are too small to be worth their launches; the message names ``memory_limit``.
        """
        group = self._group(chain)
        offsets = chain.scratch(rows.n + 1, np.uint64), chain.scratch(rows.n + 1, np.uint64)
        built, record = chain.build(EscRows(group, product.types.index, rows.listed is not None))
        chain.launch(built, -(-rows.n // record.work_group), *rows.where, product.a_indptr, product.products, *offsets)
        for array in offsets:
            enqueue_scan(chain, array, array, rows.n, kind="pointers")
        column_bits = max(1, (product.shape[1] - 1).bit_length())
        state = _State(*offsets, (), column_bits)
        limit, aim = product.free, self._budget(product, rows, int(self.expected_fill * product.bound))

        def needs(part: Slice) -> int:
            """Return the bytes of workspace that a slice, adjacent rows of C, takes at a time."""
            return self._needs(chain, product, part, state.key_dtype(part).itemsize, column_bits)

        totals = [product.a_indices.size, product.n_products]
        if rows.listed is not None:
            totals = [int(chain.read(array, 1, rows.n)[0]) for array in offsets]
        all_rows = Slice(0, rows.n, *totals)
        if all_rows.fits(column_bits) and needs(all_rows) <= aim:
            state.slices = (all_rows,)
        else:
            entries, products = (chain.read(array, rows.n + 1) for array in offsets)
            state.slices = tuple(cut_into_slices(entries, products, column_bits, needs, limit, aim))
            n, limits = len(state.slices), product.kind.thresholds
            if n > limits.few_slices and n * limits.min_slice_products > all_rows.n:
                raise MemoryError(f"memory_limit: expansion in {limit:,} bytes takes {n:,} slices, of too few products each")
        state.max_needed = max(map(needs, state.slices))
        return state

    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:
        """Enqueue kernels that count the entries of each row of C. The sorted products are kept if there is but one slice."""
        slices_state = cast("_State", state)
        is_single = len(slices_state.slices) == 1
        for number, part in enumerate(slices_state.slices):
            sorted_slice = self._sort_slice(
                chain, product, rows, slices_state, part, may_wait=True, numbered=is_single, counts=counts
            )
            if is_single:
                slices_state.kept[number] = sorted_slice
            # The memory of a slice's sorted products is freed before the products of the next slice are expanded.
            del sorted_slice

    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:
        """Enqueue kernels that make columns and values of each row of C, or values alone."""
        slices_state = cast("_State", state)
        room = 0
        if phase == "numeric" and not slices_state.kept:
            room = self._budget(product, rows, C.indices.size) - slices_state.max_needed
        for number, part in enumerate(slices_state.slices):
            sorted_slice = slices_state.kept.get(number) or self._sort_slice(
                chain, product, rows, slices_state, part, may_wait=phase != "values", numbered=True
            )
            self._enqueue_contraction(chain, product, rows, slices_state, part, sorted_slice, C, phase)
            # C has the columns of the slice's rows now, so that the sorted keys (row and column as one number) are freed.
            sorted_slice.keys = None
            if sorted_slice.kept_bytes <= room:
                room -= sorted_slice.kept_bytes
                slices_state.kept[number] = sorted_slice
            # The memory of a slice's sorted products, unless they are kept, is freed before those of the next slice are expanded.
            del sorted_slice

    def _sort_slice(
        self,
        chain: Chain,
        product: Product,
        rows: Rows,
        state: _State,
        part: Slice,
        *,
        may_wait: bool,
        numbered: bool,
        counts: Any = None,
    ) -> _Sorted:
        """Return a slice's products sorted by entry of C, each entry's first one marked; waits only to merge, if ``may_wait``."""
        group, listed, types = self._group(chain), rows.listed is not None, product.types.of("symbolic")
        entry_at = chain.scratch(part.n_entries, product.a_indices.dtype)
        entry_slot = chain.scratch(part.n_entries, np.uint32)
        entry_products = chain.scratch(part.n_entries + 1, np.int32)
        row_entries = (chain.scratch(part.n_rows + 1, np.int32),) if self.merges and may_wait else ()
        built, entries = chain.build(EscEntries(group, types.index, listed, bool(row_entries)))
        chain.launch(
            built, -(-part.n_entries // entries.work_group), *part.where(rows), np.uint64(part.n_entries),
            state.entries_before, product.a_indptr, product.a_indices, product.b_indptr, entry_at, entry_slot, entry_products,
            *row_entries,
        )  # fmt: skip
        enqueue_scan(chain, entry_products, entry_products, part.n_entries, kind="pointers")

        dtypes = (state.key_dtype(part), np.dtype(np.uint32))[: 1 + numbered]
        source = tuple(chain.scratch(part.n, dtype) for dtype in dtypes)
        built, expand = chain.build(EscExpand(group, types, name_of(dtypes[0]), "numbered" if numbered else "keys"))
        chain.launch(
            built, -(-part.n // (expand.work_group * expand.items)), np.uint32(part.n), np.uint32(part.n_entries), entry_products,
            entry_at, product.a_indices, product.b_indptr, np.uint32(state.column_bits), entry_slot, product.b_indices, *source,
        )  # fmt: skip
        target = tuple(chain.scratch(part.n, dtype) for dtype in dtypes)
        if row_entries:
            enqueue_segmented_merge(chain, (*row_entries, entry_products), source, target, part.n)
        else:
            enqueue_radix_sort(
                chain, source[0], target[0], source[1] if numbered else None, target[1] if numbered else None,
                part.n, (0, state.column_bits + part.row_bits), overwrites=True,
            )  # fmt: skip
        del source, entry_slot, row_entries

        runs_before, tile_first = self._find_runs(chain, product, rows, state, part, target, counts)
        return _Sorted(entry_at, entry_products, target[0], target[-1], runs_before, tile_first)

    def _find_runs(
        self,
        chain: Chain,
        product: Product,
        rows: Rows,
        state: _State,
        part: Slice,
        target: tuple[cl_array.Array, ...],
        counts: Any,
    ) -> tuple[cl_array.Array, cl_array.Array]:
        """Enqueue the search of runs of equal keys (entries of C); return the first entry of C of each row and each tile."""
        keys = target[0].dtype
        marks, places = chain.scratch(part.n, np.uint8), chain.scratch(part.n + 1, np.int32)
        enqueue_loop(chain, ESC_MARK_NUMBERED if len(target) > 1 else ESC_MARK, part.n, (name_of(keys),), *target, marks)
        enqueue_scan(chain, marks, places, part.n, kind="pointers")
        tile = self._contraction(chain, product, rows, keys, "values").tile
        n_tiles = -(-part.n // tile)
        runs_before, tile_first = chain.scratch(part.n_rows + 1, np.uint32), chain.scratch(n_tiles + 1, np.uint32)
        built, count = chain.build(EscCount(self._group(chain), product.types.index, rows.listed is not None, counts is not None))
        chain.launch(
            built, -(-(max(part.n_rows, n_tiles) + 1) // count.work_group), *part.where(rows), np.uint32(part.n),
            np.uint32(n_tiles), np.uint32(tile), state.products_before, places, runs_before, tile_first,
            *(() if counts is None else (counts,)),
        )  # fmt: skip
        return runs_before, tile_first

    def _enqueue_contraction(
        self, chain: Chain, product: Product, rows: Rows, state: _State, part: Slice, sorted_slice: _Sorted, C: Result, phase: str
    ) -> None:
        """Enqueue kernels that make the values of a slice's rows of C and, but in the phase "values", the columns."""
        group, n, where = self._group(chain), np.uint32(part.n), part.where(rows)
        values = chain.scratch(part.n, product.kind.result)
        built, expand = chain.build(EscExpand(group, product.types.of("values"), "uint32", "values"))
        chain.launch(
            built, -(-part.n // (expand.work_group * expand.items)), n, np.uint32(part.n_entries), sorted_slice.entry_products,
            sorted_slice.entry_at, product.a_indices, product.b_indptr, product.a_data, product.b_data, values,
        )  # fmt: skip
        built, contract = chain.build(self._contraction(chain, product, rows, state.key_dtype(part), phase))
        n_tiles = -(-part.n // contract.tile)
        partial = chain.scratch(n_tiles, values.dtype)
        columns = () if phase == "values" else (np.uint32(state.column_bits), sorted_slice.keys, C.indices)
        run_arrays = sorted_slice.runs_before, sorted_slice.tile_first, sorted_slice.numbers
        chain.launch(built, n_tiles, *where, n, *run_arrays, values, C.indptr, *columns, C.data, partial)
        if n_tiles > 1:
            built, carry = chain.build(EscCarry(group, product.types.of("values"), rows.listed is not None, contract.tile))
            chain.launch(
                built, -(-n_tiles // carry.work_group), *where, np.uint32(n_tiles), *run_arrays, C.indptr, C.data, partial
            )


def esc(_on: Setting) -> tuple[Bin, ...]:
    """Return the only bin (class of rows) of "esc", a method for rows of any size: expand, sort and contract their products."""
    return (Bin("esc", Esc()),)


def long_rows(_on: Setting) -> tuple[Bin, ...]:
    """Return the only bin (class of rows) of "long-rows", a method for rows of any size: a segmented merge of rows of B."""
    return (Bin("long-rows", Esc(bounded=True, merges=True)),)
