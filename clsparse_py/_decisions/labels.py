"""Numbers in labels (names of configurations in profiles): every number has bounds, as a label may come from any file."""

from __future__ import annotations

__all__ = ["MOST", "number"]

#: Largest number in a label (name of a configuration) that has no closer bound: the largest ``int`` of OpenCL C.
MOST = (1 << 31) - 1


def number(text: str, name: str, lowest: int, highest: int) -> int:
    """Return the number that ``text``, a part of a label (a configuration's name), holds as digits; raise if out of bounds.

    Parameters
    ----------
    text : str
        Decimal digits.
    name : str
        The number's name in the error's message.
    lowest, highest : int
        Bounds of the number.

    Raises
    ------
    ValueError
        The text is no number, or the number is out of bounds.
    """
    # The number of digits in a label is limited, as the conversion of very many digits takes long.
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(highest))
    value = int(text) if digits else lowest - 1
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be a number from {lowest} to {highest}, is {text[:40]!r}")
    return value
