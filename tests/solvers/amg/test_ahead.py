"""Kernels that are built before a set-up asks for them: all of them are launched, and on CPU devices there are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pytest

import clsparse_py
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._solvers.amg import ahead

pytestmark = pytest.mark.any_platform


@pytest.mark.parametrize("points", [5, 7])
def test_what_is_built_ahead_is_used(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, points: int
) -> None:
    take_as(type="gpu", max_work_group=256)
    predicted = []
    listed = ahead._list_records
    monkeypatch.setattr(ahead, "_list_records", lambda *arguments: predicted.extend(listed(*arguments)) or predicted)
    step = clsparse_py.diags_array(
        [-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(48, 48) if points == 5 else (14, 14), dtype=np.float32, queue=queue
    )
    A = clsparse_py.kronsum(step, step, format="csr")
    if points == 7:
        A = clsparse_py.kronsum(A, step, format="csr")
    programs.let_go()
    with programs.recording() as asked:
        hierarchy = clsparse_py.amg.smoothed_aggregation_solver(A)
        hierarchy.solve(np.ones(A.shape[0], np.float32), tol=1e-3)
    assert len(hierarchy.levels) > 2
    assert predicted
    names = {kernel.parameters.name for kernel in asked}
    assert {record.name for record in predicted} <= names


def test_cpu_devices_build_nothing_ahead(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    if not describe(queue.device).lanes_are_loops:
        pytest.skip("no CPU device")
    monkeypatch.setattr(ahead, "_list_records", lambda *_: pytest.fail("kernels were listed"))
    step = clsparse_py.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500), dtype=np.float32, queue=queue)
    assert len(clsparse_py.amg.smoothed_aggregation_solver(step.tocsr()).levels) > 1
