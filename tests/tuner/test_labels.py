"""Labels of all operations: whatever a profile says, a parser refuses it or gives numbers that any device can be given."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_profiles import CPU, GPU

from clsparse_py._decisions import profiles
from clsparse_py._decisions import tree as trees
from clsparse_py._decisions.labels import number
from clsparse_py._device.device import Portability, choose_device, describe
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.segments import Elements
from clsparse_py._tuner.tunable import Tunable, tunables

TUNABLES = tunables()
QUESTIONS = [(operation, question) for operation, tunable in TUNABLES.items() for question in tunable.questions]
#: More than any number of a label may be.
HIGHEST = 1 << 31
#: What takes long enough to be felt.
SECONDS = 1.0

ODD = [-1, "", "٣", "1e9", "0x1", "+1"]
numbers = st.one_of(st.integers(0, 70), st.integers(0, 1 << 34), st.just(10**20), st.sampled_from(ODD))
#: Labels that are declared, with one or more of their numbers changed, and any text.
declared = sorted(
    {label for tunable in TUNABLES.values() for question in tunable.questions for device in (CPU, GPU)
     for dtype in tunable.dtypes(device) for label in tunable.configurations(device, dtype, question)}
)  # fmt: skip


@st.composite
def changed_labels(draw: st.DrawFn) -> str:
    """Return a declared label with other numbers."""
    parts = draw(st.sampled_from(declared))
    words = "".join(part if not part.isdecimal() else "#" for part in parts)
    while "##" in words:
        words = words.replace("##", "#")
    while "#" in words:
        words = words.replace("#", str(draw(numbers)), 1)
    return words


def integers(value: Any) -> list[int]:
    """Return all numbers inside what a parser gave."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, dict):
        return []  # thresholds: none but those of a list are parsed
    inside = value if isinstance(value, (tuple, list)) else [getattr(value, name) for name in value.__dataclass_fields__]
    return [integer for part in inside for integer in integers(part)]


def shape_label(tunable: Tunable[Any], question: str, parsed: Any) -> None:
    """Do what a product does with a label before it builds: find the nearest that a device takes."""
    for device in (CPU, GPU, replace(GPU, max_work_group=64, local_memory=16 << 10), replace(CPU, local_memory=1 << 21)):
        if tunable.operation == "spmv" and question != "scheme":
            record = parsed.record(device, Arithmetic("float64", "float64"), False)
            assert 1 <= record.work_group <= device.max_work_group
        elif tunable.operation == "segmented_sort":
            assert parsed.legal(device, Elements("int64", 8)).bins is not None


@pytest.mark.parametrize(("operation", "question"), QUESTIONS)
@given(label=st.one_of(changed_labels(), st.text(max_size=40)))
def test_any_label_is_refused_or_bounded(operation: str, question: str, label: str) -> None:
    tunable = TUNABLES[operation]
    begin = time.thread_time()
    try:
        parsed = tunable.parse(question, label)
    except ValueError as error:
        assert len(str(error)) < 400  # noqa: PT017 - the other branch asserts too
    else:
        assert all(0 <= integer <= HIGHEST for integer in integers(parsed))
        shape_label(tunable, question, parsed)
    assert time.thread_time() - begin < SECONDS


@pytest.mark.parametrize(("operation", "question"), QUESTIONS)
def test_all_that_is_declared_is_parsed(operation: str, question: str) -> None:
    tunable = TUNABLES[operation]
    for device in (CPU, GPU, describe(choose_device())):
        for dtype in tunable.dtypes(device):
            for label in tunable.configurations(device, dtype, question):
                shape_label(tunable, question, tunable.parse(question, label))


@pytest.mark.parametrize("path", profiles.list_shipped(), ids=lambda path: path.stem)
def test_what_shipped_profiles_take_is_what_the_search_tries(path: Path) -> None:
    """What is put into a tree by hand is to be found, or found to be worse, by the next run of the command."""
    profile = profiles.read(path, shipped=True)
    # A GPU whose lanes find equal values, as teams that share a table do.
    device = CPU if profile.device["type"] == "cpu" else replace(GPU, portability=Portability("ptx", 32, "ptx", match="ptx"))
    for operation, question in QUESTIONS:
        for dtype in TUNABLES[operation].dtypes(device):
            tree = profile.tree(operation, dtype, question)
            tried = TUNABLES[operation].configurations(device, dtype, question)
            assert {leaf.label for leaf in trees.leaves(tree)} <= {*tried} if tree else True, (operation, dtype, question)


HOSTILE = [
    ("spmv", "single", "serial/256/1000000"),
    ("spmv", "single", "subvector128/256/100000"),
    ("spmv", "single", "vector_long/256/99999"),
    ("spmv", "single", "adaptive/256/99999999"),
    ("spmv", "single", "merge/256/99999999"),
    ("spmv", "single", "chunked/1/99999999999999999999"),
    ("spmv", "bin", "serial/99999999/1"),
    ("spmv", "scheme", "coarse-99999999999999999999"),
    ("spmv", "scheme", "coarse-٣"),
    ("transpose", "method", "gather:99999999999999999999 binned"),
    ("transpose", "method", "atomics:4294967296 binned"),
    ("segmented_sort", "shape", "lanes/256/512/1024/128"),
    ("segmented_sort", "shape", "chunks/1/99999999999999999999/24"),
    ("segmented_sort", "shape", "chunks/1/32768/1000000"),
    ("masked", "accumulator", "team:99999999999999999999"),
    ("masked", "accumulator", "team:100"),
    ("spgemm", "strategy", "reg-merge:1:99999999999999999999:1 esc"),
]


@pytest.mark.parametrize(("operation", "question", "label"), HOSTILE)
def test_numbers_that_no_device_has_are_refused(operation: str, question: str, label: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        TUNABLES[operation].parse(question, label)


def test_a_number_is_decimal_and_within_its_bounds() -> None:
    assert [number(text, "x", 0, 1024) for text in ("0", "7", "1024")] == [0, 7, 1024]
    for text in ("", "-1", "+1", "1025", "00001", "1.0", "٣", "1" * 5000):
        with pytest.raises(ValueError, match=r"^x must be a number from 0 to 1024, is "):
            number(text, "x", 0, 1024)
