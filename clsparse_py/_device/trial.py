"""The trial of a device's compiler in a child process, as a compiler that dies or hangs would take this process with it.

Each driver of a device whose compiler runs in the host's process is tried once. `capabilities` keeps a good verdict on disk; a
bad verdict is kept as a refusal of the whole device.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

from clsparse_py._build import refusals

__all__ = ["BEGINS", "GOOD", "GUARD", "LIMIT", "NONE", "REFUSED", "TRIED", "WRONG", "UnfitError", "examine", "judge"]

_log = logging.getLogger(__name__)

#: Name of the module by which a child process tries a compiler: it prints `BEGINS`, then a verdict and its reason.
PROBE = "clsparse_py._device.probe"
#: Python code of the child process that tries a compiler: it runs a module of this package without the package's own imports,
#: which take longer than the trial.
_START = """
import runpy, sys, types
package = sys.modules["clsparse_py"] = types.ModuleType("clsparse_py")
package.__path__ = [sys.argv.pop(1)]
runpy.run_module(sys.argv.pop(1), run_name="__main__")
"""
#: Word that the child process prints before it tries a compiler: if it ends earlier, that is no verdict.
BEGINS = "begins"
#: Verdict of a trial on a compiler that can be used.
GOOD = "good"
#: Word of the trial of a compiler for no verdict: the device is not there, or something other than the compiler failed.
NONE = "none"
#: Verdict on a compiler that refuses the kernels of the trial.
REFUSED = "refused"
#: Verdict on a compiler whose kernels give wrong results.
WRONG = "wrong"
#: Constructs of OpenCL C that the trial of a compiler covers: a part of the cache key of a good verdict.
TRIED = "barriers, vectors, atomics, turns"
#: Seconds after which a compiler counts as hanging: a hundred times the usual time.
LIMIT = 120.0
#: Environment variable that keeps the child process that tries a compiler from starting a child of its own.
GUARD = "CLSPARSE_PROBING"
#: Names of signals by which a crashing compiler ends a process; other signals, such as SIGKILL, come from outside.
_FATAL = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")


class UnfitError(Exception):
    """A compiler must not be used; the error says why.

    Attributes
    ----------
    certain : bool
        Whether one process is enough, as the compiler died or was wrong. A second process has to see a refusal or a timeout.
    """

    def __init__(self, reason: str, *, certain: bool) -> None:
        super().__init__(reason)
        self.certain = certain


def judge(output: str, code: int | None) -> UnfitError | None:
    """Return the verdict on a compiler by the output of the child that tried it; None for a good one, or without a verdict.

    Parameters
    ----------
    output : str
        The child's output.
    code : int or None
        The child's exit code, negative for a signal; None if the child took too long.
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


def _run_child(identity: str) -> UnfitError | None:
    """Return the verdict of a child process on the compiler of a device; None for a good one, or without a verdict."""
    if not sys.executable or getattr(sys, "frozen", False) or GUARD in os.environ:
        return None
    folder, environment = Path(__file__).parents[1], {**os.environ, GUARD: "1"}
    command = [sys.executable, "-c", _START, str(folder), PROBE, identity]
    try:
        # The child process runs beside the package, as the modules of another folder could hide those that it imports.
        process = subprocess.run(
            command, cwd=folder.parent, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired as late:
        return judge((late.stdout or b"").decode(errors="replace"), None)
    except OSError as error:
        _log.info("the compiler is not tried, as no process can be started: %s", error)
        return None
    _log.debug("%s ended with %s: %s%s", command, process.returncode, process.stdout, process.stderr)
    return judge(process.stdout.decode(errors="replace"), process.returncode)


def examine(identity: str) -> None:
    """Raise an error if a device's compiler must not be used: by a remembered refusal, or else by a trial in a child process.

    Parameters
    ----------
    identity : str
        The identity of the device, see `programs.identity`.

    Raises
    ------
    UnfitError
        The compiler must not be used. Later processes trust the verdict if it is certain, or if two processes gave it.
    """
    refusal = refusals.find(identity, refusals.DEVICE)
    if refusal is not None:
        raise UnfitError(refusal.reason, certain=refusal.trusted)
    verdict = _run_child(identity)
    if verdict is not None:
        refusals.note(identity, [(refusals.DEVICE, "the device", str(verdict))], certain=verdict.certain)
        raise verdict
