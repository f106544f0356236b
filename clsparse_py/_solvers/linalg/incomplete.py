"""Incomplete factorisations, sparse approximate inverses and block-Jacobi preconditioners."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.functions.triangles import tril, triu
from clsparse_py._arrays.hosted import on_host, queue_in
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue
from clsparse_py._formats.canonical import with_sorted_rows
from clsparse_py._ground.errors import require_name, runs_on_host
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.preconditioning import Colouring, colour_rows, has_regular_diagonal, invert_rows, invert_triangle
from clsparse_py._operations.triangular import RightSide, eliminate, get_solver, sweep_factors
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.system import Apply
from clsparse_py._solvers.linalg.colours import colour_matrix
from clsparse_py._solvers.linalg.operators import DeviceOperator, bind_operator, cast_to
from clsparse_py._solvers.linalg.options import check_positive
from clsparse_py._solvers.linalg.preconditioners import nonzero_diagonal, place_square

__all__ = ["block_jacobi", "ic0", "ilu0", "isai"]

#: Names of orders in which an incomplete factorisation takes the unknowns.
_Ordering = Literal["natural", "multicolour"]
#: Names of how incomplete factors are applied: by solutions, or by products with approximate inverses.
_Solve = Literal["exact", "isai"]


class _Factor(NamedTuple):
    """An incomplete factor: a sparse array with the factor in its upper or lower triangle."""

    matrix: Any
    upper: bool
    unit: bool

    def bind_solution(self, queue: cl.CommandQueue, dtype: np.dtype[Any], method: str) -> Apply:
        """Return the function that enqueues ``x = T^-1 b`` for the triangular factor T and vectors of a dtype."""
        factor = cast_to(self.matrix, dtype)
        solver = get_solver(queue, factor.structure, dtype, upper=self.upper, unit=self.unit, method=method)
        for part in factor.parts:
            # The host waits for the factor's arrays once, as each solution would wait for them again.
            for event in part.events:
                event.wait()

        def solve(b: cl_array.Array, x: cl_array.Array) -> None:
            """Enqueue the solution x for the right-hand side b."""
            solver.enqueue(Chain(queue), factor.data, RightSide(b), x, is_noted=False)

        return solve


def _invert(triangle: Any, *, upper: bool, unit: bool) -> Any:
    """Return the incomplete sparse approximate inverse of a triangular CSR array."""
    return triangle.with_values(invert_triangle(triangle, upper=upper, unit=unit))


def _transpose_conjugate(A: Any) -> Any:
    """Return the conjugate transposed of a CSR array, in CSR form."""
    return A.conj(copy=False).T.tocsr()


class _Factors(DeviceOperator):
    """Solutions with two triangular factors, one after the other, or products with their approximate inverses.

    Attributes
    ----------
    inverses : tuple
        Approximate inverses of the two factors, if those take the place of solutions.
    """

    def __init__(self, matrix: Any, *, hermitian: bool, colouring: Colouring | None, inverses: tuple[Any, ...]) -> None:
        super().__init__(matrix.dtype, matrix.shape, matrix.queue)
        self._matrix, self._hermitian, self._colouring, self.inverses = matrix, hermitian, colouring, inverses

    @functools.cached_property
    def permutation(self) -> np.ndarray[Any, Any] | None:
        """Rows of the matrix in the order of the factors' rows: by colour; None if it is the natural order."""
        return None if self._colouring is None else self._colouring.order

    @functools.cached_property
    def factors(self) -> tuple[Any, ...]:
        """The sparse arrays of the device that hold the incomplete factors; a single array holds both factors of ILU(0)."""
        return (self._matrix, _transpose_conjugate(self._matrix)) if self._hermitian else (self._matrix,)

    @override
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues the solution with both incomplete factors, or the product with their inverses."""
        if not self.shape[0]:
            return lambda *_: None
        if self.inverses:
            first, second = (bind_operator(cast_to(inverse, dtype), queue, dtype) for inverse in self.inverses)
        else:
            method = _get_method(self._colouring)
            lower = _Factor(self.factors[0], upper=False, unit=not self._hermitian)
            upper = _Factor(self.factors[-1], upper=True, unit=False)
            first, second = (factor.bind_solution(queue, dtype, method) for factor in (lower, upper))
        between = allocate(queue, "a vector", self.shape[0], dtype)
        if self._colouring is None:

            def apply(x: cl_array.Array, y: cl_array.Array) -> None:
                """Enqueue the product y of the preconditioner and the vector x."""
                first(x, between)
                second(between, y)

            return apply
        n, rows, places = self.shape[0], self._colouring.rows, self._colouring.places
        permuted = allocate(queue, "a vector", n, dtype)

        def apply_permuted(x: cl_array.Array, y: cl_array.Array) -> None:
            """Enqueue the product y of the preconditioner and the vector x, whose entries are permuted in between."""
            enqueue_permute(Chain(queue), rows, x, permuted, n)
            first(permuted, between)
            second(between, permuted)
            enqueue_permute(Chain(queue), places, permuted, y, n)

        return apply_permuted


def _get_method(colouring: Colouring | None) -> str:
    """Return the method of triangular systems: level sets of the few colours of rows, if there are; else as the device's."""
    return "auto" if colouring is None else "levels"


def _permute(A: Any, colouring: Colouring) -> Any:
    """Return a canonical CSR array with rows and columns sorted by colour."""
    rows = A[colouring.rows]
    columns = allocate(A.queue, "indices", rows.nnz, rows.indices.dtype)
    chain = Chain(A.queue, rows.indices, colouring.places)
    enqueue_permute(chain, rows.indices, colouring.places, columns, rows.nnz)
    chain.finish(columns)
    data, indices, indptr = with_sorted_rows(A.queue, (rows.data, columns, rows.indptr))
    return A.assembled(Structure.canonical(A.queue, A.shape, indices, indptr), data)


class _Inverse(DeviceOperator):
    """A sparse matrix that approximates an inverse, as an operator."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.dtype, matrix.shape, matrix.queue)
        self.matrix = matrix

    @override
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues the product with the approximate inverse."""
        return bind_operator(cast_to(self.matrix, dtype), queue, dtype)

    @override
    def _adjoint(self) -> _Inverse:
        """Return the conjugate transposed of the approximate inverse, as an operator."""
        return _Inverse(_transpose_conjugate(self.matrix))


def _place_canonical(A: Any) -> Any:
    """Return a square matrix as a canonical floating CSR array of the device, checked to have no 0 on its diagonal.

    It may be A itself.
    """
    rows = place_square(A).tocsr()
    if rows.dtype.char not in "fdFD":
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not has_regular_diagonal(rows):
        nonzero_diagonal(rows)
    return rows


@door()
def ilu0(A: Any, sweeps: int | None = None, *, ordering: _Ordering = "natural", solve: _Solve = "exact") -> DeviceOperator:
    """Return the ILU(0) preconditioner of a matrix: solutions with incomplete factors L and U that have A's pattern.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy. Later changes of A go unnoticed.
    sweeps : int, optional
        How the factors are computed: sweeps over all entries, each of which brings them closer to the factors; by default the
        factors are exact.
    ordering : {"natural", "multicolour"}
        Order of the unknowns in which A is factorised. "multicolour": by colours of which no unknown has a neighbour in its own,
        so that the triangular systems have as many level sets as there are colours, and solvers take more iterations.
    solve : {"exact", "isai"}
        How the factors are applied. "exact": two triangular systems are solved. "isai": their incomplete sparse approximate
        inverses are multiplied by, so that an application is two products, and solvers take more iterations.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        For ``M`` of the solvers here, which apply it on the device, and of SciPy's. Its attribute ``factors`` has one array: L
        below its diagonal, which is 1 for L, and U on and above it. ``permutation`` is None, or with colours the NumPy array p
        for which these are factors of ``A[p][:, p]``; ``inverses`` has the approximate inverses of L and U, if there are.

    Raises
    ------
    ValueError
        A is not square, its diagonal has a 0, or the factors have; or an option has another value.

    Notes
    -----
    Saad, "Iterative Methods for Sparse Linear Systems", 10.3: elimination in the order of rows, or of level sets of
    A's lower triangle. Sweeps (Chow and Patel, "Fine-grained parallel incomplete LU factorization") compute all entries
    at the same time from those of the sweep before; they are those of ILU(0) once there were as many sweeps as the factors have
    levels. Colours: Jones and Plassmann, "A parallel graph coloring heuristic", the same on every device. Approximate inverses:
    Anzt, Huckle, Bräckle and Dongarra, "Incomplete sparse approximate inverses for parallel preconditioning".

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -2.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.bicgstab(A, np.ones(50), M=sp.linalg.ilu0(A))
    >>> info
    0
    """
    _check_options(ordering, solve)
    rows, colouring = _place_canonical(A), None
    if ordering == "multicolour":
        colouring = colour_matrix(rows)
        rows = _permute(rows, colouring)
    factors = _factorise(rows, sweeps, None if solve == "isai" else colouring, hermitian=False)
    inverses: tuple[Any, ...] = ()
    if solve == "isai":
        lower, upper = tril(factors, format="csr"), triu(factors, format="csr")
        inverses = _invert(lower, upper=False, unit=True), _invert(upper, upper=True, unit=False)
    return _Factors(factors, hermitian=False, colouring=colouring, inverses=inverses)


@door()
def ic0(A: Any, sweeps: int | None = None, *, ordering: _Ordering = "natural", solve: _Solve = "exact") -> DeviceOperator:
    """Return the IC(0) preconditioner of a Hermitian positive definite matrix: solutions with L and L^H, L of A's lower pattern.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy, of which the lower triangle is read. Later changes of A go unnoticed.
    sweeps, ordering, solve
        As for `ilu0`. With colours, stored zeros are no entries of the pattern.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        As of `ilu0`; Hermitian positive definite. Its attribute ``factors`` has L and L^H.

    Raises
    ------
    ValueError
        A is not square, its diagonal has a 0, or there are no such factors: A may be indefinite; or an option has another value.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.cg(A, np.ones(50), M=sp.linalg.ic0(A))
    >>> info
    0
    """
    _check_options(ordering, solve)
    rows, colouring = _place_canonical(A), None
    lower = tril(rows, format="csr")
    if ordering == "multicolour":
        rows = lower + _transpose_conjugate(tril(rows, -1, format="csr"))
        colouring = colour_rows(rows.structure)
        lower = tril(_permute(rows, colouring), format="csr")
    factor = _factorise(lower, sweeps, None if solve == "isai" else colouring, hermitian=True)
    inverses: tuple[Any, ...] = ()
    if solve == "isai":
        # The inverse of L^H is L's, conjugate transposed: the preconditioner stays Hermitian.
        inverse = _invert(factor, upper=False, unit=False)
        inverses = inverse, _transpose_conjugate(inverse)
    return _Factors(factor, hermitian=True, colouring=colouring, inverses=inverses)


def _check_options(ordering: str, solve: str) -> None:
    """Raise a ValueError if an option of an incomplete factorisation is none of its names."""
    require_name("ordering", ordering, ("natural", "multicolour"))
    require_name("solve", solve, ("exact", "isai"))


def _factorise(rows: Any, sweeps: int | None, colouring: Colouring | None, *, hermitian: bool) -> Any:
    """Return the incomplete factors of a matrix, in its structure: exact if ``sweeps`` is None, else after so many sweeps.

    With a colouring, exact factors are computed by level sets, which solutions with the factors then need, too.

    Raises
    ------
    ValueError
        The diagonal of the factors has a zero or a value that is not finite: they have no inverse.
    """
    if sweeps is None:
        values = eliminate(rows.queue, rows, hermitian=hermitian, method=_get_method(colouring))
    else:
        values = sweep_factors(rows.queue, rows, check_positive("sweeps", sweeps), hermitian=hermitian)
    factors = rows.with_values(values)
    if not has_regular_diagonal(factors):
        diagonal = factors.diagonal()
        wrong = np.flatnonzero(~np.isfinite(diagonal) | (diagonal == 0))
        if wrong.size:
            raise ValueError(f"A: has no such factors: their diagonal in row {wrong[0]} is {diagonal[wrong[0]]}")
    return factors


@door()
def isai(A: Any) -> DeviceOperator:
    """Return an approximate inverse of a matrix, with the matrix's pattern, to precondition with.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy. Later changes of A go unnoticed.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        For ``M`` of the solvers here, which apply it on the device by one product, and of SciPy's. Its attribute ``matrix`` has
        the approximate inverse.

    Raises
    ------
    ValueError
        A is not square, its diagonal has a 0, or the entries of A in the pattern of a row make a singular matrix.
    MemoryError
        The device has no memory for a dense matrix with as many rows and columns as A's longest row has entries.

    Notes
    -----
    Anzt, Huckle, Bräckle and Dongarra, "Incomplete sparse approximate inverses for parallel preconditioning". Row i of the
    inverse solves the system of the rows and columns that row i of A has entries in, so that the product with A is the identity
    in A's pattern. It is not symmetric in general, as `cg` asks of M: use it with `bicgstab` and `gmres`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -2.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.bicgstab(A, np.ones(50), M=sp.linalg.isai(A))
    >>> info
    0
    """
    rows = _place_canonical(A)
    return _Inverse(rows.with_values(invert_rows(rows)))


@runs_on_host("linalg.block_jacobi")
def block_jacobi(A: Any, block_size: int = 4) -> DeviceOperator:
    """Return the block Jacobi preconditioner of a matrix: the inverses of the blocks on its diagonal. It is made on the host.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy. Later changes of A go unnoticed.
    block_size : int
        Rows of a block; the last one may have fewer.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        For ``M`` of the solvers here, which apply it on the device by one product, and of SciPy's. Its attribute ``matrix`` has
        the inverses.

    Raises
    ------
    ValueError
        A is not square, or a block is singular.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, np.linspace(4.0, 400.0, 50), -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.cg(A, np.ones(50), M=sp.linalg.block_jacobi(A, block_size=5))
    >>> info
    0
    """
    size = check_positive("block_size", block_size)
    queue = queue_in((A,)) or default_queue()
    entries = scipy.sparse.coo_array(on_host(A))
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
        raise ValueError(f"A: must be square, has shape {entries.shape}")
    n = entries.shape[0]
    count = -(-n // size)
    row, column = entries.coords
    inside = row // size == column // size
    dtype = entries.dtype if entries.dtype.char in "fdFD" else np.dtype(np.float64)
    blocks = np.zeros((count, size, size), dtype)
    np.add.at(blocks, (row[inside] // size, row[inside] % size, column[inside] % size), entries.data[inside])
    # The last diagonal block of a block Jacobi preconditioner is filled up to full size by rows of the unit matrix.
    for extra in range(n, count * size):
        blocks[-1, extra % size, extra % size] = 1
    try:
        inverses = np.linalg.inv(blocks)
    except np.linalg.LinAlgError as error:
        raise ValueError("A: has a singular block on its diagonal") from error
    inverse = scipy.sparse.bsr_array((inverses, np.arange(count), np.arange(count + 1)), shape=(count * size,) * 2)
    return _Inverse(on_device(queue, inverse.tocsr()[:n, :n]))
