"""Kernels that compilers for CPUs build unoptimised in tests, in a quarter of the time: those that show them nothing new.

A kernel is optimised if it is the first of its template, in this process, with one of its dtypes, its semiring, or another
choice that is no number, up to `MOST` of a template. Kernels that differ from those in sizes, or combine the same choices anew,
are not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyopencl as cl

from clsparse_py._build import programs
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import describe

__all__ = ["MOST", "Choices", "install"]

#: Kernels of a template that are optimised, at most: templates of elementwise operations have a hundred choices.
MOST = 4


class Choices:
    """The choices that kernels have shown a compiler so far."""

    def __init__(self) -> None:
        self._seen: dict[str, set[tuple[str, object]]] = {}
        self._with_new: dict[str, set[Parameters]] = {}

    def has_new(self, parameters: Parameters) -> bool:
        """Return whether a record is among the first of its template with one of its choices; the same whenever it is asked."""
        seen = self._seen.setdefault(parameters.template, set())
        with_new = self._with_new.setdefault(parameters.template, set())
        new = {*_choices(parameters)} - seen
        if new and len(with_new) < MOST:
            seen |= new
            with_new.add(parameters)
        return parameters in with_new


def _choices(record: object, field: str = "") -> Iterator[tuple[str, object]]:
    """Yield what of a record is no number, each value with the name of its field, and that the record is there."""
    if dataclasses.is_dataclass(record):
        yield field, type(record).__name__
        for field_ in dataclasses.fields(record):
            yield from _choices(getattr(record, field_.name), f"{field}.{field_.name}")
    elif isinstance(record, tuple):
        for part in record:
            yield from _choices(part, field)
    elif isinstance(record, bool) or not isinstance(record, (int, float)):
        yield field, record


def install() -> None:
    """Make this process build such kernels so from now on."""
    build, choices = programs._build_kernel, Choices()

    def kernel(context: cl.Context, device: cl.Device, parameters: Parameters, source: str) -> tuple[cl.Program, cl.Kernel]:
        gains = device.type & cl.device_type.CPU
        # Unoptimised, fewer lanes than the compiler takes by itself do not exchange values: four gave wrong products.
        narrow = 1 < parameters.lane_width < describe(device).portability.lane_width
        if not gains or narrow or choices.has_new(parameters):
            return build(context, device, parameters, source)
        unoptimised: Any = SimpleNamespace(name=parameters.name, options=(*parameters.options, "-cl-opt-disable"))
        return build(context, device, unoptimised, source)

    programs._build_kernel = kernel
