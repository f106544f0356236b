"""Triangular systems without synchronisation: shared rows, NaN, waiting that is given up, devices without progress."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import BuildError, linalg
from clsparse_py._build import programs
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._operations.triangular import eliminate
from clsparse_py._operations.triangular.choose import Thresholds
from clsparse_py._operations.triangular.kernels import SyncFree, SyncFreeLevels
from clsparse_py._operations.triangular.level_sets import get_level_sets
from clsparse_py._operations.triangular.supernodes import inspect_triangle
from tests.solvers.linalg.test_triangular_plan import backward_error, dtypes_of, structure
from tests.supposed import suppose

pytestmark = pytest.mark.any_platform
#: Turns after which a test's launches give up: few, as work-items of a CPU's work-group may run one after another.
MANY = 1 << 12


@pytest.fixture(params=["gpu", "own"])
def waiting(request: Any, queue: cl.CommandQueue, take_as: Callable[..., None]) -> cl.CommandQueue:
    """A queue of a device with progress: as it is, and taken for a GPU, whose rows meet in work-groups."""
    if not describe(queue.device).forward_progress:
        pytest.skip("no forward progress of work-groups")
    if request.param == "gpu":
        take_as(type="gpu", max_work_group=64)
    return queue


def random_triangle(n: int, mean: int, dtype: Any, lower: bool, rng: np.random.Generator) -> scipy.sparse.csr_array:
    """Return a triangle with a strong diagonal and sorted rows of ``mean`` entries, which end with their diagonal.

    A fifth of the other entries are stored zeros.
    """
    host = scipy.sparse.random_array((n, n), density=min(mean / n, 1), rng=rng, dtype=np.float64)
    host = scipy.sparse.csr_array(host + mean * scipy.sparse.eye_array(n))
    result = (scipy.sparse.tril if lower else scipy.sparse.triu)(host).tocsr()
    result.data[(result.indices != np.repeat(np.arange(n), np.diff(result.indptr))) & (rng.random(result.nnz) < 0.2)] = 0
    return scipy.sparse.csr_array(result * (1 + 0.5j) if np.dtype(dtype).kind == "c" else result).astype(dtype)


def test_solutions_agree_with_those_of_row_by_row(waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for (i, dtype), n, work_group in itertools.product(enumerate(dtypes_of(waiting)), (1, 300), (1, 32)):
        numbers = {"entries_per_lane": (1, 8)[i % 2], "levels_ahead": 1 + 15 * (i % 2), "work_group": work_group}
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=MANY, **numbers))
        index = (np.int32, np.int64)[i // 2 % 2]
        indices, indptr = structure(n, rng, index)
        values = rng.standard_normal(indices.size).astype(dtype)
        values[np.repeat(np.arange(n), np.diff(indptr)) == indices] += 4
        # Unsorted, with duplicates and entries on both sides of the diagonal; and rows that end with their diagonal.
        whole = scipy.sparse.csr_array((values, indices, indptr), shape=(n, n))
        for lower, unit in itertools.product((True, False), repeat=2):
            triangle = random_triangle(n, 5, dtype, lower, rng)
            triangle.indices, triangle.indptr = triangle.indices.astype(index), triangle.indptr.astype(index)
            for host in (whole, triangle):
                A = clsparse_py.csr_array(host, queue=waiting)
                plans = [
                    linalg.triangular_plan(A, lower=lower, unit_diagonal=unit, method=name) for name in ("serial", "sync-free")
                ]
                for shape in ((n,), (n, 1), (n, 5), (n, 35)):
                    b = rng.standard_normal(shape).astype(dtype)
                    wanted, result = plans[0](b), plans[1](b)
                    scale = np.abs(wanted).max()
                    np.testing.assert_allclose(result / scale, wanted / scale, rtol=0, atol=2000 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("hermitian", [False, True])
def test_incomplete_factors_agree_with_those_of_row_by_row(
    waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, hermitian: bool
) -> None:
    rng = np.random.default_rng(1)
    for (i, dtype), n in itertools.product(enumerate(dtypes_of(waiting)), (1, 200)):
        host = random_triangle(n, 6, dtype, True, rng)
        # An entry that is 0 is known all the same.
        host.data[::7] = np.where(host.data[::7].real < 5, 0, host.data[::7])
        if hermitian:
            host = scipy.sparse.csr_array(host - scipy.sparse.diags_array(host.diagonal() - host.diagonal().real))
        else:
            host = host + scipy.sparse.triu(random_triangle(n, 6, dtype, False, rng), 1)
        index = (np.int32, np.int64)[i % 2]
        parts = host.data, host.indices.astype(index), host.indptr.astype(index)
        A = clsparse_py.csr_array(parts, shape=(n, n), queue=waiting)
        for max_polls in (MANY, 0):
            monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=max_polls))
            wanted, result = (eliminate(waiting, A, hermitian=hermitian, method=name).get() for name in ("serial", "sync-free"))
            np.testing.assert_allclose(result, wanted, rtol=0, atol=100 * float(np.finfo(dtype).eps) * np.abs(wanted).max())


def test_factors_without_a_pivot_do_not_wait(waiting: cl.CommandQueue, caplog: pytest.LogCaptureFixture) -> None:
    A = clsparse_py.csr_array(-np.ones((3, 3), np.float32), queue=waiting)
    assert np.isnan(eliminate(waiting, clsparse_py.tril(A, format="csr"), hermitian=True, method="sync-free").get()).any()
    eliminate(waiting, A, hermitian=False, method="sync-free")
    assert not caplog.records


def blocked_triangle(n: int, sizes: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return a dense lower triangle whose rows form blocks of such ``sizes``: rows of a block share all columns before it."""
    dense, first = np.zeros((n, n)), 0
    while first < n:
        size = int(rng.choice(sizes))
        block = dense[first : first + size]
        block[:, :first] = rng.standard_normal((len(block), first)) * (rng.random(first) < 10 / n)
        block[:, first : first + size] = np.tril(rng.standard_normal((len(block),) * 2) + 5 * np.eye(len(block)))
        first += size
    return (dense * (1 + 0.5j) if np.dtype(dtype).kind == "c" else dense).astype(dtype)


def supernodes_of(dense: np.ndarray, most: int, upper: bool) -> list[int]:
    """Return, of each row, what ``templates/triangular/supernodes.mako`` describes."""
    pattern, n = dense != 0, len(dense)
    order = range(n)[:: -1 if upper else 1]
    result, first = [0] * n, 0
    for place, row in enumerate(order):
        before = pattern[order[place - 1]].copy() if place else None
        if before is not None:
            before[row] = True
        if before is None or place - first == most or not np.array_equal(before, pattern[row]):
            first = place
        result[row] = first - place
        result[order[first]] = place - first + 1
    return result


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_supernodes(waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    rng = np.random.default_rng(5)
    of_runs = ((1, (1,)), (7, (7,)), (60, (60,)), (150, (3,)), (150, (1, 2, 3, 4, 5, 9)))
    for (i, dtype), (n, sizes), upper in itertools.product(enumerate(dtypes_of(waiting)), of_runs, (False, True)):
        numbers = {"work_group": (1, 8, 32)[i % 3], "entries_per_lane": (2, 8)[upper], "columns_at_once": (4, 16)[upper]}
        dense = blocked_triangle(n, sizes, dtype, rng)
        dense = dense[::-1, ::-1].copy() if upper else dense
        host = scipy.sparse.csr_array(dense)
        # Stored zeros, too.
        host.data[(host.indices != np.repeat(np.arange(n), np.diff(host.indptr))) & (rng.random(host.nnz) < 0.2)] = 0
        host.indices, host.indptr = (part.astype((np.int32, np.int64)[i % 2]) for part in (host.indices, host.indptr))
        bound = (n + 2) * float(np.finfo(dtype).eps) * (4 if dense.dtype.kind == "c" else 2)
        results: dict[int, list[bytes]] = {MANY: [], 0: []}
        for polls, unit in itertools.product(results, (False, True)):
            supposed = suppose(Thresholds, supernode_rows=rows, min_continued=0.0, max_polls=polls, **numbers)
            monkeypatch.setattr(Thresholds, "of", supposed)
            A = clsparse_py.csr_array(host, queue=waiting)
            triangle = inspect_triangle(waiting, A.structure, upper)
            wanted = supernodes_of(dense, rows, upper)
            if triangle.supernodes is not None:
                assert triangle.supernodes.get().tolist() == wanted
            assert (triangle.supernodes is None) == (rows == 1 or min(wanted) > 0)
            plan = linalg.triangular_plan(A, lower=not upper, unit_diagonal=unit, method="sync-free")
            wide = host.toarray().astype(np.result_type(dtype, np.float64))
            if unit:
                np.fill_diagonal(wide, 1)
            assert ("supernodes" in str(plan.explain())) == (triangle.supernodes is not None)
            for shape in ((n,), (n, 3), (n, 20)):
                b = np.random.default_rng(n).standard_normal(shape).astype(dtype)
                result = plan(b)
                assert backward_error(wide, result.astype(wide.dtype), b) <= bound
                results[polls].append(result.tobytes())
        assert results[0] == results[MANY]


def test_diagonals_without_a_normal_inverse(waiting: cl.CommandQueue) -> None:
    for dtype in dtypes_of(waiting):
        real = np.finfo(dtype)
        diagonal = np.array([float(real.max) / 4, float(real.tiny) * 2, 1.0, -float(real.max) / 2, float(real.tiny)], real.dtype)
        b = (diagonal * np.array([3, 5, 7, 1.5, -1], real.dtype)).astype(dtype)
        A = clsparse_py.csr_array(scipy.sparse.diags_array(diagonal.astype(dtype)).tocsr(), queue=waiting)
        if np.dtype(dtype).kind == "f":  # complex quotients of such numbers overflow in every method
            np.testing.assert_array_equal(linalg.triangular_plan(A, method="sync-free")(b), [3, 5, 7, 1.5, -1])


def test_rows_that_work_items_share(waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(1), 200
    for dtype, work_group, lower in itertools.product(dtypes_of(waiting), (2, 8, 64), (True, False)):
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, work_group=work_group, entries_per_lane=1, max_polls=MANY))
        host = random_triangle(n, 40, dtype, lower, rng)
        A = clsparse_py.csr_array(host, queue=waiting)
        plan = linalg.triangular_plan(A, lower=lower, method="sync-free")
        bound = (np.diff(host.indptr).max() + 2) * float(np.finfo(dtype).eps) * (4 if host.dtype.kind == "c" else 2)
        wide = host.toarray().astype(np.result_type(dtype, np.float64))
        for shape in ((n,), (n, 3)):
            b = rng.standard_normal(shape).astype(dtype)
            result = plan(b)
            assert backward_error(wide, result.astype(wide.dtype), b) <= bound
            assert all(plan(b).tobytes() == result.tobytes() for _ in range(5))


def test_unknowns_that_exceed_an_allocation_take_several_launches(waiting: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    rng, n = np.random.default_rng(6), 100
    host = random_triangle(n, 5, np.float32, True, rng)
    b = rng.standard_normal((n, 75)).astype(np.float32)
    A = clsparse_py.csr_array(host, queue=waiting)
    wanted = linalg.triangular_plan(A, method="sync-free")(b)
    for columns in (1, 17, 40):
        take_as(max_allocation=4 * n * columns)
        plan = linalg.triangular_plan(clsparse_py.csr_array(host, queue=waiting), method="sync-free")
        for on_device in (False, True, True):
            result = plan(cl_array.to_device(waiting, b) if on_device else b)
            np.testing.assert_array_equal(result.get() if on_device else result, wanted)


def test_nan_of_any_payload_and_infinities_pass_through(waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 90
    for dtype, per_lane in itertools.product(dtypes_of(waiting), (1, 8)):
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, entries_per_lane=per_lane, max_polls=MANY))
        # Row i needs unknown i - 9, so that what is no number stays among every ninth unknown.
        host = scipy.sparse.diags_array([1.0, 1.0], offsets=[-9, 0], shape=(n, n)).tocsr().astype(dtype)
        A = clsparse_py.csr_array(host, queue=waiting)
        plan = linalg.triangular_plan(A, method="sync-free")
        payload = np.array(0x7FF8000000000123).view(np.float64)
        for value in (payload, -payload, np.nan, np.inf, -np.inf):
            b = np.ones(n, dtype)
            b[3:5] = value
            result = plan(b)
            affected = np.isin(np.arange(n) % 9, (3, 4))
            assert not np.isfinite(result[affected]).any()
            np.testing.assert_array_equal(result[~affected], np.arange(n)[~affected] // 9 % 2 == 0)
        # Values of the matrix, too.
        A.data[5] = payload.astype(dtype)
        assert np.isnan(linalg.triangular_plan(A, method="sync-free")(np.ones(n, dtype))[5::9]).all()


@pytest.mark.parametrize("max_polls", [0, 1, 2])
def test_a_launch_that_gives_up_is_finished_and_logged(
    waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, max_polls: int
) -> None:
    rng, n = np.random.default_rng(2), 300
    chain = scipy.sparse.diags_array([-np.ones(n - 1), np.ones(n)], offsets=[-1, 0], shape=(n, n)).tocsr()
    for dtype, per_lane in itertools.product(dtypes_of(waiting), (1, 8)):
        numbers = {"entries_per_lane": per_lane, "work_group": 8}
        for host in (chain.astype(dtype), random_triangle(n, 20, dtype, True, rng)):
            A = clsparse_py.csr_array(host, queue=waiting)
            for shape, unit in itertools.product(((n,), (n, 3)), (False, True)):
                b = rng.standard_normal(shape).astype(dtype)
                results = []
                for polls in (MANY, max_polls):
                    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=polls, **numbers))
                    plan = linalg.triangular_plan(
                        clsparse_py.csr_array(host, queue=waiting), unit_diagonal=unit, method="sync-free"
                    )
                    caplog.clear()
                    results.append(plan(b))
                    monkeypatch.undo()
                assert results[0].tobytes() == results[1].tobytes()
                if max_polls == 0 and not unit:
                    assert "gave up waiting" in caplog.text
            # Device arrays: nothing waits, and `check` logs.
            monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=max_polls, **numbers))
            plan = linalg.triangular_plan(A, method="sync-free")
            on_device = plan(cl_array.to_device(waiting, b))
            plan.check()
            np.testing.assert_array_equal(on_device.get(), plan(b))
            monkeypatch.undo()


@pytest.mark.parametrize("max_polls", [0, 2, MANY])
def test_level_sets_that_the_whole_device_finds(
    waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, max_polls: int
) -> None:
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=max_polls))
    rng = np.random.default_rng(3)
    for index, n, upper in itertools.product((np.int32, np.int64), (1, 77, 500), (False, True)):
        indices, indptr = structure(n, rng, index)
        A = clsparse_py.csr_array((np.ones(indices.size, np.float32), indices, indptr), shape=(n, n), queue=waiting)
        wanted = np.zeros(n, int)
        for row in range(n)[:: -1 if upper else 1]:
            columns = indices[indptr[row] : indptr[row + 1]]
            wanted[row] = max((wanted[j] + 1 for j in columns if (j > row if upper else j < row)), default=0)
        found = get_level_sets(A.structure, upper)
        np.testing.assert_array_equal(found.starts.get(), np.r_[0, np.cumsum(np.bincount(wanted))])
        order = found.order.get()
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
        np.testing.assert_array_equal(wanted[order], np.sort(wanted))


def test_without_forward_progress_the_method_is_refused(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    A = clsparse_py.csr_array(np.eye(3, dtype=np.float32), queue=queue)
    take_as(type="gpu", forward_progress=False)
    with pytest.raises(ValueError, match=r"^method: 'sync-free' needs forward_progress"):
        linalg.triangular_plan(A, method="sync-free")
    assert linalg.triangular_plan(A).explain().method == "levels"


def test_gpus_with_forward_progress_take_it_by_default(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu", forward_progress=True)
    A = clsparse_py.csr_array(np.eye(3, dtype=np.float32), queue=queue)
    explanation = linalg.triangular_plan(A).explain()
    assert (explanation.method, explanation.launches) == ("sync-free", 1)


@pytest.mark.refusals
def test_plain_kernels_take_the_place_of_refused_ones(waiting: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host = random_triangle(100, 5, np.float32, True, np.random.default_rng(4))
    build, b = programs.build, np.arange(100, dtype=np.float32)
    wanted = scipy.sparse.linalg.spsolve_triangular(host, b)
    for refused in (SyncFree, SyncFreeLevels):

        def refusing(context: Any, device: Any, parameters: Any, refused: Any = refused) -> Any:
            if isinstance(parameters, refused) and not are_plain():
                raise BuildError("planted", log="", parameters=parameters, source=None)
            return build(context, device, parameters)

        monkeypatch.setattr(programs, "build", refusing)
        for method in ("sync-free", "levels"):
            plan = linalg.triangular_plan(clsparse_py.csr_array(host, queue=waiting), method=method)
            np.testing.assert_allclose(plan(b), wanted, rtol=1e-4)
