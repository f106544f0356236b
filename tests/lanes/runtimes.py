"""Which OpenCL runtimes there are for the tests, and folders of ``.icd`` files that name them to the OpenCL loader.

``python tests/lanes/runtimes.py FOLDER`` names in a new FOLDER what pip installed beside this Python: set ``OCL_ICD_VENDORS`` to
it, *with a trailing slash*; the system's runtimes are hidden then. PoCL needs no file, as pyopencl's loader always adds its own.
On processors that PyPI's PoCL builds nothing for, Debian's is named in its place, if it is installed.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import sys
from pathlib import Path

import pyopencl

RUSTICL = "rusticl"
OCLGRIND = "Oclgrind"


def rusticl() -> str | None:
    """Return the library of Mesa's rusticl."""
    return ctypes.util.find_library("RusticlOpenCL")


def oclgrind() -> str | None:
    """Return Oclgrind's library: it lies in no folder that the system's linker searches, so it is looked for from its program."""
    program = shutil.which("oclgrind")
    if program is None:
        return None
    prefix = Path(program).resolve().parent.parent
    actual = (path for folder in ("lib", "lib64") for path in sorted((prefix / folder).glob("**/liboclgrind-rt-icd.so")))
    return next((str(path) for path in actual), None)


def pocl() -> str | None:
    """Return the library of Debian's PoCL."""
    return ctypes.util.find_library("pocl")


def name_in(folder: Path, *libraries: str | Path) -> str:
    """Write an ``.icd`` file for each library and return what ``OCL_ICD_VENDORS`` has to be."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.icd"):
        old.unlink()
    for library in libraries:
        (folder / f"{Path(library).name.split('.')[0]}.icd").write_text(f"{library}\n")
    return f"{folder.resolve()}/"


def bundled_pocl() -> str | None:
    """Return the library of PyPI's PoCL, which PyOpenCL's own loader finds beside itself, whatever else is named to it."""
    actual = (Path(pyopencl.__file__).parent / ".libs").glob("libpocl*.so*")
    return next((str(path) for path in actual), None)


def environment(folder: Path, platform: str, *libraries: str, **settings: str) -> dict[str, str]:
    """Return the environment of a process that sees PyPI's PoCL and these libraries alone, and which keeps nothing for others.

    Parameters
    ----------
    folder : Path
        For what the process keeps.
    platform : str
        What `PYOPENCL_CTX` names: a part of a platform's name, or its number, as these libraries come before PyPI's PoCL. Empty
        for the default.
    *libraries : str
        Runtimes.
    **settings : str
        More variables.
    """
    chosen = {"OCL_ICD_VENDORS": name_in(folder / "vendors", *libraries), "PYOPENCL_CTX": platform, "PYOPENCL_NO_CACHE": "1"}
    kept = {"CLSPARSE_CACHE_DIR": str(folder / "cache"), "POCL_CACHE_DIR": str(folder / "pocl")}
    return {**os.environ, **chosen, **kept, **settings}


if __name__ == "__main__":
    from clsparse_py._device.device import devices, unusable
    from clsparse_py._device.runtimes import find_intel

    folder, result = Path(sys.argv[1]), [library for library in (find_intel(),) if library]
    # Set before `devices` asks for platforms: the loader reads the folder once.
    os.environ["OCL_ICD_VENDORS"] = name_in(folder, *result)
    if not result:
        print("Intel's runtime is not installed (its wheels are for x86 only): the tests run on PoCL alone", file=sys.stderr)
    if all(unusable(device) for device in devices() if "Portable" in device.platform.name) and (system := pocl()):
        print("PyPI's PoCL builds nothing for this processor: the tests run on the system's", file=sys.stderr)
        name_in(folder, *result, system)
