"""The backend of NetworkX, which looks for entry points when it is imported: so calls are made in a child process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_calls_with_the_backend(tmp_path: Path) -> None:
    # The entry points as pyproject.toml has them, whether the installed package does or not.
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    of_functions, of_info = re.findall(r'^clsparse = "(clsparse_py\.networkx_backend:\w+)"$', project, re.MULTILINE)
    told = tmp_path / "clsparse_backend-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: clsparse-backend\nVersion: 1\n")
    points = f"[networkx.backends]\nclsparse = {of_functions}\n[networkx.backend_info]\nclsparse = {of_info}\n"
    (told / "entry_points.txt").write_text(points)
    path = os.pathsep.join((str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")))
    calls = Path(__file__).with_name("backend_calls.py")
    found = subprocess.run(
        [sys.executable, str(calls)], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert found.stdout.endswith("right\n"), found.stderr
