"""Find OpenCL runtimes that pip installed, and register them with the OpenCL loader.

A loader finds runtimes by files in ``/etc/OpenCL/vendors``, where pip cannot write. The loader in PyOpenCL's wheels also reads
the files in ``$PYOPENCL_HOME/.libs``; Khronos's loader also reads the list ``OCL_ICD_FILENAMES``. The drivers of the system stay
visible in both ways.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import logging
import os
import platform
import sys
from pathlib import Path

import pyopencl as cl

from clsparse_py._ground import cache, cache_dirs
from clsparse_py._ground.files import distrust, replacing

__all__ = ["advice", "explain_unseen", "find_intel", "register"]

_log = logging.getLogger(__name__)

#: Name of the platform of Intel's runtime for CPUs; the platform of Intel's GPUs has another name.
_INTEL = "Intel(R) OpenCL"
#: Folder of the ``.icd`` files that the system's OpenCL loader reads.
_VENDORS = Path("/etc/OpenCL/vendors")
#: Whether this process runs on Linux on x86-64, for which pip has Intel's runtime.
_X86_LINUX = sys.platform == "linux" and platform.machine() == "x86_64"


def find_intel() -> Path | None:
    """Return the path of the library of Intel's CPU runtime that pip installed for this Python; None if it is not installed."""
    files = (file for package in importlib.metadata.distributions(name="intel-opencl-rt") for file in package.files or ())
    paths = (Path(str(file.locate())).resolve() for file in files if file.name in ("libintelocl.so", "intelocl64.dll"))
    return next((path for path in paths if path.exists()), None)


def register() -> None:
    """Register Intel's CPU runtime, if pip installed it, with the OpenCL loader, before the loader first lists its platforms.

    Nothing is done if the user chose the runtimes by ``OCL_ICD_VENDORS``, or if the system has Intel's runtime: a process must
    not load a runtime twice (quirk 15). If no file can be written, not even in a temporary folder, `explain_unseen` says so.
    """
    library = find_intel() if _X86_LINUX or sys.platform == "win32" else None
    if library is None or "OCL_ICD_VENDORS" in os.environ or any(map(_names_intel, _VENDORS.glob("*.icd"))):
        return
    bundled = Path(cl.__file__).parent / ".libs"
    libraries = [str(library), *(_library(file) for file in sorted(bundled.glob("*.icd")))]
    if not any(bundled.glob("libOpenCL*")):
        listed = [entry for entry in os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep) if entry]
        os.environ["OCL_ICD_FILENAMES"] = os.pathsep.join(dict.fromkeys((*listed, *libraries)))
        return
    try:
        # PyOpenCL sets PYOPENCL_HOME at each import, so that no child process inherits our value.
        os.environ["PYOPENCL_HOME"] = str(_home(libraries))
    except OSError as error:
        _log.warning("Intel's runtime cannot be made known to the OpenCL loader: %s", error)


def _library(file: Path) -> str:
    """Return the library that an ``.icd`` file names: its path if it lies in the file's folder, else the name as it stands."""
    named = file.read_text(encoding="utf-8").strip()
    return str(file.parent / named) if (file.parent / named).exists() else named


def _names_intel(file: Path) -> bool:
    """Return whether an ``.icd`` file names Intel's runtime: a path that exists, or a bare name for the linker to find."""
    try:
        named = Path(file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return False
    return named.name.startswith("libintelocl.so") and (named.exists() or not named.is_absolute())


def _home(libraries: list[str]) -> Path:
    """Return a folder for ``PYOPENCL_HOME``, whose ``.libs`` has an ``.icd`` file for each library and nothing else.

    The folder's name is a digest of its content, so that processes share it and none changes it. If the folder cannot be kept in
    the cache, it is a temporary one of this process alone.
    """
    try:
        home = cache.make_folder(f"runtimes-{cache.key_of(*libraries)[:16]}")
        _name_in(cache.make_folder(f"{home.name}/.libs"), libraries, cache.folder(), home)
    except OSError as error:
        # No warning of an unusable cache folder is given here, as the cache gives it when it writes an entry.
        _log.info("runtimes are named in a temporary folder: %s", error)
        home = cache_dirs.make_temporary_folder()
        folder = home / ".libs"
        folder.mkdir()
        _name_in(folder, libraries)
    return home


def _name_in(folder: Path, libraries: list[str], *above: Path) -> None:
    """Write the missing ``.icd`` file of each library into a folder; raise an error if others may write there or in ``above``."""
    for parent in (*above, folder):
        if reason := distrust(parent.stat()):
            raise PermissionError(f"{parent} cannot be used: {reason}")
    for number, library in enumerate(libraries):
        file = folder / f"{number}.icd"
        if not file.exists():
            with replacing(file, private=True) as output:
                output.write(f"{library}\n".encode())


def explain_unseen() -> str:
    """Return the sentence for users that Intel's runtime is installed and not used, why, and what to do; else ""."""
    library = find_intel() if _X86_LINUX else None
    if library is None or _INTEL in _platforms():
        return ""
    if (vendors := os.environ.get("OCL_ICD_VENDORS")) is not None:
        why = f"OCL_ICD_VENDORS={vendors!r} names others. Unset it, or put a file intel.icd with that path into this folder"
    elif error := _refusal(library):
        why = f"it does not load: {error}. pip install intel-cmplr-lib-rt brings what it needs"
    elif not _is_registered(library):
        why = f"its name could not be kept in {cache.folder()}. Let CLSPARSE_CACHE_DIR name a folder of yours"
    else:
        why = "PyOpenCL was asked for its platforms before. Import clsparse_py first"
    return f"Intel's runtime is installed ({library}) and not used, as {why}."


def _platforms() -> set[str]:
    """Return the names of the OpenCL platforms."""
    try:
        return {platform.name.strip() for platform in cl.get_platforms()}
    except cl.Error:  # the loader's error without any platform
        return set()


def _refusal(library: Path) -> str:
    """Return why the system's linker does not load a library; "" if the linker loads it."""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return ""


def _is_registered(library: Path) -> bool:
    """Return whether the OpenCL loader of this process knows a library of Intel's runtime."""
    listed = os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep)
    files = Path(os.environ["PYOPENCL_HOME"], ".libs").glob("*.icd")
    return str(library) in (*listed, *map(_library, files)) or any(map(_names_intel, _VENDORS.glob("*.icd")))


def advice() -> str:
    """Return the advice to a user without a usable device: why an installed runtime is not used, or which one to install."""
    return explain_unseen() or f"Install a driver for your device{_cpu_runtimes()}."


def _cpu_runtimes() -> str:
    """Return the end of the advice: the runtimes for CPUs that can be installed on this system, and how."""
    if _X86_LINUX:
        ways = {
            "intel-opencl-rt": "Intel's runtime for any x86-64 CPU (pip install intel-opencl-rt intel-cmplr-lib-rt)",
            "pocl-binary-distribution": 'PoCL (pip install "pyopencl[pocl]")',
        }
        return "".join(f", or {way}" for name, way in ways.items() if not _is_installed(name))
    if sys.platform == "darwin":
        return ", or PoCL from conda-forge (conda install -c conda-forge pyopencl pocl)"
    if sys.platform == "win32":
        return ", or Intel's runtime for any x86-64 CPU (pip install intel-opencl-rt intel-cmplr-lib-rt)"
    return ", or PoCL, from your distribution (Debian: pocl-opencl-icd) or from conda-forge (conda install -c conda-forge pocl)"


def _is_installed(distribution: str) -> bool:
    """Return whether a Python distribution is installed."""
    return any(True for _ in importlib.metadata.distributions(name=distribution))
