"""Ranks that are processes: two of them by mpiexec, ended if they are late; and what is said where mpi4py is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

from clsparse_py import distributed
from clsparse_py._distributed import mpi

SECONDS = 120
pytestmark = pytest.mark.any_platform


def mpiexec() -> str:
    """Return the launcher that the wheel of MPI brings."""
    result = Path(sys.executable).with_name("mpiexec")
    if not result.exists():
        pytest.skip("mpich's wheel is not installed")
    return str(result)


def test_the_demo_by_mpi(queue: cl.CommandQueue) -> None:
    command = [mpiexec(), "-n", "2", sys.executable, "-m", "clsparse_py.distributed", "demo", "--points", "6", "--repeats", "1"]
    environment = {**os.environ, "PYOPENCL_CTX": queue.device.platform.name}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 x 6 x 6 points over 2 ranks, by MPI" in done.stdout
    assert done.stdout.count("36 of 1") == 2


def test_two_ranks_are_right_and_told_of_a_failure(queue: cl.CommandQueue) -> None:
    program = str(Path(__file__).with_name("mpi_program.py"))
    command = [mpiexec(), "-n", "2", sys.executable, program, queue.device.platform.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    # Lines of several ranks may run into one another.
    said = sorted(re.findall(r"rank \d right; (?:rank 1 failed: KeyError: 'wrong'|failed)", done.stdout))
    assert said == ["rank 0 right; rank 1 failed: KeyError: 'wrong'", "rank 1 right; failed"]


def ran(queue: cl.CommandQueue, size: int, how: str) -> subprocess.CompletedProcess[str]:
    """Return the outcome of the program of ranks that disagree."""
    program = str(Path(__file__).with_name("mpi_disagreements.py"))
    command = [mpiexec(), "-n", str(size), sys.executable, program, queue.device.platform.name, how]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


def test_ranks_that_differ_are_told_and_go_on(queue: cl.CommandQueue) -> None:
    done = ran(queue, 2, "differ")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"rank \d: 34 cases", done.stdout)) == 2


@pytest.mark.parametrize(
    ("how", "said"), [("fail", "rank 2 failed: KeyError: 'wrong'"), ("end", "rank 2 has ended, and rank . waits for it")]
)
def test_a_rank_that_ends_is_waited_for_no_longer(queue: cl.CommandQueue, how: str, said: str) -> None:
    done = ran(queue, 3, how)
    # Who waited is told by the one that ended, or by another that was.
    assert len(re.findall(rf"{said}, after [0-9] s", done.stdout)) == 2, done.stdout + done.stderr


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    with pytest.raises(ImportError, match=r"mpi4py.*clsparse_py\[mpi\].*clsparse_py\[mpi-wheel\]"):
        distributed.world()


def test_a_world_of_another_size_than_the_launchers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (beside, _) in mpi._WORLD_SIZES.items():
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(beside, raising=False)

    def refuse(size: int, expect: int | None, message: str) -> None:
        with pytest.raises(RuntimeError, match=message):
            mpi._require_size(size, "MPICH 4.3", expect)

    mpi._require_size(1, "MPICH 4.3", None)
    monkeypatch.setenv("PMIX_RANK", "1")
    refuse(1, None, r"PMIX_RANK=1 \(PMIx\) says otherwise")
    monkeypatch.setenv("PMIX_RANK", "0")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    mpi._require_size(1, "MPICH 4.3", None)  # an allocation, and no step
    monkeypatch.setenv("SLURM_PROCID", "0")
    refuse(1, None, r"size 1, and SLURM_STEP_NUM_TASKS=3 \(Slurm\) .*loaded MPICH 4.3.*MPI4PY_LIBMPI.*--mpi=pmi2")
    mpi._require_size(1, "MPICH 4.3", 1)
    # A launcher within the step.
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    mpi._require_size(2, "MPICH 4.3", None)
    mpi._require_size(3, "MPICH 4.3", None)
    refuse(1, None, r"OMPI_COMM_WORLD_SIZE=2 \(Open MPI\), SLURM_STEP_NUM_TASKS=3 \(Slurm\) says otherwise")
    refuse(1, 2, r"expect=2 says otherwise")


@pytest.mark.usefixtures("queue")
def test_the_library_of_another_launcher_is_noticed() -> None:
    # What a process sees that Open MPI's launcher starts while mpi4py loads another library: a world of its own.
    program = "from clsparse_py import distributed; distributed.world()"
    environment = {**os.environ, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment)
    assert done.returncode != 0
    assert "MPI's world has size 1, and OMPI_COMM_WORLD_SIZE=2 (Open MPI) says otherwise" in done.stderr
