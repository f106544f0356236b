"""Cache folders for PyOpenCL and PoCL, which fail without them (quirk 8).

A home folder may not be there, may be a file, may belong to root after a ``sudo``, or lie on a disk that is read only. Then a
temporary folder takes its place for this process, so that a product costs the time to build its kernels and nothing else.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

import platformdirs

__all__ = ["find_pocl_cache", "make_temporary_folder", "provide"]

_log = logging.getLogger(__name__)

#: Folders below the user's cache folder that have to be writable: pytools', which holds PyOpenCL's launchers, and PoCL's.
_NEEDED = ("pytools", "pocl/kcache")


def provide() -> None:
    """Let a temporary folder take the place of a cache folder, the user's or PoCL's, that cannot be written to.

    This process alone is affected. If there is no temporary folder either, PyOpenCL is left to report it.
    """
    if sys.platform in ("darwin", "win32"):
        return  # variables of the environment do not name the cache folders of these systems
    for name in ("XDG_CACHE_HOME", "POCL_CACHE_DIR"):
        named = os.environ.get(name, "/")
        if not Path(named).is_absolute():  # PoCL accepts relative paths, and ends the process if the path is empty
            del os.environ[name]
            _log.log(logging.WARNING if named else logging.DEBUG, "%s=%r is no absolute path, and is passed over", name, named)
    cache = Path(platformdirs.user_cache_dir())
    of_pocl = os.environ.get("POCL_CACHE_DIR")
    if not all(_can_be_written(cache / needed) for needed in _NEEDED):
        _replace("XDG_CACHE_HOME", cache)
    if of_pocl and not _can_be_written(Path(of_pocl)):
        _replace("POCL_CACHE_DIR", Path(of_pocl))


def find_pocl_cache() -> Path:
    """Return the folder of PoCL's own cache."""
    named = os.environ.get("POCL_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir()) / "pocl/kcache"


def _can_be_written(folder: Path) -> bool:
    """Return whether subfolders can be made in a folder, or in its closest parent that exists, by making one on trial."""
    if not folder.is_absolute():
        return False  # the path begins with "~" if the user has no home folder
    try:
        existing = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
        trial = existing / f".clsparse_py-{secrets.token_hex(8)}"
        trial.mkdir(mode=0o700)
        trial.rmdir()
    except OSError:
        return False
    return True


def make_temporary_folder() -> Path:
    """Return the path of a new temporary folder that only this user may enter, and that is removed when the process ends.

    Raises
    ------
    OSError
        There is no place for a temporary folder.
    """
    path = tempfile.mkdtemp(prefix="clsparse_py-")
    atexit.register(_remove, path, os.getpid())
    return Path(path)


def _replace(variable: str, folder: Path) -> None:
    """Let a variable of the environment name a temporary folder in place of a cache folder that cannot be written to."""
    try:
        os.environ[variable] = str(make_temporary_folder())
    except OSError as error:
        _log.warning("%s cannot be written to, and there is no temporary folder either: %s", folder, error)
        return
    _log.warning("%s cannot be written to: kernels are kept in a temporary folder, and built anew by the next process", folder)


def _remove(folder: str, owner: int) -> None:
    """Remove a temporary folder, unless this process is a fork of the owner, which goes on using the folder."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
