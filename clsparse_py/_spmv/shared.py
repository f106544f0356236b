"""A product that several devices share: each computes some rows, from its own part of A or from memory that all of them reach."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py import refusals
from clsparse_py._spmv.binning import Scheme
from clsparse_py._spmv.choose import KernelChoice, KernelName
from clsparse_py._spmv.division import Division, Load, Speed, divide, rows_by_device
from clsparse_py._spmv.plan import SpmvPlan
from clsparse_py._spmv.speed import speed_of, together
from clsparse_py._spmv.turns import times_in_turns
from clsparse_py.convert import converted
from clsparse_py.device import describe
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix, Structure
from clsparse_py.memory import allocated, array_of
from clsparse_py.operands import check_matrix, check_scale, dense_operand, result_for
from clsparse_py.order import note_written
from clsparse_py.primitives.permute import enqueue_permute
from clsparse_py.records import dataclass
from clsparse_py.semiring import Semiring, plus_times
from clsparse_py.set_once import SetOnce
from clsparse_py.tables import Shown, Table, plan_as_html
from clsparse_py.transfer import contexts_match, fetched, from_host, on_host, to_host

__all__ = ["SharedExplanation", "SharedSpmvPlan", "checked_queues"]

_Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SharedExplanation(Shown):
    """Which device takes which rows of a product, and why. Prints as a table.

    Attributes
    ----------
    parts : tuple of tuple of str
        Of each device: its name, rows, entries, the share of A's bytes, where its part of A is, and its kernels.
    rule : str
        The reason: the devices' numbers, and the times that follow from them.
    """

    parts: tuple[tuple[str, ...], ...]
    rule: str

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        columns = ("device", "rows", "entries", "share", "its part of A", "kernels")
        return Table(f"SpMV on {len(self.parts)} device{'s' * (len(self.parts) > 1)}", columns, self.parts, self.rule, "rows")


@dataclass(frozen=True)
class _HostParts:
    """A's arrays as the host sees them, and whether that is A's own memory."""

    data: _Host
    indices: _Host
    indptr: _Host
    is_lent: bool

    @classmethod
    def of(cls, A: Matrix) -> _HostParts:
        (data, is_lent), (indices, are_lent), (indptr, _) = (_seen(A.queue, each) for each in A.parts)
        return cls(data, indices, indptr, is_lent and are_lent)


class _Part:
    """The rows that a device computes, as a matrix of its own.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
    rows : slice or numpy.ndarray
        Of A: adjacent ones, or a list.
    at : slice
        Where they stand among the rows of all parts.
    entries : slice or numpy.ndarray
        Of A.
    is_home : bool
        Whether the device is A's own.
    memory : str
        Where the matrix is, in words.
    matrix : Matrix
    plan : SpmvPlan
    """

    def __init__(
        self,
        A: Matrix,
        host: _HostParts,
        queue: cl.CommandQueue,
        rows: slice | _Host,
        begin: int,
        make: Callable[[Matrix], SpmvPlan],
    ) -> None:
        self.queue, self.rows, self.is_home = queue, rows, _is_home(A, queue)
        self.context: cl.Context = queue.context  # kept, as the queue may not keep it: quirk 9
        lengths = np.diff(host.indptr)[rows].astype(np.int64)
        pointers = np.concatenate(([0], np.cumsum(lengths)))
        self.n_rows, self.n_entries = lengths.size, int(pointers[-1])
        self.at = slice(begin, begin + self.n_rows)
        if isinstance(rows, slice):
            self.entries: slice | _Host = slice(int(host.indptr[rows.start]), int(host.indptr[rows.stop]))
        else:
            self.entries = np.arange(self.n_entries) + np.repeat(host.indptr[rows] - pointers[:-1], lengths)
        # A's first rows are the first entries of its arrays, which kernels of A's device take as they are.
        self._is_first = self.is_home and isinstance(rows, slice) and rows.start == 0 and self.n_entries > 0
        is_lent = isinstance(rows, slice) and host.is_lent and describe(queue.device).aliases_host
        self.memory = "A's own" if self._is_first else "shared, no copy" if is_lent else "copied"
        if self._is_first:
            indices, indptr = A.indices[self.entries], A.indptr[: self.n_rows + 1]
        else:
            indices = from_host(queue, host.indices[self.entries], copy=False)
            indptr = from_host(queue, pointers.astype(A.indptr.dtype), copy=False)
        self._structure = Structure(queue, (self.n_rows, A.shape[1]), indices, indptr)
        self.take(A, host.data)
        self.plan = make(self.matrix)

    @property
    def n_bytes(self) -> int:
        """Bytes of its matrix."""
        return sum(array.nbytes for array in self.matrix.parts)

    def take(self, A: Matrix, data: _Host) -> None:
        """Take A's values, which are on the host, too."""
        values = A.data[self.entries] if self._is_first else from_host(self.queue, data[self.entries], copy=False)
        self.matrix = Matrix.assembled(self._structure, values)


def _seen(queue: cl.CommandQueue, array: cl_array.Array) -> tuple[_Host, bool]:
    """Return a device array's values on the host, and whether that is its own memory; waits for what writes to it."""
    for event in array.events:
        event.wait()
    buffer: Any = array.base_data
    if array.size and not array.offset and describe(queue.device).aliases_host:
        try:
            return buffer.get_host_array(array.shape, array.dtype), True
        except (AttributeError, cl.Error):
            pass  # of the pool, or of shared virtual memory
    return fetched(array, queue), False


@dataclass(frozen=True)
class _Layout:
    """What products are made with.

    Attributes
    ----------
    division : Division
    alone : SpmvPlan or None
        The plan of A's own device, if that takes all rows.
    parts : tuple of _Part
        None if there is such a plan.
    merge : tuple or None
        If rows go by length: the rows of all parts one after another, and where each row of y stands there, on A's device.
    """

    division: Division
    alone: SpmvPlan | None
    parts: tuple[_Part, ...]
    merge: tuple[_Host, cl_array.Array] | None


#: Seconds that all ways are tried for together, five products each at least.
_TRIAL = 0.15
#: Devices share a product if it took less than this of the time on the fastest one alone.
_PAYS = 0.95
#: A device is tried alone if it is expected to take at most this times as long as the fastest one.
_NEAR = 2.0


class SharedSpmvPlan(SetOnce):
    """A plan for products ``A @ x`` that several devices share, with one structure, any values and any x. Made by `spmv_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        A's.
    queues : tuple of pyopencl.CommandQueue
        As given: A's device first, if it is one of them.
    shape : tuple of int
    nnz : int
    indptr, indices : pyopencl.array.Array
        The structure that the plan belongs to.
    speeds : tuple of Speed
        Of the devices.
    tried : dict
        Seconds of products with vectors of the host that were measured when the plan was made: by the place in `queues` of the
        device that computed alone, by None if several shared: the median of a device alone, the third quartile of a shared
        product. Empty if there was nothing to choose between.
    """

    def __init__(
        self,
        A: Matrix,
        queues: Sequence[cl.CommandQueue],
        scheme: str | Scheme,
        kernel: KernelName | KernelChoice | None,
        expected: int | None = None,
    ) -> None:
        home = next((at for at, queue in enumerate(queues) if _is_home(A, queue)), None)
        # A's device takes the first rows, which are the first entries of its arrays.
        self.queues = tuple(queues) if home is None else (queues[home], *queues[:home], *queues[home + 1 :])
        self.queue, self.shape, self.nnz = A.queue, A.shape, A.nnz
        self.indptr, self.indices = A.indptr, A.indices
        # Of one device there is nothing to decide.
        self.speeds: tuple[Speed, ...] = tuple(map(speed_of, self.queues)) if len(queues) > 1 else ()
        entry, row = A.dtype.itemsize + A.indices.dtype.itemsize, A.dtype.itemsize + A.indptr.dtype.itemsize
        load = Load(entry * A.nnz + row * A.shape[0], A.dtype.itemsize * A.shape[1], A.dtype.itemsize * A.shape[0])
        decided = self._decided(A, load, home)
        self._host: _HostParts | None = None
        self._refreshing = threading.Lock()
        self._note(A)

        def make(part: Matrix) -> SpmvPlan:
            return SpmvPlan.of(part, scheme, kernel, expected)

        # Another way needs no memory to be tried, but of the matrix of a device that has to copy it.
        ways: dict[int | None, Division] = {self._only(decided): decided}
        ways |= {at: decided.all_to(at) for at in self._near(A, decided, home)}
        layouts = {way: self._laid_out(A, division, (entry, row), make) for way, division in ways.items()}
        self._layout = next(iter(layouts.values()))
        self.tried: dict[int | None, float] = self._try(A, layouts) if len(layouts) > 1 else {}
        self._host = None

    @staticmethod
    def _only(division: Division) -> int | None:
        """Return the device that takes all; None if several share."""
        return division.shares.index(1.0) if 1.0 in division.shares else None

    def _near(self, A: Matrix, decided: Division, home: int | None) -> list[int]:
        """Return the devices to be tried alone: those about as fast as the fastest one that reach all of A without a copy."""
        if not A.nnz or not decided.alone:
            return []
        near = [at for at, alone in enumerate(decided.alone) if alone <= _NEAR * min(decided.alone)]
        if near == [0] and home is not None:
            return near  # A's own device
        self._host = _HostParts.of(A)
        lent = self._host.is_lent
        return [at for at in near if (at == 0 and home is not None) or (lent and describe(self.queues[at].device).aliases_host)]

    def _try(self, A: Matrix, layouts: dict[int | None, _Layout]) -> dict[int | None, float]:
        """Return the seconds of products in several ways; keep the fastest: one device if a division is hardly faster."""
        x = np.ones(self.shape[1], A.dtype)
        y = self.product(A, x, None, None, None, plus_times)

        def of(layout: _Layout) -> Callable[[], object]:
            def call() -> None:
                self._layout = layout
                self.product(A, x, None, None, y, plus_times)

            return call

        times = times_in_turns([of(layout) for layout in layouts.values()], _TRIAL)
        # A shared product ends with its latest device, and systems start a second one late now and then: in how many calls, a
        # short trial does not tell. So it has to be faster in three of four.
        seconds = {way: float(np.quantile(each, 0.75 if way is None else 0.5)) for way, each in zip(layouts, times, strict=True)}
        self._layout = layouts[min(seconds, key=lambda way: seconds[way] / (_PAYS if way is None else 1.0))]
        return seconds

    @property
    def division(self) -> Division:
        """Which share each device has."""
        return self._layout.division

    @property
    def alone(self) -> SpmvPlan | None:
        """The plan of A's own device, if that takes all rows."""
        return self._layout.alone

    def _decided(self, A: Matrix, load: Load, home: int | None) -> Division:
        """Return which device takes which share."""
        if not self.speeds:
            return Division((1.0,), 0.0, (), 1.0)
        longest = np.diff(fetched(A.indptr, A.queue)).max(initial=0)
        at = None if home is None or describe(A.queue.device).aliases_host else 0
        return divide(self.speeds, load, together(self.queues), at, float(longest) * A.shape[0] / max(A.nnz, 1))

    def _laid_out(self, A: Matrix, division: Division, weights: tuple[int, int], make: Callable[[Matrix], SpmvPlan]) -> _Layout:
        """Return the plan of A's device, if that takes all rows, or the parts of A that have rows."""
        if division.shares[0] == 1.0 and _is_home(A, self.queues[0]):
            return _Layout(division, make(A), (), None)
        host = self._host = self._host or _HostParts.of(A)
        begin, parts = 0, []
        for queue, rows in zip(self.queues, rows_by_device(division, host.indptr, self.speeds, *weights), strict=True):
            if rows.stop - rows.start if isinstance(rows, slice) else rows.size:
                parts.append(_Part(A, host, queue, rows, begin, make))
                begin += parts[-1].n_rows
        if not division.by_length or len(parts) < 2:
            return _Layout(division, None, tuple(parts), None)
        order = np.concatenate([part.rows for part in parts])
        places = np.empty(order.size, self.indptr.dtype)
        places[order] = np.arange(order.size, dtype=places.dtype)
        return _Layout(division, None, tuple(parts), (order, from_host(self.queue, places, copy=False)))

    @property
    def _parts(self) -> tuple[_Part, ...]:
        return self._layout.parts

    @property
    def _merge(self) -> tuple[_Host, cl_array.Array] | None:
        return self._layout.merge

    def matches(self, A: Matrix) -> bool:
        """Return whether this plan was made for A's present structure."""
        return A.indptr is self.indptr and A.indices is self.indices

    def __str__(self) -> str:
        names = [describe(part.queue.device).name for part in self._parts] or [describe(self.queue.device).name]
        return " + ".join(names)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<SharedSpmvPlan of a {rows} x {columns} matrix with {self.nnz} entries: {self}>"

    _repr_html_ = plan_as_html

    def explain(self) -> SharedExplanation:
        """Return which device takes which rows, from which memory, and why."""
        if self.alone is not None:
            own = ("A's own", str(self.alone))
            parts = [(self.alone.device.name, f"{self.shape[0]:,}", f"{self.nnz:,}", "100 %", *own)]
        else:
            whole = max(sum(part.n_bytes for part in self._parts), 1)
            parts = [
                (
                    describe(part.queue.device).name, f"{part.n_rows:,}", f"{part.n_entries:,}",
                    f"{100 * part.n_bytes / whole:.0f} %", part.memory, str(part.plan),
                )
                for part in self._parts
            ]  # fmt: skip
        plans = [part.plan for part in self._parts] if self.alone is None else [self.alone]
        return SharedExplanation(tuple(parts), self._why() + refusals.in_words(name for plan in plans for name in plan.refused))

    def _why(self) -> str:
        of = self.division
        if not self.speeds:
            return "there is one device"
        numbers = [
            f"{describe(queue.device).name} moves {speed.bytes_per_second / 1e9:.3g} GB/s, "
            f"{speed.seconds_per_launch * 1e6:.3g} us a launch: alone {alone * 1e3:.3g} ms"
            for queue, speed, alone in zip(self.queues, self.speeds, of.alone, strict=True)
        ]
        if 1.0 in of.shares and None in self.tried:
            end = "one device, as a division was not 5 % faster"
        elif 1.0 in of.shares:
            end = f"no division is expected to be 5 % faster than {of.seconds * 1e3:.3g} ms on one"
        else:
            how = "the longest rows to the one that launches fastest" if of.by_length else "rows in order"
            end = f"together {of.seconds * 1e3:.3g} ms, {how}"
        left = f"they keep {100 * of.together:.0f} % of their speeds at the same time"
        return "; ".join([*numbers, left, end, *self._trial()])

    def _trial(self) -> list[str]:
        """Return what trying several ways brought, in words."""
        if not self.tried:
            return []
        names = {way: "shared" if way is None else describe(self.queues[way].device).name + " alone" for way in self.tried}
        return ["tried: " + ", ".join(f"{names[way]} {seconds * 1e3:.3g} ms" for way, seconds in self.tried.items())]

    def refresh(self, A: Matrix) -> None:
        """Take A's values anew. `spmv` does so for another matrix, or other `A.data`; values written in place are to be told of.

        Parameters
        ----------
        A : csr_array
            Of this plan's structure.

        Raises
        ------
        ValueError
            It has another structure.
        """
        check_matrix(A)
        if not self.matches(A):
            raise ValueError("A: has another structure than the plan's")
        with self._refreshing:
            if self._parts:
                data, _ = _seen(A.queue, A.data)
                for part in self._parts:
                    part.take(A, data)
            self._note(A)

    def _note(self, A: Matrix) -> None:
        self._values = weakref.ref(A), weakref.ref(A.data), A._version

    def _has_values_of(self, A: Matrix) -> bool:
        of, data, version = self._values
        return data() is A.data and (of() is not A or version == A._version)

    def product(self, A: Matrix, x: Any, alpha: Any, beta: Any, out: Any, semiring: Semiring) -> Any:
        """Return the product of all parts, as `spmv` does."""
        if not self._has_values_of(A):
            self.refresh(A)
        operand, on_device = dense_operand(A, "x", x, ndim=1)
        dtype = check_scale(A, operand, alpha, beta, out, semiring)
        self._require_precision(dtype)
        result = result_for(A, "x", operand, x, out, dtype, (A.shape[0],), on_device=on_device)
        if self.alone is not None:
            scale = {"alpha": alpha, "beta": beta, "semiring": semiring}
            note_written(result.array, self.alone.execute(A, operand, result.array, **scale)[-1])
            return result.deliver()
        if operand.size > 1 and operand.strides != (operand.dtype.itemsize,):
            operand = converted(A.queue, "x", operand, operand.dtype)
        scale = {"alpha": alpha, "beta": beta, "semiring": semiring}
        if on_device:
            self._on_device(operand, result.array, scale)
            return result.deliver()
        assert result.host is not None  # as x is not on the device
        # Not from the device, where `result.array` may be memory of its own that no part wrote to.
        self._on_host(np.ascontiguousarray(x, operand.dtype), result.host, scale, (operand, result.array))
        return result.host

    def _require_precision(self, dtype: np.dtype[Any]) -> None:
        """Raise a TypeError if one of the devices lacks double precision, and the product needs it."""
        for part in self._parts:
            if dtype.char in "dD" and not describe(part.queue.device).fp64:
                raise TypeError(f"x: {dtype} needs double precision, which {part.queue.device.name} lacks; use single precision")

    def _on_host(self, x: _Host, y: _Host, scale: dict[str, Any], at_home: tuple[cl_array.Array, cl_array.Array]) -> None:
        """Compute a product of vectors of the host, which A's device has besides."""
        if self._merge is None:
            self._gathered(self._parts, x, y, scale, at_home)
            return
        order, _ = self._merge
        found = y[order] if scale["beta"] is not None else np.empty_like(y)
        self._gathered(self._parts, x, found, scale)
        y[order] = found

    def _gathered(
        self,
        parts: Iterable[_Part],
        x: _Host,
        y: _Host,
        scale: dict[str, Any],
        at_home: tuple[cl_array.Array, cl_array.Array] | None = None,
    ) -> None:
        """Compute parts' rows of a vector of the host, those of one part after those of another; x is sent to each once."""
        begun = []
        for part in parts:
            rows = y[part.at]
            if at_home is not None and part.is_home:
                sent, whole = at_home
                found = array_of(part.queue, part.n_rows, whole.dtype, whole.base_data)  # its rows are the first
            else:
                sent = from_host(part.queue, x, copy=False)
                found = from_host(part.queue, rows, copy=False) if scale["beta"] is not None else to_host(part.queue, rows)
            self._run(part, sent, found, scale)
            begun.append((found, rows))
        for found, rows in begun:
            on_host(found, rows)

    def _run(self, part: _Part, x: cl_array.Array, y: cl_array.Array, scale: dict[str, Any]) -> None:
        """Enqueue a part's product."""
        queue = x.queue or part.queue
        note_written(y, part.plan.execute(part.matrix, x, y, queue=queue, **scale)[-1])
        # The device begins while the host goes on to the next one.
        queue.flush()

    def _on_device(self, x: cl_array.Array, y: cl_array.Array, scale: dict[str, Any]) -> None:
        """Compute a product of vectors on A's device. Other devices know none of its events: the host waits in between."""
        queue, has_beta = x.queue or self.queue, scale["beta"] is not None
        own = [part for part in self._parts if part.is_home]
        others = [part for part in self._parts if not part.is_home]
        before, target = None, y
        if has_beta and (others or self._merge is not None):
            before = _reading(queue, y)()
        if self._merge is not None:
            order, _ = self._merge
            if before is not None:
                before = before[order]
                target = from_host(queue, before, copy=True)
            else:
                target = allocated(queue, "rows of the product", y.shape, y.dtype)
        of_host = _reading(queue, x) if others else None
        for part in own:
            self._run(part, x, target[part.at], scale)
        chain = None
        if of_host is not None:
            rows = np.empty(y.shape, y.dtype) if before is None else before
            self._gathered(others, of_host(), rows, scale)
            chain = Chain(queue, writes=(target,))
            first = target.offset // target.dtype.itemsize
            for part in others:
                chain.copy(target, chain.sent(rows[part.at]), part.n_rows, first + part.at.start)
            chain.finish(target)
        if self._merge is not None:
            _merged(queue, self._merge[1], target, y)


def _reading(queue: cl.CommandQueue, array: cl_array.Array) -> Callable[[], _Host]:
    """Enqueue the read of a contiguous array; return a function that waits for it."""
    return Chain(queue, array).read_later(array, array.size, array.offset // array.dtype.itemsize)


def _merged(queue: cl.CommandQueue, places: cl_array.Array, rows: cl_array.Array, y: cl_array.Array) -> None:
    """Enqueue ``y = rows[places]``."""
    chain = Chain(queue, places, rows, writes=(y,))
    found = y if not y.offset else chain.scratch(y.size, y.dtype)
    enqueue_permute(chain, places, rows, found, y.size)
    if found is not y:
        chain.copy(y, found, y.size, y.offset // y.dtype.itemsize)
    chain.finish(y)


def _is_home(A: Matrix, queue: cl.CommandQueue) -> bool:
    """Return whether a queue is one of A's own device and context."""
    return bool(contexts_match(A.data, queue.context) and queue.device == A.queue.device)


def checked_queues(A: Matrix, queues: Any) -> tuple[cl.CommandQueue, ...]:
    """Return the queues that a product is to be divided between.

    Raises
    ------
    ValueError, TypeError
        There is none, one is no queue or of no use, two are of one device or parts of each other, or a device lacks A's dtype;
        the message names the argument.
    """
    if isinstance(queues, cl.CommandQueue) or not isinstance(queues, Sequence):
        raise TypeError(f"queues: must be a list of pyopencl.CommandQueue, is {type(queues).__name__}")
    if not queues:
        raise ValueError("queues: must name at least one queue, is empty")
    devices: list[cl.Device] = []
    for at, queue in enumerate(queues):
        if not isinstance(queue, cl.CommandQueue):
            raise TypeError(f"queues: must be a list of pyopencl.CommandQueue, [{at}] is {type(queue).__name__}")
        try:
            device, _ = queue.device, queue.context
        except cl.Error as error:
            raise ValueError(f"queues: [{at}] cannot be used: {error}") from None
        name = device.name.strip()
        if device in devices:
            raise ValueError(f"queues: [{devices.index(device)}] and [{at}] are of one device, {name}")
        if any(parent in devices for parent in _parents(device)) or any(device in _parents(other) for other in devices):
            raise ValueError(f"queues: [{at}] is of a device, {name}, that is a part of another's, or the other way round")
        if A.dtype.char in "dD" and not describe(device).fp64:
            raise TypeError(f"queues: [{at}] is of {name}, which lacks double precision, and A's dtype is {A.dtype}")
        devices.append(device)
    return tuple(queues)


def _parents(device: cl.Device) -> list[cl.Device]:
    """Return the devices that a device is a part of."""
    found = []
    parent = _parent(device)
    while parent is not None:
        found.append(parent)
        parent = _parent(parent)
    return found


def _parent(device: cl.Device) -> cl.Device | None:
    try:
        return device.parent_device or None
    except (cl.Error, AttributeError):
        return None
