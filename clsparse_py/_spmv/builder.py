"""Plan: from a decision to the launches of a product and the device arrays that they need."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py._spmv.binning import N_BINS, Side, count_bins, list_rows
from clsparse_py._spmv.choose import PIECE, Decision, KernelChoice, whole_rows
from clsparse_py._spmv.explanation import Share
from clsparse_py._spmv.features import Inspected
from clsparse_py._spmv.kernels import Adaptive, Chunked, Combine, Merge, Streamed, Subvector
from clsparse_py._spmv.narrowing import Narrowing
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.executable import Executable, Launch
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.records import dataclass
from clsparse_py.transfer import fetched, from_host

__all__ = ["Builder"]

#: Rows of a part, in multiples of its weight, beyond which rows are made to weigh.
_MAX_ROWS = 16

_Record = TypeVar("_Record", bound=programs.Parameters)


@dataclass(frozen=True)
class _List:
    """Virtual rows that take one kernel: ``n_virtual`` of them, from ``begin`` on in ``rows``."""

    choice: KernelChoice
    rows: cl_array.Array
    begin: int
    n_virtual: int
    side: Side


class Builder:
    """Makes the executable of a structure that was inspected, for one arithmetic."""

    def __init__(self, of: Inspected, arithmetic: Arithmetic, scaled: bool) -> None:
        self.of, self.arithmetic, self.scaled = of, arithmetic, scaled
        self.queue, self.device = of.queue, of.device
        self.n_rows = of.features.n_rows
        self.index = of.indptr.dtype.type
        self.executable = Executable(keep=[of.indptr, of.indices])
        self.shares: list[Share] = []
        self.later: Narrowing | None = None

    def _built(self, parameters: _Record) -> tuple[programs.Built, _Record]:
        """Return the built kernel and the parameters that it was built with."""
        built = programs.build(self.queue.context, self.queue.device, parameters)
        return built, cast("_Record", built.parameters)  # `within` adapts a record to another of its class

    def _launch(self, built: programs.Built, work_items: int, *own: Any) -> None:
        """Add a launch; ``own`` are the arguments after the operands."""
        self.executable.keep += [argument for argument in own if isinstance(argument, cl_array.Array)]
        own = tuple(argument.base_data if isinstance(argument, cl_array.Array) else argument for argument in own)
        parameters = built.parameters
        self.executable.launches.append(Launch(built, own, work_items, parameters.work_group, parameters.name))

    def _share(self, rows: int, choice: str, built: programs.Built, why: str) -> None:
        self.shares.append(Share(rows, choice, built.parameters.name, why))

    def _upload(self, values: Any) -> cl_array.Array:
        return from_host(self.queue, np.ascontiguousarray(values, dtype=self.index), copy=True)

    def single(self, choice: KernelChoice) -> None:
        """All rows, in order, to one kernel."""
        of, structure = self.of, (self.of.indptr, self.of.indices)
        why = "all rows, in order"
        if choice.name == "vector_long":
            built = self._vector_long(choice, fetched(of.indptr, self.queue), np.arange(self.n_rows))
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
            parts, partial = self._balanced(built, step, 1, step // 2)
            large = of.features.nnz * self.arithmetic.result.itemsize >= record.NARROW_FROM
            if large and not record.is_uneven(of.features.mean, of.features.classes):
                self._narrow_chunks(record, parts, partial)
        elif isinstance(record, Subvector):
            self._launch(built, self.n_rows * record.lanes, self.index(self.n_rows), *structure)
        self._share(self.n_rows, str(choice), built, why)

    def _adaptive(self, asked: Adaptive) -> programs.Built:
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

    def _streamed(self, asked: Streamed) -> programs.Built:
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

        def cut(built: Streamed) -> tuple[int, list[cl_array.Array]] | None:
            allowed = built.lanes == lanes and 2 * rest < built.capacity  # the driver may allow fewer work-items
            return of.cut(built.capacity - rest, 0, rest) if allowed else None

        def arguments(
            parts: tuple[int, list[cl_array.Array]], columns: cl_array.Array, lowest: cl_array.Array
        ) -> tuple[Any, ...]:
            _, (rows, entries, _) = parts
            return tuple(each.base_data for each in (rows, entries, of.indptr, columns, lowest))

        self.later = Narrowing(of, replace(narrow, lanes=lanes), cut, arguments)
        return built

    def _narrow_chunks(self, record: Chunked, parts: tuple[int, list[cl_array.Array]], partial: cl_array.Array) -> None:
        """Have columns in 16 bits made behind some products, for the same chunks: all else of the product is as it is."""
        of, index = self.of, self.index

        def arguments(
            parts: tuple[int, list[cl_array.Array]], columns: cl_array.Array, lowest: cl_array.Array
        ) -> tuple[Any, ...]:
            n_parts, (rows, entries, _) = parts
            arrays = (rows, entries, partial, of.indptr, columns, lowest)
            return (index(n_parts), index(of.features.nnz), *(each.base_data for each in arrays))

        more, keep = self.executable.launches[1:], [partial, *self.executable.keep[2:]]
        self.later = Narrowing(of, replace(record, narrow=True), lambda _: parts, arguments, more, keep)

    def _balanced(
        self, built: programs.Built, step: int, row_weight: int, slack: int
    ) -> tuple[tuple[int, list[cl_array.Array]], cl_array.Array]:
        """Add the launches of a kernel that takes parts of equal weight, a work-group or a work-item to each.

        Returns the parts, and the sums of those that begin inside a row.
        """
        of, index, record = self.of, self.index, built.parameters
        n_parts, (rows, entries, cuts) = of.cut(step, row_weight, slack)
        part_row = fetched(rows)
        even = isinstance(record, Adaptive) and record.parts == "even"
        if not (row_weight or even) and np.diff(part_row).max() > _MAX_ROWS * step:
            # A part with many rows for its entries, empty ones, would take long: rows are made to weigh.
            row_weight = 1
            n_parts, (rows, entries, cuts) = of.cut(step, row_weight, slack)
            part_row = fetched(rows)
        partial = allocated(self.queue, "sums of parts", n_parts, self.arithmetic.result)
        structure = (partial, of.indptr, of.indices)
        if isinstance(record, Chunked):
            self._launch(built, n_parts, index(n_parts), index(of.features.nnz), rows, entries, *structure)
        elif isinstance(record, Adaptive):
            # Where rows weigh nothing, parts begin at multiples of the step or behind a row's rest: loads need not wait to know.
            steps = (np.uint32(0 if row_weight else step),) if record.parts == "rests" else ()
            self._launch(built, n_parts * record.work_group, index(of.features.nnz), *steps, rows, entries, cuts, *structure)
        else:
            self._launch(built, n_parts * record.work_group, rows, entries, *structure)
        # A cut row's number is one below the row of the parts that begin inside it; its later pieces are those parts.
        cut = np.flatnonzero(fetched(cuts))
        if cut.size:
            self.combine(part_row[cut] - 1, cut, partial)
        return (n_parts, [rows, entries, cuts]), partial

    def _vector_long(self, choice: KernelChoice, indptr: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> programs.Built:
        """Add the launches for rows that several work-groups share."""
        built, parameters = self._built(choice.record(self.device, self.arithmetic, self.scaled))
        begin, end = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        n_pieces = np.maximum(1, -(-(end - begin) // PIECE))
        row = np.repeat(np.arange(rows.size), n_pieces)
        number = np.arange(row.size) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
        piece_begin = begin[row] + number * PIECE
        piece_end = np.minimum(piece_begin + PIECE, end[row])
        partial = allocated(self.queue, "sums of pieces", max(row.size, 1), self.arithmetic.result)
        tables = (self._upload(rows[row]), self._upload(piece_begin), self._upload(piece_end))
        self._launch(built, row.size * parameters.work_group, *tables, partial, self.of.indptr, self.of.indices)
        later = np.flatnonzero(number > 0)
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
        begins = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        ends = np.concatenate((begins[1:], [rows.size])) - 1
        # Most rows that are cut have one later piece or few; lanes for the longest would only wait, unless that one is very long.
        lanes = 256 if (ends - begins).max() >= 256 else 32 if rows.size >= 8 * begins.size else 4
        suited = record or Combine.legal(self.device, self.arithmetic, self.scaled, max(64, lanes), lanes)
        built, parameters = self._built(suited)
        tables = (self._upload(rows[begins]), self._upload(pieces[begins]), self._upload(pieces[ends]))
        self._launch(built, begins.size * parameters.lanes, self.index(begins.size), *tables, partial)

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
                    numbers = fetched(rows)[begin : begin + n_virtual].astype(np.int64)
                    single = (numbers[:, None] * side.granularity + np.arange(side.granularity)).ravel()
                    single = single[single < self.n_rows]
                    built = self._vector_long(choice, fetched(of.indptr, self.queue), single)
                    self._share(single.size, str(choice), built, f"rows of more than {PIECE} entries are cut")
                else:
                    lists.append(_List(choice, rows, begin, n_virtual, side))
                begin += n_virtual
        if lists:
            self._subvectors(lists)

    def _joined(self, arrays: list[cl_array.Array]) -> cl_array.Array:
        chain, begin = Chain(self.queue, *arrays), 0
        joined = allocated(self.queue, "lists of rows", sum(array.size for array in arrays), self.index)
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
