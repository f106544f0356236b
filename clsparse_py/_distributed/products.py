"""Sums and products of matrices over ranks: a rank makes its own rows of the result, on its device."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from clsparse_py._distributed.shared import describe, extend_history, require_same_ranks
from clsparse_py._distributed.structures import Product, renumber, without_unused

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["combine_entries", "multiply_matrices", "require_fitting"]


def multiply_matrices(A: csr_array, B: csr_array) -> csr_array:
    """Return ``A @ B`` over ranks: a rank fetches the rows of B that its rows of A refer to, and multiplies on its device.

    Parameters
    ----------
    A, B : csr_array
        B's rows are divided as A's columns.

    Returns
    -------
    csr_array
        Its rows are divided as A's, its columns as B's.

    Raises
    ------
    ValueError
        B's rows are divided otherwise.

    Notes
    -----
    The first product of two structures is kept with A's structure while B's lives: later products send values alone.
    """
    with A.comm.together():
        require_fitting(A, B)
        product = A.structure.products.get(B.structure)
        is_kept = A.comm.stacked(np.array(product is not None), f"product({describe(A, B)})")
        # A rank whose matrices have another history may have kept no product: all ranks then begin anew.
        if product is None or not is_kept.all():
            product = Product(A, B)
        C = product.multiply(A, B, lambda _, left, right: operator.matmul(left, right))
        A.structure.products[B.structure] = product
        return C


def require_fitting(A: csr_array, B: csr_array) -> None:
    """Raise a ValueError if B is over other ranks, or its rows are divided otherwise than A's columns."""
    require_same_ranks("B", B, A.comm)
    if A.columns != B.rows:
        raise ValueError(f"B: its rows must be divided as A's columns, {A.columns}, are as {B.rows}")


def combine_entries(A: csr_array, B: csr_array, apply: Callable[[Any, Any], Any]) -> csr_array:
    """Return the matrix over ranks ``A + B``, ``A - B`` or of another elementwise operation that maps two zeros to 0.

    Parameters
    ----------
    A, B : csr_array
        Divided alike.
    apply : callable
        Takes two matrices on one device.

    Raises
    ------
    ValueError
        A and B differ in their ranks, shapes or divisions.
    """
    require_same_ranks("B", B, A.comm)
    if A.shape != B.shape:
        raise ValueError(f"inconsistent shapes: {A.shape} and {B.shape}")
    for name, of_A, of_B in (("rows", A.rows, B.rows), ("columns", A.columns, B.columns)):
        if of_A != of_B:
            raise ValueError(f"B: its {name} must be divided as A's, {of_A}, are as {of_B}")
    halo = np.union1d(A.halo.columns, B.halo.columns)
    parts = (renumber(operand.remote, np.searchsorted(halo, operand.halo.columns), halo.size) for operand in (A, B))
    local, (remote, halo) = apply(A.local, B.local), without_unused(apply(*parts), halo)
    combined = A.assembled(A.comm, A.rows, A.columns, local, remote, halo)
    combined.history = extend_history(apply.__name__, A, B)
    return combined
