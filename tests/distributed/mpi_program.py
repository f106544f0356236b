"""A program of two ranks or more: products, counted messages, and a rank that fails; run by `test_mpi` with mpiexec."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.io
import scipy.sparse

import clsparse_py
from clsparse_py import distributed


def check(comm: distributed.Communicator) -> None:
    """Compare products with SciPy's."""
    n = 30
    S = scipy.sparse.random_array((n, n), density=0.2, rng=np.random.default_rng(0), format="csr")
    S.data, x = np.ceil(S.data * 3), np.arange(1.0, n + 1)
    A = distributed.csr_array.scattered(S if comm.rank == 0 else None, comm, division=[0, *([n // 3] * (comm.size - 1)), n])
    v = distributed.vector.scattered(x, comm, A.rows)
    for _ in range(3):
        y = A @ v
    assert comm.sent.messages == 3 * len(A.halo.targets)
    assert comm.sent.bytes == 3 * 8 * A.halo.sent.size
    whole, result = y.gather(), A.gather()
    if comm.rank == 0:
        assert (whole == S @ x).all()
        assert (result != S).nnz == 0
    assert y.dot(v) == (S @ x) @ x
    assert (A @ x == S @ x).all()
    C, planned = (A @ A + A).gather(), distributed.spgemm_plan(A, A)(2 * A, A).gather()
    assert comm.rank != 0 or (abs(C - (S @ S + S)).max() == 0 and abs(planned - 2 * S @ S).max() == 0)


def solve(comm: distributed.Communicator, path: Path) -> None:
    """Solve a system with a matrix that is read in slices."""
    if comm.rank == 0:
        line = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
        scipy.io.mmwrite(path, line, symmetry="symmetric")
    comm.barrier()
    A = distributed.mmread(path, comm)
    x, info = clsparse_py.linalg.cg(A, np.ones(50), rtol=1e-10)
    assert info == 0
    assert np.allclose(A @ x, 1)
    # What is wrong on all ranks, or one of them, is an error on all, which go on.
    for wrong in (np.ones(4), np.ones(50 - comm.rank)):
        with pytest.raises((ValueError, distributed.RankError)):
            clsparse_py.linalg.cg(A, np.ones(50), x0=wrong)
    with pytest.raises(ValueError, match=r"rtol: is 0\.1 on rank 0 and 0\.2 on rank 1"):
        clsparse_py.linalg.cg(A, np.ones(50), rtol=(comm.rank + 1) / 10)
    assert np.allclose(A @ x, 1)
    ml = clsparse_py.amg.smoothed_aggregation_solver(A, max_coarse=4)
    assert len(ml.levels) > 1
    x, info = clsparse_py.linalg.cg(A, np.ones(50), M=ml.aspreconditioner(), rtol=1e-10)
    assert info == 0
    assert np.allclose(A @ ml.solve(A @ x, tol=1e-10), 1)
    ml.refresh(2 * A)
    assert np.allclose(2 * (A @ ml.solve(np.ones(50), tol=1e-10)), 1)
    with pytest.raises((ValueError, distributed.RankError)):
        ml.solve(np.ones(50), cycle="V" if comm.rank else "X")
    for multiplied in (A, A.T):
        assert (multiplied @ np.ones((50, 0))).shape == (50, 0)


def fail(comm: distributed.Communicator) -> str:
    """Fail on the last rank; return what this rank was told."""
    try:
        with comm.together():
            # The last rank may be through while another is still in it: that one is told of the failure here.
            comm.barrier()
            {"deliberate": 1}["wrong" if comm.rank == comm.size - 1 else "deliberate"]
            comm.barrier()
    except KeyError:
        return "failed"
    except distributed.RankError as error:
        return str(error)
    return "nothing"


def main(platform: str) -> None:
    """Run on a platform."""
    device = next(device for device in clsparse_py.devices() if device.platform.name == platform)
    context = cl.Context([device])
    comm: Any = distributed.world(time_limit=60, queue=cl.CommandQueue(context))
    check(comm)
    with tempfile.TemporaryDirectory() as folder:
        solve(comm, Path(comm.broadcast(folder)) / "line.mtx")
    print(f"rank {comm.rank} right; {fail(comm)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
