"""Incomplete factors of a matrix: by exact elimination, or by fixed-point sweeps over all entries at once."""

from __future__ import annotations

import logging

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.choose import Thresholds, choose_method
from clsparse_py._operations.triangular.kernels import Factor, work_group_of
from clsparse_py._operations.triangular.level_sets import get_level_sets
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["eliminate", "sweep_factors"]

_log = logging.getLogger(__name__)

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
    method : {"auto", "serial", "sync-free", "levels"}
        As of `get_solver`. Without synchronisation the host waits once, and level sets follow if the launch gave up waiting.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain, index = Chain(queue, A.data, A.indices, A.indptr), A.indptr.dtype
    factors = allocate(queue, "factors", A.nnz, A.dtype)
    operands = A.indptr, A.indices, A.data, factors
    fields = name_of(index), A.dtype.name, hermitian
    if not A.shape[0]:
        return factors
    if method == "auto":
        method = choose_method(queue, A.structure)
    if method == "serial":
        built, _ = chain.build(Factor(1, *fields, "rows"))
        n = np.uint64(A.shape[0])
        chain.launch(built, 1, n, n, np.uint64(1), n, *operands)
    elif method == "levels" or not _eliminate_sync_free(chain, A, factors, hermitian):
        # A row of the factors needs the rows that a lower triangular system with A's pattern needs.
        levels = get_level_sets(A.structure, upper=False)
        built, record = chain.build(Factor(work_group_of(chain.device), *fields, "levels"))
        for groups, *of_launch in levels.schedule(record.work_group, 1, chain.device.compute_units * _MAX_GROUPS):
            chain.launch(built, groups, *of_launch, levels.starts, levels.order, *operands)
    chain.finish(factors)
    return factors


def _eliminate_sync_free(chain: Chain, A: Matrix, factors: cl_array.Array, hermitian: bool) -> bool:
    """Compute incomplete factors in one launch, each row once those that it needs are known; return False if it gave up."""
    fields = name_of(A.indptr.dtype), A.dtype.name, hermitian
    built, record = chain.build(Factor(work_group_of(chain.device), *fields, "sync_free"))
    state, n = chain.scratch(2, np.int32), A.shape[0]
    chain.fill(state, 0, 2)
    chain.fill(factors, 0, A.nnz)
    max_polls = np.uint32(Thresholds.of(chain.device).max_polls)
    operands = A.indptr, A.indices, A.data, factors, state
    chain.launch(built, -(-n // record.work_group), np.uint64(n), max_polls, *operands)
    if not chain.read(state, 1)[0]:
        return True
    _log.warning("incomplete factors: a launch gave up waiting; they are computed by level sets")
    return False


def sweep_factors(queue: cl.CommandQueue, A: Matrix, sweeps: int, *, hermitian: bool) -> cl_array.Array:
    """Return the values of incomplete factors (ILU or IC), in A's pattern, after ``sweeps`` fixed-point sweeps over all entries.

    The first sweep starts from A's entries, scaled by A's diagonal.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        Canonical, with a diagonal without zeros; if ``hermitian``, the lower triangle of the matrix.
    sweeps : int
        Number of sweeps over the entries.
    hermitian : bool
        Whether the factor is that of IC; else the factors are those of ILU.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain = Chain(queue, A.data, A.indices, A.indptr)
    fields = work_group_of(chain.device), name_of(A.indptr.dtype), A.dtype.name, hermitian
    guess, sweep = (chain.build(Factor(*fields, schedule))[0] for schedule in ("guess", "sweep"))
    before, after = (allocate(queue, "factors", A.nnz, A.dtype) for _ in range(2))
    operands = A.indptr, A.indices, A.data
    chain.launch_spread(guess, A.shape[0], *operands, after)
    for _ in range(sweeps):
        before, after = after, before
        chain.launch_spread(sweep, A.shape[0], *operands, before, after)
    chain.finish(after)
    return after
