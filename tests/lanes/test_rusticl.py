"""Mesa's rusticl on llvmpipe: a device without double precision, on which single precision works in full."""

from __future__ import annotations

from pathlib import Path

import runtimes
from lane import Lane


def test_every_kernel_runs_without_fp64(lane: Lane, templates_without_lanes: set[str], tmp_path: Path) -> None:
    library = lane.require(runtimes.rusticl(), "rusticl is not installed (Debian: mesa-opencl-icd)")
    environment = runtimes.environment(tmp_path, runtimes.RUSTICL, library, RUSTICL_ENABLE="llvmpipe")
    found = lane.run_workload(environment=environment)
    assert not found["failures"], "\n".join(found["failures"])
    assert not found["fp64"], "the device has double precision: it does not show what a device without it does"
    assert templates_without_lanes == set(found["kernels"].values()), "these templates did not run"
