"""Real matrices multiplied, transposed and squared, checked against SciPy and timed: what ``clsparse demo`` does."""

from __future__ import annotations

import functools
import importlib.resources
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
import rich.box
import scipy.sparse
from pyopencl import array as cl_array
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clsparse_py import programs
from clsparse_py._spmv import spmv_plan
from clsparse_py._transpose import transpose, transpose_plan
from clsparse_py.csr import csr_array
from clsparse_py.demo_spgemm import Square, squared
from clsparse_py.device import describe
from clsparse_py.errors import BuildError
from clsparse_py.matrix_files import SUFFIXES, read_matrix
from clsparse_py.records import dataclass
from clsparse_py.rounding import max_share, rounding_bound

T = TypeVar("T")

__all__ = ["Case", "Measurement", "Product", "Transposition", "copy_bandwidth", "generated", "given", "measure", "run", "samples"]

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
"""
_TRANSPOSITION_LEGEND = """
GB/s   each array of A read once and of A.T written once, by the host's clock
result whether it is SciPy's, entry by entry
SciPy  its time for A.T.tocsr() on the host
"""
_SQUARES_LEGEND = """
GB/s   each array of both operands and of the result, once, by the host's clock
error  of the worst value, as a share of what rounding explains; the structure is that of the product of the patterns
SciPy  its time for the same product on the host, rows unsorted
"""


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
class Transposition:
    """Findings on a transposed matrix.

    Attributes
    ----------
    method : str
        What was chosen to transpose it.
    seconds, scipy_seconds : float
        Of one transposition, the median, by the host's clock: waits and the allocation of the result included.
    minimal_bytes : int
        Each array of A read once, and each of the transposed written once.
    right : bool
        Whether it is SciPy's, entry by entry.
    """

    method: str
    seconds: float
    scipy_seconds: float
    minimal_bytes: int
    right: bool


@dataclass(frozen=True)
class Product:
    """Findings on a product with a vector.

    Attributes
    ----------
    plan : str
        What was chosen to multiply the matrix.
    seconds, scipy_seconds : float
        Of one product, the median: the device's own time, and SciPy's on the host.
    minimal_bytes : int
        A, x and y, each array once.
    copy_bandwidth : float
        Bytes a second of a copy that moves as many bytes on the same device.
    error : float
        Of the worst row, as a share of what rounding explains; above 1, or NaN, the result is wrong.
    """

    plan: str
    seconds: float
    scipy_seconds: float
    minimal_bytes: int
    copy_bandwidth: float
    error: float

    @property
    def right(self) -> bool:
        """Whether it is SciPy's up to rounding."""
        return self.error <= 1

    @property
    def bandwidth(self) -> float:
        """Minimal bytes a second."""
        return self.minimal_bytes / self.seconds


@dataclass(frozen=True)
class Measurement:
    """Findings on one matrix.

    Attributes
    ----------
    case : Case
    shape : tuple of int
    nnz : int
    product : Product or None
        What was found of its product with a vector; None if that failed, and so for the others.
    transposition : Transposition or None
        What was found of its transposed.
    square : Square or None
        What was found of its product with itself; None also where that is left out.
    failures : tuple of (str, Exception)
        What failed: the operation and its error.
    """

    case: Case
    shape: tuple[int, int]
    nnz: int
    product: Product | None
    transposition: Transposition | None
    square: Square | None
    failures: tuple[tuple[str, Exception], ...] = ()

    @property
    def right(self) -> bool:
        """Whether all results that there are are SciPy's: products up to rounding, the transposed entry by entry."""
        return all(each.right for each in (self.product, self.transposition, self.square) if each is not None)


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


def _median(seconds: Iterator[float]) -> float:
    """Return the median of some measurements, fewer where they take long."""
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < 3 or (len(found) < REPEATS and time.perf_counter() - began < SECONDS):
        found.append(next(seconds))
    return statistics.median(found)


def _repeated(measure: Callable[[], float]) -> Iterator[float]:
    while True:
        yield measure()


def _wall(action: Callable[[], object]) -> float:
    """Return the seconds of an action by the host's clock."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


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
        found = _median(_repeated(profile))
    except cl.Error:
        found = 0.0
    # No launch is that short: quirk 24.
    return found if found > _NO_TIME else _median(_repeated(lambda: _wall(back_to_back))) / REPEATS


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
    failures: list[tuple[str, Exception]] = []

    def found(operation: str, action: Callable[[], T]) -> T | None:
        try:
            return action()
        except _FAILURES as error:
            failures.append((operation, error))
            return None

    product = found("A @ x", lambda: _product(queue, A, host))
    transposition = found("A.T", lambda: _transposition(queue, A, host))
    square = found("A @ A", lambda: squared(A, host, lambda action: _median(_repeated(lambda: _wall(action)))))
    return Measurement(case, host.shape, host.nnz, product, transposition, square, tuple(failures))


def _product(queue: cl.CommandQueue, A: csr_array, host: scipy.sparse.csr_array) -> Product:
    """Multiply one matrix with a vector, compare with SciPy, and time both."""
    rng = np.random.default_rng(1)
    # Signs so that sums cancel: a product that is left out or taken twice then shows.
    x = ((rng.random(host.shape[1]) + 0.5) * rng.choice((-1, 1), host.shape[1])).astype(host.dtype)
    plan = spmv_plan(A)
    operand = cl_array.to_device(queue, x)
    result = cl_array.to_device(queue, np.full(host.shape[0], np.nan, host.dtype))
    plan.execute(A, operand, result)
    error = _error(host, x, result.get(queue))
    minimal = sum(part.nbytes for part in (host.indptr, host.indices, host.data, x, result))
    return Product(
        str(plan),
        _seconds(queue, lambda: plan.profile(A, operand, result), lambda: plan.execute(A, operand, result)),
        _median(_repeated(lambda: _wall(lambda: host @ x))),
        minimal,
        copy_bandwidth(queue, minimal),
        error,
    )


def _transposition(queue: cl.CommandQueue, A: csr_array, host: scipy.sparse.csr_array) -> Transposition:
    """Transpose one matrix, compare with SciPy, and time both."""
    found, reference = transpose(A).get(), host.T.tocsr()
    right = all(
        np.array_equal(getattr(found, part), getattr(reference, part), equal_nan=part == "data")
        for part in ("indptr", "indices", "data")
    )

    def once() -> None:
        transpose(A)
        queue.finish()

    return Transposition(
        str(transpose_plan(A)),
        _median(_repeated(lambda: _wall(once))),
        _median(_repeated(lambda: _wall(host.T.tocsr))),
        sum(part.nbytes for matrix in (host, reference) for part in (matrix.indptr, matrix.indices, matrix.data)),
        right,
    )


def _error(A: scipy.sparse.csr_array, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the largest distance of y from SciPy's A @ x, in units of its row's bound; see `rounding_bound`."""
    wide = np.result_type(A.dtype, np.float64)
    exact = A.astype(wide)
    reference = exact @ x.astype(wide)
    bound = rounding_bound(np.diff(A.indptr), abs(exact) @ np.abs(x).astype(np.float64), A.dtype, wide)
    return max_share(y, reference, bound)


def run(queue: cl.CommandQueue, files: Sequence[str], console: Console, errors: Console) -> int:
    """Measure the samples, the files and the generated matrices, and print the table.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Of the device.
    files : sequence of str
        Matrix files to multiply too.
    console, errors : rich.console.Console
        For the table, and for progress and what cannot be read.

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
                for operation, failure in found[-1].failures:
                    _say(errors, f"error: {operation} of {_reason(case, failure)}", "red")
    device = describe(queue.device)
    where = f"{device.name} ({device.platform})"
    _say(console, f"SpMV, y = A @ x, in {'double' if device.fp64 else 'single'} precision on {where}\n", "bold")
    console.print(_table(found))
    _say(console, _LEGEND, "dim")
    _say(console, "\nSpTRANS, A.T, each a whole call that is waited for\n", "bold")
    console.print(_transpositions(found))
    _say(console, _TRANSPOSITION_LEGEND, "dim")
    _say(console, "\nSpGEMM, A @ A, or A @ A.T where A is not square, each a whole call that is waited for\n", "bold")
    console.print(_squares(found))
    _say(console, _SQUARES_LEGEND, "dim")
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


def _table(found: Sequence[Measurement]) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in ("matrix", "rows", "nnz", "plan", "time", "GB/s", "copy", "error", "SciPy"):
        is_text = column in ("matrix", "plan")
        # In a narrow terminal the columns of text give way.
        table.add_column(
            column, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis", min_width=None if is_text else 7
        )
    origin = None
    for each in found:
        of = each.product
        if of is None:
            continue
        if origin != each.case.origin:
            table.add_section()
            table.add_row(Text(each.case.origin), style="dim italic")
            origin = each.case.origin
        table.add_row(
            Text(each.case.name),
            f"{each.shape[0]:,}",
            f"{each.nnz:,}",
            Text(of.plan),
            duration(of.seconds),
            _three_digits(of.bandwidth / 1e9),
            _share(of.bandwidth / of.copy_bandwidth),
            f"{of.error:.2f}" if of.right else "WRONG",
            duration(of.scipy_seconds),
            style=None if of.right else "red",
        )
    return table


def _transpositions(found: Sequence[Measurement]) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in ("matrix", "rows", "nnz", "method", "time", "GB/s", "result", "SciPy"):
        table.add_column(column, justify="left" if column in ("matrix", "method") else "right", no_wrap=True, overflow="ellipsis")
    for each in found:
        of = each.transposition
        if of is None:
            continue
        table.add_row(
            Text(each.case.name),
            f"{each.shape[0]:,}",
            f"{each.nnz:,}",
            Text(of.method),
            duration(of.seconds),
            _three_digits(of.minimal_bytes / of.seconds / 1e9),
            "equal" if of.right else "WRONG",
            duration(of.scipy_seconds),
            style=None if of.right else "red",
        )
    return table


def _squares(found: Sequence[Measurement]) -> Table:
    table = Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in ("matrix", "products", "nnz", "methods", "time", "GB/s", "error", "SciPy"):
        table.add_column(
            column, justify="left" if column in ("matrix", "methods") else "right", no_wrap=True, overflow="ellipsis"
        )
    for each in found:
        of = each.square
        if any(operation == "A @ A" for operation, _ in each.failures):
            continue
        if of is None:
            table.add_row(Text(each.case.name), "many", "", Text("left to the benchmarks"), style="dim")
            continue
        table.add_row(
            Text(each.case.name),
            f"{of.n_products:,}",
            f"{of.nnz:,}",
            Text(of.methods),
            duration(of.seconds),
            _three_digits(of.minimal_bytes / of.seconds / 1e9),
            f"{of.error:.2f}" if of.right else "WRONG",
            duration(of.scipy_seconds),
            style=None if of.right else "red",
        )
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
