"""Mesa's rusticl on llvmpipe: a device without double precision, on which single precision works in full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import runtimes
from lane import Lane

from clsparse_py._device import trial


def test_every_kernel_runs_without_fp64(lane: Lane, templates_without_lanes: set[str], tmp_path: Path) -> None:
    library = lane.require(runtimes.rusticl(), "rusticl is not installed (Debian: mesa-opencl-icd)")
    # The device would be passed over (quirk 40). No case has loops of so many turns.
    environment = runtimes.environment(tmp_path, runtimes.RUSTICL, library, RUSTICL_ENABLE="llvmpipe", **{trial.GUARD: "1"})
    result = lane.run_workload(environment=environment)
    assert not result["failures"], "\n".join(result["failures"])
    assert not result["fp64"], "the device has double precision: it does not show what a device without it does"
    assert templates_without_lanes == set(result["kernels"].values()), "these templates did not run"


def test_a_device_that_leaves_long_loops_is_passed_over(lane: Lane, tmp_path: Path) -> None:
    library = lane.require(runtimes.rusticl(), "rusticl is not installed (Debian: mesa-opencl-icd)")
    environment = runtimes.environment(tmp_path, runtimes.RUSTICL, library, RUSTICL_ENABLE="llvmpipe")
    program = "from clsparse_py._device.device import *; print(*(unusable(d) for d in devices() if 'rusticl' in d.platform.name))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    if done.stdout.strip() == "None":
        pytest.skip("this version of Mesa makes all turns of a loop")
    assert "probe_turns" in done.stdout
