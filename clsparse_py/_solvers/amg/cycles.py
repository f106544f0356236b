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
from clsparse_py._operations.preconditioning import Colouring, bind_relaxation
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.products import Command, bind_product
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.krylov import multigrid as passes
from clsparse_py._solvers.krylov.sweep import Pass, Sweeps
from clsparse_py._solvers.linalg.colours import colour_matrix
from clsparse_py._solvers.linalg.operators import cast_to
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = ["CYCLES", "Workspace"]

#: Names of multigrid cycles. K and AMLI differ in the vector from which their inner cycles begin: zeros in K, ones in AMLI.
CYCLES = ("V", "W", "F", "K", "AMLI")


class _Room:
    """The vectors, cast matrices and passes of one level of a hierarchy."""

    def __init__(self, queue: cl.CommandQueue, dtype: np.dtype[Any], level: Level) -> None:
        self._chain, self._level, self._dtype, self._vectors = Chain(queue), level, dtype, dict[str, cl_array.Array]()
        n = as_divided(level.A).local.shape[0]
        self.sweeps = Sweeps(self._chain, n, dtype, passes.LAYOUT, max(len(self._gains), 1), as_divided(level.A).all_sum)
        self._matrices = level.A, level.P, level.R
        matrices: Any = (None if matrix is None else _cast_matrix(matrix, dtype) for matrix in self._matrices)
        self.A, self.P, self.R = matrices
        self._colouring: Colouring | None = None
        self._set_gains()

    @property
    def smoothers(self) -> tuple[Smoother | None, Smoother | None]:
        """The smoothers of a multigrid level: before and after the correction from the coarser level."""
        return self._level.presmoother, self._level.postsmoother

    @property
    def _gains(self) -> list[complex]:
        """The coefficients of the polynomials of a level's smoothers, the presmoother's first."""
        return [gain for smoother in self.smoothers if smoother is not None for gain in smoother.coefficients]

    def _set_gains(self) -> None:
        """Copy the coefficients of a level's smoothers to the device, as scalars of the level's vector passes."""
        gains = self._gains
        scalars = np.zeros((max(len(gains), 1), len(passes.LAYOUT.scalars)), self._dtype)
        scalars[: len(gains), 0] = gains if self._dtype.kind == "c" else np.real(gains)
        self.sweeps.set_all(scalars.ravel())

    def follow_levels(self) -> bool:
        """Copy smoothers' coefficients and A's inverse diagonal anew, and return True; return False if commands are out of date.

        They are if A, P or R was replaced, or if commands use a copy that was cast to another dtype.
        """
        current = self._level.A, self._level.P, self._level.R
        present = self.A, self.P, self.R
        if any(a is not b or b is not c for a, b, c in zip(self._matrices, current, present, strict=True)):
            return False
        self._set_gains()
        for scaling in ("diagonal", "l1"):
            if scaling in self._vectors:
                self._copy_inverse(scaling)
        return True

    def _copy_inverse(self, scaling: str) -> None:
        """Copy the inverse of the diagonal of a level's matrix, or of its row sums of absolute values, to the level's vector."""
        inverse = self.get_vector(scaling)
        self._chain.copy(inverse, _cast_vector(self._level.inverse(l1=scaling == "l1"), inverse.dtype), inverse.size)

    def get_vector(self, name: str) -> cl_array.Array:
        """Return the work vector of the given name, such as "b" or "x", of a multigrid level, allocated at the first call."""
        if name not in self._vectors:
            self._vectors[name] = self.sweeps.vector()
        return self._vectors[name]

    def get_scaling(self, smoother: Smoother) -> cl_array.Array:
        """Return the vector by which a smoother scales residuals, as ``smoother.scaling`` says."""
        scaling = smoother.scaling
        if scaling not in self._vectors:
            if scaling == "none":
                self.sweeps.fill(self.get_vector(scaling), 1)
            else:
                self._copy_inverse(scaling)
        return self._vectors[scaling]

    def bind_gauss_seidel(self, smoother: Smoother, b: cl_array.Array, x: cl_array.Array) -> Command:
        """Return the command of a step of Gauss-Seidel's method, one colour of the level's unknowns after another."""
        if self._colouring is None:
            self._colouring = colour_matrix(self._level.A)
        colours = range(self._colouring.starts.size - 1)
        # A colour that was relaxed last would not change.
        orders = {"forward": colours, "backward": colours[::-1], "symmetric": (*colours, *colours[-2::-1])}
        return bind_relaxation(self.sweeps.chain.queue, self.A, self._colouring, orders[smoother.sweep], b, x)

    def bind(self, step: Pass, part: int = 0, **vectors: cl_array.Array) -> Command:
        """Return the command that enqueues a level's vector pass, with the smoother's coefficient whose index is ``part``."""
        return self.sweeps.bind(step, part, 0, **vectors)

    def get_parts(self, is_after: bool) -> range:
        """Return the indices, in `_gains`, of the postsmoother's coefficients if ``is_after``, else of the presmoother's."""
        n_before, n_after = (0 if smoother is None else len(smoother.coefficients) for smoother in self.smoothers)
        return range(n_before, n_before + n_after) if is_after else range(n_before)


def _cast_matrix(A: Any, dtype: np.dtype[Any]) -> Any:
    """Return a matrix, cast if its products with vectors of a dtype would have another dtype, and wait until it is ready."""

    def cast(part: csr_array) -> csr_array:
        """Return a matrix on one device, cast if need be, once it is on its device and its structure was checked."""
        matrix: csr_array = part if np.result_type(part.dtype, dtype) == dtype else cast_to(part, dtype)
        matrix.require_valid()
        for array in matrix.parts:
            for event in array.events:
                event.wait()
        return matrix

    return as_divided(A).mapped(cast, cast)


def _cast_vector(values: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return a device vector cast to a dtype; no copy if the vector has this dtype."""
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
        self._coarse = _cast_matrix(coarse, dtype)
        self._is_plain = self._coarse is coarse
        self._known: dict[tuple[Any, ...], list[Command]] = {}
        self._own = tuple(self.finest.vector() for _ in range(3))
        self._is_lent = False

    def follow_levels(self) -> bool:
        """Copy all levels' smoother coefficients and inverse diagonals anew; return whether commands use the present matrices."""
        followed = [room.follow_levels() for room in self._rooms]
        return self._is_plain and all(followed)

    @contextmanager
    def borrow(self, b: cl_array.Array, x: cl_array.Array) -> Iterator[tuple[cl_array.Array, cl_array.Array, cl_array.Array]]:
        """Lend vectors for multigrid cycles: a copy of b, a copy of x (copied back at the end), a residual vector.

        Mostly these are the workspace's own, and commands on these are bound once: kernel objects take the host longer than most
        cycles take.
        """
        with self.lock:
            is_other, self._is_lent = self._is_lent, True
        vectors = tuple(self.finest.vector() for _ in range(3)) if is_other else self._own
        self.finest.copy(vectors[0], b)
        self.finest.copy(vectors[1], x)
        try:
            yield vectors[0], vectors[1], vectors[2]
        finally:
            self.finest.copy(x, vectors[1])
            self._is_lent = is_other

    def _cache_commands(self, key: tuple[Any, ...], vector: cl_array.Array, make: Callable[[], list[Command]]) -> list[Command]:
        """Return the commands of a multigrid cycle, made by ``make``; cached by a key if ``vector`` belongs to the workspace."""
        if not any(vector is own_vector for own_vector in self._own):
            return make()
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    @property
    def finest(self) -> Sweeps:
        """The vector passes of the finest multigrid level, with their scalars and sums."""
        return self._rooms[0].sweeps

    def bind_residual(self, b: cl_array.Array, x: cl_array.Array, r: cl_array.Array) -> list[Command]:
        """Return the commands that compute the residual ``r = b - A x`` on the finest level, and begin the sum of its squares."""
        level = self._rooms[0]
        A, q = level.A, level.get_vector("q")
        return self._cache_commands(
            ("residual",), b, lambda: [bind_product(self.queue, A, x, q), level.bind(passes.RESIDUAL_NORM, b=b, q=q, r=r)]
        )

    def compute_norm(self, r: cl_array.Array) -> float:
        """Return the norm of a vector r of the finest multigrid level; waits."""
        for command in self._cache_commands(("norm",), r, lambda: [self._rooms[0].bind(passes.NORM, r=r)]):
            command()
        return self.read_norm()

    def read_norm(self) -> float:
        """Return the norm of the vector whose sum of squares the last enqueued vector pass began; waits."""
        with np.errstate(all="ignore"):
            return float(np.sqrt(self.finest.totals()["rr"].real))

    def bind_cycle(
        self, kind: str, repeats: int, b: cl_array.Array, x: cl_array.Array, r: cl_array.Array | None = None
    ) -> list[Command]:
        """Return the commands of one multigrid cycle on the finest level.

        Parameters
        ----------
        kind : str
            In `CYCLES`.
        repeats : int
            V-cycles on each level of an F-cycle.
        b, x : pyopencl.array.Array
            The right-hand side, and the solution.
        r : pyopencl.array.Array, optional
            The residual of x. None: the cycle begins with x = 0, and overwrites x.
        """
        key = "cycle", kind, repeats, r is None
        return self._cache_commands(key, b, lambda: self._bind_level(0, kind, repeats, b, x, from_zero=r is None, r=r))

    def _bind_inner(self, number: int, kind: str, repeats: int, *, from_zero: bool) -> list[Command]:
        """Return the commands of a multigrid cycle on a coarser level, from the level's vector b to its vector x."""
        key = number, kind, repeats, from_zero
        if key not in self._known:
            level = self._rooms[number]
            self._known[key] = self._bind_level(
                number, kind, repeats, level.get_vector("b"), level.get_vector("x"), from_zero=from_zero
            )
        return self._known[key]

    def _bind_level(
        self,
        number: int,
        kind: str,
        repeats: int,
        b: cl_array.Array,
        x: cl_array.Array,
        *,
        from_zero: bool,
        r: cl_array.Array | None = None,
    ) -> list[Command]:
        """Return the commands of one multigrid cycle on a level: smoothing, correction from the coarser level, smoothing."""
        if number == len(self._rooms) - 1:
            return [bind_product(self.queue, self._coarse, b, x)]
        level, below = self._rooms[number], self._rooms[number + 1]
        commands = self._bind_smoother(level, False, b, x, from_zero=from_zero, r=r)
        q, residual = level.get_vector("q"), level.get_vector("r")
        commands.append(bind_product(self.queue, level.A, x, q))
        commands.append(level.bind(passes.RESIDUAL, b=b, q=q, r=residual))
        commands.append(bind_product(self.queue, level.R, residual, below.get_vector("b")))
        commands += self._bind_correction(number + 1, kind, repeats)
        commands.append(bind_product(self.queue, level.P, below.get_vector("x"), x, adds=True))
        return commands + self._bind_smoother(level, True, b, x)

    def _bind_correction(self, number: int, kind: str, repeats: int) -> list[Command]:
        """Return the commands that solve a coarser level's system for the correction, from the vector b to the vector x."""
        if number == len(self._rooms) - 1 or kind == "V":
            return self._bind_inner(number, "V", 0, from_zero=True)
        if kind == "W":
            return self._bind_inner(number, "W", 0, from_zero=True) + self._bind_inner(number, "W", 0, from_zero=False)
        if kind == "F":
            v_cycle = self._bind_inner(number, "V", 0, from_zero=False)
            return self._bind_inner(number, "F", repeats, from_zero=True) + repeats * v_cycle
        return self._bind_k_cycle(number, kind, repeats)

    def _bind_k_cycle(self, number: int, kind: str, repeats: int) -> list[Command]:
        """Return the commands of a K- or AMLI-cycle's two conjugate gradient steps, preconditioned by a cycle, on a level."""
        level = self._rooms[number]
        b, x = level.get_vector("b"), level.get_vector("x")
        directions = [(level.get_vector(f"p{i}"), level.get_vector(f"q{i}")) for i in (0, 1)]

        def solve(p: cl_array.Array, q: cl_array.Array) -> list[Command]:
            """Return the commands that compute a direction p of conjugate gradients by a multigrid cycle, and ``q = A p``."""
            ones = kind == "AMLI"
            begin: list[Command] = [functools.partial(level.sweeps.fill, p, 1)] if ones else []
            return [
                *begin,
                *self._bind_level(number, kind, repeats, b, p, from_zero=not ones),
                bind_product(self.queue, level.A, p, q),
            ]

        (p, q), (p_second, q_second) = directions
        return [
            *solve(p, q),
            level.bind(passes.K_SUMS, p=p, q=q, b=b),
            level.bind(passes.K_FIRST, p=p, q=q, b=b, x=x),
            *solve(p_second, q_second),
            level.bind(passes.K_CROSS, p=p, q=q_second),
            level.bind(passes.K_ORTHOGONAL, p_first=p, q_first=q, b=b, p=p_second, q=q_second),
            level.bind(passes.K_SECOND, p=p_second, x=x),
        ]

    def _bind_smoother(
        self,
        level: _Room,
        is_after: bool,
        b: cl_array.Array,
        x: cl_array.Array,
        *,
        from_zero: bool = False,
        r: cl_array.Array | None = None,
    ) -> list[Command]:
        """Return the commands of a level's smoother, before or after the correction of x; r is ``b - A x``, if known."""
        commands: list[Command] = []
        smoother, parts = level.smoothers[is_after], level.get_parts(is_after)
        steps = 0 if smoother is None else smoother.iterations
        if smoother is not None and smoother.sweep:
            if from_zero:
                commands.append(functools.partial(level.sweeps.fill, x))
            return commands + steps * [level.bind_gauss_seidel(smoother, b, x)] if steps else commands
        if from_zero and (not steps or (smoother is not None and len(smoother.coefficients) > 1)):
            commands.append(functools.partial(level.sweeps.fill, x))
        for step in range(steps):
            assert smoother is not None
            residual = (b if from_zero else r) if not step else None
            is_first = from_zero and not step
            inverse = level.get_scaling(smoother)
            if len(smoother.coefficients) == 1:
                commands += self._bind_jacobi(level, parts[0], b, x, residual, inverse, is_first)
            else:
                commands += self._bind_polynomial(level, parts, b, x, residual, inverse)
        return commands

    def _bind_jacobi(
        self,
        level: _Room,
        gain: int,
        b: cl_array.Array,
        x: cl_array.Array,
        r: cl_array.Array | None,
        inverse: cl_array.Array,
        is_first: bool,
    ) -> list[Command]:
        """Return the commands of a step of a Jacobi smoother; r is the residual of x, or None if it is not known."""
        if r is not None:
            step = passes.JACOBI_BEGIN if is_first else passes.JACOBI_OF_RESIDUAL
            return [level.bind(step, gain, r=r, inverse=inverse, x=x)]
        q = level.get_vector("q")
        return [bind_product(self.queue, level.A, x, q), level.bind(passes.JACOBI, gain, b=b, q=q, inverse=inverse, x=x)]

    def _bind_polynomial(
        self,
        level: _Room,
        parts: range,
        b: cl_array.Array,
        x: cl_array.Array,
        r: cl_array.Array | None,
        inverse: cl_array.Array,
    ) -> list[Command]:
        """Return the commands of a step of a polynomial smoother; r is the residual of x, or None if it is not known."""
        first, *between, last = parts
        q, s, h = (level.get_vector(name) for name in ("q", "s", "h"))
        multiply = bind_product(self.queue, level.A, h, q)
        commands: list[Command] = []
        if r is None:
            r = level.get_vector("r")
            commands += [bind_product(self.queue, level.A, x, q), level.bind(passes.RESIDUAL, b=b, q=q, r=r)]
        commands.append(level.bind(passes.POLYNOMIAL_BEGIN, first, r=r, inverse=inverse, s=s, h=h))
        for gain in between:
            commands += [multiply, level.bind(passes.POLYNOMIAL_STEP, gain, s=s, q=q, inverse=inverse, h=h)]
        return [*commands, multiply, level.bind(passes.POLYNOMIAL_END, last, s=s, q=q, inverse=inverse, x=x)]
