"""A device that understates everything: every kernel runs with work-groups of 64, 16 KiB of local memory and little else."""

from __future__ import annotations

import os
from pathlib import Path

import runtimes
from lane import Lane
from pairs import exhaustive

ROOT = Path(__file__).parents[2]


def test_every_kernel_runs_on_a_device_that_understates_everything(lane: Lane, tmp_path: Path) -> None:
    system = runtimes.pocl()
    lane.require(system or runtimes.bundled_pocl(), "PoCL is not installed")
    # Runtimes that are named come before PyPI's PoCL, which builds nothing for some processors.
    environment = runtimes.environment(tmp_path, "0", *filter(None, (system,)))
    options = () if exhaustive() else ("--third",)
    result = lane.run_workload("understated.py", "64", "workload.py", *options, environment=environment)
    assert not result["failures"], "\n".join(result["failures"])
    assert not result["fp64"]


def test_random_programs_on_devices_that_understate_everything(lane: Lane, tmp_path: Path) -> None:
    system = runtimes.pocl()
    lane.require(system or runtimes.bundled_pocl(), "PoCL is not installed")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = runtimes.environment(tmp_path, "0", *filter(None, (system,)), PYTHONPATH=path)
    for size in ("64", "1") if exhaustive() else ("64",):
        options = ("--device", f"understated{size}", "--programs", "60" if exhaustive() else "10", "--seed", "20", "--plain")
        lane.run("-m", "tests.programs", *options, environment=environment)
