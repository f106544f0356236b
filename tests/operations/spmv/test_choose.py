"""Decisions, with no device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clsparse_py._device.device import Device, Portability
from clsparse_py._operations.spmv.binning import N_BINS, Scheme
from clsparse_py._operations.spmv.choose import BALANCED, KERNELS, KernelChoice, choose, has_no_long_row
from clsparse_py._operations.spmv.features import Features

GPU = Device(
    name="made up", platform="none", driver_version="1", type="gpu", compute_units=80, max_work_group=1024, local_memory=48 << 10,
    max_allocation=1 << 32, global_memory=1 << 34, preferred_multiple=32, sub_group_sizes=(), fp64=True, fp16=False,
    int64_atomics=True, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False, svm=(),
    portability=Portability("ptx", 32, "ptx"),
)  # fmt: skip
CPU = replace(GPU, type="cpu", compute_units=2, portability=Portability(), aliases_host=True)
SHORT = Features(10**6, 10**6, 5 * 10**6, 4, 5, 0.1, (0, 0, 0, 10**6 // 2, 10**6 // 2))
UNEVEN = Features(10**6, 10**6, 5 * 10**6, 0, 100_000, 1e4, (10, 10**6 - 11, *[0] * 15, 1))
EMPTY = Features(0, 0, 0, 0, 0, 0.0, (0,))
ALL = [SHORT, UNEVEN, EMPTY, replace(SHORT, longest=60), replace(UNEVEN, nnz=1 << 27), replace(EMPTY, n_rows=7, classes=(7,))]


def test_kernels_are_the_papers_and_those_it_names() -> None:
    assert KERNELS[:9] == ("serial", *(f"subvector{2**k}" for k in range(1, 8)), "vector")
    assert set(KERNELS[9:]) == {"vector_long", *BALANCED} >= {"adaptive", "nonzero_split", "merge", "chunked"}


@pytest.mark.parametrize(
    "device", [GPU, CPU, replace(GPU, type="accelerator"), replace(GPU, type="custom")], ids=lambda device: device.type
)
@pytest.mark.parametrize("features", ALL)
def test_every_matrix_gets_a_decision(device: Device, features: Features) -> None:
    for scheme in ("auto", "single", "fine", "coarse-10", "hybrid-1000"):
        decision = choose(features, device, scheme, None)
        assert decision.rule
        assert str(decision.scheme) == (scheme if scheme != "auto" else str(decision.scheme))
        if decision.scheme.name == "single":
            assert [len(side) for side in decision.kernels] == [1]
        else:
            assert [len(side) for side in decision.kernels] == [N_BINS] * len(decision.scheme.sides)
            assert all(choice.name not in BALANCED for side in decision.kernels for choice in side)
        assert choose(features, device, scheme, None) == decision
        for side in decision.kernels:
            assert all(1 <= choice.work_group <= device.max_work_group for choice in side)


def test_rows_of_very_different_length_are_balanced() -> None:
    for device in (GPU, CPU):
        ((choice,),) = choose(UNEVEN, device, "auto", None).kernels
        assert choice.name in BALANCED


def test_rows_are_cut_only_where_one_is_more_than_a_compute_unit_has_to_do() -> None:
    assert not has_no_long_row(UNEVEN, GPU)
    assert has_no_long_row(replace(UNEVEN, longest=UNEVEN.nnz // GPU.compute_units), GPU)
    assert not has_no_long_row(replace(UNEVEN, longest=UNEVEN.nnz // GPU.compute_units + 1), GPU)


def test_small_values_may_get_other_kernels_than_large_ones() -> None:
    many = Features(10**6, 10**6, 5 * 10**6, 5, 5, 0.0, ())
    single, double = (choose(many, GPU, "auto", None, dtype).kernels[0][0] for dtype in ("float32", "float64"))
    assert single.name != double.name
    assert len({choose(many, CPU, "auto", None, dtype).kernels[0][0].name for dtype in ("float32", "float64")}) == 1


def test_cpu_devices_get_their_own_kernels() -> None:
    ((choice,),) = choose(UNEVEN, CPU, "auto", None).kernels
    assert choice.name == "chunked"
    ((other,),) = choose(UNEVEN, GPU, "auto", None).kernels
    assert other.name != "chunked"


def test_bins_of_longer_rows_get_no_fewer_work_items() -> None:
    for scheme in ("fine", "coarse-100", "hybrid-100"):
        for side in choose(UNEVEN, GPU, scheme, None).kernels:
            widths = [choice.lanes for choice in side if choice.name != "vector_long"]
            assert widths == sorted(widths)
            assert widths[0] == 1
            assert widths[50] > 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_a_named_kernel_is_taken(kernel: str, device: Device) -> None:
    for scheme in ("auto", "single"):
        decision = choose(UNEVEN, device, scheme, kernel)
        assert decision.scheme == Scheme("single")
        assert decision.kernels[0][0].name == kernel
        own = KernelChoice(kernel, 7, items=3, unroll=1)
        assert choose(UNEVEN, device, scheme, own).kernels == ((own,),)
    if kernel in BALANCED:
        for asked in (kernel, KernelChoice(kernel)):
            with pytest.raises(
                ValueError, match=rf'^kernel: {kernel} balances rows by itself; it goes with scheme="single", not "fine"'
            ):
                choose(UNEVEN, device, "fine", asked)
    elif kernel == "vector_long":
        assert choose(UNEVEN, device, "fine", kernel).kernels[0][0].name == "vector_long"
        for scheme in ("coarse-10", "hybrid-10"):
            with pytest.raises(ValueError, match=rf'^kernel: vector_long cuts single rows; .*, not "{scheme}"'):
                choose(UNEVEN, device, scheme, kernel)
    else:
        decision = choose(UNEVEN, device, "hybrid-10", kernel)
        assert {choice.name for side in decision.kernels for choice in side} == {kernel}


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [("csr5", ValueError, r"^kernel: must be one of serial, .*, is 'csr5'"),
     ("subvector3", ValueError, r"^kernel: must be one of"), ("subvector256", ValueError, r"^kernel: must be one of"),
     (3, TypeError, r"^kernel: must be a name, a KernelChoice or None, is int")],
)  # fmt: skip
def test_what_is_no_kernel_is_refused(kernel: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        choose(SHORT, GPU, "auto", kernel)


@pytest.mark.parametrize("field", ["work_group", "items", "unroll"])
def test_parameters_are_positive(field: str) -> None:
    with pytest.raises(ValueError, match=rf"^kernel: {field} must be from 1 to"):
        KernelChoice("merge", **{field: 0})


def test_widths_and_names() -> None:
    assert KernelChoice("serial", 64).lanes == 1
    assert KernelChoice("subvector16", 64).lanes == 16
    assert KernelChoice("vector", 64).lanes == 64
    assert str(KernelChoice("merge", 64, items=7)) == "merge (work-group 64, 7 items)"
    assert str(KernelChoice("serial", 64, unroll=2)) == "serial (work-group 64, unrolled by 2)"


def test_unknown_schemes_are_refused() -> None:
    for kernel in (None, "serial"):
        with pytest.raises(ValueError, match=r'^scheme: must be "auto"'):
            choose(SHORT, GPU, "best", kernel)


@pytest.mark.parametrize(
    "label", ["serial", "adaptive/128", "adaptive/128/6/1", "csr5/128/6", "adaptive/0/6", "adaptive/x/6", ""]
)
def test_unknown_labels_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match=r"^kernel: "):
        KernelChoice.parse(label)


def test_labels_name_choices() -> None:
    for name in KERNELS:
        assert KernelChoice.parse(f"{name}/64/3").label == f"{name}/64/3"
    assert KernelChoice.parse("adaptive/128/6") == KernelChoice("adaptive", 128, items=6)
    assert KernelChoice.parse("vector/128/2") == KernelChoice("vector", 128, unroll=2)
    with pytest.raises(ValueError, match=r"^kernel: merge balances rows by itself and takes no bins"):
        KernelChoice.parse_for_bin("merge/128/6")
