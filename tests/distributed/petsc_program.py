"""A program of MPI's ranks: PETSc multiplies with a matrix over them, and solves; run by `test_petsc` with mpiexec."""

from __future__ import annotations

import numpy as np
import petsc4py
import scipy.sparse

import clsparse_py
from clsparse_py import distributed

petsc4py.init([])

from petsc4py import PETSc  # noqa: E402 - after init, as PETSc asks for

n = 60
S = scipy.sparse.diags_array([-1.0, np.linspace(4, 6, n), -2.0], offsets=[-7, 0, 1], shape=(n, n)).tocsr()
comm = distributed.world(time_limit=60, queue=clsparse_py.default_queue())
A = distributed.csr_array.scattered(S, comm, division=[0, *([n // 3] * (comm.size - 1)), n])
own = A.rows.part(comm.rank)
mat = distributed.petsc_mat(A)
x, b = mat.createVecs()
x.setArray(np.arange(n, dtype=np.float64)[own])
mat.mult(x, b)
assert np.allclose(b.getArray(), (S @ np.arange(n))[own])
mat.multTranspose(x, b)
assert np.allclose(b.getArray(), (S.T @ np.arange(n))[own])
assert np.allclose(mat.getDiagonal().getArray(), S.diagonal()[own])
b.setArray(np.ones(n)[own])
ksp = PETSc.KSP().create()
ksp.setOperators(mat)
ksp.setType("gmres")
ksp.getPC().setType("jacobi")
ksp.setTolerances(rtol=1e-10)
ksp.solve(b, x)
assert np.allclose(x.getArray(), scipy.sparse.linalg.spsolve(S.tocsc(), np.ones(n))[own], atol=1e-7)
print(f"rank {comm.rank} right", flush=True)
for handle in (ksp, mat, x, b):
    handle.destroy()
PETSc._finalize()
