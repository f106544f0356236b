"""A multigrid hierarchy on the device, with the interface of PyAMG's."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.csr import csr_array, make_canonical
from clsparse_py._build.plain import door
from clsparse_py._matrix.matrix import Matrix, Sparse
from clsparse_py._matrix.placement import place_part, vector
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.amg.as_pyamgs import convert_to_pyamg
from clsparse_py._solvers.amg.coarsest import compute_inverse_values, invert_coarsest
from clsparse_py._solvers.amg.cycles import CYCLES, Workspace
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.krylov.system import Apply, System
from clsparse_py._solvers.linalg import least_squares, of_scipy, solvers
from clsparse_py._solvers.linalg.operators import DeviceOperator
from clsparse_py._solvers.linalg.options import Options, check_limit, check_tolerance
from clsparse_py._solvers.linalg.problem import solve_problem

__all__ = ["MultilevelSolver", "Preconditioner", "read_cycle_name"]

#: Most Krylov vectors between restarts of GMRES with a multigrid cycle as preconditioner.
_COLUMNS = 20


def _find_solver(name: str) -> Callable[..., Any] | None:
    """Return the Krylov solver of a name in `clsparse_py.linalg`; None if no solver has this name."""
    return next((getattr(module, name) for module in (solvers, least_squares, of_scipy) if name in module.__all__), None)


class MultilevelSolver:
    """A hierarchy of matrices for multigrid cycles, on the device. Made by `smoothed_aggregation_solver` and `from_pyamg`.

    Attributes
    ----------
    levels : list of Level
        From the finest to the coarsest, with ``A``, ``P`` and ``R``, each a `csr_array`. If the finest is over ranks, small
        levels are whole on each rank; see `Level`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> step = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30))
    >>> A = sp.kronsum(step, step, format="csr")
    >>> ml = sp.amg.smoothed_aggregation_solver(A)
    >>> x = ml.solve(np.ones(900), tol=1e-8, accel="cg")
    >>> bool(np.linalg.norm(A @ x - 1) < 1e-7 * 30)
    True
    """

    def __init__(self, levels: list[Level], refreshed: Callable[[list[Level]], None] | None = None) -> None:
        self.levels = levels
        self._refreshed, self._is_own = refreshed, False
        self._workspaces: dict[tuple[int, str], Workspace] = {}
        self._coarse = self._invert_coarsest()

    def _invert_coarsest(self) -> Any:
        """Return the inverse of the matrix of the hierarchy's coarsest level, or its pseudoinverse if singular."""
        return invert_coarsest(self.levels[-1].A)

    def __repr__(self) -> str:
        nnz = [level.A.nnz for level in self.levels]
        lines = [
            "MultilevelSolver",
            f"Number of Levels:     {len(self.levels)}",
            f"Operator Complexity:  {self.operator_complexity():6.3f}",
            f"Grid Complexity:      {self.grid_complexity():6.3f}",
            "Coarse Solver:        'pinv'",
            "  level   unknowns     nonzeros",
        ]
        lines += [
            f"{number:>6} {level.A.shape[1]:>11} {n:>12} [{100 * n / max(sum(nnz), 1):2.2f}%]"
            for number, (level, n) in enumerate(zip(self.levels, nnz, strict=True))
        ]
        return "\n".join([*lines, ""])

    def operator_complexity(self) -> float:
        """Return the ratio of the number of entries of all levels' matrices to the entries of the finest matrix."""
        return float(sum(level.A.nnz for level in self.levels) / max(self.levels[0].A.nnz, 1))

    def grid_complexity(self) -> float:
        """Return the ratio of the number of unknowns of all levels to the unknowns of the finest level."""
        return float(sum(level.A.shape[0] for level in self.levels) / max(self.levels[0].A.shape[0], 1))

    @door()
    def refresh(self, values: Any) -> None:
        """Set the hierarchy anew for other values of A: aggregates, tentative prolongators and all plans of products are kept.

        Preconditioners made before have the new values, too.

        Parameters
        ----------
        values : numpy.ndarray, pyopencl.array.Array or sparse array
            The values in the order of ``levels[0].A``'s entries, or a matrix of the same structure.

        Raises
        ------
        ValueError, TypeError
            Another structure, dtype or number of entries. If values are not finite, refresh again with others before you solve.
        RuntimeError
            The hierarchy was taken over from PyAMG, which does not tell how its prolongators were made.

        Examples
        --------
        >>> import numpy as np
        >>> import clsparse_py as sp
        >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500)).tocsr()
        >>> ml = sp.amg.smoothed_aggregation_solver(A)
        >>> ml.refresh(2 * A.data)
        >>> x = ml.solve(np.ones(500), tol=1e-8, accel="cg")
        >>> bool(np.allclose(2 * (A @ x), 1))
        True
        """
        refreshed = self._refreshed
        if refreshed is None:
            raise RuntimeError("refresh: this hierarchy was taken over, and does not tell how its prolongators were made")
        A = self.levels[0].A
        if isinstance(values, (Sparse, Matrix)) or scipy.sparse.issparse(values):
            values = _read_values(values, A)
        data = vector("values", values)
        if data.shape != (A.nnz,):
            raise ValueError(f"values: must have the {A.nnz} entries of A, has shape {data.shape}")
        if np.result_type(data.dtype, A.dtype) != A.dtype:
            raise TypeError(f"values: must have A's dtype, {A.dtype}, has {data.dtype}")
        placed_values = place_part(A.queue, "values", data, A.dtype, copy=True)
        if self._is_own:
            _overwrite_values(A, placed_values)
        else:
            # The caller owns the array of the finest matrix's first values, so the hierarchy gets an array of its own.
            self.levels[0].A, self._is_own = A.with_values(placed_values), True
        refreshed(self.levels)
        _overwrite_values(self._coarse, compute_inverse_values(self.levels[-1].A))
        self._workspaces = {key: space for key, space in self._workspaces.items() if space.follow_levels()}

    def to_pyamg(self) -> Any:
        """Return the multigrid hierarchy as PyAMG's, with copies of its matrices on the host and the same smoothers.

        Returns
        -------
        pyamg.multilevel.MultilevelSolver
            Of a hierarchy over ranks, which all of them have to ask for, whole on each, without candidates.

        Raises
        ------
        ImportError
            PyAMG is not installed.

        Examples
        --------
        >>> import clsparse_py as sp
        >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
        >>> of_pyamg = sp.amg.smoothed_aggregation_solver(A).to_pyamg()  # doctest: +SKIP
        """
        return convert_to_pyamg(self.levels)

    def aspreconditioner(self, cycle: str = "V") -> DeviceOperator:
        """Return the operator of a multigrid cycle from x = 0, a preconditioner ``M`` for solvers of this package and of SciPy.

        Parameters
        ----------
        cycle : {"V", "W", "F", "K", "AMLI"}

        Raises
        ------
        ValueError
            There is no such cycle.

        Examples
        --------
        >>> import numpy as np
        >>> import clsparse_py as sp
        >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
        >>> M = sp.amg.smoothed_aggregation_solver(A).aspreconditioner()
        >>> x, info = sp.linalg.cg(A, np.ones(500), M=M)
        >>> info
        0
        """
        return Preconditioner(self, read_cycle_name(cycle))

    def solve(
        self,
        b: Any,
        x0: Any = None,
        tol: float = 1e-5,
        maxiter: int = 100,
        cycle: str = "V",
        accel: str | Callable[..., Any] | None = None,
        callback: Callable[[Any], object] | None = None,
        residuals: list[float] | None = None,
        cycles_per_level: int = 1,
        return_info: bool = False,
    ) -> Any:
        """Solve ``A x = b`` by multigrid cycles, or by a Krylov method that multigrid cycles precondition.

        Parameters
        ----------
        b : numpy.ndarray or pyopencl.array.Array
            n entries, or n x k for k systems, which are solved one after another.
        x0 : array, optional
            The first guess, of b's shape; by default 0.
        tol : float
            A solution is found if the norm of b - A x is below ``tol`` times that of b, or below ``tol`` if b is 0.
        maxiter : int
            Iterations at most.
        cycle : {"V", "W", "F", "K", "AMLI"}
            "AMLI" is PyAMG's, "K" the same from zeros.
        accel : str or callable, optional
            The name of a solver of `clsparse_py.linalg` that takes a preconditioner, such as "cg", or a function with SciPy's
            or PyAMG's interface. With "gmres", ``maxiter`` counts products, in cycles of 20 and of equal length.
        callback : callable, optional
            Called with x after each iteration, which the host waits for then.
        residuals : list, optional
            Becomes the norms of the residuals, that of the first guess included; of several systems, those of the last. With
            ``accel`` each takes a product more.
        cycles_per_level : int
            V-cycles on each level of an F-cycle.
        return_info : bool
            Whether info is returned, too.

        Returns
        -------
        x : numpy.ndarray or pyopencl.array.Array
            As b is.
        info : int
            If ``return_info``: 0 if a solution was found, else the number of iterations, or what the Krylov method returns.

        Raises
        ------
        ValueError, TypeError
            An argument has a wrong shape, dtype or value; the message names it.
        """
        arguments = cycle, accel, tol, maxiter, cycles_per_level, residuals is not None
        kind, method, tol, maxiter, repeats = self._check_options(*arguments)
        if method is not None:
            x, info = self._solve_accelerated(method, accel, b, x0, tol, maxiter, kind, callback, residuals)
        else:
            options: dict[str, Any] = {"kind": kind, "repeats": repeats, "residuals": residuals}

            def read() -> Options:
                """Return the checked options of an iteration by multigrid cycles."""
                by_cycles = functools.partial(self._iterate, **options)
                return Options.check("multigrid", by_cycles, None, rtol=tol, maxiter=maxiter, callback=callback)

            x, info = solve_problem(read, self.levels[0].A, b, x0, None)
        return (x, info) if return_info else x

    def _check_options(
        self,
        cycle: Any,
        accel: Any,
        tol: Any,
        maxiter: Any,
        repeats: Any,
        has_residuals: bool,  # noqa: ARG002 - ranks agree on the option
    ) -> tuple[str, Callable[..., Any] | None, float, int, int]:
        """Return the checked options of multigrid's `solve`: cycle, Krylov method, tolerance, maxiter, an F-cycle's V-cycles."""
        method = _find_solver(accel) if isinstance(accel, str) else accel
        if accel is not None and not callable(method):
            raise ValueError(f"accel: must be a solver of clsparse_py.linalg, such as 'cg', or a function, is {accel!r}")
        if method is not None and not {"M", "kwargs"} & set(inspect.signature(method).parameters):
            raise ValueError(f"accel: must take a preconditioner M, which {accel!r} does not; use 'cg', 'minres' or 'gmres'")
        kind, rtol = read_cycle_name(cycle), check_tolerance("tol", tol)
        return kind, method, rtol, check_limit("maxiter", maxiter), operator.index(repeats)

    def _iterate(self, system: System, kind: str, repeats: int, residuals: list[float] | None) -> int:
        """Iterate on a system by multigrid cycles; return 0 if the solution was found, else the number of iterations."""
        space = self._get_workspace(system.chain.queue, system.dtype)
        if kind != "AMLI":  # AMLI-cycles begin with ones, so the size of b counts
            system.scaling.scale_b()
        with space.borrow(system.b, system.x) as (b, x, r):
            measured, cycle = space.bind_residual(b, x, r), space.bind_cycle(kind, repeats, b, x, r)
            with space.lock:
                norm_of_b, unit = space.compute_norm(b), 2.0**system.scaling.b
            if not norm_of_b:
                system.atol = system.rtol
            bound = max(system.rtol * norm_of_b, system.atol)
            norm = _run_commands(space, measured)
            if residuals is not None:
                residuals[:] = [norm * unit]
            for iteration in range(1, system.maxiter + 1):
                norm = _run_commands(space, [*cycle, *measured])
                if residuals is not None:
                    residuals.append(norm * unit)
                if system.callback is not None:
                    system.callback(x)
                if norm <= bound:
                    return 0
                if not np.isfinite(norm):
                    return iteration
        return system.maxiter

    def _solve_accelerated(
        self,
        method: Callable[..., Any],
        accel: Any,
        b: Any,
        x0: Any,
        tol: float,
        maxiter: int,
        kind: str,
        callback: Callable[[Any], object] | None,
        residuals: list[float] | None,
    ) -> tuple[Any, int]:
        """Solve ``A x = b`` by a Krylov method with a multigrid cycle as preconditioner; return x and the method's info.

        If GMRES finds no solution, info is ``maxiter``.
        """

        def report(x: Any) -> None:
            """Append the norm of the residual ``b - A x`` to ``residuals``, and call the callback, each if given."""
            if residuals is not None:
                residuals.append(self._compute_residual_norm(b, x))
            if callback is not None:
                callback(x)

        # The tolerance of PyAMG's Krylov methods is called tol, not rtol.
        options: dict[str, Any] = {"tol" if "tol" in inspect.signature(method).parameters else "rtol": tol, "maxiter": maxiter}
        if accel == "gmres":
            cycles = -(-maxiter // _COLUMNS)
            options |= {"callback_type": "x", "maxiter": cycles, "restart": maxiter // max(cycles, 1) or None}
        if residuals is not None:
            residuals[:] = [self._compute_residual_norm(b, 0 * b if x0 is None else x0)]
        if residuals is not None or callback is not None:
            options["callback"] = report
        x, info = method(self.levels[0].A, b, x0=x0, M=self.aspreconditioner(kind), **options)
        return x, maxiter if accel == "gmres" and info else info

    def _compute_residual_norm(self, b: Any, x: Any) -> float:
        """Return the norm of the residual ``b - A x``."""
        r = b - (self.levels[0].A @ x).reshape(b.shape)
        return float(np.linalg.norm(r.get() if isinstance(r, cl_array.Array) else r))

    def _get_workspace(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Workspace:
        """Return the workspace (vectors and commands) of multigrid cycles on a queue in a dtype, made at the first call."""
        key = queue.int_ptr, dtype.char
        if key not in self._workspaces:
            self._workspaces[key] = Workspace(self.levels, self._coarse, queue, dtype)
        return self._workspaces[key]


def _overwrite_values(A: csr_array, values: cl_array.Array) -> None:
    """Overwrite the values of a matrix on the device in place, where bound commands read them."""
    chain = Chain(A.queue, values, writes=(A.data,))
    chain.copy(A.data, values, values.size)
    chain.finish(A.data)


def _read_values(values: Any, A: csr_array) -> cl_array.Array:
    """Return the new values for A, an array on A's device, from a user's matrix, which has to have A's structure.

    Raises
    ------
    ValueError
        The matrix has another structure.
    """
    matrix: Any = on_device(A.queue, values).tocsr()
    if matrix.shape == A.shape:
        matrix = make_canonical(matrix)
        if matrix.structure is A.structure or (
            matrix.nnz == A.nnz and _are_equal(matrix.indptr, A.indptr) and _are_equal(matrix.indices, A.indices)
        ):
            return matrix.data  # type: ignore[no-any-return]
    raise ValueError("values: the matrix has another structure than A; set up another hierarchy")


def _are_equal(a: cl_array.Array, b: cl_array.Array) -> bool:
    """Return whether two index arrays of a matrix's structure, both on the device, are equal."""
    return a is b or bool(np.array_equal(a.get(), b.get()))


def _run_commands(space: Workspace, commands: list[Callable[[], object]]) -> float:
    """Enqueue the commands of a multigrid cycle, the last of which begins a sum of squares; return the root of the sum; waits."""
    with space.lock:
        for command in commands:
            command()
        return space.read_norm()


def read_cycle_name(cycle: Any) -> str:
    """Return the name, in capitals, of the multigrid cycle that a user names in capitals or not; checked to be in `CYCLES`."""
    name = str(cycle).upper()
    if name not in CYCLES:
        raise ValueError(f"cycle: must be one of {', '.join(CYCLES)}, is {cycle!r}")
    return name


class Preconditioner(DeviceOperator):
    """The operator of one multigrid cycle that begins with x = 0; see `MultilevelSolver.aspreconditioner`."""

    def __init__(self, hierarchy: MultilevelSolver, kind: str) -> None:
        A = hierarchy.levels[0].A
        super().__init__(A.dtype, A.shape, A.queue)
        self._hierarchy, self._kind = hierarchy, kind

    @override
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues one multigrid cycle for a right-hand side, from x = 0."""
        space = self._hierarchy._get_workspace(queue, dtype)
        bound_cycle: list[Any] = [None, None, []]

        def apply(x: cl_array.Array, y: cl_array.Array) -> None:
            """Enqueue a multigrid cycle for the right-hand side x, whose solution is y."""
            # Krylov solvers apply a preconditioner to the same two vectors in all iterations.
            if bound_cycle[0] is not x or bound_cycle[1] is not y:
                bound_cycle[:] = [x, y, space.bind_cycle(self._kind, 1, x, y)]
            with space.lock:
                for command in bound_cycle[2]:
                    command()

        return apply
