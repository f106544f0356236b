"""The methods of SpGEMM: which rules each gives, and which rules "auto" is made of. Pure functions of device and form."""

from __future__ import annotations

from collections.abc import Callable

from clsparse_py.device import Device
from clsparse_py.spgemm.dense_chunked import DenseChunked
from clsparse_py.spgemm.esc import Esc
from clsparse_py.spgemm.kernels import Form
from clsparse_py.spgemm.merge import Merge
from clsparse_py.spgemm.rules import EMPTY, Rule

__all__ = ["METHODS", "auto", "rules_for"]

#: Entries of a row of A that "reg-merge" takes, bin by bin.
_HEADS = (1, 2, 4, 8, 16, 32)


def reg_merge(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the bins of "reg-merge": by entries of a row of A."""
    return tuple(Rule("reg-merge", Merge(heads), max_length=heads) for heads in _HEADS)


def dense(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "dense": it takes any row."""
    return (Rule("dense", DenseChunked()),)


def esc(device: Device, form: Form) -> tuple[Rule, ...]:  # noqa: ARG001
    """Return the one bin of "esc": it takes any row."""
    return (Rule("esc", Esc()),)


METHODS: dict[str, Callable[[Device, Form], tuple[Rule, ...]]] = {
    "reg-merge": reg_merge,
    "dense": dense,
    "esc": esc,
}


def auto(device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the rules of "auto", of which the last takes any row."""
    if device.is_cpu:
        return dense(device, form)
    return (*reg_merge(device, form), *esc(device, form))


def rules_for(method: str, device: Device, form: Form) -> tuple[Rule, ...]:
    """Return the rules of a method, rows without products first; rows that it cannot hold go to the rules of "auto"."""
    named = () if method == "auto" else METHODS[method](device, form)
    rules: list[Rule] = []
    for rule in (EMPTY, *named, *auto(device, form)):
        rules.append(rule)
        if rule.takes_all:
            break
    return tuple(rules)
