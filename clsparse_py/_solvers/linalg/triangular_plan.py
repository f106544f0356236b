"""Plans of triangular systems: the analysis of a structure, kept for any values and right-hand sides."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue, describe
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import SetOnce, dataclass
from clsparse_py._ground.tables import Shown, Table, plan_as_html
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix, Origin
from clsparse_py._matrix.placement import place_values
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.overlap import require_inside
from clsparse_py._operations.triangular import METHODS, RightSide, Solver, State, get_solver
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.linalg.problem import check_right_side, dtype_of_solution, order_of, place_of_solution, side_by_side

__all__ = ["Explanation", "TriangularPlan", "make_plan", "triangular_plan"]

_log = logging.getLogger(__name__)

#: Names of methods for triangular systems: see `METHODS`; "auto": as the device's profile chooses.
_Method = Literal["auto", "serial", "sync-free", "levels", "tiles"]


@dataclass(frozen=True)
class Explanation(Shown):
    """Which method solves a triangular system, and why. Prints as a table.

    Attributes
    ----------
    method : str
        One of "serial", "sync-free", "levels", "tiles".
    verdicts : tuple of (str, str, str)
        A method, whether it was taken, and why.
    rows, launches : int
        Numbers of unknowns, and of launches of a solution with one right-hand side.
    """

    method: str
    verdicts: tuple[tuple[str, str, str], ...]
    rows: int
    launches: int

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The table that is printed: a row for each method, with whether it was taken, and why."""
        title = f"Triangular systems of {self.rows} rows: {self.method}. Launches: {self.launches}"
        return Table(title, ("method", "taken", "why"), self.verdicts)


class TriangularPlan(SetOnce):
    """Solutions with one triangular structure, for any values and right-hand sides. Made by `triangular_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        A's.
    shape : tuple of int
        A's.
    lower, unit_diagonal, transposed : bool
        As given to `triangular_plan`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> plan = sp.linalg.triangular_plan(sp.csr_array([[2.0, 0.0], [1.0, 4.0]]), transposed=True)
    >>> plan.explain().rows, plan(np.array([4.0, 8.0]))
    (2, array([1., 2.]))
    """

    def __init__(
        self, A: SparseArray, lower: bool, unit_diagonal: bool, transposed: bool, method: str, queue: cl.CommandQueue
    ) -> None:
        self.queue, self.shape = queue, A.shape
        self.lower, self.unit_diagonal, self.transposed = lower, unit_diagonal, transposed
        self._method, self._upper = method, lower == transposed
        matrix: Any = A
        of_rows = matrix.T if transposed else matrix
        rows: Matrix = of_rows._as_csr()
        rows.require_valid()
        self._rows = rows.with_values(rows.data)
        # The CSR matrix that shares A's arrays, if there is one: new values are in its order.
        self._given: Any = matrix if A.format == "csr" else matrix.T if A.format == "csc" else None
        self._is_direct = of_rows.format == "csr"
        self._origin = None if self._given is None else Origin(self._given)
        # Values whose diagonal was seen to have no zero.
        self._regular: cl_array.Array | None = None
        self._pending: list[tuple[Callable[[], npt.NDArray[Any]], Matrix]] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        n, device = self.shape[0], describe(self.queue.device).name
        return f"<TriangularPlan of a {n} x {n} matrix with {self._rows.nnz} entries on {device}>"

    _repr_html_ = plan_as_html

    def _solver(self, queue: cl.CommandQueue, dtype: np.dtype[Any], columns: int = 1) -> Solver:
        """Return the solver that enqueues the launches for the plan's triangle and right-hand sides of a dtype, on a queue."""
        options: dict[str, Any] = {"upper": self._upper, "unit": self.unit_diagonal, "method": self._method, "columns": columns}
        return get_solver(queue, self._rows.structure, dtype, **options)

    def explain(self) -> Explanation:
        """Return which method solves the triangular systems, and why."""
        solver = self._solver(self.queue, dtype_of_solution(self._rows, self._rows, self.queue))
        levels = solver.levels
        why = {
            "serial": "one work-item solves row by row",
            "sync-free": "work-items solve each row as soon as the unknowns that it needs are known",
            "levels": "needs launches or barriers between level sets",
            "tiles": "needs a stencil on a grid",
        }
        tiles = solver.tiles
        if tiles is not None:
            extents, count = " x ".join(map(str, tiles.extents)), len(tiles.starts) - 1
            why["tiles"] = f"{tiles.count} tiles of {extents} points, in {count} levels"
        if levels is not None:
            widest = max((widest for *_, widest in levels.launches), default=0)
            kind = "rows" if levels.rows == self.shape[0] else "supernodes"
            sets = f"{levels.count} level sets, of at most {widest} {kind}"
            if solver.method == "levels":
                why["levels"] = sets
            else:
                why["sync-free"] += f"; {sets}"
        verdicts = tuple((name, "yes" if name == solver.method else "no", why[name]) for name in METHODS)
        return Explanation(solver.method, verdicts, self.shape[0], solver.launches)

    def check(self) -> None:
        """Wait for the calls with device arrays so far, and raise a `LinAlgError` if the diagonal of their values had a zero.

        Raises
        ------
        LinAlgError
            As above; the message names the first such row.
        """
        with self._lock:
            pending, self._pending = self._pending, []
        for read, rows in pending:
            self._require_regular(read, rows)

    def _require_regular(self, read: Callable[[], npt.NDArray[Any]], rows: Matrix) -> None:
        """Raise a `LinAlgError` if a solution noted a zero on the diagonal; else note that the values have none."""
        state = State(*read())
        if state.starved:
            _log.warning("triangular systems: a launch gave up waiting; one work-group solved all rows")
        if state.singular:
            diagonal: Any = rows.diagonal()  # type: ignore[attr-defined] # rows are a csr_array
            zeros = np.flatnonzero(diagonal == 0)
            # Values that were changed in place since have their zeros elsewhere.
            where = f"has a zero in row {zeros[0]}" if zeros.size else "had a zero, before its values were changed in place"
            raise np.linalg.LinAlgError(f"A: is singular, as its diagonal {where}")
        self._regular = rows.data

    @door()
    def __call__(self, b: Any, data: Any = None) -> Any:
        """Return the solution x of ``A x = b`` or, if ``transposed``, of ``A^T x = b``.

        Parameters
        ----------
        b : numpy.ndarray or pyopencl.array.Array
            A right-hand side of n entries, or n x k for k of them, which are solved together.
        data : pyopencl.array.Array or array_like, shape (nnz,), optional
            Values of A in the order of its entries, for a `csr_array` or `csc_array` A; by default the values that A had when the
            plan was made.

        Returns
        -------
        numpy.ndarray or pyopencl.array.Array
            x, of b's shape. With a device array nothing waits, and x is a device array.

        Raises
        ------
        LinAlgError
            The diagonal has a zero. With a device array b, the next call or `check` raises this; until then x has infinities or
            NaN. With a device array b, values whose diagonal had no zero are not looked at again if they are changed in place.
        ValueError, TypeError
            A wrong shape, dtype or context, or values of another structure; the message names the argument.
        """
        self.check()
        right = check_right_side("b", b, self.shape[0])
        on_the_device = isinstance(right, cl_array.Array)
        queue = place_of_solution(self._rows, {"b": right}) if on_the_device else self.queue
        rows = self._rows if data is None else self._with_values(data)
        dtype = self._dtype(rows, right)
        if not right.size:
            return allocate(queue, "x", right.shape, dtype) if on_the_device else np.zeros(right.shape, dtype)
        # The structure, which keeps the analysis, stays the same.
        source, rows = rows, rows if rows.dtype == dtype else rows.with_values(convert(queue, "A", rows.data, dtype))
        side = _right_side(queue, right, dtype)
        solver = self._solver(queue, dtype, side.columns)
        # A look at the diagonal costs a solution that waits nothing.
        is_unknown = not self.unit_diagonal and (not on_the_device or source.data is not self._regular)
        if on_the_device and not is_unknown:
            return solver.solve(queue, rows.data, side, right.shape)
        x = allocate(queue, "x", right.shape, dtype)
        chain = Chain(queue, side.values, *rows.parts)
        state = solver.enqueue(chain, rows.data, side, x, is_noted=is_unknown)
        chain.finish(x)
        if is_unknown:
            read = chain.read_later(state, len(State._fields))
            if on_the_device:
                with self._lock:
                    self._pending.append((read, source))
            else:
                self._require_regular(read, source)
        return x if on_the_device else copy_to_host(x, queue)

    def _dtype(self, rows: Matrix, right: Any) -> np.dtype[Any]:
        """Return the dtype of the solutions: the common dtype of A and b, float32 at least, as in SciPy."""
        if rows.dtype == right.dtype and rows.dtype.char in "fdFD":
            return rows.dtype
        # As in SciPy, b counts as at least float32; an integer diagonal, whose inverse is float64, counts only if it is inverted.
        of_b = np.promote_types(np.float32, right.dtype)
        of_A = np.empty(0, np.promote_types(rows.dtype, of_b)) if self.unit_diagonal else rows
        return dtype_of_solution(of_A, np.empty(0, of_b), self.queue)

    def _with_values(self, data: Any) -> Matrix:
        """Return the rows of the triangle with new values, which the caller gives in the order of A's entries."""
        if self._origin is None:
            raise ValueError("data: belongs to a csr_array or csc_array, and A has another format")
        self._origin.check("data", data)
        if not self._is_direct:
            # The rows of the transposed, and the duplicates within them, are in the same order by every method.
            return self._rows.with_values(self._given.transpose_plan()(data).data)
        return self._rows.with_values(place_values(self.queue, data, self._rows.nnz, from_beginning=True))


def _right_side(queue: cl.CommandQueue, right: Any, dtype: np.dtype[Any]) -> RightSide:
    """Return right-hand sides, one or two-dimensional, on the device and in a dtype: as they are if they have that dtype."""
    columns = 1 if right.ndim == 1 else int(right.shape[1])
    if not isinstance(right, cl_array.Array):
        values = copy_to_device(queue, "b", np.ascontiguousarray(right, dtype).ravel())
        return RightSide(values, columns, 0, columns)
    require_inside("b", right)
    item = dtype.itemsize
    if right.dtype != dtype or any(number % item for number in (right.offset, *right.strides)):
        if columns > 1 or right.ndim == 2:
            right = side_by_side(queue, [convert(queue, "b", right[:, j], dtype) for j in range(columns)], right.shape[0], dtype)
        else:
            right = convert(queue, "b", right, dtype)
    row_step, column_step = (*(step // item for step in right.strides), 1)[:2]
    return RightSide(right, columns, right.offset // item, row_step, column_step)


def make_plan(
    A: Any, lower: Any, unit_diagonal: Any, transposed: Any, method: str, queue: cl.CommandQueue | None
) -> TriangularPlan:
    """Return the plan of a triangular matrix of this package or SciPy's, for right-hand sides on a queue."""
    order_of(A)
    if not isinstance(A, SparseArray) and not scipy.sparse.issparse(A):
        raise TypeError(f"A: must be a sparse array, is {type(A).__name__}")
    matrix: Any = A if isinstance(A, SparseArray) else on_device(queue or default_queue(), A)
    return TriangularPlan(matrix, bool(lower), bool(unit_diagonal), bool(transposed), method, queue or matrix.queue)


@door()
def triangular_plan(
    A: Any,
    *,
    lower: bool = True,
    unit_diagonal: bool = False,
    transposed: bool = False,
    method: _Method = "auto",
) -> TriangularPlan:
    """Plan solutions with a triangular matrix: analyse its structure once, for any values and right-hand sides.

    Parameters
    ----------
    A : sparse array
        n x n; of this package, or of SciPy; its structure may not change. Entries on the other side of the diagonal are ignored.
    lower : bool
        Whether A is lower triangular, else upper.
    unit_diagonal : bool
        Whether A's diagonal is taken for ones, whatever is stored.
    transposed : bool
        Solve with A's transposed; ``lower`` describes A.
    method : {"auto", "serial", "sync-free", "levels", "tiles"}
        "serial": one work-item solves row by row. "sync-free": one launch, in which each row is solved as soon as the unknowns
        that it needs are known. "levels": level set by level set. "tiles": box by box, for a stencil on a grid. "auto" chooses by
        the profile of the device.

    Returns
    -------
    TriangularPlan
        ``plan(b)`` is the solution for a right-hand side, ``plan(b, data)`` with other values; ``plan.check()`` raises if a
        diagonal had a zero; ``plan.explain()`` says which method was chosen.

    Raises
    ------
    ValueError, TypeError
        A is not square or no sparse array, or ``method`` has another value; or it is "sync-free" on a device whose
        `forward_progress` is false, or "tiles" and A is no stencil on a grid.

    Notes
    -----
    Each method gives the same bits in each call. The methods agree to rounding: compilers may vectorise the sums of long rows.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[2.0, 0.0], [1.0, 4.0]])
    >>> plan = sp.linalg.triangular_plan(A)
    >>> plan(np.array([2.0, 9.0]))
    array([1., 2.])
    >>> plan(np.array([2.0, 9.0]), data=[1.0, 1.0, 1.0])
    array([2., 7.])
    """
    require_name("method", method, ("auto", *METHODS))
    plan = make_plan(A, lower, unit_diagonal, transposed, method, None)
    device = describe(plan.queue.device)
    if method == "sync-free" and not device.forward_progress:
        raise ValueError(f"method: 'sync-free' needs forward_progress of work-groups, which was not seen on {device.name}")
    if plan.shape[0]:
        plan.explain()  # analyses the structure
    return plan
