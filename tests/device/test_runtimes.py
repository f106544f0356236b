"""Runtimes that pip installed: found before the first query, or named with what to do."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from clsparse_py import NoDeviceError
from clsparse_py._device import device, runtimes
from clsparse_py._ground import cache_dirs

INTEL = runtimes.find_intel()
needs_intel = pytest.mark.skipif(INTEL is None, reason="pip has not installed Intel's runtime here")
PRINT_PLATFORMS = "print(*(platform.name for platform in cl.get_platforms()), sep='\\n')"


def run(code: str, cache: Path | None, **settings: str) -> list[str]:
    """Return the lines that a new process prints whose environment names no runtime."""
    chosen = ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "PYOPENCL_HOME", "PYOPENCL_CTX")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    environment |= {"CLSPARSE_CACHE_DIR": str(cache or ""), **settings}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names a runtime, and the system has none of Intel's."""
    for name in ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYOPENCL_HOME", str(Path(cl.__file__).parent))
    monkeypatch.setattr(runtimes, "_VENDORS", Path("/nowhere"))


@needs_intel
def test_intels_runtime_is_found_beside_the_systems(tmp_path: Path) -> None:
    before = run(f"import pyopencl as cl; {PRINT_PLATFORMS}", tmp_path / "cache")
    result = run(f"import clsparse_py, pyopencl as cl; {PRINT_PLATFORMS}", tmp_path / "cache")
    again = run(f"import clsparse_py, pyopencl as cl; {PRINT_PLATFORMS}", tmp_path / "cache")
    wanted = before if "Intel(R) OpenCL" in before else [*before, "Intel(R) OpenCL"]
    assert sorted(result) == sorted(again) == sorted(wanted)
    made = list((tmp_path / "cache").rglob("*"))
    assert not any(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) for path in [tmp_path / "cache", *made])


@needs_intel
def test_a_child_finds_what_its_parent_found(tmp_path: Path) -> None:
    child = f"import clsparse_py, pyopencl as cl; {PRINT_PLATFORMS}"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    printed = run(f"{child}; print('', flush=True); {start}", tmp_path)
    middle = printed.index("")
    assert sorted(printed[:middle]) == sorted(printed[middle + 1 :])


@needs_intel
@pytest.mark.usefixtures("as_installed")
def test_the_users_choice_of_runtimes_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "/empty/")
    before = dict(os.environ)
    runtimes.register()
    assert dict(os.environ) == before
    monkeypatch.setattr(cl, "get_platforms", list)
    assert (
        f"Intel's runtime is installed ({INTEL}) and not used, as OCL_ICD_VENDORS='/empty/' names others."
        in runtimes.explain_unseen()
    )
    monkeypatch.setattr(device, "devices", list)
    with pytest.raises(NoDeviceError, match=r"no OpenCL device was found\. Intel's runtime is installed"):
        device.choose_device()


@needs_intel
@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("named", ["libintelocl.so", INTEL])
def test_what_the_system_names_is_not_named_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: Any) -> None:
    (tmp_path / "of_a_driver.icd").write_text("libnvidia-opencl.so.1\n")
    (tmp_path / "no_text.icd").write_bytes(b"\xff\xfe")
    (tmp_path / "left_behind.icd").write_text("/opt/removed/lib/libintelocl.so\n")
    monkeypatch.setattr(runtimes, "_VENDORS", tmp_path)
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "cache"))
    own = os.environ["PYOPENCL_HOME"]
    (tmp_path / "intel.icd").write_text(f"{named}\n")
    runtimes.register()
    assert os.environ["PYOPENCL_HOME"] == own
    (tmp_path / "intel.icd").unlink()
    runtimes.register()
    assert os.environ["PYOPENCL_HOME"] != own


@needs_intel
def test_pyopencl_that_was_asked_before_is_told(tmp_path: Path) -> None:
    ask = "import pyopencl as cl\ntry: cl.get_platforms()\nexcept cl.Error: pass\n"
    said = run(f"{ask}from clsparse_py._device import runtimes; print(runtimes.explain_unseen())", tmp_path)
    assert "PyOpenCL was asked for its platforms before. Import clsparse_py first." in said[0]
    assert run("from clsparse_py._device import runtimes; print(runtimes.explain_unseen())", tmp_path) == [""]


@needs_intel
@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("damage", ["a file", "open to all"])
@pytest.mark.parametrize("temporary", [True, False])
def test_a_folder_that_cannot_be_used_costs_no_runtime(
    damage: str, temporary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "cache"
    if damage == "a file":
        cache.write_text("")
    else:
        cache.mkdir()
        cache.chmod(0o777)
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(cache))
    monkeypatch.setattr(cache_dirs.tempfile, "tempdir", str(tmp_path if temporary else cache / "none"))
    own = os.environ["PYOPENCL_HOME"]
    runtimes.register()
    monkeypatch.setattr(cl, "get_platforms", list)
    if temporary:
        assert f"{INTEL}\n" in [file.read_text() for file in Path(os.environ["PYOPENCL_HOME"], ".libs").iterdir()]
        assert not caplog.records
        assert "could not be kept" not in runtimes.explain_unseen()
    else:
        assert os.environ["PYOPENCL_HOME"] == own
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert f"its name could not be kept in {cache}" in runtimes.explain_unseen()


_USE = """
import logging, os, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
os.chdir(os.environ["PLACE"])
import numpy as np, clsparse_py as sp
A = sp.csr_array(np.eye(3, dtype=np.float32))
assert ((A @ np.ones(3, np.float32)) == 1).all()
print(*((of.platform.name, of.driver_version, of.name) for of in (*sp.devices(), A.queue.device)), sep=" // ")
"""


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The devices in their order, and the default one, where nothing is wrong."""
    folder = tmp_path_factory.mktemp("unharmed")
    (result,) = run(_USE, folder / "cache", PLACE=str(folder))
    return result


@pytest.mark.parametrize(
    ("name", "folder", "said"),
    [
        ("HOME", "/dev/null", "cannot be written to: kernels are kept in a temporary folder"),
        ("XDG_CACHE_HOME", "/proc", "cannot be written to: kernels are kept in a temporary folder"),
        ("XDG_CACHE_HOME", "no/absolute/path", "is no absolute path, and is passed over"),
        ("CLSPARSE_CACHE_DIR", "/dev/null/x", "nothing can be kept in /dev/null/x"),
        ("CLSPARSE_CACHE_DIR", f"/dev/null/{'a' * 300}", "nothing can be kept in /dev/null/aaa"),
        ("CLSPARSE_CACHE_DIR", "/proc/nope", "nothing can be kept in /proc/nope"),
        ("PYOPENCL_HOME", "/dev/null", ""),
        ("POCL_CACHE_DIR", "", ""),  # at which PoCL ends a process
    ],
)
def test_folders_that_cannot_be_used_cost_one_sentence_and_no_device(
    tmp_path: Path, unharmed: str, name: str, folder: str, said: str
) -> None:
    (tmp_path / "place").mkdir()
    environment = {"PLACE": str(tmp_path / "place"), "XDG_CACHE_HOME": str(tmp_path / "cache"), name: folder}
    if name == "HOME":
        environment["XDG_CACHE_HOME"] = ""  # as if there were none
    *lines, result = run(_USE, None if "HOME" in name else tmp_path / "cache", **environment)
    assert result == unharmed
    assert len(lines) == bool(said), lines
    assert all(said in line for line in lines)
    assert not list((tmp_path / "place").iterdir())


@needs_intel
def test_two_copies_of_a_runtime_are_one(tmp_path: Path) -> None:
    """By one path twice, by a link, and by a copy that the loader finds beside PyOpenCL."""
    assert INTEL
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.icd").write_text(f"{INTEL}\n")
    once = run(_USE, tmp_path / "cache", PLACE=str(tmp_path), OCL_ICD_VENDORS=f"{tmp_path}/one/")
    shutil.copytree(tmp_path / "one", tmp_path / "more")
    (tmp_path / "libintelocl.so").symlink_to(INTEL)
    beside = (Path(cl.__file__).parent / ".libs").glob("libpocl*.so*")
    for number, library in enumerate((INTEL, tmp_path / "libintelocl.so", *beside)):
        (tmp_path / "more" / f"{number}.icd").write_text(f"{library}\n")
    assert sorted(once[0].split(" // ")) == sorted(
        run(_USE, tmp_path / "cache", PLACE=str(tmp_path), OCL_ICD_VENDORS=f"{tmp_path}/more/")[0].split(" // ")
    )


@needs_intel
@pytest.mark.parametrize("ending", ["", "/"])
def test_a_folder_that_names_no_runtime_is_said(tmp_path: Path, ending: str) -> None:
    """What is left is used, such as PyPI's PoCL, and the list of devices says which is not, and why."""
    (tmp_path / "empty").mkdir()
    code = "import sys; sys.stderr = sys.stdout; sys.argv = ['clsparse', 'devices']; import clsparse_command as c; c.main()"
    done = "\n".join(run(code, tmp_path / "cache", OCL_ICD_VENDORS=f"{tmp_path}/empty{ending}"))
    assert done.count(f"Intel's runtime is installed ({INTEL}) and not used, as OCL_ICD_VENDORS=") == 1
    assert "Traceback" not in done


@needs_intel
@pytest.mark.usefixtures("as_installed")
def test_a_library_that_does_not_load_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "libintelocl.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(runtimes, "find_intel", lambda: broken)
    monkeypatch.setattr(cl, "get_platforms", list)
    assert f"Intel's runtime is installed ({broken}) and not used, as it does not load: {broken}: " in runtimes.explain_unseen()


@needs_intel
@pytest.mark.usefixtures("as_installed")
def test_other_loaders_are_given_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # PyOpenCL without a loader of its own, as from conda.
    monkeypatch.setattr(cl, "__file__", str(tmp_path / "pyopencl" / "__init__.py"))
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/of/the/user.so")
    own = os.environ["PYOPENCL_HOME"]
    for _ in range(2):
        runtimes.register()
        assert os.environ["OCL_ICD_FILENAMES"] == f"/of/the/user.so{os.pathsep}{INTEL}"
    assert os.environ["PYOPENCL_HOME"] == own


@pytest.mark.parametrize(
    ("system", "advice"),
    [
        ("darwin", "or PoCL from conda-forge (conda install -c conda-forge pyopencl pocl)."),
        ("win32", "or Intel's runtime for any x86-64 CPU (pip install intel-opencl-rt intel-cmplr-lib-rt)."),
        ("linux", "or PoCL, from your distribution (Debian: pocl-opencl-icd) or"),
    ],
)
def test_elsewhere_one_sentence_says_which_runtime_to_install(monkeypatch: pytest.MonkeyPatch, system: str, advice: str) -> None:
    monkeypatch.setattr(runtimes, "_X86_LINUX", False)
    monkeypatch.setattr(sys, "platform", system)
    assert runtimes.advice().startswith("Install a driver for your device, or ")
    assert advice in runtimes.advice()


def test_what_is_installed_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "_X86_LINUX", True)
    monkeypatch.setattr(runtimes, "find_intel", lambda: None)
    monkeypatch.setattr(runtimes, "_is_installed", lambda name: name == "pocl-binary-distribution")
    said = "or Intel's runtime for any x86-64 CPU (pip install intel-opencl-rt intel-cmplr-lib-rt)."
    assert runtimes.advice() == f"Install a driver for your device, {said}"
