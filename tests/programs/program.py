"""Programs of steps, each a statement that means the same to our arrays and to SciPy's; the values of their inputs."""

from __future__ import annotations

import copy
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Input", "Program", "Step", "literal", "variables_of"]


def variables_of(text: str) -> list[str]:
    """Return the variables of a text: v0, v1, ..."""
    import re

    return list(dict.fromkeys(re.findall(r"\bv\d+\b", text)))


@dataclass
class Step:
    """A statement.

    Attributes
    ----------
    ours, oracle : str
        An expression, or a statement after which ``target`` is looked at. The oracle's is ours unless it is given.
    grade : {"move", "sum", "product", "round"}
        "move": values are those of operands, or are computed one by one as NumPy does, bit for bit. "sum", "product": exact if
        numbers of as many bits hold every sum in every order; products have the unit of all operands together. "round": within
        ``tolerance`` units of the last place of the largest value, or of the largest of ``magnitude``.
    magnitude : str
        What the oracle makes of absolute values, if that is not its own text: bounds of sums.
    terms : int
        Numbers that are added up, at most.
    apart : tuple of str
        Variables that are no factors of a product: what is added to it, and masks.
    same : str
        Another expression of ours with the same value.
    stored : bool
        Whether as many entries are stored as in SciPy's result.
    signs : bool
        Whether zeros have the signs of SciPy's.
    fails : tuple of int and str, optional
        Which command or allocation fails in a first attempt, and by which of OpenCL's errors.
    """

    name: str
    ours: str
    oracle: str = ""
    target: str = ""
    grade: str = "move"
    magnitude: str = ""
    terms: int = 1
    apart: tuple[str, ...] = ()
    tolerance: float = 64.0
    same: str = ""
    stored: bool = True
    signs: bool = False
    fails: tuple[int, str] | None = None

    def uses(self) -> list[str]:
        """Return the variables that it reads."""
        of = variables_of(" ".join((self.ours, self.oracle, self.same, self.magnitude)))
        return [name for name in of if name != self.target]

    def lines(self) -> list[str]:
        """Return what a script says of it."""
        failing = [f"failing{(*self.fails, '')}".replace("'')", f"lambda: {self.ours})")] if self.fails else []
        return [*failing, f"{self.target} = {self.ours}" if self.target else self.ours]


@dataclass
class Input:
    """A matrix or an array that a program begins with.

    Attributes
    ----------
    kind : {"csr", "csc", "coo", "array"}
        An array of SciPy's and ours, or a dense one.
    made : {"parts", "coordinates", "scipy", "dense", "device", "host"}
        Of what: parts and coordinates may be on the device.
    arrays : tuple of ndarray
        Rows, columns and values in the order of entries; of a dense array its values.
    """

    kind: str
    made: str
    shape: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]
    index: str = "int32"
    on_device: bool = True
    queue: str = "q"
    target: str = ""
    name: str = "input"
    order: str = "C"

    def uses(self) -> list[str]:
        """Return the variables that it reads: none."""
        return []

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """The arguments of the constructor."""
        if self.kind == "array":
            return (np.asarray(self.arrays[0], order=self.order),)  # type: ignore[call-overload]
        row, col, values = self.arrays
        if self.kind == "coo" or self.made == "coordinates":
            return values, row.astype(self.index), col.astype(self.index)
        major, minor, n = (row, col, self.shape[0]) if self.kind == "csr" else (col, row, self.shape[1])
        order = np.argsort(major, kind="stable")
        pointers = np.concatenate(([0], np.cumsum(np.bincount(major, minlength=n)[:n])))
        return values[order], minor[order].astype(self.index), pointers.astype(self.index)

    def text(self, ours: bool) -> str:
        """Return the expression that makes it of its parts."""
        names = [f"{self.target}_{i}" for i in range(len(self.parts))]
        if ours and self.on_device and self.made != "scipy":
            names = [f"cl_array.to_device({self.queue}, {name})" for name in names]
        if self.kind == "array":
            return names[0]
        tail, module = (f", queue={self.queue}", "sp") if ours else ("", "sp")
        form = (
            f"({names[0]}, ({names[1]}, {names[2]}))"
            if self.kind == "coo" or self.made == "coordinates"
            else f"({', '.join(names)})"
        )
        if self.made == "scipy" and ours:
            return f"sp.{self.kind}_array(scipy.sparse.{self.kind}_array({form}, shape={self.shape}){tail})"
        return f"{module}.{self.kind}_array({form}, shape={self.shape}{tail})"

    def lines(self) -> list[str]:
        """Return what a script says of it."""
        named = [f"{self.target}_{i} = {literal(part)}" for i, part in enumerate(self.parts)]
        return [*named, f"{self.target} = {self.text(True)}"]


def rtol_of(wanted: Any) -> float:
    """Return the tolerance of a script whose values are rounded."""
    return 1e-4 if getattr(wanted, "dtype", np.dtype(float)).char in "fF" else 1e-10


def _dense(wanted: Any) -> np.ndarray:
    """Return NumPy's array of the right value, as ``host`` makes it of ours."""
    if isinstance(wanted, tuple):
        return np.concatenate([np.ravel(_dense(item)) for item in wanted])
    return wanted.toarray() if hasattr(wanted, "toarray") else np.asarray(wanted)


def literal(array: np.ndarray) -> str:
    """Return the text of an array, packed if there are many numbers."""
    array = np.asarray(array)
    order = ", order='F'" if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous else ""
    if array.size <= 60 and (array.dtype.kind != "c" or np.isfinite(array).all()):
        return f"np.array({array.tolist()!r}, '{array.dtype.name}'{order}).reshape({array.shape})"
    packed = b64encode(zlib.compress(array.tobytes("C"), 9)).decode()
    made = f"np.frombuffer(zlib.decompress(b64decode('{packed}')), '{array.dtype.name}').reshape({array.shape})"
    return f"np.array({made}{order})"


@dataclass
class Program:
    """Steps, and how the process and its queues are set up."""

    steps: list[Step | Input] = field(default_factory=list)
    settings: tuple[str, ...] = ()
    queues: tuple[str, ...] = ("ordered", "ordered")
    origin: str = ""

    def with_steps(self, steps: list[Step | Input]) -> Program:
        """Return a program of other steps."""
        return replace(self, steps=[copy.copy(step) for step in steps])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.steps)

    def script(self, result: str, wanted: Any, bounded: bool) -> str:
        """Return a script that runs by itself, of a program whose last step is wrong."""
        last = self.steps[-1]
        lines = [
            *(f"# {line}" for line in [*result.splitlines(), self.origin]),
            "",
            "from tests.programs.prelude import *",
            "",
            *self.settings,
        ]
        lines += [f"q, q2 = map(queue, {self.queues!r})"]
        for step in self.steps[:-1]:
            lines += step.lines()
        lines += last.lines()[:-1]
        if isinstance(wanted, Exception):
            lines += [
                "try:",
                f"    {last.lines()[-1]}",
                f"except {type(wanted).__name__}:",
                "    pass",
                "else:",
                f"    raise AssertionError({f'{type(wanted).__name__} is wanted: {wanted}'!r})",
            ]
            return "\n".join(lines) + "\n"
        lines += last.lines()[-1:]
        same = getattr(last, "same", "")
        if same:
            lines += [f"check({same}, host({last.target}))"]
        if wanted is not None:
            rtol = rtol_of(wanted) if bounded else 0
            lines += [f"check({last.target}, {literal(_dense(wanted))}, {rtol}, {getattr(last, 'signs', False)})"]
        return "\n".join(lines) + "\n"
