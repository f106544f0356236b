"""Small kernels that run a few statements for each of n entries: each is a row of a table, over one template."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Parameters, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import MOVED_TYPES, OPENCL_TYPES, Arithmetic

__all__ = ["LOOPS", "Loop", "LoopKernel", "declare_loop"]

#: Those that were declared.
LOOPS: list[Loop] = []


@dataclass(frozen=True)
class Loop:
    """A kernel of a few statements for each entry, as OpenCL C that uses names.

    Attributes
    ----------
    template : str
        The kernel's name, such as "primitives/permute".
    does : str
        What it computes, from what.
    takes : str
        Its arguments behind those of `spread`: "const I *indptr, I *lengths, ulong n_rows". Arrays share no memory.
    lines : tuple of str
        Statements for an entry.
    entry : str
        What the number of an entry is called in them.
    last : tuple of str
        Statements behind all entries.
    types : str
        The names of types in the statements: I of indices, V of values that are moved, and others that `record` is given.
    includes : tuple of str
        Files of ``cl/``.
    """

    template: str
    does: str
    takes: str
    lines: tuple[str, ...]
    entry: str = "i"
    last: tuple[str, ...] = ()
    types: str = "I"
    includes: tuple[str, ...] = ()

    def record(self, work_group: int, *types: str) -> LoopKernel:
        """Return the record for types, in the order of `types`: NumPy's names of dtypes, or OpenCL's of what is moved."""
        return LoopKernel(work_group, self, types)

    @property
    def arguments(self) -> str:
        """Its arguments as OpenCL C has them."""
        return textwrap.fill(", ".join(map(_argument, self.takes.split(", "))), 120, subsequent_indent=4 * " ")

    @property
    def comment(self) -> str:
        """What it computes, in lines of a comment."""
        return textwrap.fill(self.does, 120, initial_indent="// ", subsequent_indent="// ")


def _argument(written: str) -> str:
    """Return an argument in OpenCL C: a macro as it is."""
    kind, star, name = written.partition("*")
    if star:
        return f"global {kind}*restrict {name}"
    return f"const {written}" if " " in written else written


def declare_loop(template: str, does: str, takes: str, *lines: str, **more: Any) -> Loop:
    """Return a kernel of a few statements for each entry, and register it; ``more`` are further fields of `Loop`."""
    LOOPS.append(Loop(template, does, takes, lines, **more))
    return LOOPS[-1]


@kernel
@dataclass(frozen=True)
class LoopKernel(Parameters):
    """Parameters of ``templates/loops/loop.mako``.

    Attributes
    ----------
    of : Loop
    named : tuple of str
        NumPy's names of the dtypes that its types stand for, or OpenCL's of types.
    """

    of: Loop
    named: tuple[str, ...]

    file = "loops/loop"

    @property
    @override
    def template(self) -> str:
        return self.of.template

    @property
    @override
    def name(self) -> str:
        return "_".join((self.template.replace("/", "_"), *self.named, f"wg{self.work_group}"))

    @property
    @override
    def prelude(self) -> str:
        types = zip(self.of.types.split(), self.named, strict=True)
        return "\n".join(f"typedef {OPENCL_TYPES.get(named, named)} {letter};  // {named}" for letter, named in types)

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group, "of": self.of}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        group, moved = min(128, device.max_work_group), MOVED_TYPES[np.dtype(arithmetic.a).itemsize]
        for of in LOOPS:
            yield "", of.record(group, *(moved if each == "V" else arithmetic.index for each in of.types.split()))
