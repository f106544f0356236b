"""Plan and execute: what an inspection decided, with the device arrays it needs, ready for any number of products."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyopencl as cl
import rich.box
import rich.console
import rich.table
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device, describe, in_order
from clsparse_py.semiring import Semiring, plus_times
from clsparse_py.spmv.binning import Side, count_bins, list_rows
from clsparse_py.spmv.choose import PIECE, Decision, KernelChoice, choose
from clsparse_py.spmv.features import Features, inspect
from clsparse_py.spmv.kernels import Adaptive, Boundaries, Chunked, Combine, Merge, Pieces, Subvector
from clsparse_py.transfer import pending

if TYPE_CHECKING:
    from clsparse_py.csr import csr_array

__all__ = ["Explanation", "SpmvPlan"]

_Record = TypeVar("_Record", bound=programs.Parameters)


@dataclass(frozen=True)
class Share:
    """Rows that one kernel processes: a line of an `Explanation`."""

    rows: int
    kernel: str
    built: str
    why: str


@dataclass(frozen=True)
class Explanation:
    """Which rows go to which kernel with which parameters, and why. Prints as a table.

    Attributes
    ----------
    scheme : str
        How rows are binned.
    rule : str
        What decided.
    shares : tuple of Share
        Rows, the kernel chosen, the kernel built (None until the first product), and why.
    launches : int
        Kernel launches of a product.
    """

    scheme: str
    rule: str
    shares: tuple[Share, ...]
    launches: int

    def __str__(self) -> str:
        table = rich.table.Table(title=f"SpMV: {self.scheme}. {self.rule}. Launches: {self.launches}", box=rich.box.SIMPLE)
        for column in ("rows", "kernel", "built as", "why"):
            table.add_column(column, justify="right" if column == "rows" else "left", overflow="fold")
        for share in self.shares:
            table.add_row(f"{share.rows:,}", share.kernel, share.built, share.why)
        text = io.StringIO()
        rich.console.Console(file=text, width=140).print(table)
        return text.getvalue().rstrip()


@dataclass
class _Launch:
    """A kernel with its own arguments set, and its index space."""

    kernel: cl.Kernel
    work_items: int
    work_group: int
    name: str

    def __post_init__(self) -> None:
        self.global_size = (-(-self.work_items // self.work_group) * self.work_group,)
        self.local_size = (self.work_group,)


@dataclass
class _Executable:
    """The launches of one product for one arithmetic, and the arrays that their arguments point to.

    Arguments belong to one execution at a time: `lock` is held from setting them to the last enqueue. So does what launches hand
    to each other in `keep`: where no queue's order sees to it, an execution waits for `last`, the one before it.
    """

    launches: list[_Launch] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    operands: tuple[Any, ...] | None = None
    last: tuple[cl.CommandQueue, cl.Event] | None = None

    def run(
        self,
        queue: cl.CommandQueue,
        operands: tuple[Any, ...],
        scale: tuple[Any, ...],
        wait_for: Sequence[cl.Event] | None,
        *,
        ordered: bool,
    ) -> list[cl.Event]:
        """Enqueue a product and return an event for each launch."""
        data, x, y = operands
        with self.lock:
            if self.operands is None or any(new is not old for new, old in zip(operands, self.operands, strict=True)) or scale:
                arguments = (
                    data.base_data,
                    x.base_data,
                    np.uint64(x.offset // x.dtype.itemsize),
                    y.base_data,
                    np.uint64(y.offset // y.dtype.itemsize),
                    *scale,
                )
                for launch in self.launches:
                    for position, argument in enumerate(arguments):
                        launch.kernel.set_arg(position, argument)
                # PyOpenCL does not keep alive what arguments point to: this does.
                self.operands = operands
            if len(self.launches) > 1 and self.last is not None and not (ordered and self.last[0] is queue):
                self.last[0].flush()  # OpenCL asks for it where one queue waits for another
                wait_for = [*(wait_for or ()), self.last[1]]
            events: list[cl.Event] = []
            for launch in self.launches:
                before = wait_for if not events else None if ordered else events[-1:]
                events.append(
                    cl.enqueue_nd_range_kernel(queue, launch.kernel, launch.global_size, launch.local_size, wait_for=before)
                )
            self.last = queue, events[-1]
            return events

    def __del__(self) -> None:
        # What is kept here goes with it, and a buffer on host memory goes at once: not while a kernel uses it.
        if self.last is not None:
            self.last[1].wait()


class SpmvPlan:
    """A plan for products ``A @ x`` with one structure, any values and any x. Made by `spmv_plan`.

    Kernels and row lists are made when the first product of a kind (dtypes, semiring, scaled or not) asks for them, and kept.

    Attributes
    ----------
    features : Features
        Of A.
    decision : Decision
        The binning scheme and the kernels.
    """

    def __init__(self, A: csr_array, scheme: str, kernel: str | KernelChoice | None) -> None:
        self._queue = in_order(A.queue)
        self._device: Device = describe(A.queue.device)
        self.shape = A.shape
        self._nnz = A.nnz
        self._indptr, self._indices = A.indptr, A.indices
        self.features: Features = inspect(self._queue, A.shape, A.nnz, A.indptr)
        self.decision: Decision = choose(self.features, self._device, scheme, kernel)
        self._executables: dict[tuple[str, str, str, bool], _Executable] = {}
        self._shares: list[Share] = []
        self._making = threading.Lock()

    def matches(self, A: csr_array) -> bool:
        """Return whether this plan was made for A's present structure."""
        return A.indptr is self._indptr and A.indices is self._indices

    def __str__(self) -> str:
        names = list(dict.fromkeys(choice.name for side in self.decision.kernels for choice in side))
        return f"{self.decision.scheme}: {', '.join(names) if len(names) < 4 else f'{names[0]} to {names[-1]}'}"

    def explain(self) -> Explanation:
        """Return which rows go to which kernel with which parameters, and why."""
        if self._shares:
            shares = tuple(self._shares)
        else:
            why = "built at the first product"
            names = dict.fromkeys(str(choice) for side in self.decision.kernels for choice in side)
            shares = tuple(Share(self.shape[0], name, "", why) for name in names)
        launches = max((len(each.launches) for each in self._executables.values()), default=0)
        return Explanation(str(self.decision.scheme), self.decision.rule, shares, launches)

    def execute(
        self,
        A: csr_array,
        x: cl_array.Array,
        y: cl_array.Array,
        *,
        alpha: Any = None,
        beta: Any = None,
        semiring: Semiring = plus_times,
        queue: cl.CommandQueue | None = None,
    ) -> list[cl.Event]:
        """Enqueue ``y = alpha * A @ x + beta * y`` and return its events, one a launch. Nothing is checked; see `spmv`."""
        queue = queue or x.queue or self._queue
        scaled = alpha is not None or beta is not None
        key = (A.data.dtype.char, x.dtype.char, semiring.name, scaled)
        executable = self._executables.get(key)
        if executable is None:
            executable = self._make(key, Arithmetic(A.dtype.name, x.dtype.name, self._indptr.dtype.name, semiring.name), scaled)
        scale = (_scalar(1 if alpha is None else alpha, y.dtype), _scalar(0 if beta is None else beta, y.dtype)) if scaled else ()
        ordered, wait_for = pending(queue, A.data, x, y)
        if not executable.launches:
            return [cl.enqueue_marker(queue, wait_for=wait_for)]
        return executable.run(queue, (A.data, x, y), scale, wait_for, ordered=ordered)

    def profile(self, A: csr_array, x: cl_array.Array, y: cl_array.Array) -> float:
        """Return the device's time for one product in seconds: the sum over its launches, by the device's own clock.

        Waits. Uses a profiling queue of its own. What passes between launches is not counted: on an idle queue it is the
        host's time to enqueue the second.
        """
        queue = cl.CommandQueue(A.queue.context, A.queue.device, cl.command_queue_properties.PROFILING_ENABLE)
        events = self.execute(A, x, y, queue=queue)
        queue.finish()
        return float(sum(event.profile.end - event.profile.start for event in events)) * 1e-9

    def _make(self, key: tuple[str, str, str, bool], arithmetic: Arithmetic, scaled: bool) -> _Executable:
        """Build the kernels for an arithmetic and make the arrays that they need."""
        with self._making:
            kept = self._executables.get(key)
            if kept is not None:
                return kept
            builder = _Builder(self, arithmetic, scaled)
            if self.shape[0]:
                if self.decision.scheme.name == "single":
                    builder.single(self.decision.kernels[0][0])
                else:
                    builder.binned()
            self._queue.finish()
            self._shares = builder.shares
            self._executables[key] = builder.executable
            return builder.executable


def _scalar(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return alpha or beta as a kernel takes it."""
    return np.array(value, dtype=dtype)


class _Builder:
    """Makes the executable of a plan for one arithmetic."""

    def __init__(self, plan: SpmvPlan, arithmetic: Arithmetic, scaled: bool) -> None:
        self.plan, self.arithmetic, self.scaled = plan, arithmetic, scaled
        self.queue, self.device = plan._queue, plan._device
        self.n_rows = plan.shape[0]
        self.index = plan._indptr.dtype.type
        self.executable = _Executable(keep=[plan._indptr, plan._indices])
        self.shares: list[Share] = []

    def _built(self, parameters: _Record) -> tuple[programs.Built, _Record]:
        """Return the built kernel and the parameters that it was built with."""
        built = programs.build(self.queue.context, self.queue.device, parameters)
        return built, cast("_Record", built.parameters)  # `within` adapts a record to another of its class

    def _launch(self, built: programs.Built, work_items: int, *own: Any) -> None:
        """Add a launch; ``own`` are the arguments after the operands."""
        kernel = built.kernel()
        operands = 7 if self.scaled else 5
        for position, argument in enumerate(own, start=operands):
            is_array = isinstance(argument, cl_array.Array)
            kernel.set_arg(position, argument.base_data if is_array else argument)
            if is_array:
                self.executable.keep.append(argument)
        parameters = built.parameters
        self.executable.launches.append(_Launch(kernel, work_items, parameters.work_group, parameters.name))

    def _share(self, rows: int, choice: str, built: programs.Built, why: str) -> None:
        self.shares.append(Share(rows, choice, built.parameters.name, why))

    def _upload(self, values: Any) -> cl_array.Array:
        return cl_array.to_device(self.queue, np.ascontiguousarray(values, dtype=self.index))

    def single(self, choice: KernelChoice) -> None:
        """All rows, in order, to one kernel."""
        plan, structure = self.plan, (self.plan._indptr, self.plan._indices)
        why = plan.decision.rule
        if choice.name == "adaptive":
            record = Adaptive.legal(self.device, self.arithmetic, self.scaled, choice.work_group, choice.items)
            built, adaptive = self._built(record)
            # Room for the rest of a part's last row, where that is little: then no row is cut, and there is no second launch.
            rest = max(plan.features.longest - 1, 0)
            slack = rest if rest <= adaptive.capacity // 8 else 0
            self._balanced(built, adaptive.capacity - slack, 0, slack)
        elif choice.name == "merge":
            built, merge = self._built(Merge.legal(self.device, self.arithmetic, self.scaled, choice.work_group, choice.items))
            self._balanced(built, merge.capacity, 1, 0)
        elif choice.name == "chunked":
            built, _ = self._built(Chunked.legal(self.device, self.arithmetic, self.scaled, choice.work_group))
            weight = plan._nnz + self.n_rows
            step = max(1, -(-weight // (self.device.compute_units * choice.items)))
            # Rows are cut only where their rest is long: each cut row costs a piece of a second launch.
            self._balanced(built, step, 1, step // 2, work_item_each=True)
        elif choice.name == "pieces":
            built = self._pieces(choice, self.plan._indptr.get(), np.arange(self.n_rows))
        else:
            asked = choice.width, choice.work_group, choice.unroll
            built, subvector = self._built(Subvector.legal(self.device, self.arithmetic, self.scaled, *asked, binned=False))
            self._launch(built, self.n_rows * subvector.width, self.index(self.n_rows), *structure)
        self._share(self.n_rows, str(choice), built, why)

    def _balanced(self, built: programs.Built, step: int, row_weight: int, slack: int, *, work_item_each: bool = False) -> None:
        """Add the launches of a kernel that takes parts of equal weight, a work-group or a work-item to each."""
        plan, index = self.plan, self.index
        n_parts, found = self._cut(step, row_weight, slack)
        part_row = found[0].get()
        if not row_weight and np.diff(part_row).max() > 4 * step:
            # A part with many rows for its entries, empty ones, would take long: rows are made to weigh.
            n_parts, found = self._cut(step, 1, slack)
            part_row = found[0].get()
        partial = cl_array.empty(self.queue, n_parts, self.arithmetic.result)
        own = (found[0], found[1], partial, plan._indptr, plan._indices)
        if work_item_each:
            self._launch(built, n_parts, index(n_parts), index(plan._nnz), *own)
        else:
            self._launch(built, n_parts * built.parameters.work_group, *own)
        # A cut row's number is one below the row of the parts that begin inside it; its later pieces are those parts.
        cut = np.flatnonzero(found[2].get())
        if cut.size:
            self._combine(part_row[cut] - 1, cut, partial)

    def _cut(self, step: int, row_weight: int, slack: int) -> tuple[int, list[cl_array.Array]]:
        """Return the number of parts, and where they begin: arrays of rows, entries, and whether a row is cut there."""
        plan, index = self.plan, self.index
        n_parts = max(1, -(-(plan._nnz + row_weight * self.n_rows) // step))
        built, parameters = self._built(Boundaries(min(64, self.device.max_work_group), plan._indptr.dtype.name))
        found = [cl_array.empty(self.queue, n_parts + 1, plan._indptr.dtype) for _ in range(3)]
        kernel = built.kernel(
            index(self.n_rows), index(plan._nnz), np.int64(step), np.int64(row_weight), index(slack), index(n_parts),
            plan._indptr.data, *(array.data for array in found),
        )  # fmt: skip
        group = parameters.work_group
        cl.enqueue_nd_range_kernel(self.queue, kernel, (-(-(n_parts + 1) // group) * group,), (group,))
        return n_parts, found

    def _pieces(self, choice: KernelChoice, indptr: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> programs.Built:
        """Add the launches for rows that several work-groups share."""
        built, parameters = self._built(Pieces.legal(self.device, self.arithmetic, self.scaled, choice.work_group, choice.unroll))
        begin, end = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        n_pieces = np.maximum(1, -(-(end - begin) // PIECE))
        row = np.repeat(np.arange(rows.size), n_pieces)
        number = np.arange(row.size) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
        piece_begin = begin[row] + number * PIECE
        piece_end = np.minimum(piece_begin + PIECE, end[row])
        partial = cl_array.empty(self.queue, max(row.size, 1), self.arithmetic.result)
        tables = (self._upload(rows[row]), self._upload(piece_begin), self._upload(piece_end))
        self._launch(built, row.size * parameters.work_group, *tables, partial, self.plan._indptr, self.plan._indices)
        later = np.flatnonzero(number > 0)
        if later.size:
            self._combine(rows[row[later]], later, partial)
        return built

    def _combine(self, rows: np.ndarray[Any, Any], pieces: np.ndarray[Any, Any], partial: cl_array.Array) -> None:
        """Add the launch that adds later pieces to their rows; the pieces of a row are adjacent."""
        begins = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        ends = np.concatenate((begins[1:], [rows.size])) - 1
        # Most rows that are cut have one later piece or few; lanes for the longest would only wait.
        lanes = 32 if rows.size >= 8 * begins.size else 4
        built, parameters = self._built(Combine.legal(self.device, self.arithmetic, self.scaled, lanes=lanes))
        tables = (self._upload(rows[begins]), self._upload(pieces[begins]), self._upload(pieces[ends]))
        self._launch(built, begins.size * parameters.lanes, self.index(begins.size), *tables, partial)

    def binned(self) -> None:
        """Rows in bins: those of one kernel form a list, and all lists but that of pieces share a launch."""
        plan = self.plan
        lists: list[tuple[int, cl_array.Array, int, int, Side]] = []
        for side, choices in zip(plan.decision.scheme.sides, plan.decision.kernels, strict=True):
            counts = count_bins(self.queue, self.n_rows, plan._indptr, side)
            used = [choice for choice, count in zip(choices, counts, strict=True) if count]
            kernels = list(dict.fromkeys(used))
            if not kernels:
                continue
            number = {choice: i for i, choice in enumerate(kernels)}
            list_of_bin = np.array(
                [number.get(choice, -1) if count else -1 for choice, count in zip(choices, counts, strict=True)]
            )
            rows = list_rows(self.queue, self.n_rows, plan._indptr, side, list_of_bin, int(counts.sum()))
            begin = 0
            for i, choice in enumerate(kernels):
                n_virtual = int(counts[list_of_bin == i].sum())
                if choice.name == "pieces":
                    numbers = rows.get()[begin : begin + n_virtual]
                    built = self._pieces(choice, plan._indptr.get(), numbers)
                    self._share(n_virtual, str(choice), built, f"rows of more than {PIECE} entries are cut")
                else:
                    lists.append((choice.width, rows, begin, n_virtual, side))
                begin += n_virtual
        if lists:
            self._subvectors(lists)

    def _joined(self, arrays: list[cl_array.Array]) -> cl_array.Array:
        joined = cl_array.empty(self.queue, sum(array.size for array in arrays), self.index)
        begin, target = 0, cast("cl.Buffer", joined.data)
        for array in arrays:
            source = cast("cl.Buffer", array.data)
            cl.enqueue_copy(self.queue, target, source, byte_count=array.nbytes, dst_offset=begin)
            begin += array.nbytes
        return joined

    def _subvectors(self, lists: list[tuple[int, cl_array.Array, int, int, Side]]) -> None:
        """Add the launch that lists of all widths share."""
        choices = [choice for side in self.plan.decision.kernels for choice in side if choice.name != "pieces"]
        widest = max(width for width, *_ in lists)
        record = Subvector.legal(
            self.device, self.arithmetic, self.scaled, widest, choices[0].work_group, choices[0].unroll, binned=True
        )
        built, parameters = self._built(record)
        arrays = list({id(rows): rows for _, rows, *_ in lists}.values())
        offsets = dict(zip((id(rows) for rows in arrays), np.cumsum([0] + [rows.size for rows in arrays]), strict=False))
        rows = arrays[0] if len(arrays) == 1 else self._joined(arrays)
        bins: list[int] = []
        group = 0
        # Long rows first: what takes longest begins first.
        for width, of_list, begin, n_virtual, side in sorted(lists, key=lambda each: -each[0]):
            lanes = min(width, parameters.width)
            bins += [group, begin + int(offsets[id(of_list)]), n_virtual, side.granularity, lanes]
            group += -(-n_virtual * side.granularity * lanes // parameters.work_group)
            why = f"bins of granularity {side.granularity} that take X = {lanes}"
            self._share(min(n_virtual * side.granularity, self.n_rows), f"X = {lanes}", built, why)
        n_bins = self.index(len(lists))
        structure = (self.plan._indptr, self.plan._indices)
        work_items = group * parameters.work_group
        self._launch(built, work_items, self.index(self.n_rows), n_bins, self._upload(bins), rows, *structure)
