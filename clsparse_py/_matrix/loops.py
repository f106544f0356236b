"""Small kernels that run a few statements for each of n entries: rows of a table, rendered by one template."""

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
from clsparse_py._run.launch import Chain, spread

__all__ = ["LOOPS", "Loop", "LoopKernel", "declare_loop", "enqueue_loop"]

#: Most work-groups of a loop kernel (`Loop`) to a compute unit of a GPU.
_GROUPS_PER_UNIT = 64
#: Most work-groups of a loop kernel (`Loop`) to a core of a CPU.
_GROUPS_PER_CORE = 4
#: The loop kernels (`Loop`) that modules have declared, in the order of declaration.
LOOPS: list[Loop] = []


@dataclass(frozen=True)
class Loop:
    """A kernel of a few OpenCL C statements for each entry, in which names such as I and V stand for types.

    Attributes
    ----------
    name : str
        The kernel's name, such as "primitives/permute", with a variant behind a colon if there are several.
    description : str
        The results of the loop, and the arrays that it reads.
    declarations : str
        The arguments of the kernel behind those of `spread`: "const I *indptr, I *lengths, ulong n_rows". Arrays share no memory.
    statements : tuple of str
        The OpenCL C statements for an entry.
    counter : str
        The variable of the statements that has the number of the entry.
    epilogue : tuple of str
        OpenCL C statements behind the loop.
    types : str
        The names of types in the statements: I of indices, V of values that are moved, T of values, REAL of real and
        COMPLEX of complex values, KEY of keys that are sorted; other names are of indices.
    includes : tuple of str
        Names of files of ``cl/`` that the kernel includes.
    """

    name: str
    description: str
    declarations: str
    statements: tuple[str, ...]
    counter: str = "i"
    epilogue: tuple[str, ...] = ()
    types: str = "I"
    includes: tuple[str, ...] = ()

    def record(self, work_group: int, *types: str) -> LoopKernel:
        """Return the loop kernel's parameter record for the names of types, NumPy's or OpenCL's, in the order of `types`."""
        return LoopKernel(work_group, self, types)

    @property
    def arguments(self) -> str:
        """The declarations of the loop kernel's arguments in OpenCL C."""
        return textwrap.fill(", ".join(map(_declare_argument, self.declarations.split(", "))), 120, subsequent_indent=4 * " ")

    @property
    def comment(self) -> str:
        """The description of the loop, as lines of a comment in OpenCL C."""
        return textwrap.fill(self.description, 120, initial_indent="// ", subsequent_indent="// ")


def _declare_argument(declaration: str) -> str:
    """Return the OpenCL C declaration of a loop kernel's argument, with its qualifiers; a single word, a macro, is unchanged."""
    kind, star, name = declaration.partition("*")
    if star:
        return f"global {kind}*restrict {name}"
    return f"const {declaration}" if " " in declaration else declaration


def declare_loop(name: str, description: str, declarations: str, *statements: str, **more: Any) -> Loop:
    """Register a kernel of a few statements for each entry, and return its `Loop`; ``more`` are further fields of `Loop`."""
    LOOPS.append(Loop(name, description, declarations, statements, **more))
    return LOOPS[-1]


def enqueue_loop(
    chain: Chain, loop: Loop, n: int, types: tuple[str, ...], *arguments: Any, work_group: int | None = None
) -> None:
    """Enqueue a loop kernel over n entries, with types as for `Loop.record`; the default work-group is 1 on CPUs, else 256."""
    in_loops = chain.device.lanes_are_loops
    group = min(work_group or (1 if in_loops else 256), chain.device.max_work_group)
    built, record = chain.build(loop.record(group, *types))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_CORE if in_loops else _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, *arguments)


@kernel
@dataclass(frozen=True)
class LoopKernel(Parameters):
    """Parameters of ``templates/loops/loop.mako``.

    Attributes
    ----------
    row : Loop
    types : tuple of str
        The types that the names in the loop's statements stand for: NumPy's names of dtypes, or OpenCL's of types.
    """

    row: Loop
    types: tuple[str, ...]

    file = "loops/loop"

    @property
    @override
    def template(self) -> str:
        """The loop's name up to ":", that is without the variant."""
        return self.row.name.partition(":")[0]

    @property
    @override
    def name(self) -> str:
        """The kernel's name: the loop's name, types and work-group size."""
        return "_".join((self.row.name.replace("/", "_").replace(":", "_"), *self.types, f"wg{self.work_group}"))

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: a typedef for each letter of the loop's `types`."""
        types = zip(self.row.types.split(), self.types, strict=True)
        lines = [f"typedef {OPENCL_TYPES.get(type_name, type_name)} {letter};  // {type_name}" for letter, type_name in types]
        if {"float64", "complex128"} & {*self.types}:
            lines.insert(0, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        return "\n".join(lines)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, and the loop's declaration as ``row``."""
        return {"work_group": self.work_group, "row": self.row}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield an example record of each declared loop; the variant is the part of the loop's name after ":"."""
        group, moved_type = min(128, device.max_work_group), MOVED_TYPES[np.dtype(arithmetic.a).itemsize]
        real = np.zeros(0, arithmetic.a).real.dtype.name
        pair = "complex128" if real == "float64" else "complex64"
        usual = {"V": moved_type, "T": arithmetic.a, "REAL": real, "COMPLEX": pair, "KEY": "uint64"}
        for loop in LOOPS:
            types = (usual.get(type_letter, arithmetic.index) for type_letter in loop.types.split())
            yield loop.name.partition(":")[2], loop.record(group, *types)
