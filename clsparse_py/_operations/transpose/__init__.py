"""SpTRANS, ``A.T``: choose and run (`plan`) one of several `methods`, with their `kernels`."""

from __future__ import annotations

from typing import get_args

from clsparse_py._build.plain import door
from clsparse_py._ground.errors import require_name
from clsparse_py._matrix.matrix import MatrixT
from clsparse_py._matrix.operands import check_matrix
from clsparse_py._operations.transpose.methods import METHODS, Method
from clsparse_py._operations.transpose.plan import Explanation, Permutation, TransposePlan, find_permutation, transpose_once

__all__ = ["METHODS", "Explanation", "Method", "Permutation", "TransposePlan", "find_permutation", "transpose", "transpose_plan"]

#: Names that the argument ``method`` of `transpose` may have.
_METHODS = get_args(Method)


@door()
def transpose(A: MatrixT, *, method: Method = "auto") -> MatrixT:
    """Transpose a sparse matrix: return ``A.T`` as a CSR array with sorted rows.

    Parameters
    ----------
    A : csr_array
        m x n. Rows may be unsorted, empty, and hold duplicates.
    method : {"auto", "gather", "binned", "atomics"}
        "auto" decides by a cost rule, and gives small matrices to one work-group. "gather": where the pattern is symmetric, each
        value is looked up where its mirror image stands. "binned": a stable sort of the entries by column. "atomics": entries are
        counted by column, inserted in any order, and each row is sorted (Ji et al.).

    Returns
    -------
    csr_array, n x m
        Rows sorted; duplicates stay, in A's order: the result of SciPy's ``A.T.tocsr()``, the same with every
        method. Its values are its own. Where the pattern was found to be symmetric, it shares A's ``indices`` and ``indptr``.

    Raises
    ------
    ValueError, TypeError
        An unknown method, or one that does not take this matrix.
    MemoryError
        The device has not the memory for the result, whose ``indptr`` has n + 1 entries; the message says how much is needed.

    See Also
    --------
    csr_array.T : A `csc_array` over the same arrays, without a kernel.
    transpose_plan : For several sets of values.

    Notes
    -----
    Ji, Lu, Hou, Niu, Liu and Vinter, "Segmented Merge: A New Primitive for Parallel Sparse Matrix Computations", Section 4.2.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.transpose(sp.csr_array([[1, 2], [0, 3]])).toarray()
    array([[1, 0],
           [2, 3]])
    """
    check_matrix(A)
    require_name("method", method, _METHODS)
    return transpose_once(A, method)


@door()
def transpose_plan(A: MatrixT, *, method: Method = "auto") -> TransposePlan[MatrixT]:
    """Plan transpositions of a structure: find the permutation that takes the values of A to the values of the transposed.

    Parameters
    ----------
    A : csr_array
        Its values may change between transpositions, its structure may not.
    method : {"auto", "gather", "binned", "atomics"}
        As for `transpose`; how the permutation is found.

    Returns
    -------
    TransposePlan
        ``plan(data)`` is the transposed matrix with new values, by one gather; ``plan.explain()`` says which method ran and why.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As for `transpose`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> plan = sp.transpose_plan(A)
    >>> plan(A.data).toarray()
    array([[1, 0],
           [2, 3]])
    """
    check_matrix(A)
    require_name("method", method, _METHODS)
    return TransposePlan(A, find_permutation(A, method))
