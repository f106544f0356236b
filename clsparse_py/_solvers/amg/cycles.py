"""Multigrid cycles as recorded commands on device vectors, without reads by the host."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.products import Command, product
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.krylov import multigrid as passes
from clsparse_py._solvers.krylov.sweep import Pass, Sweeps
from clsparse_py._solvers.linalg.operators import cast_to
from clsparse_py._solvers.linalg.problem import divided

__all__ = ["CYCLES", "Workspace"]

#: Kinds of cycles. AMLI is PyAMG's, whose inner solves begin with ones; K begins with zeros.
CYCLES = ("V", "W", "F", "K", "AMLI")


class _Room:
    """The vectors of one level, and what its passes share."""

    def __init__(self, queue: cl.CommandQueue, dtype: np.dtype[Any], level: Level) -> None:
        self._chain, self._level, self._dtype, self._vectors = Chain(queue), level, dtype, dict[str, cl_array.Array]()
        n = divided(level.A).local.shape[0]
        self.sweeps = Sweeps(self._chain, n, dtype, passes.LAYOUT, max(len(self._gains), 1), divided(level.A).all_sum)
        self.A, self.P, self.R = (None if each is None else _as(each, dtype) for each in (level.A, level.P, level.R))
        self._matrices = level.A, level.P, level.R
        self._set_gains()

    @property
    def smoothers(self) -> tuple[Smoother | None, Smoother | None]:
        """Those before and after the correction."""
        return self._level.presmoother, self._level.postsmoother

    @property
    def _gains(self) -> list[complex]:
        return [gain for each in self.smoothers if each is not None for gain in each.coefficients]

    def _set_gains(self) -> None:
        gains = self._gains
        scalars = np.zeros((max(len(gains), 1), len(passes.LAYOUT.scalars)), self._dtype)
        scalars[: len(gains), 0] = gains if self._dtype.kind == "c" else np.real(gains)
        self.sweeps.set_all(scalars.ravel())

    def follows(self) -> bool:
        """Take over what changed in the level; return False if commands that are known would not see it."""
        current = self._level.A, self._level.P, self._level.R
        own = self.A, self.P, self.R
        if any(a is not b or b is not c for a, b, c in zip(self._matrices, current, own, strict=True)):
            return False
        self._set_gains()
        if "inverse" in self._vectors:
            inverse = self._vectors["inverse"]
            self._chain.copy(inverse, _vector_as(self._level.inverse(), inverse.dtype), inverse.size)
        return True

    def vector(self, name: str) -> cl_array.Array:
        """Return the vector of a name, which is allocated once."""
        if name not in self._vectors:
            self._vectors[name] = self.sweeps.vector()
        return self._vectors[name]

    def inverse(self, smoother: Smoother) -> cl_array.Array:
        """Return the inverse of the diagonal, or ones, as a smoother takes it."""
        name = "inverse" if smoother.scaled else "ones"
        if name not in self._vectors:
            inverse = self.vector(name)
            if smoother.scaled:
                self._chain.copy(inverse, _vector_as(self._level.inverse(), inverse.dtype), inverse.size)
            else:
                self.sweeps.fill(inverse, 1)
        return self._vectors[name]

    def bind(self, of: Pass, part: int = 0, **vectors: cl_array.Array) -> Command:
        """Return a pass over vectors; part is the place of a smoother's coefficient among those of both."""
        return self.sweeps.bind(of, part, 0, **vectors)

    def parts(self, is_after: bool) -> range:
        """Return the parts that hold the coefficients of a smoother."""
        before, after = (0 if each is None else len(each.coefficients) for each in self.smoothers)
        return range(before, before + after) if is_after else range(before)


def _as(A: Any, dtype: np.dtype[Any]) -> Any:
    """Return a matrix whose products with vectors of a dtype are of that dtype."""
    found = A if np.result_type(A.dtype, dtype) == dtype else cast_to(A, dtype)
    divided(found).mapped(_ready, _ready)
    return found


def _ready(A: csr_array) -> csr_array:
    """Return a matrix once it is valid, and there."""
    A.require_valid()
    for part in A.parts:
        for event in part.events:
            event.wait()
    return A


def _vector_as(values: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    return values if values.dtype == dtype else values.astype(dtype)


class Workspace:
    """The vectors of a hierarchy's cycles on one queue, for right-hand sides of one dtype.

    Its commands belong to one cycle at a time: whoever enqueues them holds `lock`.

    Parameters
    ----------
    levels : sequence of Level
    coarse : csr_array
        The inverse of the coarsest level's matrix, over ranks if that is.
    queue : pyopencl.CommandQueue
        In order.
    dtype : dtype
        Of vectors: float32, float64, complex64 or complex128.
    """

    def __init__(self, levels: Sequence[Level], coarse: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> None:
        self.queue, self.lock = queue, threading.RLock()
        self._rooms = [_Room(queue, dtype, level) for level in levels]
        self._coarse = _as(coarse, dtype)
        self._is_plain = self._coarse is coarse
        self._known: dict[tuple[Any, ...], list[Command]] = {}
        self._own = tuple(self.finest.vector() for _ in range(3))
        self._is_lent = False

    def follows(self) -> bool:
        """Take over what changed in the levels; return False if another workspace is needed."""
        found = [room.follows() for room in self._rooms]
        return self._is_plain and all(found)

    @contextmanager
    def borrowed(self, b: cl_array.Array, x: cl_array.Array) -> Iterator[tuple[cl_array.Array, cl_array.Array, cl_array.Array]]:
        """Give a copy of b, one of x, which becomes x at the end, and a vector for the residual: as a rule those of before.

        Commands on the same vectors are found once: to make a kernel object takes the host longer than most cycles take.
        """
        with self.lock:
            is_other, self._is_lent = self._is_lent, True
        kept = tuple(self.finest.vector() for _ in range(3)) if is_other else self._own
        self.finest.copy(kept[0], b)
        self.finest.copy(kept[1], x)
        try:
            yield kept[0], kept[1], kept[2]
        finally:
            self.finest.copy(x, kept[1])
            self._is_lent = is_other

    def _once(self, key: tuple[Any, ...], vector: cl_array.Array, make: Callable[[], list[Command]]) -> list[Command]:
        """Return commands on vectors, found once if these are those that are lent."""
        if not any(vector is each for each in self._own):
            return make()
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    @property
    def finest(self) -> Sweeps:
        """The passes over vectors of the finest level."""
        return self._rooms[0].sweeps

    def residual(self, b: cl_array.Array, x: cl_array.Array, r: cl_array.Array) -> list[Command]:
        """Return what makes ``r = b - A x``, and begins the sum of its squares."""
        room = self._rooms[0]
        assert room.A is not None
        A, q = room.A, room.vector("q")
        return self._once(
            ("residual",), b, lambda: [product(self.queue, A, x, q), room.bind(passes.RESIDUAL_NORM, b=b, q=q, r=r)]
        )

    def norm(self, r: cl_array.Array) -> float:
        """Return the norm of a vector; waits."""
        for command in self._once(("norm",), r, lambda: [self._rooms[0].bind(passes.NORM, r=r)]):
            command()
        return self.last_norm()

    def last_norm(self) -> float:
        """Return the norm of the vector of which the sum of squares was begun last; waits."""
        with np.errstate(all="ignore"):
            return float(np.sqrt(self.finest.totals()["rr"].real))

    def cycle(
        self, kind: str, again: int, b: cl_array.Array, x: cl_array.Array, r: cl_array.Array | None = None
    ) -> list[Command]:
        """Return the commands of one cycle on the finest level.

        Parameters
        ----------
        kind : str
            In `CYCLES`.
        again : int
            V-cycles on each level of an F-cycle.
        b, x : pyopencl.array.Array
            The right-hand side, and the solution.
        r : pyopencl.array.Array, optional
            The residual of x. None: x is to be made from 0, whatever is in it.
        """
        key = "cycle", kind, again, r is None
        return self._once(key, b, lambda: self._level(0, kind, again, b, x, from_zero=r is None, r=r))

    def _inner(self, at: int, kind: str, again: int, *, from_zero: bool) -> list[Command]:
        """Return the commands of a cycle on a coarser level, on its own vectors."""
        key = at, kind, again, from_zero
        if key not in self._known:
            room = self._rooms[at]
            self._known[key] = self._level(at, kind, again, room.vector("b"), room.vector("x"), from_zero=from_zero)
        return self._known[key]

    def _level(
        self,
        at: int,
        kind: str,
        again: int,
        b: cl_array.Array,
        x: cl_array.Array,
        *,
        from_zero: bool,
        r: cl_array.Array | None = None,
    ) -> list[Command]:
        if at == len(self._rooms) - 1:
            return [product(self.queue, self._coarse, b, x)]
        room, below = self._rooms[at], self._rooms[at + 1]
        assert room.A is not None
        assert room.R is not None
        assert room.P is not None
        commands = self._smoothed(room, False, b, x, from_zero=from_zero, r=r)
        q, residual = room.vector("q"), room.vector("r")
        commands.append(product(self.queue, room.A, x, q))
        commands.append(room.bind(passes.RESIDUAL, b=b, q=q, r=residual))
        commands.append(product(self.queue, room.R, residual, below.vector("b")))
        commands += self._corrected(at + 1, kind, again)
        commands.append(product(self.queue, room.P, below.vector("x"), x, adds=True))
        return commands + self._smoothed(room, True, b, x)

    def _corrected(self, at: int, kind: str, again: int) -> list[Command]:
        """Return what solves for the correction on a coarser level: from its own b to its own x."""
        if at == len(self._rooms) - 1 or kind == "V":
            return self._inner(at, "V", 0, from_zero=True)
        if kind == "W":
            return self._inner(at, "W", 0, from_zero=True) + self._inner(at, "W", 0, from_zero=False)
        if kind == "F":
            return self._inner(at, "F", again, from_zero=True) + again * self._inner(at, "V", 0, from_zero=False)
        return self._k_cycle(at, kind, again)

    def _k_cycle(self, at: int, kind: str, again: int) -> list[Command]:
        """Return two steps of the conjugate gradient method, preconditioned by a cycle on the same level."""
        room = self._rooms[at]
        assert room.A is not None
        b, x = room.vector("b"), room.vector("x")
        directions = [(room.vector(f"p{i}"), room.vector(f"q{i}")) for i in (0, 1)]

        def solve(p: cl_array.Array, q: cl_array.Array) -> list[Command]:
            ones = kind == "AMLI"
            begin: list[Command] = [functools.partial(room.sweeps.fill, p, 1)] if ones else []
            return [*begin, *self._level(at, kind, again, b, p, from_zero=not ones), product(self.queue, room.A, p, q)]

        (p, q), (p_second, q_second) = directions
        return [
            *solve(p, q),
            room.bind(passes.K_SUMS, p=p, q=q, b=b),
            room.bind(passes.K_FIRST, p=p, q=q, b=b, x=x),
            *solve(p_second, q_second),
            room.bind(passes.K_CROSS, p=p, q=q_second),
            room.bind(passes.K_ORTHOGONAL, p_first=p, q_first=q, b=b, p=p_second, q=q_second),
            room.bind(passes.K_SECOND, p=p_second, x=x),
        ]

    def _smoothed(
        self,
        room: _Room,
        is_after: bool,
        b: cl_array.Array,
        x: cl_array.Array,
        *,
        from_zero: bool = False,
        r: cl_array.Array | None = None,
    ) -> list[Command]:
        """Return the commands of a smoother; r is the residual of x, if it is there."""
        commands: list[Command] = []
        smoother, parts = room.smoothers[is_after], room.parts(is_after)
        steps = 0 if smoother is None else smoother.iterations
        if from_zero and (not steps or (smoother is not None and len(smoother.coefficients) > 1)):
            commands.append(functools.partial(room.sweeps.fill, x))
        for step in range(steps):
            assert smoother is not None
            given = (b if from_zero else r) if not step else None
            is_first = from_zero and not step
            one = self._jacobi if len(smoother.coefficients) == 1 else self._polynomial
            commands += one(room, smoother, parts, b, x, given, is_first)
        return commands

    def _jacobi(
        self,
        room: _Room,
        smoother: Smoother,
        parts: range,
        b: cl_array.Array,
        x: cl_array.Array,
        r: cl_array.Array | None,
        from_zero: bool,
    ) -> list[Command]:
        """Return one step of a Jacobi method, from a residual if it is there."""
        (gain,), inverse = parts, room.inverse(smoother)
        if r is not None:
            of = passes.JACOBI_BEGIN if from_zero else passes.JACOBI_OF_RESIDUAL
            return [room.bind(of, gain, r=r, inverse=inverse, x=x)]
        assert room.A is not None
        q = room.vector("q")
        return [product(self.queue, room.A, x, q), room.bind(passes.JACOBI, gain, b=b, q=q, inverse=inverse, x=x)]

    def _polynomial(
        self,
        room: _Room,
        smoother: Smoother,
        parts: range,
        b: cl_array.Array,
        x: cl_array.Array,
        r: cl_array.Array | None,
        from_zero: bool,  # noqa: ARG002 - as the other smoothers take it
    ) -> list[Command]:
        """Return one step of a smoother that is a polynomial; x is 0 at the first, if it begins from there."""
        (first, *between, last), inverse = parts, room.inverse(smoother)
        assert room.A is not None
        q, s, h = (room.vector(name) for name in ("q", "s", "h"))
        multiply = product(self.queue, room.A, h, q)
        commands: list[Command] = []
        if r is None:
            r = room.vector("r")
            commands += [product(self.queue, room.A, x, q), room.bind(passes.RESIDUAL, b=b, q=q, r=r)]
        commands.append(room.bind(passes.POLYNOMIAL_BEGIN, first, r=r, inverse=inverse, s=s, h=h))
        for gain in between:
            commands += [multiply, room.bind(passes.POLYNOMIAL_STEP, gain, s=s, q=q, inverse=inverse, h=h)]
        return [*commands, multiply, room.bind(passes.POLYNOMIAL_END, last, s=s, q=q, inverse=inverse, x=x)]
