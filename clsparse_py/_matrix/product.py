"""The base record of kernels of products with a dense operand: SpMV, SpMM and SDDMM."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["ProductKernel"]


@dataclass(frozen=True)
class ProductKernel(Parameters):
    """Base of the records of kernels of products with a dense operand.

    Attributes
    ----------
    arithmetic : Arithmetic
        Value types, index type, semiring.
    portability : Portability
        How lanes exchange values, how far, and how loads are hinted.
    scaled : bool
        Whether the kernel multiplies by alpha and beta.
    """

    #: The first part of a product kernel's name.
    kind: ClassVar[str]
    #: Whether a product kernel has a variant that multiplies by alpha and beta, whose records say `scaled`.
    scalable: ClassVar[bool] = True

    arithmetic: Arithmetic
    portability: Portability
    scaled: bool

    @property
    def shape_name(self) -> str:
        """The tunable parameters of a product kernel as a part of the kernel's name, such as wg64 for work-groups of 64."""
        return f"wg{self.work_group}"

    @property
    @override
    def name(self) -> str:
        """The kernel's name: kind, tunable parameters, arithmetic, and whether it is scaled by alpha and beta."""
        return f"{self.kind}_{self.shape_name}_{self.arithmetic.name}{'_scaled' if self.scaled else ''}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template: macros that choose the device's instructions, SCALED (1 or 0), the arithmetic."""
        return f"{self.portability.defines}\n#define SCALED {int(self.scaled)}\n{self.arithmetic.prelude}"

    def _common(self) -> dict[str, object]:
        """Return the template arguments that all product kernels have: ``work_group``, the work-group size."""
        return {"work_group": self.work_group}
