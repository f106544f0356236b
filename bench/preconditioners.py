"""Conjugate gradients to 1e-8 with each preconditioner and each multigrid smoother: ``python -m bench.preconditioners``.

Prints a table of preconditioners on the 7-point grid, and a table of smoothers on matrices of the suite `multigrid`. All methods
take turns in each round; a time is the median over the rounds, and the set-up is that of a new array, whose kernels were built.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench import gallery
from bench.generators import grids
from bench.times import geometric_mean
from clsparse_py import amg, csr_array, linalg

__all__ = ["PRECONDITIONERS", "SMOOTHERS", "Times", "time_methods"]

#: Functions that make each preconditioner of the table.
PRECONDITIONERS: Mapping[str, Callable[[Any], Any]] = {
    "jacobi": linalg.jacobi,
    "chebyshev": linalg.chebyshev,
    "ic0": linalg.ic0,
    "ic0, multicolour": lambda A: linalg.ic0(A, ordering="multicolour"),
    "ic0, isai": lambda A: linalg.ic0(A, solve="isai"),
    "ic0, two sweeps, isai": lambda A: linalg.ic0(A, 2, solve="isai"),
    "ic0, multicolour, isai": lambda A: linalg.ic0(A, ordering="multicolour", solve="isai"),
}
_OPTIMAL = ("chebyshev", {"kind": "opt_fourth", "degree": 3})
_FORWARD, _BACKWARD = (("multicolour_gauss_seidel", {"sweep": sweep}) for sweep in ("forward", "backward"))
#: Pre- and postsmoother of each line of the table; the first is the default.
SMOOTHERS: Mapping[str, Mapping[str, Any]] = {
    "jacobi": {},
    "opt_fourth, degree 3": {"presmoother": _OPTIMAL, "postsmoother": _OPTIMAL},
    "l1_jacobi": {"presmoother": "l1_jacobi", "postsmoother": "l1_jacobi"},
    "multicolour_gauss_seidel": {"presmoother": "multicolour_gauss_seidel", "postsmoother": "multicolour_gauss_seidel"},
    "the same, forward, backward": {"presmoother": _FORWARD, "postsmoother": _BACKWARD},
}
#: Relative residual of all solutions.
_TOLERANCE = 1e-8


class Times(NamedTuple):
    """Seconds of a method's set-up and solution, and its iterations."""

    set_up: float
    solution: float
    iterations: int

    @property
    def whole(self) -> float:
        """Seconds of set-up and solution."""
        return self.set_up + self.solution


def time_methods(S: Any, methods: Mapping[str, Callable[[Any], Any]], rounds: int) -> dict[str, Times]:
    """Return the times of conjugate gradients with preconditioners that ``methods`` make, by name.

    Raises
    ------
    ValueError
        A method does not converge.
    """
    b = np.random.default_rng(0).standard_normal(S.shape[0])
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    iterations: dict[str, int] = {}
    for turn in range(rounds + 1):
        for name, make in methods.items():
            A = csr_array(S)
            A @ b  # planned, and on the device
            start = time.perf_counter()
            M = make(A)
            A.queue.finish()
            made = time.perf_counter()
            seen: list[Any] = []
            # The first turn builds kernels, and counts iterations.
            _, info = linalg.cg(A, b, rtol=_TOLERANCE, M=M, callback=None if turn else seen.append)
            if info:
                raise ValueError(f"{name}: info is {info}")
            if turn:
                seconds[name].append((made - start, time.perf_counter() - made))
            else:
                iterations[name] = len(seen)
    return {name: Times(*np.median(seconds[name], axis=0).tolist(), iterations[name]) for name in methods}


def _set_up_multigrid(options: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return the function that makes a preconditioner of multigrid with options."""
    return lambda A: amg.smoothed_aggregation_solver(A, **options).aspreconditioner()


def _print_row(title: str, times: Times, base: Times) -> None:
    """Print a row of a table."""
    cells = f"{times.iterations} | {times.set_up * 1e3:.1f} | {times.solution * 1e3:.1f} | {times.whole / base.whole:.2f}"
    print(f"| {title} | {cells} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.preconditioners", description=__doc__)
    parser.add_argument("--grid", type=int, default=100, help="points of each side of the 7-point grid; 0: no such table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--matrices", nargs="*", default=gallery.suite("multigrid", cpu=True), help="for smoothers")
    given = parser.parse_args(arguments)
    header = "iterations | set-up, ms | solution, ms | time / jacobi's |\n"
    if given.grid:
        print(f"| preconditioner, 7-point grid of {given.grid}³ | {header}| --- | ---: | ---: | ---: | ---: |")
        results = time_methods(grids.fd3d7(given.grid), PRECONDITIONERS, given.rounds)
        for name, times in results.items():
            _print_row(name, times, results["jacobi"])
    if given.matrices:
        print(f"\n| matrix, smoother | {header}| --- | ---: | ---: | ---: | ---: |")
        makers = {name: _set_up_multigrid(options) for name, options in SMOOTHERS.items()}
        ratios: dict[str, list[float]] = {name: [] for name in makers}
        for matrix in given.matrices:
            results = time_methods(gallery.load(matrix), makers, given.rounds)
            for name, times in results.items():
                _print_row(f"{matrix}, {name}", times, results["jacobi"])
                ratios[name].append(times.whole / results["jacobi"].whole)
        for name, values in ratios.items():
            print(f"| geometric mean, {name} | | | | {geometric_mean(values):.2f} |")


if __name__ == "__main__":
    main()
