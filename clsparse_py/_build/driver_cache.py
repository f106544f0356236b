"""Remove truncated files from PoCL's cache before PoCL loads them and ends the process (quirk 7).

A full disk truncates files, and so does a machine that stops. Checking all entries takes too long to be done by every process. So
each process that builds with PoCL leaves a mark file, and removes it when it ends normally, unless it met a broken entry. A
process that finds the mark of one that has ended checks all entries.
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
except ImportError:  # Windows has no locks that end with their process in the standard library
    fcntl = None  # type: ignore[assignment]

from clsparse_py._ground import cache, cache_dirs

__all__ = ["look_through", "suspect"]

_log = logging.getLogger(__name__)

#: The first two bits of a block of LLVM's bitcode that is not inside another block: the abbreviation ENTER_SUBBLOCK.
_ENTER = 1


@functools.cache
def look_through() -> None:
    """Leave this process's mark; if an earlier process did not end normally, remove truncated entries. Once a process."""
    entries = cache_dirs.find_pocl_cache()
    if fcntl is None or not entries.is_dir():
        return
    try:
        marks = cache.make_folder(f"building-{hashlib.sha256(os.fsencode(entries)).hexdigest()[:16]}")
        stale = [other for other in marks.iterdir() if _is_left(other)]
        mark = marks / secrets.token_hex(8)
        file = mark.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        atexit.register(_take_away, mark, file, os.getpid())
        if stale:
            for entry in _find_truncated(entries):
                _log.warning("%s is cut short: removed, and its kernels are built anew", entry)
                shutil.rmtree(entry, ignore_errors=True)
            for stale_mark in stale:
                stale_mark.unlink(missing_ok=True)
    except OSError as error:
        _log.info("PoCL's cache is not looked at: %s", error)


def suspect() -> None:
    """Leave this process's mark for the next one, which then checks all entries: a broken one was met."""
    atexit.unregister(_take_away)


def _is_left(mark: Path) -> bool:
    """Return whether the process that left a mark has ended: the system released its lock."""
    with mark.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _take_away(mark: Path, file: IO[bytes], owner: int) -> None:
    """Remove the mark, unless this process is a forked child of the mark's owner, which still runs."""
    if os.getpid() == owner:
        mark.unlink(missing_ok=True)
    file.close()


def _find_truncated(entries: Path) -> Iterator[Path]:
    """Yield the folders of programs that hold a truncated file.

    Files beside these folders are temporary: other PoCL processes may be writing them, and none loads them.
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
                continue  # another process has removed it
            yield entries.joinpath(*path.relative_to(entries).parts[:2])


def _is_whole_bitcode(file: IO[bytes], size: int) -> bool:
    """Return whether a file holds complete LLVM bitcode: its last block ends where the file ends."""
    if file.read(4) != b"BC\xc0\xde":
        return False
    offset = 4
    while offset < size:
        head = file.read(8)
        if len(head) < 8:
            return False
        begin, n_words = struct.unpack("<II", head)
        if begin & 3 != _ENTER:
            return True  # an unknown form: not for us to judge
        offset += 8 + 4 * n_words
        file.seek(offset)
    return offset == size


def _is_whole_elf(file: IO[bytes], size: int) -> bool:
    """Return whether a file holds a complete shared object: the table of sections, which comes last, is there."""
    head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF":
        return False
    if head[4:6] != b"\x02\x01":
        return True  # not 64-bit little-endian: not for us to judge
    (begin,) = struct.unpack_from("<Q", head, 0x28)
    bytes_of_one, n = struct.unpack_from("<HH", head, 0x3A)
    return bool(begin + bytes_of_one * n <= size)


_WHOLE = {".bc": _is_whole_bitcode, ".so": _is_whole_elf}
