"""cuSPARSE's SpSV and SpSM: solutions after one analysis, and analysis and solution at each call."""

from __future__ import annotations

import ctypes
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.contestants import Contestant, DeclinedError
from bench.peers import cuda
from bench.peers.cuda import Arrays, CudaCalls, address
from bench.peers.cusparse_library import (
    NON_TRANSPOSE,
    SCALARS,
    VALUE_TYPES,
    CsrDescriptor,
    DenseDescriptor,
    Description,
    call,
    describe,
    handle,
    make_workspace,
    require,
    version,
)
from bench.problems.sptrsv import OPERATIONS, Sptrsv

# cusparseSpSVAlg_t.
_SPSV_ALGORITHMS = {"spsv-default": 0, "spsv-alg2": 2}
# cusparseSpSMAlg_t: CUSPARSE_SPSM_ALG_DEFAULT.
_SPSM_ALGORITHM = 0
# A version of cuSPARSE that has CUSPARSE_SPSV_ALG2; 12603 lacks it.
_FIRST_VERSION = 12904
# cusparseSpMatAttribute_t, and the attribute's value: CUSPARSE_FILL_MODE_LOWER and CUSPARSE_DIAG_TYPE_NON_UNIT.
_ATTRIBUTES = {0: 0, 1: 0}
# Analyses whose median is the time of a plan.
_ANALYSES = 5


def contestants(operation: str) -> list[Contestant]:
    """Return who solves: SpSV by each algorithm, or SpSM with the right-hand sides in each order."""
    if OPERATIONS[operation] is None:
        kept = [_contestant(name, "C", number) for name, number in _SPSV_ALGORITHMS.items()]
        return [*kept, _contestant("spsv-alg2-plain", "C", _SPSV_ALGORITHMS["spsv-alg2"], plain=True)]
    orders = {"spsm-rows": "C", "spsm-columns": "F"}
    return [
        *(_contestant(name, order, _SPSM_ALGORITHM) for name, order in orders.items()),
        *(_contestant(f"{name}-plain", order, _SPSM_ALGORITHM, plain=True) for name, order in orders.items()),
    ]


def _contestant(name: str, order: str, algorithm: int, *, plain: bool = False) -> Contestant:
    return Contestant(f"cusparse/{name}", functools.partial(_prepare, order, algorithm, plain))


def _prepare(order: str, algorithm: int, plain: bool, problem: Sptrsv) -> CudaCalls:
    made = _Solver(problem, order, algorithm)
    once = {"transfer": made.transfer}
    if plain:
        detail = "analysis and solution"
        solve: Callable[[], Arrays] = made.analyse_and_solve
    else:
        once["plan"] = made.keep_analysis()
        detail, solve = f"{made.workspace.nbytes} bytes of workspace", made
    return CudaCalls(problem, solve, once, detail, unpack=made.in_shape)


class _Solver:
    """L, b and x on the device, with the solver that their shapes need."""

    def __init__(self, problem: Sptrsv, order: str, algorithm: int) -> None:
        import cupy

        b, dtype = problem.b, problem.dtype
        self._operation = "SpSV" if b.ndim == 1 else "SpSM"
        require(tuple(f"cusparse{self._operation}_{phase}" for phase in ("bufferSize", "analysis", "solve")))
        if algorithm == _SPSV_ALGORITHMS["spsv-alg2"] and version() < _FIRST_VERSION:
            raise DeclinedError("SpSV of this cuSPARSE has no ALG2")
        self._shape, self._order = b.shape, order
        L = problem.matrix
        (*parts, b_on_device), self.transfer = cuda.to_device((L.indptr, L.indices, L.data, b.ravel(order=order)))
        self._x = cupy.empty(b.size, dtype)
        self._matrix = CsrDescriptor(L.shape, dtype, *parts)
        for attribute, value in _ATTRIBUTES.items():
            number = ctypes.c_int(value)
            # fmt: off
            call("cusparseSpMatSetAttribute", self._matrix.pointer, attribute, ctypes.byref(number),
                  ctypes.c_size_t(ctypes.sizeof(number)))
            # fmt: on
        self._dense = (DenseDescriptor(b_on_device, b.shape, order), DenseDescriptor(self._x, b.shape, order))
        self._one = SCALARS[dtype](1.0)
        self._types = VALUE_TYPES[dtype], algorithm

    def keep_analysis(self) -> float:
        """Analyse L several times, keep the last analysis, and return the median of their seconds, each with a wait."""
        seconds = []
        for _ in range(_ANALYSES):
            cuda.synchronize()
            start = time.perf_counter()
            self._description, self.workspace = self._analyse()
            cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)

    def _analyse(self) -> tuple[Description, Any]:
        """Return a new description of L, and the workspace that belongs to it."""
        description, size = describe(self._operation), ctypes.c_size_t()
        self._call("bufferSize", description, ctypes.byref(size))
        workspace = make_workspace(size)
        self._call("analysis", description, address(workspace))
        return description, workspace

    def _call(self, phase: str, description: Description, *last: Any) -> None:
        operations = (NON_TRANSPOSE,) if self._operation == "SpSV" else (NON_TRANSPOSE, NON_TRANSPOSE)
        b, x = (array.pointer for array in self._dense)
        # fmt: off
        call(f"cusparse{self._operation}_{phase}", handle(), *operations, ctypes.byref(self._one), self._matrix.pointer, b, x,
              *self._types, description.pointer, *last)
        # fmt: on

    def __call__(self) -> Arrays:
        """Enqueue the solution by the analysis that is kept, and return x's values as they lie."""
        self._call("solve", self._description)
        return (self._x,)

    def analyse_and_solve(self) -> Arrays:
        """Analyse L, enqueue the solution, and return x's values as they lie."""
        description, workspace = self._analyse()
        self._call("solve", description)
        del workspace  # in use until here
        return (self._x,)

    def in_shape(self, arrays: Arrays) -> Arrays:
        """Return x in its shape."""
        return (np.reshape(arrays[0], self._shape, order=self._order),)
