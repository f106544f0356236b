"""Comparisons of sparse matrices with scalars, sparse and dense matrices, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device, describe
from clsparse_py._formats.canonical import without_zeros
from clsparse_py._ground.errors import DtypeError, warn
from clsparse_py._ground.index_types import index_for
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix, MatrixT, Parts, Structure
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.dense import dense_of, pair_with_dense
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.union import canonical_of, canonical_parts, combine
from clsparse_py._operations.elementwise.values import map_with_scalar
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of, needs_fp64
from clsparse_py._run.launch import Chain, spread

__all__ = ["Complement", "full_structure", "with_dense", "with_scalar", "with_sparse"]

#: Python's symbols of the comparisons, by operator.
_SYMBOLS = {"eq": "==", "ne": "!=", "le": "<=", "ge": ">=", "lt": "<", "gt": ">"}


@kernel
@dataclass(frozen=True)
class Complement(OfStructure):
    """Parameters of ``templates/elementwise/complement.mako``.

    Attributes
    ----------
    pattern : str
        "int32" or "int64": the dtype of the pattern's indices.
    """

    template = "elementwise/complement"

    pattern: str

    @property
    @override
    def prelude(self) -> str:
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.pattern]} P;  // {self.pattern}: those of the pattern"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.index)


def with_sparse(operator: str, A: MatrixT, B: Matrix) -> MatrixT:
    """Return the matrix of booleans that tells where an operator holds for two matrices of one shape.

    Warns if it holds for two zeros, as the result is nearly full: what does not hold is found, and its complement is the result.
    """
    opposite = OPERATORS[operator].opposite
    if not opposite:
        return combine(operator, A, B)
    _warn("two sparse matrices using", operator, opposite)
    return _complement(combine(opposite, A, B))


def with_scalar(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the matrix of booleans that tells where an operator holds for the entries of a matrix, or 0, and a scalar.

    Warns if it holds for 0, as for `with_sparse`.
    """
    holds = OPERATORS[operator].of_scipy
    if not holds(0, scalar):
        return _compare(operator, A, scalar)
    opposite = _opposite(operator)
    _warn(f"a sparse matrix with {scalar} using", operator, opposite)
    if scalar != scalar:
        return _complement(_empty_like(A))
    return _complement(_compare(opposite, A, scalar))


def _opposite(operator: str) -> str:
    """Return the operator that is true if another is false."""
    opposite = OPERATORS[operator].opposite
    return opposite or next(candidate.name for candidate in OPERATORS.values() if candidate.opposite == operator)


def _warn(subject: str, operator: str, opposite: str) -> None:
    """Warn, as SciPy does, that a comparison is True nearly everywhere, and name the opposite one."""
    text = f"Comparing {subject} {_SYMBOLS[operator]} is inefficient. Try using {_SYMBOLS[opposite]} instead."
    warn(text, scipy.sparse.SparseEfficiencyWarning)


def _compare(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the entries for which an operator holds, once duplicates are added up."""
    if isinstance(scalar, (int, np.integer)) and A.dtype.kind in "iub":
        # Exactly, in A's dtype, whatever the scalar's is: one beyond it is compared as the bound of that side.
        inner = A.dtype
        low, high = (0, 1) if inner.kind == "b" else (np.iinfo(inner).min, np.iinfo(inner).max)
        if scalar > high:
            operator, scalar = ("le" if operator in ("lt", "le", "ne") else "gt"), high
        elif scalar < low:
            operator, scalar = ("ge" if operator in ("gt", "ge", "ne") else "lt"), low
    else:
        inner = _common_dtype(A, scalar)
    data, indices, indptr = canonical_parts(A, A.dtype)
    results = map_with_scalar(A.queue, data, operator, inner, scalar)
    return _assemble(A, without_zeros(A.queue, (results, indices, indptr)))


def _common_dtype(A: Matrix, other: Any) -> np.dtype[Any]:
    """Return the dtype in which values are compared with a scalar, or with the values of an array.

    Raises
    ------
    TypeError
        It is not supported, or the device lacks it.
    """
    common = np.result_type(A.dtype, other)
    if common.name not in OPENCL_TYPES:
        raise DtypeError(f"other: {A.dtype} and {other!r} are compared as {common}, which is not supported")
    if needs_fp64(common) and not describe(A.queue.device).fp64:
        raise DtypeError(f"other: {A.dtype} and {other!r} are compared as {common}, which {A.queue.device.name} lacks")
    return common


def with_dense(operator: str, A: Matrix, other: Any) -> Any:
    """Return where an operator holds for a matrix and a dense operand, as a dense array of booleans of the operand's kind.

    ``other`` has one or two dimensions; rows and columns of both are repeated, as in NumPy.
    """
    theirs = np.dtype(other.dtype)
    if "uint64" in (A.dtype.name, theirs.name) and "i" in (A.dtype.kind, theirs.kind):
        # Exactly, as NumPy does: no dtype has the values of both.
        operator, dtype = f"{operator}_signed_{'left' if A.dtype.kind == 'i' else 'right'}", np.dtype(np.uint64)
    else:
        dtype = _common_dtype(A, theirs)
    return pair_with_dense(A.queue, operator, dense_of(canonical_of(A, A.dtype), dtype), other)


def _empty_like(A: MatrixT) -> MatrixT:
    """Return a matrix of booleans of the same shape without entries."""
    queue, index = A.queue, A.indptr.dtype
    indptr = allocate(queue, "indptr", A.shape[0] + 1, index)
    chain = Chain(queue)
    chain.fill(indptr, 0, A.shape[0] + 1)
    chain.finish(indptr)
    return _assemble(A, (allocate(queue, "data", 0, np.dtype(bool)), allocate(queue, "indices", 0, index), indptr))


def _assemble(A: MatrixT, parts: Parts) -> MatrixT:
    """Return a matrix in canonical format on A's queue."""
    data, indices, indptr = parts
    return A.assembled(Structure.canonical(A.queue, A.shape, indices, indptr), data)


def full_structure(A: Matrix) -> Structure:
    """Return the structure of a matrix of A's shape that has an entry at each place."""
    return _complement(_empty_like(A)).structure


def _complement(A: MatrixT) -> MatrixT:
    """Return the matrix of booleans that are True where a matrix in canonical format has no entry."""
    index = index_for(A.shape[0] * A.shape[1])
    return _assemble(A, _complement_pattern(A.queue, (A.indptr, A.indices), A.shape, index))


def _complement_pattern(
    queue: cl.CommandQueue, pattern: tuple[cl_array.Array, ...], shape: tuple[int, int], index: np.dtype[Any]
) -> Parts:
    """Return the parts of the complement of a pattern in canonical format."""
    rows, columns = shape
    indptr, indices = pattern
    chain, n = Chain(queue, *pattern), rows * columns - indices.size
    matrix_name = f"of a {rows} x {columns} matrix that is nearly full"
    array_kinds = (("data", n, np.dtype(bool)), ("indices", n, index), ("indptr", rows + 1, index))
    arrays = tuple(allocate(queue, f"{name} {matrix_name}", size, dtype) for name, size, dtype in array_kinds)
    chain.fill(arrays[2], 0, 1 if columns else rows + 1)
    if rows * columns:
        built, record = chain.build(Complement(min(128, chain.device.max_work_group), name_of(index), name_of(indptr.dtype)))
        groups, sizes = spread(chain.device, rows * columns, record.work_group, 64)
        chain.launch(built, groups, *sizes, np.uint64(columns), indptr, indices, arrays[2], arrays[1], arrays[0])
    chain.finish(*arrays)
    return arrays[0], arrays[1], arrays[2]
