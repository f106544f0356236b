"""Tries the compiler of a device in a process of its own, as one that dies or hangs would take this process with it.

Once a driver, for devices whose compiler runs in the host's process: what was found good is kept by `device`, what was not as a
refusal of the whole device.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

from clsparse_py import refusals

__all__ = ["BEGINS", "GOOD", "GUARD", "LIMIT", "NONE", "REFUSED", "WRONG", "UnfitError", "examine", "judged"]

_log = logging.getLogger(__name__)

#: The module that the child runs, and what it prints: a word to a line, the last one followed by a reason.
PROBE = "clsparse_py._probe"
BEGINS, GOOD, NONE, REFUSED, WRONG = "begins", "good", "none", "refused", "wrong"
#: Seconds after which a compiler is taken to hang: a hundred times what it takes.
LIMIT = 120.0
#: Set in the child: whatever it is, it starts none.
GUARD = "CLSPARSE_PROBING"
#: How a compiler ends a process. Others, such as the one that frees memory, are sent from outside.
_FATAL = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")


class UnfitError(Exception):
    """Why a compiler must not be used.

    Attributes
    ----------
    certain : bool
        Whether it is believed at once: it died or was wrong. What was refused, or took too long, another process has to see too.
    """

    def __init__(self, reason: str, *, certain: bool) -> None:
        super().__init__(reason)
        self.certain = certain


def judged(output: str, code: int | None) -> UnfitError | None:
    """Return what a child shows of the compiler that it tried; None if it is good, or the child shows nothing.

    Parameters
    ----------
    output : str
        What it printed.
    code : int or None
        How it ended, negative for a signal; None if the time was over.
    """
    lines = output.splitlines()
    if BEGINS not in lines:
        return None
    word, _, reason = " ".join(lines[lines.index(BEGINS) + 1 :]).strip().partition(" ")
    if word in (GOOD, NONE):
        return None
    if word == WRONG:
        return UnfitError(f"its compiler gets a small kernel wrong: {reason}", certain=True)
    if word == REFUSED:
        return UnfitError(f"its compiler builds nothing: {reason}", certain=False)
    if code is None:
        return UnfitError(f"its compiler takes more than {LIMIT:.0f} s for a small kernel", certain=False)
    fatal = {-int(getattr(signal, name)): name for name in _FATAL if hasattr(signal, name)}
    if code < 0 and code not in fatal:
        return None
    return UnfitError(f"its compiler ends the process that uses it ({fatal.get(code, f'exit code {code}')})", certain=True)


def _child(identity: str) -> UnfitError | None:
    """Run the child, and judge it."""
    if not sys.executable or getattr(sys, "frozen", False) or GUARD in os.environ:
        return None
    command = [sys.executable, "-m", PROBE, identity]
    # From the folder of this package, so that it is the one that the child imports.
    place, environment = Path(__file__).parents[1], {**os.environ, GUARD: "1"}
    try:
        ended = subprocess.run(
            command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired as late:
        return judged((late.stdout or b"").decode(errors="replace"), None)
    except OSError as error:
        _log.info("the compiler is not tried, as no process can be started: %s", error)
        return None
    _log.debug("%s ended with %s: %s%s", command, ended.returncode, ended.stdout, ended.stderr)
    return judged(ended.stdout.decode(errors="replace"), ended.returncode)


def examine(identity: str) -> None:
    """Have a child try a device's compiler, unless two processes saw before that it must not be used.

    Parameters
    ----------
    identity : str
        Of the device, see `programs.identity`.

    Raises
    ------
    UnfitError
        It must not be used. What two processes saw, or one for certain, is kept.
    """
    known = refusals.known(identity, refusals.DEVICE)
    if known is not None:
        raise UnfitError(known.reason, certain=known.trusted)
    verdict = _child(identity)
    if verdict is not None:
        refusals.note(identity, [(refusals.DEVICE, "the device", str(verdict))], certain=verdict.certain)
        raise verdict
