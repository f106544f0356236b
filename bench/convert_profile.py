"""Give profiles made before there were trees over the bins of SpGEMM the tree that decides as they did.

python -m bench.convert_profile clsparse_py/tuning/profiles/*.json

Until then three rules of SpGEMM's refinement asked for two numbers of a profile, and a third that also serves speculation. Trees
have these numbers; a profile for a type of device alone gets the numbers of hashing and of spans of columns, too, which were
constants. All others take those from it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clsparse_py.tuning import profiles

#: Numbers that are in the tree today.
_RETIRED = ("max_products_by_mean", "min_window_entries")
#: Numbers that were constants, by type of device.
_CONSTANTS = {
    "max_hash_products": (512, 512), "max_walked_products": (512, 4096), "hash_items": (2, 8),
    "max_large_products": (1 << 15, 1 << 15), "large_hash_lanes": (1, 128), "large_hash_items": (2, 4), "max_slots": (2048, 2048),
    "min_span": (512, 512), "max_span": (4096, 4096), "min_paired_span": (2048, 2048), "span_entries": (64, 64),
    "span_loads": (2, 2),
}  # fmt: skip
_NOTE = "SpGEMM's trees over bins decide as its thresholds did, by python -m bench.convert_profile."


def tree(numbers: Mapping[str, float]) -> dict[str, Any]:
    """Return the tree that decides as the rules did with some thresholds."""

    def split(feature: str, at_most: float, then: Any, otherwise: Any) -> dict[str, Any]:
        return {"feature": feature, "at_most": at_most, "then": then, "else": otherwise}

    given = {"take": "given"}
    windows = {"take": "dense-windows", "note": "rows of B have some entries in each window of columns"}
    merged = {"take": "reg-merge:together", "note": "several products make an entry: rows are merged that would be sorted"}
    last = {"take": "last", "note": "few rows have most of the products: one that is merged would be waited for"}
    uneven = "max_products_by_mean", numbers["max_products_by_mean"]
    expanded = split("window_entries", _below(numbers["min_window_entries"]), given, windows)
    compressed = split("compression", _below(numbers["min_merged_compression"]), given, split("mergeable", 0.5, given, merged))
    sorted_ = split("sorts", 0.5, given, split(*uneven, compressed, given))
    return split("expands", 0.5, split("merges", 0.5, sorted_, split(*uneven, given, last)), expanded)


def _below(number: float) -> float:
    """Return the largest number that is less: trees ask for at most a number."""
    return math.nextafter(number, -math.inf)


def converted(content: Mapping[str, Any], generic: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile with the tree, and without the thresholds that it stands for.

    Parameters
    ----------
    content, generic : mapping
        The profile, and the one for its type of device, as JSON has them.
    """
    found = {**content, "operations": {**content["operations"]}, "thresholds": {**content["thresholds"]}}
    of_operation = dict(found["operations"].get("spgemm", {}))
    thresholds = {}
    for dtype, by_name in content["thresholds"]["spgemm"].items():
        both = generic["thresholds"]["spgemm"]["any"] | by_name
        if all(name in both for name in _RETIRED):
            own = tree({name: both[name]["value"] for name in (*_RETIRED, "min_merged_compression")})
            of_operation[dtype] = {**of_operation.get(dtype, {}), "bin": own}
        thresholds[dtype] = {name: each for name, each in by_name.items() if name not in _RETIRED}
    if "name" not in content["device"]:
        on_gpu = content["device"]["type"] != "cpu"
        constants = {
            name: {"value": values[on_gpu], "note": "by hand, a constant until then"} for name, values in _CONSTANTS.items()
        }
        thresholds["any"] = {**thresholds["any"], **constants}
    found["operations"]["spgemm"], found["thresholds"]["spgemm"] = of_operation, thresholds
    made = dict(content.get("made", {}))
    made["note"] = " ".join(filter(None, (made.get("note", ""), _NOTE)))
    return {**found, "made": made}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    whole = argparse.ArgumentParser(prog="python -m bench.convert_profile", description="Give older profiles trees over bins.")
    whole.add_argument("profiles", nargs="+", type=Path, metavar="FILE", help="is replaced, unless it has such trees")
    contents = {path: profiles.read(path).content for path in whole.parse_args(arguments).profiles}
    shipped = {path.stem: profiles.read(path).content for path in profiles.shipped()}
    for path, content in contents.items():
        generic = shipped["generic-cpu" if content["device"]["type"] == "cpu" else "generic-gpu"]
        trees = content["operations"].get("spgemm", {})
        if any("bin" in by_question for by_question in trees.values()):
            print(f"{path}: has trees over bins")
        elif "spgemm" in content.get("thresholds", {}):
            profiles.save(converted(content, generic), path)
            print(f"{path}: converted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
