"""Rules of which a kernel is refused: the rows that they would take go to other rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from clsparse_py import by_host, refusals
from clsparse_py._spgemm.arguments import memory_limit_of
from clsparse_py._spgemm.bins import Rule, Rules
from clsparse_py._spgemm.decide import DENSE_CHUNKED, auto, decided, is_narrow
from clsparse_py._spgemm.kernels import Form
from clsparse_py._spgemm.methods.dense_windows import DenseWindows
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.long_rows import LongRows
from clsparse_py.device import Device
from clsparse_py.errors import BuildError
from clsparse_py.primitives import either_way

__all__ = ["UPPER_BOUND", "RefusedError", "described", "refused_of", "until_built", "without_refused"]

T = TypeVar("T")

#: Avoided besides accumulators: C allocated by its upper bound.
UPPER_BOUND = "upper bound"


def _about(form: Form) -> Hashable:
    """Return what kernels of all phases of a product have in common."""
    return "spgemm", form.index, form.wide, form.arithmetic


class RefusedError(Exception):
    """A kernel of a product is refused.

    Parameters
    ----------
    device : Device
    form : Form
    what : hashable
        What cannot be used without it: an accumulator, or another way to make rows.
    error : BuildError
    """

    def __init__(self, device: Device, form: Form, what: Any, error: BuildError) -> None:
        super().__init__(str(error))
        self.device, self.form, self.what, self.error = device, form, what, error

    @property
    def is_known(self) -> bool:
        """Whether products do without already."""
        return self.what in refused_of(self.device, self.form)

    def avoid(self) -> None:
        """Have later products do without.

        Raises
        ------
        BuildError
            They did already: there is no other way.
        """
        if self.is_known:
            raise self.error
        refusals.avoid(self.device, _about(self.form), self.what, self.error)


def until_built(make: Callable[[], T]) -> T:
    """Return what a function returns, which is called again after each refusal, and does without what was refused then."""
    while True:
        try:
            return make()
        except RefusedError as refusal:  # noqa: PERF203 - what is tried takes far longer
            refusal.avoid()


def refused_of(device: Device, form: Form) -> Mapping[Hashable, BuildError]:
    """Return what products of a form do without: accumulators and other ways, with the refusal of each."""
    return refusals.avoided(device, _about(form))


def described(device: Device, form: Form) -> str:
    """Return which kernels are done without, in words that follow others."""
    refused = (*refused_of(device, form).values(), *either_way.refused_of(device).values(), *by_host.refused_of(device).values())
    return refusals.in_words(error.kernel for error in refused)


def without_refused(rules: Rules, device: Device, form: Form, n_columns: int, memory_limit: int | None) -> Rules:
    """Return rules for the same rows with other accumulators where a kernel of one was refused; the rules if there is no such."""
    refused = refused_of(device, form)
    return (
        _without(rules, frozenset(refused), device, form, n_columns, memory_limit_of(device, memory_limit)) if refused else rules
    )


# Kept: rules are told apart by identity, and what is made of them is kept by them.
@functools.lru_cache(maxsize=256)
def _without(rules: Rules, refused: frozenset[Hashable], device: Device, form: Form, n_columns: int, room: int) -> Rules:
    last = (Rule("esc", Esc(sparing=True)), Rule("long-rows", LongRows(sparing=True)), Rule("dense", DenseWindows()))
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
