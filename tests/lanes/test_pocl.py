"""Debian's PoCL, a release later than PyPI's: the workload is right on it, and its compiler prints nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import runtimes
from lane import Lane
from pairs import exhaustive
from platforms import PLATFORMS


@pytest.fixture
def environment(lane: Lane, tmp_path: Path) -> dict[str, str]:
    """Return the environment in which Debian's PoCL is the default."""
    library = lane.require(runtimes.pocl(), "Debian's PoCL is not installed (Debian: pocl-opencl-icd)")
    return runtimes.environment(tmp_path, "0", library)


def test_its_compiler_prints_nothing(lane: Lane, environment: dict[str, str]) -> None:
    result = lane.run_workload("small.py", environment=environment)
    assert "debian" in result["device"], "it ran on another runtime"
    assert not result["stderr"]


def test_the_workload_is_right(lane: Lane, environment: dict[str, str]) -> None:
    if "debian" in PLATFORMS["pocl"].driver_version:
        lane.say("the tests ran on it, as PyPI's PoCL builds nothing for this processor: the workload does not run again")
        return
    # Compilers take nearly all of the time: every third case, all with CLSPARSE_FULL=1.
    result = lane.run_workload("workload.py", *([] if exhaustive() else ["--third"]), environment=environment)
    assert not result["failures"], "\n".join(result["failures"])
    assert not result["stderr"]
