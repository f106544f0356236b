"""Which bins methods give, on made-up devices: no device is asked."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from made_up_products import TYPES, device

from clsparse_py._device.device import Device, Portability
from clsparse_py._operations.spgemm.accumulator import Product, Rows
from clsparse_py._operations.spgemm.bins import EMPTY
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.hash import HashRows
from clsparse_py._operations.spgemm.methods.team import SynchronisedKernel, Team
from clsparse_py._operations.spgemm.registry import FAMILIES, METHODS
from clsparse_py._operations.spgemm.strategy import bins_for
from clsparse_py._precision.arithmetic import Arithmetic


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_the_last_rule_takes_all(method: str, kind: str) -> None:
    bins = bins_for(method, device(kind), TYPES, 1000)
    assert bins[0] == EMPTY
    assert bins[-1].takes_all
    assert not any(bin_.takes_all for bin_ in bins[:-1])


def test_each_method_is_of_a_family() -> None:
    assert sorted(method for methods in FAMILIES.values() for method in methods) == sorted(METHODS)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_named_comes_before_what_auto_chooses(method: str, kind: str) -> None:
    methods = [bin_.method for bin_ in bins_for(method, device(kind), TYPES, 1000)[1:]]
    assert methods[0] == method
    assert method not in methods[methods.count(method) :] or methods.count(method) == len(methods)


def test_gpus_mix_methods_and_cpu_devices_do_not() -> None:
    assert {bin_.method for bin_ in bins_for("auto", device("cpu"), TYPES, 1000)[1:]} == {"dense"}
    assert {"reg-merge", "reg-sort", "dense", "esc"} <= {bin_.method for bin_ in bins_for("auto", device("gpu"), TYPES, 1000)[1:]}


def test_no_room_for_dense_accumulators() -> None:
    bins = bins_for("auto", device("cpu"), TYPES, 1 << 20, 1 << 20)
    assert "dense" not in {bin_.method for bin_ in bins}
    assert bins[-1].takes_all


@pytest.mark.parametrize("method", ["sort", "reg-sort", "esc-local"])
def test_sorted_words_hold_a_column_and_the_number_of_a_product(method: str) -> None:
    # Of so many columns, as many as fit beside the numbers of the products that each bin takes.
    for bits in (40, 50, 54, 58, 62):
        for bin_ in bins_for(method, device("gpu"), replace(TYPES, wide=True), 1 << bits):
            if bin_.method == method and bin_.max_products is not None:
                assert bits + (bin_.max_products - 1).bit_length() <= 64


def small_device() -> Device:
    """A GPU with work-groups of 64 and 16 KiB of local memory, whose lanes exchange values through local memory."""
    return replace(device("gpu"), max_work_group=64, local_memory=16 << 10, portability=Portability())


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_little_local_memory_holds_the_kernels_of_bins(method: str, index: str, dtype: str, deterministic: bool) -> None:
    types = replace(TYPES, index=index, arithmetic=Arithmetic(dtype, dtype, index), c_index=index)
    kind = Kind(small_device(), types)
    nothing: Any = None
    product = Product(*(15 * [nothing]))._replace(kind=kind, shape=(1000, 1000), deterministic=deterministic)
    rows = Rows(1000, listed=nothing)
    for bin_ in bins_for(method, kind.device, types, 1000)[1:]:
        teams = [bin_.accumulator] if isinstance(bin_.accumulator, Team) else []
        # A table that leaves rows out is followed by a larger one.
        teams += [replace(team, min_entries=256) for team in teams if isinstance(team, HashRows)]
        for team, phase in itertools.product(teams, ("symbolic", "numeric", "upper_bound", "values")):
            record = team.predict_record(product, rows, phase)
            assert not isinstance(record, SynchronisedKernel) or record.row_bytes <= kind.device.local_memory, record.name
