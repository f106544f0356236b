"""The base of distributed matrices and vectors, and checks of collective calls."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from clsparse_py._distributed.communicator import Communicator
from clsparse_py._precision.arithmetic import name_of

__all__ = ["Distributed", "collective", "describe", "extend_history", "spell"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Distributed:
    """Base of the objects of which each rank has a part.

    Attributes
    ----------
    comm : Communicator
    history : str
        What was done to the object since all ranks made it together. They tell one another nothing at such operations: the
        next call that has a message takes this along, and ranks whose numbers, dtypes or calls differ see it.
    """

    # NumPy's operators leave the operation to the object.
    __array_ufunc__ = None

    comm: Communicator
    history = ""


def extend_history(step: str, *operands: Distributed) -> str:
    """Return the history of a step's result: the step in words, and a checksum of the operands' histories."""
    histories = "".join(operand.history for operand in operands)
    return f" after {step}" + (f" and {zlib.crc32(histories.encode()):08x}" if histories else "")


def spell(number: Any) -> str:
    """Return a number as Python writes it, whatever it is a scalar of: with what the dtype of results depends on."""
    return repr(number.item() if hasattr(number, "item") else number)


def describe(*operands: Any) -> str:
    """Return the dtypes, shapes and histories of operands as text, the same on all ranks."""
    over_ranks = (operand for operand in operands if isinstance(operand, Distributed))
    return ", ".join(f"{name_of(operand.dtype)} of shape {operand.shape}{operand.history}" for operand in over_ranks)  # type: ignore[attr-defined]


def collective(method: _Method) -> _Method:
    """Make an exception of a method on one rank end the waits of all others."""

    @functools.wraps(method)
    def together(self: Any, *arguments: Any, **named: Any) -> Any:
        with self.comm.together():
            return method(self, *arguments, **named)

    return cast("_Method", together)
