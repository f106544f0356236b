"""Thresholds of SpGEMM: the numbers by which it decides, from the device's profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._precision.arithmetic import name_of

__all__ = ["Thresholds", "override_thresholds", "supposed", "thresholds_of"]

#: Context variable with the thresholds of SpGEMM that a tuner tries, or None.
_supposed: ContextVar[Thresholds | None] = ContextVar("thresholds", default=None)
#: Function: return the SpGEMM thresholds that a tuner tries, or None. A built-in method, as products often call it.
supposed = _supposed.get


#: Value of a threshold that no number reaches: as default on CPU devices it turns a choice off.
_NEVER = (1 << 31) - 1
#: Evidence that is told for the defaults of SpGEMM's thresholds that were measured on an H100.
_H100 = "by hand, from products on an H100, 2026-11-22"
#: Evidence that is told for the defaults of SpGEMM's thresholds that were measured on an H200.
_H200 = "by hand, from a tuning run on an H200, 2026-11-23"


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds of SpGEMM on a device for a dtype. "Products" are intermediate products."""

    operation = "spgemm"

    #: Most intermediate products for a product A @ B to count as small, and to be made by the fewest launches.
    max_small_products: int = number(1 << 15, "products", on_cores=1 << 16, evidence=_H100)
    #: Most work-items to a row of a small product.
    max_small_lanes: int = number(8, "work-items", on_cores=1, least=1, most=1 << 10, evidence=_H100)
    #: Most heads (current entries of rows of B) that a work-item merges in a small product.
    max_small_items: int = number(16, "heads", most=64, evidence=_H100)
    #: Greatest length of A's longest row, in entries, for one work-item to merge each row, in the order of rows.
    max_item_length: int = number(12, "entries", on_cores=0, most=64, evidence=_H100)
    #: Most products of a row that one work-item merges.
    max_item_products: int = number(1 << 10, "products", evidence=_H100)
    #: Most heads (current entries of rows of B) that one work-item compares for the longest row of A, unless rows of C compress.
    max_item_steps: int = number(1 << 11, "heads", evidence=_H200)
    #: Longest row of A that one work-item merges if it compares at most `max_item_steps` heads and no team merges rows.
    max_light_length: int = number(24, "entries", on_cores=0, most=64, evidence=_H200)
    #: Longest row of A, in entries, that a team of lanes merges in a speculation, one merge kernel for all rows without analysis.
    max_speculative_length: int = number(512, "entries", on_cores=0, evidence=_H100)
    #: Longest row of A times all products, above which no speculation is worthwhile: the analysis is a small part of the whole.
    max_speculative_work: int = number(1 << 34, "products", evidence=_H100)
    #: Greatest ratio of A's longest row to its mean row for rows to count as uniform.
    max_longest_by_mean: float = number(2.0, "mean rows", evidence=_H100)
    #: Least share of A's entries in a column beside that of the entry before, for rows of C to count as compressing.
    min_adjacent_share: float = number(0.25, "share of entries", evidence=_H100)
    #: Least share of A's entries in a column beside that of the entry before, for rows of B to be staged in local memory.
    min_staged_share: float = number(0.25, "share of entries", on_cores=_NEVER, evidence=_H100)
    #: Ratio of A's longest row to its mean row above which rows are listed by bins (classes) while the host waits for the
    #: analysis.
    min_listed_by_mean: float = number(2.0, "mean rows", on_cores=_NEVER, evidence=_H100)
    #: Least products to an entry of C for rows to stay merged after a speculation.
    min_merged_compression: float = number(3.0, "products to an entry of C", evidence=_H100)
    #: Number of rows below which a bin (class of rows) is joined with the next bin of its method, as a launch takes longer.
    max_joined_rows: int = number(1 << 10, "rows", evidence=_H100)
    #: Most places without products, sorted in vain, for a sorting bin to be joined with the next bin of its method.
    max_joined_places: int = number(1 << 21, "places", evidence=_H100)
    #: Most long rows, a work-group each, to a compute unit for these rows to run on a side queue beside others.
    max_side_groups: float = number(4.0, "work-groups to a compute unit", on_cores=0.0, evidence=_H100)
    #: Most products to an entry of C for C to be allocated by its upper bound.
    max_upper_compression: float = number(1.25, "products to an entry of C", on_cores=64.0, evidence=_H100)
    #: Most products of the mean row for C to be allocated by its upper bound.
    max_upper_mean: float = number(16.0, "products", on_cores=512.0, evidence=_H100)
    #: Expected entries of C, as a share of their upper bound, if rows are uneven.
    expected_fill: float = number(0.5, "share of the upper bound", on_cores=0.0, most=1, evidence=_H100)
    #: Most products of a row that one work-item of "esc-local" sorts in registers.
    esc_item_products: int = number(32, "products", least=1, most=32, evidence=_H100)
    #: Most products of a row that a sub-group of "esc-local" sorts.
    esc_team_products: int = number(736, "products", least=2, most=65535, evidence=_H100)
    #: Most products of a row that a work-group of "esc-local" sorts in local memory.
    esc_group_products: int = number(6144, "products", least=3, most=65535, evidence=_H100)
    #: Products to a lane of a team that sorts the products of a row, if these are more than a few: a power of two.
    sort_items: int = number(4, "products", least=2, most=32, power=True, evidence=_H100)
    #: Heads (rows of B) to a lane of a team that merges a row: a power of two.
    merge_items: int = number(8, "heads", least=2, most=64, power=True, evidence=_H100)
    #: Least heads to a lane of a team that merges, if the device has work-items left for more lanes: a power of two.
    min_merge_items: int = number(4, "heads", on_cores=8, least=1, most=64, power=True, evidence=_H200)
    #: Longest row of A, in entries, of the bin whose rows one work-item each merges: a power of two.
    merge_item_length: int = number(16, "entries", least=1, most=64, power=True, evidence=_H100)
    #: Most lanes of a team that merges the rows of B of one row of A: a power of two.
    max_merge_lanes: int = number(32, "lanes", least=1, most=64, power=True, evidence=_H100)
    #: Most products of a row in the largest bin of "reg-hash": a power of two.
    max_hash_products: int = number(512, "products", least=2, most=1 << 15, power=True)
    #: Most products of a row in the largest bin of "hash": a power of two.
    max_walked_products: int = number(1 << 12, "products", on_cores=512, least=2, most=1 << 15, power=True)
    #: Products that a lane of "reg-hash" fetches at a time; a row has a lane for every such number of products.
    hash_items: int = number(8, "products", on_cores=2, least=1, most=32, power=True)
    #: Most products of a row in the largest bin of "large-hash": a power of two.
    max_large_products: int = number(1 << 15, "products", least=1 << 10, most=1 << 15, power=True)
    #: Work-items to a row of "large-hash".
    large_hash_lanes: int = number(128, "work-items", on_cores=1, least=1, most=1 << 10, power=True)
    #: Products that a work-item of "large-hash" fetches at a time.
    large_hash_items: int = number(4, "products", on_cores=2, least=1, most=32)
    #: Most slots of a hash table with sums of "large-hash", if local memory holds them: a power of two.
    max_slots: int = number(1 << 11, "slots", least=128, most=1 << 14, power=True)
    #: Widest span of a row in the narrowest bin of "dense-span", in columns: a power of two.
    min_span: int = number(512, "columns", least=32, most=1 << 15, power=True)
    #: Widest span of a row in the widest bin of "dense-span", in columns: a power of two.
    max_span: int = number(1 << 12, "columns", least=32, most=1 << 15, power=True)
    #: Least span of columns for which local memory has to hold two rows, as one team by itself leaves a compute unit idle.
    min_paired_span: int = number(1 << 11, "columns")
    #: Entries of a row of A that "dense-span" reads at a time.
    span_entries: int = number(64, "entries", least=1, most=1 << 10)
    #: Loads that a lane of "dense-span" has in flight.
    span_loads: int = number(2, "loads", least=1, most=32)
    #: Number of the call of a plan that begins to make the list of products; making it takes a GPU as long as some calls.
    list_after: int = number(5, "products", least=1, most=1 << 31)
    #: Number of the call of a plan that begins to make the list of products if most rows are merged, for which the list saves
    #: less.
    list_after_merged: int = number(25, "products", least=1, most=1 << 31)
    #: Most memory that making the list of products may take, as a share of the free workspace.
    list_made_share: float = number(1 / 2, "share of the memory", most=1)
    #: Most memory that the list of products may keep, as a share of the free workspace.
    list_kept_share: float = number(1 / 8, "share of the memory", most=1)
    #: Work-group of the kernel that makes values by the list of products.
    list_group: int = number(128, "work-items", least=1)
    #: Products to a work-item of the kernel that makes values by the list of products.
    list_items: int = number(8, "products", least=1, power=True)
    #: Products to a work-item of the same kernel if entries of C have few products, so that more tiles are resident.
    list_few_items: int = number(4, "products", least=1, power=True)
    #: Products to an entry of C below which the list of products has smaller tiles.
    list_few_products: float = number(2.0, "products to an entry of C")
    #: Most products of a mean row, or entries of B's longest row, that one work-item merges in a speculation.
    max_speculated: int = number(256, "products", least=1)
    #: Most partial sums of C's entries that a speculation reports.
    max_partial_sums: int = number(900, "sums")
    #: Longest row of C, in entries, that a CPU device moves in less time than it counts, as in multigrid's products.
    max_moved: int = number(96, "entries")
    #: Most slices of "esc" for which it does not matter how few products they have.
    few_slices: int = number(16, "slices")
    #: Least products of the mean slice of "esc", if slices are many; with fewer, launches take longer than work, and rows go
    #: through windows of columns.
    min_slice_products: int = number(1 << 13, "products")

    def __post_init__(self) -> None:
        """Check that the limits of bins rise, beside the single thresholds."""
        super().__post_init__()
        if not self.esc_item_products < self.esc_team_products < self.esc_group_products:
            raise ValueError("esc_item_products, esc_team_products, esc_group_products: must rise")
        if self.min_span > self.max_span:
            raise ValueError("min_span, max_span: must rise")


def thresholds_of(device: Device, types: KernelTypes) -> Thresholds:
    """Return SpGEMM's thresholds: those that a tuner tries, or else the profile's for a device and the dtype of C's values."""
    supposed_thresholds = supposed()
    if supposed_thresholds is not None:
        return supposed_thresholds
    assert types.arithmetic is not None  # of a numeric phase
    return Thresholds.of(device, name_of(types.arithmetic.result))


@contextmanager
def override_thresholds(thresholds: Thresholds) -> Iterator[None]:
    """Replace SpGEMM's thresholds of all profiles by others inside a ``with`` block, as the tuner does."""
    token = _supposed.set(thresholds)
    try:
        yield
    finally:
        _supposed.reset(token)
