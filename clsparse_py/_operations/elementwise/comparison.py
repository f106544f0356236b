"""Comparisons of sparse matrices with scalars, sparse and dense matrices, and maxima and minima, entry by entry."""

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
from clsparse_py._matrix.matrix import Matrix, MatrixT, Parts
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.dense import combine_with_dense, make_dense
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.union import assemble_canonical, canonical_of, canonical_parts, combine
from clsparse_py._operations.elementwise.values import map_with_scalar, require_results
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of, needs_fp64
from clsparse_py._run.launch import Chain

__all__ = [
    "Complement",
    "choose_with_dense",
    "choose_with_scalar",
    "compare_with_dense",
    "compare_with_scalar",
    "compare_with_sparse",
]

#: Python's symbols of the comparison operators, by the operators' names.
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
        """The OpenCL C before the template's text: the types I and P of the indices of the result and of the pattern."""
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.pattern]} P;  // {self.pattern}: indices of the pattern"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.index)


def compare_with_sparse(operator: str, A: MatrixT, B: Matrix) -> MatrixT:
    """Return the sparse matrix of booleans that is True where a comparison of two matrices of one shape holds.

    Warns if the comparison holds for two zeros, as the result is nearly full: the complement of the opposite comparison.
    """
    opposite = OPERATORS[operator].opposite
    if not opposite:
        return combine(operator, A, B)
    _warn("two sparse matrices using", operator, opposite)
    return _complement(combine(opposite, A, B))


def compare_with_scalar(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the sparse matrix of booleans that is True where a comparison of a matrix's values with a scalar holds.

    Warns if the comparison holds for 0, as `compare_with_sparse` does.
    """
    holds = OPERATORS[operator].of_scipy
    if not holds(0, scalar):
        return _compare(operator, A, scalar)
    opposite = _negate(operator)
    _warn(f"a sparse matrix with {scalar} using", operator, opposite)
    if scalar != scalar:
        return _complement(_empty_like(A))
    return _complement(_compare(opposite, A, scalar))


def _negate(operator: str) -> str:
    """Return the name of the comparison operator that holds where another one does not: "le" for "gt"."""
    opposite = OPERATORS[operator].opposite
    return opposite or next(candidate.name for candidate in OPERATORS.values() if candidate.opposite == operator)


def _warn(subject: str, operator: str, opposite: str) -> None:
    """Warn, as SciPy does, that a comparison with a sparse matrix is True nearly everywhere, and name the opposite comparison."""
    text = f"Comparing {subject} {_SYMBOLS[operator]} is inefficient. Try using {_SYMBOLS[opposite]} instead."
    warn(text, scipy.sparse.SparseEfficiencyWarning)


def _compare(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the boolean matrix of A's entries for which a comparison with a scalar holds, after duplicates were added up."""
    if isinstance(scalar, (int, np.integer)) and A.dtype.kind in "iub":
        # Integers are compared exactly, in A's dtype: a scalar beyond the dtype's range is replaced by the nearest bound.
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
    return assemble_canonical(A, without_zeros(A.queue, (results, indices, indptr)))


def _common_dtype(A: Matrix, other: Any) -> np.dtype[Any]:
    """Return the dtype in which a sparse matrix's values are compared with a scalar, or with the values of an array.

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


def compare_with_dense(operator: str, A: Matrix, other: Any) -> Any:
    """Return where a comparison of a matrix with a dense array holds: a dense boolean array, on host or device as ``other`` is.

    ``other`` has one or two dimensions; rows and columns of both are repeated, as in NumPy.
    """
    theirs = np.dtype(other.dtype)
    if "uint64" in (A.dtype.name, theirs.name) and "i" in (A.dtype.kind, theirs.kind):
        # Signed and unsigned integers are compared exactly, as in NumPy: no dtype has the values of both.
        operator, dtype = f"{operator}_signed_{'left' if A.dtype.kind == 'i' else 'right'}", np.dtype(np.uint64)
    else:
        dtype = _common_dtype(A, theirs)
    return combine_with_dense(A.queue, operator, make_dense(canonical_of(A, A.dtype), dtype), other)


def _empty_like(A: MatrixT) -> MatrixT:
    """Return a matrix of booleans of A's shape without entries."""
    queue, index = A.queue, A.indptr.dtype
    indptr = allocate(queue, "indptr", A.shape[0] + 1, index)
    chain = Chain(queue)
    chain.fill(indptr, 0, A.shape[0] + 1)
    chain.finish(indptr)
    return assemble_canonical(A, (allocate(queue, "data", 0, np.dtype(bool)), allocate(queue, "indices", 0, index), indptr))


def _complement(A: MatrixT) -> MatrixT:
    """Return the matrix of booleans that are True where a matrix in canonical format has no entry."""
    index = index_for(A.shape[0] * A.shape[1])
    return assemble_canonical(A, _complement_pattern(A.queue, (A.indptr, A.indices), A.shape, index))


def _complement_pattern(
    queue: cl.CommandQueue, pattern: tuple[cl_array.Array, ...], shape: tuple[int, int], index: np.dtype[Any]
) -> Parts:
    """Return data, indices and indptr of the boolean matrix that is True at all places that a canonical matrix does not store."""
    rows, columns = shape
    indptr, indices = pattern
    chain, n = Chain(queue, *pattern), rows * columns - indices.size
    matrix_name = f"of a {rows} x {columns} matrix that is nearly full"
    array_kinds = (("data", n, np.dtype(bool)), ("indices", n, index), ("indptr", rows + 1, index))
    arrays = tuple(allocate(queue, f"{name} {matrix_name}", size, dtype) for name, size, dtype in array_kinds)
    chain.fill(arrays[2], 0, 1 if columns else rows + 1)
    if rows * columns:
        built, _ = chain.build(Complement(min(128, chain.device.max_work_group), name_of(index), name_of(indptr.dtype)))
        chain.launch_spread(built, rows * columns, np.uint64(columns), indptr, indices, arrays[2], arrays[1], arrays[0])
    chain.finish(*arrays)
    return arrays[0], arrays[1], arrays[2]


def choose_with_scalar(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the sparse matrix of the elementwise maxima or minima, as ``operator`` says, of a sparse matrix and a scalar.

    Warns, as SciPy does, if the result has entries everywhere.
    """
    of_numpy = getattr(np, operator)
    dtype = of_numpy(np.zeros(1, A.dtype), scalar).dtype
    require_results(A.queue, f"{operator} of {A.dtype} and {scalar!r}", dtype)
    if not of_numpy(0, scalar):
        data, indices, indptr = canonical_parts(A, A.dtype)
        values = map_with_scalar(A.queue, data, operator, dtype, scalar)
        return assemble_canonical(A, without_zeros(A.queue, (values, indices, indptr)))
    sign = "positive" if operator == "maximum" else "negative"
    text = f"Taking {operator} with a {sign} number results in a dense matrix."
    warn(text, scipy.sparse.SparseEfficiencyWarning)
    dense = make_dense(A, A.dtype)
    values = dense.reshape(dense.size)  # type: ignore[no-untyped-call] # PyOpenCL's
    return _complement(_empty_like(A)).with_values(map_with_scalar(A.queue, values, operator, dtype, scalar))


def choose_with_dense(operator: str, A: Matrix, other: Any) -> Any:
    """Return the elementwise maxima or minima (``operator``) of A and a dense array: dense, on host or device as ``other`` is.

    Parameters
    ----------
    operator : str
        "maximum" or "minimum".
    A : Matrix
    other : numpy.ndarray or pyopencl.array.Array
        Of one or two dimensions; rows and columns of both are repeated, as in NumPy.

    Raises
    ------
    ValueError
        The shapes do not go together.
    """
    dtype = np.result_type(A.dtype, other.dtype)
    require_results(A.queue, f"{operator} of {A.dtype} and {other.dtype}", dtype)
    return combine_with_dense(A.queue, operator, make_dense(canonical_of(A, A.dtype), dtype), other)
