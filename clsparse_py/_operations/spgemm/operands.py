"""The operands of a product as kernels take them, and new arrays for C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate, array_of
from clsparse_py._memory.workspace import counting, current
from clsparse_py._operations.spgemm.accumulator import Product, workspace_bound
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.canonical_values import CanonicalOperand
from clsparse_py._operations.spgemm.decide import Decision, decide
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Tape

__all__ = ["COUNT", "Operands", "new_part", "operands_of"]

#: NumPy's dtype of the array that the symbolic phase fills: the number of entries of each row of C.
COUNT = np.dtype(np.uint32)


class Operands(NamedTuple):
    """The operands of a product in canonical format, with the chain of commands that its phases continue.

    Attributes
    ----------
    a, b : CanonicalOperand
    chain : Chain
    product : Product
        Its ``products`` are not known yet; another array stands for them.
    allocator : callable or None
        Allocator of C's arrays.
    """

    a: CanonicalOperand
    b: CanonicalOperand
    chain: Chain
    product: Product
    allocator: Any

    @property
    def features(self) -> Features:
        """Features of the product (sizes, facts of the structures) that are known before its rows are analysed."""
        a, b, _, product, *_ = self
        m, n = product.shape
        return Features((m, b.matrix.shape[0], n), (a.nnz, b.nnz), a.facts, b.facts, product.kind.entry_bytes)

    @property
    def budget(self) -> Budget:
        """The bytes of workspace that the product may take in all, and those that one accumulator as wide as B may take."""
        product = self.product
        return Budget(product.memory_limit, product.workspace)

    def decision(self, request: Request) -> Decision:
        """Return the bins (classes of rows by size) among which the analysis shares rows out, and the reason for them."""
        return decide(self.product.kind, self.features, request, self.budget)

    def new_part(self, part: str, n: int, dtype: Any) -> cl_array.Array:
        """Return a new array for a part of C: "indptr", "indices" or "values"."""
        return new_part(self.chain, part, self.product.shape, n, dtype, self.allocator)

    def new_pointers(self, c_index: Any) -> cl_array.Array:
        """Return a new array for the row pointers of C."""
        return self.new_part("indptr", self.product.shape[0] + 1, c_index)

    def new_counts(self, c_index: np.dtype[Any]) -> tuple[cl_array.Array, cl_array.Array | None]:
        """Return memory for each row's number of entries, and C's ``indptr`` in the same memory if it has 32 bits, else None.

        Pointers of 64 bits are not made before it is known that C needs them.
        """
        m = self.product.shape[0]
        if c_index.itemsize > COUNT.itemsize:
            return self.chain.scratch(m, COUNT), None
        indptr = self.new_pointers(c_index)
        return array_of(self.chain.queue, m, COUNT, indptr.base_data, context=indptr.context), indptr


def operands_of(A: Matrix, B: Matrix, request: Request, chain_of: Callable[..., Chain] = Chain) -> Operands:
    """Return the operands of A @ B as kernels take them; ``chain_of`` makes a chain of commands on a queue and arrays."""
    a = CanonicalOperand(A)
    # A matrix that is multiplied by itself is put into canonical format once.
    b = a if B is A else CanonicalOperand(B)
    queue, m, n = A.queue, A.shape[0], B.shape[1]
    types = types_of(a.matrix, b.matrix, request.semiring)
    index = np.dtype(types.index)
    of_a = a.arrays(index)
    of_b = of_a if b is a else b.arrays(index)
    chain = chain_of(queue, *of_a) if b is a else chain_of(queue, *of_a, *of_b)
    kind = kind_of(chain.device, types)
    limit = kind.memory if request.memory_limit is None else int(request.memory_limit)
    arrays = *of_a, *of_b
    limits = limit, request.deterministic, request.allow_upper_bound
    product = Product((m, n), *arrays, of_a[0], 0, 0, kind, *limits, workspace_bound(*arrays))
    return Operands(a, b, chain, product, A.data.allocator)


def new_part(chain: Chain, part: str, shape: tuple[int, int], n: int, dtype: Any, allocator: Any) -> cl_array.Array:
    """Return a new array for a part of C (indptr, indices or values), which does not count as workspace."""
    purpose = f"{part} of the {shape[0]} x {shape[1]} product"
    if current() is None:
        array = allocate(chain.queue, purpose, n, dtype, allocator)
        if isinstance(chain, Tape):
            chain.take(part, array)
        return array
    with counting(None):
        return allocate(chain.queue, purpose, n, dtype, allocator)
