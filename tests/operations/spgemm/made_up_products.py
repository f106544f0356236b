"""Made-up devices and products: decisions about these ask no device."""

from __future__ import annotations

from dataclasses import replace

from platforms import PLATFORMS

from clsparse_py._device.device import Device, Portability, describe
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["PLENTY", "TYPES", "device", "kind_on", "limits", "square"]

PLENTY = Budget(1 << 40, 1 << 40)
TYPES = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")


def device(kind: str) -> Device:
    """A device of a type that no profile names, with two compute units, and with 32 lanes that exchange values if it is a GPU."""
    sizes = {"compute_units": 2, "local_memory": 48 << 10, "max_work_group": 1024}
    names = dict.fromkeys(("name", "platform", "vendor"), "made up")
    result = replace(describe(next(iter(PLATFORMS.values()))), type=kind, **names, **sizes)
    return replace(result, portability=Portability("ptx", 32)) if kind == "gpu" else result


def limits(kind: str = "gpu") -> Thresholds:
    """The thresholds of the generic profile for a type of device."""
    return thresholds_of(device(kind), TYPES)


def kind_on(name: str) -> Kind:
    """Return the kind of products on a made-up device of a type, which decides by the generic profile."""
    return Kind(device(name), TYPES)


def square(n: int, mean: int, longest: int | None = None, adjacent: float = 0.0, longest_of_b: int | None = None) -> Features:
    """Return the features of a product of n x n matrices; ``adjacent``: the share of neighbouring columns of A."""
    nnz = n * mean
    A, B = (Facts(nnz, True, True, length, int(adjacent * nnz)) for length in (longest, longest_of_b or longest))
    return Features((n, n, n), (nnz, nnz), A, B)
