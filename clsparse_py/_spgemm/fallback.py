"""Rules of which a kernel is refused: the rows that they would take go to other rules."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import replace

from clsparse_py._spgemm.arguments import memory_limit_of
from clsparse_py._spgemm.bins import Rule, Rules
from clsparse_py._spgemm.decide import DENSE_CHUNKED, auto, decided, is_narrow
from clsparse_py._spgemm.kernels import Form
from clsparse_py._spgemm.methods.dense_windows import DenseWindows
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.long_rows import LongRows
from clsparse_py._spgemm.refused import refused_of
from clsparse_py.device import Device

__all__ = ["without_refused"]


def without_refused(rules: Rules, device: Device, form: Form, n_columns: int, memory_limit: int | None) -> Rules:
    """Return rules for the same rows with other accumulators where a kernel of one was refused; the rules if there is no such."""
    refused = refused_of(device, form)
    return (
        _without(rules, frozenset(refused), device, form, n_columns, memory_limit_of(device, memory_limit)) if refused else rules
    )


# Kept: rules are told apart by identity, and what is made of them is kept by them.
@functools.lru_cache(maxsize=256)
def _without(rules: Rules, refused: frozenset[Hashable], device: Device, form: Form, n_columns: int, room: int) -> Rules:
    last = (Rule("esc", Esc(bounded=True)), Rule("long-rows", LongRows(bounded=True)), Rule("dense", DenseWindows()))
    others = (*rules, *auto(device, form, decided(device, form).value), *last, DENSE_CHUNKED)
    narrow = is_narrow(form, n_columns, room)
    able = [
        rule
        for rule in others
        if rule.accumulator and rule.accumulator not in refused and rule.holds(n_columns, room, narrow=narrow)
    ]
    return Rules(_replaced(rule, able) if rule.accumulator in refused else rule for rule in rules)


def _replaced(rule: Rule, others: Sequence[Rule]) -> Rule:
    """Return a rule for the same rows that one of some others can take; the rule itself if none can."""
    taker = next((other for other in others if other.covers(rule)), rule)
    return replace(taker, max_products=rule.max_products, max_length=rule.max_length, max_span=rule.max_span)
