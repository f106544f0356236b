"""Scripts of what random programs found once, and a hundred programs of a fixed seed, on each platform."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from platforms import PLATFORMS

from tests.programs.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.every_platform


def run(*arguments: str, platform: str) -> str:
    """Run Python in the checkout's root; return what it printed."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"on {platform}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize("platform", PLATFORMS)
def test_programs_of_a_fixed_seed(platform: str) -> None:
    result = run("-m", "tests.programs", "--programs", "100", "--seed", "20", "--plain", "--device", platform, platform=platform)
    assert "100 programs" in result


@pytest.mark.parametrize("platform", PLATFORMS)
def test_kept_programs(platform: str) -> None:
    run("-m", "tests.programs.kept", platform, platform=platform)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_apply(mutant: Mutant) -> None:
    assert mutant.wrong in mutant.text()
