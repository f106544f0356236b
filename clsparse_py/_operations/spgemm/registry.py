"""The methods of SpGEMM by name. A method is a function from a setting to bins, in the module of its accumulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.methods.dense import dense, dense_span, dense_windows
from clsparse_py._operations.spgemm.methods.esc import esc, long_rows
from clsparse_py._operations.spgemm.methods.esc_local import esc_local
from clsparse_py._operations.spgemm.methods.hash import hash_, large_hash, reg_hash
from clsparse_py._operations.spgemm.methods.merge import merge, reg_merge
from clsparse_py._operations.spgemm.methods.sort import reg_sort, sort

__all__ = ["FAMILIES", "METHODS", "PARTS", "Method"]

#: Names of SpGEMM methods as a type.
Method = Literal[
    "auto",
    "reg-merge",
    "merge",
    "reg-sort",
    "sort",
    "dense",
    "esc",
    "hash",
    "reg-hash",
    "large-hash",
    "esc-local",
    "long-rows",
]
#: SpGEMM methods by name: functions from a setting (device, types, thresholds) to bins, classes of rows by size.
METHODS: dict[str, Callable[[Setting], tuple[Bin, ...]]] = {
    "reg-merge": reg_merge,
    "merge": merge,
    "reg-sort": reg_sort,
    "sort": sort,
    "dense": dense,
    "esc": esc,
    "hash": hash_,
    "reg-hash": reg_hash,
    "large-hash": large_hash,
    "esc-local": esc_local,
    "long-rows": long_rows,
}
#: Names of the SpGEMM methods of each family, by which a profile's decision trees tell bins (classes of rows) apart.
FAMILIES = {
    "sorts": ("reg-sort", "sort"),
    "merges": ("reg-merge", "merge"),
    "hashes": ("hash", "reg-hash", "large-hash"),
    "dense": ("dense",),
    "expands": ("esc", "esc-local", "long-rows"),
}
#: SpGEMM methods, and parts of "dense", by the names that labels of strategies and of bins' accumulators may have.
PARTS = {**METHODS, "dense-span": dense_span, "dense-windows": dense_windows}
