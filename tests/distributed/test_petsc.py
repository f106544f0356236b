"""PETSc multiplies with a matrix over ranks, if petsc4py can be imported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from clsparse_py import distributed


def test_petsc_multiplies_and_solves() -> None:
    try:
        pytest.importorskip("petsc4py.PETSc")
    except ValueError as error:  # built for another NumPy
        pytest.skip(str(error))
    launcher = shutil.which("mpiexec.openmpi") or shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec")
    program = str(Path(__file__).with_name("petsc_program.py"))
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, program], capture_output=True, text=True, timeout=120, check=False
    )
    assert sorted(done.stdout.split("\n"))[-2:] == ["rank 0 right", "rank 1 right"], done.stderr


def test_what_petsc_cannot_have(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    with distributed.over([queue], time_limit=30) as team:
        A = team.vector(np.ones(2))
        with pytest.raises(ImportError, match="pip install petsc4py"):
            team.run(distributed.petsc_mat, A)
