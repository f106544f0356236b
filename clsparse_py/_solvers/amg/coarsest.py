"""Inverse of the coarsest matrix, by one work-group or by LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.linalg
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._matrix.matrix import Parts, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device
from clsparse_py._solvers.aggregation.kernels import MAX_INVERTED, DenseInverse

__all__ = ["compute_inverse_values", "invert_coarsest", "invert_on_host"]

#: Most unknowns of a multigrid hierarchy's coarsest level, as its matrix gets a dense inverse; more are an error.
_MAX_DENSE = 5000
#: Work-items of the work-group that inverts the coarsest matrix of a multigrid hierarchy on GPUs.
_WORK_GROUP = 1024
#: Tolerance, in machine epsilons, of the tests whether a hierarchy's coarsest matrix is Hermitian and is far from singular.
_ROUNDING = 1000


def invert_coarsest(A: csr_array) -> csr_array:
    """Return the inverse of a hierarchy's coarsest matrix, or its pseudoinverse if singular, in CSR form with all entries.

    Raises
    ------
    ValueError
        The matrix is too large, or has values that are not finite.
    """
    n, values = A.shape[0], compute_inverse_values(A)
    indices, indptr = (copy_to_device(A.queue, "an inverse", part) for part in _make_dense_structure(n))
    return csr_array.assembled(Structure.canonical(A.queue, A.shape, indices, indptr), values)


def compute_inverse_values(A: csr_array) -> cl_array.Array:
    """Return the values of the inverse of a hierarchy's coarsest matrix, or pseudoinverse if singular, row by row, zeros too."""
    values = _invert_by_work_group(A.queue, A.parts)
    return copy_to_device(A.queue, "an inverse", invert_on_host(A.get()).data) if values is None else values


@door()
def _invert_by_work_group(queue: cl.CommandQueue, parts: Parts) -> cl_array.Array | None:
    """Return the values, row by row, of a matrix's inverse, by one work-group; None if the host has to invert the matrix.

    None: the matrix is too large, not Hermitian positive definite or almost singular, or the device takes plain kernels alone.
    """
    data, indices, indptr = parts
    chain, n, dtype = Chain(queue, *parts), indptr.size - 1, data.dtype
    if not 0 < n <= MAX_INVERTED or chain.device.is_plain:
        return None
    group = 1 if chain.device.lanes_are_loops else min(_WORK_GROUP, chain.device.max_work_group)
    built, _ = chain.build(DenseInverse(group, name_of(indptr.dtype), name_of(dtype)))
    inverse = allocate(queue, "an inverse", n * n, dtype)
    report = chain.scratch(4, np.zeros(0, dtype).real.dtype)
    chain.launch(built, 1, np.uint64(n), indptr, indices, data, inverse, chain.scratch(n, dtype), report)
    least, greatest, largest, difference = chain.read(report, 4).tolist()
    chain.finish(inverse)
    rounding = _ROUNDING * float(np.finfo(dtype).eps)
    is_definite = difference <= rounding * largest and least > rounding * n * greatest
    return inverse if is_definite and np.isfinite(largest + greatest) else None


def _make_dense_structure(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the column indices and row pointers of a dense n x n matrix in CSR form."""
    return np.tile(np.arange(n, dtype=np.int32), n), n * np.arange(n + 1, dtype=np.int32)


def invert_on_host(A: Any) -> Any:
    """Return the inverse of a hierarchy's coarsest matrix, or pseudoinverse if singular, by LAPACK; both are SciPy arrays.

    Raises
    ------
    ValueError
        The matrix is too large, or has values that are not finite.
    """
    n = A.shape[0]
    if n > _MAX_DENSE:
        raise ValueError(f"A: the coarsest level has {n} unknowns, at most {_MAX_DENSE} are inverted; raise max_levels")
    dense = A.toarray()
    if not np.isfinite(dense).all():
        raise ValueError("A: has values that are not finite, or too large")
    inverse = _pseudoinvert(dense) if n else dense
    return scipy.sparse.csr_array((inverse.ravel(), *_make_dense_structure(n)), shape=(n, n))


def _pseudoinvert(A: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the pseudoinverse of a dense matrix, by Cholesky's factors if these are accurate, else by singular values."""
    scale, eps = np.abs(A).max(), float(np.finfo(A.dtype).eps)
    if np.abs(A - A.conj().T).max() <= _ROUNDING * eps * scale:
        try:
            factor = scipy.linalg.cho_factor(A, lower=True)
        except np.linalg.LinAlgError:
            pass
        else:
            # The square of the ratio of Cholesky's largest to smallest pivot is at most the matrix's condition number.
            pivots = np.diagonal(factor[0]).real
            if pivots.min() > np.sqrt(_ROUNDING * A.shape[0] * eps) * pivots.max():
                inverse: np.ndarray[Any, Any] = scipy.linalg.cho_solve(factor, np.eye(*A.shape, dtype=A.dtype))
                return inverse
    pseudo: np.ndarray[Any, Any] = scipy.linalg.pinv(A)
    return pseudo
