"""Columns of matrices on a device renumbered, so that halos meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["renumber", "without_unused"]


@door()
def renumber(A: csr_array, numbers: np.ndarray[Any, Any], n: int) -> csr_array:
    """Return a matrix of n columns over the same values, in which column c is ``numbers[c]``.

    Columns that have entries keep their order.

    Parameters
    ----------
    A : csr_array
    numbers : numpy.ndarray
        As many as A has columns.
    n : int
    """
    shape = A.shape[0], n
    if not A.nnz:
        return csr_array(shape, dtype=A.dtype, queue=A.queue)
    chain, index = Chain(A.queue, A.indices), A.indices.dtype
    columns = allocate(A.queue, "columns", A.nnz, index)
    enqueue_permute(chain, A.indices, copy_to_device(A.queue, "columns", numbers.astype(index)), columns, A.nnz)
    chain.finish(columns)
    facts_before = A.structure.checked()
    facts = Facts(facts_before.nnz, sorted=facts_before.sorted, canonical=facts_before.canonical, longest=facts_before.longest)
    return csr_array.assembled(Structure(A.queue, shape, columns, A.indptr, facts), A.data)


def without_unused(A: csr_array, names: np.ndarray[Any, Any]) -> tuple[csr_array, np.ndarray[Any, Any]]:
    """Return a matrix without the columns that have no entry, and the names of those that are left; waits."""
    used = np.zeros(names.size, np.bool_)
    used[copy_to_host(A.indices, A.queue)] = True
    if used.all():
        return A, names
    return renumber(A, np.cumsum(used) - 1, int(np.count_nonzero(used))), names[used]
