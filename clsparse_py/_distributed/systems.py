"""Systems of equations with a matrix over ranks, for the solvers of `clsparse_py.linalg`: their products, sums and operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from scipy.sparse.linalg import LinearOperator
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.shared import Distributed, collective, describe, require_same_ranks
from clsparse_py._distributed.vectors import multiply, own_entries, require_operand, vector
from clsparse_py._ground.errors import class_of
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.order import note_written
from clsparse_py._operations.spmv import get_spmv_plan
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.krylov.system import Apply, GroupMatrices
from clsparse_py._solvers.linalg.operators import DeviceOperator, bind_operator, cast_to, is_function
from clsparse_py._solvers.linalg.options import Options
from clsparse_py._solvers.linalg.problem import (
    Divided,
    Problem,
    check_preconditioner,
    copy_vector,
    dtype_of_solution,
    side_by_side,
)

__all__ = ["DividedOperator", "DividedProblem", "by_blocks", "require_square", "take_own_part"]


class DividedOperator(Distributed, DeviceOperator):
    """An operator over ranks: `bound` multiplies a rank's own part of a vector, with messages to other ranks.

    ``@`` takes the operands that ``A @ x`` of a matrix over ranks takes, and returns the same kind.

    Attributes
    ----------
    division : Division
        Of rows and columns.
    """

    division: Division

    @override
    def _matvec(self, x: Any) -> Any:
        """Return the operator's product with a vector divided among ranks."""
        return self @ x

    @override
    def _matmat(self, x: Any) -> Any:
        """Return the operator's product with a dense matrix divided among ranks."""
        return self @ x

    @collective
    def __matmul__(self, x: Any) -> Any:
        return multiply(self, x, self.division, self.division, self._multiply_own)

    def _multiply_own(self, x: cl_array.Array) -> cl_array.Array:
        """Return this rank's entries of the operator's product with a vector or dense matrix."""
        if x.ndim == 2:
            columns = [self._multiply_own(x[:, column]) for column in range(x.shape[1])]
            return side_by_side(self.queue, columns, x.shape[0], np.result_type(self.dtype, x.dtype))
        dtype = np.result_type(self.dtype, x.dtype)
        operand = copy_vector(self.queue, "x", x, dtype)
        product = allocate(self.queue, "the product", operand.size, dtype)
        self.bound(self.queue, dtype)(operand, product)
        note_written(product, cl.enqueue_marker(self.queue))
        return product


def require_square(A: Any) -> None:
    """Check that a matrix over ranks is square, and its rows and columns are divided alike.

    Raises
    ------
    ValueError
        The matrix is not square, or divided otherwise.
    """
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"A: must be square, has shape {A.shape}")
    if A.rows != A.columns:
        raise ValueError(f"A: its rows and columns must be divided alike, are {A.rows} and {A.columns}")


def take_own_part(name: str, values: Any, A: Any) -> Any:
    """Return this rank's part of a user's vector or dense matrix: its rows of a whole NumPy array, else its device array.

    Raises
    ------
    ValueError
        The vector has another length than the matrix A over ranks, or lives in another context; the message has its name.
    """
    division, comm = A.rows, A.comm
    if isinstance(values, vector | cl_array.Array):
        require_operand(name, values, A)
    if isinstance(values, vector):
        return own_entries(name, values, division)
    on_device = isinstance(values, cl_array.Array)
    entries = values if on_device else np.asarray(values)
    n = division.length(comm.rank) if on_device else division.n
    if entries.ndim not in (1, 2) or entries.shape[0] != n:
        raise ValueError(f"{name}: must have {n} entries or rows, as A asks for, has shape {entries.shape}")
    return entries if on_device else entries[division.part(comm.rank)]


class Blocks:
    """The block Jacobi preconditioner: ``own`` is the preconditioner of this rank's block; see `by_blocks`."""

    def __init__(self, division: Division, own: Any) -> None:
        self.division, self.own = division, own


def by_blocks(A: Any, preconditioner: Callable[[Any], Any]) -> Blocks:
    """Return the block Jacobi preconditioner over ranks, made of a preconditioner of each rank's diagonal block ``A.local``.

    Parameters
    ----------
    A : csr_array
        Over ranks; its rows and columns are divided alike.
    preconditioner : callable
        Takes a matrix on one device, and returns what solvers take as ``M`` with it:
        `clsparse_py.linalg.jacobi`, say, or ``ic0``.

    Returns
    -------
    object
        For ``M`` of the solvers of `clsparse_py.linalg`.

    Raises
    ------
    ValueError, TypeError
        Rows and columns are divided otherwise; a block's preconditioner has another shape, or is none.

    Notes
    -----
    The block Jacobi method: the more ranks there are, the more iterations. `clsparse_py.amg.smoothed_aggregation_solver` takes
    the whole of A.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> S = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60), format="csr")
    >>> def solve(A):
    ...     return sp.linalg.cg(A, np.ones(60), M=distributed.by_blocks(A, sp.linalg.ic0))
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     x, info = team.run(solve, team.csr_array(S))
    >>> info, bool(np.allclose(S @ x, 1, atol=1e-4))
    (0, True)
    """
    with A.comm.together():
        if A.rows != A.columns:
            raise ValueError(f"A: its rows and columns must be divided alike, are {A.rows} and {A.columns}")
        n = A.local.shape[0]
        return Blocks(A.rows, check_preconditioner(preconditioner(A.local), n) if n else None)


class DividedProblem(Problem):
    """A system of equations ``A x = b`` over ranks, with a rank's parts of its vectors.

    Parameters
    ----------
    A : csr_array
        Over ranks, square, its rows and columns divided alike.
    b, x0 : vector, numpy.ndarray or pyopencl.array.Array
        As operands of ``A @ b``.
    M : csr_array, Blocks, DividedOperator or callable, optional
        A callable takes and returns a `vector`.
    read : callable
        Returns how the solver iterates, or raises.

    Raises
    ------
    ValueError, TypeError, RankError
        On all ranks: an argument of a rank is wrong, or differs between ranks; the message names the argument.
    """

    def __init__(self, A: Any, b: Any, x0: Any, M: Any, read: Callable[[], Options]) -> None:
        with A.comm.agreeing() as facts:
            self.options = read()
            facts.update(self.options.facts, **self._read_arguments(A, b, x0, M))

    def _read_arguments(self, A: Any, b: Any, x0: Any, M: Any) -> dict[str, Any]:
        """Set the system's attributes from this rank's arguments, and return the facts that have to be the same on all ranks."""
        require_square(A)
        self.A, self.comm, self.division, self.n = A, A.comm, A.rows, A.shape[0]
        self.queue, self.own = A.queue, A.rows.length(A.comm.rank)
        if A.comm.size > 1:
            self.all_sum, self.all_max = A.comm.sum, A.comm.max
        if isinstance(x0, str) and x0 != "Mb":
            raise ValueError(f"x0: must be an array or 'Mb', is {x0!r}")
        self._given, self.b = type(b), take_own_part("b", b, A)
        self.x0 = x0 if x0 is None or isinstance(x0, str) else take_own_part("x0", x0, A)
        if not (self.x0 is None or isinstance(self.x0, str)) and self.x0.shape != self.b.shape:
            raise ValueError(f"x0: must have b's shape, {self.b.shape} on this rank, has {self.x0.shape}")
        self._M = self._check_preconditioner(M)
        self.columns = 1 if self.b.ndim == 1 else self.b.shape[1]
        self.dtype = dtype_of_solution(A, self.b, self.queue)
        # The messages between ranks depend on the kinds of b, x0 and M, which have to be the same on all ranks.
        guess = x0 if x0 is None or isinstance(x0, str) else "an array"
        kinds = {"kind of b": class_of(b), "kind of M": "function" if is_function(M) else class_of(M), "x0": guess}
        operands = {name: describe(operand) for name, operand in {"A": A, "b": b, "guess": x0, "M": M}.items()}
        return {"dtype": self.dtype, "columns": self.columns, **kinds, **operands}

    def _check_preconditioner(self, M: Any) -> Any:
        """Return the user's preconditioner M, checked to be divided among ranks as the matrix A."""
        if isinstance(M, Distributed):
            require_same_ranks("M", M, self.comm)
        if isinstance(M, Divided):
            if not getattr(M, "rows", None) == getattr(M, "columns", None) == self.division:
                raise ValueError(f"M: must be divided as A is, {self.division}")
        elif isinstance(M, Blocks | DividedOperator):
            if M.division != self.division:
                raise ValueError(f"M: is divided as {M.division}, and A as {self.division}")
        elif M is not None and not is_function(M):
            allowed = "a matrix over ranks, what `distributed.by_blocks` or a hierarchy returns, or a function of a vector"
            raise TypeError(f"M: must be {allowed}, is {class_of(M)}")
        return M

    @override
    def operators(self) -> tuple[Apply, Apply | None, GroupMatrices | None]:
        """Return the functions that enqueue products with A and M (None without M), and None for matrices in one work-group."""
        return self._bind_product(self.A), self._bind_preconditioner(), None

    def _bind_product(self, A: Any) -> Apply:
        """Return the function that enqueues the product of a matrix over ranks with this rank's part of a vector."""
        cast = cast_to(A, self.dtype)
        local, local_is_empty = self._bind_local_product(cast.local), not A.local.nnz

        def apply(x: cl_array.Array, y: cl_array.Array, alpha: float | None = None) -> None:
            """Enqueue ``y = alpha * A @ x`` for this rank's parts of x and y."""
            begin, end = cast.around(self.queue, x, y, alpha)
            begin()
            if local_is_empty:
                Chain(self.queue).fill(y, 0, y.size)
            elif alpha is None:
                local(x, y)
            else:
                local(x, y, alpha)  # type: ignore[call-arg] # of a csr_array
            self.queue.flush()
            end()

        apply.takes_alpha = True  # type: ignore[attr-defined] # see `clsparse_py._solvers.krylov.scaling`

        return apply

    @door()
    def _bind_local_product(self, A: csr_array) -> Apply:
        """Return the function that enqueues products of the local part A with vectors; its kernels are built, or fail, now."""
        if A.nnz:
            plan, x = get_spmv_plan(A), allocate(self.queue, "x", 0, self.dtype)
            for alpha in (None, 1):
                plan.build(A, x, x, alpha, None, plus_times)
        return bind_operator(A, self.queue, self.dtype)

    def _bind_preconditioner(self) -> Apply | None:
        """Return the function that enqueues the preconditioner's product with this rank's part of a vector; None without M."""
        if self._M is None:
            return None
        if isinstance(self._M, Divided):
            return self._bind_product(self._M)
        if isinstance(self._M, DividedOperator):
            return self._M.bound(self.queue, self.dtype)
        if isinstance(self._M, Blocks):
            return _skip_product if self._M.own is None else bind_operator(self._M.own, self.queue, self.dtype)

        def apply_function(x: cl_array.Array, y: cl_array.Array) -> None:
            """Write M(x) to y: the user's preconditioner M is a function of a vector over ranks."""
            note_written(x, cl.enqueue_marker(self.queue))
            image = self._M(vector.over(x, self.comm, self.division))
            if not isinstance(image, vector) or image.division != self.division or image.shape != (self.n,):
                raise ValueError(f"M: must return a vector divided as its argument, returned {image!r}")
            if image.dtype.kind == "c" and self.dtype.kind != "c":
                raise TypeError(f"M: gave a result of dtype {image.dtype} for a vector of {self.dtype}")
            entries = copy_vector(self.queue, "M", image.own, self.dtype)
            Chain(self.queue, entries).copy(y, entries, y.size)

        return apply_function

    @override
    def as_given(self, x: cl_array.Array) -> Any:
        """Return the solution x in b's form: as a vector over ranks, as this rank's device array, or as a whole NumPy array."""
        if self._given is vector:
            return vector.over(x, self.comm, self.division)
        return x if issubclass(self._given, cl_array.Array) else vector.over(x, self.comm, self.division).allgather()

    @override
    def by_scipy(self, column: int) -> tuple[cl_array.Array, int]:
        """Return this rank's part of SciPy's solution for a column of b, and info: each rank iterates on whole vectors."""
        A = LinearOperator(self.A.shape, lambda x: self._apply_to_whole(self._bind_product(self.A), x), dtype=self.dtype)
        M: Any = self._M
        if not isinstance(M, DividedOperator):
            preconditioner = self._bind_preconditioner()
            M = preconditioner and LinearOperator(
                self.A.shape, lambda x: self._apply_to_whole(preconditioner, x), dtype=self.dtype
            )
        b = self._gather_whole(self.column(self.b, column))
        x0 = self.x0 if self.x0 is None or isinstance(self.x0, str) else self._gather_whole(self.column(self.x0, column))
        x, info = self.options.by_scipy(A, b, x0, M)
        return copy_to_device(self.queue, "x", np.asarray(x, self.dtype)[self.division.part(self.comm.rank)]), info

    def _gather_whole(self, own: Any) -> np.ndarray[Any, Any]:
        """Return a whole vector as a NumPy array on every rank, from this rank's part, on the device or the host."""
        host = own.get() if isinstance(own, cl_array.Array) else own
        return np.concatenate(self.comm.allgather(np.asarray(host, self.dtype)))

    def _apply_to_whole(self, apply: Apply, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the whole product of an operator over ranks with a vector that all ranks have whole."""
        share = copy_to_device(self.queue, "x", np.ravel(x).astype(self.dtype)[self.division.part(self.comm.rank)])
        product = allocate(self.queue, "the product", share.size, self.dtype)
        apply(share, product)
        return self._gather_whole(copy_to_host(product, self.queue))

    @override
    def deliver(self, solutions: list[cl_array.Array]) -> Any:
        """Return the solution in the form in which b was given, from this rank's parts of the solutions for b's columns."""
        # The solution for a single column of b is a vector, as in SciPy.
        single = self.columns == 1
        return self.as_given(solutions[0] if single else side_by_side(self.queue, solutions, self.own, self.dtype))


def _skip_product(x: cl_array.Array, y: cl_array.Array) -> None:
    """Do nothing: the product of a preconditioner on a rank without rows."""
