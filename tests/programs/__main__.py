"""``python -m tests.programs``: random programs, each operation of which is compared with NumPy and SciPy.

Runs until a number of programs or of minutes is reached. A find is shrunk to a script, which is printed and kept in a folder; the
status is then 1. ``--only BLOCK`` runs one block of a seed again.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from clsparse_py._device.device import describe
from tests.programs.judge import Find
from tests.programs.operations import OPERATIONS
from tests.programs.prelude import device_of
from tests.programs.program import Program
from tests.programs.settings import draw_block
from tests.programs.shrink import shrunk
from tests.programs.worker import serve

#: Seconds without a word from a child, after which it stands still.
STILL = 120.0
PER_BLOCK = 500


class Child:
    """A worker, and whether it is alive."""

    def __init__(self, device: str, settings: tuple[str, ...]) -> None:
        self.device, self.settings = device, settings
        self.process: Any = None

    def start(self) -> None:
        """Start the process, unless there is one."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs, self.device, self.settings), daemon=True)
            self.process.start()
            theirs.close()

    def stop(self) -> str:
        """End the process; return how it ended."""
        if self.process is None:
            return ""
        self.connection.close()
        self.process.join(5)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        self.process = None
        return f"the process ended with status {code}" if code else "the process stood still" if code is None else ""

    def receive(self, seconds: float) -> Any:
        """Return the next message; raise EOFError where the child has died or stands still."""
        if not self.connection.poll(seconds):
            raise EOFError
        return self.connection.recv()


class Session:
    """Runs blocks on a device, and collects finds."""

    def __init__(self, device: str, seed: int, options: argparse.Namespace) -> None:
        self.device, self.seed, self.options = device, seed, options
        self.fp64 = describe(device_of(device)).fp64
        self.programs, self.steps, self.scripts, self.kinds = 0, 0, [], {}  # type: ignore[var-annotated]

    def run_block(self, number: int, count: int, until: float, one: int | None = None) -> None:
        """Run a block's programs in a child."""
        rng = np.random.default_rng((self.seed, number, 10**6))
        intel = "intel" in self.device
        block = draw_block(rng, fp64=self.fp64, plain=self.options.plain, limits="understated" not in self.device)
        if self.options.operations:
            block.operations = frozenset(name for name in OPERATIONS if any(text in name for text in self.options.operations))
        if intel and block.threads > 1:
            block.queues = ("ordered", "ordered")  # quirk 14
        child = Child(self.device, block.settings)
        child.start()
        begun: dict[int, Program] = {}
        child.connection.send(("block", self.seed, number, block, range(count) if one is None else range(one, one + 1), until))
        try:
            while True:
                what, i, content = child.receive(STILL)
                if what == "program":
                    begun[i] = content
                elif what == "step":
                    begun[i].steps.append(content)
                    self.steps += 1
                elif what == "ran":
                    self.programs += 1
                    begun.pop(i, None)
                    if content:
                        self.report_find(*content)
                        if self.options.stop:
                            child.process.kill()
                            break
                else:
                    break
        except (EOFError, ConnectionResetError):
            how = child.stop() or "the process ended"
            for program in begun.values():
                self.report_find(program, Find("death", how, None, len(program.steps)))
        child.stop()

    def report_find(self, program: Program, find: Find) -> None:
        """Shrink a find, unless there was one of its kind."""
        self.kinds[find.kind] = self.kinds.get(find.kind, 0) + 1
        if self.kinds[find.kind] > 1:
            return
        children: dict[tuple[str, ...], Child] = {}
        last: dict[str, Any] = {"find": find}

        def fails(candidate: Program) -> tuple[bool, dict[str, Any]]:
            child = children.setdefault(candidate.settings, Child(self.device, candidate.settings))
            child.start()
            try:
                child.connection.send(("replay", candidate))
                again, values = child.receive(STILL)
            except (EOFError, ConnectionResetError, BrokenPipeError):
                child.stop()
                return find.kind == "death", {}
            alike = again is not None and again.kind == find.kind and again.number == len(candidate.steps)
            if alike:
                last["find"] = again
            return alike, values

        program.steps = program.steps[: find.number]
        small = shrunk(program, fails, self.options.shrink)
        for child in children.values():
            child.stop()
        again = last["find"]
        bounded = getattr(small.steps[-1], "grade", "move") != "move" if small.steps else False
        script = small.script(f"{again.kind}: {again.text.strip()[-600:]}".replace("\\", "/"), again.wanted, bounded)
        self.scripts.append(script)
        print(f"--- found in {small.origin} on {self.device}\n{script}---", flush=True)
        if self.options.keep:
            self.options.keep.mkdir(parents=True, exist_ok=True)
            (self.options.keep / f"find_{self.device}_{self.seed}_{len(self.scripts)}.py").write_text(script)


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=10**9, help="how many, at most")
    parser.add_argument("--minutes", type=float, default=10**6, help="how long, at most")
    parser.add_argument("--seed", type=int, default=None, help="of all that is drawn (the time)")
    parser.add_argument(
        "--device", default="", help="part of a platform's name: intel, pocl, ..., understated64; all by default, in turns"
    )
    parser.add_argument("--only", type=int, help="the one block to run")
    parser.add_argument("--one", type=int, help="the one program of that block to run")
    parser.add_argument("--shrink", type=float, default=60, help="seconds to shrink a find for")
    parser.add_argument("--block", type=int, default=PER_BLOCK, help="how many share dtypes, operations and settings")
    parser.add_argument("--plain", action="store_true", help="no thresholds and shapes of kernels but the device's own")
    parser.add_argument(
        "--operations", nargs="*", help="parts of the names of the operations to draw; by default of each block its own"
    )
    parser.add_argument("--stop", action="store_true", help="end at the first find")
    parser.add_argument("--keep", type=Path, help="a folder for scripts of finds")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    devices = [options.device] if options.device else _devices()
    sessions = [Session(name, seed, options) for name in devices]
    begin, number, share = time.time(), 0, -(-options.programs // len(sessions))
    until = begin + 60 * options.minutes
    spent = dict.fromkeys(devices, 0.0)
    print(f"seed {seed}", flush=True)
    while time.time() < until and any(session.programs < share for session in sessions):
        for session in sessions:
            count = min(options.block, share - session.programs)
            if count > 0 and time.time() < until and not (options.stop and any(other.scripts for other in sessions)):
                at = time.time()
                session.run_block(number if options.only is None else options.only, count, until, options.one)
                spent[session.device] += time.time() - at
                number += 1  # another device draws another block
        if options.only is not None or (options.stop and any(session.scripts for session in sessions)):
            break
    for session in sessions:
        seconds = max(spent[session.device], 1e-9)
        kinds = ", ".join(f"{kind} x{count}" for kind, count in session.kinds.items()) or "none"
        print(
            f"{session.device}: {session.programs} programs of {session.steps} steps in {seconds:.0f} s, "
            f"{session.programs / seconds:.1f} programs a second; found: {kinds}",
            flush=True,
        )
    return int(any(session.scripts for session in sessions))


def _devices() -> list[str]:
    import clsparse_py
    from clsparse_py._device.device import unusable

    names = {"intel": "intel", "portable computing": "pocl", "nvidia": "nvidia"}
    results = [device.platform.name.lower() for device in clsparse_py.devices() if unusable(device) is None]
    return list(dict.fromkeys(next((short for part, short in names.items() if part in name), name) for name in results))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
