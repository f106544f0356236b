"""Contents of an installation, a source distribution and a checkout, and that each runs by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import clsparse_py

ROOT = Path(__file__).parents[1]
# The module of sources that is imported, and where it finds them.
WHERE = "from clsparse_py._build import sources as s; print(s.__file__, s._ROOT, sep=chr(10))"

PUBLIC = {
    "BuildError",
    "HostFallbackWarning",
    "NoDeviceError",
    "Semiring",
    "SparseEfficiencyWarning",
    "SparseWarning",
    "amg",
    "block_array",
    "block_diag",
    "bsr_array",
    "coo_array",
    "csc_array",
    "csgraph",
    "csr_array",
    "default_queue",
    "describe",
    "devices",
    "dia_array",
    "diags_array",
    "distributed",
    "dok_array",
    "expand_dims",
    "eye_array",
    "find",
    "free_memory",
    "get_index_dtype",
    "graph",
    "hstack",
    "io",
    "issparse",
    "isspmatrix",
    "isspmatrix_bsr",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "isspmatrix_dok",
    "isspmatrix_lil",
    "kron",
    "kronsum",
    "lil_array",
    "linalg",
    "load_npz",
    "matrix_transpose",
    "max_times",
    "memory_info",
    "min_plus",
    "or_and",
    "permute_dims",
    "plus_pair",
    "plus_times",
    "primitives",
    "random_array",
    "record_use",
    "safely_cast_index_arrays",
    "save_npz",
    "sddmm",
    "sparray",
    "spgemm",
    "spgemm_estimate",
    "spgemm_plan",
    "spmm",
    "spmm_plan",
    "spmv",
    "spmv_plan",
    "swapaxes",
    "transpose",
    "transpose_plan",
    "tril",
    "triu",
    "vstack",
    "warmup",
}

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests do not run from a checkout")


def run(*command: str, cwd: Path, path: Path | None = None) -> str:
    """Run Python in a folder, with another one to import from, and return what it prints."""
    # What the tests were given comes after it: dependencies may lie there.
    result = os.pathsep.join(filter(None, (str(path or ""), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": result}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(kind: str, folder: Path, source: Path) -> None:
    """Build a distribution of a kind ("sdist", "wheel", "editable") of a source folder, in another folder."""
    for package in ("hatchling", "trove_classifiers"):
        pytest.importorskip(package)
    run("-c", f"from hatchling import build; build.build_{kind}({str(folder)!r})", cwd=source)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the repository holds, but for results of benchmarks."""
    folder = tmp_path_factory.mktemp("copy") / "checkout"
    shutil.copytree(
        ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "generated", "results")
    )
    return folder


@pytest.fixture(scope="module")
def distributions(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution and a wheel."""
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source") / "checkout"
    shutil.copytree(checkout, source)
    for kind in ("sdist", "wheel"):
        build(kind, folder, source)
    return folder


def test_no_two_test_files_have_one_name() -> None:
    # pytest imports test files by their names alone, and stops at the second of a name.
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("address", ["", "https://example.org/project"])
def test_links_of_the_readme_start_with_the_configured_address(checkout: Path, tmp_path: Path, address: str) -> None:
    source = tmp_path / "checkout"
    shutil.copytree(checkout, source)
    settings = (source / "pyproject.toml").read_text("utf-8")
    assert settings.count('\naddress = ""\n') == 1
    (source / "pyproject.toml").write_text(settings.replace('\naddress = ""\n', f'\naddress = "{address}"\n'), "utf-8")
    build("wheel", tmp_path, source)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        shown = archive.read(name).decode("utf-8").partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text("utf-8")
    if not address:
        assert shown.strip() == readme.strip()
        return
    assert f"]({address}/raw/main/docs/figures/speed.svg)" in shown
    assert f"]({address}/blob/main/docs/start.md)" in shown
    targets = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(targets) == len(re.findall(r"\]\(([^)\s]+)\)", readme))
    assert [target for target in targets if not re.match("https?:", target)] == []


def install(distributions: Path, folder: Path) -> Path:
    """Return a folder with what an installation of the wheel puts there."""
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_source_distribution_holds_all_that_the_repository_does(distributions: Path, checkout: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {Path(*Path(name).parts[1:]).as_posix() for name in opened.getnames()}
    files = {path.relative_to(checkout).as_posix() for path in checkout.rglob("*") if path.is_file()}
    assert files <= held
    assert {"tests/conftest.py", "templates/spmv/merge.mako", "cl/lanes.cl", "docs/architecture.md", "bench/runner.py"} <= files


def test_a_wheel_holds_the_package_alone(distributions: Path, checkout: Path, tmp_path: Path) -> None:
    place = install(distributions, tmp_path)
    made = {path.name for path in place.iterdir() if not path.name.endswith(".dist-info")}
    assert made == {"clsparse_py", "clsparse_command.py"}
    sources = {path.relative_to(checkout).as_posix() for name in ("templates", "cl") for path in (checkout / name).rglob("*.*")}
    package = place / "clsparse_py"
    packed = {path.relative_to(package).as_posix() for name in ("templates", "cl") for path in (package / name).rglob("*.*")}
    assert packed == sources
    modules = {path.relative_to(checkout).as_posix() for path in (checkout / "clsparse_py").rglob("*.py")}
    for path in sources:
        assert (place / "clsparse_py" / path).read_bytes() == (checkout / path).read_bytes(), path
    for path in modules - {"clsparse_py/samples/make.py"}:
        assert (place / path).read_bytes() == (checkout / path).read_bytes(), path


def test_an_editable_install_has_types(checkout: Path, tmp_path: Path) -> None:
    """It is a folder on the path: type checkers do not follow hooks of the import system."""
    build("editable", tmp_path, checkout)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (link,) = (name for name in packed.namelist() if name.endswith(".pth"))
        assert not [name for name in packed.namelist() if name.endswith(".py")]
        folder = Path(packed.read(link).decode().strip())
    assert folder.samefile(checkout)
    assert (folder / "clsparse_py" / "py.typed").exists()


def test_an_installation_and_a_checkout_use_their_own_sources(distributions: Path, checkout: Path, tmp_path: Path) -> None:
    place = install(distributions, tmp_path / "site")
    own = Path("clsparse_py", "_build", "sources.py")
    assert run("-c", WHERE, cwd=tmp_path, path=place).splitlines() == [str(place / own), str(place / "clsparse_py")]
    # Python started within a checkout imports the package there, whatever is installed.
    assert run("-c", WHERE, cwd=checkout, path=place).splitlines() == [str(checkout / own), str(checkout)]


def test_the_command_and_the_benchmarks_start_within_a_checkout(distributions: Path, checkout: Path, tmp_path: Path) -> None:
    place = install(distributions, tmp_path)
    for module in ("clsparse_py", "bench"):
        assert "usage" in run("-m", module, "--help", cwd=checkout, path=place)


def test_the_example_of_the_readme_runs_as_installed(distributions: Path, tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)
    assert example is not None
    program, output = example.groups()
    assert run("-c", program, cwd=tmp_path, path=install(distributions, tmp_path / "site")).strip() == output.strip()
    assert example.group() in (ROOT / "docs" / "index.md").read_text("utf-8")


def test_the_public_names_are_these() -> None:
    """Every other name that the package has is a module, and no function hides one."""
    modules = {path.stem for path in Path(clsparse_py.__file__).parent.iterdir()} - {"__init__"}
    assert set(clsparse_py.__all__) == PUBLIC
    others = {name for name in vars(clsparse_py) if not name.startswith("__")} - PUBLIC
    assert others - modules == set()
    assert modules & PUBLIC == {"amg", "csgraph", "distributed", "graph", "io", "linalg", "primitives"}


def test_without_its_dependencies_the_package_names_what_is_missing() -> None:
    # Without the folder of installed packages, and what the tests were given.
    command, path = [sys.executable, "-S", "-m", "clsparse_py", "devices"], {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert re.search(r"clsparse_py needs \w+, which this Python lacks: .*pip install '\.\[pocl\]'", last)
