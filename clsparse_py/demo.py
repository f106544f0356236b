"""Real matrices multiplied, transposed and squared, checked against SciPy and timed: what ``clsparse demo`` does."""

from __future__ import annotations

import functools
import importlib.resources
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import rich.box
import scipy.sparse
from pyopencl import array as cl_array
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clsparse_py import programs
from clsparse_py._spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._spmv import spmv_plan
from clsparse_py._transpose import transpose, transpose_plan
from clsparse_py.csr import csr_array
from clsparse_py.device import describe
from clsparse_py.errors import BuildError
from clsparse_py.matrix_files import SUFFIXES, read_matrix
from clsparse_py.records import dataclass
from clsparse_py.rounding import max_share, rounding_bound

__all__ = ["MOST_PRODUCTS", "Case", "Measurement", "Result", "copy_bandwidth", "generated", "given", "measure", "run", "samples"]

#: How long one time is measured: at most this many repeats, and this many seconds beyond the first few.
REPEATS = 20
SECONDS = 0.25
_NO_TIME = 1e-7
#: How an operation fails without the others.
_FAILURES = (ValueError, TypeError, MemoryError, BuildError, cl.Error)
_COPY_ITEM = 16
_COPY = """
kernel void copy(global const uint4 *restrict from, global uint4 *restrict to)
{
    to[get_global_id(0)] = from[get_global_id(0)];
}
"""

_LEGEND = """
GB/s   A, x and y, each array once, by the device's clock where it has one
copy   share of the bandwidth of a copy of as many bytes on the same device
error  of the worst row, as a share of what rounding explains
SciPy  its time for the same product on the host

SpTRANS (A.T) and SpGEMM (A @ A, or A @ A.T where A is not square) are whole calls that are waited for, by the host's clock:
GB/s   each array of the operands and of the result, once
error  A.T is compared entry by entry; of products the worst value, whose structure is that of the product of the patterns
"""
#: Products of sparse matrices with more multiplications than these are left to the benchmarks.
MOST_PRODUCTS = 40_000_000


@dataclass(frozen=True)
class Case:
    """A matrix to multiply.

    Attributes
    ----------
    name : str
        What the table calls it.
    origin : str
        What the section of the table is called: "samples", "files" or "generated here".
    source : str
        What a message about it calls it.
    load : callable
        Returns the matrix; raises OSError or ValueError where that fails.
    """

    name: str
    origin: str
    source: str
    load: Callable[[], scipy.sparse.csr_array]


@dataclass(frozen=True)
class Result:
    """Findings on one operation.

    Attributes
    ----------
    method : str
        The kernel or method that was chosen.
    seconds, scipy_seconds : float
        The median time of the operation, and of SciPy's on the host.
    minimal_bytes : int
        Each array that is read or written, once.
    error : float
        Of the worst entry, as a share of what rounding explains; above 1, or NaN, the result is wrong.
    copy_bandwidth : float
        Bytes a second of a copy that moves as many bytes on the same device; NaN where it is not compared.
    """

    method: str
    seconds: float
    scipy_seconds: float
    minimal_bytes: int
    error: float
    copy_bandwidth: float = math.nan

    @property
    def right(self) -> bool:
        """Whether it is SciPy's up to rounding."""
        return self.error <= 1


@dataclass(frozen=True)
class Measurement:
    """Findings on one matrix.

    Attributes
    ----------
    case : Case
    shape : tuple of int
    nnz : int
    results : dict of str to Result or None
        By operation, in order; None where a product of sparse matrices is too large. One that failed is not there.
    failures : dict of str to Exception
        The operations that failed, and their errors.
    """

    case: Case
    shape: tuple[int, int]
    nnz: int
    results: dict[str, Result | None]
    failures: dict[str, Exception]

    @property
    def right(self) -> bool:
        """Whether all results that there are are SciPy's: products up to rounding, the transposed entry by entry."""
        return all(each.right for each in self.results.values() if each is not None)


def samples() -> list[Case]:
    """Return the matrices that come with the package; the README.md beside them says what they are."""
    folder = importlib.resources.files("clsparse_py") / "samples"
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(SUFFIXES))

    def reader(name: str) -> Callable[[], scipy.sparse.csr_array]:
        def read() -> scipy.sparse.csr_array:
            with importlib.resources.as_file(folder / name) as path:
                return read_matrix(path)

        return read

    return [Case(name.split(".")[0], "samples", name, reader(name)) for name in names]


def given(path: str) -> Case:
    """Return the matrix in a file."""
    name = Path(path).name
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return Case(name.removesuffix(suffix) or path, "files", path, lambda: read_matrix(path))


def generated() -> list[Case]:
    """Return matrices too large to come with the package, built here, so that the bandwidth means something."""
    return [
        Case("grid_1024x1024", "generated here", "grid_1024x1024", lambda: _grid(1024)),
        Case("power_law_200k", "generated here", "power_law_200k", lambda: _power_law(200_000, 3_000_000)),
    ]


def _grid(n: int) -> scipy.sparse.csr_array:
    """Return the 5-point Laplacian of an n x n grid."""
    line = scipy.sparse.diags_array([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1])
    return scipy.sparse.csr_array(scipy.sparse.kronsum(line, line))


def _power_law(n: int, entries: int) -> scipy.sparse.csr_array:
    """Return a random graph whose rows are of very uneven lengths, with ones for edges."""
    rng = np.random.default_rng(2)
    # Cubes of uniform numbers crowd towards 0: row i has about (n / i)^(2 / 3) times the entries of the last one.
    row, col = (rng.permutation(n)[(n * rng.random(entries) ** 3).astype(np.int64)] for _ in range(2))
    graph = scipy.sparse.csr_array((np.ones(entries), (row, col)), shape=(n, n))
    graph.data[:] = 1
    return graph


def _median(measure: Callable[[], float]) -> float:
    """Return the median of some measurements, fewer where they take long."""
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < 3 or (len(found) < REPEATS and time.perf_counter() - began < SECONDS):
        found.append(measure())
    return statistics.median(found)


def _time(action: Callable[[], object]) -> float:
    """Return the median seconds of an action by the host's clock."""

    def once() -> float:
        began = time.perf_counter()
        action()
        return time.perf_counter() - began

    return _median(once)


def copy_bandwidth(queue: cl.CommandQueue, n_bytes: int) -> float:
    """Return the bytes a second, read and written together, of a copy that moves ``n_bytes``, timed as products are.

    The faster of the driver's own copy and a kernel (quirk 33).
    """
    context, device = queue.context, queue.device
    # Whole work-groups, of a size that is said: quirk 33.
    group = min(256, device.max_work_group_size)
    granule = group * _COPY_ITEM
    size = max(min(n_bytes // 2, device.max_mem_alloc_size) // granule, 1) * granule
    source, target = (cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    for buffer in (source, target):
        cl.enqueue_fill_buffer(queue, buffer, b"\x5a", 0, size)
    queue.finish()
    kernel = cl.Kernel(programs.compile_source(context, device, _COPY), "copy")
    profiling = cl.CommandQueue(context, device, cl.command_queue_properties.PROFILING_ENABLE)

    def by_kernel(on: cl.CommandQueue) -> cl.Event:
        return kernel(on, (size // _COPY_ITEM,), (group,), source, target)

    def by_driver(on: cl.CommandQueue) -> cl.Event:
        return cl.enqueue_copy(on, target, source, byte_count=size)

    def profile(copy: Callable[[cl.CommandQueue], cl.Event]) -> float:
        event = copy(profiling)
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9

    copies = (by_kernel, by_driver)
    return 2 * size / min(_seconds(queue, functools.partial(profile, copy), functools.partial(copy, queue)) for copy in copies)


def _seconds(queue: cl.CommandQueue, profile: Callable[[], float], enqueue: Callable[[], object]) -> float:
    """Return the time of an enqueued operation: by the device's clock or, if the driver has none, from many back to back."""

    def back_to_back() -> None:
        for _ in range(REPEATS):
            enqueue()
        queue.finish()

    try:
        # The first one, which finishes the build and touches the memory, is left out.
        profile()
        found = _median(profile)
    except cl.Error:
        found = 0.0
    # No launch is that short: quirk 24.
    return found if found > _NO_TIME else _time(back_to_back) / REPEATS


def _value_dtype(matrix: scipy.sparse.csr_array, *, fp64: bool) -> np.dtype[Any]:
    """Return the floating-point type in which a matrix is multiplied: double precision where the device has it."""
    if matrix.dtype.kind == "c":
        return np.dtype(np.complex128 if fp64 else np.complex64)
    return np.dtype(np.float64 if fp64 else np.float32)


def measure(queue: cl.CommandQueue, case: Case) -> Measurement:
    """Multiply one matrix with a vector and itself, transpose it, check the results against SciPy, and time both.

    An operation that fails leaves the others as they are.

    Raises
    ------
    OSError, ValueError
        The matrix cannot be read.
    """
    read = case.load()
    host = read.astype(_value_dtype(read, fp64=describe(queue.device).fp64))
    A = csr_array(host, queue=queue)
    results: dict[str, Result | None] = {}
    failures: dict[str, Exception] = {}
    for operation, act in _OPERATIONS.items():
        try:
            results[operation] = act(A, host)
        except _FAILURES as error:  # noqa: PERF203 - one that fails leaves the others
            failures[operation] = error
    return Measurement(case, host.shape, host.nnz, results, failures)


def _multiply(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Multiply a matrix with a vector, compare with SciPy, and time both."""
    rng, queue = np.random.default_rng(1), A.queue
    # Signs so that sums cancel: a product that is left out or taken twice then shows.
    x = ((rng.random(host.shape[1]) + 0.5) * rng.choice((-1, 1), host.shape[1])).astype(host.dtype)
    plan = spmv_plan(A)
    operand = cl_array.to_device(queue, x)
    result = cl_array.to_device(queue, np.full(host.shape[0], np.nan, host.dtype))
    plan.execute(A, operand, result)
    error = _error(host, x, result.get(queue))
    minimal = _bytes(host) + x.nbytes + result.nbytes
    seconds = _seconds(queue, lambda: plan.profile(A, operand, result), lambda: plan.execute(A, operand, result))
    return Result(str(plan), seconds, _time(lambda: host @ x), minimal, error, copy_bandwidth(queue, minimal))


def _transpose(A: csr_array, host: scipy.sparse.csr_array) -> Result:
    """Transpose a matrix, compare with SciPy, and time both."""
    found, reference = transpose(A).get(), host.T.tocsr()
    same = np.array_equal(found.data, reference.data, equal_nan=True) and all(
        np.array_equal(getattr(found, part), getattr(reference, part)) for part in ("indptr", "indices")
    )
    seconds = _time(lambda: transpose(A).queue.finish())
    error = 0.0 if same else math.nan
    return Result(str(transpose_plan(A)), seconds, _time(host.T.tocsr), _bytes(host, reference), error)


def _square(A: csr_array, host: scipy.sparse.csr_array) -> Result | None:
    """Multiply a matrix by itself, or its transposed, compare with SciPy, and time both; None beyond `MOST_PRODUCTS`."""
    B, other = (A, host) if host.shape[0] == host.shape[1] else (transpose(A), host.T.tocsr())
    if spgemm_estimate(A, B).n_products > MOST_PRODUCTS:
        return None
    C = spgemm(A, B).get()
    seconds = _time(lambda: spgemm(A, B).queue.finish())
    methods = ", ".join(dict.fromkeys(each.method for each in spgemm_plan(A, B).explain().bins))
    return Result(methods, seconds, _time(lambda: host @ other), _bytes(host, other, C), _error_of_square(host, other, C))


#: What is done with each matrix.
_OPERATIONS: dict[str, Callable[[csr_array, scipy.sparse.csr_array], Result | None]] = {
    "A @ x": _multiply,
    "A.T": _transpose,
    "A @ A": _square,
}


def _bytes(*matrices: scipy.sparse.csr_array) -> int:
    return sum(part.nbytes for each in matrices for part in (each.indptr, each.indices, each.data))


def _error(A: scipy.sparse.csr_array, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the largest distance of y from SciPy's A @ x, in units of its row's bound; see `rounding_bound`."""
    wide = np.result_type(A.dtype, np.float64)
    exact = A.astype(wide)
    reference = exact @ x.astype(wide)
    bound = rounding_bound(np.diff(A.indptr), abs(exact) @ np.abs(x).astype(np.float64), A.dtype, wide)
    return max_share(y, reference, bound)


def _error_of_square(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array, C: scipy.sparse.csr_array) -> float:
    """Return the largest distance of a value of C from SciPy's A @ B, in units of its bound; see `rounding_bound`.

    An entry of C is the sum of as many products as the row of A has entries, at most.
    """
    patterns = (scipy.sparse.csr_array((np.ones(each.nnz), each.indices, each.indptr), shape=each.shape) for each in (A, B))
    left, right = patterns
    structure = scipy.sparse.csr_array(left @ right)
    structure.sort_indices()
    if not (np.array_equal(C.indptr, structure.indptr) and np.array_equal(C.indices, structure.indices)):
        return float("nan")
    wide = np.result_type(A.dtype, np.float64)
    reference = _values(A.astype(wide) @ B.astype(wide), structure)
    magnitude = _values(abs(A.astype(wide)) @ abs(B.astype(wide)), structure)
    bound = rounding_bound(np.repeat(np.diff(A.indptr), np.diff(C.indptr)), magnitude, C.dtype, wide)
    return max_share(C.data, reference, bound)


def _values(matrix: Any, structure: scipy.sparse.csr_array) -> np.ndarray[Any, Any]:
    """Return a product's values by a structure that has all its entries: SciPy leaves out those that cancel."""
    found = scipy.sparse.csr_array(matrix)
    keys = [
        np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) * each.shape[1] + each.indices for each in (found, structure)
    ]
    values = np.zeros(structure.nnz, found.dtype)
    values[np.searchsorted(keys[1], keys[0])] = found.data
    return values


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
    found: list[Measurement] = []
    failed = 0
    for case in (*samples(), *(given(path) for path in files), *generated()):
        with errors.status(Text(f"{case.name} ...")):
            try:
                found.append(measure(queue, case))
            except (OSError, *_FAILURES) as error:
                failed += 1
                _say(errors, f"error: {_reason(case, error)}", "red")
            else:
                for operation, failure in found[-1].failures.items():
                    _say(errors, f"error: {operation} of {_reason(case, failure)}", "red")
    device = describe(queue.device)
    where = f"{device.name} ({device.platform})"
    _say(console, f"In {'double' if device.fp64 else 'single'} precision on {where}", "bold")
    for operation in _OPERATIONS:
        _say(console, f"\n{operation}\n", "bold")
        console.print(_table(operation, found))
    _say(console, _LEGEND, "dim")
    wrong = [each.case.name for each in found if not each.right]
    verified = sum(each.right and not each.failures for each in found)
    summary = f"{verified} of {len(found)} results verified against SciPy on {where}"
    if wrong:
        summary += f"; WRONG: {', '.join(wrong)}"
    if failed:
        summary += f"; {failed} not multiplied, see above"
    broken = sum(len(each.failures) for each in found)
    if broken:
        summary += f"; operations that failed: {broken}, see above"
    _say(console, summary, "bold red" if wrong else "bold")
    return 1 if wrong or failed or broken else 0


def _reason(case: Case, error: Exception) -> str:
    """Return one line on why a case was not multiplied, which names it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{case.source}: {error.strerror}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if case.source in lines[0] else f"{case.source}: {lines[0]}"


def _say(console: Console, text: str, style: str) -> None:
    """Print text as it is, whatever names are in it."""
    console.print(text, style=style, soft_wrap=True)


def _table(operation: str, found: Sequence[Measurement]) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    of_copy = ("copy",) if operation == "A @ x" else ()
    for column in ("matrix", "rows", "nnz", "method", "time", "GB/s", *of_copy, "error", "SciPy"):
        is_text = column in ("matrix", "method")
        # In a narrow terminal the columns of text give way.
        table.add_column(
            column, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis", min_width=None if is_text else 7
        )
    origin = None
    for each in found:
        if operation in each.failures:
            continue
        if origin != each.case.origin:
            table.add_section()
            table.add_row(Text(each.case.origin), style="dim italic")
            origin = each.case.origin
        head = Text(each.case.name), f"{each.shape[0]:,}", f"{each.nnz:,}"
        of = each.results[operation]
        if of is None:
            table.add_row(*head, Text("left to the benchmarks"), style="dim")
            continue
        bandwidth = of.minimal_bytes / of.seconds
        share = (_share(bandwidth / of.copy_bandwidth),) if of_copy else ()
        error = f"{of.error:.2f}" if of.right else "WRONG"
        speed = duration(of.seconds), _three_digits(bandwidth / 1e9), *share
        table.add_row(*head, Text(of.method), *speed, error, duration(of.scipy_seconds), style=None if of.right else "red")
    return table


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _share(value: float) -> str:
    return "<1%" if value < 0.01 else f"{value:.0%}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"
