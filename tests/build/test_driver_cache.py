"""PoCL's own cache: what is cut short there is found after a process that did not end in order, and removed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from platforms import PLATFORMS

from clsparse_py._build import driver_cache, programs

pytestmark = pytest.mark.skipif("pocl" not in PLATFORMS, reason="PoCL is not there")

#: Builds two kernels and runs them, then ends as it is told to.
USES = """
import os, sys
import numpy as np
import pyopencl as cl
from clsparse_py import csr_array, devices
from clsparse_py._build import programs
device = next(each for each in devices() if programs.identity(each) == sys.argv[1])
context = cl.Context([device])
queue = cl.CommandQueue(context)
A = csr_array((np.ones(2, np.float32), np.zeros(2, np.int32), np.array([0, 1, 2], np.int32)), shape=(2, 1), queue=queue)
print((A @ np.ones(1, np.float32)).tolist(), flush=True)
if sys.argv[2:]:
    os._exit(0)
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with PoCL's cache and ours, which a process has filled."""
    folder = tmp_path_factory.mktemp("caches")
    (folder / "pocl").mkdir()
    done = uses(folder)
    assert done.returncode == 0, done.stderr
    return folder


def uses(folder: Path, *how: str) -> subprocess.CompletedProcess[str]:
    """Run a process on PoCL with the caches in a folder."""
    environment = {**os.environ, "POCL_CACHE_DIR": str(folder / "pocl"), "CLSPARSE_CACHE_DIR": str(folder / "ours")}
    command = [sys.executable, "-c", USES, programs.identity(PLATFORMS["pocl"]), *how]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def parts(folder: Path) -> Iterator[Path]:
    """Yield what PoCL wrote: programs and kernels."""
    for pattern in ("program.bc", "*.so"):
        yield from sorted((folder / "pocl").rglob(pattern))


def test_what_is_cut_short_is_told_from_what_is_whole(filled: Path) -> None:
    assert len([*parts(filled)]) >= 2
    assert not [*driver_cache._find_truncated(filled / "pocl")]
    for part in parts(filled):
        whole = part.read_bytes()
        for kept in (0, 3, 20, len(whole) // 2, len(whole) - 1):
            part.write_bytes(whole[:kept])
            (result,) = driver_cache._find_truncated(filled / "pocl")
            assert part.is_relative_to(result)
            assert result.parent.parent == filled / "pocl"
        part.write_bytes(b"\0" * len(whole))
        assert len([*driver_cache._find_truncated(filled / "pocl")]) == 1
        part.write_bytes(whole)


def test_what_others_are_writing_is_left_alone(filled: Path) -> None:
    """PoCL links in a temporary file beside its entries."""
    linking = filled / "pocl" / "tempfile_a1b2c3.so"
    linking.write_bytes(b"\x7fELF")
    assert not [*driver_cache._find_truncated(filled / "pocl")]
    uses(filled, "at once")
    assert "cut short" not in uses(filled).stderr
    linking.unlink()


def test_processes_that_end_in_order_leave_nothing(filled: Path) -> None:
    marks = next((filled / "ours").glob("building-*"))
    assert not [*marks.iterdir()]
    assert uses(filled, "at once").returncode == 0
    assert len([*marks.iterdir()]) == 1
    done = uses(filled)
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n")
    assert "cut short" not in done.stderr
    assert not [*marks.iterdir()]


def test_after_a_process_that_ended_otherwise_nothing_is_cut_short(filled: Path) -> None:
    """A machine that stops ends processes and cuts files short; a full disk does the latter alone."""
    for ended_before in (True, False):
        for kind in ("program.bc", "*.so"):
            if ended_before:
                uses(filled, "at once")
            for part in (filled / "pocl").rglob(kind):
                os.truncate(part, part.stat().st_size // 2)
            done = uses(filled)
            if done.returncode and not ended_before:
                done = uses(filled)
            assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n"), done.stderr
            assert "is cut short: removed" in done.stderr
