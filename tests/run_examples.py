"""Runs every program of ``examples/`` in a process of its own, and keeps its pictures in ``build/examples``.

A program fails if it ends with an error, draws nothing, or takes over a minute of a processor: the time on the wall, printed
beside it, counts other programs of the host and the host's own pauses.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "examples"
PICTURES = ROOT / "build" / "examples"
#: Seconds of a processor, of its user and its system, that a program may take.
LONGEST = 60

# Runs a program, and saves the figures that it leaves.
RUNNER = """
import runpy, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
program, name = sys.argv[1:]
runpy.run_path(program, run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{name}-{number}.png", dpi=100)
"""


def processor_seconds() -> float:
    """Return the processor time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run all programs and return how many failed."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    failed = 0
    for program in sorted(PROGRAMS.glob("*.py")):
        for old in PICTURES.glob(f"{program.stem}-*.png"):
            old.unlink()
        begin, busy = time.monotonic(), processor_seconds()
        command = [sys.executable, "-c", RUNNER, str(program), str(PICTURES / program.stem)]
        done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, timeout=10 * LONGEST, check=False)
        seconds, busy = time.monotonic() - begin, processor_seconds() - busy
        drawn = len(list(PICTURES.glob(f"{program.stem}-*.png")))
        right = done.returncode == 0 and drawn and busy < LONGEST
        failed += not right
        ended = "" if right else ": FAILED"
        print(f"{program.name}: {seconds:.1f} s, {busy:.1f} of a processor, {drawn} pictures{ended}", flush=True)
        if not right:
            print(done.stdout + done.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
