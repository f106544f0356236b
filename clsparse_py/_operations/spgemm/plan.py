"""Plans of products: structure once, values at each call."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.plain import are_plain, door
from clsparse_py._decisions.profiles import remark_older
from clsparse_py._device.device import describe
from clsparse_py._ground.records import SetOnce
from clsparse_py._ground.tables import plan_as_html
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure
from clsparse_py._matrix.operands import values_of_result
from clsparse_py._memory.workspace import Workspace, counting
from clsparse_py._operations.spgemm.accumulator import Result
from clsparse_py._operations.spgemm.count import partition_rows
from clsparse_py._operations.spgemm.explanation import BinRows, Explanation
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._operations.spgemm.operands import Operands, new_part
from clsparse_py._operations.spgemm.pipeline import compute, inspect_structure, new_indices
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.steps import enqueue
from clsparse_py._run.launch import Chain
from clsparse_py._run.upgrade import Upgrade

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Values
    from clsparse_py._operations.spgemm.product_list import ProductList

__all__ = ["SpgemmPlan"]

_log = logging.getLogger(__name__)


class SpgemmPlan(SetOnce, Generic[MatrixT]):
    """Plan of the product of two structures, for any values. Made by `spgemm_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        The queue of A.
    shape : tuple of int
        Of C.
    nnz : int
        Entries of C.
    n_products : int
        Intermediate products.
    indptr, indices : pyopencl.array.Array
        The structure of C, which all results share.
    """

    def __init__(
        self, A: MatrixT, B: Matrix, request: Request, workspace: Workspace | None = None, *, at_once: bool = False
    ) -> None:
        self.queue = A.queue
        self.shape = (A.shape[0], B.shape[1])
        self._request, self._workspace = request, workspace
        self._allocator = A.data.allocator
        self._assembled = type(A).assembled
        C: Result | None = None
        with counting(workspace):
            if at_once:
                operands, counted, C = compute(A, B, request)
            else:
                operands, counted = inspect_structure(A, B, request)
        self._indices = new_indices(operands, counted) if C is None else C.indices
        operands.chain.finish(counted.indptr)
        self._a, self._b, self._product, self._steps = operands.a, operands.b, counted.product, counted.steps
        self.indptr, self.nnz, self.n_products = counted.indptr, counted.nnz, counted.product.n_products
        self._reason, self._deciding = str(counted.reason), counted.reason.deciding
        self._structure = Structure.canonical(self.queue, self.shape, self._indices, self.indptr)
        # The first product makes C's columns too; the lock of the first product keeps other threads waiting until then.
        self._has_columns = C is not None
        # Later products may take factors from a list of intermediate products; the second call decides if the plan has a list.
        self._list: Upgrade[ProductList] | None = None
        self._list_undecided = operands.chain.device.resident > 1
        values = None if C is None else C.data
        self._first_product = None if values is None else self._assembled(self._structure, values)
        self._first = threading.Lock()

    def take_product(self) -> MatrixT:
        """Return the product C that was computed while planning, which the plan then forgets."""
        product, self._first_product = self._first_product, None
        assert product is not None
        return product

    @property
    def indices(self) -> cl_array.Array:
        """The columns of C, a device array. The first product makes them: before it, reading them makes one."""
        if not self._has_columns:
            self()
        return self._indices

    @property
    def _dtype(self) -> np.dtype[Any]:
        """The dtype of C's values."""
        return self._product.kind.result

    @door()
    def __call__(self, a_data: Values | None = None, b_data: Values | None = None, *, out: MatrixT | None = None) -> MatrixT:
        """Return the product A @ B for new values of A and B, with no analysis and, from the second product on, no wait.

        Parameters
        ----------
        a_data, b_data : pyopencl.array.Array or array_like, optional
            In the order of the entries of A and B as they were given; by default the values that they had when the plan was made.
        out : csr_array, optional
            An earlier result of this plan: its values are overwritten.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context, or an ``out`` that is none of this plan's results; the message names the argument.
        """
        if not self._has_columns:
            with self._first:
                if not self._has_columns:
                    # Memory that a plan's first product keeps for later products counts as the plan's workspace.
                    with counting(self._workspace):
                        return self._multiply(a_data, b_data, out)
        with counting(self._remaining_workspace()):
            return self._multiply(a_data, b_data, out)

    def _multiply(self, a_data: Values | None, b_data: Values | None, out: MatrixT | None) -> MatrixT:
        """Return the planned product A @ B for new values of A and B, as `SpgemmPlan.__call__` says."""
        if are_plain() and not self._product.kind.device.is_plain:
            self._plan_plainly()
        left = self._a.accept("a_data", a_data, self._product.a_data)
        right = self._b.accept("b_data", b_data, self._product.b_data)
        writes = () if out is None else (self._check_out(out, left, right),)
        chain = Chain(self.queue, left, right, *self._product.structure, self._indices, self.indptr, writes=writes)
        data = new_part(chain, "values", self.shape, self.nnz, self._dtype, self._allocator) if out is None else out.data
        listed = self._count_to_list() if self._has_columns else None
        if listed is not None:
            listed.enqueue(chain, left, right, data)
            chain.finish(data)
        elif self._has_columns:
            self._enqueue(chain, left, right, data, "values")
            chain.finish(data)
        else:
            self._enqueue(chain, left, right, data, "numeric")
            chain.finish(self._indices, data)
            self._has_columns = True
        if out is None:
            return self._assembled(self._structure, data)
        out.data = data  # tells the array that its values changed
        return out

    def _enqueue(self, chain: Chain, left: cl_array.Array, right: cl_array.Array, data: cl_array.Array, phase: str) -> None:
        """Enqueue C's values, and C's columns if ``phase`` is not "values"; keep the steps (rows of each bin) that were taken."""
        C = Result(self.indptr, self._indices, data)
        self._steps = enqueue(chain, self._product._replace(a_data=left, b_data=right), self._steps, C, phase)

    def _count_to_list(self) -> ProductList | None:
        """Count a call of the plan, and return the plan's list of intermediate products; None while it is not made."""
        upgrade = self._list
        if self._list_undecided or not (upgrade is None or upgrade.is_done):
            with self._first, counting(self._workspace):
                if self._list_undecided:
                    # The module of lists of intermediate products is loaded late, as few processes use it.
                    from clsparse_py._operations.spgemm.product_list import first_list_call

                    list_from = first_list_call(self._product, self._steps, self.nnz)
                    self._list, self._list_undecided = None if list_from is None else self._start_list(list_from), False
                if self._list is not None:
                    self._list.come()
            upgrade = self._list
        return None if upgrade is None else upgrade.made

    def _start_list(self, list_from: int) -> Upgrade[ProductList]:
        """Return the `Upgrade` that lists intermediate products from the plan's call number ``list_from`` on.

        It has no reference to the plan.
        """
        from clsparse_py._operations.spgemm.product_list import make_product_list

        list_arguments = self.queue, self._product, self.indptr, self._indices
        return Upgrade("new values by a list of products", list_from, None, lambda: make_product_list(*list_arguments))

    def _plan_plainly(self) -> None:
        """Plan the product anew by plain kernels (one work-item a work-group), as a compiler refused a planned one. Waits."""
        chain = Chain(self.queue, *self._product.structure)
        product = self._product._replace(kind=kind_of(chain.device, self._product.types))
        operands = Operands(self._a, self._b, chain, product, self._allocator)
        self._product, _, partition = partition_rows(operands, operands.decision(self._request), self.indptr.dtype)
        chain.finish()
        self._steps, self._reason, self._deciding = partition.steps, str(partition.reason), partition.reason.deciding
        self._list, self._list_undecided = None, False

    def _remaining_workspace(self) -> Workspace | None:
        """Return a new count of memory for one call, the plan's memory already in use; None if memory is not counted."""
        workspace = self._workspace
        return None if workspace is None else Workspace(workspace.limit, workspace.used)

    def _check_out(self, out: Any, left: cl_array.Array, right: cl_array.Array) -> cl_array.Array:
        """Return the values of ``out``, an earlier result of the plan, for a product to overwrite, after checking ``out``."""
        product = self._product
        of_a = {"a_data": left, "A.indptr": product.a_indptr, "A.indices": product.a_indices}
        of_b = {"b_data": right, "B.indptr": product.b_indptr, "B.indices": product.b_indices}
        return values_of_result(out, self.shape, self.indptr, self._indices, self._dtype, "the product", {**of_a, **of_b})

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return the SpGEMM methods of the plan with the rows of C that each makes, and the product's sizes, as a table."""
        bins = tuple(
            BinRows(bin_.method, bin_.accumulator.describe(), bin_.max_products, bin_.max_length, rows.n - rows.n_empty)
            for bin_, rows in ((step.bin, step.rows) for step in self._steps)
            if bin_.accumulator is not None
        )
        nnz_a = self._a.matrix.nnz
        why = self._reason if self._list is None else f"{self._reason}; {self._list}"
        why += remark_older("spgemm", self._deciding)
        c_bytes = self.indptr.nbytes + self._indices.nbytes + self.nnz * self._dtype.itemsize
        workspace_bytes = (None, None) if self._workspace is None else (self._workspace.peak, self._workspace.used)
        sizes = self.shape, nnz_a, self.n_products, self.nnz
        return Explanation(self._request.method, bins, *sizes, why, c_bytes, *workspace_bytes)

    def __repr__(self) -> str:
        rows, columns = self.shape
        device = describe(self.queue.device).name
        return f"<SpgemmPlan of a {rows} x {columns} product with {self.nnz} entries on {device}>"
