"""Rewrite profiles in their shortest form, which decides as they do.

python -m bench.convert_profile clsparse_py/_decisions/profiles/*.json

What equals a default and what nothing reads is left out: thresholds that are declared so, comparisons of trees that make no
difference, what training knew of leaves, of the evidence all but the times of the fastest and of the slowest that is there, and
scores, which reports tell.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clsparse_py._decisions import profiles
from clsparse_py._decisions.thresholds import Thresholds
from clsparse_py._decisions.tree import Leaf, Split, Tree, from_json

#: Modules in which operations declare the thresholds of shipped profiles.
_DECLARED = {"spmv": "spmv.choose", "spmm": "spmm.choose", "spgemm": "spgemm.thresholds"}
#: Thresholds of earlier profiles, in whose place trees over bins stand today.
_RETIRED = {"max_products_by_mean", "min_window_entries"}

Ranges = Mapping[str, tuple[float, float]]


def simplify(tree: Tree, known: Ranges | None = None) -> Tree:
    """Return a tree that decides alike, without comparisons that are known to hold or not, or behind which all is the same.

    Parameters
    ----------
    tree : Tree
    known : mapping of str to tuple of float, optional
        Of features what they are above, and what they are at most.
    """
    if isinstance(tree, Leaf):
        return Leaf(tree.label, note=tree.note)
    known = known or {}
    above, most = known.get(tree.feature, (-math.inf, math.inf))
    if tree.at_most <= above:
        return simplify(tree.otherwise, known)
    if tree.at_most >= most:
        return simplify(tree.then, known)
    then = simplify(tree.then, {**known, tree.feature: (above, tree.at_most)})
    otherwise = simplify(tree.otherwise, {**known, tree.feature: (tree.at_most, most)})
    if isinstance(then, Leaf) and isinstance(otherwise, Leaf) and then.label == otherwise.label:
        return Leaf(then.label, note=then.note if then.note == otherwise.note else "")
    return Split(tree.feature, tree.at_most, then, otherwise)


def _thresholds(content: Mapping[str, Any], needed: Collection[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return the thresholds of a profile that are not the defaults, and those that are ``needed`` (operation and name)."""
    results: dict[str, Any] = {}
    for operation, by_dtype in content.get("thresholds", {}).items():
        declared: type[Thresholds] = importlib.import_module(f"clsparse_py._operations.{_DECLARED[operation]}").Thresholds
        usual = declared.defaults(on_cores=content["device"]["type"] == "cpu")
        # Those for any dtype are asked for where these two lack them.
        real = [by_dtype.get(dtype, {}).keys() for dtype in ("float32", "float64")]
        never = {"any": _RETIRED | (real[0] & real[1])}
        for dtype, by_name in by_dtype.items():
            own = {
                name: tree
                for name, tree in by_name.items()
                if name not in never.get(dtype, _RETIRED) and (tree["value"] != usual[name] or (operation, name) in needed)
            }
            if own:
                results.setdefault(operation, {})[dtype] = own
    return results


def _required_thresholds(content: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the thresholds that a profile of a device has to hold, as profiles of its kin would decide on them."""
    of = content["device"]
    if "name" not in of:
        return set()
    same = "platform" if of["type"] == "cpu" else "vendor"
    kin = (other for other in others if other is not content and other["device"].get(same) == of[same])
    thresholds = (_thresholds(profile) for profile in kin)
    return {
        (operation, name)
        for by_operation in thresholds
        for operation in by_operation
        for by_name in by_operation[operation].values()
        for name in by_name
    }


def _evidence(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the evidence by question: of each case the fastest label, and the slowest of those that are told."""
    results: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in content.get("evidence", []):
        key = record["operation"], record["dtype"], record["question"]
        cases = {record["case"]: record["times"]} if "case" in record else record["times"]
        for case, times in cases.items():
            of_case = {label: times[label] for label in (min(times, key=times.get), max(times, key=times.get))}
            results.setdefault(key, {})[case] = of_case
    return [dict(zip(("operation", "dtype", "question"), key, strict=True), times=times) for key, times in results.items()]


def convert(content: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a profile, as JSON has it, in its shortest form; ``others`` are those that may be asked behind it."""
    operations = {
        operation: {
            dtype: {question: simplify(from_json(tree)).to_json() for question, tree in by_question.items()}
            for dtype, by_question in by_dtype.items()
        }
        for operation, by_dtype in content["operations"].items()
    }
    thresholds = _thresholds(content, _required_thresholds(content, others))
    return {**content, "operations": operations, "thresholds": thresholds, "evidence": _evidence(content), "scores": {}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    whole = argparse.ArgumentParser(prog="python -m bench.convert_profile", description="Rewrite profiles, shortened.")
    whole.add_argument("profiles", nargs="+", type=Path, metavar="FILE", help="is replaced")
    contents = {path: profiles.read(path).content for path in whole.parse_args(arguments).profiles}
    for path, content in contents.items():
        before = path.stat().st_size
        profiles.save(convert(content, contents.values()), path)
        print(f"{path}: {before:,} bytes before, {path.stat().st_size:,} now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
