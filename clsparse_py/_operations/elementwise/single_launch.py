"""Element-wise operations on two small matrices in one launch, with memory for the upper bound."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.programs import note_asked
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate_each, shorten
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.thresholds import Thresholds
from clsparse_py._operations.elementwise.union_kernels import UnionAtOnce
from clsparse_py._precision.arithmetic import name_of, needs_fp64
from clsparse_py._run.launch import Chain

__all__ = ["combine_in_one_launch", "common_dtype"]


class _Kind(NamedTuple):
    """Matrices of some dtypes, and an operator.

    Attributes
    ----------
    built : tuple of Built
        The kernel; nothing if it does not run there: it is no plain kernel, or the device lacks the dtype.
    places : int
        Rows and entries that it takes, at most.
    result : dtype
    """

    built: tuple[Built, ...]
    places: int
    result: np.dtype[Any]


@functools.lru_cache(maxsize=256)
def common_dtype(a: np.dtype[Any], b: np.dtype[Any]) -> tuple[np.dtype[Any], bool]:
    """Return the dtype that values of two dtypes are computed in, and whether it needs double precision."""
    dtype = np.result_type(a, b)
    return dtype, needs_fp64(dtype)


def combine_in_one_launch(operator: str, A: Matrix, B: Matrix) -> tuple[cl_array.Array, ...] | None:
    """Return the data, indices and indptr of the result; None if the matrices are not small, or not known to be canonical.

    Waits for the device once.

    Parameters
    ----------
    operator : str
        A name in `OPERATORS`.
    A, B : Matrix
        Of one shape, in one context.
    """
    a, b, n_rows = A.structure, B.structure, A.shape[0]
    of_a, of_b, a_indices, b_indices, a_indptr, b_indptr = a.facts, b.facts, a.indices, b.indices, a.indptr, b.indptr
    n_a, n_b = a_indices.size, b_indices.size
    room = n_a + n_b
    if not (room and n_rows):
        return None
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical) or a_indptr.dtype != b_indptr.dtype:
        return None
    a_data, b_data, queue, index = A.data, B.data, a.queue, a_indptr.dtype
    if a_data.size != n_a or b_data.size != n_b:
        return None
    operands = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    chain = Chain(queue, *operands)
    limits = Thresholds.of(chain.device)
    if room + n_rows >= limits.single_group * limits.single_span:
        return None
    kind_key = operator, index, a_data.dtype, b_data.dtype, limits.single_group, limits.single_span
    kind = chain.worked_out(kind_key, lambda: _kind(chain, *kind_key))
    if room + n_rows > kind.places:
        return None
    note_asked(kind.built)
    sizes_and_dtypes = (n_rows + 1, index), (room, index), (room, kind.result)
    indptr, indices, data = allocate_each(queue, "the result", sizes_and_dtypes, a_data.allocator)
    sizes = np.uint32(n_rows), np.uint32(n_a), np.uint32(n_b)
    chain.launch(kind.built[0], 1, *sizes, *operands, indptr, indices, data)
    nnz = int(chain.read(indptr, 1, n_rows)[0])
    shorten(indices, nnz)
    shorten(data, nnz)
    return data, indices, indptr


def _kind(
    chain: Chain, operator: str, index: np.dtype[Any], a: np.dtype[Any], b: np.dtype[Any], work_group: int, span: int
) -> _Kind:
    """Return the kernel of an operator on two dtypes; none among plain kernels, or if double precision is needed and missing."""
    dtype, with_fp64 = common_dtype(a, b)
    result = OPERATORS[operator].result_dtype(dtype)
    if chain.device.is_plain or (with_fp64 and not chain.device.fp64):
        return _Kind((), 0, result)
    types = name_of(index), name_of(a), name_of(b), operator
    built, record = chain.build(UnionAtOnce.legal(chain.device, *types, work_group=work_group, span=span))
    return _Kind((built,), record.step, result)
