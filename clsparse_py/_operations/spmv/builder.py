"""Plan: from a decision to the launches of a product and the device arrays that they need."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.parts import Combine, add_later_pieces, list_cut_rows
from clsparse_py._operations.spmv.binning import N_BINS, Side, count_bins, list_rows
from clsparse_py._operations.spmv.choose import Decision, KernelChoice, Thresholds, whole_rows
from clsparse_py._operations.spmv.explanation import Share
from clsparse_py._operations.spmv.features import Inspected
from clsparse_py._operations.spmv.kernels import Adaptive, Chunked, Merge, Narrow, Streamed, Subvector
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.dense_product import arguments_of, recorder_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recorder, Recording
from clsparse_py._run.transfer import copy_to_host, from_host
from clsparse_py._run.upgrade import Upgrade

__all__ = ["Builder"]

_Record = TypeVar("_Record", bound=programs.Parameters)
#: The number of parts, and where they begin, as `Inspected.cut` returns them.
_Parts = tuple[int, list[cl_array.Array]]


@dataclass(frozen=True)
class _List:
    """Virtual rows that take one kernel: ``n_virtual`` of them, from ``begin`` on in ``rows``."""

    choice: KernelChoice
    rows: cl_array.Array
    begin: int
    n_virtual: int
    side: Side


class Builder:
    """Records the products of a structure that was inspected, for one arithmetic.

    Attributes
    ----------
    recorder : Recorder
    shares : list of Share
    upgrade : Upgrade or None
        Makes a recording by columns in 16 bits.
    """

    def __init__(self, of: Inspected, arithmetic: Arithmetic, scaled: bool, expected: int | None = None) -> None:
        self.of, self.arithmetic, self.scaled, self.expected = of, arithmetic, scaled, expected
        self.queue, self.device, self.limits = of.queue, of.device, Thresholds.of(of.device)
        self.n_rows = of.features.n_rows
        self.index = of.indptr.dtype.type
        self.recorder = self._recorder()
        self.shares: list[Share] = []
        self.upgrade: Upgrade[Recording] | None = None
        self._combine: Callable[[Recorder, cl_array.Array], None] | None = None

    def _recorder(self) -> Recorder:
        """Return a recorder without a launch."""
        of = self.arithmetic
        return recorder_of(Chain(self.queue), (np.dtype(of.a), np.dtype(of.x), of.result), scaled=self.scaled)

    def _built(self, parameters: _Record) -> tuple[Built, _Record]:
        """Return the built kernel and the parameters that it was built with."""
        built = programs.build(self.queue.context, self.queue.device, parameters)
        return built, cast("_Record", built.parameters)  # `within` adapts a record to another of its class

    def _launch(self, built: Built, work_items: int, *own: Any) -> None:
        """Add a launch; ``own`` are the arguments after the operands."""
        _launch(self.recorder, built, work_items, *own)

    def _share(self, rows: int, choice: str, built: Built, why: str) -> None:
        self.shares.append(Share(rows, choice, built.parameters.name, why))

    def _upload(self, values: Any) -> cl_array.Array:
        return from_host(self.queue, np.ascontiguousarray(values, dtype=self.index), copy=True)

    def single(self, choice: KernelChoice) -> None:
        """All rows, in order, to one kernel."""
        of, structure = self.of, (self.of.indptr, self.of.indices)
        why = "all rows, in order"
        if choice.name == "vector_long":
            built = self._vector_long(choice, copy_to_host(of.indptr, self.queue), np.arange(self.n_rows))
            self._share(self.n_rows, str(choice), built, why)
            return
        asked = choice.record(self.device, self.arithmetic, self.scaled)
        if isinstance(asked, Adaptive):
            self._share(self.n_rows, str(choice), self._adaptive(asked), why)
            return
        if isinstance(asked, Streamed):
            self._share(self.n_rows, str(choice), self._streamed(asked), why)
            return
        if isinstance(asked, Chunked):
            asked = asked.for_rows(of.features.mean, of.features.classes)
        built, record = self._built(asked)
        if isinstance(record, Merge):
            self._balanced(built, record.capacity, 1, 0)
        elif isinstance(record, Chunked):
            weight = of.features.nnz + self.n_rows
            step = min(max(1, -(-weight // (self.device.compute_units * choice.items))), record.MAX_STEP)
            # Rows are cut only where their rest is long: each cut row costs a piece of a second launch.
            parts = self._balanced(built, step, 1, step // 2)
            large = of.features.nnz * self.arithmetic.result.itemsize >= record.NARROW_FROM
            if large and not record.is_uneven(of.features.mean, of.features.classes):
                self._narrow_chunks(record, parts)
        elif isinstance(record, Subvector):
            self._launch(built, self.n_rows * record.lanes, self.index(self.n_rows), *structure)
        self._share(self.n_rows, str(choice), built, why)

    def _adaptive(self, asked: Adaptive) -> Built:
        """Add the launches of CSR-Adaptive.

        Where no row is cut there is no second launch: room for the rest of a part's last row is left where that is little, and a
        longer one is taken by the part as long as it isn't too much for one.
        """
        rest = max(self.of.features.longest - 1, 0)
        built, record = self._built(asked.with_room(rest))
        if record.with_room(rest) != record:  # the driver allowed fewer work-items
            built, record = self._built(record.with_room(rest))
        if record.parts == "staged":
            self._balanced(built, record.capacity - rest, 0, rest)
        elif record.parts == "rests":
            self._balanced(built, record.capacity, 0, rest if whole_rows(self.of.features, self.device) else record.capacity)
        else:
            self._balanced(built, record.capacity, 0, 0)
        return built

    def _streamed(self, asked: Streamed) -> Built:
        """Add the launch of a kernel that stages entries of whole rows, or of CSR-Adaptive if rows may be too long for it.

        Columns in 16 bits are made behind some products: until then, and if they do not fit, it takes those of A.
        """
        of, narrow = self.of, asked.for_rows(self.of.features.mean)
        built, record = self._built(narrow.wide)
        rest = max(of.features.longest - 1, 0)
        if 2 * rest >= record.capacity:
            return self._adaptive(Adaptive.legal(self.device, self.arithmetic, self.scaled, asked.work_group, asked.items))
        n_parts, (rows, entries, _) = of.cut(record.capacity - rest, 0, rest)
        self._launch(built, n_parts * record.work_group, rows, entries, of.indptr, of.indices)
        lanes = record.lanes

        def cut(built: Streamed) -> _Parts | None:
            allowed = built.lanes == lanes and 2 * rest < built.capacity  # the driver may allow fewer work-items
            return of.cut(built.capacity - rest, 0, rest) if allowed else None

        def launch(built: Built, parts: _Parts, *columns: cl_array.Array) -> Recording:
            (n_parts, (rows, entries, _)), recorder = parts, self._recorder()
            _launch(recorder, built, n_parts * built.parameters.work_group, rows, entries, of.indptr, *columns)
            return recorder.recording()

        self._upgraded_by(replace(narrow, lanes=lanes), cut, launch)
        return built

    def _narrow_chunks(self, record: Chunked, parts: _Parts) -> None:
        """Have columns in 16 bits made behind some products, for the same chunks: all else of the product is as it is."""
        index = self.index

        def launch(built: Built, parts: _Parts, *columns: cl_array.Array) -> Recording:
            (n_parts, (rows, entries, _)), recorder = parts, self._recorder()
            partial = self._sums(recorder, n_parts, is_read=self._combine is not None)
            sizes = index(n_parts), index(self.of.features.nnz)
            _launch(recorder, built, n_parts, *sizes, rows, entries, partial, self.of.indptr, *columns)
            if self._combine is not None:
                self._combine(recorder, partial)
            return recorder.recording()

        self._upgraded_by(replace(record, narrow=True), lambda _: parts, launch)

    def _upgraded_by(
        self,
        asked: Streamed | Chunked,
        cut: Callable[[Any], _Parts | None],
        launch: Callable[[Built, _Parts, cl_array.Array, cl_array.Array], Recording],
    ) -> None:
        """Have columns made as 16 bits, if they fit, and products recorded that take them.

        Parameters
        ----------
        asked : Streamed or Chunked
            The kernel that takes them.
        cut : callable
            Returns the parts for a record that was built, or None if the driver allowed another.
        launch : callable
            Records the product: by the kernel, parts, columns, and the lowest one of each part.
        """
        of, queue = self.of, self.queue

        def make() -> Generator[cl.Event, None, Recording | None]:
            built, record = self._built(asked)
            parts = cut(record)
            if parts is None:
                return None
            n_parts, (_, entries, _) = parts
            chain = Chain(queue, of.indices, entries)
            # A core reads a part from its first entry to its last.
            group = 1 if of.device.lanes_are_loops else min(256, of.device.max_work_group)
            kernel, _ = chain.build(Narrow(group, of.indices.dtype.name))
            columns = allocate(queue, "columns in 16 bits", of.features.nnz, np.dtype(np.uint16))
            lowest = allocate(queue, "lowest columns", n_parts, of.indices.dtype)
            too_wide = chain.scratch(n_parts, np.uint8)
            chain.launch(kernel, n_parts, entries, of.indices, columns, lowest, too_wide)
            chain.finish(columns, lowest)
            read = chain.read_later(too_wide, n_parts)
            yield chain.events[-1]
            return None if read().any() else launch(built, parts, columns, lowest)

        self.upgrade = Upgrade("columns in 16 bits", self.limits.narrow_after, self.expected, make)

    def _sums(self, recorder: Recorder, n_parts: int, *, is_read: bool) -> cl_array.Array:
        """Return memory for the sums of parts: each product's own, unless none is read."""
        if is_read:
            return recorder.scratch(n_parts, self.arithmetic.result)
        return allocate(self.queue, "sums of parts", n_parts, self.arithmetic.result)

    def _balanced(self, built: Built, step: int, row_weight: int, slack: int) -> _Parts:
        """Add the launches of a kernel that takes parts of equal weight, a work-group or a work-item to each. Returns these."""
        of, index, record = self.of, self.index, built.parameters
        n_parts, (rows, entries, cuts) = of.cut(step, row_weight, slack)
        part_row = copy_to_host(rows)
        even = isinstance(record, Adaptive) and record.parts == "even"
        if not (row_weight or even) and np.diff(part_row).max() > self.limits.max_rows_by_step * step:
            # A part with many rows for its entries, empty ones, would take long: rows are made to weigh.
            row_weight = 1
            n_parts, (rows, entries, cuts) = of.cut(step, row_weight, slack)
            part_row = copy_to_host(rows)
        # A cut row's number is one below the row of the parts that begin inside it; its later pieces are those parts.
        cut = np.flatnonzero(copy_to_host(cuts))
        partial = self._sums(self.recorder, n_parts, is_read=cut.size > 0)
        structure = (partial, of.indptr, of.indices)
        if isinstance(record, Chunked):
            self._launch(built, n_parts, index(n_parts), index(of.features.nnz), rows, entries, *structure)
        elif isinstance(record, Adaptive):
            # Where rows weigh nothing, parts begin at multiples of the step or behind a row's rest: loads need not wait to know.
            steps = (np.uint32(0 if row_weight else step),) if record.parts == "rests" else ()
            self._launch(built, n_parts * record.work_group, index(of.features.nnz), *steps, rows, entries, cuts, *structure)
        else:
            self._launch(built, n_parts * record.work_group, rows, entries, *structure)
        if cut.size:
            self.combine(part_row[cut] - 1, cut, partial)
        return n_parts, [rows, entries, cuts]

    def _vector_long(self, choice: KernelChoice, indptr: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> Built:
        """Add the launches for rows that several work-groups share."""
        built, parameters = self._built(choice.record(self.device, self.arithmetic, self.scaled))
        begin, end = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        piece = self.limits.piece
        n_pieces = np.maximum(1, -(-(end - begin) // piece))
        row = np.repeat(np.arange(rows.size), n_pieces)
        number = np.arange(row.size) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
        piece_begin = begin[row] + number * piece
        piece_end = np.minimum(piece_begin + piece, end[row])
        later = np.flatnonzero(number > 0)
        partial = self._sums(self.recorder, max(row.size, 1), is_read=later.size > 0)
        tables = (self._upload(rows[row]), self._upload(piece_begin), self._upload(piece_end))
        self._launch(built, row.size * parameters.work_group, *tables, partial, self.of.indptr, self.of.indices)
        if later.size:
            self.combine(rows[row[later]], later, partial)
        return built

    def combine(
        self,
        rows: np.ndarray[Any, Any],
        pieces: np.ndarray[Any, Any],
        partial: cl_array.Array,
        record: Combine | None = None,
    ) -> None:
        """Add the launch that adds later pieces to their rows; the pieces of a row are adjacent.

        Parameters
        ----------
        rows, pieces : numpy.ndarray
            The row of each later piece, and the piece's number.
        partial : pyopencl.array.Array
            The sums of all pieces.
        record : Combine, optional
            The kernel, if not the one that suits the numbers of pieces.
        """
        cut_rows = list_cut_rows(self.queue, self.of.indptr.dtype, rows, pieces, many=0)
        # Most rows that are cut have one later piece or few; lanes for the longest would only wait, unless that one is very long.
        lanes = 256 if cut_rows.most > 256 else 32 if rows.size >= 8 * cut_rows.n else 4
        built, _ = self._built(record or Combine.legal(self.device, self.arithmetic, self.scaled, max(64, lanes), lanes))

        def launch(recorder: Recorder, partial: cl_array.Array) -> None:
            add_later_pieces(recorder, built, cut_rows, partial)

        launch(self.recorder, partial)
        self._combine = launch

    def all(self, decision: Decision) -> None:
        """Add the launches for all rows.

        Raises
        ------
        BuildError
            A kernel of the decision is refused.
        """
        if not self.n_rows:
            return
        if decision.scheme.name == "single":
            self.single(decision.kernels[0][0])
        else:
            self.binned(decision)

    def binned(self, decision: Decision, bins: Container[int] = range(N_BINS)) -> None:
        """Rows in bins: those of one kernel form a list, and all lists of one shape but those of cut rows share a launch.

        Rows of other ``bins`` are left out.
        """
        of = self.of
        lists: list[_List] = []
        for side, choices in zip(decision.scheme.sides, decision.kernels, strict=True):
            counts = count_bins(self.queue, self.n_rows, of.indptr, side)
            counts[[number not in bins for number in range(N_BINS)]] = 0
            used = [choice for choice, count in zip(choices, counts, strict=True) if count]
            kernels = list(dict.fromkeys(used))
            if not kernels:
                continue
            number = {choice: i for i, choice in enumerate(kernels)}
            list_of_bin = np.array(
                [number.get(choice, -1) if count else -1 for choice, count in zip(choices, counts, strict=True)]
            )
            rows = list_rows(self.queue, self.n_rows, of.indptr, side, list_of_bin, int(counts.sum()))
            begin = 0
            for i, choice in enumerate(kernels):
                n_virtual = int(counts[list_of_bin == i].sum())
                if choice.name == "vector_long":
                    numbers = copy_to_host(rows)[begin : begin + n_virtual].astype(np.int64)
                    single = (numbers[:, None] * side.granularity + np.arange(side.granularity)).ravel()
                    single = single[single < self.n_rows]
                    built = self._vector_long(choice, copy_to_host(of.indptr, self.queue), single)
                    self._share(single.size, str(choice), built, f"rows of more than {self.limits.piece} entries are cut")
                else:
                    lists.append(_List(choice, rows, begin, n_virtual, side))
                begin += n_virtual
        if lists:
            self._subvectors(lists)

    def _joined(self, arrays: list[cl_array.Array]) -> cl_array.Array:
        chain, begin = Chain(self.queue, *arrays), 0
        joined = allocate(self.queue, "lists of rows", sum(array.size for array in arrays), self.index)
        for array in arrays:
            chain.copy(joined, array, array.size, begin)
            begin += array.size
        chain.finish(joined)
        return joined

    def _subvectors(self, lists: list[_List]) -> None:
        """Add the launches that lists share, whatever their X is, one for each work-group size and unrolling."""
        arrays = list({id(each.rows): each.rows for each in lists}.values())
        offsets = dict(zip((id(rows) for rows in arrays), np.cumsum([0] + [rows.size for rows in arrays]), strict=False))
        rows = arrays[0] if len(arrays) == 1 else self._joined(arrays)
        # Long rows first: the work-groups that take longest begin first.
        lists = sorted(lists, key=lambda each: -each.choice.lanes)
        shapes = dict.fromkeys((each.choice.work_group, each.choice.unroll) for each in lists)
        for shape in shapes:
            alike = [each for each in lists if (each.choice.work_group, each.choice.unroll) == shape]
            record = Subvector.legal(self.device, self.arithmetic, self.scaled, alike[0].choice.lanes, *shape, binned=True)
            built, parameters = self._built(record)
            bins: list[int] = []
            group = 0
            for each in alike:
                lanes = min(each.choice.lanes, parameters.lanes)
                begin, granularity = each.begin + int(offsets[id(each.rows)]), each.side.granularity
                bins += [group, begin, each.n_virtual, granularity, lanes]
                group += -(-each.n_virtual * granularity * lanes // parameters.work_group)
                why = f"bins of granularity {granularity} that take X = {lanes}"
                self._share(min(each.n_virtual * granularity, self.n_rows), f"X = {lanes}", built, why)
            structure = (self.of.indptr, self.of.indices)
            n_bins, work_items = self.index(len(alike)), group * parameters.work_group
            self._launch(built, work_items, self.index(self.n_rows), n_bins, self._upload(bins), rows, *structure)


def _launch(recorder: Recorder, built: Built, work_items: int, *own: Any) -> None:
    """Record a launch of a product; ``own`` are the arguments after the operands."""
    recorder.launch(built, -(-work_items // built.parameters.work_group), *arguments_of(recorder), *own)
