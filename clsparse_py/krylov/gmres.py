"""The generalised minimal residual method, restarted, on the device.

The basis and all vectors are on the device. A column of the Hessenberg matrix is read while the next one is made; the small
least-squares problem is the host's.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.krylov.sweep import Bound, Layout, Pass, Sweeps
from clsparse_py.krylov.system import System
from clsparse_py.memory import side_queue, submit

__all__ = ["LAYOUT", "PASSES", "gmres"]

#: Vectors of the basis that a pass takes.
_AT_ONCE = 4
_PLACES = range(_AT_ONCE)
_BASIS = tuple(f"v{i}" for i in _PLACES)

#: A part for each set of vectors of the basis: the products h of w with them, and the norm of what is left of w.
LAYOUT = Layout(scalars=(*(f"h{i}" for i in _PLACES), "norm"), sums=(*(f"s{i}" for i in _PLACES), "ww"))

_WW = ("ww", "of_real(square(w))")
_START = Pass(
    "gmres_start", reads=("b", "q"), writes=("w",), lines=("w = b - q;",), sums=(_WW, ("s0", "of_real(square(b))"))
)  # fmt: skip
_NORM = Pass("gmres_norm", reads=("w",), sums=(_WW,))
_PRODUCTS = Pass("gmres_products", reads=("w", *_BASIS), sums=tuple((f"s{i}", f"times(conjugate(v{i}), w)") for i in _PLACES))
_SUBTRACTION = Pass(
    "gmres_subtraction", reads=_BASIS, updates=("w",), totals=tuple(f"s{i}" for i in _PLACES),
    lines=tuple(f"w -= times(s{i}, v{i});" for i in _PLACES), sums=(_WW,), keeps=tuple((f"h{i}", f"s{i}") for i in _PLACES),
)  # fmt: skip
_SCALING = Pass(
    "gmres_scaling", reads=("w",), writes=("v",), totals=("ww",),
    first=("const R size = sqrt(real_part(ww)), factor = size > 0 ? 1 / size : 0;",),
    lines=("v = w * factor;",), keeps=(("norm", "of_real(size)"),),
)  # fmt: skip
_COMBINATION = Pass(
    "gmres_combination", reads=_BASIS, updates=("x",), takes=tuple(f"h{i}" for i in _PLACES),
    lines=tuple(f"x += times(h{i}, v{i});" for i in _PLACES),
)  # fmt: skip
PASSES = (_START, _NORM, _PRODUCTS, _SUBTRACTION, _SCALING, _COMBINATION)


@dataclasses.dataclass
class _Column:
    """A column of the Hessenberg matrix that is being read: the products of both times, by blocks, and norms."""

    event: cl.Event
    host: np.ndarray[Any, Any]
    number: int
    used: int

    def values(self) -> tuple[np.ndarray[Any, Any], float]:
        """Wait for the column, and return it with the number below it."""
        self.event.wait()
        products = self.host[:, : self.used, :_AT_ONCE].reshape(2, -1).sum(axis=0)[: self.number + 1]
        return products.astype(np.result_type(products, np.float64)), float(self.host[1, self.used - 1, -1].real)


class _Basis:
    """The vectors of a cycle, orthonormal, and the columns of the Hessenberg matrix that go with them."""

    def __init__(self, system: System, restart: int) -> None:
        self._system, self.restart, self.blocks = system, restart, -(-restart // _AT_ONCE)
        # Each vector is made orthogonal to the others twice: once is not enough in finite precision.
        # The parts of a column are read while those of the next are written.
        self.sweeps = Sweeps(system.chain, system.n, system.dtype, LAYOUT, 4 * self.blocks)
        self._reading = system.chain.queue if system.chain.device.is_cpu else side_queue(system.chain.queue)
        self.vectors = [self.sweeps.vector() for _ in range(max(self.blocks * _AT_ONCE, restart + 1))]
        self.w, self.q = self.sweeps.vector(), self.sweeps.vector()
        self._bound: dict[tuple[Any, ...], Bound] = {}

    def pass_over(self, of: Pass, part: int = 0, **vectors: cl_array.Array) -> cl.Event:
        """Enqueue a pass, which is bound once, and return its event."""
        key = (of.name, part, *map(id, vectors.values()))
        if key not in self._bound:
            self._bound[key] = self.sweeps.bind(of, part, 0, **vectors)
        return self._bound[key]()

    def block(self, number: int) -> dict[str, cl_array.Array]:
        """Return some vectors of the basis by the names that passes have for them."""
        return dict(zip(_BASIS, self.vectors[number * _AT_ONCE :], strict=False))

    def preconditioned(self, source: cl_array.Array, target: cl_array.Array) -> None:
        """Enqueue ``target = M source``."""
        if self._system.M is not None:
            self._system.M(source, target)
        else:
            self.sweeps.copy(target, source)

    def norm(self) -> float:
        """Return the norm of w; waits."""
        self.pass_over(_NORM, w=self.w)
        return float(np.sqrt(self.sweeps.totals()["ww"].real))

    def begin(self, r: cl_array.Array) -> None:
        """Begin a cycle with what M makes of a residual."""
        for vector in self.vectors:
            # Passes read some vectors that are not there yet.
            self.sweeps.fill(vector)
        self.preconditioned(r, self.w)
        self.pass_over(_NORM, w=self.w)
        self.pass_over(_SCALING, w=self.w, v=self.vectors[0])

    def extend(self, column: int) -> _Column:
        """Enqueue what makes the next vector of the basis, and the read of its column of the Hessenberg matrix."""
        if self._system.M is None:
            self._system.A(self.vectors[column], self.w)
        else:
            self._system.A(self.vectors[column], self.q)
            self._system.M(self.q, self.w)
        part, used, first = 0, column // _AT_ONCE + 1, column % 2 * 2 * self.blocks
        for again in (0, 1):
            for number in range(used):
                part = first + again * self.blocks + number
                self.pass_over(_PRODUCTS, part, w=self.w, **self.block(number))
                self.pass_over(_SUBTRACTION, part, w=self.w, **self.block(number))
        scaled = self.pass_over(_SCALING, part, w=self.w, v=self.vectors[column + 1])
        queue, n = self._system.chain.queue, len(LAYOUT.scalars)
        host = np.empty((2, self.blocks, n), self.sweeps.dtype)
        queue.flush()
        event = submit(
            "a read", cl.enqueue_copy, self._reading, host, self.sweeps.scalars.base_data, is_blocking=False,
            src_offset=first * n * host.itemsize, wait_for=None if self._reading is queue else [scaled],
        )  # fmt: skip
        return _Column(event, host, column, used)

    def columns(self) -> Iterator[tuple[np.ndarray[Any, Any], float]]:
        """Yield the columns of the Hessenberg matrix, and the numbers below them, while the device makes the next one."""
        made: list[_Column] = []
        try:
            for column in range(self.restart):
                made.append(self.extend(column))
                if column:
                    yield made[-2].values()
            yield made[-1].values()
        finally:
            # What is being read is not written to before.
            for each in made[-2:]:
                each.event.wait()

    def add(self, x: cl_array.Array, factors: np.ndarray[Any, Any]) -> None:
        """Enqueue the addition of a combination of the vectors to x."""
        blocks = -(-factors.size // _AT_ONCE)
        values = np.zeros((blocks, len(LAYOUT.scalars)), self.sweeps.dtype)
        padded = np.zeros(blocks * _AT_ONCE, self.sweeps.dtype)
        padded[: factors.size] = factors
        values[:, :_AT_ONCE] = padded.reshape(blocks, -1)
        self.sweeps.set_all(values)
        for number in range(blocks):
            self.pass_over(_COMBINATION, number, x=x, **self.block(number))


class _Rotations:
    """The least-squares problem of a cycle, kept triangular by a rotation for each column."""

    def __init__(self, norm: float, restart: int, dtype: np.dtype[Any]) -> None:
        wide = np.result_type(dtype, np.float64)
        self.R = np.zeros((restart, restart), wide)
        self.right = np.zeros(restart + 1, wide)
        self.right[0] = norm
        self._rotations: list[tuple[float, Any]] = []

    def add(self, column: np.ndarray[Any, Any], below: float) -> float:
        """Add a column and the number below it; return the norm of the residual."""
        column, k = column.copy(), column.size - 1
        for i, (c, s) in enumerate(self._rotations):
            column[i], column[i + 1] = c * column[i] + s * column[i + 1], -np.conj(s) * column[i] + c * column[i + 1]
        top = column[k]
        size = np.hypot(abs(top), below)
        if size == 0:
            c, s = 1.0, column.dtype.type(0)
        elif abs(top) == 0:
            c, s = 0.0, column.dtype.type(1)
        else:
            c, s = abs(top) / size, top / abs(top) * below / size
        self.R[:k, k], self.R[k, k] = column[:k], c * top + s * below
        self._rotations.append((c, s))
        self.right[k + 1] = -np.conj(s) * self.right[k]
        self.right[k] *= c
        return float(abs(self.right[k + 1]))

    def solution(self) -> np.ndarray[Any, Any]:
        """Return the factors of the basis; those of which nothing is known are 0."""
        n = len(self._rotations)
        y = self.right[:n].copy()
        if self.R[n - 1, n - 1] == 0:
            y[n - 1] = 0
        for k in reversed(range(n)):
            if y[k] != 0:
                y[k] /= self.R[k, k]
                y[:k] -= y[k] * self.R[:k, k]
        return y


def gmres(system: System, restart: int, told: Callable[[float], object] | None, by_columns: bool) -> int:
    """Solve a system by the method, and return info.

    Parameters
    ----------
    system : System
    restart : int
        Columns of a cycle.
    told : callable or None
        Called with the relative norm of the preconditioned residual, for each column.
    by_columns : bool
        Whether ``maxiter`` counts columns; else it counts cycles.
    """
    basis, maxiter = _Basis(system, min(restart, system.n)), system.maxiter
    r, x = basis.sweeps.vector(), system.x
    residual = functools.partial(system.begin, _START, basis.sweeps, q=basis.q, w=r)
    residual()
    totals = basis.sweeps.totals()
    bb, norm = totals["s0"].real, float(np.sqrt(totals["ww"].real))
    limit = float(np.sqrt(system.bound(totals["s0"])))
    if bb == 0:
        basis.sweeps.fill(x)
        return 0
    if norm < limit or norm == 0:
        return 0
    basis.preconditioned(system.b, basis.w)
    b_norm, most, eps = float(np.sqrt(bb)), 1.0, float(np.finfo(system.dtype).eps)
    bound = basis.norm() * min(most, limit / b_norm)
    made = 0
    for _ in range(maxiter):
        if not np.isfinite(norm):
            break
        basis.begin(r)
        rotations, estimate, exact = _Rotations(basis.norm(), basis.restart, system.dtype), 0.0, False
        for column, below in basis.columns():
            exact = below <= eps * float(np.linalg.norm([*np.abs(column), below]))
            estimate = rotations.add(column, 0.0 if exact else below)
            made += 1
            if told is not None:
                told(np.float64(estimate / b_norm))
            if estimate <= bound or exact or (by_columns and made == maxiter):
                break
        basis.add(x, rotations.solution())
        system.guessed = True
        residual()
        norm = float(np.sqrt(basis.sweeps.totals()["ww"].real))
        if by_columns and made == maxiter:
            break
        if system.callback is not None:
            system.callback(x)
        if norm <= limit or exact:
            break
        # The next cycle is to bring the preconditioned residual down as far as the residual still has to come.
        most = max(eps, 0.25 * most) if estimate <= bound else min(1.0, 1.5 * most)
        bound = estimate * min(most, limit / norm)
    return 0 if norm <= limit else maxiter
