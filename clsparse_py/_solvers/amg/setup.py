"""Set-up of a hierarchy by smoothed aggregation, on the device."""

from __future__ import annotations

import dataclasses
import functools
import logging
import operator
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.csr import csr_array, make_canonical
from clsparse_py._arrays.hosted import on_host, queue_in
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue, describe
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.values import map_values
from clsparse_py._operations.spgemm import SpgemmPlan, spgemm_plan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import from_host
from clsparse_py._solvers.aggregation.aggregates import aggregate_nodes
from clsparse_py._solvers.aggregation.graph import reduce_blocks, select_strong_entries
from clsparse_py._solvers.aggregation.prolongator import MAX_ROW, refresh_prolongator, smooth_prolongator
from clsparse_py._solvers.aggregation.tentative import make_tentative_prolongator
from clsparse_py._solvers.amg.galerkin import RapPlan, plan_and_multiply_rap
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import list_by_level, make_smoother, unpack
from clsparse_py._solvers.amg.solver import MultilevelSolver
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = [
    "Coarsening",
    "Options",
    "build_levels",
    "check_candidates",
    "coarsen",
    "smooth_candidates",
    "smoothed_aggregation_solver",
]

_log = logging.getLogger(__name__)

#: Default gain omega of Jacobi steps of smoothers and prolongators, as in PyAMG; divided by the largest eigenvalue of D^-1 A.
_OMEGA = 4 / 3
#: Default smoothing of near-nullspace candidates, by level: on the finest level alone, as PyAMG's, but by the Jacobi method.
_IMPROVED = (("jacobi", {"omega": 1.0, "iterations": 4}), None)
# Another multigrid level takes longer than the inverse of the matrix of a level of few nodes.
#: Most nodes of a multigrid hierarchy's coarsest level, by default: with one unknown for each node, and with several.
_MAX_COARSE = (256, 100)


@dataclasses.dataclass(frozen=True)
class Options:
    """The checked options of a hierarchy; lists have an entry for each level, the last one for all further levels.

    Attributes
    ----------
    symmetry : str
    strength : list of float
        Thresholds of strong entries.
    smooth : list of tuple of float
        The gain of each step by which prolongators are smoothed.
    improve_candidates : list of tuple
        The gain of steps that smooth candidates, and how many.
    presmoother, postsmoother : list
        As the user gives them.
    max_levels : int
    max_coarse : int or None
    """

    symmetry: str
    strength: list[float]
    smooth: list[tuple[float, ...]]
    improve_candidates: list[tuple[float, int]]
    presmoother: list[Any]
    postsmoother: list[Any]
    max_levels: int
    max_coarse: int | None

    @classmethod
    def read(cls, symmetry: Any, named: dict[str, Any], smoothers: dict[str, Any], max_levels: Any, max_coarse: Any) -> Options:
        """Return the checked options of a hierarchy from a user's arguments.

        Raises
        ------
        ValueError, TypeError
            An option is wrong; the message names it.
        """
        if symmetry not in ("hermitian", "symmetric"):
            raise ValueError(f"symmetry: must be 'hermitian' or 'symmetric', is {symmetry!r}")
        max_levels, max_coarse = operator.index(max_levels), None if max_coarse is None else operator.index(max_coarse)
        if max_levels < 1 or (max_coarse is not None and max_coarse < 1):
            raise ValueError(f"max_levels, max_coarse: must be at least 1, are {max_levels} and {max_coarse}")
        readers: dict[str, Callable[[Any], Any]] = {
            "strength": _read_theta,
            "smooth": _read_omegas,
            "improve_candidates": _read_improvement,
        }
        lists: dict[str, list[Any]] = {
            name: [readers[name](entry) for entry in list_by_level(name, option)] for name, option in named.items()
        }
        for name, option in smoothers.items():
            lists[name] = list_by_level(name, option)
            for entry in lists[name]:
                make_smoother(name, entry, lambda: 1.0)
        return cls(symmetry, max_levels=max_levels, max_coarse=max_coarse, **lists)

    def at_level(self, name: str, level: int) -> Any:
        """Return the value that a named option of a multigrid hierarchy has on a numbered level."""
        values = getattr(self, name)
        return values[min(level, len(values) - 1)]

    def is_coarse(self, level: Level) -> bool:
        """Return whether a level has few enough nodes to be the coarsest of its hierarchy."""
        max_nodes = _MAX_COARSE[level.blocksize > 1] if self.max_coarse is None else self.max_coarse
        return bool(level.A.shape[0] // level.blocksize <= max_nodes)


class _Step:
    """The step from a level to the next coarser level on one device, with plans that new values use again."""

    def __init__(self, coarse: cl_array.Array, T: Matrix, omegas: tuple[float, ...], symmetry: str) -> None:
        self.B, self._T, self._omegas, self._symmetry = coarse, T, omegas, symmetry
        self._smoothed: list[SpgemmPlan[csr_array]] = []
        # Whether the prolongator P is made row by row, without a product of sparse matrices; None: not decided yet.
        self._is_direct: bool | None = None
        self._transposed: Any = None
        self._galerkin: RapPlan | None = None

    @door()
    def run(self, level: Level, below: csr_array | None = None) -> csr_array:
        """Set a level's prolongator P and restriction R for its matrix's present values; return the matrix of the next level.

        ``below`` is the next level's matrix for earlier values. Its values are overwritten, as those of P and R are.
        """
        A, queue = level.A, level.A.queue
        level.P = P = self._make_prolongator(queue, level)
        self._transposed = self._transposed or P.transpose_plan()
        is_conjugate = P.dtype.kind == "c" and self._symmetry == "hermitian"
        level.R = self._transposed(map_values(queue, P.data, "conjugate") if is_conjugate else P.data, out=level.R)
        if self._galerkin is None:
            self._galerkin, coarse = plan_and_multiply_rap(level.R, A, P)
            return coarse
        return self._galerkin(level.R.data, A.data, P.data, out=below)

    def _make_prolongator(self, queue: cl.CommandQueue, level: Level) -> csr_array:
        """Return the smoothed prolongator of a level; an earlier prolongator's values are overwritten."""
        A = level.A
        P: csr_array = A.sharing(self._T)
        omegas = self._omegas
        if self._is_direct is None:
            is_narrow = self.B.shape[1] == 1 and level.longest_row() <= MAX_ROW[describe(queue.device).lanes_are_loops]
            self._is_direct = bool(omegas) and is_narrow
        if self._is_direct:
            operands = queue, A, level.inverse(), omegas[0] / level.rho(), P, level.longest_row()
            if len(omegas) == 1 and level.P is not None:
                level.P.data = refresh_prolongator(*operands, level.P)
                return level.P  # type: ignore[no-any-return] # a csr_array
            try:
                P, omegas = smooth_prolongator(*operands), omegas[1:]
            except MemoryError as error:
                if level.P is not None:
                    raise
                _log.info("a prolongator is made by products: %s", error)
                self._is_direct = False
        for number, omega in enumerate(omegas):
            smoothing = level.smoothing(omega)
            if number == len(self._smoothed):
                self._smoothed.append(spgemm_plan(smoothing, P))
            P = self._smoothed[number](smoothing.data, P.data, out=level.P if number == len(omegas) - 1 else None)
        return P


def smoothed_aggregation_solver(
    A: Any,
    B: Any = None,
    symmetry: str = "hermitian",
    strength: Any = "symmetric",
    smooth: Any = ("jacobi", {"omega": _OMEGA}),
    presmoother: Any = ("jacobi", {"omega": _OMEGA}),
    postsmoother: Any = ("jacobi", {"omega": _OMEGA}),
    improve_candidates: Any = _IMPROVED,
    max_levels: int = 10,
    max_coarse: int | None = None,
) -> MultilevelSolver:
    """Set up a multigrid hierarchy by smoothed aggregation, on the device.

    Parameters
    ----------
    A : sparse array or numpy.ndarray
        n x n, Hermitian: of this package or of SciPy. Of a `bsr_array`, the unknowns of a block are those of a node,
        which are aggregated together; the hierarchy itself is in CSR form. Of a `clsparse_py.distributed.csr_array`, whose rows
        and columns are divided alike, the finest level and other large ones are over the same ranks, where a rank aggregates its
        own nodes; small levels are whole on each rank.
    B : numpy.ndarray or pyopencl.array.Array, optional
        Near-nullspace candidates, n entries or n x k: what ``A x`` is almost 0 for, such as rigid body modes. By default ones; of
        blocks, as many, ones for one unknown of the nodes each. Over ranks: as operands of ``A @ B``.
    symmetry : {"hermitian", "symmetric"}
        "symmetric": A is equal to its transposed, and R is P's; complex matrices differ.
    strength : {"symmetric", None}, tuple or list
        Which entries count when nodes are aggregated: with ``("symmetric", {"theta": t})`` those off the diagonal with
        ``|a_ij| >= t sqrt(|a_ii a_jj|)``, of blocks their Frobenius norms; all of them for t = 0, the default, and None.
    smooth : {"jacobi", None}, tuple or list
        How the tentative prolongator is smoothed: ``("jacobi", {"omega": w, "degree": d})``, d times by
        ``1 - w / rho(D^-1 A) D^-1 A``; None: not at all.
    presmoother, postsmoother : {"jacobi", "chebyshev", "l1_jacobi", "multicolour_gauss_seidel", None}, tuple or list
        ``("jacobi", {"iterations": 1, "omega": w, "withrho": True})``: steps ``x += w / rho(D^-1 A) D^-1 (b - A x)``.
        ``("chebyshev", {"degree": 3, "lower_bound": 1 / 30, "upper_bound": 1.1, "iterations": 1})``: the polynomial of D^-1 A
        that is small between these parts of its largest eigenvalue; with ``{"kind": "fourth"}``, or ``"opt_fourth"`` of degree 1
        to 6, the polynomial of the fourth kind, which needs no lower bound. ``("l1_jacobi", {"iterations": 1, "omega": 1.0})``:
        row sums of absolute values take the diagonal's place, and no eigenvalue is needed. ``("multicolour_gauss_seidel",
        {"iterations": 1, "sweep": "symmetric"})``: one colour of unknowns after another, "forward", "backward" or both. For
        cycles that precondition `cg`: "symmetric", or "forward" before and "backward" after. The last two smoothers do not run
        over ranks. A list has an entry for each level.
    improve_candidates : {"jacobi", None}, tuple or list
        How candidates are smoothed before prolongators are made of them: ``("jacobi", {"omega": w, "iterations": i})`` takes
        steps to ``A B = 0``. By default four on the finest level. `MultilevelSolver.refresh` keeps the candidates.
    max_levels : int
        Levels at most.
    max_coarse : int, optional
        Nodes up to which a level is not coarsened: it is the coarsest, whose inverse is made once. By default 256, or 100
        of several unknowns.

    Returns
    -------
    MultilevelSolver
        Over ranks, all of them call its methods together.

    Raises
    ------
    ValueError, TypeError
        A is not square, has values that are not finite or an empty diagonal, or another argument is wrong. Over ranks: on one of
        them, or arguments differ; all of them raise.

    Notes
    -----
    Vanek, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic problems"; Bell,
    Dalton and Olson, "Exposing fine-grained parallelism in algebraic multigrid methods". The aggregates of a matrix are the same
    on every device. Lottes, "Optimal polynomial smoothers for multigrid V-cycles": polynomials of the fourth kind, and their
    optimal weights. Baker, Falgout, Kolev and Yang, "Multigrid smoothers for ultraparallel computing": l1-Jacobi. The largest
    eigenvalue is found by 8 steps of the Lanczos method from the same vector each time.

    Differences from PyAMG: aggregates are those of a maximal independent set of distance 2; smoothers are Jacobi's by default,
    those of candidates too.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> step = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    >>> A = sp.kronsum(step, step, format="csr")
    >>> ml = sp.amg.smoothed_aggregation_solver(A)
    >>> len(ml.levels), ml.levels[1].A.shape[0] < 400
    (3, True)
    >>> x, info = ml.solve(np.ones(1600), tol=1e-8, accel="cg", return_info=True)
    >>> info
    0

    Over ranks:

    >>> with sp.distributed.over([sp.default_queue()] * 2) as team:
    ...     ml = team.run(sp.amg.smoothed_aggregation_solver, team.csr_array(A.get()))
    ...     x, info = ml.solve(np.ones(1600), tol=1e-8, accel="cg", return_info=True)
    >>> info, bool(np.allclose(A @ x, 1, atol=1e-5))
    (0, True)
    """
    named = {"strength": strength, "smooth": smooth, "improve_candidates": improve_candidates}
    smoothers = {"presmoother": presmoother, "postsmoother": postsmoother}
    read = functools.partial(Options.read, symmetry, named, smoothers, max_levels, max_coarse)
    solver: MultilevelSolver = as_divided(A).multigrid(B, read, _set_up_on_one_device)
    return solver


@door()
def _set_up_on_one_device(A: Any, B: Any, options: Options) -> MultilevelSolver:
    """Return the multigrid hierarchy of a matrix on one device, with near-nullspace candidates B."""
    finest, blocksize = _read_matrix(A)
    level = Level(
        finest, B=_read_candidates(B, finest, blocksize), blocksize=blocksize, symmetric=options.symmetry == "symmetric"
    )
    return MultilevelSolver(*build_levels(level, options, coarsen))


class Coarsening(Protocol):
    """The step from a level to the next coarser level, on one device or over ranks; B holds the coarser level's candidates."""

    B: cl_array.Array

    def run(self, level: Level, below: Any = None) -> Any:
        """Set a level's prolongator P and restriction R for its matrix's present values; return the matrix of the next level."""


def build_levels(
    finest: Level, options: Options, step_of: Callable[[Level, int, Options], Coarsening | None]
) -> tuple[list[Level], Callable[[list[Level]], None]]:
    """Return the levels of a multigrid hierarchy, and a function that sets them up anew for other values of the finest matrix.

    Parameters
    ----------
    finest : Level
    options : Options
    step_of : callable
        Returns the step from a level, which has a number, to the next; None if the next level were no smaller.
    """
    levels, steps = [finest], list[Coarsening]()
    while len(levels) < options.max_levels and not options.is_coarse(levels[-1]):
        if len(levels) > 1 and levels[-1].has_zero_diagonal():
            break  # no smoother can be made; where the matrix maps all candidates to zero, the level's matrix is zero
        step = step_of(levels[-1], len(levels) - 1, options)
        if step is None:
            break
        steps.append(step)
        columns = int(step.B.shape[1])
        levels.append(Level(step.run(levels[-1]), B=step.B, blocksize=columns, symmetric=levels[0].symmetric))
    _set_smoothers(levels, options)

    def refresh(levels: list[Level]) -> None:
        """Set the levels of a hierarchy anew for the values that the finest matrix has now."""
        for level, below, step in zip(levels, levels[1:], steps, strict=False):
            level.changed()
            below.A = step.run(level, below.A)
        levels[-1].changed()
        _set_smoothers(levels, options)

    return levels, refresh


def _set_smoothers(levels: list[Level], options: Options) -> None:
    """Set the smoothers of all levels of a hierarchy but the coarsest."""
    for number, level in enumerate(levels[:-1]):
        for name in ("presmoother", "postsmoother"):
            smoother = make_smoother(name, options.at_level(name, number), level.rho)
            if smoother is not None and (smoother.sweep or smoother.scaling == "l1") and as_divided(level.A).all_sum is not None:
                raise ValueError(f"{name}: {smoother.name!r} does not run over ranks")
            setattr(level, name, smoother)


@door()
def coarsen(level: Level, number: int, options: Options) -> _Step | None:
    """Smooth a level's candidates, and return the step to the next coarser level, on one device; None if that were no smaller."""
    graph = select_strong_entries(reduce_blocks(level.A, level.blocksize), options.at_level("strength", number))
    queue = level.A.queue
    groups = aggregate_nodes(queue, graph.indices, graph.indptr)
    smooth_candidates(level, *options.at_level("improve_candidates", number))
    assert level.B is not None
    if not groups.n or groups.n * level.B.shape[1] >= level.A.shape[0]:
        return None
    T, coarse = make_tentative_prolongator(queue, groups, level.B, level.blocksize)
    return _Step(coarse, T, options.at_level("smooth", number), options.symmetry)


def smooth_candidates(level: Level, omega: float, iterations: int) -> None:
    """Smooth a level's near-nullspace candidates B by steps of the Jacobi method for ``A B = 0``."""
    B = level.B
    assert B is not None
    if not iterations:
        return
    if B.shape[1] == 1 and as_divided(level.A).all_sum is None:
        level.B = level.relaxed(B, omega, iterations)
        return
    step = level.smoothing(omega)
    for _ in range(iterations):
        B = step @ B
    level.B = B


def _read_improvement(option: Any) -> tuple[float, int]:
    """Return omega, the factor of a Jacobi step, and the number of steps that smooth candidates, from ``improve_candidates``."""
    name, options = unpack(option)
    if name not in ("jacobi", None):
        raise ValueError(f"improve_candidates: must be 'jacobi' or None, is {name!r}")
    omega, iterations = 0.0, 0
    if name is not None:
        omega, iterations = float(options.pop("omega", 1.0)), operator.index(options.pop("iterations", 1))
    if options:
        raise TypeError(f"improve_candidates: has no option {', '.join(options)}")
    return omega, iterations


def _read_theta(option: Any) -> float:
    """Return the threshold theta of strong matrix entries, from a user's ``strength``."""
    name, options = unpack(option)
    if name not in ("symmetric", None):
        raise ValueError(f"strength: must be 'symmetric' or None, is {name!r}")
    theta = float(options.pop("theta", 0.0)) if name else 0.0
    if options:
        raise TypeError(f"strength: has no option {', '.join(options)}")
    if not 0 <= theta < np.inf:
        raise ValueError(f"strength: theta must be a number that is not negative, is {theta}")
    return theta


def _read_omegas(option: Any) -> tuple[float, ...]:
    """Return omega, the factor of a Jacobi step, for each step that smooths prolongators, from the user's option ``smooth``."""
    name, options = unpack(option)
    if name not in ("jacobi", None):
        raise ValueError(f"smooth: must be 'jacobi' or None, is {name!r}")
    omega, degree = 0.0, 0
    if name is not None:
        omega, degree = float(options.pop("omega", _OMEGA)), operator.index(options.pop("degree", 1))
    if options:
        raise TypeError(f"smooth: has no option {', '.join(options)}")
    return (omega,) * degree


def _read_matrix(A: Any) -> tuple[csr_array, int]:
    """Return the user's matrix A on the device, canonical and of a floating dtype, and the number of unknowns of a node."""
    blocksize = 1
    if getattr(A, "format", None) == "bsr":
        rows, columns = A.blocksize
        if rows != columns:
            raise ValueError(f"A: must have square blocks, has {rows} x {columns}")
        blocksize, A = int(rows), A.tocsr()
    matrix = (on_device(queue_in((A,)) or default_queue(), A) if hasattr(A, "tocsr") else csr_array(A)).tocsr()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A: must be square, has shape {matrix.shape}")
    if matrix.dtype.kind not in "fc":
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = make_canonical(matrix)
        blocksize = blocksize if matrix.nnz % blocksize**2 == 0 else 1
    # The caller may replace the arrays of the matrix object: the hierarchy has an object of its own over the same arrays.
    return csr_array.sharing(matrix), blocksize


def _read_candidates(B: Any, A: csr_array, blocksize: int) -> cl_array.Array:
    """Return the user's near-nullspace candidates B on the device, a row for each unknown; by default ones.

    The default has as many columns as a node has unknowns: a column's ones are in the rows of one unknown of each node.
    """
    if B is None and blocksize == 1 and A.shape[0]:
        ones, chain = allocate(A.queue, "candidates", (A.shape[0], 1), A.dtype), Chain(A.queue)
        chain.fill(ones, 1, A.shape[0])
        chain.finish(ones)
        return ones
    if B is None:
        B = np.kron(np.ones((A.shape[0] // blocksize, 1)), np.eye(blocksize))
    host = check_candidates(B, A.shape[0], A.dtype)
    if host.size and not host.any():
        raise ValueError("B: has zeros alone")
    return from_host(A.queue, host, copy=True)


def check_candidates(B: Any, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the near-nullspace candidates B on the host, as n rows in a matrix's dtype.

    Raises
    ------
    ValueError, TypeError
        B has another number of rows, values that are not finite, or complex values for a real matrix.
    """
    host = np.asarray(on_host(B))
    host = host[:, None] if host.ndim == 1 else host
    if host.ndim != 2 or host.shape[0] != n or not host.shape[1]:
        raise ValueError(f"B: must have {n} rows, as A has, has shape {host.shape}")
    if host.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"B: is complex ({host.dtype}), but A is real ({dtype})")
    if not np.isfinite(host).all():
        raise ValueError("B: has values that are not finite")
    return np.ascontiguousarray(host, dtype)
