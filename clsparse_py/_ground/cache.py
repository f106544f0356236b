"""A cache of bytes on disk, shared by processes: built programs and results of probes.

Several processes may share the folder. An entry is written to a file of its own and moved into place, so that a reader sees
all of it or nothing, and it carries a checksum of its key and content. Whatever goes wrong (a damaged file, a folder that cannot
be written, a full disk) costs the time of doing the work again and is logged once a process; it is never an error. No locks: two
processes that miss at the same time both do the work, and the last one's entry stays.

An entry may be code that runs in this process. So on POSIX the folder is made for its owner alone, and nothing is taken from a
folder or file that is another user's or that other users may write to. ``CLSPARSE_SHARED_CACHE`` names a folder of root's that
is read too, and never written.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import platformdirs

from clsparse_py._ground.files import distrust, make_private, replacing

__all__ = ["folder", "key_of", "load", "make_folder", "read", "write"]

_log = logging.getLogger(__name__)
#: First bytes of the file of a cache entry: the name and the version of the file's format.
_MAGIC = b"clsparse_py cache 2\n"
#: Number of bytes of a cache entry's checksum.
_DIGEST = hashlib.sha256().digest_size
#: User id of the system's administrator.
_ROOT = 0

#: Type of a parsed cache entry, for type checkers.
T = TypeVar("T")


def folder() -> Path:
    """Return the folder of cache entries: ``CLSPARSE_CACHE_DIR``, or the user's cache folder."""
    named = os.environ.get("CLSPARSE_CACHE_DIR")
    return Path(named) if named else platformdirs.user_cache_path("clsparse_py")


def make_folder(below: str = "") -> Path:
    """Return the folder of cache entries, or a folder below it, after making it for its owner alone if it is missing.

    Raises
    ------
    OSError
        The folder cannot be made, or the user has no home folder.
    """
    path = folder()
    if path.parts[:1] == ("~",):
        raise FileNotFoundError("the user has no home folder; CLSPARSE_CACHE_DIR may name a folder")
    path /= below
    make_private(path)
    return path


def key_of(*parts: str) -> str:
    """Return the name of a cache entry whose content depends on ``parts`` alone: their hash."""
    digest = hashlib.sha256(_MAGIC)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def load(key: str, parse: Callable[[bytes], T]) -> T | None:
    """Return the result of ``parse`` for the cache entry under ``key``; None if there is no entry, or ``parse`` raises.

    An error that ``parse`` raises means that the entry has another form, as of another version: the work is done again.
    """
    payload = read(key)
    if payload is None:
        return None
    try:
        return parse(payload)
    except Exception as error:
        _log_trouble(folder(), "cache entry %s cannot be used (%s): the work is done again", key, _describe(error))
        return None


def read(key: str) -> bytes | None:
    """Return the cache entry under ``key``; None if it is missing, damaged or not to be trusted."""
    for directory, owner in _list_folders():
        content = _read_trusted(directory, key, owner)
        if content is None:
            continue
        payload = content[len(_MAGIC) + _DIGEST :]
        if content == _entry(key, payload):
            return payload
        _log_trouble(directory, "cache entry %s is damaged: the work is done again", directory / key)
    return None


def _list_folders() -> Iterator[tuple[Path, int | None]]:
    """Yield the folders that cache entries are read from, with the user id of the folder's owner; None is this process's user."""
    yield folder(), None
    shared = os.environ.get("CLSPARSE_SHARED_CACHE")
    if shared:
        yield Path(shared), _ROOT


def _read_trusted(directory: Path, key: str, owner: int | None) -> bytes | None:
    """Return the content of the file of a cache entry; None if the file is missing, cannot be read or is not to be trusted."""
    path = directory / key
    try:
        status = directory.stat()
    except OSError:
        return None  # `write` logs the trouble with the folder
    try:
        reason = distrust(status, owner)
        if reason is not None:
            _log_trouble(directory, "nothing is taken from %s: %s", directory, reason)
            return None
        with open(path, "rb", opener=_open_without_links) as file:
            reason = distrust(os.fstat(file.fileno()), owner)
            if reason is None:
                return file.read()
            _log_trouble(directory, "cache entry %s is not taken: %s", path, reason)
    except FileNotFoundError:
        pass
    except OSError as error:
        _log_trouble(directory, "cache entry %s cannot be read (%s): the work is done again", path, error)
    return None


def _open_without_links(path: str, flags: int) -> int:
    """Open the file of a cache entry unless its path is a symbolic link, and return the file descriptor."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def write(key: str, payload: bytes) -> None:
    """Write a cache entry: ``payload`` under ``key``. A failure is logged, and raises nothing."""
    try:
        target = make_folder()
        reason = distrust(target.stat())
        if reason is None:
            with replacing(target / key, private=True) as file:
                file.write(_entry(key, payload))
    except OSError as error:
        reason = str(error)
    if reason is not None:
        _log_trouble(folder(), "nothing can be kept in %s (%s): the next process does the work again", folder(), reason)


def _entry(key: str, payload: bytes) -> bytes:
    """Return the content of a cache entry's file: the format's name, the checksum of key and payload, and the payload."""
    return _MAGIC + hashlib.sha256(key.encode() + payload).digest() + payload


#: Troubles with cache folders that were logged: pairs of a folder and a message.
_logged: set[tuple[Path, str]] = set()


def _log_trouble(directory: Path, message: str, *values: object) -> None:
    """Log a trouble with a cache folder: as a warning the first time, at the level of debugging later."""
    _log.log(logging.DEBUG if (directory, message) in _logged else logging.WARNING, message, *values)
    _logged.add((directory, message))


def _describe(error: Exception) -> str:
    """Return the class of an error and the first line of its message, for a log."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
