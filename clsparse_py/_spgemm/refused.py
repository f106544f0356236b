"""Kernels of SpGEMM that a compiler refuses: noted, so that products do without them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ParamSpec, TypeVar

from clsparse_py import by_host, refusals
from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py.device import Device
from clsparse_py.errors import BuildError
from clsparse_py.primitives import either_way

__all__ = ["UPPER_BOUND", "RefusedError", "described", "refused_of", "until_built"]

P = ParamSpec("P")
T = TypeVar("T")

#: Avoided besides accumulators: C allocated by its upper bound.
UPPER_BOUND = "upper bound"


def _about(types: KernelTypes) -> Hashable:
    """Return the key of the kernels of all phases of a product."""
    return "spgemm", types.index, types.wide, types.arithmetic


class RefusedError(Exception):
    """A kernel of a product is refused.

    Parameters
    ----------
    device : Device
    types : KernelTypes
    what : hashable
        An accumulator or another way to make rows, which needs the kernel.
    error : BuildError
    """

    def __init__(self, device: Device, types: KernelTypes, what: Any, error: BuildError) -> None:
        super().__init__(str(error))
        self.device, self.types, self.what, self.error = device, types, what, error

    @property
    def is_known(self) -> bool:
        """Whether products do without already."""
        return self.what in refused_of(self.device, self.types)

    def avoid(self) -> None:
        """Have later products do without.

        Raises
        ------
        BuildError
            They did already: there is no other way.
        """
        if self.is_known:
            raise self.error
        refusals.avoid(self.device, _about(self.types), self.what, self.error)


def until_built(make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return the result of a function; after each refusal it is called again, and does without the refused kernel then."""
    while True:
        try:
            return make(*arguments, **named)
        except RefusedError as refusal:  # noqa: PERF203 - each try takes far longer
            refusal.avoid()


def refused_of(device: Device, types: KernelTypes) -> Mapping[Hashable, BuildError]:
    """Return the accumulators and other ways that products of some types do without, with the refusal of each."""
    return refusals.avoided(device, _about(types))


def described(device: Device, types: KernelTypes) -> str:
    """Return which kernels are done without, in words that follow others."""
    refused = (*refused_of(device, types).values(), *either_way.refused_of(device).values(), *by_host.refused_of(device).values())
    return refusals.in_words(error.kernel for error in refused)
