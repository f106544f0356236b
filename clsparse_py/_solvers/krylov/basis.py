"""An orthonormal basis of vectors on the device, extended by products with an operator (Arnoldi's process)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._memory.memory import submit
from clsparse_py._memory.pool import side_queue
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import AllSum, Layout, Pass, Passes, Sweeps, declare_passes
from clsparse_py._solvers.krylov.system import Apply

__all__ = ["START", "Basis"]

#: Number of basis vectors of a Krylov space that one vector pass reads.
_AT_ONCE = 4
#: Indices of basis vectors within a block; a block is as many vectors of a Krylov basis as one vector pass reads.
_PLACES = range(_AT_ONCE)
#: Names of a block's basis vectors in the OpenCL C of vector passes.
_BASIS = tuple(f"v{i}" for i in _PLACES)

# Scalars: h, inner products of basis vectors with w, or factors of a linear combination, which the host sets; the norm of w.
# Sums: s, of inner products of basis vectors with w; ww and bb, squares of the norms of w and b.
#: Names of the scalars and sums of Arnoldi's process on the device.
LAYOUT = Layout(scalars=(*(f"h{i}" for i in _PLACES), "norm"), sums=(*(f"s{i}" for i in _PLACES), "ww", "bb"))

#: The sum of squares of w, the vector that becomes the next basis vector: its name, and the expression of a summand.
_WW = ("ww", "of_real(square(w))")
#: The vector pass that computes the residual b - A x of the first guess, and begins the sums for the residual's norm and b's.
START = Pass(
    "basis_start", reads=("b", "q"), writes=("w",), lines=("w = b - q;",), sums=(_WW, ("bb", "of_real(square(b))"))
)  # fmt: skip
#: The vector pass that begins the sum for the norm of w, the vector that becomes the next basis vector.
_NORM = Pass("basis_norm", reads=("w",), sums=(_WW,))
#: The vector pass that begins the inner products of a vector w with a block of basis vectors (classical Gram-Schmidt).
_PRODUCTS = Pass("basis_products", reads=("w", *_BASIS), sums=tuple((f"s{i}", f"times(conjugate(v{i}), w)") for i in _PLACES))
#: The vector pass that subtracts a vector w's projection on a block of basis vectors, and begins the sum for the new w's norm.
_SUBTRACTION = Pass(
    "basis_subtraction", reads=_BASIS, updates=("w",), totals=tuple(f"s{i}" for i in _PLACES),
    lines=tuple(f"w -= times(s{i}, v{i});" for i in _PLACES), sums=(_WW,), keeps=tuple((f"h{i}", f"s{i}") for i in _PLACES),
)  # fmt: skip
#: The vector pass that scales w to norm 1, as the next basis vector; w's norm is a subdiagonal entry of the Hessenberg matrix.
_SCALING = Pass(
    "basis_scaling", reads=("w",), writes=("v",), totals=("ww",),
    first=("const R size = sqrt(real_part(ww)), factor = size > 0 ? 1 / size : 0;",),
    lines=("v = w * factor;",), keeps=(("norm", "of_real(size)"),),
)  # fmt: skip
#: The vector pass that adds a linear combination of a block of basis vectors to a vector x.
_COMBINATION = Pass(
    "basis_combination", reads=_BASIS, updates=("x",), takes=tuple(f"h{i}" for i in _PLACES),
    lines=tuple(f"x += times(h{i}, v{i});" for i in _PLACES),
)  # fmt: skip
declare_passes(LAYOUT, START, _NORM, _PRODUCTS, _SUBTRACTION, _SCALING, _COMBINATION)


@dataclasses.dataclass
class _Column:
    """A column of the Hessenberg matrix that is being read: inner products of both orthogonalisations, by blocks, and norms."""

    event: cl.Event
    host: np.ndarray[Any, Any]
    number: int
    used: int

    def values(self) -> tuple[np.ndarray[Any, Any], float]:
        """Return a column of the Hessenberg matrix and its subdiagonal entry; waits for the read."""
        self.event.wait()
        products = self.host[:, : self.used, :_AT_ONCE].reshape(2, -1).sum(axis=0)[: self.number + 1]
        return products.astype(np.result_type(products, np.float64)), float(self.host[1, self.used - 1, -1].real)


class Basis:
    """An orthonormal basis of a Krylov space, and the columns of the Hessenberg matrix: the operator in that basis.

    Parameters
    ----------
    chain : Chain
    n : int
    dtype : dtype
        Of vectors.
    A, M : callable
        The operator is M A; M may be None.
    size : int
        How many vectors the operator is applied to.
    all_sum : callable, optional
        If ranks share the vectors: adds numbers up over them.
    """

    def __init__(
        self, chain: Chain, n: int, dtype: np.dtype[Any], A: Apply, M: Apply | None, size: int, all_sum: AllSum | None = None
    ) -> None:
        self._A, self._M, self.size, self.blocks = A, M, size, -(-size // _AT_ONCE)
        # Each new basis vector is made orthogonal to the earlier ones twice: once is not enough in finite precision.
        # Scalars of a Hessenberg column are read while the next column's are written, so there are sets of scalars for two.
        self.sweeps = Sweeps(chain, n, dtype, LAYOUT, 4 * self.blocks, all_sum)
        self._reading = side_queue(chain.queue) if chain.device.waits_cost else chain.queue
        self.vectors = [self.sweeps.vector() for _ in range(max(self.blocks * _AT_ONCE, size + 1))]
        self.w, self.q = self.sweeps.vector(), self.sweeps.vector()
        self.passes = Passes(self.sweeps)

    def block(self, number: int) -> dict[str, cl_array.Array]:
        """Return the vectors of a numbered block of the Krylov basis, by the vectors' names in vector passes."""
        return dict(zip(_BASIS, self.vectors[number * _AT_ONCE :], strict=False))

    def apply_preconditioner(self, source: cl_array.Array, target: cl_array.Array) -> None:
        """Enqueue the preconditioned vector ``target = M source``, or a copy without a preconditioner M."""
        if self._M is not None:
            self._M(source, target)
        else:
            self.sweeps.copy(target, source)

    def norm(self) -> float:
        """Return the norm of w, the vector that becomes the next basis vector; waits."""
        self.passes.enqueue(_NORM, w=self.w)
        return float(np.sqrt(self.sweeps.totals()["ww"].real))

    def begin(self, r: cl_array.Array) -> None:
        """Enqueue the computation of the first basis vector: the residual r, preconditioned by M and scaled to norm 1."""
        for vector in self.vectors:
            # Vector passes read whole blocks of basis vectors, also basis vectors that are not there yet.
            self.sweeps.fill(vector)
        self.apply_preconditioner(r, self.w)
        self.passes.enqueue(_NORM, w=self.w)
        self.passes.enqueue(_SCALING, w=self.w, v=self.vectors[0])

    def extend(self, column: int, n_earlier: int | None = None, target: cl_array.Array | None = None) -> _Column:
        """Enqueue the computation of the next basis vector, and the read of the next column of the Hessenberg matrix.

        The operator multiplies the basis vector numbered ``column``. Its product is made orthogonal to the first ``n_earlier``
        vectors, by default all up to that one, is scaled, and becomes the basis vector after these, or ``target``.
        """
        n_earlier = column + 1 if n_earlier is None else n_earlier
        if self._M is None:
            self._A(self.vectors[column], self.w)
        else:
            self._A(self.vectors[column], self.q)
            self._M(self.q, self.w)
        part, used, first = 0, -(-n_earlier // _AT_ONCE), column % 2 * 2 * self.blocks
        for sweep in (0, 1):
            for number in range(used):
                part = first + sweep * self.blocks + number
                self.passes.enqueue(_PRODUCTS, part, w=self.w, **self.block(number))
                self.passes.enqueue(_SUBTRACTION, part, w=self.w, **self.block(number))
        scaled = self.passes.enqueue(_SCALING, part, w=self.w, v=self.vectors[n_earlier] if target is None else target)
        queue, n = self.sweeps.chain.queue, len(LAYOUT.scalars)
        host = np.empty((2, self.blocks, n), self.sweeps.dtype)
        queue.flush()
        event = submit(
            "a read", cl.enqueue_copy, self._reading, host, self.sweeps.scalars.base_data, is_blocking=False,
            src_offset=first * n * host.itemsize, wait_for=None if self._reading is queue else [scaled],
        )  # fmt: skip
        return _Column(event, host, n_earlier - 1, used)

    def columns(self) -> Iterator[tuple[np.ndarray[Any, Any], float]]:
        """Yield each column of the Hessenberg matrix with its subdiagonal entry, while the device computes the next column."""
        columns: list[_Column] = []
        try:
            for column in range(self.size):
                columns.append(self.extend(column))
                # Wait for the first column of the Hessenberg matrix: with a preconditioner close to the inverse it is enough.
                if column != 1:
                    yield columns[max(column - 1, 0)].values()
            if self.size > 1:
                yield columns[-1].values()
        finally:
            # Wait for the pending reads of Hessenberg columns before the memory of their scalars is overwritten.
            for column_read in columns[-2:]:
                column_read.event.wait()

    def replace(self, number: int, values: np.ndarray[Any, Any]) -> None:
        """Make a host vector orthonormal to the first ``number`` basis vectors, and store it as the vector of that index."""
        self.assign(self.q, values)
        self.orthogonalise(number, self.q)

    def assign(self, vector: cl_array.Array, values: np.ndarray[Any, Any]) -> None:
        """Copy the entries of a host vector to a vector of the device; waits."""
        contiguous = np.ascontiguousarray(values, self.sweeps.dtype)
        submit("a vector", cl.enqueue_copy, self.sweeps.chain.queue, vector.base_data, contiguous, is_blocking=True)

    def product(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the product of the operator A with a vector of the host, in double precision; waits."""
        self.assign(self.q, values)
        self._A(self.q, self.w)
        product = self.sweeps.chain.read(self.w, values.size)
        return product.astype(np.result_type(product, np.float64))

    def orthogonalise(self, number: int, values: cl_array.Array) -> None:
        """Make a device vector orthonormal to the first ``number`` basis vectors, and store it as the vector of that index."""
        self.sweeps.copy(self.w, values)
        # The replaced basis vector, which vector passes read with its block, is filled with 0, as it must not count.
        self.sweeps.fill(self.vectors[number])
        self.passes.enqueue(_NORM, w=self.w)
        for _ in (0, 1):
            for block in range(-(-number // _AT_ONCE)):
                self.passes.enqueue(_PRODUCTS, 0, w=self.w, **self.block(block))
                self.passes.enqueue(_SUBTRACTION, 0, w=self.w, **self.block(block))
        self.passes.enqueue(_SCALING, w=self.w, v=self.vectors[number])

    def add(self, x: cl_array.Array, factors: np.ndarray[Any, Any]) -> None:
        """Enqueue the addition of a linear combination of the basis vectors to a vector x."""
        blocks = -(-factors.size // _AT_ONCE)
        values = np.zeros((blocks, len(LAYOUT.scalars)), self.sweeps.dtype)
        padded = np.zeros(blocks * _AT_ONCE, self.sweeps.dtype)
        padded[: factors.size] = factors
        values[:, :_AT_ONCE] = padded.reshape(blocks, -1)
        self.sweeps.set_all(values)
        for number in range(blocks):
            self.passes.enqueue(_COMBINATION, number, x=x, **self.block(number))
