"""The demo of ranks: parts of a CPU with contexts of their own, and what it prints."""

from __future__ import annotations

import pyopencl as cl
import pytest
import scipy.sparse

from clsparse_py import distributed
from clsparse_py._distributed.demo import grid_rows, main, measure
from clsparse_py._distributed.places import assign_devices, split_device


def test_rows_of_a_grid_are_those_of_the_matrix() -> None:
    n = 4
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    wanted = scipy.sparse.kronsum(scipy.sparse.kronsum(line, line), line, format="csr")
    assert (grid_rows(n, 5, 40) != wanted[5:40]).nnz == 0


def test_parts_of_a_device_work_together(queue: cl.CommandQueue) -> None:
    with distributed.over(split_device(queue.device, 2)) as team:
        assert len({id(comm.queue.context) for comm in team.ranks}) == 2
        shown = team.each(measure, 5, distributed.by_rows(125, 2), 1)
    assert [row.error for row in shown] == [0, 0]
    assert [row.halo for row in shown] == [25, 25]
    assert [row.neighbours for row in shown] == [1, 1]


def test_devices_are_taken_in_turns(queue: cl.CommandQueue) -> None:
    device = queue.device
    assert assign_devices([device], 1) == [device]
    assert assign_devices([device, device], 3) == [device] * 3
    assert len(assign_devices([device], 5)) == 5


def test_the_demo_prints_who_has_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--threads", "1", "--points", "5", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "5 x 5 x 5 points over 1 ranks, threads of one process" in printed
    assert "0 of 0" in printed
    assert printed.count("0.0e+00") == 1
    with pytest.raises(SystemExit):
        main(["demo", "--threads", "0"])
    assert "--threads: must be at least 1" in capsys.readouterr().err
