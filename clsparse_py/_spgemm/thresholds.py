"""The numbers by which SpGEMM decides: they live in profiles, with what was measured for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields

from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py.arithmetic import name_of
from clsparse_py.device import Device
from clsparse_py.records import dataclass
from clsparse_py.tuning import profiles

__all__ = ["Thresholds", "made", "supposed", "supposing", "thresholds_of"]

_supposed: ContextVar[Thresholds | None] = ContextVar("thresholds", default=None)
#: Return the thresholds that are tried, or None. Not a function of ours, as each product asks several times.
supposed = _supposed.get


# Told apart by identity: they are part of keys that each product asks for.
@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds of a device and a dtype. A row is one of A or of C, a product an intermediate one, if nothing else is said.

    Raises
    ------
    ValueError
        A number is out of its bounds; the message names it.
    """

    #: Products of a product so small that the fewest launches are best.
    max_small_products: float
    #: Work-items to a row of a small product.
    max_small_lanes: float
    #: Heads that a work-item merges of a small product.
    max_small_items: float
    #: Entries of the longest row if one work-item merges each row, in their order.
    max_item_length: float
    #: Products of a row that one work-item merges.
    max_item_products: float
    #: Heads that one work-item compares for the longest row, unless rows of C compress.
    max_item_steps: float
    #: Entries of the longest row if one work-item merges each row, compares no more heads than that, and no team merges them.
    max_light_length: float
    #: Entries of the longest row that a team merges speculatively.
    max_speculative_length: float
    #: The longest row times all products, above which the analysis is a small part of the whole.
    max_speculative_work: float
    #: The longest row by the mean one, up to which rows count as uniform.
    max_longest_by_mean: float
    #: Share of entries with the next column before them, from which on rows of C compress.
    min_adjacent_share: float
    #: Share of such entries from which on neighbouring rows share rows of B that are staged in local memory.
    min_staged_share: float
    #: The longest row by the mean one, above which rows are listed by bins while the host waits for the analysis.
    min_listed_by_mean: float
    #: Products to an entry of C from which on rows stay merged that are speculated to be alike.
    min_merged_compression: float
    #: Rows of a bin that go to the next bin of their method, as a launch takes longer than they do.
    max_joined_rows: float
    #: Places for products that are sorted in vain if sorted rows go to the next bin.
    max_joined_places: float
    #: Work-groups to a compute unit whose few long rows leave room for a side queue.
    max_side_groups: float
    #: Products to an entry of C up to which C is allocated by its upper bound.
    max_upper_compression: float
    #: Products of the mean row up to which it is.
    max_upper_mean: float
    #: The share of the upper bound of C's entries that uneven rows have.
    expected_fill: float
    #: Products of a row that one work-item of "esc-local" sorts in registers.
    esc_item_products: float
    #: Products of a row that a sub-group sorts.
    esc_team_products: float
    #: Products of a row that a work-group sorts in local memory.
    esc_group_products: float
    #: Products of a lane that sorts, if a row has more than a few: a power of two.
    sort_items: float
    #: Heads of a lane of a team that merges: a power of two.
    merge_items: float
    #: Heads of a lane down to which rows have more lanes, if the device has work-items left: a power of two.
    min_merge_items: float
    #: Entries of a row of A that one work-item merges in a bin: a power of two.
    merge_item_length: float
    #: Lanes of a team that merges: a power of two.
    max_merge_lanes: float
    #: Products of the largest bin of "reg-hash", and of "hash": powers of two, as for all bins of hashing.
    max_hash_products: float
    max_walked_products: float
    #: Products that a lane of "reg-hash" fetches at a time; rows have a lane for as many.
    hash_items: float
    #: Products of the largest bin of "large-hash".
    max_large_products: float
    #: Work-items to a row of "large-hash", and products that each fetches at a time.
    large_hash_lanes: float
    large_hash_items: float
    #: Slots of its tables with sums, if local memory holds them: a power of two.
    max_slots: float
    #: Columns of the narrowest and of the widest bin of "dense-span": powers of two.
    min_span: float
    max_span: float
    #: Columns from which on local memory has to hold two rows: a team by itself leaves a compute unit idle.
    min_paired_span: float
    #: Entries of a row of A that are taken at a time, and loads that a lane has in flight.
    span_entries: float
    span_loads: float
    #: The product of a plan by which a list of products is begun, and by which if most rows are merged.
    list_after: float
    list_after_merged: float

    def __post_init__(self) -> None:
        """Check that kernels of these shapes exist: a profile may come from anywhere."""
        for name, (lowest, highest) in _BOUNDS.items():
            value = getattr(self, name)
            if value != int(value) or not lowest <= value <= highest:
                raise ValueError(f"{name}: must be a whole number from {lowest} to {highest}, is {value}")
            if name in _POWERS and int(value).bit_count() != 1:
                raise ValueError(f"{name}: must be a power of two, is {value}")
            # Kernels are made of these.
            object.__setattr__(self, name, int(value))
        if not self.esc_item_products < self.esc_team_products < self.esc_group_products:
            raise ValueError("esc_item_products, esc_team_products, esc_group_products: must rise")
        if self.min_span > self.max_span:
            raise ValueError("min_span, max_span: must rise")
        if self.expected_fill > 1:
            raise ValueError(f"expected_fill: must be a share up to 1, is {self.expected_fill}")
        wrong = [each.name for each in fields(self) if not 0 <= getattr(self, each.name) < 1 << 62]
        if wrong:
            raise ValueError(f"{wrong[0]}: must be a number from 0, is {getattr(self, wrong[0])}")

    def items(self) -> Mapping[str, float]:
        """Return the numbers by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: Bounds of the numbers that kernels are made of, and which of them are powers of two.
_BOUNDS = {
    "max_small_lanes": (1, 1024),
    "max_small_items": (0, 64),
    "max_item_length": (0, 64),
    "max_light_length": (0, 64),
    "esc_item_products": (1, 32),
    "esc_team_products": (2, 65535),
    "esc_group_products": (3, 65535),
    "sort_items": (2, 32),
    "merge_items": (2, 64),
    "min_merge_items": (1, 64),
    "merge_item_length": (1, 64),
    "max_merge_lanes": (1, 64),
    "max_hash_products": (2, 1 << 15),
    "max_walked_products": (2, 1 << 15),
    "hash_items": (1, 32),
    "max_large_products": (1 << 10, 1 << 15),
    "large_hash_lanes": (1, 1024),
    "large_hash_items": (1, 32),
    "max_slots": (128, 1 << 14),
    "min_span": (32, 1 << 15),
    "max_span": (32, 1 << 15),
    "span_entries": (1, 1024),
    "span_loads": (1, 32),
    "list_after": (1, 1 << 31),
    "list_after_merged": (1, 1 << 31),
}
_POWERS = (
    "sort_items", "merge_items", "min_merge_items", "merge_item_length", "max_merge_lanes", "max_hash_products",
    "max_walked_products", "hash_items",
    "max_large_products", "large_hash_lanes", "max_slots", "min_span", "max_span",
)  # fmt: skip
#: Numbers of earlier profiles, for which trees over bins stand today: they decide nothing.
_RETIRED = ("max_products_by_mean", "min_window_entries")


def made(values: Mapping[str, float]) -> Thresholds:
    """Return thresholds by their names.

    Raises
    ------
    ValueError
        There is no such threshold, or one is missing, or out of its bounds.
    """
    names = {each.name for each in fields(Thresholds)}
    values = {name: value for name, value in values.items() if name not in _RETIRED}
    if values.keys() != names:
        unknown, missing = sorted(values.keys() - names), sorted(names - values.keys())
        raise ValueError(f"{unknown[0]} is no threshold" if unknown else f"{missing[0]} is missing")
    return Thresholds(**values)


def thresholds_of(device: Device, types: KernelTypes) -> Thresholds:
    """Return the thresholds of the profiles for a device, and for the dtype of C's values."""
    tried = supposed()
    if tried is not None:
        return tried
    assert types.arithmetic is not None  # of a numeric phase
    return profiles.thresholds(device, "spgemm", name_of(types.arithmetic.result), made)


@contextmanager
def supposing(thresholds: Thresholds) -> Iterator[None]:
    """Decide by other thresholds than the profiles', as the tuner does."""
    token = _supposed.set(thresholds)
    try:
        yield
    finally:
        _supposed.reset(token)
