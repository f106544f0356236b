"""Linear systems ``A x = b``: arguments checked, vectors on the device, the solution in b's form."""

from __future__ import annotations

import abc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyopencl as cl
import scipy.sparse.linalg
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._arrays.hosted import on_host, queue_in
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue, describe
from clsparse_py._ground.errors import DtypeError
from clsparse_py._matrix.convert import convert
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.order import note_written
from clsparse_py._precision.arithmetic import needs_fp64
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.krylov.scaling import solve
from clsparse_py._solvers.krylov.sweep import AllSum
from clsparse_py._solvers.krylov.system import Apply, GroupMatrices, System
from clsparse_py._solvers.linalg.operators import bind_operator, fit_one_group, is_function
from clsparse_py._solvers.linalg.options import Options

if TYPE_CHECKING:
    from clsparse_py._arrays.csr import csr_array

__all__ = [
    "Divided",
    "Problem",
    "as_divided",
    "check_preconditioner",
    "check_right_side",
    "copy_vector",
    "dtype_of_solution",
    "join_columns",
    "order_of",
    "place_of_solution",
    "side_by_side",
    "solve_problem",
]

#: Dtypes that vectors of a solver may have, by NumPy's characters.
_INEXACT = "fdFD"


class Problem(abc.ABC):
    """The arguments of a solver, checked; a system for each column of b.

    Attributes
    ----------
    n, own, columns : int
        Numbers of all unknowns, of this rank's unknowns, and of systems.
    queue : pyopencl.CommandQueue
        In order.
    options : Options
        How the solver iterates.
    dtype : dtype
        Of all vectors.
    b, x0
        As the solvers take them, but NumPy's if they are no device arrays; over ranks, this rank's part.
    all_sum, all_max : callable or None
        If ranks share the system: functions that return sums, and maxima, of numbers over ranks.
    """

    n: int
    own: int
    columns: int
    queue: cl.CommandQueue
    options: Options
    dtype: np.dtype[Any]
    b: Any
    x0: Any
    all_sum: AllSum | None = None
    all_max: Callable[[Any], Any] | None = None

    @abc.abstractmethod
    def operators(self) -> tuple[Apply, Apply | None, GroupMatrices | None]:
        """Return the functions for products with A and M, and arrays of A and M if one work-group holds the system, else None."""

    @abc.abstractmethod
    def as_given(self, x: cl_array.Array) -> Any:
        """Return a solution vector in the form of the right-hand side b: a device array, or NumPy's."""

    @abc.abstractmethod
    def by_scipy(self, column: int) -> tuple[cl_array.Array, int]:
        """Return the solution for a column of the right-hand sides b, and info, by SciPy's solver."""

    @abc.abstractmethod
    def deliver(self, solutions: list[cl_array.Array]) -> Any:
        """Return the solutions for all columns of the right-hand sides b, in the form of b."""

    def column(self, values: Any, column: int) -> Any:
        """Return a column of the right-hand sides b, or of the first guesses x0."""
        return values if values.ndim == 1 else values[:, column]

    def system(self, column: int) -> System:
        """Return the linear system of a column of the right-hand sides b, with its vectors on the device."""
        chain, options, callback = Chain(self.queue), self.options, self.options.callback
        A, M, small = self.operators()
        b = copy_vector(self.queue, "b", self.column(self.b, column), self.dtype)
        if self.x0 is None or isinstance(self.x0, str):
            x = allocate(self.queue, "x", self.own, self.dtype)
            if self.x0 is None:
                chain.fill(x, 0, self.own)
            elif M is None:
                chain.copy(x, b, self.own)
            else:
                M(b, x)
        else:
            x = copy_vector(self.queue, "x0", self.column(self.x0, column), self.dtype)
        maxiter = options.max_iterations(self.n)
        return System(
            chain, self.own, self.dtype, A, M, b, x, self.x0 is not None, options.rtol, options.atol, maxiter,
            callback and (lambda x: callback(self.as_given(x))), options.check_every, small, self.all_sum, self.all_max,
        )  # fmt: skip

    def solution(self, column: int) -> tuple[cl_array.Array, int]:
        """Return the solution for a column of the right-hand sides b, and SciPy's info."""
        method = self.options.method
        if method is None:
            return self.by_scipy(column)
        system = self.system(column)
        system.shift = self.options.own.get("shift", 0.0)
        info = solve(system, method) if self.n else 0
        note_written(system.x, cl.enqueue_marker(self.queue))
        return system.x, info


class Divided(abc.ABC):
    """A matrix over ranks: a solver that all of them call iterates, on each, on its own part of all vectors.

    Attributes
    ----------
    local : clsparse_py.csr_array
        The block of this rank's own rows and columns.
    """

    local: csr_array

    @property
    @abc.abstractmethod
    def begin(self) -> int:
        """The index, in the matrix over ranks, of this rank's first row."""

    @property
    @abc.abstractmethod
    def all_sum(self) -> AllSum | None:
        """The function that sums numbers over ranks; None if there is a single rank."""

    @abc.abstractmethod
    def around(
        self, queue: cl.CommandQueue, x: cl_array.Array, y: cl_array.Array, alpha: float | None = None
    ) -> tuple[Callable[[], object], ...]:
        """Return the functions to call before and after ``y = alpha local @ x`` is enqueued, so that y is ``alpha A @ x``.

        The result is empty if no function is needed.
        """

    @abc.abstractmethod
    def mapped(self, of_local: Callable[[Any], Any], of_others: Callable[[Any], Any]) -> Any:
        """Return the matrix with one function applied to the local block, another to the entries in other ranks' columns."""

    @abc.abstractmethod
    def raise_alike(self, error: Exception) -> NoReturn:
        """Raise an error that every rank of the matrix has, on all of them, which stay in step."""

    @abc.abstractmethod
    def whole(self) -> Any:
        """Return the whole matrix, on every rank, as a `scipy.sparse.csr_array`."""

    @abc.abstractmethod
    def by_blocks(self, preconditioner: Callable[[Any], Any]) -> Any:
        """Return the block Jacobi preconditioner, by a function that returns the preconditioner of a rank's own block."""

    @abc.abstractmethod
    def multigrid(self, B: Any, read: Callable[[], Any], on_one_device: Callable[[Any, Any, Any], Any]) -> Any:
        """Return a multigrid hierarchy of smoothed aggregation, for candidates B and a function that reads the options.

        ``on_one_device`` builds the hierarchy of a matrix on one device from the matrix, candidates and options.
        """

    @abc.abstractmethod
    def problem(self, b: Any, x0: Any, M: Any, read: Callable[[], Options]) -> Problem:
        """Return the problem ``A x = b`` with this matrix A; all ranks agree on the options that ``read`` returns."""

    @abc.abstractmethod
    def together(self) -> AbstractContextManager[object]:
        """Return a context in which an exception of one rank ends the waits of all ranks of the matrix."""


class OnOneDevice(Divided):
    """A matrix or operator on one device, as the only rank has it: all of it."""

    begin, all_sum = 0, None

    def __init__(self, A: Any) -> None:
        self.local = A

    @override
    def around(
        self, queue: cl.CommandQueue, x: cl_array.Array, y: cl_array.Array, alpha: float | None = None
    ) -> tuple[Callable[[], object], ...]:
        """Return no functions, as a product on one device needs no exchange between ranks."""
        return ()

    @override
    def mapped(self, of_local: Callable[[Any], Any], of_others: Callable[[Any], Any]) -> Any:
        """Return the matrix with the function ``of_local`` applied: no entry is in other ranks' columns."""
        return of_local(self.local)

    @override
    def raise_alike(self, error: Exception) -> NoReturn:
        """Raise an error on the only rank."""
        raise error

    @override
    def whole(self) -> Any:
        """Return the matrix on the host, as a SciPy array."""
        return self.local.get()

    @override
    def by_blocks(self, preconditioner: Callable[[Any], Any]) -> Any:
        """Return the preconditioner of the matrix, which is one block."""
        return preconditioner(self.local)

    @override
    def multigrid(self, B: Any, read: Callable[[], Any], on_one_device: Callable[[Any, Any, Any], Any]) -> Any:
        """Return the multigrid hierarchy that ``on_one_device`` builds for the matrix, candidates B and options."""
        return on_one_device(self.local, B, read())

    @override
    def problem(self, b: Any, x0: Any, M: Any, read: Callable[[], Options]) -> Problem:
        """Return the problem ``A x = b`` with this matrix A on one device."""
        return _Problem(self.local, b, x0, M, read())

    @override
    def together(self) -> AbstractContextManager[object]:
        """Return a context manager that does nothing, as one rank has the whole matrix."""
        return nullcontext()


def as_divided(A: Any) -> Divided:
    """Return a matrix over ranks as it is, and a matrix on one device as a matrix over a single rank."""
    return A if isinstance(A, Divided) else OnOneDevice(A)


class _Problem(Problem):
    """The problem of a matrix or operator on one device."""

    def __init__(self, A: Any, b: Any, x0: Any, M: Any, options: Options) -> None:
        self.n = self.own = order_of(A)
        self.A, self.M, self.options = A, M, options
        self.b = check_right_side("b", b, self.n)
        check_preconditioner(M, self.n)
        if isinstance(x0, str) and x0 != "Mb":
            raise ValueError(f"x0: must be an array or 'Mb', is {x0!r}")
        self.x0 = x0 if x0 is None or isinstance(x0, str) else check_right_side("x0", x0, self.n)
        self.columns = _count_columns(self.b)
        if self.x0 is not None and not isinstance(self.x0, str) and _count_columns(self.x0) != self.columns:
            raise ValueError(f"x0: must have b's shape, {self.b.shape}, has {self.x0.shape}")
        self.queue = place_of_solution(A, {"b": self.b, "x0": self.x0, "M": M})
        self.dtype = dtype_of_solution(A, self.b, self.queue)
        self._on_queue = [on_device(self.queue, operand) if scipy.sparse.issparse(operand) else operand for operand in (A, M)]

    @override
    def operators(self) -> tuple[Apply, Apply | None, GroupMatrices | None]:
        """Return the functions for products with A and M, and arrays of A and M if one work-group holds the system, else None."""
        A, M = self._on_queue
        products = [operand if operand is None else bind_operator(operand, self.queue, self.dtype) for operand in (A, M)]
        small = None if self.options.callback else fit_one_group(A, M, self.queue, self.dtype)
        assert products[0] is not None
        return products[0], products[1], small

    @override
    def as_given(self, x: cl_array.Array) -> Any:
        """Return a solution vector in the form of the right-hand side b: a device array, or NumPy's."""
        return x if isinstance(self.b, cl_array.Array) else copy_to_host(x, self.queue)

    @override
    def solution(self, column: int) -> tuple[cl_array.Array, int]:
        """Return the solution for a column of b, and SciPy's info; by plain kernels or SciPy if a driver refuses a kernel."""
        # If a driver refuses a kernel, a system on one device is solved anew, by plain kernels or SciPy; ranks fall back in step.
        return door(self.by_scipy if self.options.of_scipy else None)(super().solution)(column)

    @override
    def by_scipy(self, column: int) -> tuple[cl_array.Array, int]:
        """Return the solution for a column of the right-hand sides b, and info, by SciPy's solver."""
        x0 = self.x0 if self.x0 is None or isinstance(self.x0, str) else on_host(self.column(self.x0, column))
        x, info = self.options.by_scipy(self.A, on_host(self.column(self.b, column)), x0, self.M)
        return copy_to_device(self.queue, "x", np.asarray(x, self.dtype)), info

    @override
    def deliver(self, solutions: list[cl_array.Array]) -> Any:
        """Return the solutions for all columns of the right-hand sides b, in the form of b."""
        # The solution of a single column is a vector, as in SciPy.
        if self.columns == 1:
            return self.as_given(solutions[0])
        return join_columns(self.queue, solutions, self.n, self.dtype, on_device=isinstance(self.b, cl_array.Array))


def join_columns(queue: cl.CommandQueue, columns: list[cl_array.Array], n: int, dtype: np.dtype[Any], *, on_device: bool) -> Any:
    """Return device vectors of n entries as the columns of a dense matrix, on the device or NumPy's."""
    if on_device:
        return side_by_side(queue, columns, n, dtype)
    return np.stack([copy_to_host(column, queue) for column in columns], axis=1) if columns else np.zeros((n, 0), dtype)


def side_by_side(queue: cl.CommandQueue, columns: list[cl_array.Array], n: int, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return device vectors of n entries as the columns of a device array."""
    chain, joined = Chain(queue), allocate(queue, "x", (len(columns), n), dtype)
    for column, vector in enumerate(columns):
        chain.copy(joined, vector, n, column * n)
    chain.finish(joined)
    result: cl_array.Array = joined.T
    return result


def order_of(A: Any) -> int:
    """Return the order of a square matrix or operator: the number of unknowns.

    Raises
    ------
    ValueError
        The matrix is not square.
    TypeError
        A is neither a matrix nor an operator.
    """
    shape = tuple(A.shape) if hasattr(A, "shape") else tuple(scipy.sparse.linalg.aslinearoperator(A).shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"A: must be square, has shape {shape}")
    return int(shape[0])


def check_preconditioner(M: Any, n: int) -> Any:
    """Return a preconditioner of n unknowns, checked to be n x n, a function of a vector, or None.

    Raises
    ------
    ValueError, TypeError
        The preconditioner has another shape, or is no operator.
    """
    if M is not None and not is_function(M) and tuple(scipy.sparse.linalg.aslinearoperator(M).shape) != (n, n):
        raise ValueError(f"M: must be {n} x {n}, as A is, has shape {tuple(M.shape)}")
    return M


def check_right_side(name: str, values: Any, n: int) -> Any:
    """Return a right-hand side or first guess, checked to have n rows: a device array as it is, any other one as NumPy's."""
    vector = values if isinstance(values, cl_array.Array) else np.asarray(values)
    if vector.ndim not in (1, 2) or vector.shape[0] != n:
        raise ValueError(f"{name}: must have {n} entries or rows, as A asks for, has shape {vector.shape}")
    return vector


def _count_columns(values: Any) -> int:
    """Return the number of columns of a right-hand side or first guess."""
    return 1 if values.ndim == 1 else int(values.shape[1])


@door()
def copy_vector(queue: cl.CommandQueue, name: str, values: Any, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return a copy, on the device and cast to a dtype, of a solver's vector; ``name`` is for messages."""
    if isinstance(values, cl_array.Array):
        return convert(queue, name, values, dtype)
    return copy_to_device(queue, name, np.asarray(values).astype(dtype))


def place_of_solution(A: Any, operands: dict[str, Any]) -> cl.CommandQueue:
    """Return the queue on which the linear system of the operands is solved.

    Raises
    ------
    ValueError
        An operand lives in another context than A; the message has its name.
    """
    queue = queue_in((operands["b"], A, *operands.values())) or getattr(operands.get("M"), "queue", None) or default_queue()
    context = A.context if isinstance(A, SparseArray) else queue.context
    for name, operand in operands.items():
        if isinstance(operand, (SparseArray, cl_array.Array)) and operand.context != context:
            raise ValueError(f"{name}: lives in another context than A")
    return queue


def dtype_of_solution(A: Any, b: Any, queue: cl.CommandQueue) -> np.dtype[Any]:
    """Return the dtype of all vectors of a system: the common dtype of A and b, where integers and booleans count as float64.

    Raises
    ------
    DtypeError
        The dtype needs double precision, which the device lacks.
    """
    dtype = getattr(A, "dtype", None)
    if dtype is None:
        dtype = scipy.sparse.linalg.aslinearoperator(A).dtype
    chars = [np.dtype(operand_dtype).char for operand_dtype in (dtype, b.dtype)]
    common = np.result_type(*(char if char in _INEXACT else "d" for char in chars))
    if needs_fp64(common) and not describe(queue.device).fp64:
        raise DtypeError(f"b: {common} needs double precision, which {queue.device.name} lacks; use single precision")
    return common


def solve_problem(read: Callable[[], Options], A: Any, b: Any, x0: Any, M: Any) -> tuple[Any, int]:
    """Return the solution x of ``A x = b``, for all columns of b, and SciPy's info, by the method of the options of ``read``.

    Info is 0 if all columns are solved, else that of the first column that is not.

    Parameters
    ----------
    read : callable
        Returns the options of the solver, or raises. Ranks that share A agree on these options.
    A, b, x0, M
        As the solvers take them.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong; the message names it.
    """
    of_ranks = as_divided(A)
    with of_ranks.together():
        problem = of_ranks.problem(b, x0, M, read)
        solutions = [problem.solution(column) for column in range(problem.columns)]
        return problem.deliver([x for x, _ in solutions]), next((int(info) for _, info in solutions if info), 0)
