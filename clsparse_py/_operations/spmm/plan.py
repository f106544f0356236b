"""The plan of products with several columns: a structure cut into parts, the launches of each kind of product, and why."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.built import Built
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.records import SetOnce, dataclass
from clsparse_py._ground.tables import Shown, Table, plan_as_html
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.order import note_written
from clsparse_py._operations.parts import Combine, add_later_pieces
from clsparse_py._operations.spmm.choose import Layout, Pattern, Shape, Thresholds, choose, shape_of_groups
from clsparse_py._operations.spmm.cuts import Cut, Groups, cut, find_groups, rows_as_parts
from clsparse_py._operations.spmm.kernels import Pack, Parts
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._precision.semiring import Semiring
from clsparse_py._run.dense_product import DenseProduct, Repeating, list_arguments, make_recorder
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recorder
from clsparse_py._run.upgrade import Upgrade

__all__ = ["Explanation", "Product", "SpmmPlan"]

#: Most columns of Y in which a work-group adds up, at a time, the sums of the pieces of a cut row of A.
_COMBINED_COLUMNS = 32


@dataclass(frozen=True)
class Product:
    """A kind of SpMM's products: a line of an `Explanation`.

    Attributes
    ----------
    columns : int
        Columns of X.
    kernel, built : str
        The shape that was chosen, and the kernel that was built.
    parts, pieces : int
        The number of parts of A, and of parts that begin inside a row.
    launches : int
        Kernel launches of a product.
    why : str
        The reason for the shape.
    """

    columns: int
    kernel: str
    built: str
    parts: int
    pieces: int
    launches: int
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """The kernels of a plan's products so far. Prints as a table.

    Attributes
    ----------
    products : tuple of Product
        The kinds of products; the first product of a kind adds it.
    """

    products: tuple[Product, ...]

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The table of the explanation: for each kind of product the columns of X, kernel, parts of A, launches and reason."""
        heads = ("columns", "kernel", "built as", "parts", "in a row", "launches", "why")
        rows = [
            (
                str(product.columns),
                product.kernel,
                product.built,
                f"{product.parts:,}",
                f"{product.pieces:,}",
                str(product.launches),
                product.why,
            )
            for product in self.products
        ]
        return Table("SpMM", heads, rows, numbers="columns")


class _Kind(NamedTuple):
    """The key of a product's launches: dtypes, columns and layout of X and Y, semiring, and whether alpha and beta scale it.

    Strides are those of rows and columns of X, then of Y, counted in values.
    """

    a: np.dtype[Any]
    x: np.dtype[Any]
    semiring: str
    scaled: bool
    n_columns: int
    layout: Layout
    strides: tuple[int, int, int, int]
    work_group: int | None


@dataclass(frozen=True)
class _Launches:
    """The launches of a kind of SpMM's products.

    Attributes
    ----------
    shape : Shape
        The shape of the kernel.
    why : str
        The reason for the shape.
    cut : Cut
        The parts of A.
    pack : Built or None
        The kernel that copies X; None if X stays where it is.
    product : DenseProduct
        The launches after the copy: of the parts, and of the kernel that adds later pieces of rows.
    awaits : bool
        Whether launches that take several rows together may take the place of these.
    """

    shape: Shape
    why: str
    cut: Cut
    pack: Built | None
    product: DenseProduct
    awaits: bool = False


class SpmmPlan(SetOnce, Repeating):
    """A plan for products ``A @ X`` with one structure, any values and any X. Made by `spmm_plan`.

    Kernels are built, and A is cut into parts, when the first product of a kind (dtypes, columns, strides of X) asks for them;
    the launches of the latest kinds are kept.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        The queue of the planning: keeps the order of its commands.
    device : Device
    shape : tuple of int
    nnz : int
    pattern : Pattern
        The features of A that shapes are chosen by.
    indptr, indices : pyopencl.array.Array
        The structure that the plan belongs to.
    work_group : int or None
        Work-items in a work-group; None leaves it to the plan.
    """

    def __init__(self, A: Matrix, work_group: int | None = None, expected: int | None = None) -> None:
        self.queue = A.queue
        self.device: Device = describe(A.queue.device)
        self.shape, self.nnz = A.shape, A.nnz
        longest, adjacent = (None, 0) if A.facts is None else (A.facts.longest, A.facts.adjacent)
        self.pattern = Pattern(*A.shape, A.nnz, longest, adjacent)
        self.indptr, self.indices = A.indptr, A.indices
        self.work_group = work_group
        self._cuts: dict[int, Cut] = {}
        limits, structure = Thresholds.of(self.device), (self.queue, A.shape[0], A.indptr, A.indices)
        self._groups: Upgrade[Groups] = Upgrade(
            "rows with equal columns together", limits.together_after, expected, lambda: find_groups(limits, *structure)
        )
        self._launches: dict[_Kind, _Launches] = {}
        self._building = threading.Lock()
        self._limits = limits

    def matches(self, A: Matrix) -> bool:
        """Return whether this plan of SpMM was made for A's present structure."""
        return A.indptr is self.indptr and A.indices is self.indices

    def __repr__(self) -> str:
        rows, columns = self.shape
        kinds = ", ".join(str(kind.n_columns) for kind in [*self._launches])
        return (
            f"<SpmmPlan of a {rows} x {columns} matrix with {self.nnz} entries on {self.device.name}: "
            f"{f'products of {kinds} columns' if kinds else 'no product yet'}>"
        )

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return the kernels of the plan's products so far, by the number of columns, and the reasons for the kernels."""
        products = []
        for kind, launches in [*self._launches.items()]:
            recording = launches.product.recording
            why = f"{launches.why}; {self._groups}" if launches.awaits or launches.shape.rows > 1 else launches.why
            sizes = launches.cut.n_parts, launches.cut.n_pieces, (launches.pack is not None) + recording.n_commands
            products.append(Product(kind.n_columns, str(launches.shape), recording.kernels[0].parameters.name, *sizes, why))
        return Explanation(tuple(products))

    def enqueue(
        self,
        A: Matrix,
        x: cl_array.Array,
        y: cl_array.Array,
        y_strides: tuple[int, int],
        n_columns: int,
        alpha: Any,
        beta: Any,
        semiring: Semiring,
        work_group: int | None = None,
        *,
        is_new: bool | None = None,
    ) -> None:
        """Enqueue ``y = alpha * A @ x + beta * y`` with checked operands of any strides; a vector counts as one column.

        Parameters
        ----------
        y_strides : tuple of int
            Bytes from row to row and from column to column of y.
        work_group : int, optional
            Work-items in a work-group, in place of the plan's.
        is_new : bool, optional
            Whether y was made for the product; given if `again` may repeat it.
        """
        item, x_item = y.dtype.itemsize, x.dtype.itemsize
        x_row, x_column = (stride // x_item for stride in (*x.strides, 0)[:2])
        y_row, y_column = y_strides[0] // item, y_strides[1] // item
        adjacent = n_columns == 1 or (x_column == 1 and y_column == 1)
        bits = n_columns | x_row | y_row | x.offset // x_item | y.offset // item | 16
        layout, strides = Layout(adjacent, bits & -bits), (x_row, x_column, y_row, y_column)
        scaled = alpha is not None or beta is not None
        work_group = work_group or self.work_group
        kind = _Kind(A.data.dtype, x.dtype, semiring.name, scaled, n_columns, layout, strides, work_group)
        launches = self._launches.get(kind) or self._build(kind)
        if launches.awaits:
            launches = self._renew(kind, launches)
        queue = x.queue or A.queue
        if launches.pack is not None:
            x = self._pack(launches.pack, queue, x, x_row, x_column)
        scale = ()
        if scaled:
            scale = tuple(y.dtype.type(default if factor is None else factor) for factor, default in ((alpha, 1), (beta, 0)))
        # The newest OpenCL event of a product ``A @ X`` waits for all other events of the product.
        note_written(y, launches.product.run(queue, (A.data, x, y), scale)[-1])
        if is_new is not None and launches.pack is None and not launches.awaits:
            self._call = launches.product.make_call(self.queue, (A.data, x, y), scale, alpha, beta, semiring, is_new=is_new)

    def _pack(self, built: Built, queue: cl.CommandQueue, x: cl_array.Array, x_row: int, x_column: int) -> cl_array.Array:
        """Enqueue the copy of the dense X in which the columns of a row are adjacent, and return the copy."""
        record = built.parameters
        assert isinstance(record, Pack)
        n_rows, n_columns = x.shape
        chain = Chain(queue, x)
        packed = chain.scratch(x.size, x.dtype)
        chain.launch(
            built, -(-n_rows // record.rows) * -(-n_columns // record.columns), x, np.uint64(x.offset // x.dtype.itemsize),
            np.int64(x_row), np.int64(x_column), np.uint64(n_rows), np.uint32(n_columns), packed,
        )  # fmt: skip
        chain.finish(packed)
        return packed

    def _build(self, kind: _Kind) -> _Launches:
        """Return the launches for a kind of product (columns, dtypes, strides): those kept, or new ones, whose kernel is chosen.

        Raises
        ------
        BuildError
            A kernel is refused.
        """
        with self._building:
            launches = self._launches.get(kind)
            if launches is None:
                arithmetic = self._arithmetic(kind)
                shape, why = choose(self.device, arithmetic, kind.n_columns, self.pattern, kind.layout)
                if shape.rows and self._groups.come() and (groups := self._groups.made) is not None:
                    shape = shape_of_groups(self._limits, shape, groups.rows)
                launches = self._launches_of(kind, arithmetic, shape, why)
                while len(self._launches) >= self._limits.max_kinds:
                    self._launches.pop(next(iter(self._launches)))
                self._launches[kind] = launches
            return launches

    def _renew(self, kind: _Kind, launches: _Launches) -> _Launches:
        """Count a product ``A @ X``; return its launches, new ones once groups of A's rows with equal columns are found."""
        with self._building:
            if not self._groups.come():
                return launches
            groups, self._call = self._groups.made, None
            if groups is None:
                renewed = replace(launches, awaits=False)
            else:
                shape = shape_of_groups(self._limits, launches.shape, groups.rows)
                renewed = self._launches_of(kind, self._arithmetic(kind), shape, launches.why)
            self._launches[kind] = renewed
            return renewed

    def _arithmetic(self, kind: _Kind) -> Arithmetic:
        """Return the arithmetic of a kind of SpMM's products: dtypes of A, X and indices, and the semiring."""
        return Arithmetic(name_of(kind.a), name_of(kind.x), name_of(self.indptr.dtype), kind.semiring)

    def _launches_of(self, kind: _Kind, arithmetic: Arithmetic, shape: Shape, why: str) -> _Launches:
        """Return the kernel launches of a kind (columns, dtypes, strides) of SpMM's products by a kernel of the given shape."""
        chain, index = Chain(self.queue, self.indptr), self.indptr.dtype.type
        x_row, x_column = (kind.n_columns, 1) if shape.packed else kind.strides[:2]
        requested = Parts.of(shape, self.device, arithmetic, kind.scaled, kind.work_group)
        adjacent = kind.n_columns == 1 or (x_column == 1 and kind.strides[3] == 1)
        parts, record = chain.build(requested.adapt(kind.n_columns, x_row, adjacent=adjacent))
        pack = chain.build(Pack.legal(self.device, name_of(kind.x), kind.n_columns))[0] if shape.packed else None
        recorder = make_recorder(chain, (kind.a, kind.x, arithmetic.result), scaled=kind.scaled)
        of_product = list_arguments(recorder)
        cut, arrays = self._partition(shape, recorder, arithmetic, kind.n_columns)
        n_blocks, n_columns = -(-kind.n_columns // record.columns), np.uint32(kind.n_columns)
        y_strides = tuple(map(np.int64, kind.strides[2:]))
        layout: tuple[Any, ...] = np.int64(x_row), np.int64(x_column), *y_strides, n_columns, np.uint32(n_blocks)
        if record.exact:
            layout = np.int32(x_row), y_strides[0]
        items = (self.indptr.dtype.itemsize, arithmetic.result.itemsize) if record.staged else ()
        staged = (cl.LocalMemory(record.room(shape.step) * item) for item in items)
        recorder.launch(
            parts, -(-cut.n_parts // record.teams) * n_blocks, *of_product, *layout, index(cut.n_parts), *arrays, *staged,
            self.indptr, self.indices,
        )  # fmt: skip
        if (rows := cut.cut_rows) is not None:
            columns = min(_COMBINED_COLUMNS, 1 << (kind.n_columns - 1).bit_length())
            combine, _ = chain.build(Combine.legal(self.device, arithmetic, kind.scaled, 256, 256, columns))
            add_later_pieces(recorder, combine, rows, arrays[-1], kind.n_columns, kind.strides[2:])
        if shape.rows < 2:
            # Products may run on other queues, so the cut of A has to be finished. Groups of rows are awaited by events instead.
            self.queue.finish()
        return _Launches(shape, why, cut, pack, DenseProduct(recorder.recording(), self.queue), shape.rows == 1)

    def _partition(
        self, shape: Shape, recorder: Recorder, arithmetic: Arithmetic, n_columns: int
    ) -> tuple[Cut, tuple[cl_array.Array, ...]]:
        """Return the partition of A for a shape of SpMM's kernel, and the kernel's arguments that describe the partition."""
        if shape.rows:
            groups = self._groups.made
            if shape.rows == 1 or groups is None:
                return Cut(self.shape[0], 0, self.indptr, self.indptr, self.indptr, None), ()
            return Cut(groups.n, 0, groups.first, self.indptr, self.indptr, None), (groups.first,)
        cut = self._cut_in_parts(shape.step)
        # If no part of A is a piece of a row, the kernel never uses the argument for the pieces' sums.
        partial = recorder.scratch(cut.n_pieces * n_columns, arithmetic.result) if cut.n_pieces else cut.slot
        return cut, (cut.row, cut.entry, cut.slot, partial)

    def _cut_in_parts(self, step: int) -> Cut:
        """Return A cut into parts of ``step`` rows plus entries, or of one row each if ``step`` is 0."""
        parts = self._cuts.get(step)
        if parts is None:
            n_rows = self.shape[0]
            if step:
                parts = cut(self.queue, n_rows, self.nnz, self.indptr, step, self.pattern.longest)
            else:
                parts = rows_as_parts(self.queue, n_rows, self.indptr)
            self._cuts[step] = parts
        return parts
