"""Hash accumulators: "hash" (lanes walk rows of B), "reg-hash" (products shared among lanes), "large-hash"."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes, RowKernel
from clsparse_py._operations.spgemm.methods.dense import DenseWindows
from clsparse_py._operations.spgemm.methods.team import SynchronisedKernel, Team
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = ["Hash", "HashKernel", "LargeHash", "hash_", "hashes", "large_hash", "large_hashes", "reg_hash"]

_log = logging.getLogger(__name__)

#: Most products of a row of C in the smallest bin (class of rows) of "hash" and "reg-hash", as in Liu et al., Section 3.4.
_MIN_PRODUCTS = 2
#: Most intermediate products of a row of C in the smallest bin (class of rows) of the SpGEMM method "large-hash".
_MIN_LARGE_PRODUCTS = 1024
#: Least slots of a row's hash table of columns with sums, unless rows have fewer products or local memory less room.
_MIN_SLOTS = 128
#: Most entries of a row of A whose products lanes share out: local memory has the number of each entry's first product.
_MAX_LENGTH = 1024
#: Bytes of local memory left beside the hash table of a row that a smaller table left out; the table may take all the rest.
_STAGED_BYTES = 4 << 10
#: Most slots of a hash table whose columns are sorted by counting smaller ones, which is quicker than a sorting network.
_RANKED = 64


@kernel
@dataclass(frozen=True)
class HashKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/hash.mako``.

    Attributes
    ----------
    products : int
        Most products of a row, a power of two up to 2^15.
    slots : int
        Slots of a hash table, a power of two.
    items : int
        Products that a lane fetches at a time.
    ordered : bool
        Whether values are added in the order of A's row; else by atomics.
    """

    template = "spgemm/hash"

    products: int
    slots: int
    items: int
    ordered: bool

    @property
    def _places(self) -> int:
        """Number of 16-bit numbers to a row in local memory: first products of A's entries and, later, hash slots in use."""
        return max(min(self.products, _MAX_LENGTH) + 1, self.slots if self.types.value_bytes else 0)

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the hash kernel takes for each row of C."""
        exchanged = 4 + (self.types.value_bytes + 2 + 4 * -(-self.lanes // 32) if self.types.value_bytes and self.ordered else 0)
        return self.slots * (4 + self.types.value_bytes) + 2 * self._places + 4 + self.lanes * exchanged

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `RowKernel`'s, table sizes, if counting sorts columns, if teams need no barrier."""
        return {
            **super().arguments(),
            "bits": self.slots.bit_length() - 1,
            "n_places": self._places,
            "ranked": self.slots <= _RANKED,
            "free": self.team_sync != "barrier",
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "", "even_symbolic", "even_numeric", "even_values", "atomic" and "large"."""
        types = KernelTypes.of_same(arithmetic)
        thresholds = thresholds_of(device, types)
        yield "", hashes(device, types, thresholds, registers=True)[0].record(device, types, listed=True)
        for phase in ("symbolic", "numeric", "values"):
            yield f"even_{phase}", Hash(256, 32, 8).record(device, types.of(phase), listed=False)
        yield "atomic", Hash(64, 8, 2, deterministic=False).record(device, types, listed=True)
        yield "large", large_hashes(device, types, thresholds)[-1].record(device, types, listed=True)


@kernel
@dataclass(frozen=True)
class HashRowsKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/hash_rows.mako``.

    Attributes
    ----------
    products : int
        Most products of a row, a power of two up to 2^15.
    slots : int
        Slots of a hash table, a power of two.
    ahead : int
        Loads that a lane has in flight.
    registers : bool
        Whether entries are sorted in registers: a word of 32 bits holds a column and its slot.
    min_entries : int
        Fewest entries of a row of C that is made, or counted anew with a larger table.
    """

    template = "spgemm/hash_rows"

    products: int
    slots: int
    ahead: int
    registers: bool
    min_entries: int

    #: Most entries of A's row that are staged at a time.
    MAX_ENTRIES: ClassVar[int] = 64
    #: Most entries of C in a lane's registers (quirk 6).
    MAX_REGISTER_ITEMS: ClassVar[int] = 16
    #: Most slots probed for a column in the symbolic phase, if a bin with a larger table may count the row.
    TRIES: ClassVar[int] = 64

    @property
    def entries(self) -> int:
        """Number of entries of A's row that the hash kernel stages in local memory at a time."""
        return min(self.MAX_ENTRIES, self.products)

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the hash kernel takes for each row of C."""
        value = self.types.value_bytes
        staged = (self.entries + 1) * (self.types.index_bytes + 2) + self.entries * value
        return self.slots * (4 + value + 2 * bool(value)) + staged + 4 * self.lanes

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `RowKernel`, the table's sizes, and how its columns are sorted."""
        lane_slots = self.slots // self.lanes
        networks = [1 << bit for bit in range(1, min(lane_slots, self.MAX_REGISTER_ITEMS).bit_length())]
        is_sub_group = 1 < self.lanes == self.lane_width
        return {
            **super().arguments(),
            "bits": self.slots.bit_length() - 1,
            "entries": self.entries,
            "lane_width": self.lane_width,
            # A team (the lanes of one row) that is a whole sub-group may take another branch than other teams.
            "networks": tuple(networks if is_sub_group else networks[-1:]),
            "registers": self.registers
            and self.lanes <= self.lane_width
            and (is_sub_group or 2 <= lane_slots <= self.MAX_REGISTER_ITEMS),
            "many": lane_slots > self.MAX_REGISTER_ITEMS,
            "one": is_sub_group,
            "tries": self.TRIES,
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the hash kernel for a work-group and a lane width; None if there are none."""
        record = super().within(work_group, lane_width)
        # Rows of B are walked in a loop of any length, which must not hold a barrier: if lanes need barriers, a row has one lane.
        return replace(record, lanes=1) if record is not None and record.team_sync == "barrier" else record

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "symbolic", "numeric" and "values"."""
        types = KernelTypes.of_same(arithmetic)
        yield "", HashRows(4096, 32, contraction=4, columns=1 << 20).record(device, types, listed=True)
        for phase in ("symbolic", "numeric", "values"):
            yield phase, HashRows(64, 8).record(device, types.of(phase), listed=True)


@dataclass(frozen=True)
class HashRows(Team):
    """An accumulator with a hash table for each row, whose lanes walk one row of B after another.

    Attributes
    ----------
    products : int
        Most products of a row.
    lanes : int
        Work-items to a row.
    ahead : int
        Loads that a lane has in flight.
    work_group : int
        Most work-items in a work-group.
    contraction : int
        Products of a row to a slot of its hash table with sums; a power of two.
    columns : int, optional
        A bound above all columns of B, if not their number.
    min_entries : int
        Fewest entries of a row of C that is made, or counted anew, if a smaller table left rows out: the table is as large as
        local memory allows then.
    """

    products: int
    lanes: int
    ahead: int = 2
    work_group: int = 64
    contraction: int = 1
    columns: int | None = None
    min_entries: int = 0

    #: Most entries of a row of A; None for no limit.
    length: ClassVar[int | None] = None
    #: Most slots of a table of the symbolic phase, unless a smaller table left rows out: local memory holds several tables then.
    MAX_COUNTED: ClassVar[int] = 1024

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> HashRowsKernel:
        """Return the parameters of the hash kernel for the phase of the product in ``types``, as a device allows them."""
        if types.arithmetic:
            slots = max(self.products // self.contraction, min(self.products, _MIN_SLOTS))
            room = device.local_memory - _STAGED_BYTES if self.min_entries else device.local_memory // 2
            # Rows of C with more columns than the hash table has slots are made by windows of columns.
            while slots * (6 + types.value_bytes) > room:
                slots //= 2
        else:
            slots = self.products if self.min_entries else min(self.products, self.MAX_COUNTED)
        bits = (slots - 1).bit_length() + (32 if self.columns is None else (self.columns - 1).bit_length())
        shape = self.lanes, self.products, slots, self.ahead, bits < 32, self.min_entries
        return HashRowsKernel(self.work_group, types, listed, device.portability, *shape).resident_twice(device)

    @override
    def adapt(self, product: Product, entries: int | None = None) -> Self:
        """Return the accumulator with parameters that suit a product: the mean row of C gives the size of the hash table."""
        contraction = self.contraction
        if entries and not self.min_entries:
            # The hash table has at least 1.5 times the slots that the mean row of C needs.
            contraction = 1 << max(2 * product.n_products // (3 * entries), 1).bit_length() - 1
        return replace(self, columns=product.shape[1], contraction=contraction)

    @override
    def predict_record(self, product: Product, rows: Rows, phase: str) -> RowKernel | None:
        """Return the parameters of the hash kernel of the symbolic phase; None in other phases, as they depend on C's entries."""
        return super().predict_record(product, rows, phase) if phase == "symbolic" else None

    @override
    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:
        """Enqueue the hash kernel that counts the entries of rows of C, and one with a larger table for rows left out."""
        super().enqueue_symbolic(chain, product, rows, state, counts)
        slots = self._slots(chain, product, rows, "symbolic")
        if slots:
            replace(self, min_entries=slots + 1)._enqueue(chain, product, rows, "symbolic", counts)

    @override
    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:
        """Enqueue the hash kernel that makes rows of C; then larger tables and windows of columns for rows left out."""
        super().enqueue_numeric(chain, product, rows, state, C, phase)
        slots = self._slots(chain, product, rows, phase, C.data.size)
        if not slots:
            return
        larger = replace(self, min_entries=slots + 1)
        if larger._build_kernel(chain, product, rows, phase)[1].slots > slots:
            Team.enqueue_numeric(larger, chain, product, rows, state, C, phase)
            slots = larger._slots(chain, product, rows, phase)
        if slots:
            DenseWindows(parts=1, min_entries=slots + 1).enqueue_numeric(chain, product, rows, state, C, phase)

    def _slots(self, chain: Chain, product: Product, rows: Rows, phase: str, entries: int | None = None) -> int:
        """Return the slots of a row's hash table, if rows may be left to a larger table or to windows of columns; else 0."""
        slots: int = self._build_kernel(chain, product, rows, phase, entries)[1].slots
        # The symbolic phase leaves rows out even if B has no more columns than slots: nearly full hash tables are slow.
        return slots if slots < (self.products if phase == "symbolic" else min(self.products, product.shape[1])) else 0

    @override
    def describe(self) -> str:
        """Return the number of lanes and of loads that each has in flight, in a few words."""
        return f"{self.lanes} lanes, {self.ahead} loads each at a time"


@dataclass(frozen=True)
class Hash(Team):
    """An accumulator with a hash table for each row, for rows with at most ``products`` products and ``length`` entries of A.

    Columns must not need 64 bits. Values are added in the order of A's row, or by atomics if results need not be deterministic.
    """

    products: int
    lanes: int
    items: int
    work_group: int = 128
    deterministic: bool = field(default=True, kw_only=True)

    @property
    def length(self) -> int:
        """Most entries of a row of A whose products the hash kernel can share out among lanes."""
        return min(self.products, _MAX_LENGTH)

    def _slots(self, types: KernelTypes) -> int:  # noqa: ARG002 - alike in all phases
        """Return the number of slots of a row's hash table in a phase of the product."""
        return self.products

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> HashKernel:
        """Return the parameters of the hash kernel for the phase of the product in ``types``, as a device allows them."""
        shape = self.lanes, self.products, self._slots(types), self.items, self.deterministic or not _has_atomics(device, types)
        return HashKernel(self.work_group, types, listed, device.portability, *shape).resident_twice(device)

    @override
    def adapt(self, product: Product, entries: int | None = None) -> Self:
        """Return the accumulator that suits a product: it adds values by atomics if results may vary, else in A's order."""
        return replace(self, deterministic=product.deterministic)

    @override
    def _enqueue(self, chain: Chain, product: Product, rows: Rows, phase: str, *results: Any, entries: int | None = None) -> None:
        """Enqueue the hash kernel of a product's phase; log if results may vary, but the device has no atomics for values."""
        types = product.types.of(phase)
        if types.arithmetic and not product.deterministic and not _has_atomics(chain.device, types):
            _log.info("%s has no atomics for values of this dtype: they are added in order", chain.device.name)
        super()._enqueue(chain, product, rows, phase, *results, entries=entries)

    @override
    def describe(self) -> str:
        """Return the number of lanes and of products that each takes at a time, in a few words."""
        return f"{self.lanes} lanes" + (f", {self.items} products each at a time" if self.items else "")


@dataclass(frozen=True)
class LargeHash(Hash):
    """An accumulator whose hash tables hold ``slots`` columns with their sums, for rows of more products than slots.

    Rows of C with more entries are made by dense windows, and so is the symbolic phase if a table of columns alone does not
    hold all ``products``.

    Attributes
    ----------
    slots : int
        Slots of a hash table with sums.
    counts : bool
        Whether hash tables serve in the symbolic phase, too.
    """

    slots: int = 0
    counts: bool = True

    @override
    def _slots(self, types: KernelTypes) -> int:
        """Return the number of slots of a row's hash table: fewer with sums than with columns alone."""
        return min(self.slots, self.products) if types.arithmetic else self.products

    @override
    def predict_record(self, product: Product, rows: Rows, phase: str) -> RowKernel | None:
        """Return the parameters of the kernel of a phase: of windows of columns where hash tables do not count."""
        if phase == "symbolic" and not self.counts:
            return DenseWindows(parts=1).predict_record(product, rows, phase)
        return super().predict_record(product, rows, phase)

    @override
    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:
        """Enqueue the kernel that counts entries of rows of C: by hash tables or, if too large, by windows of columns."""
        if self.counts:
            super().enqueue_symbolic(chain, product, rows, state, counts)
        else:
            DenseWindows(parts=1).enqueue_symbolic(chain, product, rows, state, counts)

    @override
    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:
        """Enqueue the hash kernel that makes rows of C, and windows of columns for rows of more entries than slots."""
        super().enqueue_numeric(chain, product, rows, state, C, phase)
        if self.slots < min(self.products, product.shape[1]):
            # Windows of columns make a row in one part: a hash table does not count the entries of the parts of a row.
            DenseWindows(parts=1, min_entries=self.slots + 1).enqueue_numeric(chain, product, rows, state, C, phase)

    @override
    def describe(self) -> str:
        """Return the lanes, the table's slots, and whether rows with more entries than slots take windows, in a few words."""
        windows = f"; windows where a row has over {self.slots} entries" if self.slots < self.products else ""
        return f"{super().describe()}, {min(self.slots, self.products)} slots{windows}"


def _has_atomics(device: Device, types: KernelTypes) -> bool:
    """Return whether a device has atomic additions of a product's values; False in the symbolic phase, without values."""
    size = types.value_bytes
    return size == 4 or (size == 8 and device.int64_atomics)


def hashes(device: Device, types: KernelTypes, thresholds: Thresholds, *, registers: bool) -> tuple[Hash | HashRows, ...]:
    """Return the accumulators of the method "hash", or with ``registers`` of "reg-hash": none if columns need 64 bits."""
    if types.wide:
        return ()
    accumulators: list[Hash | HashRows] = []
    items, max_products = thresholds.hash_items, thresholds.max_hash_products if registers else thresholds.max_walked_products
    for products in _powers_of_two(_MIN_PRODUCTS, int(max_products)):
        # Lanes of "hash" are the square root of a row's products, as rows of A and of B are taken to be equally long.
        lanes = min(max(products // items, 1) if registers else 1 << (products.bit_length() - 1) // 2, 32, device.resident)
        accumulators.append(Hash(products, lanes, items) if registers else HashRows(products, lanes))
    return tuple(accumulator for accumulator in accumulators if _fits(accumulator, device, types))


def _fits(accumulator: Hash | HashRows, device: Device, types: KernelTypes) -> bool:
    """Return whether local memory holds the hash tables of a row: with sums, and the table that counts rows left out."""
    records: list[HashKernel | HashRowsKernel] = [accumulator.record(device, types, True)]
    if isinstance(accumulator, HashRows):
        records.append(replace(accumulator, min_entries=1).record(device, types.of("symbolic"), True))
    return all(record.row_bytes <= device.local_memory for record in records)


def _powers_of_two(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from ``first`` to ``last``, both rounded down to powers of two."""
    return tuple(1 << bit for bit in range(first.bit_length() - 1, last.bit_length()))


def large_hashes(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[LargeHash, ...]:
    """Return the accumulators of the method "large-hash": none if columns need 64 bits."""
    if types.wide:
        return ()
    lanes, items = min(thresholds.large_hash_lanes, device.resident), thresholds.large_hash_items

    def fits(products: int, slots: int, types: KernelTypes, budget: int) -> bool:
        """Return whether the hash table of a row fits in ``budget`` bytes of local memory."""
        return LargeHash(products, lanes, items, lanes, slots=slots).record(device, types, True).row_bytes <= budget

    # Hash tables with sums are small: rows of C mostly have far fewer entries than products, and tables share local memory.
    sizes = reversed(_powers_of_two(_MIN_SLOTS, thresholds.max_slots))
    slots = next(slots for slots in sizes if fits(slots, slots, types, device.local_memory * 2 // 3))
    symbolic = types.of("symbolic")
    return tuple(
        LargeHash(products, lanes, items, lanes, slots=slots, counts=fits(products, slots, symbolic, device.local_memory))
        for products in _powers_of_two(_MIN_LARGE_PRODUCTS, thresholds.max_large_products)
    )


def _bins(method: str, accumulators: Iterable[Hash | HashRows]) -> tuple[Bin, ...]:
    """Return a bin for each hash accumulator: the class of rows whose products and length of A's row the accumulator holds."""
    return tuple(Bin(method, accumulator, accumulator.products, accumulator.length) for accumulator in accumulators)


def hash_(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "hash", classes of rows by products; the lanes of a row walk row after row of B."""
    return _bins("hash", hashes(*on, registers=False))


def reg_hash(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "reg-hash", classes of rows by their products, which the lanes of a row share out."""
    return _bins("reg-hash", hashes(*on, registers=True))


def large_hash(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "large-hash", classes of rows of at most 1,024 products, 2,048 and so on."""
    return _bins("large-hash", large_hashes(*on))
