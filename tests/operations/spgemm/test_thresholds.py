"""Thresholds of SpGEMM: every shipped profile holds them, the closest profile decides on each, what is none is reported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from platforms import PLATFORMS
from problems import assert_product, device_matrix, random_matrix

from clsparse_py import spgemm_plan
from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device, Portability, describe
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.merge import merges
from clsparse_py._operations.spgemm.methods.sort import sorts
from clsparse_py._operations.spgemm.thresholds import Thresholds, override_thresholds, thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic

TYPES = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")
DecidedBy = Callable[..., None]


def device(kind: str = "gpu") -> Device:
    """A device of a type that no profile names."""
    result = replace(describe(next(iter(PLATFORMS.values()))), name="made up", platform="made up", vendor="made up", type=kind)
    return replace(result, local_memory=48 << 10, max_work_group=1024, portability=Portability("ptx", 32))


def test_shipped_profiles_hold_what_is_better_elsewhere() -> None:
    for path in profiles.list_shipped():
        profile = profiles.read(path, shipped=True)
        usual = Thresholds.defaults(on_cores=profile.device["type"] == "cpu")
        for by_name in profile.content["thresholds"].get("spgemm", {}).values():
            assert all(array.get("cases") or array.get("note") for array in by_name.values()), (
                f"{path}: a threshold has no evidence"
            )
            assert by_name.keys() <= usual.keys()
        assert "name" in profile.device or not profile.content["thresholds"], f"{path}: defaults are declared"
        assert profile.content["made"].keys() & {"command", "note"}, path


def test_shapes_follow_thresholds() -> None:
    gpu, limits = device(), thresholds_of(device(), TYPES)
    assert [sort.products for sort in sorts(limits, registers=True)] == [1 << bit for bit in range(1, 10)]
    assert [(sort.lanes, sort.items) for sort in sorts(limits, registers=True)][:4] == [(1, 2), (2, 2), (2, 4), (4, 4)]
    assert [(sort.lanes, sort.items) for sort in sorts(replace(limits, sort_items=8), registers=True)][3] == (2, 8)
    shapes = [(merge.lanes, merge.items) for merge in merges(gpu, TYPES, limits, registers=True)]
    assert shapes == [(1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (4, 8), (8, 8), (16, 8), (32, 8), (32, 16), (32, 32)]
    few = replace(limits, merge_items=4, merge_item_length=8, max_merge_lanes=8)
    shapes = [(merge.lanes, merge.items) for merge in merges(gpu, TYPES, few, registers=True)]
    assert shapes == [(1, 1), (1, 2), (1, 4), (1, 8), (4, 4), (8, 4), (8, 8), (8, 16)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sort_items", 3, "must be a power of two"),
        ("merge_items", 128, "must be a whole number from 2 to 64"),
        ("max_item_length", 1.5, "must be a whole number"),
        ("expected_fill", -1, "must be a number from 0 to 1"),
        ("expected_fill", 2, "must be a number from 0 to 1"),
        ("max_small_products", 1e29, "must be a whole number from 0"),
        ("esc_item_products", 64, "must be a whole number from 1 to 32"),
        ("min_span", 768, "must be a power of two"),
        ("min_span", 8192, "must rise"),
        ("fastest", 1, "fastest is no threshold"),
    ],
)
def test_what_is_no_threshold_is_reported(
    decided_by: DecidedBy, caplog: pytest.LogCaptureFixture, name: str, value: float, message: str
) -> None:
    gpu = device()
    usual = thresholds_of(gpu, TYPES).items()
    decided_by(gpu, {}, {"spgemm": {"any": {name: {"value": value}}}})
    with caplog.at_level(logging.WARNING):
        assert thresholds_of(gpu, TYPES).items() == usual
        assert thresholds_of(gpu, TYPES) is thresholds_of(gpu, TYPES)
    (record,) = caplog.records
    assert message in record.getMessage()


def test_the_closest_profile_decides_on_each(decided_by: DecidedBy) -> None:
    gpu = device()
    usual = thresholds_of(gpu, TYPES)
    single = replace(TYPES, arithmetic=Arithmetic("float32", "float32"))
    mine = {"any": {"max_joined_rows": {"value": 8}}, "float64": {"sort_items": {"value": 2}}}
    decided_by(gpu, {}, {"spgemm": mine})
    assert thresholds_of(gpu, TYPES).items() == replace(usual, max_joined_rows=8, sort_items=2).items()
    assert thresholds_of(gpu, single).items() == replace(usual, max_joined_rows=8).items()
    assert thresholds_of(device("cpu"), TYPES).items() != usual.items()


def test_a_product_is_made_by_its_thresholds(queue: cl.CommandQueue, real: np.dtype[Any]) -> None:
    A = random_matrix((60, 60), 4, np.random.default_rng(3), real)
    left = device_matrix(queue, A)
    types = replace(TYPES, arithmetic=Arithmetic(real.name, real.name))
    usual = thresholds_of(describe(queue.device), types)
    assert {bin_.method for bin_ in spgemm_plan(left, left).explain().bins} == {"reg-merge"}
    with override_thresholds(replace(usual, max_small_products=0)):
        plan = spgemm_plan(left, left)
        assert_product(plan(), A, A)
    # On GPUs such rows are short enough without that limit.
    assert ("rows of A are short" in plan.explain().rule) == (not describe(queue.device).lanes_are_loops)
    assert thresholds_of(describe(queue.device), types) is usual
