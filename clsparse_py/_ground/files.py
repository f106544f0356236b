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

#: Bits of a file's mode that let the group or all users write.
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file to write, which takes the place of ``path`` if nothing fails; else ``path`` stays as it was.

    A file that was there keeps its permissions, and a link keeps naming its file. A device or a pipe cannot be replaced, and is
    written to.

    Parameters
    ----------
    path : pathlib.Path
        A path whose folder exists.
    private : bool
        Whether nobody else may read the file. If so, anything of that name is replaced: no link is followed.

    Raises
    ------
    OSError
        The file cannot be written; the error names ``path``.
    """
    try:
        old = _mode(path) if not private else None
        if old is not None and not stat.S_ISREG(old):
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve() if path.is_symlink() and not private else path
        # The temporary file lies in the folder of the target, where a move is one step. Mode "x" opens no existing file or link.
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
        # The error names `path`, as the caller does not know the name of the temporary file.
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, the whole text or nothing, by way of a temporary file."""
    with replacing(path) as file:
        file.write(text.encode())


def _mode(path: Path) -> int | None:
    """Return the mode bits (type and permissions) of a file; None if there is no such file."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter, unless it exists; likewise its missing parents.

    Raises
    ------
    OSError
        A folder cannot be made.
    """
    missing = itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents))
    for parent in reversed([*missing]):
        parent.mkdir(mode=0o700, exist_ok=True)


def distrust(status: os.stat_result, owner: int | None = None) -> str | None:
    """Return why a file or folder is not trusted, as another user may have written to it; None if it is trusted.

    Parameters
    ----------
    status : os.stat_result
        Owner and mode of the file or folder.
    owner : int, optional
        The id of the user who has to own it; by default the user of this process.
    """
    if not hasattr(os, "geteuid"):
        return None  # only POSIX has permissions of users
    expected = os.geteuid() if owner is None else owner
    if status.st_uid != expected:
        return f"it belongs to user {status.st_uid}, not to user {expected}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return "other users may write to it"
    return None
