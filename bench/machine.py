"""Where and with what a run was made: the part of a results file that must stay the same for it to be continued."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def threads() -> int:
    """Return how many threads a peer may use: the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def host() -> dict[str, Any]:
    """Return what the results file says of the host."""
    return {"system": platform.platform(), "processor": _processor(), "threads": threads()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that every run uses."""
    packages = ("clsparse_py", "pyopencl", "numpy", "scipy")
    return {"python": platform.python_version(), **{p: v for p in packages if (v := version_of(p))}}


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit(revision: str | None = None) -> dict[str, Any]:
    """Return the revision that is measured, and a digest of what was changed on top of it.

    Parameters
    ----------
    revision
        Says what the revision is where the tree came without its repository.
    """
    result = _git("rev-parse", "HEAD")
    # Without results/: writing them does not change what is measured.
    changes = _git("diff", "HEAD", "--", ".", ":(exclude)bench/results")
    return {
        "revision": revision or (result.strip() if result else "unknown"),
        "dirty": bool(changes),
        "changes": hashlib.sha256(changes.encode()).hexdigest()[:8] if changes else "",
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
