"""Refusals of kernels by a driver's compiler, remembered in the process and on disk.

A refusal that one process sees may not be the kernel's fault. So a refusal on disk is trusted once a second process saw it, too;
from then on no process compiles the kernel again, until `forget`. A refusal is kept under the digest of the source, in a file for
each device, driver and version of this package.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pyopencl as cl

import clsparse_py
from clsparse_py._ground import cache
from clsparse_py._ground.records import dataclass

__all__ = [
    "DEVICE",
    "Refusal",
    "clear",
    "digest_of",
    "forget",
    "is_verdict",
    "load",
    "find",
    "note",
    "parse",
    "extract_log",
    "with_refusal",
    "summarise",
]

_log = logging.getLogger(__name__)

#: Key, in place of a source's digest, of the refusal of all kernels by a device whose compiler must not be used.
DEVICE = "device"
#: Number of processes that have to see a kernel refused before later processes trust the refusal.
_WITNESSES = 2
#: Most refusals of kernels that are kept on disk for a device.
_MAX_KEPT = 256
#: Most characters that are kept of a compiler's reason for refusing a kernel.
_MAX_REASON = 400
#: Random name of this process, which no other process has, not even a later one of the same process number.
_PROCESS = os.urandom(8).hex()
#: OpenCL's codes of errors that are a compiler's verdict on a source. Other codes are due to memory or the driver's state.
_VERDICTS = {
    cl.status_code.BUILD_PROGRAM_FAILURE,
    cl.status_code.COMPILE_PROGRAM_FAILURE,
    cl.status_code.LINK_PROGRAM_FAILURE,
    cl.status_code.INVALID_KERNEL_NAME,
}
#: Pattern of words in a compiler's log that blame missing memory, a full disk or time, and not the source.
_CIRCUMSTANCES = re.compile(
    r"out of (host )?memory|bad_alloc|cannot allocate|no space left|disk quota|timed? ?out", re.IGNORECASE
)

#: Refusals that this process has read or met, by the identity of the device, then by the digest of the source.
_known: dict[str, dict[str, Refusal]] = {}


@dataclass(frozen=True)
class Refusal:
    """A refusal of one kernel, or of all kernels of a device.

    Attributes
    ----------
    kernel : str
        The kernel's name, or "the device".
    reason : str
        The compiler's message, or how the compiler ended.
    seen_by : tuple of str
        The processes that saw the refusal.
    """

    kernel: str
    reason: str
    seen_by: tuple[str, ...]

    @property
    def trusted(self) -> bool:
        """Whether at least two processes saw the kernel refused, so that other processes rely on the refusal."""
        return len(self.seen_by) >= _WITNESSES


def digest_of(source: str, options: tuple[str, ...] = ()) -> str:
    """Return the digest of a kernel's source with its compiler options, the key of the kernel's refusal."""
    return hashlib.sha256("\0".join((source, *options)).encode()).hexdigest()[:32]


def extract_log(error: cl.Error) -> str:
    """Return the compiler's own message in an error, without the text that PyOpenCL puts around it; "" without a message."""
    text = str(error)
    head, separator, log = text.partition("\n\nBuild on ")
    if not separator:
        # Without a compiler's log, an error's text consists of the name of OpenCL's function and the name of the error's code.
        return "" if re.fullmatch(r"(\w+ failed: [A-Z_]+( - )?)+", head.strip()) else head.strip()
    log = log.partition("\n")[2]
    return re.sub(r"\n\n\((options|source saved as).*", "", log, flags=re.DOTALL).strip()


def summarise(log: str) -> str:
    """Return the most telling line of a compiler's log: the first with the word "error", else the first line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")


def is_verdict(error: cl.Error) -> bool:
    """Return whether an error is a compiler's verdict on a source, and not due to missing memory, a full disk or time."""
    return getattr(error, "code", None) in _VERDICTS and not _CIRCUMSTANCES.search(str(error))


def parse(payload: bytes | None) -> dict[str, Refusal]:
    """Return the refusals of kernels in the content of a file, by the digest of the source, without malformed ones."""
    refusals: dict[str, Refusal] = {}
    try:
        content: Any = json.loads(payload) if payload else {}
    except ValueError:
        return refusals
    for digest, item in content.items() if isinstance(content, dict) else ():
        try:
            kernel, reason, seen_by = item["kernel"], item["reason"], item["seen_by"]
        except (TypeError, KeyError):
            continue
        if isinstance(kernel, str) and isinstance(reason, str) and isinstance(seen_by, list):
            witnesses = (str(process) for process in seen_by)
            refusals[digest] = Refusal(kernel, reason, tuple(dict.fromkeys(witnesses))[:_WITNESSES])
    return refusals


def with_refusal(refusals: Mapping[str, Refusal], digest: str, kernel: str, reason: str, process: str) -> dict[str, Refusal]:
    """Return the given refusals and the one of a kernel that ``process`` saw; beyond `_MAX_KEPT` the first ones are dropped."""
    refusal = refusals.get(digest, Refusal(kernel, reason[:_MAX_REASON], ()))
    witnesses = tuple(dict.fromkeys((*refusal.seen_by, process)))[:_WITNESSES]
    updated = {**refusals, digest: replace(refusal, seen_by=witnesses)}
    return dict(list(updated.items())[-_MAX_KEPT:])


def _key(identity: str) -> str:
    """Return the cache key of the refusals of kernels by a device's compiler."""
    return cache.key_of("refusals", identity, clsparse_py.__version__)


def load(identity: str) -> Mapping[str, Refusal]:
    """Return a device's refusals of kernels by the digest of the source: those on disk at the first call, and this process's.

    Parameters
    ----------
    identity : str
        The identity of the device, see `programs.identity`.
    """
    refusals = _known.get(identity)
    if refusals is None:
        refusals = _known[identity] = parse(cache.read(_key(identity)))
    return refusals


def find(identity: str, digest: str) -> Refusal | None:
    """Return the refusal of a kernel's source that this process or two others saw; None without such a refusal."""
    refusal = load(identity).get(digest)
    return refusal if refusal is not None and (refusal.trusted or _PROCESS in refusal.seen_by) else None


def note(identity: str, verdicts: Iterable[tuple[str, str, str]], *, certain: bool = False) -> None:
    """Add refusals that this process saw (source's digest, kernel's name and reason) to the device's refusals on disk.

    Certain refusals need no second process: this process and its child count as two.
    """
    listed = list(verdicts)
    if not listed:
        return
    # Refusals are read from disk anew, as other processes may have written some since the last time.
    refusals = parse(cache.read(_key(identity)))
    for digest, kernel, reason in listed:
        for process in (_PROCESS, f"child of {_PROCESS}")[: 1 + certain]:
            refusals = with_refusal(refusals, digest, kernel, reason, process)
    _write(identity, refusals)


def _write(identity: str, refusals: dict[str, Refusal]) -> None:
    """Replace a device's refusals of kernels by ``refusals``, in this process and on disk."""
    _known[identity] = refusals
    cache.write(_key(identity), json.dumps({digest: asdict(refusal) for digest, refusal in refusals.items()}).encode())


def forget(identity: str) -> int:
    """Forget the kernels that a device's compiler refused, here and on disk, to build them again; return their number."""
    refusals = load(identity)
    if refusals:
        _write(identity, {})
    return len(refusals)


def clear() -> None:
    """Forget all refusals of kernels in this process, but not on disk."""
    _known.clear()
