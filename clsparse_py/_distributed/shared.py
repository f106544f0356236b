"""The base of distributed matrices and vectors, and checks of collective calls."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from clsparse_py._distributed.communicator import Communicator
from clsparse_py._precision.arithmetic import name_of

__all__ = ["Distributed", "OverRanks", "collective", "describe", "extend_history", "require_same_ranks", "spell"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


class OverRanks:
    """Base of objects over ranks, which NumPy's operators leave to the objects, and NumPy's functions do not take."""

    __array_ufunc__ = None

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Raise a TypeError: a rank has a part of the object alone."""
        raise TypeError(f"{type(self).__name__}: an object over ranks is no array of one device or the host; gather() makes one")

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> NoReturn:
        """Raise a TypeError for a function of NumPy, which would take the object for a number."""
        raise TypeError(f"{function.__name__}: an object over ranks has methods of its own")


class Distributed(OverRanks):
    """Base of matrices, vectors and plans over ranks: a rank has a part of the object.

    Attributes
    ----------
    comm : Communicator
    history : str
        The operations on the object that sent no message since all ranks made the object together. The next call with a
        message takes the history along, and so shows ranks whose numbers, dtypes or calls differ.
    """

    comm: Communicator
    history = ""


def extend_history(step: str, *operands: Distributed) -> str:
    """Return the history of an operation's result, a text that ranks compare: the step, and a checksum of operands' histories."""
    histories = "".join(operand.history for operand in operands)
    return f" after {step}" + (f" and {zlib.crc32(histories.encode()):08x}" if histories else "")


def spell(number: Any) -> str:
    """Return the text of a Python or NumPy scalar as a Python number, so that equal numbers have equal texts."""
    return repr(number.item() if hasattr(number, "item") else number)


def require_same_ranks(name: str, operand: Distributed, comm: Communicator) -> None:
    """Raise a ValueError, whose message has the name, if an operand is over other ranks than those of a communicator."""
    if not comm.shares_ranks(operand.comm):
        raise ValueError(f"{name}: is over the ranks of another team or communicator")


def describe(*operands: Any) -> str:
    """Return the dtypes, shapes and histories of operands over ranks as text, for ranks to compare; others are left out."""
    over_ranks = (operand for operand in operands if isinstance(operand, Distributed))
    return ", ".join(f"{name_of(operand.dtype)} of shape {operand.shape}{operand.history}" for operand in over_ranks)  # type: ignore[attr-defined]


def collective(method: _Method) -> _Method:
    """Decorate a method of an object over ranks: its exception on one rank ends the waits of all other ranks."""

    @functools.wraps(method)
    def call_together(self: Any, *arguments: Any, **named: Any) -> Any:
        """Call the decorated method; its exception on this rank ends the waits of all other ranks."""
        with self.comm.together():
            return method(self, *arguments, **named)

    return cast("_Method", call_together)
