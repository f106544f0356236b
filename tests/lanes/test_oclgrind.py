"""Oclgrind: a simulator that finds races, accesses out of bounds, uninitialised reads and divergent barriers.

Its exit code is 0 whatever it found; what it found is in its log.
"""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest
import runtimes
from lane import Lane
from planted import FAULTS

# A step of aggregates reads states that other work-groups may change, once and from 1: whichever it sees, the set is the same.
# A search for row patterns reads slots that an atomic operation of others may take, once and from 0: a free one it takes so, too.
# An unknown of the method "sync-free" is its own flag, which others read until it is known. The number of colours is looked at
# before it is raised by an atomic operation. The last work-group to end stores all unknowns anew, behind its count of those that
# ended.
BY_DESIGN = re.compile(
    r"Write-write data race at global memory in triangular_sync_free_\w+: (STORE\(own_known|x\[\(ulong\)row)"
    r"|Read-write data race at (global memory in "
    r"((aggregation_advance_\w+_step|preconditioning_colour)_\w+: .*\bstate\[|spmv_find_patterns_\w+: .*\bslots\b)"
    r"|\w+ memory in triangular_(sync_free|tiles|factor_\w+_sync_free)\w*: )"
)


@pytest.fixture
def environment(lane: Lane, tmp_path: Path) -> dict[str, str]:
    """Return the environment in which Oclgrind runs, checks all it can, and writes ``log``."""
    library = lane.require(runtimes.oclgrind(), "Oclgrind is not installed (Debian: oclgrind)")
    settings = {
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_MAX_ERRORS": "100000",
        "OCLGRIND_LOG": str(tmp_path / "log"),
        # Each work-item is dear, also one that has nothing to do: the kernels of small operands have no more of them than this.
        "OCLGRIND_MAX_WGSIZE": "64",
        # Quirk 27; and the optimiser may drop an access that is wrong.
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
        # Blocks of a pool are larger than what was asked for: an access beyond an array would go unseen.
        "CLSPARSE_POOL_BYTES": "0",
    }
    return runtimes.environment(tmp_path, runtimes.OCLGRIND, library, **settings)


def faults(log: Path) -> list[str]:
    """Return what a log reports: each kind once for each kernel and source line, with how often."""
    result: collections.Counter[str] = collections.Counter()
    for block in re.split(r"\n(?=\S)", log.read_text()):
        headline, *rest = block.strip().splitlines() or [""]
        if not headline:
            continue
        kernel = re.search(r"Kernel:\s+(\S+)", block)
        lines = [rest[i + 1].strip() for i, line in enumerate(rest[:-1]) if line.strip().startswith("At line")]
        what = re.sub(r" address 0x[0-9a-f]+", "", headline)
        result[f"{what} in {kernel[1] if kernel else '?'}: {' | '.join(lines)}"] += 1
    return [f"{fault} ({times} times)" for fault, times in result.items()]


def test_planted_faults_are_found(lane: Lane, environment: dict[str, str]) -> None:
    lane.run("planted.py", environment=environment)
    result = faults(Path(environment["OCLGRIND_LOG"]))
    for kernel, message in FAULTS.items():
        assert any(message in fault and f" {kernel}:" in fault for fault in result), f"{kernel} was not found in {result}"
    assert not any("faultless" in fault for fault in result), result


def test_every_kernel_is_free_of_faults(lane: Lane, environment: dict[str, str], templates_without_lanes: set[str]) -> None:
    result = lane.run_workload("workload.py", "--simulated", environment=environment)
    reported = [fault for fault in faults(Path(environment["OCLGRIND_LOG"])) if not BY_DESIGN.match(fault)]
    lane.say(f"found {len(reported)} races, accesses out of bounds, uninitialised reads and divergent barriers")
    assert not reported, "\n".join(reported)
    assert not result["failures"], "\n".join(result["failures"])
    left_out = {"spmv/narrow", "spmv/streamed"}  # as the workload says
    assert templates_without_lanes - left_out == set(result["kernels"].values()) - left_out, "these templates did not run"
