"""Ranks that differ in a dtype, a number, an option or a call: by threads and by MPI an error on all, which go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py import distributed, linalg

#: Time limit of a wait, in seconds; other disagreements are reported earlier.
TIME_LIMIT = 120.0
#: Time limit of a wait whose disagreement is only noticed when it runs out, in seconds.
SHORT = 0.5


def differing(comm: Any, A: Any, x: Any) -> dict[str, Callable[[], Any]]:
    """Return calls that differ between ranks, by name; A is square, and x divided as its rows."""
    last = comm.rank == comm.size - 1
    number, dtype = (3, "f4") if last else (2, "f8")

    def in_place() -> float:
        y = x.copy()
        y *= number
        return y.norm()

    def around(step: Callable[[Any], Any]) -> Any:
        # What differs lies behind steps that do not.
        return (A @ (step(x) + 1.0)).norm()

    def failing(call: Callable[[], Any], others: Callable[[], Any]) -> Any:
        time.sleep(0.2 * last)  # until others wait
        return call() if last else others()

    return {
        "dtypes of vectors in a dot product": lambda: x.astype(dtype).dot(x),
        "dtypes of vectors in a product": lambda: A @ x.astype(dtype),
        "dtypes of vectors of as many bytes": lambda: A @ x.astype("c8" if last else "f8"),
        "dtypes of vectors in a product of the transposed": lambda: (A.T @ x.astype(dtype)).norm(),
        "columns": lambda: A @ (distributed.vector.zeros(A.rows, comm, columns=number)),
        "dtypes of matrices": lambda: (A.astype(dtype) @ A).nnz,
        "dtypes of numbers": lambda: (x * np.dtype(dtype).type(0.1)).sum(),
        "dtypes of sums": lambda: comm.sum(np.ones(2, dtype)),
        "shapes of sums": lambda: comm.sum(np.ones(number)),
        "shapes of long sums": lambda: comm.sum(np.ones(100 * number)),
        "numbers": lambda: (number * x).dot(x),
        "numbers in place": in_place,
        "numbers of axpy": lambda: x.copy().axpy(number, x).sum(),
        "numbers of matrices": lambda: ((A / number) @ x).norm(np.inf),
        "numbers of matrices, by NumPy's x": lambda: (A * number) @ np.ones(A.shape[1]),
        "numbers of a factor": lambda: (A @ (A * number)).nnz,
        "numbers of a plan": lambda: distributed.spgemm_plan(A, A)(number * A, A),
        "numbers of a sum's norm": lambda: (A + number * A).norm(),
        "numbers, some steps before": lambda: around(lambda y: y / number),
        "reflected operators": lambda: around(lambda y: 1 - y if last else y - 1),
        "operators": lambda: around(lambda y: -y if last else y),
        "vectors": lambda: around(lambda y: y + y if last else y - y),
        "products": lambda: A.T @ x if last else A @ x,
        "norms": lambda: x.norm(1 if last else 2),
        "sums and largest numbers": lambda: comm.max(1.0) if last else comm.sum(1.0),
        "numbers and objects": lambda: comm.allgather(1.0) if last else comm.sum(1.0),
        "roots": lambda: x.gather(1 if last else 0),
        "facts": lambda: comm.agree(**{"one" if last else "another": 1}),
        "a solver's matrix": lambda: linalg.cg(A * number, x),
        "a solver's b": lambda: linalg.cg(A, x * number),
        "a solver and a product, which wait for others": lambda: linalg.cg(A, x) if last else A @ x,
        "an error of one": lambda: failing(lambda: A @ np.ones(3), lambda: A @ x),
        "an error of one, outside of what others call": lambda: failing(lambda: 1 // 0, comm.barrier),
        "a norm and a product, which wait for others": lambda: x.norm() if last else A @ x,
    }


def check(comm: Any) -> int:
    """Check that each of them is an error on every rank in time, and that all go on; return how many there were."""
    n = 24
    S = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    A = distributed.csr_array.scattered(S, comm, division="rows")
    x = distributed.vector.scattered(np.arange(1.0, n + 1), comm)
    wanted = S @ np.arange(1.0, n + 1)
    cases = differing(comm, A, x)
    for name, call in cases.items():
        comm.barrier()
        begin = time.monotonic()
        comm.time_limit = SHORT if "wait" in name else TIME_LIMIT
        error = error_of(comm, call)
        comm.time_limit, seconds = TIME_LIMIT, time.monotonic() - begin
        assert error is not None, name
        assert "MPI says" not in str(error), (name, error)
        assert seconds < TIME_LIMIT, (name, seconds, error)
        assert (A @ x).allgather().tolist() == wanted.tolist(), name
    return len(cases)


def error_of(comm: Any, call: Callable[[], Any]) -> Exception | None:
    """Return the error of a call on this rank, where neighbours alone differ at the barrier behind it."""
    try:
        with comm.together():
            call()
            comm.barrier()
    except (ValueError, distributed.RankError, TimeoutError, ZeroDivisionError) as error:
        return error
    return None
