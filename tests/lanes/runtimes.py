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
    found = (path for folder in ("lib", "lib64") for path in sorted((prefix / folder).glob("**/liboclgrind-rt-icd.so")))
    return next((str(path) for path in found), None)


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


def environment(folder: Path, library: str, platform: str, **settings: str) -> dict[str, str]:
    """Return the environment of a process whose default device is that of one platform, and which keeps nothing for others."""
    chosen = {"OCL_ICD_VENDORS": name_in(folder / "vendors", library), "PYOPENCL_CTX": platform}
    return {**os.environ, **chosen, "CLSPARSE_CACHE_DIR": str(folder / "cache"), "PYOPENCL_NO_CACHE": "1", **settings}


if __name__ == "__main__":
    from clsparse_py.device import devices, unusable
    from clsparse_py.runtimes import intel

    folder, found = Path(sys.argv[1]), [library for library in (intel(),) if library]
    # Set before `devices` asks for platforms: the loader reads the folder once.
    os.environ["OCL_ICD_VENDORS"] = name_in(folder, *found)
    if not found:
        print("Intel's runtime is not installed (its wheels are for x86 only): the tests run on PoCL alone", file=sys.stderr)
    if all(unusable(device) for device in devices() if "Portable" in device.platform.name) and (system := pocl()):
        print("PyPI's PoCL builds nothing for this processor: the tests run on the system's", file=sys.stderr)
        name_in(folder, *found, system)
