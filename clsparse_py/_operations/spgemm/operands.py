"""The operands of a product as kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.spgemm.accumulator import Product, workspace_bound
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.canonical_values import CanonicalOperand
from clsparse_py._operations.spgemm.decide import Decision, decide
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import kind_of
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._run.launch import Chain

__all__ = ["Operands", "operands_of"]


class Operands(NamedTuple):
    """The operands of a product in canonical format, with the chain of commands that its phases continue.

    Attributes
    ----------
    a, b : CanonicalOperand
    chain : Chain
    product : Product
        The products of its rows are not known yet; another array stands for them.
    allocator : callable or None
        Allocates C.
    """

    a: CanonicalOperand
    b: CanonicalOperand
    chain: Chain
    product: Product
    allocator: Any

    @property
    def features(self) -> Features:
        """Features of the product."""
        a, b, _, product, *_ = self
        m, n = product.shape
        return Features((m, b.matrix.shape[0], n), (a.nnz, b.nnz), a.known, b.known, product.kind.entry_bytes)

    @property
    def budget(self) -> Budget:
        """The memory budget of the product."""
        product = self.product
        return Budget(product.memory_limit, product.workspace)

    def decision(self, request: Request) -> Decision:
        """Return how rows are shared out if they are analysed."""
        return decide(self.product.kind, self.features, request, self.budget)


def operands_of(A: Matrix, B: Matrix, request: Request, chain_of: Callable[..., Chain] = Chain) -> Operands:
    """Return the operands of A @ B; ``chain_of`` makes the chain of a queue and arrays."""
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
