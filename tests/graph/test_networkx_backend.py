"""The backend of NetworkX, which looks for entry points when it is imported: so calls are made in a child process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pairs import exhaustive

from clsparse_py import networkx_backend

ROOT = Path(__file__).parents[2]
#: NetworkX's own tests of the functions that the backend has.
FILES = (
    "centrality/tests/test_betweenness_centrality.py",
    "components/tests/test_connected.py",
    "link_analysis/tests/test_pagerank.py",
    "shortest_paths/tests/test_unweighted.py",
    "tests/test_cluster.py",
    "tests/test_core.py",
)
#: Compares centralities bit for bit with those of another function, which NetworkX computes: the last digit differs.
BIT_FOR_BIT = "algorithms/centrality/tests/test_betweenness_centrality_subset.py::test_equivalence_non_subset"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that finds the backend, whether the package is installed or importable alone."""
    pytest.importorskip("networkx")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    of_functions, of_info = re.findall(r'^clsparse = "(clsparse_py\.networkx_backend:\w+)"$', project, re.MULTILINE)
    told = tmp_path / "clsparse_backend-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: clsparse-backend\nVersion: 1\n")
    points = f"[networkx.backends]\nclsparse = {of_functions}\n[networkx.backend_info]\nclsparse = {of_info}\n"
    (told / "entry_points.txt").write_text(points)
    path = os.pathsep.join((str(tmp_path), str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, "PYTHONPATH": path}


def test_calls_with_the_backend(environment: dict[str, str]) -> None:
    calls = Path(__file__).with_name("backend_calls.py")
    result = subprocess.run([sys.executable, str(calls)], env=environment, capture_output=True, text=True, check=False)
    assert result.stdout.endswith("right\n"), result.stderr


def test_networkxs_own_tests_pass_and_reach_every_function(environment: dict[str, str], tmp_path: Path) -> None:
    """Those of the backend's functions; with ``CLSPARSE_FULL=1`` all of them. What the backend does not have NetworkX runs."""
    home = Path(pytest.importorskip("networkx").__file__).parent
    if not (home / "algorithms" / FILES[0]).exists():
        pytest.skip("this NetworkX came without its tests")
    files = ["."] if exhaustive() else [f"algorithms/{name}" for name in FILES]
    # From its own folder, or its conftest.py, which puts the backend in force, comes too late for its options.
    places = ["--rootdir", str(home), "--confcutdir", str(home), "-c", os.devnull, "--basetemp", str(tmp_path / "of_tests")]
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "backend_counts"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *places, *plugins, "--backend=clsparse", "--fallback-to-nx",
         f"--deselect={BIT_FOR_BIT}", *files],
        cwd=home, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    reached = dict(re.findall(r"^reached (\w+) (\d+)$", done.stdout, re.MULTILINE))
    assert reached.keys() == networkx_backend.get_info()["functions"].keys()
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > (6_000 if exhaustive() else 200)
