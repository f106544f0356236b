"""AMGCL: hierarchies on the host's cores, built here from its headers, by smoothed aggregation with its default smoother.

Its headers are where a compiler finds them, or in the folder that the environment variable ``AMGCL_ROOT`` names. They have no
number of a version in them: ``AMGCL_VERSION`` says what results are to name, such as a commit.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from bench import machine
from bench.contestants import Contestant
from bench.hierarchies import HierarchyCalls
from bench.problems.base import Array
from bench.problems.multigrid import OPERATIONS, Multigrid

_SOURCE = Path(__file__).with_suffix(".cpp")
# Names of the dtypes in C++.
_C_NAMES = {"float64": "double", "float32": "float"}
# Bytes for the description of a hierarchy.
_WORDS = 4096


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    if _compiler() is None:
        return "there is no C++ compiler"
    result = subprocess.run(_command("-E", "-o", os.devnull), capture_output=True, check=False)
    return None if result.returncode == 0 else "its headers are not found: AMGCL_ROOT names the folder that holds amgcl/"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    said = subprocess.run([_compiler() or "", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return {"amgcl": os.environ.get("AMGCL_VERSION", "unknown"), "amgcl_compiler": said.stdout.strip()}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("amgcl", _prepare)] if operation in OPERATIONS else []


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++"))


def _command(*options: str) -> list[str]:
    """Return the command that compiles the source for this processor."""
    root = os.environ.get("AMGCL_ROOT")
    include = [f"-I{root}"] if root else []
    flags = ["-std=c++14", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-DAMGCL_NO_BOOST", *include]
    return [_compiler() or "", *flags, *options, str(_SOURCE)]


@functools.cache
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "amgcl.so")
        subprocess.run(_command("-o", str(path)), check=True)
        return ctypes.CDLL(str(path))


class _Hierarchy:
    """A hierarchy, which is freed with this object, and the tolerance of its solutions."""

    def __init__(self, problem: Multigrid) -> None:
        A = problem.matrix
        self._name = _C_NAMES[A.dtype.name]
        set_up = self._function("set_up")
        set_up.restype = ctypes.c_void_p
        indptr, indices = (np.ascontiguousarray(array, np.int32) for array in (A.indptr, A.indices))
        pointers = (_pointer(array) for array in (indptr, indices, A.data))
        self._pointer = ctypes.c_void_p(set_up(A.shape[0], *pointers, ctypes.c_double(problem.tolerance)))
        self.iterations = 0

    def _function(self, name: str) -> Any:
        return getattr(_library(), f"{name}_{self._name}")

    def solve(self, b: Array) -> Array:
        """Return the solution of A x = b."""
        x = np.empty_like(b)
        self.iterations = self._function("solve")(self._pointer, b.size, _pointer(b), _pointer(x))
        return x

    def __str__(self) -> str:
        text = ctypes.create_string_buffer(_WORDS)
        self._function("describe")(self._pointer, text, _WORDS)
        result = dict(line.split(":", 1) for line in text.value.decode().splitlines() if ":" in line)
        levels, complexity = (result[name].strip() for name in ("Number of levels", "Operator complexity"))
        return (
            f"{self.iterations} iterations of CG, {levels} levels, operator complexity {complexity}, {machine.threads()} threads"
        )

    def __del__(self) -> None:
        self._function("free")(self._pointer)


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _prepare(problem: Multigrid) -> HierarchyCalls:
    made = _Hierarchy(problem)
    made.solve(problem.b)

    # It has no refresh: other values are another set-up.
    is_solution = problem.operation == "multigrid_solve"
    call = functools.partial(made.solve, problem.b) if is_solution else functools.partial(_Hierarchy, problem)
    solution = (lambda left: left) if is_solution else (lambda left: left.solve(problem.b))
    return HierarchyCalls(problem, call, solution, lambda: None, str(made))
