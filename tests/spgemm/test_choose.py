"""Which rules a method gives: decided with no device, on made-up ones."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device, Portability
from clsparse_py.spgemm.choose import METHODS, rules_for
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.rules import EMPTY

GPU = Device(
    "a card", "a platform", "1", "gpu", 64, 1024, 48 << 10, 1 << 30, 1 << 32, 32, (), True, True, True, False, False, False, (),
    Portability("ptx", 32, "ptx"),
)  # fmt: skip
CPU = replace(GPU, type="cpu", compute_units=2, portability=Portability("local", 1, "plain"))
FORM = Form("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")


@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_every_row_is_taken(method: str, device: Device) -> None:
    """Rows without products first, then the method's own bins, then auto's; the last takes any row, and only that one does."""
    rules = rules_for(method, device, FORM)
    assert rules[0] is EMPTY
    assert [rule.takes_all for rule in rules] == [False] * (len(rules) - 1) + [True]
    assert all(rule.method in METHODS and rule.accumulator is not None for rule in rules[1:])
    if method != "auto":
        named = [rule.method == method for rule in rules[1:]]
        assert named[0]
        assert named == sorted(named, reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_bins_ascend(method: str) -> None:
    """A bin that takes no more than the one before it would have no rows."""
    limits = [rule.limits for rule in rules_for(method, GPU, FORM)[1:] if rule.method == method]
    wide = [tuple(np.inf if limit < 0 else limit for limit in each) for each in limits]
    for before, after in itertools.pairwise(wide):
        assert any(later > earlier for earlier, later in zip(before, after, strict=True)), (before, after)


def test_dense_accumulators_need_room_for_every_column() -> None:
    assert rules_for("auto", CPU, FORM, n_columns=10**6)[1].method == "dense"
    for n_columns, limit in ((1 << 33, None), (10**6, 10**6)):
        for method in ("auto", "dense"):
            rules = rules_for(method, CPU, FORM, n_columns, limit)
            assert all(rule.method != "dense" for rule in rules)
            assert rules[-1].takes_all
    assert rules_for("dense", GPU, FORM, n_columns=1 << 33)[1].method == "dense"


def test_auto_takes_short_rows_apart_on_gpus() -> None:
    assert len({rule.method for rule in rules_for("auto", GPU, FORM)}) > 2
