"""Bytes kept on disk across processes: built programs and what probing a device found.

Several processes may share the folder. An entry is written to a file of its own and moved into place, so that a reader sees
all of it or nothing, and it carries its checksum. Whatever goes wrong (a damaged file, a folder that cannot be written, a full
disk) costs the time of doing the work again and is logged; it is never an error. No locks: two processes that miss at the same
time both do the work, and the last one's entry stays.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path

import platformdirs

__all__ = ["folder", "key_of", "read", "write"]

_log = logging.getLogger(__name__)
_MAGIC = b"clsparse_py cache 1\n"


def folder() -> Path:
    """Where entries are kept: ``CLSPARSE_CACHE_DIR``, or the user's cache folder."""
    named = os.environ.get("CLSPARSE_CACHE_DIR")
    return Path(named) if named else platformdirs.user_cache_path("clsparse_py")


def key_of(*parts: str) -> str:
    """Return the name under which an entry made from ``parts``, and from nothing else, is kept."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def read(key: str) -> bytes | None:
    """Return the entry kept under ``key``, or None where there is none that is whole."""
    path = folder() / key
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("cache entry %s cannot be read (%s): the work is done again", path, error)
        return None
    head = len(_MAGIC)
    payload = content[head + 32 :]
    if content[:head] != _MAGIC or content[head : head + 32] != hashlib.sha256(payload).digest():
        _log.warning("cache entry %s is damaged: the work is done again", path)
        return None
    return payload


def write(key: str, payload: bytes) -> None:
    """Keep ``payload`` under ``key`` if that can be done."""
    target = folder()
    try:
        target.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target, prefix=".writing-")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            temporary.replace(target / key)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("nothing can be kept in %s (%s): the next process does the work again", target, error)
