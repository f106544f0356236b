"""Compile semirings that users define by OpenCL C expressions, as a check before use."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._build import programs
from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import Semiring

__all__ = ["SemiringCheck", "require_semiring"]


@kernel
@dataclass(frozen=True)
class SemiringCheck(programs.Parameters):
    """Parameters of ``templates/semirings/check.mako``.

    Attributes
    ----------
    arithmetic : Arithmetic
    """

    template = "semirings/check"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}

    arithmetic: Arithmetic

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: macros of a device without lanes, and the semiring's arithmetic."""
        return f"{Portability().defines}\n{self.arithmetic.prelude}"


def require_semiring(queue: cl.CommandQueue, semiring: Semiring, a: np.dtype, x: np.dtype, *, sums: bool = True) -> None:
    """Raise a ValueError unless a device's compiler takes a user's semiring and, if ``sums``, its addition has an identity.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A queue of the device.
    semiring : Semiring
        A semiring defined by OpenCL C expressions.
    a, x : dtype
        The dtypes of the operands' values.
    sums : bool
        Whether the identity of addition is needed.

    Raises
    ------
    ValueError
        An expression does not compile, and the message has the compiler's words and the line; or addition has no identity.
    """
    if sums:
        semiring.identity(semiring.result_dtype(a, x))
    check = SemiringCheck(1, Arithmetic(a.name, x.name, "int32", semiring.name))
    programs.worked_out(queue.context, queue.device, check, lambda: _build_check(queue, semiring, check))


def _build_check(queue: cl.CommandQueue, semiring: Semiring, check: SemiringCheck) -> cl.Program:
    """Return the compiled program of the kernel that tries a user's semiring; raise a ValueError if an expression is wrong.

    `programs.build` is passed by, as it records refused kernels: a wrong expression of a user is none.
    """
    source = programs.render(check)
    try:
        return programs.compile_source(queue.context, queue.device, source)
    except cl.RuntimeError as error:
        lines = "\n".join(line for line in source.splitlines() if line.startswith(("T ADD", "T MULTIPLY")))
        types = f"for {check.arithmetic.a} and {check.arithmetic.x} on {queue.device.name.strip()}"
        raise ValueError(f"semiring: {semiring!r} does not compile {types}.\n{lines}\nThe compiler says:\n{error}") from None
