"""The entries of a sparse matrix on one side of a diagonal."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import divide_tiles, work_group_of
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._run.launch import Chain

__all__ = ["Triangle", "mark_triangle"]


@kernel
@dataclass(frozen=True)
class Triangle(OfStructure):
    """Parameters of ``templates/construct/triangle.mako``.

    Attributes
    ----------
    upper : bool
    """

    template = "construct/triangle"

    upper: bool

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel for the lower triangle, "", and for the "upper" one."""
        for variant, upper in (("", False), ("upper", True)):
            yield variant, cls(work_group_of(device), arithmetic.index, upper)


def mark_triangle(
    queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, k: int, *, upper: bool
) -> cl_array.Array:
    """Return a byte for each entry of a matrix: 1 on and below the k-th diagonal or, if ``upper``, on and above it, else 0."""
    chain, index = Chain(queue, indices, indptr), indptr.dtype
    built, record = chain.build(Triangle(work_group_of(chain.device), name_of(index), upper))
    marks = allocate(queue, "marks", indices.size, np.dtype(np.uint8))
    groups, sizes = divide_tiles(chain.device, indices.size, record.work_group)
    chain.launch(built, groups, *sizes, index.type(indptr.size - 1), np.int64(k), indptr, indices, marks)
    chain.finish(marks)
    return marks
