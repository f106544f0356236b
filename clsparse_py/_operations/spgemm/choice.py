"""Labels of accumulators, as profiles have them.

A label is a method, whose accumulator for such rows makes them: "hash". With ":together" one accumulator makes the rows of all
bins with that label, even if the longest row of A is among them: "reg-merge:together". "given" is the accumulator that the
strategy gives them, and "last" that of its last bin, if all bins between have no rows or go there too.
"""

from __future__ import annotations

from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.registry import PARTS

__all__ = ["GIVEN", "LAST", "Choice", "parse_choice"]

#: Name of a choice: the accumulator that the strategy gives to the bin.
GIVEN = "given"
#: Name of a choice: the accumulator of the last bin.
LAST = "last"
#: End of a label by which one accumulator makes the rows of all bins with this choice.
_TOGETHER = ":together"


@dataclass(frozen=True)
class Choice:
    """The accumulator of a bin's rows, as a label names it.

    Attributes
    ----------
    method : str
        A name in `PARTS`, `GIVEN` or `LAST`.
    together : bool
        Whether one accumulator makes the rows of all bins with this choice.
    """

    method: str
    together: bool = False

    def __str__(self) -> str:
        return self.method + _TOGETHER * self.together


def parse_choice(label: str) -> Choice:
    """Return the choice that a label names.

    Raises
    ------
    ValueError
        It names none.
    """
    method = label.removesuffix(_TOGETHER)
    if method not in PARTS and label not in (GIVEN, LAST):
        raise ValueError(f"bin: {method!r} is no method, in {label!r}")
    return Choice(method, method != label)
