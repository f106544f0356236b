"""Triangular systems by tiles: stencils on grids that are found and that are not, their tiles, and the solutions."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import linalg
from clsparse_py._device.device import describe
from clsparse_py._operations.triangular.choose import Thresholds
from clsparse_py._operations.triangular.grids import find_grid
from tests.solvers.linalg.test_triangular_plan import backward_error, dtypes_of
from tests.supposed import suppose

#: Extents of grids, the slowest first, and whether the stencil is a box or has the nearest points alone.
GRIDS = [((30, 40), False), ((30, 40), True), ((7, 9, 11), False), ((8, 6, 7), True), ((1, 9, 30), True), ((9, 1, 30), False)]


def entries(shape: tuple[int, ...], is_box: bool, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the entries below the diagonal of a stencil on a grid, without a share of them."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    rows, columns = [], []
    for offset in itertools.product((-1, 0, 1), repeat=len(shape)):
        if any(offset) and (is_box or np.abs(offset).sum() == 1):
            to = tuple(slice(max(0, -o), min(n, n - o)) for o, n in zip(offset, shape, strict=True))
            of = tuple(slice(max(0, o), min(n, n + o)) for o, n in zip(offset, shape, strict=True))
            rows.append(numbers[to].ravel())
            columns.append(numbers[of].ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    kept = (column < row) & (np.random.default_rng(0).random(row.size) >= missing)
    return row[kept], column[kept]


def triangle(n: int, row: np.ndarray, column: np.ndarray, dtype: Any, *, upper: bool = False) -> scipy.sparse.csr_array:
    """Return a triangle with given entries below its diagonal (upper: of the transposed)."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(row.size) + (1j * rng.standard_normal(row.size) if np.dtype(dtype).kind == "c" else 0)
    low = scipy.sparse.csr_array((values, (row, column)), shape=(n, n)) + scipy.sparse.diags_array(rng.random(n) + 4)
    host = scipy.sparse.csr_array(low.T if upper else low).astype(dtype)
    host.sort_indices()
    return host


@pytest.mark.parametrize(("shape", "is_box"), GRIDS)
def test_a_grid_is_found_and_its_tiles_depend_on_those_before(shape: tuple[int, ...], is_box: bool) -> None:
    row, column = entries(shape, is_box)
    n = int(np.prod(shape))
    grid = find_grid(set((row - column).tolist()), n, upper=False)
    assert grid is not None

    def coordinates(point: np.ndarray) -> np.ndarray:
        return np.stack((point % grid.nx, point % grid.plane // grid.nx, point // grid.plane))

    found = {tuple(map(int, offset)) for offset in (coordinates(column) - coordinates(row)).T}
    assert found == set(grid.stencil.offsets)
    assert grid.nx == shape[-1]
    (a, b, c), (x, y, z) = grid.stencil.skew, coordinates(np.arange(n))
    skewed = np.stack((x + a * y + b * z, y + c * z, z))
    for sides in ((4, 3, 2), (1, 1, 1), (64, 64, 64)):
        tiles, starts = grid.make_tiles(sides)
        number = {tuple(tile[:3].tolist()): i for i, tile in enumerate(tiles)}
        side = np.reshape(sides, (3, 1))
        of_point = np.array([number[tuple(least.tolist())] for least in (skewed // side * side).T])
        level = np.searchsorted(starts, of_point, side="right")
        others = of_point[row] != of_point[column]
        assert (level[column] < level[row])[others].all()
        assert starts[-1] == len(tiles)


@pytest.mark.parametrize(
    ("distances", "n"),
    [
        ([], 100),
        ([1], 100),
        ([2, 30], 900),
        ([1, 30, 77], 900),
        ([1, 30, 31, 907], 27000),
        (range(1, 18), 900),
        ([-1, 1, 30], 900),
        ([1, 30], 2**30),
    ],
)
def test_other_distances_tell_no_grid(distances: Any, n: int) -> None:
    assert find_grid(distances, n, upper=False) is None


@pytest.mark.any_platform
@pytest.mark.parametrize("kind", ["own", "gpu"])
def test_solutions_agree_with_those_of_row_by_row(
    kind: str, queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "gpu":
        # Work-items of a CPU's work-group run one after another, so that launches give up, and one work-group solves all tiles.
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=3))
        take_as(type="gpu", max_work_group=256, forward_progress=True, local_memory=48 << 10, compute_units=2)
    rng = np.random.default_rng(2)
    for (shape, is_box), (i, dtype), upper in itertools.product(GRIDS, enumerate(dtypes_of(queue)), (False, True)):
        if is_box and len(shape) == 3 and kind == "gpu" and i:
            continue
        # A fifth of the entries is missing, and the last plane of a lower triangle ends early.
        row, column = entries(shape, is_box, missing=0.2 * (i % 2))
        n = int(np.prod(shape)) - 3 * (i % 2 and not upper)
        host = triangle(n, row[row < n], column[row < n], dtype, upper=upper)
        index = (np.int32, np.int64)[i // 2]
        host.indices, host.indptr = host.indices.astype(index), host.indptr.astype(index)
        A, unit = clsparse_py.csr_array(host, queue=queue), bool(i % 2)
        plan = linalg.triangular_plan(A, lower=not upper, unit_diagonal=unit, method="tiles")
        assert plan.explain().method == "tiles"
        dense = host.toarray().astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
        if unit:
            np.fill_diagonal(dense, 1)
        for k in (None, 1, 9):
            b = rng.standard_normal((n,) if k is None else (n, k)).astype(dtype)
            x = plan(b)
            longest = int(np.diff(host.indptr).max())
            assert backward_error(dense, x, b) <= (longest + 2) * float(np.finfo(dtype).eps)
            on_device = cl_array.to_device(queue, b)
            for _ in range(3):
                np.testing.assert_array_equal(plan(on_device).get(), x)
            plan.check()


@pytest.mark.any_platform
def test_starving_is_logged_once_and_the_result_is_right(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=0))
    take_as(type="gpu", max_work_group=256, forward_progress=True, local_memory=48 << 10, compute_units=2)
    host = triangle(1200, *entries((30, 40), False), np.float32)
    b = np.ones((1200, 3), np.float32)
    with caplog.at_level(logging.WARNING):
        x = linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue), method="tiles")(b)
    np.testing.assert_allclose(host @ x, b, atol=1e-4)
    assert caplog.text.count("gave up waiting") == 1


@pytest.mark.any_platform
def test_other_triangles_are_refused(queue: cl.CommandQueue) -> None:
    row, column = entries((30, 40), False)
    # Around the end of a line; an entry of no stencil; no diagonal entry; an entry beyond the diagonal.
    for more in (([40], [39]), ([900], [100])):
        host = triangle(1200, np.r_[row, more[0]], np.r_[column, more[1]], np.float32)
        with pytest.raises(ValueError, match=r"^method: 'tiles' needs a stencil on a grid"):
            linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue), method="tiles")
        b = np.ones(1200, np.float32)
        np.testing.assert_allclose(host @ linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue))(b), b, atol=1e-4)
    whole = triangle(1200, row, column, np.float32)
    for host in (whole - scipy.sparse.diags_array(whole.diagonal()), whole + whole.T):
        with pytest.raises(ValueError, match=r"^method: 'tiles' needs"):
            linalg.triangular_plan(clsparse_py.csr_array(scipy.sparse.csr_array(host), queue=queue), method="tiles")


@pytest.mark.any_platform
@pytest.mark.parametrize("kind", ["own", "gpu"])
def test_diagonals_of_all_sizes(
    kind: str, queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "gpu":
        monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_polls=3))
        take_as(type="gpu", max_work_group=256, forward_progress=True, local_memory=48 << 10, compute_units=2)
    dtype = dtypes_of(queue)[-2 if describe(queue.device).fp64 else 0]
    host = triangle(1200, *entries((30, 40), False), dtype)
    huge = 0.3 * float(np.finfo(dtype).max)
    diagonal = host.diagonal()
    diagonal[5::9], diagonal[6::9] = huge, 1 / huge
    host.setdiag(diagonal)
    # Unknowns stay of the size of 1.
    wanted = np.where(diagonal == huge, 1.0, 2.0).astype(dtype)
    host.data[host.indices != np.repeat(np.arange(1200), np.diff(host.indptr))] *= 0
    b = host @ wanted
    for method in ("serial", "tiles"):
        plan = linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue), method=method)
        np.testing.assert_allclose(plan(b), wanted, rtol=8 * float(np.finfo(dtype).eps))
    diagonal[77] = 0
    host.setdiag(diagonal)
    with pytest.raises(np.linalg.LinAlgError, match="zero in row 77"):
        linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue), method="tiles")(b)


@pytest.mark.any_platform
@pytest.mark.parametrize(("progress", "method"), [(True, "tiles"), (False, "levels")])
def test_gpus_solve_by_tiles_if_work_groups_may_wait(
    progress: bool, method: str, queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, min_tiled=1, max_polls=3))
    take_as(type="gpu", max_work_group=256, forward_progress=progress, local_memory=48 << 10, compute_units=2)
    host = triangle(1200, *entries((30, 40), False), np.float32)
    plan = linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue))
    assert plan.explain().method == method
    b = np.ones(1200, np.float32)
    np.testing.assert_allclose(host @ plan(b), b, atol=1e-4)


@pytest.mark.any_platform
def test_many_right_hand_sides_in_space_are_solved_by_rows(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = suppose(Thresholds, min_tiled=1, max_tiled_at_once=100, max_tiled_points=16)
    monkeypatch.setattr(Thresholds, "of", limits)
    host = triangle(693, *entries((7, 9, 11), False), np.float32)
    plan = linalg.triangular_plan(clsparse_py.csr_array(host, queue=queue))
    assert plan.explain().method == ("tiles" if describe(queue.device).compute_units > 1 else "serial")
    b = np.ones((693, 9), np.float32)
    np.testing.assert_allclose(host @ plan(b), b, atol=1e-4)
