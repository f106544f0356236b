"""The oldest NumPy, SciPy and PyOpenCL that the package takes, and the newest, as far as this Python has wheels of them.

Each set has a virtual environment that is kept for the next run, outside of the checkout.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
import runtimes
from lane import Lane
from packaging.version import Version
from pairs import exhaustive

from clsparse_py._device.runtimes import find_intel

ROOT = Path(__file__).parents[2]
#: Those with code of their own, whose wheels are for one Python.
COMPILED = ("numpy", "scipy", "pyopencl")
TOOLS = ("pytest", "hypothesis", "allpairspy")
FEW = (
    "tests/arrays/test_csr.py",
    "tests/arrays/test_formats.py",
    "tests/arrays/functions",
    "tests/solvers/linalg/test_of_scipy.py",
    "tests/test_starting.py",
)
MORE = ("tests/solvers/linalg", "tests/operations/spmv", "tests/memory/test_device_array.py")
#: Tests that ask SciPy for what it has had since a later version, or has computed right since: ours does.
LATER = {
    "1.16": (
        "tests/arrays/test_formats.py::test_operations_of_every_format",  # several axes of a matrix
        "tests/arrays/test_formats.py::test_sums_of_duplicates",  # those of a matrix in COO
        "tests/arrays/test_formats.py::test_rows_are_csr_arrays_of_one_dimension",  # rows of a matrix in COO
        "tests/arrays/test_formats.py::test_tensordot",  # dtypes
        "tests/arrays/functions/test_constructions.py::test_kronecker_products",  # one-dimensional operands
        "tests/arrays/functions/test_constructions.py::test_diagonals",  # a dtype
        "tests/arrays/functions/test_constructions.py::test_axes",  # permute_dims
        "tests/solvers/linalg/test_laplacians.py::test_laplacians",  # how many products SciPy takes
        "tests/solvers/linalg/test_of_scipy.py::test_functions",  # funm_multiply_krylov, which is SciPy's
        "tests/solvers/linalg/test_of_scipy.py::test_files",  # which error a file is that is not there
    ),
}


def pip(*words: str) -> str | None:
    """Return the output of a command of pip's; None if it fails, such as without a network."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def bounds() -> dict[str, str]:
    """Return the least version of each package that the project depends on, and of the tests' tools."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    dependencies = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    tools = re.findall(rf'^ +"({"|".join(TOOLS)})>=([\d.]+)",$', text, re.MULTILINE)
    assert dependencies
    results = {**dict(re.findall(r'"(\w+)>=([\d.]+)"', dependencies[1])), **dict(tools)}
    assert {*COMPILED, *TOOLS} <= results.keys()
    return results


def oldest(lane: Lane) -> dict[str, str]:
    """Return the lower bounds, or what comes next of those that have no wheel for this Python."""
    result = bounds()
    for name in COMPILED:
        listed = lane.require(pip("index", "versions", "--only-binary", ":all:", name), "pip reaches no index")
        versions = listed.partition("Available versions: ")[2].partition("\n")[0].split(", ")
        result[name] = min((version for version in versions if Version(version) >= Version(result[name])), key=Version)
    return result


def newest(lane: Lane) -> dict[str, str]:
    """Return the newest versions that go together."""
    words = "install", "--dry-run", "--quiet", "--ignore-installed", "--only-binary", ":all:", "--report", "-"
    report = lane.require(pip(*words, *bounds()), "pip reaches no index")
    return {package["metadata"]["name"].lower(): package["metadata"]["version"] for package in json.loads(report)["install"]}


def environment_of(versions: dict[str, str], name: str) -> Path:
    """Return the Python of a virtual environment with some versions, which is made if the one of that name has others."""
    wanted = [f"{package}=={version}" for package, version in sorted(versions.items())]
    place = platformdirs.user_cache_path("clsparse_py-versions") / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    made, is_made_of = place / "made", "\n".join([sys.version, *wanted])
    if not made.exists() or made.read_text() != is_made_of:
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        quiet = "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"
        done = subprocess.run([place / "bin" / "pip", "install", *quiet, *wanted], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"these do not go together: {wanted}\n{done.stderr[-3000:]}"
        made.write_text(is_made_of)
    return place / "bin" / "python"


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_oldest_and_newest(lane: Lane, which: str, tmp_path: Path) -> None:
    library = lane.require(find_intel() or runtimes.pocl(), "neither Intel's runtime nor the system's PoCL is installed")
    versions = {"oldest": oldest, "newest": newest}[which](lane)
    named = ", ".join(f"{name} {versions[name]}" for name in COMPILED)
    if all(importlib.metadata.version(name) == versions[name] for name in COMPILED):
        lane.say(f"{named}: all tests run with these")
        return
    python = environment_of(versions, which)
    left_out = [name for since, names in LATER.items() if Version(versions["scipy"]) < Version(since) for name in names]
    done = subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *FEW, *(MORE if exhaustive() else ()),
         *(f"--deselect={name}" for name in left_out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OCL_ICD_VENDORS": runtimes.name_in(tmp_path / "vendors", library)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    (counts,) = re.findall(r"\d+ passed.*", done.stdout)
    lane.say(f"{named}: {counts}")
