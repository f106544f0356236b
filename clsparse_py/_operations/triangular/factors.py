"""Incomplete factors of a matrix: by exact elimination, or by fixed-point sweeps over all entries at once."""

from __future__ import annotations

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.choose import choose_method
from clsparse_py._operations.triangular.kernels import Factor, work_group_of
from clsparse_py._operations.triangular.level_sets import get_level_sets
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["eliminate", "sweep_factors"]

#: Most work-groups to a compute unit of a launch that computes incomplete factors.
_MAX_GROUPS = 16


def eliminate(queue: cl.CommandQueue, A: Matrix, *, hermitian: bool, method: str = "auto") -> cl_array.Array:
    """Return the values of the incomplete factors (ILU(0) or IC(0)) of a matrix, in its pattern, by exact elimination.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A, hermitian
        As of `sweep_factors`.
    method : {"auto", "serial", "levels"}
        As of `get_solver`.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain, index = Chain(queue, A.data, A.indices, A.indptr), A.indptr.dtype
    factors = allocate(queue, "factors", A.data.size, A.dtype)
    operands = A.indptr, A.indices, A.data, factors
    fields = name_of(index), A.dtype.name, hermitian
    if not A.shape[0]:
        return factors
    if method == "auto":
        method = choose_method(queue, A.structure)
    if method == "serial":
        built, _ = chain.build(Factor(1, *fields, "rows"))
        chain.launch(built, 1, index.type(A.shape[0]), *operands)
    else:
        # A row of the factors needs the rows that a lower triangular system with A's pattern needs.
        levels = get_level_sets(A.structure, upper=False)
        built, record = chain.build(Factor(work_group_of(chain.device), *fields, "levels"))
        for groups, *of_launch in levels.schedule(record.work_group, 1, chain.device.compute_units * _MAX_GROUPS):
            chain.launch(built, groups, *of_launch, levels.starts, levels.order, *operands)
    chain.finish(factors)
    return factors


def sweep_factors(queue: cl.CommandQueue, A: Matrix, start: cl_array.Array, sweeps: int, *, hermitian: bool) -> cl_array.Array:
    """Return the values of incomplete factors (ILU or IC), in A's pattern, after ``sweeps`` fixed-point sweeps over all entries.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        Canonical, with a diagonal without zeros; if ``hermitian``, the lower triangle of the matrix.
    start : pyopencl.array.Array
        First guesses of the values, which are overwritten; of A's dtype.
    sweeps : int
        Number of sweeps over the entries.
    hermitian : bool
        Whether the factor is that of IC; else the factors are those of ILU.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain, n = Chain(queue, A.data, A.indices, A.indptr, start), A.shape[0]
    index = A.indptr.dtype
    built, record = chain.build(Factor(work_group_of(chain.device), name_of(index), A.dtype.name, hermitian, "sweep"))
    groups = min(-(-n // record.work_group), chain.device.compute_units * _MAX_GROUPS)
    current, following = start, allocate(queue, "factors", start.size, start.dtype)
    for _ in range(sweeps):
        chain.launch(built, groups, index.type(n), A.indptr, A.indices, A.data, current, following)
        current, following = following, current
    chain.finish(current)
    return current
