"""A product that several devices share: each computes some rows, from its own part of A or from memory that all of them reach."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._device.device import describe
from clsparse_py._ground.records import SetOnce, dataclass
from clsparse_py._ground.tables import Shown, Table, plan_as_html
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._matrix.operands import check_matrix, check_scale, dense_operand, result_for
from clsparse_py._memory.order import note_written
from clsparse_py._operations.spmv.binning import Scheme
from clsparse_py._operations.spmv.choose import KernelChoice, KernelName
from clsparse_py._operations.spmv.plan import SpmvPlan
from clsparse_py._operations.spmv.speed import speeds_of
from clsparse_py._precision.semiring import Semiring
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import allocate_result, contexts_match, copy_to_host, from_host, on_host

__all__ = ["SharedExplanation", "SharedSpmvPlan", "check_queues"]

#: The type of an array in the host's memory.
_Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SharedExplanation(Shown):
    """Which device takes which rows of a shared product ``A @ x``, and why. Prints as a table.

    Attributes
    ----------
    parts : tuple of tuple of str
        Of each device that has rows, in their order: its name, rows, entries, the share of A's bytes, where its part of A is, and
        its kernels.
    rule : str
        The reason: the devices' speeds, and where these are from.
    """

    parts: tuple[tuple[str, ...], ...]
    rule: str

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The table of the explanation: for each device its rows, entries, share of A's bytes, memory and kernels; the reason."""
        columns = ("device", "rows", "entries", "share", "its part of A", "kernels")
        return Table(f"SpMV on {len(self.parts)} device{'s' * (len(self.parts) != 1)}", columns, self.parts, self.rule, "rows")


class _Part:
    """The adjacent rows of A that one device multiplies, as a matrix of its own.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
    rows, entries : slice
        Of A; n_rows and n_entries are how many.
    is_first : bool
        Whether they are A's first ones, on its own device, whose kernels take them from the beginning of A's own arrays.
    memory : str
        Where the matrix is, in words.
    matrix : Matrix
    plan : SpmvPlan
    """

    def __init__(
        self,
        A: Matrix,
        queue: cl.CommandQueue,
        rows: slice,
        indptr: _Host,
        scheme: str | Scheme,
        kernel: KernelName | KernelChoice | None,
        expected: int | None,
    ) -> None:
        self.queue, self.rows = queue, rows
        self._context: cl.Context = queue.context  # held, as the queue may not hold its context: quirk 9
        self.entries = slice(int(indptr[rows.start]), int(indptr[rows.stop]))
        self.n_rows, self.n_entries = rows.stop - rows.start, self.entries.stop - self.entries.start
        self.is_first = rows.start == 0 and self.n_entries > 0 and _is_home(A, queue)
        if self.is_first:
            indices, pointers = A.indices[self.entries], A.indptr[: self.n_rows + 1]
        else:
            host, self._is_lent = _view_on_host(A.queue, A.indices, self.entries)
            indices = from_host(queue, host, copy=False)
            pointers = from_host(queue, indptr[rows.start : rows.stop + 1] - indptr[rows.start], copy=False)
        self._structure = Structure(queue, (self.n_rows, A.shape[1]), indices, pointers)
        self.take_values(A)
        self.plan = SpmvPlan.of(self.matrix, scheme, kernel, expected)

    def take_values(self, A: Matrix) -> None:
        """Take the values of this part's rows from A: A's own array for its first rows on its device, else shared or copied."""
        if self.is_first:
            self.memory, values = "A's own", A.data[self.entries]
        else:
            host, is_lent = _view_on_host(A.queue, A.data, self.entries)
            is_shared = is_lent and self._is_lent and describe(self.queue.device).aliases_host
            self.memory, values = "shared, no copy" if is_shared else "copied", from_host(self.queue, host, copy=False)
        self.matrix = Matrix.assembled(self._structure, values)

    def build(self, x: cl_array.Array, y: cl_array.Array, scale: dict[str, Any]) -> None:
        """Build the kernels of one device's share of ``A @ x``, by the dtypes of x and y, before any device writes y."""
        self.plan.in_force(self.matrix).build(self.matrix, x, y, **scale)

    def run(self, x: cl_array.Array, y: cl_array.Array, scale: dict[str, Any]) -> None:
        """Enqueue one device's share of ``A @ x``, which the device begins while the host goes on to the next device."""
        queue = x.queue or self.queue
        note_written(y, self.plan.in_force(self.matrix).execute(self.matrix, x, y, queue=queue, **scale)[-1])
        queue.flush()


def _view_on_host(queue: cl.CommandQueue, array: cl_array.Array, part: slice) -> tuple[_Host, bool]:
    """Return a slice of a device array for NumPy, and True if it is the array's memory, False if a copy; waits for writes."""
    buffer: Any = array.base_data
    if array.size and describe(queue.device).aliases_host:
        for event in array.events:
            event.wait()
        try:
            return buffer.get_host_array(array.shape, array.dtype)[part], True
        except (AttributeError, cl.Error):
            pass  # the buffer is of the pool, or of shared virtual memory
    return Chain(queue, array).read(array, part.stop - part.start, part.start), False


def _is_home(A: Matrix, queue: cl.CommandQueue) -> bool:
    """Return whether a queue is one of A's own device and context."""
    return bool(contexts_match(A.data, queue.context) and queue.device == A.queue.device)


class SharedSpmvPlan(SetOnce):
    """A plan for products ``A @ x`` that several devices share, with one structure, any values and any x. Made by `spmv_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        A's.
    queues : tuple of pyopencl.CommandQueue
        As given, but one of A's device first: it takes the first rows.
    shape : tuple of int
    nnz : int
    indptr, indices : pyopencl.array.Array
        The structure that the plan belongs to.
    speeds : tuple of float
        Of the devices: the bytes of A that each has are in proportion to these.
    """

    def __init__(
        self,
        A: Matrix,
        queues: Sequence[cl.CommandQueue],
        scheme: str | Scheme,
        kernel: KernelName | KernelChoice | None,
        expected: int | None = None,
    ) -> None:
        self.queues = tuple(sorted(queues, key=lambda queue: not _is_home(A, queue)))
        self.queue, self.shape, self.nnz = A.queue, A.shape, A.nnz
        self.indptr, self.indices = A.indptr, A.indices
        self.speeds, self._rule = speeds_of([queue.device for queue in self.queues])
        indptr = copy_to_host(A.indptr, A.queue)
        self._entry_bytes, self._row_bytes = (A.dtype.itemsize + array.dtype.itemsize for array in (A.indices, A.indptr))
        # Bytes of all rows before each row of A: the weights by which rows are divided between devices.
        weights = indptr.astype(np.int64) * self._entry_bytes + np.arange(indptr.size) * self._row_bytes
        shares = np.cumsum(self.speeds) / sum(self.speeds)
        cuts = [0, *np.searchsorted(weights, shares[:-1] * weights[-1]).tolist(), A.shape[0]]
        stretches = zip(self.queues, map(slice, cuts, cuts[1:]), strict=True)
        self._parts = tuple(
            _Part(A, queue, rows, indptr, scheme, kernel, expected) for queue, rows in stretches if rows.start < rows.stop
        )
        self._own = next((part for part in self._parts if part.is_first), None)
        self._others = [part for part in self._parts if not part.is_first]
        self._refreshing = threading.Lock()
        self._note_values(A)

    def matches(self, A: Matrix) -> bool:
        """Return whether this shared plan of SpMV was made for A's present structure."""
        return A.indptr is self.indptr and A.indices is self.indices

    def __str__(self) -> str:
        return " + ".join(part.plan.device.name for part in self._parts)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<SharedSpmvPlan of a {rows} x {columns} matrix with {self.nnz} entries: {self}>"

    _repr_html_ = plan_as_html

    def explain(self) -> SharedExplanation:
        """Return which device takes which rows of A, from which memory, and why."""
        n_bytes = [part.n_entries * self._entry_bytes + part.n_rows * self._row_bytes for part in self._parts]
        parts = tuple(
            (
                part.plan.device.name, f"{part.n_rows:,}", f"{part.n_entries:,}", f"{100 * part_bytes / sum(n_bytes):.0f} %",
                part.memory, str(part.plan),
            )
            for part, part_bytes in zip(self._parts, n_bytes, strict=True)
        )  # fmt: skip
        return SharedExplanation(parts, f"rows in order, by {self._rule}")

    def refresh(self, A: Matrix) -> None:
        """Take A's values to all devices again after writes in place; `spmv` does so itself for another matrix or other `A.data`.

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
            for part in self._parts:
                part.take_values(A)
            self._note_values(A)

    def _note_values(self, A: Matrix) -> None:
        """Note the matrix from which the devices' parts of A took values, to see later whether its values have changed."""
        self._values = weakref.ref(A), weakref.ref(A.data), A._version

    def _has_values_of(self, A: Matrix) -> bool:
        """Return whether the devices' parts of A hold A's present values."""
        matrix, data, version = self._values
        return data() is A.data and (matrix() is not A or version == A._version)

    def product(self, A: Matrix, x: Any, alpha: Any, beta: Any, out: Any, semiring: Semiring) -> Any:
        """Return ``alpha * A @ x + beta * out`` as `spmv` does; each device computes the rows that the plan assigned to it."""
        if not self._has_values_of(A):
            self.refresh(A)
        operand, on_device = dense_operand(A, "x", x, ndim=1)
        dtype = check_scale(A, operand, alpha, beta, out, semiring)
        self._require_precision(dtype)
        result = result_for(A, "x", operand, x, out, dtype, (A.shape[0],), on_device=on_device)
        if operand.size > 1 and operand.strides != (operand.dtype.itemsize,):
            operand = convert(A.queue, "x", operand, operand.dtype)
        scale = {"alpha": alpha, "beta": beta, "semiring": semiring}
        for part in self._parts:
            part.build(operand, result.array, scale)
        if on_device:
            self._compute_on_device(operand, result.array, scale)
            return result.array
        assert result.host is not None  # as x is not on the device
        if self._own is not None:
            self._own.run(operand, result.array[self._own.rows], scale)
        self._compute_elsewhere(np.ascontiguousarray(x, operand.dtype), result.host, scale)
        if self._own is not None:
            on_host(result.array[self._own.rows], result.host[self._own.rows])
        return result.host

    def _compute_elsewhere(self, x: _Host, y: _Host, scale: dict[str, Any]) -> None:
        """Compute ``A @ x`` in the rows of all parts but the first on A's device, from x on the host to y on the host."""
        pending = []
        for part in self._others:
            rows = y[part.rows]
            part_y = allocate_result(part.queue, rows) if scale["beta"] is None else from_host(part.queue, rows, copy=False)
            part.run(from_host(part.queue, x, copy=False), part_y, scale)
            pending.append((part_y, rows))
        for part_y, rows in pending:
            on_host(part_y, rows)

    def _compute_on_device(self, x: cl_array.Array, y: cl_array.Array, scale: dict[str, Any]) -> None:
        """Compute ``A @ x`` by all devices, with x and y on A's device; the host waits, as devices can't await each other."""
        queue, first = x.queue or self.queue, y.offset // y.dtype.itemsize
        if self._others:
            chain = Chain(queue, x, y)
            rows = np.empty(y.shape, y.dtype) if scale["beta"] is None else chain.read(y, y.size, first)
            sent = chain.read(x, x.size, x.offset // x.dtype.itemsize)
        if self._own is not None:
            self._own.run(x, y[self._own.rows], scale)
        if self._others:
            self._compute_elsewhere(sent, rows, scale)
            chain = Chain(queue, writes=(y,))
            for part in self._others:
                chain.copy(y, chain.send(rows[part.rows]), part.n_rows, first + part.rows.start)
            chain.finish(y)

    def _require_precision(self, dtype: np.dtype[Any]) -> None:
        """Raise a TypeError if the shared product needs double precision, and one of the devices lacks it."""
        for part in self._parts:
            if dtype.char in "dD" and not describe(part.queue.device).fp64:
                raise TypeError(f"x: {dtype} needs double precision, which {part.queue.device.name} lacks; use single precision")


def check_queues(A: Matrix, queues: Any) -> tuple[cl.CommandQueue, ...]:
    """Return the command queues of the devices between which an SpMV product is to be divided, after checks.

    Raises
    ------
    ValueError, TypeError
        There is none, one is no queue or of no use, or its device lacks A's dtype; the message names the argument.
    """
    if isinstance(queues, cl.CommandQueue) or not isinstance(queues, Sequence):
        raise TypeError(f"queues: must be a list of pyopencl.CommandQueue, is {type(queues).__name__}")
    if not queues:
        raise ValueError("queues: must name at least one queue, is empty")
    for position, queue in enumerate(queues):
        if not isinstance(queue, cl.CommandQueue):
            raise TypeError(f"queues: must be a list of pyopencl.CommandQueue, [{position}] is {type(queue).__name__}")
        try:
            device, _ = queue.device, queue.context
        except cl.Error as error:
            raise ValueError(f"queues: [{position}] cannot be used: {error}") from None
        if A.dtype.char in "dD" and not describe(device).fp64:
            name = device.name.strip()
            raise TypeError(f"queues: [{position}] is of {name}, which lacks double precision, and A's dtype is {A.dtype}")
    return tuple(queues)
