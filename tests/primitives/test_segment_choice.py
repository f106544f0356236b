"""How segmented sort chooses its kernels: labels of shapes, a made-up profile that decides, all that is declared."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from chains import on_device, pointers_of
from platforms import PLATFORMS, queue_on

from clsparse_py._build import programs
from clsparse_py._device.device import Device, describe
from clsparse_py._primitives import reference
from clsparse_py._primitives.segmented_sort import MergeSerial, SortNetwork
from clsparse_py._primitives.segments import Elements, Shape
from clsparse_py._tuner.sort_tunable import SegmentedSortTunable
from clsparse_py.primitives import segmented_sort

TUNABLE = SegmentedSortTunable()


@pytest.mark.parametrize(
    "shape", [Shape.lanes(256, 512, 16), Shape.lanes(64, 48, 4, 32), Shape.chunks(1), Shape.chunks(7, 50, 8)]
)
def test_a_label_names_a_shape(shape: Shape) -> None:
    assert Shape.parse(str(shape)) == shape


@pytest.mark.parametrize(
    "label",
    ["", "lanes", "lanes/256/512/16", "lanes/256/512/16/x", "lanes/250/512/16/128", "lanes/256/512/2/128", "lanes/256/512/16/2",
     "lanes/256/512/16/128/1", "chunks/1/5", "chunks/0/5/3", "chunks/1/-5/3", "chunks/1/5/0", "tiles/1/5/3"],
)  # fmt: skip
def test_what_is_no_label(label: str) -> None:
    with pytest.raises(ValueError, match=r"^shape: (must be such as|.* must be a number from 1 to)"):
        Shape.parse(label)


def make_device(kind: str) -> Device:
    return replace(
        describe(next(iter(PLATFORMS.values()))),
        name="made up",
        platform="made up",
        type=kind,
        max_work_group=1024,
        local_memory=48 << 10,
    )


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_generic_profiles_have_the_default(kind: str) -> None:
    device = make_device(kind)
    features = {"n": 10, "segments": 3, "mean": 3.3, "key_bytes": 4, "value_bytes": 0}
    label = TUNABLE.default(device, "any", "shape", features)
    assert Shape.parse(label) == Shape.default(device)
    assert label == TUNABLE.configurations(device, "any", "shape")[0]


def test_what_a_device_cannot_have_is_not_tried() -> None:
    few = replace(make_device("gpu"), max_work_group=256)
    shapes = [Shape.parse(label) for label in TUNABLE.configurations(few, "any", "shape")]
    assert shapes
    assert max(max(shape.work_group, shape.merge_group) for shape in shapes) <= 256
    assert len(TUNABLE.configurations(replace(few, max_work_group=64), "any", "shape")) == 1
    assert len({str(shape.legal(few, Elements("int32", 4))) for shape in shapes}) == len(shapes)


def sorters(queue: cl.CommandQueue, n: int) -> list[Any]:
    """Return the records of the kernels that sort n elements in two segments, which are then right."""
    ptr, keys = pointers_of([n - 40, 40]), np.random.default_rng(n).integers(0, 1 << 20, n).astype(np.int32)
    with programs.recording() as built:
        result = segmented_sort(on_device(queue, ptr), on_device(queue, keys))
    np.testing.assert_array_equal(result.get(), reference.segmented_sort(ptr, keys))
    return [program.parameters for program in built if isinstance(program.parameters, (SortNetwork, MergeSerial))]


@pytest.mark.parametrize("label", ["lanes/64/128/8/32", "lanes/32/64/4/64", "chunks/1/100/8"])
def test_a_profile_decides(queue: cl.CommandQueue, decided_by: Callable[[Device, dict[str, Any]], None], label: str) -> None:
    decided_by(describe(queue.device), {"segmented_sort": {"any": {"shape": {"take": label}}}})
    shape, kernels = Shape.parse(label), sorters(queue, 1000)
    assert {kernel.runs.tile for kernel in kernels if isinstance(kernel, MergeSerial) or kernel.ranges == "tiles"} == {shape.tile}
    if shape.chunked:
        assert {kernel.block for kernel in kernels} == {8}
        assert all(isinstance(kernel, MergeSerial) for kernel in kernels)
    else:
        short = next(kernel for kernel in kernels if kernel.ranges == "segments")
        assert short.bins[-1] == min(shape.short, 4 * shape.work_group)
        assert {kernel.work_group for kernel in kernels} == {shape.work_group}


def test_features_decide(queue: cl.CommandQueue, decided_by: Callable[[Device, dict[str, Any]], None]) -> None:
    few, many = "lanes/32/64/4/128", "chunks/1/64/24"
    split = {"feature": "n", "at_most": 500, "then": {"take": few}, "else": {"take": many}}
    decided_by(describe(queue.device), {"segmented_sort": {"any": {"shape": split}}})
    assert {type(sorter) for sorter in sorters(queue, 400)} == {SortNetwork}
    assert {type(sorter) for sorter in sorters(queue, 600)} == {MergeSerial}


def test_all_that_is_declared_sorts(queue: cl.CommandQueue) -> None:
    check_declared(queue, describe(queue.device))


def test_all_that_is_declared_for_gpus_sorts() -> None:
    """On one platform, the last: PoCL takes longer to build all of it."""
    *_, name = PLATFORMS
    check_declared(queue_on(name), replace(describe(PLATFORMS[name]), type="gpu"))


def check_declared(queue: cl.CommandQueue, device: Device) -> None:
    """Sort with each shape that is declared for a device, keys alone and with values in turns."""
    lengths = [0, 5, 1, 300, 33, 0, 7000, 64, 129]
    indices = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    matrix = sp.csr_array((np.ones(indices.size, np.float32), indices, pointers_of(lengths)), shape=(len(lengths), 7000))
    problem = TUNABLE.problem(queue, "uneven", matrix, "any")
    subjects = TUNABLE.subjects(problem, "shape")
    assert {(subject.elements.key, subject.elements.value_bytes) for subject in subjects} == {("uint64", 0), ("int32", 8)}
    for label, subject in zip(TUNABLE.configurations(device, "any", "shape"), itertools.cycle(subjects), strict=False):
        assert TUNABLE.features(subject)["n"] == sum(lengths)
        for out in subject.out:
            out.fill(0)
        assert TUNABLE.prepare(subject, "shape", label)()
        assert TUNABLE.verify(subject)
    subjects[0].out[0].fill(0)
    assert not TUNABLE.verify(subjects[0])


def test_nothing_to_tune_with(queue: cl.CommandQueue) -> None:
    with pytest.raises(ValueError, match="has no entries"):
        TUNABLE.problem(queue, "empty", sp.csr_array((3, 3)), "any")
