"""Makes a failing program small: fewer steps and settings, smaller inputs, simpler values."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from tests.programs.program import Input, Program, Step

__all__ = ["shrunk"]


def shrunk(program: Program, fails: Callable[[Program], tuple[bool, dict[str, Any]]], seconds: float) -> Program:
    """Return a small program that fails alike.

    Parameters
    ----------
    fails : callable
        Whether a program fails alike, and the oracle's values before its last step.
    seconds : float
        How long to try.
    """
    until = time.monotonic() + seconds
    wrong, values = fails(program)
    if not wrong:
        return program
    literal = _literal(program, values)
    if literal is not None and fails(literal)[0]:
        program = literal
    again = True
    while again and time.monotonic() < until:
        again = False
        for make in (_fewer_steps, _fewer_settings, _smaller, _simpler):
            done = False
            while not done and time.monotonic() < until:
                done = True
                for candidate in make(program):
                    if time.monotonic() > until:
                        break
                    if fails(candidate)[0]:
                        program, done, again = candidate, False, True
                        break
    return program


def _close(program: Program, kept: set[int]) -> Program:
    """Return the steps that are kept, and those that they need."""
    needed: set[str] = set()
    steps = []
    for i in reversed(range(len(program.steps))):
        step = program.steps[i]
        if i in kept or (step.target and step.target in needed):
            steps.append(step)
            needed |= set(step.uses())
    return program.with_steps(steps[::-1])


def _fewer_steps(program: Program) -> Iterator[Program]:
    last = len(program.steps) - 1
    least = _close(program, {last})
    if len(least.steps) < last + 1:
        yield least
    for i in range(last):
        fewer = program.with_steps([step for k, step in enumerate(program.steps) if k != i])
        uses = {name for step in fewer.steps for name in step.uses()}
        if not program.steps[i].target or program.steps[i].target not in uses:
            yield fewer
    step = program.steps[-1]
    for i, operation in enumerate(program.steps):
        if isinstance(operation, Step) and operation.fails:
            yield program.with_steps([*program.steps[:i], replace(operation, fails=None), *program.steps[i + 1 :]])
    if isinstance(step, Step) and step.same:
        yield program.with_steps([*program.steps[:-1], replace(step, same="")])


def _fewer_settings(program: Program) -> Iterator[Program]:
    for i in range(len(program.settings)):
        yield replace(program, settings=program.settings[:i] + program.settings[i + 1 :])
    if program.queues != ("ordered", "ordered"):
        yield replace(program, queues=("ordered", "ordered"))


def _literal(program: Program, values: dict[str, Any]) -> Program | None:
    """Return the last step alone, its operands given as inputs of their values."""
    last = program.steps[-1]
    inputs: list[Step | Input] = []
    for name in last.uses():
        given = next((step for step in program.steps if step.target == name and isinstance(step, Input)), None)
        value = values.get(name)
        if given is not None:
            inputs.append(given)
        elif scipy.sparse.issparse(value) and value.ndim == 2:
            coordinates = value.tocoo()
            arrays = coordinates.row.copy(), coordinates.col.copy(), coordinates.data.copy()
            inputs.append(
                Input(value.format if value.format in ("csr", "csc", "coo") else "csr", "parts", value.shape, arrays, target=name)
            )
        elif isinstance(value, np.ndarray) and value.ndim:
            inputs.append(Input("array", "dense", value.shape, (value,), "", target=name))
        else:
            return None
    return program.with_steps([*inputs, last])


def _with(program: Program, i: int, given: Input) -> Program:
    return program.with_steps([*program.steps[:i], given, *program.steps[i + 1 :]])


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs of smaller sizes, then of fewer entries."""
    sizes = sorted({n for step in program if isinstance(step, Input) for n in step.shape if n > 1}, reverse=True)
    for n in sizes:
        for less in dict.fromkeys((1, n // 2, n * 3 // 4, n - 1)):
            steps = [_cut(step, n, less) if isinstance(step, Input) else _rename(step, n, less) for step in program]
            yield program.with_steps(steps)
    for i, operation in enumerate(program):
        if isinstance(operation, Input) and operation.kind != "array":
            n = operation.arrays[2].size
            for parts in (2, 4, 16, 64):
                if n >= parts or (n and parts == 2):
                    for k in range(parts):
                        keep = np.ones(n, bool)
                        keep[k * n // parts : (k + 1) * n // parts] = False
                        if n and not keep.all():
                            yield _with(program, i, replace(operation, arrays=tuple(array[keep] for array in operation.arrays)))


def _cut(given: Input, n: int, less: int) -> Input:
    shape = tuple(less if size == n else size for size in given.shape)
    if given.kind == "array":
        return replace(given, shape=shape, arrays=(given.arrays[0][tuple(slice(size) for size in shape)],))
    row, col, _ = given.arrays
    keep = (row < shape[0]) & (col < shape[1])
    return replace(given, shape=shape, arrays=tuple(array[keep] for array in given.arrays))


def _rename(step: Step, n: int, less: int) -> Step:
    """Return a step in which a size stands for another."""

    def renamed(text: str) -> str:
        return re.sub(rf"(?<![\w.]){n}(?![\w.])", str(less), text)

    return replace(step, ours=renamed(step.ours), oracle=renamed(step.oracle), same=renamed(step.same))


def _simpler(program: Program) -> Iterator[Program]:
    """Yield programs of simpler values and options."""
    for i, step in enumerate(program):
        if isinstance(step, Input):
            values = step.arrays[-1]
            for simple in (
                np.ones_like(values),
                np.where(values != values.astype(bool), np.sign(values.real), values).astype(values.dtype)
                if values.dtype.kind in "fi"
                else values,
            ):
                if simple.tobytes() != values.tobytes():
                    yield _with(program, i, replace(step, arrays=(*step.arrays[:-1], simple)))
            if step.kind != "array" and not (np.diff(step.arrays[0]) >= 0).all():
                order = np.lexsort(step.arrays[1::-1])
                yield _with(program, i, replace(step, arrays=tuple(array[order] for array in step.arrays)))
            for name, value in (
                ("made", "dense" if step.kind == "array" else "parts"),
                ("queue", "q"),
                ("on_device", True),
                ("index", "int32"),
            ):
                if getattr(step, name) not in (value, ""):
                    yield _with(program, i, replace(step, **{name: value}))
        else:
            for text in (r", (plan|method|work_group)=(?:sp\.\w+\([^)]*\)|[^,)]+)", r"\[:, :\]"):
                shorter = re.sub(text, "", step.ours, count=1)
                if shorter != step.ours and step.oracle:
                    yield program.with_steps([*program.steps[:i], replace(step, ours=shorter), *program.steps[i + 1 :]])
