"""A distributed matrix as a PETSc `Mat` of type PYTHON, multiplied on devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._distributed.csr import csr_array
from clsparse_py._distributed.mpi import MpiCommunicator
from clsparse_py._distributed.vectors import on_device
from clsparse_py._ground.errors import class_of

__all__ = ["petsc_mat"]


class _Products:
    """The methods that PETSc calls for a `Mat` of type PYTHON."""

    def __init__(self, A: csr_array) -> None:
        self.A = A

    def mult(self, _: Any, x: Any, y: Any) -> None:
        """Write the product ``A x`` to the PETSc vector y."""
        self._multiply(self.A._multiply_own, x, y)

    def multTranspose(self, _: Any, x: Any, y: Any) -> None:  # noqa: N802 - PETSc's name for it
        """Write the product ``A^T x`` to the PETSc vector y."""
        self._multiply(self.A._multiply_transposed, x, y)

    def getDiagonal(self, _: Any, diagonal: Any) -> None:  # noqa: N802 - PETSc's name for it
        """Write the diagonal of A to a PETSc vector."""
        with diagonal as entries:
            entries[:] = self.A.diagonal().own.get()

    def _multiply(self, times: Any, x: Any, y: Any) -> None:
        """Write the product ``times(x)`` of this rank's part of a PETSc vector x to its part of the PETSc vector y."""
        # PETSc's vectors are on the host, and have the one dtype of PETSc's numbers.
        product = times(on_device(self.A.queue, np.array(x.getArray(readonly=True))))
        with y as entries:
            entries[:] = product.get()


def petsc_mat(A: csr_array, comm: Any = None) -> Any:
    """Return a matrix over ranks as a `petsc4py.PETSc.Mat` of type PYTHON, for PETSc's solvers.

    Parameters
    ----------
    A : csr_array
        Over the ranks of MPI. Its values have the dtype of PETSc's numbers, or one that these hold.
    comm : petsc4py.PETSc.Comm or mpi4py.MPI.Comm, optional
        Of the same processes, in the same order; by default ``PETSc.COMM_WORLD``.

    Returns
    -------
    petsc4py.PETSc.Mat
        Rows and columns are divided as the matrix's. It has ``mult``, ``multTranspose`` and ``getDiagonal``; each product copies
        a rank's part of x to its device, and one of y back.

    Raises
    ------
    ImportError
        petsc4py is not installed.
    ValueError
        The communicator has other ranks.
    TypeError
        A is no such matrix, its ranks are threads, or it is complex and PETSc's numbers are real.

    Examples
    --------
    >>> def solve(A, b):  # in each process of MPI
    ...     from petsc4py import PETSc
    ...     mat = distributed.petsc_mat(A)
    ...     x, right = mat.createVecs()
    ...     right.setArray(b)
    ...     ksp = PETSc.KSP().create(mat.comm)
    ...     ksp.setOperators(mat)
    ...     ksp.setType("cg")
    ...     ksp.solve(right, x)
    ...     return x.getArray()
    """
    try:
        from petsc4py import PETSc
    except ImportError:
        raise ImportError("PETSc's matrices need petsc4py: pip install petsc4py, or python3-petsc4py of Debian") from None
    if not isinstance(A, csr_array):
        raise TypeError(f"A: must be a matrix over ranks, is {class_of(A)}")
    if not isinstance(A.comm, MpiCommunicator):
        raise TypeError("A: its ranks are threads, and PETSc's are processes of MPI")
    if A.dtype.kind == "c" and np.dtype(PETSc.ScalarType).kind != "c":
        raise TypeError(f"A: is complex ({A.dtype}), and PETSc's numbers are real ({np.dtype(PETSc.ScalarType)})")
    comm, rank = PETSc.COMM_WORLD if comm is None else comm, A.comm.rank
    if (comm.rank, comm.size) != (rank, A.comm.size):
        raise ValueError(f"comm: this is rank {comm.rank} of {comm.size} there, and {rank} of {A.comm.size} of the matrix")
    sizes = [(division.length(rank), division.n) for division in (A.rows, A.columns)]
    mat = PETSc.Mat().createPython(sizes, context=_Products(A), comm=comm)
    mat.setUp()
    return mat
