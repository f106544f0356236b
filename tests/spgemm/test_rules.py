"""Which rules methods give, on made-up devices: no device is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from platforms import PLATFORMS

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device, Portability, describe
from clsparse_py.spgemm.choose import METHODS, alone, rules_for, small
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.merge import Merge
from clsparse_py.spgemm.rules import EMPTY, Rule

FORM = Form("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")


def device(kind: str) -> Device:
    """A device of a type, with 32 lanes that exchange values where it is a GPU."""
    found = replace(describe(next(iter(PLATFORMS.values()))), type=kind, local_memory=48 << 10, max_work_group=1024)
    return replace(found, portability=Portability("ptx", 32)) if kind == "gpu" else found


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_the_last_rule_takes_all(method: str, kind: str) -> None:
    rules = rules_for(method, device(kind), FORM, 1000)
    assert rules[0] == EMPTY
    assert rules[-1].takes_all
    assert not any(rule.takes_all for rule in rules[:-1])


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_named_comes_before_what_auto_chooses(method: str, kind: str) -> None:
    methods = [rule.method for rule in rules_for(method, device(kind), FORM, 1000)[1:]]
    assert methods[0] == method
    assert method not in methods[methods.count(method) :] or methods.count(method) == len(methods)


def test_gpus_mix_methods_and_cpu_devices_do_not() -> None:
    assert {rule.method for rule in rules_for("auto", device("cpu"), FORM, 1000)[1:]} == {"dense"}
    assert {"reg-merge", "large-hash", "long-rows"} <= {rule.method for rule in rules_for("auto", device("gpu"), FORM, 1000)[1:]}


def test_no_room_for_dense_accumulators() -> None:
    rules = rules_for("auto", device("cpu"), FORM, 1 << 20, 1 << 20)
    assert "dense" not in {rule.method for rule in rules}
    assert rules[-1].takes_all


RULES = (
    EMPTY,
    Rule("reg-merge", Merge(1, 2), max_length=2),
    Rule("reg-merge", Merge(1, 8), max_length=8),
    Rule("merge", Merge(1, 9, registers=False)),
)


@pytest.mark.parametrize(
    ("taken", "longest", "heads"), [((0, 3, 4, 0), 5, 5), ((2, 3, 0, 0), 2, 2), ((0, 3, 4, 1), 5, None), ((0, 3, 4, 0), 13, None)]
)
def test_short_rows_are_merged_in_their_order(taken: tuple[int, ...], longest: int, heads: int | None) -> None:
    found = alone(RULES, taken, longest)
    assert (found and found.accumulator) == (heads and Merge(1, heads))


@pytest.mark.parametrize(
    ("kind", "longest", "length"), [("gpu", 5, 8), ("gpu", 30, 32), ("gpu", 65, None), ("cpu", 9, 16), ("cpu", 17, None)]
)
def test_small_products_take_one_launch(kind: str, longest: int, length: int | None) -> None:
    found = small(device(kind), FORM, longest)
    assert (found and found.max_length) == length
    assert found is None or found.method == "reg-merge"
