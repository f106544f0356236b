"""Cases of multigrid: hierarchies set up and solved with each dtype, by the kernels of both kinds of devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse
from reference.multigrid import solve
from supposed import describe_as, suppose

from clsparse_py import amg, csr_array, default_queue
from clsparse_py._solvers.krylov.thresholds import Thresholds

Case = partial[None]


def run_cycle(
    n: int, group: int, dtype: np.dtype[Any], index: type[Any], kind: str, block: int, smoother: Any, cycle: str
) -> None:
    """Set up a hierarchy, and compare a cycle with the host's; CPU devices and others have kernels of different shapes."""
    queue = default_queue()
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    host = scipy.sparse.kron(step, np.eye(block) + 0.5).tocsr().astype(dtype)
    b = (np.arange(n * block) % 5 - 1.5).astype(dtype) * dtype.type(1j if dtype.kind == "c" else 1)
    A: Any = scipy.sparse.bsr_array(host, blocksize=(block, block))
    if block == 1:
        parts = host.data, host.indices.astype(index), host.indptr.astype(index)
        A = csr_array(parts, shape=host.shape, queue=queue)
        A @ b  # planned before devices are taken for others
    with (
        describe_as(type=kind, compute_units=2),
        patch.object(Thresholds, "of", suppose(Thresholds, work_group=group)),
    ):
        ml = amg.smoothed_aggregation_solver(
            A, strength=("symmetric", {"theta": 0.1}), presmoother=smoother, postsmoother=smoother, max_coarse=n // 3
        )
        ml.refresh(ml.levels[0].A.data)
        residuals: list[float] = []
        x = ml.solve(b, maxiter=2, tol=0, cycle=cycle, residuals=residuals)
    assert len(ml.levels) > 1
    wanted = solve(ml.levels, b, maxiter=2, kind=cycle)
    np.testing.assert_allclose(x, wanted, atol=1e-3 * np.abs(wanted).max())


def amg_cases(dtypes: tuple[np.dtype[Any], ...], *, simulated: bool) -> Iterator[Case]:
    """Kinds of devices, index types, blocks, smoothers and cycles, with dtypes in rotation."""
    inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
    chebyshev = ("chebyshev", {"degree": 3})
    group = 16 if simulated else 512
    yield partial(run_cycle, 9, group, inexact[0], np.int64, "cpu", 1, "jacobi", "V")
    yield partial(run_cycle, 9, group, inexact[-1], np.int32, "gpu", 2, chebyshev, "V")
    yield partial(run_cycle, 9, group, inexact[0], np.int32, "gpu", 1, "multicolour_gauss_seidel", "V")
    yield partial(run_cycle, 9, group, inexact[-1], np.int64, "cpu", 1, ("l1_jacobi", {"iterations": 2}), "V")
    if not simulated:
        yield partial(run_cycle, 30, group, inexact[1 % len(inexact)], np.int32, "gpu", 1, "jacobi", "K")
        yield partial(run_cycle, 30, group, inexact[2 % len(inexact)], np.int64, "gpu", 2, chebyshev, "W")
