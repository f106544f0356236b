"""y = A @ x for the rows that a mask lets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._operations.parts import power_of_two_at_most
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import Semiring
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import contexts_match, copy_to_device

__all__ = ["MaskedRows", "enqueue_masked_rows", "prepare_row_mask"]

#: Greatest number of work-items of a work-group of the SpMV kernel for the rows that a mask selects.
_WORK_GROUP = 128


@kernel
@dataclass(frozen=True)
class MaskedRows(ProductKernel):
    """Parameters of ``templates/spmv/masked_rows.mako``.

    Attributes
    ----------
    lanes : int
        Work-items to a row: a power of two, at most the lane width.
    """

    template = "spmv/masked_rows"
    kind = "spmv_masked_rows"
    scalable = False

    lanes: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, mean: float) -> Self:
        """Return the parameters of the kernel that multiplies masked rows, for ``mean`` entries to a row on average."""
        group = power_of_two_at_most(min(_WORK_GROUP, device.max_work_group))
        most = 1 if device.lanes_are_loops else min(group, device.portability.lane_width)
        lanes = power_of_two_at_most(max(1, int(min(most, mean))))
        return cls(group, arithmetic, replace(device.portability.at_most(lanes), load_once="plain"), False, lanes)

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells lanes and work-group, such as ``x8_wg128``."""
        return f"x{self.lanes}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, and ``lanes``, the work-items of a row."""
        return {**self._common(), "lanes": self.lanes}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the masked rows' kernel's parameters for a smaller work-group and lane width; None if ``work_group`` is 0."""
        lanes = min(self.lanes, power_of_two_at_most(max(min(work_group, lane_width), 1)))
        group = work_group // lanes * lanes
        return replace(self, work_group=group, lanes=lanes, portability=self.portability.at_most(lanes)) if group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, arithmetic, 8)


def prepare_row_mask(A: Matrix, mask: Any) -> cl_array.Array:
    """Return a mask of A's rows on the device: one byte to a row, nonzero where the caller's mask is nonzero.

    Raises
    ------
    ValueError, TypeError
        It has not one value for each row, or lives in another context.
    """
    on_device = isinstance(mask, cl_array.Array)
    if not on_device:
        mask = np.asarray(mask)
    if mask.dtype.kind not in "biuf":
        raise TypeError(f"mask: must be of booleans or real numbers, has dtype {mask.dtype}")
    if mask.shape != A.shape[:1]:
        raise ValueError(
            f"mask: must have shape {A.shape[:1]}, as A has {A.shape[0]} rows, has {mask.shape} (dimension mismatch)"
        )
    if not on_device:
        return copy_to_device(A.queue, "mask", (mask != 0).astype(np.uint8))
    if not contexts_match(mask, A.context):
        raise ValueError("mask: lives in another context than A")
    if mask.dtype.itemsize == 1 and not mask.offset and (mask.size < 2 or mask.strides == (1,)):
        return cast("cl_array.Array", mask)
    return convert(A.queue, "mask", mask, np.dtype(bool))


def enqueue_masked_rows(
    A: Matrix, x: cl_array.Array, y: cl_array.Array, mask: cl_array.Array, semiring: Semiring, *, complement: bool
) -> None:
    """Enqueue ``y = A @ x`` in rows whose mask is not zero (``complement``: is zero); operands are checked, x is contiguous."""
    if not y.size:
        return
    chain = Chain(x.queue or A.queue, A.data, A.indices, A.indptr, x, mask, writes=(y,))
    arithmetic = Arithmetic(A.dtype.name, x.dtype.name, A.indptr.dtype.name, semiring.name)
    record = MaskedRows.legal(chain.device, arithmetic, A.indices.size / A.shape[0])
    built, built_record = chain.build_once(record, lambda: record)
    offsets = (np.uint64(vector.offset // vector.dtype.itemsize) for vector in (x, y))
    operands = A.data, x, next(offsets), y, next(offsets), mask, np.uint32(not complement)
    groups = -(-A.shape[0] * built_record.lanes // built_record.work_group)
    chain.launch(built, groups, *operands, A.indptr.dtype.type(A.shape[0]), A.indptr, A.indices)
    chain.finish(y)
