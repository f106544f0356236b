"""Which accumulator makes a bin, by a tree over the bin's features, made up as are products: no device is asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_up_products import PLENTY, TYPES, device, kind_on

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bin_choice import NAMES, BinFeatures, ProductFeatures, bins_of_method, choose
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.decide import Decision, Reason
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense import FILLED, DenseWindows
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.hash import Hash
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.row_partition import refine
from clsparse_py._operations.spgemm.strategy import Choice, bins_for, parse, parse_choice

Share = tuple[Any, int]


def work(taken: dict[int, int], n_bins: int, n_products: int, most: int, longest: int = 100, compression: float = 1.0) -> Work:
    """A made-up result of the analysis."""
    rows = tuple(taken.get(number, 0) for number in range(n_bins))
    return Work(n_products, most, longest, n_products, compression, rows)


def by_rules(kind: Kind, features: Features, bins: Bins, result: Work) -> list[Share]:
    """Return what makes how many rows by the three rules, written out, that the trees of shipped profiles stand for."""
    limits, kept, taken, last = kind.thresholds, list(bins), list(result.taken), len(bins) - 1
    if result.max_products > 32 * result.n_products / max(sum(taken[1:]), 1):
        while last > 1 and (bins[last - 1].even or not taken[last - 1]):
            last -= 1
        taken[last:] = [*(0 for _ in taken[last:-1]), sum(taken[last:])]
    elif result.compression >= 3:
        merging = next((bin_ for bin_ in bins if bin_.even and (bin_.max_length or 0) >= result.longest_row), None)
        sorting = [number for number, bin_ in enumerate(bins) if bin_.method == "reg-sort"]
        if merging is not None and sorting:
            kept[sorting[-1]], taken[sorting[-1]] = merging, sum(taken[number] for number in sorting)
            taken[sorting[0] : sorting[-1]] = [0] * (len(sorting) - 1)
    (*_, n), (nnz, _) = features.shape, features.nnz
    filled = result.n_products * min(DenseWindows().columns_of(kind.types), n) >= 4 * nnz * n
    if isinstance(bins[-1].accumulator, Esc) and filled:
        first = next(number for number, bin_ in enumerate(bins) if bin_.method == bins[-1].method)
        taken[first:] = [*(0 for _ in taken[first:-1]), sum(taken[first:])]
        kept[-1] = FILLED
    held = [number for number in range(1, len(bins)) if taken[number]]
    for number, later in itertools.pairwise(held):
        bin_, other = kept[number], kept[later]
        places = taken[number] * ((other.max_products or 0) - (bin_.max_products or 0))
        few = taken[number] < limits.max_joined_rows
        if bin_.joins(other) and (places <= limits.max_joined_places if isinstance(bin_.accumulator, Sort) else few):
            taken[later], taken[number] = taken[later] + taken[number], 0
    return [(bin_.accumulator, n) for bin_, n in zip(kept[1:], taken[1:], strict=True) if n]


def test_shipped_trees_decide_as_rules_did() -> None:
    """Shares of 600 made-up products on the devices of shipped profiles, by trees and by the rules that they were made of."""
    rng = np.random.default_rng(1)
    labels = {
        "gpu": (
            "reg-sort dense-span esc-local", "reg-sort dense-span reg-merge:256:65536:1024 esc", "reg-sort esc-local",
            "reg-merge:64:65536:1024 reg-hash large-hash long-rows",
        ),
        "cpu": ("dense esc", "reg-merge:16:65536:1024 dense esc", "esc"),
    }  # fmt: skip
    seen = set()
    for path in profiles.list_shipped():
        of = profiles.read(path, shipped=True).device
        on = replace(device(of["type"]), **{name: of[name] for name in ("name", "platform", "vendor") if name in of})
        kind = Kind(replace(on, compute_units=132), TYPES)
        for _ in range(100):
            label = str(rng.choice(labels[of["type"]]))
            if path.stem == "nvidia-h200" and "hash" in label:
                continue  # its trees have a rule of their own for tables
            n = int(10 ** rng.uniform(2, 7))
            bins = bins_for("auto", kind.device, TYPES, n, strategy=parse(label), accumulator_limit=int(10 ** rng.uniform(4, 9)))
            numbers = rng.choice(len(bins), min(len(bins), 4), replace=False).tolist()
            rows = {number: int(10 ** rng.uniform(0, 5)) for number in numbers}
            mean, nnz = float(rng.uniform(1, 500)), int(10 ** rng.uniform(5, 7))
            n_products = int(mean * sum(rows.values())) + 10**6
            most, longest = int(mean * 10 ** rng.uniform(0, 3)), int(10 ** rng.uniform(1.5, 3))
            compression = float(rng.choice([1.0, 2.9, 3.0, 8.0]))
            result = work(rows, len(bins), n_products, most, longest, compression)
            features = Features((sum(result.taken), n, n), (nnz, nnz))
            shares = refine(kind, features, Decision(bins, Reason(""), True), result, PLENTY).shares
            shared = [(bin_.accumulator, n) for bin_, n in shares[1:]]
            assert shares[0] == (EMPTY, result.taken[0])
            if len(shares) != 2 or not isinstance(shared[0][0], Merge) or shared[0][0].lanes > 1:
                assert shared == by_rules(kind, features, bins, result), (path, label, result)
                seen |= {type(accumulator) for accumulator, _ in shared}
    assert {DenseWindows, Esc, Merge, Sort} <= seen


@pytest.fixture
def by_tree(decided_by: Callable[..., None]) -> Callable[[object], Kind]:
    """Make a tree over bins decide on a made-up device, and return the kind of products there."""

    def decide(tree: object, on: str = "gpu") -> Kind:
        made_up: Device = replace(device(on), name="made up", platform="made up")
        decided_by(made_up, {"spgemm": {"any": {"bin": tree}}})
        return Kind(made_up, TYPES)

    return decide


def product(n_columns: int = 10**6) -> Features:
    return Features((10**5, 10**5, n_columns), (10**6, 10**6))


def sort_and_expand(kind: Kind) -> Bins:
    return bins_for("auto", kind.device, TYPES, 10**6, strategy=parse("reg-sort esc"))


def test_a_leaf_is_an_accumulator_of_a_method(by_tree: Callable[[object], Kind]) -> None:
    kind = by_tree({"feature": "bin_products", "at_most": 64, "then": {"take": "reg-hash"}, "else": {"take": "large-hash"}})
    bins = sort_and_expand(kind)
    number = {bin_.max_products: number for number, bin_ in enumerate(bins)}
    result = work({0: 5, number[64]: 10**5, number[128]: 10**5, number[None]: 3}, len(bins), 10**7, 20_000, longest=64)
    made, rulings = choose(kind, product(), bins, result, PLENTY)
    few, more, most = (made[number[products]] for products in (64, 128, None))
    assert few.accumulator == Hash(64, 8, 8)
    assert (more.method, more.max_products) == ("large-hash", 1024)
    # By what all rows have at most, as the bin has no limit; those without rows are what the strategy gives.
    assert (most.method, most.max_products) == ("large-hash", 1 << 15)
    assert made[number[32]] is bins[number[32]]
    assert [ruling.label for ruling in rulings] == ["reg-hash", "large-hash", "large-hash"]
    assert rulings[0].why == "profile made-up: bin_products <= 64"
    # Rows of more products than any bin of the method takes stay.
    many = work({number[None]: 3}, len(bins), 10**7, 1 << 20)
    assert choose(kind, product(), bins, many, PLENTY)[0] == list(bins)


def test_bins_are_made_together_or_handed_on(by_tree: Callable[[object], Kind]) -> None:
    kind = by_tree({"feature": "sorts", "at_most": 0.5, "then": {"take": "given"}, "else": {"take": "reg-hash:together"}})
    bins = sort_and_expand(kind)
    result = work({1: 10**5, 3: 10**5, len(bins) - 1: 7}, len(bins), 10**7, 20_000, longest=5)
    shares = refine(kind, product(), Decision(bins, Reason(""), True), result, PLENTY).shares
    assert [(bin_.accumulator, n) for bin_, n in shares[1:]] == [(Hash(8, 1, 8), 2 * 10**5), (bins[-1].accumulator, 7)]
    # The longest row of A is in one of them, as far as is known.
    result = result._replace(longest_row=100)
    assert refine(kind, product(), Decision(bins, Reason(""), True), result, PLENTY).shares[1][0].accumulator == Hash(128, 16, 8)
    last, given = Choice("last"), Choice("given")
    for choices, n in (({1: last, 3: last}, 2 * 10**5 + 7), ({1: last, 3: given}, 7), ({1: given, 3: last}, 10**5 + 7)):
        decision = Decision(bins, Reason(""), True, choices={**choices, len(bins) - 1: given})
        assert refine(kind, product(), decision, result, PLENTY).shares[-1] == (bins[-1], n)


def test_what_a_method_needs_is_there(by_tree: Callable[[object], Kind]) -> None:
    gpu, cpu = by_tree({"take": "given"}), Kind(device("cpu"), TYPES)
    assert [bin_.method for bin_ in bins_of_method(cpu, "dense", 10**6, PLENTY)] == ["dense"]
    assert bins_of_method(cpu, "dense", 10**6, Budget(1 << 40, 1 << 20)) == ()
    assert bins_of_method(gpu, "dense-windows", 10**6, PLENTY) == (FILLED,)
    assert [bin_.max_products for bin_ in bins_of_method(gpu, "esc-local", 10**6, Budget(1 << 12, 1 << 12))][-1] is None


@pytest.mark.parametrize("label", ["", "fast", "given:together", "hash:3", "reg-merge:16:1:1"])
def test_what_is_no_choice(label: str) -> None:
    with pytest.raises(ValueError, match=r"^bin: .* is no method"):
        parse_choice(label)


def test_features_of_a_bin() -> None:
    kind, bin_ = kind_on("gpu"), Bin("reg-sort", Sort(4, 4), 16, 16)
    result = work({0: 100, 1: 400}, 2, 4000, 500, longest=12, compression=2.0)
    shared = ProductFeatures(kind, product(), (EMPTY, bin_), result)
    assert (shared["row_products"], shared["max_products_by_mean"], shared["compression"]) == (10, 50, 2)
    assert (shared["bound_by_products"], shared["mergeable"], shared["rows"]) == (1, 0, 10**5)
    own = BinFeatures(shared, 1)
    assert all(isinstance(own[name], (int, float)) for name in NAMES)
    with pytest.raises(KeyError, match="speed"):
        own["speed"]
    assert (own["bin_products"], own["bin_length"], own["bin_share"]) == (16, 12, 1)
    assert own["bin_rows_by_items"] == 400 / (kind.device.compute_units * kind.device.resident)
    assert own["span_by_local"] == 10**6 * 9 / kind.device.local_memory
    assert [own[name] for name in ("sorts", "merges", "hashes", "dense", "expands")] == [1, 0, 0, 0, 0]
    assert str(parse_choice("reg-merge:together")) == "reg-merge:together"
