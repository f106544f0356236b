"""Matrices and vectors over ranks that are threads: products, counted messages, divisions, bad input, failures."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import disagreements
import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import distributed
from clsparse_py._distributed.costs import Explanation, Sent
from clsparse_py._distributed.division import by_boundaries, join_shares
from clsparse_py._distributed.in_process import ThreadCommunicator
from clsparse_py.distributed import Division, RankError

SECONDS = 30


def team_on(queue: cl.CommandQueue, size: int) -> distributed.Team:
    """Return ranks that share a context, so that kernels are built once."""
    return distributed.over([queue] * size, time_limit=SECONDS)


def matrix(n: int, dtype: Any = np.float64, density: float = 0.2, m: int | None = None) -> Any:
    """Return a matrix whose products are exact: small whole numbers."""
    rng = np.random.default_rng(n)
    S = scipy.sparse.random_array((n if m is None else m, n), density=density, rng=rng, format="csr")
    S.data = np.ceil(S.data * 3)
    S = S.astype(dtype)
    if S.dtype.kind == "c":
        S.data = S.data * (1 - 2j)
    S.sort_indices()
    return S


def needed_columns(S: Any, division: Division, rank: int) -> list[Any]:
    """Return the columns that a rank needs of each rank."""
    columns = np.unique(S[division.part(rank)].indices)
    owners = division.owner(columns)
    return [columns[(owners == other) & (other != rank)] for other in range(division.size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_products_are_scipys(queue: cl.CommandQueue, size: int) -> None:
    with team_on(queue, size) as team:
        for n in (0, 3, 40):
            S, x = matrix(n), np.arange(1.0, n + 1)
            A = team.csr_array(S)
            assert (A.shape, A.nnz, A.dtype) == (S.shape, S.nnz, S.dtype)
            assert (A @ x == S @ x).all()
            v = team.vector(x, A.rows)
            y = A @ v
            assert (y.gather() == S @ x).all()
            assert y.dot(v) == (S @ x) @ x
            result = A.gather()
            assert all((getattr(result, name) == getattr(S, name)).all() for name in ("indptr", "indices", "data"))
        assert (A @ np.ones((40, 0))).shape == (40, 0)
        X = np.arange(1.0, 81).reshape(40, 2)
        assert (A @ X == S @ X).all()
        assert ((A @ team.vector(X, A.rows)).allgather() == S @ X).all()


@pytest.mark.parametrize("cuts", [[0, 40, 40, 40], [0, 0, 1, 40], [0, 13, 13, 40]])
def test_messages_are_neighbours_and_bytes_the_halo(queue: cl.CommandQueue, cuts: list[int]) -> None:
    S, division = matrix(40, density=0.04), Division(cuts)
    with team_on(queue, 3) as team:
        A = team.csr_array(S, division=cuts)
        x = team.vector(np.ones(40), division)
        for _ in range(3):
            y = A @ x
        assert (y.gather() == S @ np.ones(40)).all()
        for rank, comm in enumerate(team.ranks):
            asked = [needed_columns(S, division, other)[rank] for other in range(3)]
            assert comm.sent.messages == 3 * sum(program.size > 0 for program in asked)
            assert comm.sent.bytes == 3 * 8 * sum(program.size for program in asked)
            assert (A.parts[rank].halo.columns == np.concatenate(needed_columns(S, division, rank))).all()


def test_transposed_products_diagonals_and_norms_are_scipys(queue: cl.CommandQueue) -> None:
    with team_on(queue, 3) as team:
        for m, n in (12, 12), (9, 14), (14, 5), (0, 3):
            S, x, X = matrix(n, m=m), np.arange(1.0, m + 1), np.arange(2.0 * m).reshape(m, 2)
            A = team.csr_array(S)
            for result, wanted in (A.T @ x, S.T @ x), (A.T @ X, S.T @ X), (x @ A, x @ S), (X.T @ A, X.T @ S):
                assert result.shape == wanted.shape
                assert (result == wanted).all()
            assert ((team.vector(x, A.rows) @ A).gather() == x @ S).all()
            for k in (-2, 0, 3):
                result, wanted = A.diagonal(k).gather(), S.diagonal(k)
                assert result.shape == wanted.shape
                assert (result == wanted).all()
            for B, wanted in (A.T.tocsr(), S.T.tocsr()), (2 * A, 2 * S), (abs(-A), S), (A.astype("f4"), S.astype("f4")):
                result = B.gather()
                assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
                assert all((getattr(result, name) == getattr(wanted, name)).all() for name in ("indptr", "indices", "data"))
            for ord_ in ("fro", 1, np.inf) if S.nnz else ():
                assert A.norm(ord_) == pytest.approx(scipy.sparse.linalg.norm(S, ord_))
                assert A.T.norm(ord_) == pytest.approx(scipy.sparse.linalg.norm(S.T, ord_))
        for S in scipy.sparse.csr_array(np.ones((40, 3), bool)), scipy.sparse.csr_array(np.full((40, 3), 100, np.int8)):
            for ord_ in (1, np.inf):  # sums that the dtype does not hold
                assert team.csr_array(S).norm(ord_) == scipy.sparse.linalg.norm(S, ord_)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "c16", "?"])
def test_few_rows_have_entries_of_others(queue: cl.CommandQueue, dtype: str) -> None:
    S = scipy.sparse.diags_array([2, 1, 3], offsets=[-1, 0, 1], shape=(40, 40), format="csr", dtype="f8").astype(dtype)
    X = (np.arange(80).reshape(40, 2) % 3).astype(dtype)
    with team_on(queue, 3) as team:
        A = team.csr_array(S)
        for result, wanted in (A @ X, S @ X), (A @ X[:, 1], S @ X[:, 1]), (A.T @ X, S.T @ X), (A.T @ X[:, 1], S.T @ X[:, 1]):
            assert result.dtype == wanted.dtype
            assert (result == wanted).all()


@pytest.mark.parametrize("unordered", [False, True])
def test_operands_on_other_queues_are_waited_for(queue: cl.CommandQueue, unordered: bool) -> None:
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if unordered and ("Intel" in queue.device.platform.name or not queue.device.queue_properties & mode):
        pytest.skip("quirk 14: such queues stand still there, in plain PyOpenCL too")
    S, x = matrix(40), np.arange(40.0)

    def product(comm: Any, A: Any) -> Any:
        other = cl.CommandQueue(queue.context, properties=mode if unordered else 0)
        own = cl_array.to_device(other, x[A.columns.part(comm.rank)])
        result, back = A @ (own + own), A.T @ (own + own)
        return (result + result).get(), (back + back).get()

    with team_on(queue, 2) as team:
        result, back = (np.concatenate(parts) for parts in zip(*team.each(product, team.csr_array(S)), strict=True))
    assert (result == 4 * (S @ x)).all()
    assert (back == 4 * (S.T @ x)).all()


def test_halos_of_nothing_and_of_everything(queue: cl.CommandQueue) -> None:
    n = 12
    with team_on(queue, 3) as team:
        for S in (scipy.sparse.eye_array(n, format="csr"), scipy.sparse.csr_array(np.ones((n, n)))):
            A = team.csr_array(S)
            assert (A @ np.arange(n) == S @ np.arange(n)).all()
        assert sum(comm.sent.messages for comm in team.ranks) == 6


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "u8", "f4", "f8", "c8", "c16"])
def test_dtypes_are_scipys(queue: cl.CommandQueue, dtype: str) -> None:
    S = matrix(20, dtype)
    x = (np.arange(20) % 5).astype(dtype)
    with team_on(queue, 2) as team:
        y = team.csr_array(S) @ x
        assert y.dtype == (S @ x).dtype
        assert (y == S @ x).all()


def test_rows_of_each_rank_make_the_matrix(queue: cl.CommandQueue) -> None:
    S = matrix(9, m=12)
    cuts = [0, 2, 2, 12]

    def gather_rows(comm: Any, *, numbered: bool) -> Any:
        begin, end = cuts[comm.rank : comm.rank + 2]
        rows = (begin, end) if numbered else None
        return distributed.csr_array(S[begin:end].tocsc(), comm, rows=rows, shape=(12, 9)).gather()

    with team_on(queue, 3) as team:
        for numbered in (True, False):
            assert (team.each(gather_rows, numbered=numbered)[0] != S).nnz == 0


def test_shares_that_overlap_or_leave_gaps_are_refused_by_all(queue: cl.CommandQueue) -> None:
    S = matrix(6)
    said: list[str] = []

    def divide(comm: Any, shares: Any, shape: Any = None, dtype: Any = None) -> None:
        begin, end = shares[comm.rank]
        try:
            rows = S[begin:end].astype(dtype[comm.rank] if dtype else "f8")
            distributed.csr_array(rows, comm, rows=(begin, end), shape=shape)
        except ValueError as error:
            said.append(str(error))

    with team_on(queue, 2) as team:
        for shares, word in ([(0, 4), (3, 6)], "overlap"), ([(0, 2), (3, 6)], "gap"), ([(3, 6), (0, 3)], "gap"):
            team.each(divide, shares)
            assert [word in message for message in said] == [True, True], said
            said.clear()
        team.each(divide, [(0, 3), (3, 6)], shape=(7, 6))
        assert ["6 rows" in message for message in said] == [True, True], said
        said.clear()
        team.each(divide, [(0, 3), (3, 6)], dtype=["f4", "f8"])
        assert ["dtype" in message and "rank 1" in message for message in said] == [True, True], said


def test_divisions() -> None:
    assert distributed.by_rows(3, 5).boundaries.tolist() == [0, 1, 2, 3, 3, 3]
    assert distributed.by_entries([0, 9, 10, 11, 12], 2).boundaries.tolist() == [0, 1, 4]
    assert distributed.by_entries([0, 0, 0], 2).boundaries.tolist() == [0, 1, 2]
    assert Division([0, 2, 2, 5]).owner([0, 1, 2, 4]).tolist() == [0, 0, 2, 2]
    for wrong, word in ([1, 2], "begin"), ([0, 3, 2], "descend"), ([0.5, 2], "integers"), ([0], "integers"):
        with pytest.raises(ValueError, match=word):
            Division(wrong)
    for cuts, word in ([0, 5], "one more than ranks"), ([0, 1, 4], "end at 5"):
        with pytest.raises(ValueError, match=word):
            by_boundaries(cuts, 5, 2)
    with pytest.raises(ValueError, match="no range"):
        join_shares([(0, 3), (3, 1)])


def test_a_rank_that_fails_makes_every_rank_raise(queue: cl.CommandQueue) -> None:
    S, seen = matrix(20), {}

    def products(comm: Any, A: Any, x: Any) -> None:
        try:
            A @ x
            if comm.rank == 1:
                raise KeyError("lost")
            for _ in range(3):
                A @ x
        except RankError as error:
            seen[comm.rank] = str(error)
            raise

    with team_on(queue, 3) as team:
        A = team.csr_array(S)
        x = team.vector(np.ones(20), A.rows)
        with pytest.raises(KeyError, match="lost"):
            team.each(products, A, x)
        assert sorted(seen) == [0, 2]
        assert all("rank 1" in value and "lost" in value for value in seen.values())
        with pytest.raises(RankError, match="rank 1 has ended"):
            team.each(lambda comm: comm.barrier() if comm.rank == 0 else None)
        # The team works on.
        assert ((A @ x).gather() == S @ np.ones(20)).all()


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_that_differ_are_told_and_go_on(queue: cl.CommandQueue, size: int) -> None:
    with distributed.over([queue] * size, disagreements.TIME_LIMIT) as team:
        assert len(set(team.each(disagreements.check))) == 1


def test_ranks_that_go_on_are_waited_for_no_longer_than_others(queue: cl.CommandQueue) -> None:
    def go_on(comm: Any) -> None:
        with contextlib.suppress(KeyError, RankError), comm.together():
            if comm.rank == 0:
                raise KeyError("lost")
            comm.barrier()
        if comm.rank == 0:
            comm.barrier()

    with team_on(queue, 3) as team:
        with pytest.raises(RankError, match=r"no longer in step: KeyError: 'lost'"):
            team.each(go_on)
        assert team.each(lambda comm: int(comm.sum(1))) == [3, 3, 3]


def test_a_wait_has_a_time_limit(queue: cl.CommandQueue) -> None:
    late = threading.Event()
    with distributed.over([queue] * 2, time_limit=0.05) as team:

        def wait(comm: Any) -> None:
            try:
                if comm.rank == 1:
                    late.wait(SECONDS)
                comm.barrier()
            finally:
                late.set()

        with pytest.raises(TimeoutError, match=r"waited 0\.05 s for rank 1"):
            team.each(wait)


def test_an_interrupt_ends_what_ranks_do(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    with team_on(queue, 2) as team:
        done = team._done

        class Interrupted:
            def get(self) -> Any:
                monkeypatch.setattr(team, "_done", done)
                raise KeyboardInterrupt

        monkeypatch.setattr(team, "_done", Interrupted())
        # The second rank waits for the first, which does not come until it is told.
        with pytest.raises(KeyboardInterrupt):
            team.each(lambda comm: comm.exchange({}, {1 - comm.rank: np.zeros(1)}).wait())
        assert team.each(lambda comm: int(comm.sum(1))) == [2, 2]


def test_a_team_inside_one_of_its_ranks_is_an_error(queue: cl.CommandQueue) -> None:
    S = scipy.sparse.eye_array(8, format="csr") * 2.0
    with team_on(queue, 2) as team, team_on(queue, 2) as other:
        A, x = team.csr_array(S), team.vector(np.ones(8))
        for use in (
            lambda _: (A @ x).gather(),
            lambda _: A.nnz,
            lambda _: team.each(lambda comm: comm.rank),
            lambda _: team.close(),
            lambda _: other.each(lambda _: x.norm()),  # by way of another team
        ):
            with pytest.raises(RuntimeError, match=r"inside one of these: .* team\.run\(function, A, x\)"):
                team.run(lambda a, b, use=use: clsparse_py.linalg.cg(a, b, callback=use), A, x)
        # Another team does work for ranks, and this one goes on.
        assert team.each(lambda comm: other.each(lambda its: int(its.sum(1))) if comm.rank else None) == [None, [2, 2]]
        assert ((A @ x).gather() == 2).all()


def test_a_team_that_is_let_go_ends_its_threads(queue: cl.CommandQueue) -> None:
    before = set(threading.enumerate())
    team = team_on(queue, 3)
    own = set(threading.enumerate()) - before
    assert len(own) == 3
    del team
    for thread in own:
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_vectors_of_another_division_are_moved(queue: cl.CommandQueue, size: int) -> None:
    rng = np.random.default_rng(size)
    with team_on(queue, size) as team:
        for n in (0, 1, 2, 5, 31):
            dense = rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < 0.3) + 40 * np.eye(n)
            dense[:1] += 1  # the first rank gets few rows, as entries are divided
            host = scipy.sparse.csr_array(dense.astype(np.float32))
            A = team.csr_array(host)
            # The default division of a vector, all on one rank, and none on some.
            cuts = ([0] + size * [n], size * [0] + [n], [0, *sorted(rng.integers(0, n + 1, size - 1)), n])
            divisions = [None, *map(Division, cuts)]
            for division in divisions:
                x = rng.integers(-9, 9, n).astype(np.float32)
                y = A @ team.vector(x, division)
                np.testing.assert_allclose(y.allgather() if hasattr(y, "allgather") else y, host @ x, rtol=1e-5)
                X = rng.integers(-9, 9, (n, 3)).astype(np.float32)
                for operand in (X, np.asfortranarray(X)):
                    np.testing.assert_allclose((A @ team.vector(operand, division)).allgather(), host @ X, rtol=1e-5)
                    # The exchange is kept, and its entries are new each time.
                    np.testing.assert_allclose((A @ team.vector(2 * operand, division)).allgather(), host @ (2 * X), rtol=1e-5)
                if n:
                    x, info = team.run(clsparse_py.linalg.bicgstab, A, team.vector(host @ x, division), rtol=1e-5)
                    assert info == 0


def test_what_ranks_are_made_of_is_checked(queue: cl.CommandQueue) -> None:
    with pytest.raises(ValueError, match="one at least"):
        distributed.over([])
    with pytest.raises(TypeError, match="devices or queues"):
        distributed.over(["gpu"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="positive"):
        distributed.over([queue], time_limit=0)
    with team_on(queue, 2) as team:
        A = team.csr_array(matrix(6))
        with pytest.raises(ValueError, match="x: must have 6 rows"):
            A @ np.ones(5)
        with pytest.raises(ValueError, match="is divided as"):
            A @ team.vector(np.ones(5))
        with pytest.raises(TypeError, match="sparse matrix"):
            team.csr_array(np.ones((3, 3)))
        with pytest.raises(ValueError, match='"entries"'):
            team.csr_array(matrix(6), division="columns")
        for of_one in matrix(6), clsparse_py.csr_array(matrix(6), queue=queue):
            with pytest.raises(TypeError, match=r"unsupported operand|over ranks"):
                of_one @ A
        with pytest.raises(TypeError, match="one is clsparse_py"):
            team.run(clsparse_py.linalg.lsqr, A, np.ones(6))
    with pytest.raises(RuntimeError, match="closed"):
        team.csr_array(matrix(6))


def wrong_operands(A: Any, x: Any, context: cl.Context) -> dict[str, Any]:
    """Return calls on a rank with wrong arguments, by a part of their errors; A is square, the context another one."""
    comm, own, n = A.comm, A.rows.part(A.comm.rank), A.shape[0]
    S, b = matrix(n)[own], np.ones(n)
    last = comm.rank == comm.size - 1
    elsewhere = cl.CommandQueue(context)
    of_no_column = S.copy()
    of_no_column.indices = of_no_column.indices + n * last
    vector, csr_array, float16 = distributed.vector, distributed.csr_array, np.float16
    return {
        "rows: indices must be < 9": lambda: csr_array(of_no_column, comm, rows=A.rows),
        "rows: must be a Division or two integers": lambda: csr_array(S, comm, rows=(0, 1, 2)),
        "rows as a division: is False": lambda: csr_array(S, comm, rows=A.rows if last else (own.start, own.stop)),
        "columns: must be a Division": lambda: csr_array(S, comm, columns=[0, n]),
        "queue: must be a pyopencl.CommandQueue": lambda: csr_array(S, comm, queue="q"),
        "division: must be a Division": lambda: vector(b[own], comm, [0, n]),
        "x: dtype float16 is not supported": lambda: vector(b[own].astype(float16), comm, A.rows),
        "x: dtype object is not supported": lambda: A @ b.astype(object),
        "dtype: dtype float16 is not supported": lambda: x.astype(float16),
        "root: must be a rank from 0 to 2, is 3": lambda: A.gather(3),
        "root: must be a rank from 0 to 2, is -1": lambda: vector.scattered(b, comm, root=-1),
        "root: must be a rank from 0 to 2, is 'a'": lambda: comm.broadcast(b, "a"),
        "x: lives in another context": lambda: A @ cl_array.to_device(elsewhere, b[own]),
        "b: lives in another context": lambda: clsparse_py.linalg.cg(A, cl_array.to_device(elsewhere, b[own])),
        "M: must be": lambda: distributed.by_blocks(A, lambda _: clsparse_py.eye_array(99, format="csr")),
        "type not understood": lambda: distributed.by_blocks(A, lambda _: 3),
        "B: must be a csr_array over ranks": lambda: distributed.spgemm_plan(A, S),
        "A: must be a csr_array over ranks": lambda: distributed.spgemm_plan(None, A),
        "no array of one device": lambda: clsparse_py.csr_array(A),
        "asarray|no array of one": lambda: np.asarray(x),
        "dot: an object over ranks": lambda: np.dot(x, x),
    }


@pytest.mark.any_platform
def test_wrong_operands_are_errors_on_all_ranks(queue: cl.CommandQueue) -> None:
    context = cl.Context([queue.device])

    def call_and_wait(comm: Any, call: Any) -> None:
        with comm.together():
            call()
            comm.barrier()  # for the error of another rank, as a rank without rows may have none

    def check(comm: Any, A: Any, x: Any) -> None:
        for said, call in wrong_operands(A, x, context).items():
            with pytest.raises((TypeError, ValueError, RankError), match=said):
                call_and_wait(comm, call)
            assert (A @ x).allgather().sum() == (matrix(9, np.float32) @ np.ones(9, np.float32)).sum()

    with team_on(queue, 3) as team:
        A = team.csr_array(matrix(9, np.float32), division=[0, 4, 4, 9])
        x = team.vector(np.ones(9, np.float32), Division([0, 4, 4, 9]))
        team.each(check, A, x)
        with pytest.raises(TypeError, match="dot: an object over ranks"):
            np.dot(x, x)


@pytest.mark.any_platform
def test_operands_over_the_ranks_of_another_team_are_refused(queue: cl.CommandQueue) -> None:
    S, b = matrix(6, np.float32) + 9 * scipy.sparse.eye_array(6, dtype=np.float32, format="csr"), np.ones(6, np.float32)
    with team_on(queue, 2) as team, team_on(queue, 2) as other_team:
        A, x = team.csr_array(S), team.vector(b)
        B, y = other_team.csr_array(S), other_team.vector(b)
        plan = team.run(distributed.spgemm_plan, A, A)
        for name, call in (
            ("B", lambda: A @ B),
            ("B", lambda: A - B),
            ("B", lambda: plan(A, B)),
            ("x", lambda: A @ y),
            ("x", lambda: A.T @ y),
            ("vector", lambda: x + y),
            ("vector", lambda: x.dot(y)),
            ("b", lambda: team.run(clsparse_py.linalg.cg, A, y)),
            ("M", lambda: team.run(lambda A, M: clsparse_py.linalg.cg(A, b, M=M), A, B)),
            ("values", lambda: team.run(clsparse_py.amg.smoothed_aggregation_solver, A).refresh(B)),
        ):
            with pytest.raises(ValueError, match=f"{name}: is over the ranks of another team"):
                call()
        np.testing.assert_allclose((A @ x).gather(), S @ b)


def test_devices_of_two_platforms_are_refused() -> None:
    results = {device.platform.name: device for device in clsparse_py.devices()}
    if len(results) < 2:
        pytest.skip("there is one platform")
    with pytest.raises(ValueError, match="of one platform, are of"):
        distributed.over(list(results.values()))


def test_a_rank_without_a_device_and_other_versions_are_told_to_all(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(comm: Any) -> cl.CommandQueue:
        if comm.rank == 1:
            raise clsparse_py.NoDeviceError("no OpenCL device was found")
        return queue

    said: dict[int, str] = {}

    def divide(comm: Any) -> None:
        try:
            distributed.csr_array(matrix(6)[3 * comm.rank : 3 * comm.rank + 3], comm)
        except (RankError, clsparse_py.NoDeviceError) as error:
            said[comm.rank] = f"{type(error).__name__}: {error}"

    with team_on(queue, 2) as team:
        with monkeypatch.context() as patched:
            patched.setattr(ThreadCommunicator, "queue", property(place))
            team.each(divide)
        assert said[1] == "NoDeviceError: no OpenCL device was found"
        assert said[0] == f"RankError: rank 1 failed: {said[1]}"
        team.each(lambda comm: comm.require_one_version())
        with pytest.raises(ValueError, match="version: is 0 on rank 0 and 1 on rank 1"):
            team.each(lambda comm: comm.agree(version=comm.rank))


def test_vectors_are_numpys(queue: cl.CommandQueue) -> None:
    x, y = np.array([3.0, 0, -4, 1, 2]), np.array([1.0, 2, 3, 4, 5])
    with team_on(queue, 3) as team:
        cuts = Division([0, 2, 2, 5])
        u, v = team.vector(x, cuts), team.vector(y, cuts)
        for result, wanted in (
            (u + v, x + y), (u - v, x - y), (2 * u, 2 * x), (u / 2, x / 2), (-u, -x), (1 - u, 1 - x), (u * v, x * y),
            (u.copy().axpy(3, v), x + 3 * y), (u.astype("f4"), x.astype("f4")),
        ):  # fmt: skip
            assert result.dtype == wanted.dtype
            assert (result.allgather() == wanted).all()
        u += v
        assert (u.gather() == x + y).all()
        assert (u.dot(v), u.sum(), u.norm(), u.norm(1), u.norm(np.inf)) == (
            (x + y) @ y, (x + y).sum(), pytest.approx(np.linalg.norm(x + y)), abs(x + y).sum(), abs(x + y).max(),
        )  # fmt: skip
        p, q = np.array([1, 250, 3, 4, 7], np.uint8), np.array([2, 249, 255, 4, 9], np.uint16)
        of_p, of_q, once = team.vector(p, cuts), team.vector(q, cuts), team.vector(p, cuts)
        once -= of_p + 3
        for result, wanted in (
            (of_p - of_q, p - q), (of_q - of_p, q - p), (2 - of_p, 2 - p), (of_p - 2, p - 2), (once, p - (p + 3)),
            (of_p / np.array(2.0), p / 2), (of_p.dot(of_p), p.dot(p)),
        ):  # fmt: skip
            assert result.dtype == wanted.dtype
            assert ((result if wanted.ndim == 0 else result.allgather()) == wanted).all()
        with pytest.raises(TypeError, match="vectors of booleans"):
            of_p.astype(bool) + of_p
        z = team.vector(x + 1j * y, cuts)
        assert z.vdot(z) == np.vdot(x + 1j * y, x + 1j * y)
        with pytest.raises(ValueError, match="divided alike"):
            u + team.vector(x)


@pytest.mark.any_platform
def test_vectors_of_arrays_in_any_order(queue: cl.CommandQueue) -> None:
    cuts, X = Division([0, 2, 2, 5]), np.arange(10, dtype=np.float32).reshape(5, 2)

    def check(comm: Any) -> None:
        own = X[cuts.part(comm.rank)]
        big_endian = distributed.vector(own.astype(">f4"), comm, cuts)
        in_c = distributed.vector(own, comm, cuts)
        for given, wanted in (
            (np.asfortranarray(own), X),
            (cl_array.to_device(comm.queue, np.asfortranarray(own)), X),
            (cl_array.to_device(comm.queue, np.repeat(own[:, 0], 2))[::2], X[:, 0]),
            (cl_array.to_device(comm.queue, np.concatenate([own[:0, 0], [7, 7], own[:, 1]]).astype("f4"))[2:], X[:, 1]),
        ):
            x = distributed.vector(given, comm, cuts)
            np.testing.assert_array_equal(x.allgather(), wanted)
            assert x.sum() == wanted.sum()
            assert x.norm() == pytest.approx(np.linalg.norm(wanted))
            np.testing.assert_array_equal((x + (in_c if x.ndim == 2 else x)).allgather(), 2 * wanted)
            np.testing.assert_array_equal(x.astype(bool).allgather(), wanted.astype(bool))
        assert (big_endian.dtype.isnative, big_endian.sum(), in_c.astype(bool).astype(int).sum()) == (True, X.sum(), 9)

    with team_on(queue, 3) as team:
        team.each(check)


@pytest.mark.any_platform
def test_explanations_count_what_is_sent(queue: cl.CommandQueue) -> None:
    graph = scipy.sparse.random_array((60, 60), density=0.3, rng=np.random.default_rng(0), format="csr")
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(60, 60), format="csr")
    for S, size in (
        (graph, 3),
        (line.astype(np.complex64), 2),
        (scipy.sparse.csr_array((60, 60)), 2),
        (graph[:1, :1], 3),
        (graph, 1),
    ):
        with distributed.over([queue] * size, time_limit=60) as team:
            A = team.csr_array(S, division="rows")
            explanation = A.explain()
            before = [(comm.sent.messages, comm.sent.bytes) for comm in team.ranks]
            A @ team.vector(np.ones(S.shape[1], S.dtype), A.columns)
            sent = np.array([(comm.sent.messages, comm.sent.bytes) for comm in team.ranks]) - before
            needed = [(rank.sources, rank.bytes) for rank in explanation.ranks]
            assert sent.sum(axis=0).tolist() == np.sum(needed, axis=0).tolist()
            assert sum(rank.bytes_of_entries for rank in explanation.ranks) == S.nnz * (S.dtype.itemsize + 4)
            assert explanation.one_is_faster == (size > 1)
            assert ("one device is faster" in repr(explanation)) == (size > 1)
    # Large grids are worth several devices.
    rank = Sent(256**2, 1, 27 * 256**3 // 2, 256**3 // 2)
    assert not Explanation((rank, rank)).one_is_faster
