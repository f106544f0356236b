"""The command ``clsparse demo``: products, transposed matrices and squares of real matrices, checked against SciPy and timed."""

from __future__ import annotations

import functools
import importlib.resources
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.matrix_files import SUFFIXES, read_matrix
from clsparse_py._device.device import describe
from clsparse_py._ground.console import plain_table
from clsparse_py._ground.errors import BuildError
from clsparse_py._ground.records import dataclass
from clsparse_py._ground.rounding import max_share, rounding_bound
from clsparse_py._operations.spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._operations.spmv import spmv_plan
from clsparse_py._operations.transpose import transpose, transpose_plan

__all__ = ["Case", "Measurement", "Result", "generate", "measure", "read_case", "run", "samples"]


@dataclass(frozen=True)
class Effort:
    """Limits of the time that the demo takes.

    Attributes
    ----------
    repeats : int
        Most repeats of a measurement.
    seconds : float
        Longest time of a measurement of more than three repeats.
    max_products : int
        Most multiplications of a product of two matrices; larger products are left to the benchmarks.
    """

    repeats: int = 20
    seconds: float = 0.25
    max_products: int = 40_000_000


#: The limits of the time that ``clsparse demo`` takes, which tests replace.
EFFORT = Effort()
#: Exceptions by which one operation of the demo fails while its other operations go on.
_FAILURES = (ValueError, TypeError, MemoryError, BuildError, cl.Error)
#: Legend below the demo's tables.
_LEGEND = """
time   of a whole call that is waited for, of A @ x among twenty back to back; A @ A is A @ A.T where A is not square
GB/s   each array that is read or written, once
error  of the worst value, as a share of what rounding explains; A.T is compared entry by entry
SciPy  its time for the same on the host; ratio: SciPy's time by ours
"""


class Case(NamedTuple):
    """A matrix of the demo: its name, its section of the tables, its name in messages, and the function that loads it."""

    name: str
    origin: str
    source: str
    load: Callable[[], scipy.sparse.csr_array]


class Result(NamedTuple):
    """The result of an operation: kernel or method, times, bytes read and written, and the error as a share of its bound."""

    method: str
    seconds: float
    scipy_seconds: float
    n_bytes: int
    error: float

    @property
    def right(self) -> bool:
        """Whether the operation's result is SciPy's up to rounding; an error of NaN means a wrong result."""
        return self.error <= 1


class Measurement(NamedTuple):
    """The outcome of each operation on a matrix: a result, an error, or None if the product is too large."""

    case: Case
    shape: tuple[int, int]
    nnz: int
    outcomes: dict[str, Result | Exception | None]

    @property
    def failures(self) -> dict[str, Exception]:
        """The errors of operations that failed on the matrix, by operation."""
        return {operation: outcome for operation, outcome in self.outcomes.items() if isinstance(outcome, Exception)}

    @property
    def right(self) -> bool:
        """Whether each result of an operation on the matrix is SciPy's up to rounding; failed operations do not count."""
        return all(outcome.right for outcome in self.outcomes.values() if isinstance(outcome, Result))


def samples() -> list[Case]:
    """Return the cases of the sample matrices of the package; ``samples/README.md`` describes them."""
    folder = importlib.resources.files("clsparse_py") / "samples"

    def load(name: str) -> scipy.sparse.csr_array:
        """Return the sample matrix in a file of the package."""
        with importlib.resources.as_file(folder / name) as path:
            return read_matrix(path)

    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(SUFFIXES))
    return [Case(name.split(".")[0], "samples", name, functools.partial(load, name)) for name in names]


def read_case(path: str) -> Case:
    """Return the demo's case of the matrix in a file: its name, and the function that reads the file."""
    name = Path(path).name
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return Case(name.removesuffix(suffix) or path, "files", path, lambda: read_matrix(path))


def generate() -> list[Case]:
    """Return the demo's cases of two generated matrices, large enough for a measured bandwidth to mean something."""
    loaders = {"grid_1024x1024": lambda: _grid(1024), "power_law_200k": lambda: _power_law(200_000, 3_000_000)}
    return [Case(name, "generated here", name, load) for name, load in loaders.items()]


def _grid(n: int) -> scipy.sparse.csr_array:
    """Return the matrix of the 5-point Laplacian of an n x n grid."""
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_array(scipy.sparse.kronsum(line, line))


def _power_law(n: int, entries: int) -> scipy.sparse.csr_array:
    """Return the adjacency matrix of a random graph of n vertices and at most ``entries`` edges, with very uneven row lengths."""
    rng = np.random.default_rng(2)
    # Row and column numbers are cubes of uniform numbers, which crowd towards 0, so that few rows have most of the entries.
    row, col = (rng.permutation(n)[(n * rng.random(entries) ** 3).astype(np.int64)] for _ in range(2))
    graph = scipy.sparse.csr_array((np.ones(entries), (row, col)), shape=(n, n))
    graph.data[:] = 1
    return graph


def measure(queue: cl.CommandQueue, case: Case) -> Measurement:
    """Multiply a matrix with a vector and with itself, transpose it, check the results against SciPy, and time each.

    Other operations go on after one that fails. The values are in double precision if the device has it.

    Raises
    ------
    OSError, ValueError
        The matrix cannot be read.
    """
    read, real = case.load(), np.float64 if describe(queue.device).fp64 else np.float32
    host = read.astype(np.result_type(real, np.complex64) if read.dtype.kind == "c" else real)
    A = csr_array(host, queue=queue)
    outcomes: dict[str, Result | Exception | None] = {}
    for operation, act in _OPERATIONS.items():
        try:
            outcomes[operation] = act(A, host)
        except _FAILURES as error:  # noqa: PERF203 - other operations go on
            outcomes[operation] = error
    return Measurement(case, host.shape, host.nnz, outcomes)


def _multiply(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Return the demo's result of multiplying a matrix with a vector, compared with SciPy's."""
    # Random signs of x make sums cancel, so that a missing or repeated term of a row shows.
    x = np.random.default_rng(1).standard_normal(host.shape[1]).astype(host.dtype)
    plan, operand = spmv_plan(A), cl_array.to_device(A.queue, x)
    y = cl_array.to_device(A.queue, np.full(host.shape[0], np.nan, host.dtype))
    plan.execute(A, operand, y)
    error = _product_error(host, x, y.get())
    seconds = _time(lambda: plan.execute(A, operand, y), A.queue, calls=EFFORT.repeats)
    return Result(str(plan), seconds, _time(lambda: host @ x), _count_bytes(host) + x.nbytes + y.nbytes, error)


def _transpose(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Return the demo's result of transposing a matrix, compared with SciPy's entry by entry."""
    transposed, reference = transpose(A).get(), host.T.tocsr()
    is_same = _same_structure(transposed, reference) and np.array_equal(transposed.data, reference.data, equal_nan=True)
    seconds, error = _time(lambda: transpose(A), A.queue), 0.0 if is_same else math.nan
    return Result(str(transpose_plan(A)), seconds, _time(host.T.tocsr), _count_bytes(host, reference), error)


def _square(A: csr_array, host: scipy.sparse.csr_array) -> Result | None:
    """Return the demo's result of ``A @ A``, or ``A @ A.T`` unless A is square; None beyond `Effort.max_products`."""
    B, other = (A, host) if host.shape[0] == host.shape[1] else (transpose(A), host.T.tocsr())
    if spgemm_estimate(A, B).n_products > EFFORT.max_products:
        return None
    C = spgemm(A, B).get()
    seconds = _time(lambda: spgemm(A, B), A.queue)
    methods = ", ".join(dict.fromkeys(step.method for step in spgemm_plan(A, B).explain().bins))
    return Result(methods, seconds, _time(lambda: host @ other), _count_bytes(host, other, C), _square_error(host, other, C))


#: The demo's operations on every matrix, by the heading of their table.
_OPERATIONS: dict[str, Callable[[csr_array, scipy.sparse.csr_array], Result | None]] = {
    "A @ x": _multiply,
    "A.T": _transpose,
    "A @ A": _square,
}


def _time(action: Callable[[], object], queue: cl.CommandQueue | None = None, *, calls: int = 1) -> float:
    """Return the median seconds of a call, over at least 3 batches of ``calls`` calls, and more within `EFFORT`'s limits."""
    times: list[float] = []
    while len(times) < 3 or (len(times) < EFFORT.repeats and sum(times) < EFFORT.seconds):
        began = time.perf_counter()
        for _ in range(calls):
            action()
        if queue is not None:
            queue.finish()
        times.append(time.perf_counter() - began)
    return statistics.median(times) / calls


def _count_bytes(*matrices: scipy.sparse.csr_array) -> int:
    """Return the total bytes of the arrays of some matrices."""
    return sum(part.nbytes for matrix in matrices for part in (matrix.indptr, matrix.indices, matrix.data))


def _same_structure(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array) -> bool:
    """Return whether two matrices have equal row pointers and columns."""
    return np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices)


def _product_error(A: scipy.sparse.csr_array, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the error of y against SciPy's A @ x: the largest difference, as a share of the row's bound by `rounding_bound`."""
    wide = np.result_type(A.dtype, np.float64)
    exact, x = A.astype(wide), x.astype(wide)
    return max_share(y, exact @ x, rounding_bound(np.diff(A.indptr), abs(exact) @ abs(x), A.dtype, wide))


def _square_error(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array, C: scipy.sparse.csr_array) -> float:
    """Return the error of C against SciPy's A @ B, as a share of the bound of rounding errors; NaN if C's pattern is wrong.

    An entry of C is the sum of as many products as the row of A has entries, at most.
    """
    pattern_of_A, pattern_of_B = (
        scipy.sparse.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape) for matrix in (A, B)
    )
    structure = scipy.sparse.csr_array(pattern_of_A @ pattern_of_B)
    structure.sort_indices()
    if not _same_structure(C, structure):
        return math.nan
    wide, lengths = np.result_type(A.dtype, np.float64), np.diff(C.indptr)
    A, B, positions = A.astype(wide), B.astype(wide), (np.repeat(np.arange(C.shape[0]), lengths), C.indices)
    # SciPy's values are looked up at the positions of C's entries, as SciPy drops entries that cancel.
    reference, magnitude = (product[positions] for product in (A @ B, abs(A) @ abs(B)))
    return max_share(C.data, reference, rounding_bound(np.repeat(np.diff(A.indptr), lengths), magnitude, C.dtype, wide))


def run(queue: cl.CommandQueue, files: Sequence[str], console: Console, errors: Console) -> int:
    """Run the demo: time and check operations on the samples, files and generated matrices, and print a table for each.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A queue of the device.
    files : sequence of str
        Further files of matrices.
    console, errors : rich.console.Console
        The console of the tables, and the console of progress and errors.

    Returns
    -------
    int
        The exit code: 0 if all matrices could be read and all results are right, else 1.
    """
    measurements: list[Measurement] = []
    failed = 0
    for case in (*samples(), *(read_case(path) for path in files), *generate()):
        with errors.status(Text(f"{case.name} ...")):
            try:
                measurements.append(measure(queue, case))
            except (OSError, *_FAILURES) as error:
                failed += 1
                _print(errors, f"error: {_describe_failure(case, error)}", "red")
            else:
                for operation, failure in measurements[-1].failures.items():
                    _print(errors, f"error: {operation} of {_describe_failure(case, failure)}", "red")
    device = describe(queue.device)
    where = f"{device.name} ({device.platform})"
    _print(console, f"In {'double' if device.fp64 else 'single'} precision on {where}", "bold")
    for operation in _OPERATIONS:
        _print(console, f"\n{operation}\n", "bold")
        console.print(_table(operation, measurements))
    _print(console, _LEGEND, "dim")
    wrong = ", ".join(measurement.case.name for measurement in measurements if not measurement.right)
    broken = sum(len(measurement.failures) for measurement in measurements)
    verified = sum(measurement.right and not measurement.failures for measurement in measurements)
    faults = [f"WRONG: {wrong}"] if wrong else []
    faults += [f"{failed} not multiplied, see above"] if failed else []
    faults += [f"operations that failed: {broken}, see above"] if broken else []
    verdict = f"{verified} of {len(measurements)} results verified against SciPy on {where}"
    _print(console, "; ".join((verdict, *faults)), "bold red" if wrong else "bold")
    return int(bool(faults))


def _describe_failure(case: Case, error: Exception) -> str:
    """Return a line that names a matrix of the demo and says why an operation on it failed."""
    if isinstance(error, OSError) and error.strerror:
        return f"{case.source}: {error.strerror}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if case.source in lines[0] else f"{case.source}: {lines[0]}"


def _print(console: Console, text: str, style: str) -> None:
    """Print text of the demo on a console in a style, without line breaks."""
    console.print(text, style=style, soft_wrap=True)


def _table(operation: str, measurements: Sequence[Measurement]) -> Table:
    """Return the table of an operation of the demo: a row for each matrix on which the operation did not fail."""
    table = plain_table()
    for column in ("matrix", "rows", "nnz", "method", "time", "GB/s", "error", "SciPy", "ratio"):
        # In a narrow terminal the columns of text of the demo's table shrink.
        sides: dict[str, Any] = {} if column in ("matrix", "method") else {"justify": "right", "min_width": 5}
        table.add_column(column, no_wrap=True, overflow="ellipsis", **sides)
    origin = None
    for case, shape, nnz, outcomes in measurements:
        outcome = outcomes[operation]
        if isinstance(outcome, Exception):
            continue
        if origin != case.origin:
            table.add_section()
            table.add_row(Text(case.origin), style="dim italic")
            origin = case.origin
        head = Text(case.name), f"{shape[0]:,}", f"{nnz:,}"
        if outcome is None:
            table.add_row(*head, Text("too large here"), style="dim")
            continue
        speed = (
            duration(outcome.seconds),
            _three_digits(outcome.n_bytes / outcome.seconds / 1e9),
            f"{outcome.error:.2f}" if outcome.right else "WRONG",
        )
        ratio = duration(outcome.scipy_seconds), f"{outcome.scipy_seconds / outcome.seconds:.2f}"
        table.add_row(*head, Text(outcome.method), *speed, *ratio, style=None if outcome.right else "red")
    return table


def _three_digits(value: float) -> str:
    """Return a number as text with at least three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def duration(seconds: float) -> str:
    """Return a duration as text with three digits, in seconds, milliseconds, microseconds or nanoseconds."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"
