"""Kernels that the set-up of a hierarchy and its first cycle launch, built side by side before the set-up asks for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.aggregation import kernels
from clsparse_py._solvers.amg.coarsest import inverse_record
from clsparse_py._solvers.krylov import multigrid, radius
from clsparse_py._solvers.krylov.sweep import Sweep

__all__ = ["build_kernels"]

#: Entries of a row, in the mean, from which on those of coarser levels are many more: above those of grids in the plane.
_MEAN_OF_PLANES = 6
#: Vector passes of a cycle with Jacobi smoothers.
_CYCLE = (
    multigrid.JACOBI_OF_RESIDUAL, multigrid.JACOBI_BEGIN, multigrid.JACOBI, multigrid.RESIDUAL, multigrid.RESIDUAL_NORM,
    multigrid.NORM,
)  # fmt: skip


def build_kernels(A: Any) -> None:
    """Build the kernels of smoothed aggregation for a matrix on one device, and of cycles, several at a time; on CPUs none."""
    chain, types = Chain(A.queue), (name_of(A.indptr.dtype), name_of(A.dtype))
    mean = A.nnz / max(A.shape[0], 1)
    few = kernels.Thresholds.of(chain.device).few_neighbours
    key = build_kernels, types, mean > _MEAN_OF_PLANES, mean > few
    chain.build_together(key, lambda: _list_records(chain.device, *types, mean))


def _list_records(device: Device, index: str, dtype: str, mean: float) -> Iterable[Parameters]:
    """Return records of kernels for rows of ``mean`` entries, and for the longer rows of coarser levels."""
    group, longer = work_group_of(device), 4 * kernels.Thresholds.of(device).few_neighbours
    means = (mean, longer) if mean > _MEAN_OF_PLANES else (mean,)
    phases = [(phase, neighbours) for phase in ("first", "step") for neighbours in means]
    prolongators = [("make", 1), ("make", longer), ("pack", 1)]
    passes = itertools.chain(zip(radius.PASSES, itertools.repeat(radius.LAYOUT)), zip(_CYCLE, itertools.repeat(multigrid.LAYOUT)))
    return [
        kernels.BEGIN.record(group, index),
        kernels.ROOTS.record(group, index),
        kernels.Choose(group, index, False),
        *(kernels.Join(group, index, is_near) for is_near in (True, False)),
        *(kernels.Advance.legal(device, index, *phase) for phase in phases),
        kernels.Inverse(group, index, dtype, False),
        kernels.Tentative(group, index, dtype),
        kernels.Orthonormal(min(64, group), index, dtype),
        *(kernels.Prolongator.legal(device, index, dtype, *phase) for phase in prolongators),
        *(Sweep.legal(device, dtype, step, layout) for step, layout in passes),
        inverse_record(device, index, dtype),
    ]
