"""A lane: whether it can run, running a script for it, and what it says in pytest's summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")

HERE = Path(__file__).parent


@dataclass
class Lane:
    """A lane's part of the summary: properties of its tests, which reach the process that writes the summary."""

    name: str
    properties: list[tuple[str, object]]

    def say(self, text: str) -> None:
        """Put a text into the summary, each of its lines once."""
        self.properties += [("lane", f"{self.name}: {line}") for line in text.splitlines()]

    def require(self, result: Found | None, what: str) -> Found:
        """Return ``found``; where it is None, skip the test and say so, or fail where lanes are required."""
        if result is not None:
            return result
        self.say(f"did not run: {what}")
        if os.environ.get("CLSPARSE_LANES") == "required":
            pytest.fail(what)
        pytest.skip(what)

    def run(self, *words: str, environment: dict[str, str], before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run this Python in a process of its own and return what became of it.

        Parameters
        ----------
        words
            Python's arguments: a script of this folder, and the script's own.
        environment : dict of str to str
            The process's environment.
        before
            Words before those: a program that runs another.
        """
        command = [*before, sys.executable, *words]
        # For modules that other tests use, too.
        result = os.pathsep.join(filter(None, (str(HERE.parent), environment.get("PYTHONPATH"))))
        environment = {**environment, "PYTHONPATH": result}
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=2400, check=False)
        assert done.returncode == 0, f"{words[0]} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
        return done

    def run_workload(self, *words: str, environment: dict[str, str], before: Sequence[str] = ()) -> dict[str, Any]:
        """Run the workload, or a script that reports as it does; say what ran and what was skipped, and return the report."""
        done = self.run(*(words or ("workload.py",)), environment=environment, before=before)
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        kernels = result["kernels"]
        n_templates = len(set(kernels.values()))
        self.say(f"{result['device']}: {len(kernels)} kernels from {n_templates} templates ran in {result['cases']} cases")
        for what, reason in result["skipped"].items():
            self.say(f"skipped {what}: {reason}")
        return {**result, "stderr": done.stderr}
