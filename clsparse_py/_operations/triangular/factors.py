"""Incomplete factors, ILU(0) and IC(0), by fixed-point sweeps over all entries at the same time."""

from __future__ import annotations

from typing import ClassVar

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfNumbers
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.levels import work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["Factor", "sweep_factors"]

#: Work-groups to a compute unit at most.
_GROUPS_PER_UNIT = 16


@kernel
@dataclass(frozen=True)
class Factor(OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        True: the factor of IC; False: the factors of ILU.
    """

    template = "triangular/factor"
    variants: ClassVar[Variants] = {"": {"hermitian": False}, "hermitian": {"hermitian": True}}

    hermitian: bool


def sweep_factors(queue: cl.CommandQueue, A: Matrix, start: cl_array.Array, sweeps: int, *, hermitian: bool) -> cl_array.Array:
    """Return the values of incomplete factors after some sweeps, in the pattern of A.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        Canonical, with a diagonal without zeros; if ``hermitian``, the lower triangle of the matrix.
    start : pyopencl.array.Array
        First guesses of the values, which are overwritten; of A's dtype.
    sweeps : int
    hermitian : bool
        IC, else ILU.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain, n = Chain(queue, A.data, A.indices, A.indptr, start), A.shape[0]
    index = A.indptr.dtype
    built, record = chain.build(Factor(work_group_of(chain.device), name_of(index), A.dtype.name, hermitian))
    groups = min(-(-n // record.work_group), chain.device.compute_units * _GROUPS_PER_UNIT)
    current, following = start, allocate(queue, "factors", max(start.size, 1), start.dtype)
    for _ in range(sweeps):
        chain.launch(built, groups, index.type(n), A.indptr, A.indices, A.data, current, following)
        current, following = following, current
    chain.finish(current)
    return current
