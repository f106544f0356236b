"""A lane: whether it can run, running a script for it, and what it says in pytest's summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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

    def require(self, found: Found | None, what: str) -> Found:
        """Return ``found``; where it is None, skip the test and say so, or fail where lanes are required."""
        if found is not None:
            return found
        self.say(f"did not run: {what}")
        if os.environ.get("CLSPARSE_LANES") == "required":
            pytest.fail(what)
        pytest.skip(what)

    def run(self, script: str, *arguments: str, environment: dict[str, str]) -> str:
        """Run a script of this folder in a process of its own and return what it printed."""
        command = [sys.executable, str(HERE / script), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
        return done.stdout

    def run_workload(self, *arguments: str, environment: dict[str, str]) -> dict[str, Any]:
        """Run the workload, say what ran and what was skipped, and return its report."""
        found: dict[str, Any] = json.loads(self.run("workload.py", *arguments, environment=environment).splitlines()[-1])
        kernels = found["kernels"]
        n_templates = len(set(kernels.values()))
        self.say(f"{found['device']}: {len(kernels)} kernels from {n_templates} templates ran in {found['cases']} cases")
        for what, reason in found["skipped"].items():
            self.say(f"skipped {what}: {reason}")
        return found
