"""The matrix of a coarser level, ``R A P``, planned once for any values."""

from __future__ import annotations

from typing import Any, Literal

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.hosted import queue_in
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import SetOnce
from clsparse_py._operations.spgemm import SpgemmPlan, plan_and_multiply, spgemm_estimate, spgemm_plan

__all__ = ["RapPlan", "plan_and_multiply_rap", "rap_plan"]

#: Names of the orders of the two products of ``R A P``; "auto" is the order of fewer multiplications, by an estimate.
Order = Literal["auto", "R(AP)", "(RA)P"]


class RapPlan(SetOnce):
    """A plan of ``R A P`` for one structure of each matrix, and any values. Made by `rap_plan`.

    Attributes
    ----------
    order : {"R(AP)", "(RA)P"}
        Which product is made first.
    products : dict of str to float
        Multiplications of each order, estimated: what it was chosen by. Of a named order, empty.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4)).tocsr()
    >>> P = sp.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> sp.amg.rap_plan(P.T.tocsr(), A, P).order in ("R(AP)", "(RA)P")
    True
    """

    def __init__(self, first: SpgemmPlan[csr_array], last: SpgemmPlan[csr_array], order: str, products: dict[str, float]) -> None:
        self._first, self._last, self.order, self.products = first, last, order, products

    @door()
    def __call__(self, r_data: Any = None, a_data: Any = None, p_data: Any = None, *, out: csr_array | None = None) -> csr_array:
        """Return the product ``R A P`` for new values of all, some or no operands; does not wait for the device.

        Parameters
        ----------
        r_data, a_data, p_data : pyopencl.array.Array or array_like, optional
            In the order of the entries of R, A and P; by default the values that they had when the plan was made.
        out : csr_array, optional
            An earlier result of this plan: its values are overwritten.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context.
        """
        if self.order == "R(AP)":
            return self._last(r_data, self._first(a_data, p_data).data, out=out)
        return self._last(self._first(r_data, a_data).data, p_data, out=out)

    def __repr__(self) -> str:
        rows, columns = self._last.shape
        return f"<RapPlan of a {rows} x {columns} product with {self._last.nnz} entries: {self.order}>"


@door()
def rap_plan(R: Any, A: Any, P: Any, *, order: Order = "auto") -> RapPlan:
    """Return a plan of the triple product ``R A P``, for the structures of R, A and P and any values.

    Parameters
    ----------
    R, A, P : csr_array or SciPy sparse array
        m x n, n x n and n x m, as a rule: restriction, matrix and prolongation.
    order : {"auto", "R(AP)", "(RA)P"}
        Which product is made first; "auto" estimates the multiplications of both orders: those of the first product are counted,
        of the second there are as many as entries of its operands say if these were spread evenly.

    Returns
    -------
    RapPlan
        ``plan(r_data, a_data, p_data)`` is the product of new values, with no analysis.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As for `spgemm_plan`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4)).tocsr()
    >>> P = sp.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> plan = sp.amg.rap_plan(P.T.tocsr(), A, P)
    >>> plan().toarray()
    array([[ 2., -1.],
           [-1.,  2.]])
    >>> plan(a_data=2 * A.data).toarray()
    array([[ 4., -2.],
           [-2.,  4.]])
    """
    require_name("order", order, ("auto", "R(AP)", "(RA)P"))
    queue = queue_in((R, A, P)) or default_queue()
    R, A, P = (on_device(queue, operand).tocsr() for operand in (R, A, P))
    products = (
        {"R(AP)": _estimate_products(A, P, R, from_left=True), "(RA)P": _estimate_products(R, A, P, from_left=False)}
        if order == "auto"
        else {}
    )
    cheapest = min(products, key=lambda name: products[name]) if products else order
    if cheapest == "R(AP)":
        first = spgemm_plan(A, P)
        return RapPlan(first, spgemm_plan(R, first()), cheapest, products)
    first = spgemm_plan(R, A)
    return RapPlan(first, spgemm_plan(first(), P), cheapest, products)


def plan_and_multiply_rap(R: csr_array, A: csr_array, P: csr_array) -> tuple[RapPlan, csr_array]:
    """Return a plan of the triple product ``R (A P)``, and the product of present values, in the time of the product alone."""
    first, product = plan_and_multiply(A, P)
    last, product_values = plan_and_multiply(R, product)
    return RapPlan(first, last, "R(AP)", {}), product_values


def _estimate_products(X: csr_array, Y: csr_array, other: csr_array, *, from_left: bool) -> float:
    """Return an estimate of how many multiplications ``other (X Y)``, if ``from_left``, or else ``(X Y) other`` takes."""
    estimate = spgemm_estimate(X, Y)
    # The estimated number of entries of the sparse product ``X Y`` may exceed the number of entries of a dense matrix.
    entries = min(estimate.nnz, X.shape[0] * Y.shape[1])
    if from_left:
        return estimate.n_products + other.nnz * entries / max(X.shape[0], 1)
    return estimate.n_products + entries * other.nnz / max(other.shape[0], 1)
