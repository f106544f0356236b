"""Which kernels tests optimise: a template's first with each dtype and each other choice that is no number."""

from __future__ import annotations

from dataclasses import replace

import pytest
from platforms import PLATFORMS
from unoptimised import MOST, Choices

from clsparse_py._command.catalogue import catalogue
from clsparse_py._device.device import describe
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._precision.arithmetic import Arithmetic


@pytest.fixture
def record() -> ProductKernel:
    """Return the record of a product's kernel."""
    result = catalogue(describe(next(iter(PLATFORMS.values()))), Arithmetic("float32", "float32"))["adaptive"]
    assert isinstance(result, ProductKernel)
    return result


def test_sizes_are_nothing_new(record: ProductKernel) -> None:
    choices = Choices()
    assert choices.has_new(record)
    assert not choices.has_new(replace(record, work_group=record.work_group // 2))
    # The same record is optimised again, as for another context.
    assert choices.has_new(record)


@pytest.mark.parametrize("other", [{"a": "float64"}, {"index": "int64"}, {"semiring": "or_and"}], ids=str)
def test_each_choice_is_new_once(record: ProductKernel, other: dict[str, str]) -> None:
    choices, arithmetic = Choices(), replace(record.arithmetic, **other)
    assert choices.has_new(record)
    assert choices.has_new(replace(record, arithmetic=arithmetic))
    assert not choices.has_new(replace(record, arithmetic=arithmetic, work_group=1))
    scaled = replace(record, scaled=not record.scaled)
    assert choices.has_new(scaled)
    # All of its choices were there, though not together.
    assert not choices.has_new(replace(scaled, arithmetic=arithmetic))


def test_few_of_a_template_are_optimised() -> None:
    choices, device = Choices(), describe(next(iter(PLATFORMS.values())))
    names = ("float32", "float64", "int32", "int64", "uint8", "complex64")
    records = [catalogue(device, Arithmetic(name, name))["adaptive"] for name in names]
    results = [choices.has_new(entry) for entry in records]
    assert results == [True] * MOST + [False] * (len(names) - MOST)
    assert [choices.has_new(entry) for entry in records] == results


def test_templates_are_apart(record: ProductKernel) -> None:
    choices = Choices()
    device = describe(next(iter(PLATFORMS.values())))
    assert choices.has_new(record)
    assert choices.has_new(catalogue(device, Arithmetic("float32", "float32"))["merge"])
