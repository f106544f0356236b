"""The operations that are measured, and the problems of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from bench.problems import elementwise, indexing, multigrid, sddmm, spgemm, spmm, spmv, sptrans, sptrsv, triangles
from bench.problems import primitives as _primitives
from bench.problems.base import Problem
from bench.problems.matrices import DTYPES
from bench.problems.primitives import PRIMITIVES

__all__ = ["DTYPES", "GROUPS", "OPERATIONS", "PRIMITIVES", "Problem", "Task", "expand", "make", "needs_matrices", "tasks"]


def _elementwise(operation: str, name: str, dtype: str) -> Problem:
    return elementwise.make(name, operation, dtype)


def _index(operation: str, name: str, dtype: str) -> Problem:
    return indexing.make(name, operation, dtype)


def _sddmm(operation: str, name: str, dtype: str) -> Problem:
    return sddmm.make(name, operation, dtype)


def _spmm(operation: str, name: str, dtype: str) -> Problem:
    return spmm.make(name, operation, dtype)


def _sptrsv(operation: str, name: str, dtype: str) -> Problem:
    return sptrsv.make(name, operation, dtype)


def _multigrid(operation: str, name: str, dtype: str) -> Problem:
    return multigrid.make(name, operation, dtype)


_OF_MATRICES: dict[str, Callable[[str, str], Problem]] = {
    "spmv": spmv.make,
    "sptrans": sptrans.make,
    "spgemm": spgemm.make,
    "amg": spgemm.make_amg,
    triangles.OPERATION: triangles.make,
    **{operation: functools.partial(_sptrsv, operation) for operation in sptrsv.OPERATIONS},
    **{operation: functools.partial(_sddmm, operation) for operation in sddmm.OPERATIONS},
    **{operation: functools.partial(_spmm, operation) for operation in spmm.OPERATIONS},
    **{operation: functools.partial(_elementwise, operation) for operation in elementwise.CALLS},
    **{operation: functools.partial(_index, operation) for operation in indexing.OPERATIONS},
    **{operation: functools.partial(_multigrid, operation) for operation in multigrid.OPERATIONS},
}
OPERATIONS = (*_OF_MATRICES, *PRIMITIVES)
# Operations by the name of their group.
GROUPS: dict[str, tuple[str, ...]] = {
    "primitives": tuple(PRIMITIVES),
    "elementwise": tuple(elementwise.CALLS),
    "indexing": tuple(indexing.OPERATIONS),
    "spmm": tuple(spmm.OPERATIONS),
    "sddmm": tuple(sddmm.OPERATIONS),
    "multigrid": multigrid.OPERATIONS,
}

# A task, which an entry of the results file is about: names of an input, an operation and a dtype.
Task = tuple[str, str, str]


def expand(names: Iterable[str]) -> list[str]:
    """Return operations from names of operations and groups.

    Raises
    ------
    ValueError
        If one is neither.
    """
    names = list(names)
    if unknown := [name for name in names if name not in OPERATIONS and name not in GROUPS]:
        raise ValueError(f"--ops: got {', '.join(unknown)}, needs some of {', '.join((*_OF_MATRICES, *GROUPS, *PRIMITIVES))}")
    return list(dict.fromkeys(operation for name in names for operation in GROUPS.get(name, (name,))))


def needs_matrices(operation: str) -> bool:
    """Return whether an operation is measured with the matrices of the gallery."""
    return operation in _OF_MATRICES


def tasks(operations: Iterable[str], matrices: Iterable[str], dtypes: Iterable[str], suite: str, *, cpu: bool) -> list[Task]:
    """Return what to measure, everything on one matrix together.

    Parameters
    ----------
    matrices, dtypes
        Of the operations on matrices.
    suite
        Gives the primitives' inputs, which have dtypes of their own.
    cpu
        Whether a CPU device computes them.

    Raises
    ------
    ValueError
        If a dtype is not measured.
    """
    dtypes = list(dtypes)
    if unknown := [dtype for dtype in dtypes if dtype not in DTYPES]:
        raise ValueError(f"--dtypes: got {', '.join(unknown)}, needs some of {', '.join(DTYPES)}")
    operations = list(operations)
    of_matrices = [operation for operation in operations if needs_matrices(operation)]
    results = [
        (name, operation, dtype)
        for matrix in matrices
        for operation in of_matrices
        for name in (spgemm.inputs(matrix) if operation == "amg" else [matrix])
        for dtype in dtypes
    ]
    for operation in operations:
        if not needs_matrices(operation):
            names = _primitives.inputs(operation, suite, cpu=cpu)
            results += [(name, operation, dtype) for name in names for dtype in PRIMITIVES[operation].makes]
    return results


def make(name: str, operation: str, dtype: str) -> Problem:
    """Load or make an input, and what an operation must make of it."""
    if needs_matrices(operation):
        return _OF_MATRICES[operation](name, dtype)
    return _primitives.make(name, operation, dtype)
