"""The kernels of SpGEMM by name, with the parameters that they take by default on a device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clsparse_py import programs
from clsparse_py._spgemm.kernels import Analysis, KernelTypes
from clsparse_py._spgemm.mask_writes import Accumulate, MaskMarks
from clsparse_py._spgemm.masked_entries import MaskedEntries
from clsparse_py._spgemm.masked_rows import MaskedChunked, MaskedTeam
from clsparse_py._spgemm.methods.dense_chunked import DenseChunkedKernel, Masks
from clsparse_py._spgemm.methods.dense_span import DenseSpan
from clsparse_py._spgemm.methods.dense_windows import DenseParts, DenseWindows
from clsparse_py._spgemm.methods.esc_kernels import EscCarry, EscContract, EscCount, EscEntries, EscExpand, EscMark, EscRows
from clsparse_py._spgemm.methods.esc_local import EscGroup, EscItem, EscTeam
from clsparse_py._spgemm.methods.hash import Hash, HashRows, hashes, large_hashes
from clsparse_py._spgemm.methods.merge import Merge, merges
from clsparse_py._spgemm.methods.sort import Sort
from clsparse_py._spgemm.one_launch import OneLaunch
from clsparse_py._spgemm.product_list import ListedProducts, ListKernel
from clsparse_py._spgemm.thresholds import thresholds_of
from clsparse_py._spgemm.upper_bound import Compaction, CompactionChunked
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device

__all__ = ["of_spgemm"]


def of_spgemm(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the default parameter record of every kernel of SpGEMM, for a matrix times another of its dtype."""
    numeric = KernelTypes("numeric", arithmetic.index, arithmetic=replace(arithmetic, x=arithmetic.a), c_index=arithmetic.index)
    phases = {phase: numeric.of(phase) for phase in ("symbolic", "numeric", "values")}
    group = min(128, device.max_work_group)
    lanes = Analysis(group, arithmetic.index, 4, 128, device.portability).within(group, device.portability.lane_width)
    assert lanes is not None  # a work-group has at least one work-item
    staged = Merge(1, 8, staged_c=16)
    thresholds = thresholds_of(device, numeric)
    longest_merge = merges(device, numeric, thresholds, registers=True)[-1]
    contract = EscContract.legal(device, numeric, True, "uint32", 128)
    values = EscContract.legal(device, phases["values"], False, "uint32", 128)
    esc = {
        "spgemm/esc_rows": EscRows(group, arithmetic.index, True),
        "spgemm/esc_entries": EscEntries(group, arithmetic.index, False, False),
        "spgemm/esc_entries:pointers": EscEntries(group, arithmetic.index, True, True),
        "spgemm/esc_expand:keys": EscExpand(group, phases["symbolic"], "uint32", "keys"),
        "spgemm/esc_expand:numbered": EscExpand(group, phases["symbolic"], "uint64", "numbered"),
        "spgemm/esc_expand": EscExpand(group, phases["values"], "uint32", "values"),
        "spgemm/esc_mark": EscMark(group, "uint64", True),
        "spgemm/esc_count": EscCount(group, arithmetic.index, False, True),
        "spgemm/esc_contract": contract,
        "spgemm/esc_contract:values": values,
        "spgemm/esc_carry": EscCarry(group, phases["values"], True, contract.tile),
        "spgemm/esc_item": EscItem(32, columns=1 << 20).record(device, numeric, listed=True),
        "spgemm/esc_item:unpacked": EscItem(32).record(device, phases["values"], listed=False),
        "spgemm/esc_item:symbolic": EscItem(32).record(device, phases["symbolic"], listed=False),
        "spgemm/esc_team": EscTeam(736, columns=1 << 20).record(device, numeric, listed=True),
        "spgemm/esc_team:unpacked": EscTeam(736).record(device, phases["values"], listed=False),
        "spgemm/esc_team:symbolic": EscTeam(736).record(device, phases["symbolic"], listed=False),
        "spgemm/esc_team:upper_bound": EscTeam(736, columns=1 << 20).record(device, numeric.of("upper_bound"), listed=True),
        "spgemm/esc_team:group": EscTeam(1024, lanes=256, columns=1 << 20).record(device, numeric, listed=False),
        "spgemm/esc_group": EscGroup(1024, 64, columns=1 << 20, entries=512).record(device, numeric, listed=True),
    }
    found: dict[str, programs.Parameters] = {
        "spgemm/analysis": Analysis(group, arithmetic.index, 1, 0, device.portability.at_most(1)),
        "spgemm/analysis:lanes": lanes,
        "spgemm/dense_chunked": DenseChunkedKernel(1, numeric, listed=True),
        **{f"spgemm/dense_chunked:{phase}": DenseChunkedKernel(1, types, listed=False) for phase, types in phases.items()},
        **esc,
        "spgemm/dense_chunked:upper_bound": DenseChunkedKernel(1, numeric.of("upper_bound"), listed=False),
        "spgemm/compact": Compaction(group, numeric),
        "spgemm/compact_chunked": CompactionChunked(1, numeric),
        "spgemm/one_launch": OneLaunch.legal(device, numeric),
        "spgemm/masks": Masks(1, arithmetic.index),
        **_of_masks(device, replace(arithmetic, x=arithmetic.a)),
        "spgemm/merge_item": Merge(1, 16).record(device, numeric, listed=True),
        "spgemm/merge_item:local": Merge(1, 8, registers=False).record(device, numeric, listed=True),
        **{f"spgemm/merge_item:{phase}": staged.record(device, types, listed=False) for phase, types in phases.items()},
        "spgemm/merge_staged": Merge(1, 9, staged_c=28, staged_b=768).record(device, numeric, listed=False),
        "spgemm/merge_team": longest_merge.record(device, numeric, listed=True),
        **{f"spgemm/merge_team:{phase}": Merge(4, 8).record(device, types, listed=True) for phase, types in phases.items()},
        "spgemm/merge_team:local": Merge(4, 8, registers=False).record(device, numeric, listed=True),
        "spgemm/merge_speculative": Merge(1, 8).speculative(device, phases["symbolic"], 1000),
        "spgemm/merge_speculative:team": Merge(4, 8).speculative(device, phases["symbolic"], 1000),
        "spgemm/sort": Sort(1, 8).record(device, numeric, listed=True),
        **{f"spgemm/sort:{phase}": Sort(8, 8).record(device, types, listed=False) for phase, types in phases.items()},
        "spgemm/sort:upper_bound": Sort(8, 8).record(device, numeric.of("upper_bound"), listed=True),
        "spgemm/sort:most": Sort(32, 16).record(device, numeric, listed=True),
        "spgemm/sort:small": Sort(16, 8, columns=1 << 16).record(device, numeric, listed=True),
        "spgemm/sort:local": Sort(8, 8, registers=False).record(device, numeric, listed=True),
        "spgemm/hash": hashes(device, numeric, thresholds, registers=True)[0].record(device, numeric, listed=True),
        **{f"spgemm/hash_rows:{phase}": HashRows(64, 8).record(device, types, listed=True) for phase, types in phases.items()},
        "spgemm/hash_rows": HashRows(4096, 32, contraction=4, columns=1 << 20).record(device, numeric, listed=True),
        **{f"spgemm/hash:even_{phase}": Hash(256, 32, 8).record(device, types, listed=False) for phase, types in phases.items()},
        "spgemm/hash:atomic": Hash(64, 8, 2, deterministic=False).record(device, numeric, listed=True),
        "spgemm/hash:large": large_hashes(device, numeric, thresholds)[-1].record(device, numeric, listed=True),
        "spgemm/dense_span": DenseSpan(1024).record(device, numeric, listed=False),
        **{f"spgemm/dense_span:{phase}": DenseSpan(1024).record(device, types, listed=True) for phase, types in phases.items()},
        "spgemm/dense_windows": DenseWindows().record(device, numeric, listed=False),
        **{f"spgemm/dense_windows:{phase}": DenseWindows().record(device, types, listed=True) for phase, types in phases.items()},
        "spgemm/dense_parts": DenseParts(group, arithmetic.index, True),
        **{
            f"spgemm/product_list:{phase}": ListKernel(group, phases["values"], phase, 8 if phase == "places" else 0)
            for phase in ("lengths", "places", "tiles")
        },
        "spgemm/product_list": ListKernel(group, phases["values"], "factors", place="uint"),
        "spgemm/product_list:near": ListKernel(group, phases["values"], "factors", place="ushort"),
        "spgemm/listed_products": ListedProducts(group, phases["values"], 8, "uint"),
        "spgemm/listed_products:near": ListedProducts(group, phases["values"], 4, "ushort"),
    }
    # If lanes exchange nothing, some records are those of other templates.
    return {name: record for name, record in found.items() if record.template == name.partition(":")[0]}


def _of_masks(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of products under a mask, and of what is written."""
    group, index, a = min(128, device.max_work_group), arithmetic.index, arithmetic.a
    counted = Arithmetic("int32", "int32", index, "plus_pair")
    return {
        "spgemm/accumulate": Accumulate(group, index, a, a, "plus", "old"),
        "spgemm/accumulate:new": Accumulate(group, index, a, a, "plus", "new"),
        "spgemm/accumulate:values": Accumulate(group, index, a, a, "plus", "values"),
        "spgemm/accumulate:rows": Accumulate(group, index, a, a, "plus", "rows"),
        "spgemm/mask_marks": MaskMarks(group, index),
        "spgemm/masked": MaskedTeam.legal(device, arithmetic),
        "spgemm/masked:counted": MaskedTeam.legal(device, counted),
        "spgemm/masked_entries": MaskedEntries(group, index, 0, "count"),
        "spgemm/masked_entries:list": MaskedEntries(group, index, 0, "list"),
        "spgemm/masked_entries:move": MaskedEntries(group, index, np.dtype(a).itemsize, "move"),
        "spgemm/masked_entries:rows": MaskedEntries(group, index, 0, "rows"),
        "spgemm/masked_chunked": MaskedChunked.legal(arithmetic, places=True),
        "spgemm/masked_chunked:search": MaskedChunked.legal(arithmetic, places=False),
        "spgemm/masked_chunked:counted": MaskedChunked.legal(counted, places=True),
    }
