"""Accumulators whose kernels give each row to a team: neighbouring work-items, from one to a work-group."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Any, TypeVar

from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._build.built import Built
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.kernels import KernelTypes, RowKernel
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._run.launch import Chain

__all__ = ["Team", "vary"]

_Team = TypeVar("_Team", bound="Team")


@dataclass(frozen=True)
class Team(abc.ABC):
    """An accumulator of one kernel template, with a team of work-items to a row.

    Subclasses give `record`. Both phases are one template.
    """

    @abc.abstractmethod
    def record(self, device: Device, types: KernelTypes, listed: bool) -> RowKernel:
        """Return the legal record of the kernel for a phase."""

    @abc.abstractmethod
    def describe(self) -> str:
        """Return its parameters in a few words."""

    def prepare(self, chain: Chain, product: Product, rows: Rows) -> object:  # noqa: ARG002 - teams keep nothing
        """Return nothing: a team needs nothing beside the operands."""
        return None

    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:  # noqa: ARG002
        """Enqueue the number of entries of each row."""
        self._enqueue(chain, product, rows, "symbolic", counts)

    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:  # noqa: ARG002
        """Enqueue columns and values of each row, with its number of entries if they are to be counted, or values alone."""
        results = C[:3] if C.counts is None else C
        self._enqueue(chain, product, rows, phase, product.a_data, product.b_data, *results, entries=C.data.size)

    def adapt(self, device: Device, product: Product, entries: int | None = None) -> Self:  # noqa: ARG002 - most are always alike
        """Return the team adapted to a product; ``entries``: number of entries of C, if it is known."""
        return self

    def predict_record(self, product: Product, rows: Rows, phase: str) -> RowKernel | None:
        """Return the record of the kernel that a phase will take; None if that is not known yet."""
        return _record(product.kind, self.adapt(product.kind.device, product), phase, rows.listed is not None)

    def _built(self, chain: Chain, product: Product, rows: Rows, phase: str, entries: int | None = None) -> tuple[Built, Any]:
        """Return the kernel for a phase of a product, and its record."""
        team, kind, listed = self.adapt(chain.device, product, entries), product.kind, rows.listed is not None
        return chain.build_once((kind, team, phase, listed), lambda: _record(kind, team, phase, listed))

    def _enqueue(self, chain: Chain, product: Product, rows: Rows, phase: str, *results: Any, entries: int | None = None) -> None:
        """Enqueue the kernel that makes rows in a phase."""
        built, record = self._built(chain, product, rows, phase, entries)
        groups, own_arguments = self._spread(chain, product, rows, record)
        chain.launch(built, groups, *rows.where, *product.structure, *results, *own_arguments)

    def _spread(self, chain: Chain, product: Product, rows: Rows, record: Any) -> tuple[int, tuple[Any, ...]]:  # noqa: ARG002
        """Return how many work-groups make the rows, and the kernel's last arguments, of which most have none."""
        return record.groups(rows.n), ()


def vary(team: _Team, field: str, value: Any) -> _Team:
    """Return a team with another value of a field, as a product asks for it."""
    return replace(team, **{field: value})


def _record(kind: Kind, team: Team, phase: str, listed: bool) -> RowKernel:
    """Return a team's record for a phase."""
    return team.record(kind.device, kind.types.of(phase), listed)
