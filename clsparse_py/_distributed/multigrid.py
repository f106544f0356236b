"""Smoothed aggregation over ranks: a rank aggregates its own nodes, and products run over all ranks; small levels are whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._arrays.csr import make_canonical
from clsparse_py._arrays.functions import hstack
from clsparse_py._build.plain import door
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.plans import SpgemmPlan, TransposePlan, have_one_structure
from clsparse_py._distributed.shared import Distributed, describe, require_same_ranks
from clsparse_py._distributed.systems import DividedOperator, require_square, take_own_part
from clsparse_py._distributed.vectors import compute_norm_share, vector
from clsparse_py._distributed.whole_levels import Gathering, max_whole_rows
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.reductions.sums import diagonal_on_device
from clsparse_py._run.transfer import copy_to_device, copy_to_host, from_host
from clsparse_py._solvers.aggregation.aggregates import Aggregates, aggregate_nodes
from clsparse_py._solvers.aggregation.graph import reduce_blocks, select_strong_entries
from clsparse_py._solvers.aggregation.tentative import make_tentative_prolongator
from clsparse_py._solvers.amg.coarsest import invert_coarsest, invert_on_host
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.setup import Coarsening, Options, build_levels, check_candidates, coarsen, smooth_candidates
from clsparse_py._solvers.amg.solver import MultilevelSolver, Preconditioner, read_cycle_name

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["set_up"]


def set_up(A: csr_array, B: Any, read: Callable[[], Options]) -> Hierarchy:
    """Return the multigrid hierarchy of smoothed aggregation for a matrix over ranks.

    Parameters
    ----------
    A : csr_array
    B : vector, numpy.ndarray or pyopencl.array.Array, optional
        Near-nullspace candidates, as operands of ``A @ B``; by default ones.
    read : callable
        Returns the checked options of the hierarchy.

    Raises
    ------
    ValueError, TypeError, RankError
        On all ranks: an argument of a rank is wrong, or options differ between ranks.
    """
    comm = A.comm
    with comm.together():
        with comm.agreeing() as facts:
            options, finest = read(), _check_finest(A)
            candidates = _read_candidates(B, finest)
            facts.update(dataclasses.asdict(options), A=describe(A), B=describe(B), **{"columns of B": candidates.shape[1]})
        if finest.shape[0] and not comm.max(np.uint8(candidates.any())):
            comm.agree(ValueError("B: has zeros alone"))
        level = Level(finest, B=from_host(finest.queue, candidates, copy=True), symmetric=options.symmetry == "symmetric")
        return Hierarchy(*build_levels(level, options, _coarsen))


def _check_finest(A: csr_array) -> csr_array:
    """Return the user's matrix over ranks, checked to be square, and brought to canonical format and a floating dtype."""
    require_square(A)
    if A.dtype.kind not in "fc":
        A = A.astype(np.float64)

    def canonical(part: device_array) -> device_array:
        """Return a part of the matrix in canonical format, as an object that only the hierarchy has."""
        return device_array.sharing(make_canonical(part))

    # The caller may replace the arrays of the matrix: the hierarchy has matrices of its own over the same arrays.
    return A.mapped(canonical, canonical)


def _read_candidates(B: Any, A: csr_array) -> np.ndarray[Any, Any]:
    """Return this rank's rows of the user's near-nullspace candidates B, on the host; ones by default."""
    n = A.local.shape[0]
    return check_candidates(np.ones(n) if B is None else take_own_part("B", B, A), n, A.dtype)


class _Coarsening:
    """The step from a multigrid level over ranks to the next coarser one; the tentative prolongator T serves new values, too.

    ``is_whole``: each rank gets the whole of the coarser level.
    """

    def __init__(self, B: cl_array.Array, T: csr_array, omegas: tuple[float, ...], symmetry: str, *, is_whole: bool) -> None:
        self.B, self._T, self._omegas, self._symmetry, self._is_whole = B, T, omegas, symmetry, is_whole
        # The hierarchy's first set-up makes no plans of products: most hierarchies are never refreshed.
        self._is_planned = False
        self._plans: dict[str | int, SpgemmPlan] = {}
        self._transpose_plan: TransposePlan | None = None
        self._gathering: Gathering | None = None

    def run(self, level: Level, below: Any = None) -> Any:
        """Set a level's prolongator P and restriction R for its matrix's present values, and return the next level's matrix.

        With ``below``, the next level's matrix for earlier values, products are planned, and plans are used again.
        """
        self._is_planned = below is not None
        P = self._T
        for number, omega in enumerate(self._omegas):
            P = self._multiply(number, level.smoothing(omega), P)
        is_conjugate, AP = P.dtype.kind == "c" and self._symmetry == "hermitian", self._multiply("AP", level.A, P)
        if not self._is_whole:
            level.P, level.R = P, self._transpose(P.conj() if is_conjugate else P)
            return self._multiply("R(AP)", level.R, AP)
        if self._gathering is None:
            self._gathering = Gathering(P, AP)
        level.P, level.R, matrix = self._gathering(P, AP, is_conjugate=is_conjugate)
        return matrix if below is None else below.with_values(matrix.data)

    def _multiply(self, name: str | int, A: csr_array, B: csr_array) -> Any:
        """Return the product of two matrices over ranks, by the plan that is kept under ``name`` if products are planned."""
        if not self._is_planned:
            return A @ B
        if name not in self._plans:
            self._plans[name] = SpgemmPlan(A, B)
        return self._plans[name].product(A, B)

    def _transpose(self, P: csr_array) -> Any:
        """Return the transposed of a prolongator P over ranks, by a plan for any values of P if the hierarchy plans products."""
        if not self._is_planned:
            return P.T.tocsr()
        if self._transpose_plan is None:
            self._transpose_plan = TransposePlan(P)
        return self._transpose_plan(P)


def _coarsen(level: Level, number: int, options: Options) -> Coarsening | None:
    """Return the step from a level to the next, on this rank's device if each rank has it whole; None if that is no smaller."""
    if not isinstance(level.A, Distributed):
        return coarsen(level, number, options)
    A: Any = level.A
    comm, queue = A.comm, A.queue
    groups = _aggregate_own_nodes(level, options.at_level("strength", number))
    smooth_candidates(level, *options.at_level("improve_candidates", number))
    assert level.B is not None
    columns = level.B.shape[1]
    n_aggregates, max_whole = comm.stacked(np.array([groups.n if groups else 0, max_whole_rows(queue)], np.int64)).T
    coarse = Division(np.cumsum([0, *(columns * n_aggregates)]))
    if not coarse.n or coarse.n >= A.shape[0]:
        return None
    if groups and groups.n:
        prolongator, B = make_tentative_prolongator(queue, groups, level.B, level.blocksize)
        local = device_array.sharing(prolongator)
    else:
        local = device_array((A.local.shape[0], 0), dtype=A.dtype, queue=A.queue)
        B = from_host(queue, np.zeros((0, columns), A.dtype), copy=True)
    nothing = device_array((A.local.shape[0], 0), dtype=A.dtype, queue=A.queue)
    T = A.assembled(comm, A.rows, coarse, local, nothing, np.zeros(0, np.int64))
    is_whole = bool(coarse.n <= max_whole.min())
    if is_whole:
        B = from_host(queue, vector.over(B, comm, coarse).allgather(), copy=True)
    return _Coarsening(B, T, options.at_level("smooth", number), options.symmetry, is_whole=is_whole)


def _aggregate_own_nodes(level: Level, theta: float) -> Aggregates | None:
    """Return the aggregates of this rank's own nodes; None if the rank has no nodes.

    A node whose strong entries are all in other ranks' columns is an aggregate: on coarse levels a rank may have no other nodes.
    """
    A, block = level.A, level.blocksize
    queue, n = A.queue, A.local.shape[0] // block
    local, remote = reduce_blocks(A.local, block), reduce_blocks(A.remote, block)
    if theta:
        local, remote = _select_strong(level, local, remote, theta)
    if not n:
        return None
    groups = aggregate_nodes(queue, local.indices, local.indptr)
    if groups.n_joined == n:
        return groups
    joined = copy_to_host(groups.joined, queue)
    isolated = np.flatnonzero((joined < 0) & (np.diff(copy_to_host(remote.indptr, queue)) > 0))
    joined[isolated] = groups.n + np.arange(isolated.size)
    positions = np.concatenate([[0], np.cumsum(joined >= 0)]).astype(joined.dtype)
    arrays = copy_to_device(queue, "aggregates", joined), copy_to_device(queue, "places", positions)
    return Aggregates(*arrays, groups.n + isolated.size, int(positions[-1]))


def _select_strong(level: Level, local: Matrix, remote: Matrix, theta: float) -> tuple[Matrix, Matrix]:
    """Return the strong entries of a rank's rows (large beside the diagonal): in its own columns, and in other ranks' columns."""
    A, block = level.A, level.blocksize
    queue, n = A.queue, local.shape[0]
    diagonal = copy_to_host(door()(diagonal_on_device)(local), queue)
    remote_diagonal = copy_to_host(A.halo.fetch(copy_to_device(queue, "a diagonal", np.repeat(diagonal, block))), queue)
    both = copy_to_device(queue, "a diagonal", np.concatenate([diagonal, remote_diagonal[::block]]))
    joined = hstack([device_array.sharing(matrix) for matrix in (local, remote)], format="csr")
    strong = cast("device_array", select_strong_entries(joined, theta, both))
    return strong[:, :n], strong[:, n:]


class Hierarchy(Distributed, MultilevelSolver):
    """A multigrid hierarchy over ranks: a rank has its own rows of all levels; the interface is that of one device.

    All ranks call its methods together. Right-hand sides are operands of ``A @ b``, and solutions are of the same kind.
    """

    def __init__(self, levels: list[Level], refreshed: Callable[[list[Level]], None] | None = None) -> None:
        self.comm: Communicator = levels[0].A.comm
        super().__init__(levels, refreshed)
        self._count_entries()

    def _count_entries(self) -> None:
        """Count the entries of the hierarchy's matrices over all ranks; matrices cache the numbers, which `repr` shows."""
        for level in self.levels:
            level.A.nnz  # noqa: B018 - cached by the matrix

    @override
    def _invert_coarsest(self) -> Any:
        """Return the inverse of the coarsest level's matrix; that of a level over ranks is made on rank 0, and divided."""
        coarsest = self.levels[-1]
        if isinstance(coarsest.A, Distributed):
            # Each rank has its own rows of the coarsest matrix's inverse, and multiplies these rows by all of b.
            return cast("csr_array", coarsest.A).by_root(invert_on_host)
        with self.comm.agreeing():
            return invert_coarsest(coarsest.A)

    @override
    def refresh(self, values: Any) -> None:
        """Set up the hierarchy again for new values of A: aggregates and tentative prolongators stay, products are recomputed.

        Parameters
        ----------
        values : csr_array
            Over the same ranks, of A's structure.

        Raises
        ------
        ValueError, TypeError
            On all ranks: a rank's values have another structure, division or dtype.
        """
        A, comm = self.levels[0].A, self.comm
        with comm.together():
            with comm.agreeing(values=describe(values)):
                matrix = _check_values(A, values)
            self.levels[0].A = matrix
            assert self._refreshed is not None
            self._refreshed(self.levels)
            self._coarse, self._workspaces = self._invert_coarsest(), {}
            self._count_entries()

    @override
    def aspreconditioner(self, cycle: str = "V") -> Cycle:
        """Return the operator of one multigrid cycle over ranks from x = 0; see `MultilevelSolver.aspreconditioner`."""
        (kind,) = self._agree_on(lambda: (read_cycle_name(cycle),))
        return Cycle(self, kind)

    @override
    def _check_options(
        self, cycle: Any, accel: Any, tol: Any, maxiter: Any, repeats: Any, has_residuals: bool
    ) -> tuple[Any, ...]:
        """Return the options of the hierarchy's method `solve`, checked and equal on all ranks."""

        def read() -> tuple[Any, ...]:
            """Return the options of the hierarchy's method `solve`, checked as on one device."""
            return super(Hierarchy, self)._check_options(cycle, accel, tol, maxiter, repeats, has_residuals)

        named = accel if isinstance(accel, str) else accel is not None
        return self._agree_on(read, accel=named, tol=tol, maxiter=maxiter, cycles_per_level=repeats, residuals=has_residuals)

    def _agree_on(self, read: Callable[[], tuple[Any, ...]], **facts: Any) -> tuple[Any, ...]:
        """Return the options of a solution that ``read`` returns, if they are the same on all ranks; else raise on all ranks."""
        with self.comm.agreeing(**facts) as agreed:
            options = read()
            agreed["cycle"] = options[0]
        return options

    @override
    def _compute_residual_norm(self, b: Any, x: Any) -> float:
        """Return the Euclidean norm of the residual ``b - A x`` over all ranks."""
        product = self.levels[0].A @ x
        if isinstance(b, Distributed):
            return float((b - product).norm())
        if isinstance(b, cl_array.Array):
            return float(np.sqrt(self.comm.sum(compute_norm_share(b - product, 2))))
        return float(np.linalg.norm(b - product.reshape(b.shape)))


def _check_values(A: csr_array, values: Any) -> csr_array:
    """Return the user's matrix of new values in A's dtype, checked to have A's structure.

    Raises
    ------
    ValueError, TypeError
        The matrix has another structure or dtype, or is none over ranks.
    """
    if not isinstance(values, type(A)):
        raise TypeError(f"values: must be a matrix over the same ranks, is {type(values).__name__}")
    require_same_ranks("values", values, A.comm)
    if np.result_type(values.dtype, A.dtype) != A.dtype:
        raise TypeError(f"values: must have A's dtype, {A.dtype}, has {values.dtype}")
    matrix = _check_finest(values) if (values.rows, values.columns) == (A.rows, A.columns) else values
    if not have_one_structure(matrix, A):
        raise ValueError("values: the matrix has another structure than A; set up another hierarchy")
    return matrix.astype(A.dtype, copy=False)


class Cycle(DividedOperator, Preconditioner):
    """The operator of one multigrid cycle over ranks, which begins with x = 0: for ``M`` of the solvers, or for ``cycle @ b``."""

    def __init__(self, hierarchy: Hierarchy, kind: str) -> None:
        A = hierarchy.levels[0].A
        self.comm, self.division = A.comm, A.rows
        Preconditioner.__init__(self, hierarchy, kind)
