"""Recipes of SpGEMM: labels, the bins that they are, a made-up profile that decides, a second look, all that is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from platforms import PLATFORMS, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import spgemm_plan
from clsparse_py._build import programs
from clsparse_py._device.device import Device, Portability, describe
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm.bin_choice import NAMES
from clsparse_py._operations.spgemm.features import Features
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.registry import METHODS
from clsparse_py._operations.spgemm.strategy import Entry, Limits, Strategy, bins_for, parse, strategy_bins
from clsparse_py._operations.spgemm.thresholds import thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._tuner import spgemm_tunable as tunable
from clsparse_py._tuner.spgemm_tunable import SpgemmTunable

TUNABLE = SpgemmTunable()
TYPES = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")
DecidedBy = Callable[[Device, dict[str, Any]], None]
#: A profile's answer that leaves rows in the bins of the strategy.
AS_GIVEN = {"bin": {"take": "given"}}


def make_device(kind: str) -> Device:
    """A device of a type that no profile names, with 32 lanes that exchange values where it is a GPU."""
    result = replace(
        describe(next(iter(PLATFORMS.values()))), name="made up", type=kind, local_memory=48 << 10, max_work_group=1024
    )
    return replace(result, portability=Portability("ptx", 32)) if kind == "gpu" else result


def test_a_label_names_a_recipe() -> None:
    assert parse("reg-merge:32:1000:100 hash long-rows") == Strategy(
        (Entry("reg-merge", Limits(32, 1000, 100)), Entry("hash"), Entry("long-rows"))
    )
    for kind in ("cpu", "gpu"):
        labels = TUNABLE.configurations(make_device(kind), "float64", "strategy")
        assert len(set(labels)) == len(labels)
        assert [str(TUNABLE.parse("strategy", label)) for label in labels] == list(labels)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("", "'' is no method"),
        ("fast esc", "'fast' is no method"),
        ("hash", "must end with one of"),
        ("dense", "must end with one of"),
        ("hash hash esc", "has a method twice"),
        ("hash:3 esc", "limits are three numbers for reg-merge or merge"),
        ("merge:3 esc", "limits are three numbers"),
        ("merge:3:4:x esc", "a limit of merge must be a number"),
        ("merge:3:4:-1 esc", "a limit of merge must be a number"),
    ],
)
def test_what_is_no_label(label: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^strategy: {message}"):
        parse(label)


def test_limits_are_those_of_rules() -> None:
    device = make_device("gpu")
    bins = strategy_bins(device, TYPES, parse("reg-merge:32:500:50 hash long-rows"))
    merging = [(bin_, bin_.accumulator) for bin_ in bins if isinstance(bin_.accumulator, Merge)]
    assert max(merge.length for _, merge in merging) == 32
    assert {bin_.max_products for bin_, merge in merging if merge.lanes == 1} == {50}
    assert {bin_.max_products for bin_, merge in merging if merge.lanes > 1} == {500}
    assert list(dict.fromkeys(bin_.method for bin_ in bins)) == ["reg-merge", "hash", "long-rows"]
    assert all(bin_.even for bin_, _ in merging)
    assert max(bin_.max_length or 0 for bin_ in strategy_bins(device, TYPES, parse("reg-merge esc"))) > 32
    assert {bin_.max_span is None for bin_ in strategy_bins(device, TYPES, parse("dense-span esc"))} == {False, True}


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_what_is_declared_takes_all_rows(kind: str) -> None:
    device = make_device(kind)
    labels, uneven = TUNABLE.configurations(device, "float64", "strategy"), Facts(999, True, True, 900)
    assert TUNABLE.default(device, "float64", "strategy", Features((9, 9, 9000), (90, 90)).by_name()) == labels[0]
    assert TUNABLE.default(device, "float64", "strategy", Features((9, 9, 9), (9, 9)).by_name()) in labels
    assert TUNABLE.default(device, "float64", "strategy", Features((999, 9, 9), (999, 9), uneven).by_name()) in labels
    for label in labels:
        *bins, last = bins_for("auto", device, TYPES, 1000, strategy=parse(label))
        assert last.takes_all
        assert not any(bin_.takes_all for bin_ in bins)
        assert {bin_.method for bin_ in (*bins, last)} - {""} <= METHODS.keys()


def test_features_are_what_is_known_before() -> None:
    result = Features((10, 20, 30), (50, 100)).by_name()
    assert (result["mean"], result["mean_of_b"], result["products"], result["mean_products"]) == (5, 5, 250, 25)
    assert result["fill"] == 25 / 30
    assert result["longest_by_mean"] == 1
    assert result["adjacent"] == 0.5
    known = Features((10, 20, 30), (50, 100), Facts(50, True, True, 15, 5)).by_name()
    assert (known["longest_by_mean"], known["adjacent"]) == (3, 0.1)
    assert Features((0, 0, 0), (0, 0), Facts(0, True, True, 0)).by_name()["products"] == 0


@pytest.mark.parametrize(
    ("label", "methods"),
    [
        ("esc", {"esc"}),
        ("long-rows", {"long-rows"}),
        ("reg-merge:16:5000:5000 hash long-rows", {"reg-merge", "hash", "long-rows"}),
        ("hash dense esc", {"hash", "dense"}),
    ],
)
def test_a_profile_decides(
    queue: cl.CommandQueue, real: np.dtype[Any], decided_by: DecidedBy, label: str, methods: set[str]
) -> None:
    decided_by(describe(queue.device), {"spgemm": {"any": {"strategy": {"take": label, "note": "as measured"}, **AS_GIVEN}}})
    rng = np.random.default_rng(5)
    # Neither very uneven nor dense: both have bins that come after strategies. Tables in 48 KB of local memory, which GPUs have,
    # hold rows of 4096 products.
    A = rows_of([0, *([6] * 300), *([20] * 50), 300, 350], 400, rng, real)
    B = random_matrix((400, 20_000), 20, rng, real)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B))
    explanation = plan.explain()
    assert plan.n_products > thresholds_of(describe(queue.device), TYPES).max_small_products
    assert {bin_.method for bin_ in explanation.bins} == methods
    assert explanation.rule.startswith(f"{label}, by profile made-up")
    assert "as measured" in str(explanation)
    assert_product(plan(), A, B)


def test_features_of_bins_decide(queue: cl.CommandQueue, real: np.dtype[Any], decided_by: DecidedBy) -> None:
    windows = {"feature": "bin_products", "at_most": 128, "then": {"take": "given"}, "else": {"take": "dense-windows"}}
    decided_by(describe(queue.device), {"spgemm": {"any": {"strategy": {"take": "hash esc"}, "bin": windows}}})
    rng = np.random.default_rng(7)
    A = rows_of([0, *([6] * 300), *([20] * 50), 100, 150], 400, rng, real)
    B = random_matrix((400, 20_000), 20, rng, real)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B))
    # Neighbours with one accumulator are one bin.
    assert [bin_.method for bin_ in plan.explain().bins].count("dense") == 1
    assert {bin_.method for bin_ in plan.explain().bins} == {"hash", "dense"}
    assert "; dense-windows, by profile made-up" in plan.explain().rule
    assert_product(plan(), A, B)


def test_bins_are_measured(queue: cl.CommandQueue, real: np.dtype[Any]) -> None:
    device, rng = describe(queue.device), np.random.default_rng(8)
    problem = TUNABLE.problem(queue, "made up", random_matrix((600, 600), 12, rng, real), real.name)
    assert TUNABLE.subjects(problem, "strategy") == (problem,)
    subject, *_ = TUNABLE.subjects(problem, "bin")
    assert subject.features.keys() == set(NAMES)
    assert subject.features["row_products"] == pytest.approx(144, rel=0.05)
    given, other, *_ = TUNABLE.promising(device, real.name, subject, "bin", {}, False)
    assert given == TUNABLE.default(device, real.name, "bin", subject.features) == "given"
    with programs.recording() as before:
        TUNABLE.prepare(subject, "bin", given)
    with programs.recording() as after:
        TUNABLE.prepare(subject, "bin", other)
    assert {program.parameters.name for program in before} != {program.parameters.name for program in after}
    assert TUNABLE.verify(subject)


def test_features_decide(queue: cl.CommandQueue, real: np.dtype[Any], decided_by: DecidedBy) -> None:
    split = {"feature": "mean", "at_most": 20, "then": {"take": "hash esc"}, "else": {"take": "esc"}}
    decided_by(describe(queue.device), {"spgemm": {"any": {"strategy": split, **AS_GIVEN}}})
    rng = np.random.default_rng(6)
    B = random_matrix((300, 20_000), 20, rng, real)
    for lengths, method in (([18] * 200, "hash"), ([30] * 100, "esc")):
        A = rows_of(lengths, 300, rng, real)
        plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B))
        assert {bin_.method for bin_ in plan.explain().bins} == {method}
        assert plan.explain().rule.startswith("hash esc, by" if method == "hash" else "esc, by")
        assert_product(plan(), A, B)


def test_short_rows_are_not_decided_on(queue: cl.CommandQueue, real: np.dtype[Any]) -> None:
    A = sp.csr_array(sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(100, 100)).astype(real))
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, A))
    assert plan.explain().rule == "rows of A are short or alike: made as they come, with no analysis"


def test_a_named_method_says_so(queue: cl.CommandQueue, real: np.dtype[Any]) -> None:
    A = random_matrix((40, 40), 3, np.random.default_rng(7), real)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, A), method="hash")
    assert plan.explain().rule == "the method was named"


def check_declared(queue: cl.CommandQueue, device: Device, dtype: np.dtype[Any], square: bool, labels: Sequence[str]) -> None:
    """Make a product by each strategy."""
    # Rows of few bins: each of them has kernels of its own to be built.
    matrix = rows_of([0, *([18] * 301), 150], 303 if square else 250, np.random.default_rng(8), dtype)
    problem = TUNABLE.problem(queue, "uneven", sp.csr_array(matrix), dtype.name)
    assert dtype.name in TUNABLE.dtypes(device)
    assert (problem.B is problem.A) == square
    for label in labels:
        assert TUNABLE.prepare(problem, "strategy", label)()
        assert TUNABLE.verify(problem), label
    assert problem.C is not None
    assert 0.3 < TUNABLE.features(problem)["products"] / spgemm_plan(problem.A, problem.B).n_products < 3
    problem.C.data.fill(0)
    assert not TUNABLE.verify(problem)


@pytest.mark.parametrize("square", [True, False])
def test_all_that_is_declared_multiplies(queue: cl.CommandQueue, real: np.dtype[Any], square: bool) -> None:
    device = describe(queue.device)
    check_declared(queue, device, real, square, TUNABLE.configurations(device, real.name, "strategy"))


def test_all_that_is_declared_for_gpus_multiplies(take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have a method which none before has, on the last platform: PoCL takes longer to build their kernels."""
    *_, name = PLATFORMS
    device = replace(describe(PLATFORMS[name]), type="gpu")
    take_as(type="gpu")
    monkeypatch.setattr(tunable, "describe", lambda _: device)
    dtype = np.dtype(np.float64 if device.fp64 else np.float32)
    by_method: dict[str, str] = {}
    for label in TUNABLE.configurations(device, dtype.name, "strategy"):
        for entry in parse(label).entries:
            by_method.setdefault(entry.method, label)
    assert {"hash", "reg-hash", "long-rows"} < by_method.keys()
    check_declared(queue_on(name), device, dtype, square=True, labels=tuple(dict.fromkeys(by_method.values())))


def test_nothing_to_tune_with(queue: cl.CommandQueue, real: np.dtype[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has so few products, 5,"):
        TUNABLE.problem(queue, "small", sp.eye_array(5, format="csr"), real.name)
    monkeypatch.setattr(tunable.SpgemmTunable, "min_products", 5)
    assert TUNABLE.problem(queue, "enough", sp.eye_array(5, format="csr"), real.name).name == "enough"
    matrix = random_matrix((500, 500), 30, np.random.default_rng(9), real)
    monkeypatch.setattr(tunable.SpgemmTunable, "product_bytes", 1 << 40)
    with pytest.raises(MemoryError, match="products may need more memory than"):
        TUNABLE.problem(queue, "big", matrix, real.name)
    monkeypatch.setattr(tunable, "_MAX_PRODUCTS", {True: 1, False: 1})
    with pytest.raises(ValueError, match="products, which take long"):
        TUNABLE.problem(queue, "big", matrix, real.name)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_thresholds_are_tuned_where_they_make_a_difference(
    queue: cl.CommandQueue, real: np.dtype[Any], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    device = replace(describe(queue.device), type=kind)
    take_as(type=kind)
    monkeypatch.setattr(tunable, "describe", lambda _: device)
    # Rows too long to be merged by one work-item each, and of few products, as they are multiplied by the transposed.
    matrix = rows_of([0, *([25] * 1600), 30], 40_000, np.random.default_rng(8), real)
    problem = TUNABLE.problem(queue, "even", sp.csr_array(matrix), real.name)
    usual, before = TUNABLE.thresholds(device, real.name), thresholds_of(device, TYPES).items()
    result = TUNABLE.around(device, real.name, problem, "thresholds", "untuned")
    assert TUNABLE.default(device, real.name, "thresholds", problem.features) == "untuned"
    changed = {name for label in result for name in TUNABLE.parse("thresholds", label)}
    # What is off on CPU devices stays so, and with one method there is little else to change.
    assert changed <= {name for name, value in usual.items() if value}
    assert ("sort_items" in changed or "merge_items" in changed) == (kind == "gpu")
    for label in ("untuned", *result[:2]):
        assert TUNABLE.prepare(problem, "thresholds", label)()
        assert TUNABLE.verify(problem), label
    assert thresholds_of(device, TYPES).items() == before
    for wrong in ("fastest=3", "sort_items", "sort_items=x"):
        with pytest.raises(ValueError, match=r"is no threshold|tells no changes"):
            TUNABLE.parse("thresholds", wrong)
