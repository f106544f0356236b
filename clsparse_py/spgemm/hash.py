"""Hashing accumulators: "hash", "reg-hash", which shares products out over the lanes, and "large-hash", a work-group to a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.spgemm.fenced import FencedKernel, FencedTeam
from clsparse_py.spgemm.kernels import Form

__all__ = ["Hash", "HashKernel", "hashes", "large_hashes"]

#: Most products of a row in the bins of Liu et al., Section 3.4, and in those above.
BINS = tuple(2**k for k in range(1, 10))
LARGE_BINS = (1024, 2048, 4096, 8192)
#: Entries of a row of C up to which sorting by counting smaller ones is quicker than a network.
_RANKED = 64


@dataclass(frozen=True)
class HashKernel(FencedKernel):
    """Parameters of ``templates/spgemm/hash.mako``.

    Attributes
    ----------
    products : int
        Most products of a row, a power of two.
    items : int
        Products that a lane fetches at a time; 0: the lanes walk one row of B after another.
    ordered : bool
        Whether values are added in the order of A's row; by atomics else.
    """

    template = "spgemm/hash"
    kind = "hash"

    products: int
    items: int
    ordered: bool

    @property
    @override
    def shape_name(self) -> str:
        how = f"_{self.items}_items" if self.items else ""
        return f"{super().shape_name}_{self.products}_products{how}{'' if self.ordered else '_atomic'}"

    @property
    def _values(self) -> int:
        """Bytes of a sum; 0 in the symbolic phase."""
        return self.form.arithmetic.result.itemsize if self.form.arithmetic else 0

    @property
    def _places(self) -> int:
        """Numbers of 16 bits that a row needs: where entries of A have their products, later the slots in use."""
        return self.products + bool(self.items) if self.items or self._values else 0

    @property
    def row_bytes(self) -> int:
        """Local memory for a row."""
        exchanged = 4 + (self._values + 2 + 4 * -(-self.lanes // 32) if self._values and self.ordered else 0)
        # A slot's sum is not smaller than a word for what follows it in memory.
        return self.products * (4 + self._values) + 2 * self._places + 4 + self.lanes * exchanged * bool(self.items)

    @override
    def arguments(self) -> Mapping[str, object]:
        return {
            **super().arguments(),
            "teams": self.work_group // self.lanes,
            "products": self.products,
            "bits": self.products.bit_length() - 1,
            "n_places": self._places,
            "items": self.items,
            "ordered": self.ordered,
            "ranked": self.products <= _RANKED,
            "free": self.fence != "barrier",
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        found = super().within(work_group, lane_width)
        if found is None or found.items or not found._values or not found.ordered or found.fence != "barrier":
            return found
        # Rows of B are walked in a loop of any length, in which there must be no barrier.
        return replace(found, lanes=1)


@dataclass(frozen=True)
class Hash(FencedTeam):
    """An accumulator with a hash table for each row, for rows with at most ``products`` products.

    With ``items``, of at most as many entries of A. Columns must not need 64 bits.
    """

    products: int
    lanes: int
    items: int = 0
    work_group: int = 128

    @override
    def record(self, device: Device, form: Form, listed: bool) -> HashKernel:
        ordered = self.adds_in_order(device, form)
        asked = HashKernel(self.work_group, form, listed, device.portability, self.lanes, self.products, self.items, ordered)
        found = asked.within(min(self.work_group, device.max_work_group), device.portability.lane_width)
        assert found is not None  # a work-group has at least one work-item
        # Two work-groups are to be resident, if that leaves local memory for a row.
        rows = max(device.local_memory // 2 // found.row_bytes, 1)
        return replace(found, work_group=min(found.work_group, rows * found.lanes))

    @override
    def describe(self) -> str:
        return f"{self.lanes} lanes" + (f", {self.items} products each at a time" if self.items else "")


def _fitting(device: Device, form: Form, each: Hash) -> bool:
    return each.record(device, form, listed=True).row_bytes <= device.local_memory


def hashes(device: Device, form: Form, *, registers: bool) -> tuple[Hash, ...]:
    """Return the accumulators of "hash", or with ``registers`` of "reg-hash": none where columns need 64 bits."""
    if form.wide:
        return ()
    found = []
    for products in BINS:
        # Rows of A and B are about as long as each other; eight products are what registers of a lane hold in the paper.
        lanes = min(max(products // 8, 1), 32) if registers else 1 << (products.bit_length() - 1) // 2
        items = (2 if device.is_cpu else 8) if registers else 0
        found.append(Hash(products, 1 if device.is_cpu else lanes, items))
    return tuple(each for each in found if _fitting(device, form, each))


def large_hashes(device: Device, form: Form) -> tuple[Hash, ...]:
    """Return the accumulators of "large-hash": as many bins as local memory holds, none where columns need 64 bits."""
    if form.wide:
        return ()
    lanes, items = (1, 2) if device.is_cpu else (128, 4)
    found = (Hash(products, lanes, items, work_group=lanes) for products in LARGE_BINS)
    return tuple(each for each in found if _fitting(device, form, each))
