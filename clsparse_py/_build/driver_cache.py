"""Remove truncated files from PoCL's cache before PoCL loads them and ends the process (quirk 7).

A full disk truncates files, and so does a machine that stops. A check of all entries takes too long for every process. So a
process that builds with PoCL leaves a mark file, and removes the mark when it ends normally, unless it met a broken entry. A
process that finds the mark of an ended process checks all entries.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import secrets
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # on Windows, Python's standard library has no locks that end with their process
    fcntl = None  # type: ignore[assignment]

from clsparse_py._ground import cache, cache_dirs

__all__ = ["remove_truncated", "keep_mark"]

_log = logging.getLogger(__name__)

#: Value of the first two bits of an outermost block of LLVM's bitcode: the abbreviation ENTER_SUBBLOCK.
_ENTER = 1


@functools.cache
def remove_truncated() -> None:
    """Leave this process's mark file for PoCL's cache, and remove truncated entries if an earlier process ended abnormally."""
    entries = cache_dirs.find_pocl_cache()
    if fcntl is None or not entries.is_dir():
        return
    try:
        marks = cache.make_folder(f"building-{hashlib.sha256(os.fsencode(entries)).hexdigest()[:16]}")
        stale = [other for other in marks.iterdir() if _has_ended(other)]
        mark = marks / secrets.token_hex(8)
        file = mark.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        atexit.register(_remove_mark, mark, file, os.getpid())
        if stale:
            for entry in _find_truncated(entries):
                _log.warning("%s is cut short: removed, and its kernels are built anew", entry)
                shutil.rmtree(entry, ignore_errors=True)
            for stale_mark in stale:
                stale_mark.unlink(missing_ok=True)
    except OSError as error:
        _log.info("PoCL's cache is not looked at: %s", error)


def keep_mark() -> None:
    """Keep this process's mark file for PoCL's cache beyond the process's end: the next process then checks the whole cache."""
    atexit.unregister(_remove_mark)


def _has_ended(mark: Path) -> bool:
    """Return whether the process that left a mark file has ended, as the system released the lock of the file."""
    with mark.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _remove_mark(mark: Path, file: IO[bytes], owner: int) -> None:
    """Close the mark file of the process with the number ``owner``, and remove it, but not in a forked child of that process."""
    if os.getpid() == owner:
        mark.unlink(missing_ok=True)
    file.close()


def _find_truncated(entries: Path) -> Iterator[Path]:
    """Yield the folders of programs in PoCL's cache that hold a truncated file.

    Files beside these folders are temporary: other processes may be writing them, and none loads them.
    """
    for folder, _, names in os.walk(entries):
        for name in names if folder != os.fspath(entries) else ():
            path = Path(folder, name)
            is_whole = _WHOLE.get(path.suffix)
            if is_whole is None:
                continue
            try:
                with path.open("rb") as file:
                    if is_whole(file, os.fstat(file.fileno()).st_size):
                        continue
            except OSError:
                continue  # another process has removed the file
            yield entries.joinpath(*path.relative_to(entries).parts[:2])


def _is_whole_bitcode(file: IO[bytes], size: int) -> bool:
    """Return whether a file holds complete LLVM bitcode, its last block ending at the file's end; True for unknown forms."""
    if file.read(4) != b"BC\xc0\xde":
        return False
    offset = 4
    while offset < size:
        head = file.read(8)
        if len(head) < 8:
            return False
        begin, n_words = struct.unpack("<II", head)
        if begin & 3 != _ENTER:
            return True  # bitcode of an unknown form is not checked
        offset += 8 + 4 * n_words
        file.seek(offset)
    return offset == size


def _is_whole_elf(file: IO[bytes], size: int) -> bool:
    """Return whether a shared object (ELF) reaches the end of its table of sections; True if not 64-bit and little-endian."""
    head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF":
        return False
    if head[4:6] != b"\x02\x01":
        return True  # only 64-bit little-endian files are checked
    (begin,) = struct.unpack_from("<Q", head, 0x28)
    bytes_of_one, n = struct.unpack_from("<HH", head, 0x3A)
    return bool(begin + bytes_of_one * n <= size)


#: Functions that tell whether a file of PoCL's cache is complete, by the suffix of the file.
_WHOLE = {".bc": _is_whole_bitcode, ".so": _is_whole_elf}
