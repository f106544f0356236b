"""A child process that runs programs: those of a block, which it draws, or one again."""

from __future__ import annotations

import functools
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import invoker

from clsparse_py._build import programs
from clsparse_py._build.declaration import Parameters
from clsparse_py._ground.errors import BuildError
from tests.programs.drawing import Block, Draw, SkipError
from tests.programs.judge import Find, Machine
from tests.programs.operations import OPERATIONS
from tests.programs.program import Input, Program, Step

__all__ = ["draw_program", "replay", "serve"]

#: Kernels that are there when memory is let go of: to load them all again takes half a minute.
_kernels: list[Any] = []
#: Of each thread: ``refused``, the errors of the kernels that its step asked for and that were refused.
_mine = threading.local()
#: Such errors of ranks' threads, which have no steps of their own.
_of_ranks: list[BuildError] = []
_CODES = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY")


class _FoundError(Exception):
    def __init__(self, find: Find) -> None:
        super().__init__(find.text)
        self.find = find


def draw_program(seed: tuple[int, ...], block: Block, tell: Any) -> tuple[Program, Find | None]:
    """Draw a program and run it, step by step; ``tell`` is told of each step before it runs on the device."""
    rng = np.random.default_rng(seed)
    program = Program([], block.settings, block.queues, f"seed {seed[0]}, block {seed[1]}, program {seed[2]}")
    machine = Machine(program)
    n_variables = 0

    def add(given: Input) -> str:
        nonlocal n_variables
        given.target, n_variables = f"v{n_variables}", n_variables + 1
        tell(given)
        program.steps.append(given)
        find = machine.make(given)
        if find:
            raise _FoundError(find)
        return given.target

    draw = Draw(rng, block, bool(rng.random() < 0.8), add, machine.values)
    names = sorted(block.operations)
    weights = np.array([OPERATIONS[name][0] for name in names])
    fails_at = int(rng.integers(3, 9)) if block.threads == 1 and rng.random() < 0.05 else -1
    try:
        for number in range(int(rng.integers(10, 13))):
            for _ in range(5):
                try:
                    step = OPERATIONS[names[int(rng.choice(len(names), p=weights / weights.sum()))]][1](draw)
                    if number == fails_at:
                        step.fails = int(rng.integers(1, 8)), str(rng.choice(_CODES))
                    step.target, n_variables = f"v{n_variables}", n_variables + 1
                    _do(machine, program, step, tell)
                    break
                except SkipError:
                    continue
            if draw.has("deaths") and machine.values and rng.random() < 0.15:
                _do(machine, program, Step("del", f"del {rng.choice(sorted(machine.values))}"), tell)
                if rng.random() < 0.1:
                    _kernels.extend(programs.built())
                    _do(machine, program, Step("free", "sp.free_memory()", "None", f"v{n_variables}"), tell)
                    n_variables += 1
    except _FoundError as error:
        error.find.number = len(program.steps)
        return program, error.find
    return program, None


def _do(machine: Machine, program: Program, step: Step, tell: Any) -> None:
    def before() -> None:
        tell(step)
        program.steps.append(step)

    find = _run(machine, step, before)
    if find:
        raise _FoundError(find)
    value = machine.values.get(step.target)
    if getattr(value, "nnz", getattr(value, "size", 0)) > 100_000:
        machine.forget(step.target)


def _run(machine: Machine, step: Step, before: Callable[[], None] = lambda: None) -> Find | None:
    """Run a step; a kernel that its thread asked for and that was refused is a find, unless the refusal was planned."""
    _mine.refused = []
    _of_ranks.clear()
    find = machine.run(step, before)
    refused = sorted(map(str, (*_mine.refused, *_of_ranks)))
    if find is None and refused and not step.fails:
        # Another kernel takes its place, so that results are right all the same.
        find = Find(f"{step.name}: refused kernel", "\n".join(refused))
    return find


def _note_refusals() -> None:
    """Have each thread keep the errors of the kernels that it asked for and that were refused."""
    from tests.programs import prelude

    note = programs._note_refused

    def noted(key: tuple[int, int, Parameters], device: cl.Device, error: BuildError) -> None:
        note(key, device, error)
        planned = key[2].work_group > 1 and any(re.search(pattern, key[2].name) for pattern in prelude.REFUSED)
        if not planned:
            getattr(_mine, "refused", _of_ranks).append(error)

    programs._note_refused = noted


def replay(program: Program) -> tuple[Find | None, dict[str, Any]]:
    """Run a program again; return what is wrong, and the oracle's values before the last step."""
    if any(programs.list_refusals()):
        programs.clear()  # what was refused is asked for again
    machine = Machine(program)
    before: dict[str, Any] = {}
    for number, step in enumerate(program.steps):
        before = dict(machine.values)
        try:
            find = machine.make(step) if isinstance(step, Input) else _run(machine, step)
        except SkipError:
            find = None
        except Exception as error:  # a variable that is not there
            return None, {"error": repr(error)}
        if find:
            find.number = number + 1
            return find, before
    return None, before


def _block(connection: Connection, seed: int, number: int, block: Block, numbers: range, until: float) -> None:
    lock = threading.Lock()
    failures: list[Exception] = []

    def work(own: range) -> None:
        try:
            draw(own)
        except Exception as error:  # of the net itself: raised below, as an error in a thread would end that thread alone
            failures.append(error)

    def draw(own: range) -> None:
        for i in own:
            if time.time() > until:
                return

            def tell(what: Any, i: int = i) -> None:
                with lock:
                    connection.send(("step", i, what))

            with lock:
                connection.send(
                    ("program", i, Program([], block.settings, block.queues, f"seed {seed}, block {number}, program {i}"))
                )
            program, find = draw_program((seed, number, i), block, tell)
            with lock:
                connection.send(("ran", i, (program, find) if find else None))

    threads = [threading.Thread(target=work, args=(numbers[k :: block.threads],), daemon=True) for k in range(block.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    connection.send(("end", 0, None))


def serve(connection: Connection, name: str, settings: tuple[str, ...]) -> None:
    """Do what the parent asks for, until there is nothing more."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("CL_CONFIG_LLVM_OPTIONS", "-opt-disable=sycl-kernel-reduce-cross-barrier-values -opt-bisect-verbose=0")
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    # Here, as it sets up the device.
    from tests import unoptimised
    from tests.programs import prelude

    unoptimised.install()
    _note_refusals()
    # PyOpenCL compiles a module of Python for each kernel object; without this it takes a third of the time.
    invoker._generate_enqueue_and_set_args_module = functools.cache(invoker._generate_enqueue_and_set_args_module)
    device = prelude.DEVICE = prelude.device_of(name)
    prelude.CONTEXT = cl.Context([device])
    names = dict(vars(prelude))
    for line in settings:
        exec(line, names)
    try:
        while True:
            what, *arguments = connection.recv()
            if what == "block":
                _block(connection, *arguments)
            else:
                connection.send(replay(arguments[0]))
    except (EOFError, BrokenPipeError):
        return
