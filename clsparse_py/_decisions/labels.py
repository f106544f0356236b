"""Numbers in labels: each has bounds, as a label may come from any file."""

from __future__ import annotations

__all__ = ["MOST", "number"]

#: Largest number in a label without a closer bound: fits an ``int`` of OpenCL C.
MOST = (1 << 31) - 1


def number(text: str, name: str, lowest: int, highest: int) -> int:
    """Return a number of a label.

    Parameters
    ----------
    text : str
        Decimal digits.
    what : str
        What the number is of, for the error.
    lowest, highest : int
        What it may be.

    Raises
    ------
    ValueError
        It is no number, or out of bounds.
    """
    # So many digits at most: to read them takes time, too.
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(highest))
    value = int(text) if digits else lowest - 1
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be a number from {lowest} to {highest}, is {text[:40]!r}")
    return value
