"""Atomic writes of files, and checks of their owner and permissions."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["distrust", "make_private", "replacing", "write_text"]

# Permission to write for the group or for all.
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of ``path`` if all goes well; else ``path`` stays as it was.

    A file that was there keeps its permissions, and a link keeps naming the file that it names. A device or a pipe, which
    nothing can take the place of, is written to.

    Parameters
    ----------
    path : pathlib.Path
        Its folder is there.
    private : bool
        Whether nobody else may read the file. If so, anything of that name is replaced: no link is followed.

    Raises
    ------
    OSError
        It cannot be written; the error names ``path``.
    """
    try:
        old = _mode(path) if not private else None
        if old is not None and not stat.S_ISREG(old):
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve() if path.is_symlink() and not private else path
        # In the same folder, as only there one step moves it. Never an existing file or a link: "x" makes a new one.
        temporary = target.with_name(f".writing-{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb", opener=functools.partial(os.open, mode=0o600 if private else 0o666)) as file:
                yield file
            if old is not None:
                temporary.chmod(stat.S_IMODE(old))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is None:
            raise
        # Who named the file knows no other name.
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing, as `replacing` does."""
    with replacing(path) as file:
        file.write(text.encode())


def _mode(path: Path) -> int | None:
    """Return the mode of the file; None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter, unless it is there; likewise those above it that are missing.

    Raises
    ------
    OSError
        It cannot be made.
    """
    missing = itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents))
    for parent in reversed([*missing]):
        parent.mkdir(mode=0o700, exist_ok=True)


def distrust(status: os.stat_result, owner: int | None = None) -> str | None:
    """Return why a file or folder may hold what another user put there; None if it cannot.

    Parameters
    ----------
    found : os.stat_result
        Of the file or folder.
    owner : int, optional
        The user whose it has to be; by default the one who runs this process.
    """
    if not hasattr(os, "geteuid"):
        return None  # permissions that tell users apart are POSIX's
    expected = os.geteuid() if owner is None else owner
    if status.st_uid != expected:
        return f"it belongs to user {status.st_uid}, not to user {expected}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return "other users may write to it"
    return None
