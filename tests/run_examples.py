"""Runs every program of ``examples/`` in a process of its own, and keeps its pictures in ``build/examples``.

A program fails if it ends with an error, draws nothing, or takes over a minute.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "examples"
PICTURES = ROOT / "build" / "examples"
#: Seconds that a program may take.
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


def main() -> int:
    """Run all programs and return how many failed."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    failed = 0
    for program in sorted(PROGRAMS.glob("*.py")):
        for old in PICTURES.glob(f"{program.stem}-*.png"):
            old.unlink()
        begin = time.monotonic()
        command = [sys.executable, "-c", RUNNER, str(program), str(PICTURES / program.stem)]
        done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, timeout=10 * LONGEST, check=False)
        seconds = time.monotonic() - begin
        drawn = len(list(PICTURES.glob(f"{program.stem}-*.png")))
        right = done.returncode == 0 and drawn and seconds < LONGEST
        failed += not right
        print(f"{program.name}: {seconds:.1f} s, {drawn} pictures{'' if right else ': FAILED'}", flush=True)
        if not right:
            print(done.stdout + done.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
