"""The command ``clsparse demo``: multiplies, transposes and squares real matrices, checks them against SciPy and times them."""

from __future__ import annotations

import importlib.resources
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import rich.box
import scipy.sparse
from pyopencl import array as cl_array
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.matrix_files import SUFFIXES, read_matrix
from clsparse_py._device.device import describe
from clsparse_py._ground.errors import BuildError
from clsparse_py._ground.records import dataclass
from clsparse_py._ground.rounding import max_share, rounding_bound
from clsparse_py._operations.spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._operations.spmv import spmv_plan
from clsparse_py._operations.transpose import transpose, transpose_plan

__all__ = ["Case", "Measurement", "Result", "generate", "measure", "read_case", "run", "samples"]


@dataclass(frozen=True)
class Effort:
    """How long the demo takes.

    Attributes
    ----------
    repeats : int
        Of a measurement, at most.
    seconds : float
        Of a measurement, beyond its first three repeats.
    max_products : int
        Multiplications of a product of two matrices: larger ones are left to the benchmarks.
    """

    repeats: int = 20
    seconds: float = 0.25
    max_products: int = 40_000_000


EFFORT = Effort()
#: Errors by which one operation of the demo fails while the others go on.
_FAILURES = (ValueError, TypeError, MemoryError, BuildError, cl.Error)
#: Legend below the demo's tables.
_LEGEND = """
time   of a whole call that is waited for, of A @ x among twenty back to back; A @ A is A @ A.T where A is not square
GB/s   each array that is read or written, once
error  of the worst value, as a share of what rounding explains; A.T is compared entry by entry
SciPy  its time for the same on the host; ratio: SciPy's time by ours
"""


class Case(NamedTuple):
    """A matrix: its name, the section of the tables that it stands in, what messages call it, and what reads it."""

    name: str
    origin: str
    source: str
    load: Callable[[], scipy.sparse.csr_array]


class Result(NamedTuple):
    """An operation: its kernel or method, times, bytes read and written, and the error as a share of what rounding explains."""

    method: str
    seconds: float
    scipy_seconds: float
    n_bytes: int
    error: float

    @property
    def right(self) -> bool:
        """Whether it is SciPy's up to rounding; an error of NaN is not."""
        return self.error <= 1


class Measurement(NamedTuple):
    """The outcome of each operation on a matrix: a result, an error, or None if the product is too large."""

    case: Case
    shape: tuple[int, int]
    nnz: int
    outcomes: dict[str, Result | Exception | None]

    @property
    def failures(self) -> dict[str, Exception]:
        """The operations that failed."""
        return {operation: outcome for operation, outcome in self.outcomes.items() if isinstance(outcome, Exception)}

    @property
    def right(self) -> bool:
        """Whether all results that there are are SciPy's."""
        return all(outcome.right for outcome in self.outcomes.values() if isinstance(outcome, Result))


def samples() -> list[Case]:
    """Return the matrices that come with the package; the README.md beside them says what they are."""
    folder = importlib.resources.files("clsparse_py") / "samples"

    def case(name: str) -> Case:
        def read() -> scipy.sparse.csr_array:
            with importlib.resources.as_file(folder / name) as path:
                return read_matrix(path)

        return Case(name.split(".")[0], "samples", name, read)

    return [case(name) for name in sorted(file.name for file in folder.iterdir()) if name.endswith(SUFFIXES)]


def read_case(path: str) -> Case:
    """Return the matrix in a file."""
    name = Path(path).name
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return Case(name.removesuffix(suffix) or path, "files", path, lambda: read_matrix(path))


def generate() -> list[Case]:
    """Return matrices too large to come with the package, built here, so that the bandwidth means something."""
    loaders = {"grid_1024x1024": lambda: _grid(1024), "power_law_200k": lambda: _power_law(200_000, 3_000_000)}
    return [Case(name, "generated here", name, load) for name, load in loaders.items()]


def _grid(n: int) -> scipy.sparse.csr_array:
    """Return the 5-point Laplacian of an n x n grid."""
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_array(scipy.sparse.kronsum(line, line))


def _power_law(n: int, entries: int) -> scipy.sparse.csr_array:
    """Return a random graph whose rows are of very uneven lengths, with ones for edges."""
    rng = np.random.default_rng(2)
    # Cubes of uniform numbers crowd towards 0: row i has about (n / i)^(2 / 3) times the entries of the last one.
    row, col = (rng.permutation(n)[(n * rng.random(entries) ** 3).astype(np.int64)] for _ in range(2))
    graph = scipy.sparse.csr_array((np.ones(entries), (row, col)), shape=(n, n))
    graph.data[:] = 1
    return graph


def measure(queue: cl.CommandQueue, case: Case) -> Measurement:
    """Multiply one matrix with a vector and itself, transpose it, check the results against SciPy, and time both.

    An operation that fails leaves the others as they are. The values are in double precision where the device has it.

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
        except _FAILURES as error:  # noqa: PERF203 - one that fails leaves the others
            outcomes[operation] = error
    return Measurement(case, host.shape, host.nnz, outcomes)


def _multiply(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Multiply a matrix with a vector."""
    # Random signs make sums cancel, so that a term left out or taken twice shows.
    x = np.random.default_rng(1).standard_normal(host.shape[1]).astype(host.dtype)
    plan, operand = spmv_plan(A), cl_array.to_device(A.queue, x)
    result = cl_array.to_device(A.queue, np.full(host.shape[0], np.nan, host.dtype))
    plan.execute(A, operand, result)
    error = _error(host, x, result.get())
    seconds = _time(lambda: plan.execute(A, operand, result), A.queue, calls=EFFORT.repeats)
    return Result(str(plan), seconds, _time(lambda: host @ x), _bytes(host) + x.nbytes + result.nbytes, error)


def _transpose(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Transpose a matrix."""
    transposed, reference = transpose(A).get(), host.T.tocsr()
    is_same = _same_structure(transposed, reference) and np.array_equal(transposed.data, reference.data, equal_nan=True)
    seconds = _time(lambda: transpose(A), A.queue)
    return Result(str(transpose_plan(A)), seconds, _time(host.T.tocsr), _bytes(host, reference), 0.0 if is_same else math.nan)


def _square(A: csr_array, host: scipy.sparse.csr_array) -> Result | None:
    """Multiply a matrix by itself, or its transposed; None beyond `Effort.max_products`."""
    B, other = (A, host) if host.shape[0] == host.shape[1] else (transpose(A), host.T.tocsr())
    if spgemm_estimate(A, B).n_products > EFFORT.max_products:
        return None
    C = spgemm(A, B).get()
    seconds = _time(lambda: spgemm(A, B), A.queue)
    methods = ", ".join(dict.fromkeys(step.method for step in spgemm_plan(A, B).explain().bins))
    return Result(methods, seconds, _time(lambda: host @ other), _bytes(host, other, C), _error_of_square(host, other, C))


#: The demo's operations on each matrix.
_OPERATIONS: dict[str, Callable[[csr_array, scipy.sparse.csr_array], Result | None]] = {
    "A @ x": _multiply,
    "A.T": _transpose,
    "A @ A": _square,
}


def _time(action: Callable[[], object], queue: cl.CommandQueue | None = None, *, calls: int = 1) -> float:
    """Return the median seconds of a call, over batches of ``calls`` calls; slow actions are repeated less."""
    times: list[float] = []
    while len(times) < 3 or (len(times) < EFFORT.repeats and sum(times) < EFFORT.seconds):
        began = time.perf_counter()
        for _ in range(calls):
            action()
        if queue is not None:
            queue.finish()
        times.append(time.perf_counter() - began)
    return statistics.median(times) / calls


def _bytes(*matrices: scipy.sparse.csr_array) -> int:
    """Return the bytes of the arrays of matrices."""
    return sum(part.nbytes for matrix in matrices for part in (matrix.indptr, matrix.indices, matrix.data))


def _same_structure(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array) -> bool:
    return np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices)


def _error(A: scipy.sparse.csr_array, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the largest distance of y from SciPy's A @ x, in units of its row's bound; see `rounding_bound`."""
    wide = np.result_type(A.dtype, np.float64)
    exact, x = A.astype(wide), x.astype(wide)
    return max_share(y, exact @ x, rounding_bound(np.diff(A.indptr), abs(exact) @ abs(x), A.dtype, wide))


def _error_of_square(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array, C: scipy.sparse.csr_array) -> float:
    """Return the error of C against SciPy's A @ B, as a share of the bound; NaN if C's pattern is wrong.

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
    # Looked up, as SciPy leaves out what cancels.
    reference, magnitude = (product[positions] for product in (A @ B, abs(A) @ abs(B)))
    return max_share(C.data, reference, rounding_bound(np.repeat(np.diff(A.indptr), lengths), magnitude, C.dtype, wide))


def run(queue: cl.CommandQueue, files: Sequence[str], console: Console, errors: Console) -> int:
    """Measure the samples, the files and the generated matrices, and print a table for each operation.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Of the device.
    files : sequence of str
        Matrix files to multiply too.
    console, errors : rich.console.Console
        For the tables, and for progress and what cannot be read.

    Returns
    -------
    int
        0 where all matrices could be read and all products and transposed matrices are right, else 1.
    """
    measurements: list[Measurement] = []
    failed = 0
    for case in (*samples(), *(read_case(path) for path in files), *generate()):
        with errors.status(Text(f"{case.name} ...")):
            try:
                measurements.append(measure(queue, case))
            except (OSError, *_FAILURES) as error:
                failed += 1
                _say(errors, f"error: {_reason(case, error)}", "red")
            else:
                for operation, failure in measurements[-1].failures.items():
                    _say(errors, f"error: {operation} of {_reason(case, failure)}", "red")
    device = describe(queue.device)
    where = f"{device.name} ({device.platform})"
    _say(console, f"In {'double' if device.fp64 else 'single'} precision on {where}", "bold")
    for operation in _OPERATIONS:
        _say(console, f"\n{operation}\n", "bold")
        console.print(_table(operation, measurements))
    _say(console, _LEGEND, "dim")
    wrong = ", ".join(measurement.case.name for measurement in measurements if not measurement.right)
    broken = sum(len(measurement.failures) for measurement in measurements)
    verified = sum(measurement.right and not measurement.failures for measurement in measurements)
    summary = [f"{verified} of {len(measurements)} results verified against SciPy on {where}"]
    summary += [f"WRONG: {wrong}"] if wrong else []
    summary += [f"{failed} not multiplied, see above"] if failed else []
    summary += [f"operations that failed: {broken}, see above"] if broken else []
    _say(console, "; ".join(summary), "bold red" if wrong else "bold")
    return int(len(summary) > 1)


def _reason(case: Case, error: Exception) -> str:
    """Return one line on why a case was not multiplied, which names it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{case.source}: {error.strerror}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if case.source in lines[0] else f"{case.source}: {lines[0]}"


def _say(console: Console, text: str, style: str) -> None:
    """Print text as it is, whatever names are in it."""
    console.print(text, style=style, soft_wrap=True)


def _table(operation: str, measurements: Sequence[Measurement]) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in ("matrix", "rows", "nnz", "method", "time", "GB/s", "error", "SciPy", "ratio"):
        # In a narrow terminal the columns of text give way.
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
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"
