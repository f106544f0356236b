"""Which OpenCL runtimes there are for the tests, and folders of ``.icd`` files that name them to the OpenCL loader.

``python tests/lanes/runtimes.py FOLDER`` names in a new FOLDER what pip installed beside this Python: set ``OCL_ICD_VENDORS`` to
it, *with a trailing slash*. From a virtual environment Intel's runtime is not found otherwise: the ``.icd`` file that it installs
holds a prefix that nobody replaced. PoCL needs no file, as pyopencl's loader always adds its own. On processors that PyPI's PoCL
builds nothing for, Debian's is named in its place, if it is installed.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

RUSTICL = "rusticl"
OCLGRIND = "Oclgrind"


def intel() -> str | None:
    """Return the library of Intel's CPU runtime that pip installed beside this Python."""
    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())).resolve() for file in files if file.name == "libintelocl.so")
    return next((str(path) for path in found if path.exists()), None)


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


def name_in(folder: Path, *libraries: str) -> str:
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
    library = intel()
    os.environ["OCL_ICD_VENDORS"] = name_in(Path(sys.argv[1]), *([library] if library else []))
    if library is None:
        print("Intel's runtime is not installed (its wheels are for x86 only): the tests run on PoCL alone", file=sys.stderr)

    from clsparse_py.device import devices, unusable  # here, as the loader reads the folder once

    if all(unusable(device) for device in devices() if "Portable" in device.platform.name) and (system := pocl()):
        print("PyPI's PoCL builds nothing for this processor: the tests run on the system's", file=sys.stderr)
        name_in(Path(sys.argv[1]), *filter(None, (library, system)))
