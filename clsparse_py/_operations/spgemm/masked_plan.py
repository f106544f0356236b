"""Plans of masked products: structure once, values at each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, get_args

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.plain import door
from clsparse_py._device.device import describe
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import SetOnce
from clsparse_py._ground.tables import plan_as_html
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure
from clsparse_py._matrix.operands import values_of_result
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.workspace import Workspace, counting
from clsparse_py._operations.spgemm.arguments import require_at_most
from clsparse_py._operations.spgemm.canonical_values import CanonicalOperand, number_entries
from clsparse_py._operations.spgemm.estimate import spgemm_estimate
from clsparse_py._operations.spgemm.explanation import BinRows, Explanation
from clsparse_py._operations.spgemm.mask import (
    Accumulation,
    counting_entries,
    cut,
    masked_product,
    multiply_under_mask,
    require_accumulation,
    require_beside,
    require_mask,
    require_no_method,
    sum_at_mask,
)
from clsparse_py._operations.spgemm.mask_writes import accumulate_values, find_marked, marked_pointers, take_marked
from clsparse_py._operations.spgemm.masked_rows import choose_masked_record, enqueue_masked
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.timer import UNTIMED
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Values

__all__ = ["MaskedPlan"]


class _AtPlaces:
    """Plan of a product at the places of a mask: one launch makes its values."""

    def __init__(self, A: Matrix, B: Matrix, mask: Matrix, request: Request) -> None:
        queue, self.a = A.queue, CanonicalOperand(A)
        self.b = self.a if B is A else CanonicalOperand(B)
        product = masked_product(self.a, self.b, mask, request.semiring)
        indptr, indices = product.mask
        sums, marks = sum_at_mask(queue, product, A.data.allocator)
        self.dtype: np.dtype[Any] = sums.dtype
        del sums  # the plan needs the structure alone
        marked = find_marked(queue, marks, indptr.dtype)
        del marks
        if marked.n < indices.size:
            allocator = A.data.allocator
            indices, indptr = take_marked(queue, indices, marked, allocator), marked_pointers(queue, indptr, marked, allocator)
        self.structure = Structure.canonical(queue, mask.shape, indices, indptr)
        # All entries of C have products: with C's own structure as the mask, the sums at the mask's places are C's values.
        self._product = product._replace(mask=(indptr, indices))
        self._record = choose_masked_record(describe(queue.device), self._product)

    @property
    def rows(self) -> BinRows:
        """The one row of the table that `MaskedPlan.explain` returns: method, parameters and number of rows."""
        return BinRows("masked", self._record.name, None, None, self.structure.indptr.size - 1)

    def enqueue(self, queue: cl.CommandQueue, left: cl_array.Array, right: cl_array.Array, data: cl_array.Array) -> None:
        """Enqueue the kernel that makes ``data``, C's values at the mask's places, from values of A and B."""
        chain = Chain(queue, left, right, self.structure.indptr, self.structure.indices, writes=(data,))
        a, b = self._product.a, self._product.b
        product = self._product._replace(a=(*a[:2], left), b=(*b[:2], right))
        record = choose_masked_record(chain.device, product) if chain.device.is_plain else self._record
        enqueue_masked(chain, product, record, data, chain.scratch(data.size, np.uint8))
        chain.finish(data)


class _CutOut:
    """Plan of a product at all places but a mask's: its values are taken out of the whole product."""

    def __init__(self, A: Matrix, B: Matrix, mask: Matrix, request: Request) -> None:
        queue, self.a, self.b = A.queue, CanonicalOperand(A), CanonicalOperand(B)
        self._whole = SpgemmPlan(self.a.matrix, self.b.matrix, request._replace(max_nnz=None))
        C = self._whole
        _, numbers = number_entries(queue, "positions", C.nnz, C.indptr.dtype)
        self._positions, indices, indptr = cut(queue, (numbers, C.indices, C.indptr), mask, at_mask=False)
        self.structure = Structure.canonical(queue, mask.shape, indices, indptr)
        self.dtype: np.dtype[Any] = C().dtype

    @property
    def rows(self) -> BinRows:
        """The one row of the table that `MaskedPlan.explain` returns: method, parameters and number of rows."""
        return BinRows("whole product", "entries taken out of it", None, None, self.structure.indptr.size - 1)

    def enqueue(self, queue: cl.CommandQueue, left: cl_array.Array, right: cl_array.Array, data: cl_array.Array) -> None:
        """Enqueue the whole product A @ B of new values, and the copy to ``data`` of its values at all places but the mask's."""
        product_data = self._whole(left, right).data
        chain = Chain(queue, product_data, self._positions, writes=(data,))
        enqueue_permute(chain, self._positions, product_data, data, data.size)
        chain.finish(data)


class MaskedPlan(SetOnce, Generic[MatrixT]):
    """Plan of the product of two structures under a mask, for any values. Made by `spgemm_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        The queue of A.
    shape : tuple of int
        Of C.
    nnz : int
        Entries of C: places that the mask lets through and that have a product.
    indptr, indices : pyopencl.array.Array
        The structure of C, which results share.
    """

    def __init__(
        self,
        A: MatrixT,
        B: Matrix,
        request: Request,
        workspace: Workspace,
        mask: Any,
        *,
        complement: bool,
        structural: bool,
        accum: str | None,
    ) -> None:
        require_beside("a mask", mask, complement=complement, structural=not structural, accum=accum is not None)
        if accum is not None:
            require_name("accum", accum, get_args(Accumulation))
        self._complement, self._structural, self._accum = bool(complement), bool(structural), accum
        require_no_method(request.method, complement=self._complement)
        self.queue, self.shape = A.queue, (A.shape[0], B.shape[1])
        self._request, self._workspace = request, workspace
        self._allocator, self._assembled = A.data.allocator, type(A).assembled
        with counting(workspace):
            self._mask = require_mask(A, mask, self.shape)
            counting_mask = counting_entries(self._mask.matrix, structural=self._structural)
            self._maker = (_CutOut if self._complement else _AtPlaces)(A, B, counting_mask, request)
        if self._accum is not None:
            require_accumulation(self._accum, self._maker.dtype, self._maker.dtype)
        self._structure = self._maker.structure
        self.indptr, self.indices = self._structure.indptr, self._structure.indices
        self.nnz: int = self.indices.size
        require_at_most(self.nnz, request.max_nnz)

    @door()
    def __call__(
        self,
        a_data: Values | None = None,
        b_data: Values | None = None,
        mask_data: Values | None = None,
        *,
        out: MatrixT | None = None,
    ) -> MatrixT:
        """Return the product of new values of the operands. Waits for nothing, unless ``mask_data`` is given.

        Parameters
        ----------
        a_data, b_data : pyopencl.array.Array or array_like, optional
            In the order of the entries of A and B as they were given; by default the values that they had when the plan was made.
        mask_data : pyopencl.array.Array or array_like, optional
            Of a plan with ``structural=False``, values of the mask's entries, in their order: places whose value is not
            zero count. The result then has a structure of its own, and the host waits to learn its entries.
        out : csr_array, optional
            An earlier result of this plan: its values are overwritten or, of a plan with ``accum``, combined with the product's.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context, or an ``out`` that is none of this plan's results; the message names the argument.
        """
        with counting(Workspace(self._workspace.limit, self._workspace.used)):
            left = self._maker.a.accept("a_data", a_data, self._maker.a.data)
            right = self._maker.b.accept("b_data", b_data, self._maker.b.data)
            if mask_data is not None:
                return self._multiply_with_mask(left, right, mask_data, out)
            target = None if out is None else self._check_out(out, left, right)
            in_place = target is not None and self._accum is None
            data = target if in_place else allocate(self.queue, "values", self.nnz, self._maker.dtype, self._allocator)
            assert data is not None
            self._maker.enqueue(self.queue, left, right, data)
            if out is None or target is None:
                return self._assembled(self._structure, data)
            if self._accum is not None:
                accumulate_values(self.queue, target, data, self._accum)
            out.data = target  # tells the array that its values changed
            return out

    def _multiply_with_mask(self, left: cl_array.Array, right: cl_array.Array, mask_data: Values, out: Any) -> MatrixT:
        """Return the product of A and B under a mask with new values, ``mask_data``, of which zeros let nothing through."""
        if self._structural:
            raise ValueError("mask_data: belongs to a plan with structural=False, as this mask's values do not count")
        if out is not None:
            raise ValueError("out: must be None with mask_data, by which the result has a structure of its own")
        M = self._mask
        values = M.accept("mask_data", mask_data, M.data)
        mask = counting_entries(M.matrix.with_values(values), structural=False)
        A, B = (operand.matrix.with_values(data) for operand, data in ((self._maker.a, left), (self._maker.b, right)))
        data, indices, indptr = multiply_under_mask(A, B, mask, self._request, UNTIMED, complement=self._complement)
        require_at_most(indices.size, self._request.max_nnz)
        return self._assembled(Structure.canonical(self.queue, self.shape, indices, indptr), data)

    def _check_out(self, out: Any, left: cl_array.Array, right: cl_array.Array) -> cl_array.Array:
        """Return the values of ``out``, an earlier result of the plan, for a product to overwrite, after checking ``out``."""
        inputs = {"a_data": left, "b_data": right}
        for name, operand in (("A", self._maker.a), ("B", self._maker.b)):
            inputs |= {f"{name}.indptr": operand.indptr, f"{name}.indices": operand.indices}
        return values_of_result(out, self.shape, self.indptr, self.indices, self._maker.dtype, "the product", inputs)

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return the method and the sizes of the product under the mask, as a table. Waits for the device."""
        maker = self._maker
        n_products = spgemm_estimate(maker.a.matrix, maker.b.matrix).n_products
        c_bytes = self.indptr.nbytes + self.indices.nbytes + self.nnz * maker.dtype.itemsize
        why = f"under {'the complement of ' if self._complement else ''}a mask of {self._mask.nnz:,} entries"
        sizes = self.shape, maker.a.nnz, n_products, self.nnz
        return Explanation(self._request.method, (maker.rows,), *sizes, why, c_bytes, self._workspace.peak, self._workspace.used)

    def __repr__(self) -> str:
        rows, columns = self.shape
        device = describe(self.queue.device).name
        return f"<MaskedPlan of a {rows} x {columns} product with {self.nnz} entries on {device}>"
