"""Plan: from a decision to the launches of a product and the device arrays that they need."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.parts import Combine, add_later_pieces, list_cut_rows
from clsparse_py._operations.spmv.binning import N_BINS, Side, count_bins, list_rows
from clsparse_py._operations.spmv.choose import Decision, KernelChoice, Share, Thresholds, has_no_long_row
from clsparse_py._operations.spmv.features import Inspected
from clsparse_py._operations.spmv.kernels import Adaptive, Chunked, Merge, Narrow, Patterned, Streamed, Subvector
from clsparse_py._operations.spmv.patterns import find_patterns
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.dense_product import list_arguments, make_recorder
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recorder, Recording
from clsparse_py._run.transfer import copy_to_host, from_host
from clsparse_py._run.upgrade import Upgrade

__all__ = ["Builder", "Compressed"]

#: Number of parts of A, and three arrays, as `Inspected.cut` returns them: each part's first row, its first entry, and whether it
#: begins inside a row.
_Parts = tuple[int, list[cl_array.Array]]


class Compressed(NamedTuple):
    """A recording of an SpMV product that reads A's columns in a compressed form, and the form's name."""

    form: str
    recording: Recording


#: A generator that compresses A's columns: it yields events to await, and returns None if A's columns do not allow the form.
_Compressing = Generator[cl.Event, None, "Compressed | None"]


@dataclass(frozen=True)
class _List:
    """A list of virtual rows with one kernel: ``n_virtual`` numbers in ``rows``, from ``begin`` on."""

    choice: KernelChoice
    rows: cl_array.Array
    begin: int
    n_virtual: int
    side: Side


class Builder:
    """Records SpMV's products of a structure that was inspected, for one arithmetic (dtypes and a semiring).

    Attributes
    ----------
    recorder : Recorder
    shares : list of Share
    upgrade : Upgrade or None
        Makes a recording by row patterns, or by columns in 16 bits.
    """

    def __init__(self, inspected: Inspected, arithmetic: Arithmetic, scaled: bool, expected: int | None = None) -> None:
        self.of, self.arithmetic, self.scaled, self.expected = inspected, arithmetic, scaled, expected
        self.queue, self.device, self.limits = inspected.queue, inspected.device, Thresholds.of(inspected.device)
        self.n_rows = inspected.features.n_rows
        self.index = inspected.indptr.dtype.type
        self._chain = Chain(self.queue)
        self.recorder = self._new_recorder()
        self.shares: list[Share] = []
        self.upgrade: Upgrade[Compressed] | None = None
        self._combine: Callable[[Recorder, cl_array.Array], None] | None = None

    def _new_recorder(self) -> Recorder:
        """Return an empty recorder for the launches of an SpMV product."""
        arithmetic = self.arithmetic
        dtypes = np.dtype(arithmetic.a), np.dtype(arithmetic.x), arithmetic.result
        return make_recorder(Chain(self.queue), dtypes, scaled=self.scaled)

    def _explain(self, rows: int, choice: str, built: Built, why: str) -> None:
        """Add a line to the plan's explanation: how many rows, the kernel chosen for these, the kernel as built, the reason."""
        self.shares.append(Share(rows, choice, built.parameters.name, why))

    def _upload(self, values: Any) -> cl_array.Array:
        """Return a device array with a copy of the host's numbers, in the matrix's index dtype."""
        return from_host(self.queue, np.ascontiguousarray(values, dtype=self.index), copy=True)

    def add_single(self, choice: KernelChoice) -> None:
        """Add the launches of one SpMV kernel that takes all rows, in order."""
        inspected, structure = self.of, (self.of.indptr, self.of.indices)
        why = "all rows, in order"
        if choice.name == "vector_long":
            built = self._add_vector_long(choice, copy_to_host(inspected.indptr, self.queue), np.arange(self.n_rows))
            self._explain(self.n_rows, str(choice), built, why)
            return
        requested = choice.record(self.device, self.arithmetic, self.scaled)
        if isinstance(requested, Adaptive):
            self._explain(self.n_rows, str(choice), self._add_adaptive(requested), why)
            return
        if isinstance(requested, Streamed):
            self._explain(self.n_rows, str(choice), self._add_streamed(requested), why)
            return
        if isinstance(requested, Chunked):
            requested = requested.for_rows(inspected.features.mean, inspected.features.classes)
        built, record = self._chain.build(requested)
        if isinstance(record, Merge):
            self._add_balanced(built, record.capacity, 1, 0)
        elif isinstance(record, Chunked):
            weight = inspected.features.nnz + self.n_rows
            step = min(max(1, -(-weight // (self.device.compute_units * choice.items))), record.MAX_STEP)
            # A chunk of rows cuts its last row only if half a chunk of entries would follow, as cut rows need a second launch.
            parts = self._add_balanced(built, step, 1, step // 2)
            large = inspected.features.nnz * self.arithmetic.result.itemsize >= record.NARROW_FROM
            if large and not record.is_uneven(inspected.features.mean, inspected.features.classes):
                self._narrow_chunks(record, parts)
        elif isinstance(record, Subvector):
            _launch(self.recorder, built, self.n_rows * record.lanes, self.index(self.n_rows), *structure)
            if self._may_have_patterns():
                self._upgrade_to(partial(self._compress_to_patterns, record.lanes))
        self._explain(self.n_rows, str(choice), built, why)

    def _add_adaptive(self, requested: Adaptive) -> Built:
        """Add the launches of the SpMV kernel CSR-Adaptive for all rows, and return the built kernel.

        There is no second launch if no row is cut: a short rest of a part's last row fits into room that local memory has for
        it, and a longer rest is summed by the part unless it is too long for one work-group.
        """
        longest_rest = max(self.of.features.longest - 1, 0)
        built, record = self._chain.build(requested.with_room(longest_rest))
        if record.with_room(longest_rest) != record:  # the driver allowed fewer work-items
            built, record = self._chain.build(record.with_room(longest_rest))
        if record.parts == "staged":
            self._add_balanced(built, record.capacity - longest_rest, 0, longest_rest)
        elif record.parts == "rests":
            self._add_balanced(
                built, record.capacity, 0, longest_rest if has_no_long_row(self.of.features, self.device) else record.capacity
            )
        else:
            self._add_balanced(built, record.capacity, 0, 0)
        return built

    def _add_streamed(self, requested: Streamed) -> Built:
        """Add the launch of the SpMV kernel that stages whole rows, or CSR-Adaptive's if a row is too long; return the kernel.

        Columns are compressed after some products, to row patterns, else to 16 bits; before that, and if there are too many
        patterns and 16 bits are too few, it takes A's own columns.
        """
        inspected, narrow = self.of, requested.for_rows(self.of.features.mean)
        built, record = self._chain.build(narrow.wide)
        longest_rest = max(inspected.features.longest - 1, 0)
        if 2 * longest_rest >= record.capacity:
            return self._add_adaptive(
                Adaptive.legal(self.device, self.arithmetic, self.scaled, requested.work_group, requested.items)
            )
        n_parts, (rows, entries, _) = inspected.cut(record.capacity - longest_rest, 0, longest_rest)
        _launch(self.recorder, built, n_parts * record.work_group, rows, entries, inspected.indptr, inspected.indices)
        lanes = record.lanes

        def cut(built: Streamed) -> _Parts | None:
            """Return A's parts for the kernel as built; None if the driver's largest group is too small for A's longest row."""
            is_allowed = built.lanes == lanes and 2 * longest_rest < built.capacity
            return inspected.cut(built.capacity - longest_rest, 0, longest_rest) if is_allowed else None

        def launch(built: Built, parts: _Parts, *columns: cl_array.Array) -> Recording:
            """Return a recording of the SpMV product by the built kernel, which reads columns in 16 bits."""
            (n_parts, (rows, entries, _)), recorder = parts, self._new_recorder()
            _launch(recorder, built, n_parts * built.parameters.work_group, rows, entries, inspected.indptr, *columns)
            return recorder.recording()

        to_16_bits = partial(self._compress_to_16_bits, replace(narrow, lanes=lanes), cut, launch)
        if self._may_have_patterns():
            self._upgrade_to(partial(self._compress_to_patterns, lanes), to_16_bits)
        else:
            self._upgrade_to(to_16_bits)
        return built

    def _may_have_patterns(self) -> bool:
        """Return whether A's row patterns are worth a search: by A's number of rows, and its longest row."""
        longest, limits = self.of.features.longest, self.limits
        return 0 < longest <= limits.max_patterned_row and limits.min_patterned_rows <= self.n_rows < 2**32 - 1

    def _compress_to_patterns(self, lanes: int) -> _Compressing:
        """Find A's row patterns, and record the SpMV product by the kernel that takes them: ``lanes`` work-items take a row."""
        requested = Patterned.legal(self.device, self.arithmetic, self.scaled, lanes, self.of.features.longest)
        if requested is None:
            return None
        built, record = self._chain.build(requested)
        # With other lanes, which the driver's largest group may ask for, sums would have another order.
        patterns = (yield from find_patterns(self.of)) if record.lanes == lanes else None
        if patterns is None:
            return None
        recorder, numbers = self._new_recorder(), (self.index(self.n_rows), np.uint32(patterns.width))
        arrays = self.of.indptr, patterns.numbers, patterns.lengths, patterns.offsets
        _launch(recorder, built, -(-self.n_rows // record.rows) * record.work_group, *numbers, *arrays)
        return Compressed("row patterns", recorder.recording())

    def _narrow_chunks(self, record: Chunked, parts: _Parts) -> None:
        """Plan that, after some products, the SpMV kernel "chunked" reads columns in 16 bits, if they fit; A's parts stay."""
        index = self.index

        def launch(built: Built, parts: _Parts, *columns: cl_array.Array) -> Recording:
            """Return a recording of the SpMV product by the built kernel, which reads columns in 16 bits."""
            (n_parts, (rows, entries, _)), recorder = parts, self._new_recorder()
            partial = self._allocate_sums(recorder, n_parts, is_read=self._combine is not None)
            sizes = index(n_parts), index(self.of.features.nnz)
            _launch(recorder, built, n_parts, *sizes, rows, entries, partial, self.of.indptr, *columns)
            if self._combine is not None:
                self._combine(recorder, partial)
            return recorder.recording()

        self._upgrade_to(partial(self._compress_to_16_bits, replace(record, narrow=True), lambda _: parts, launch))

    def _upgrade_to(self, *forms: Callable[[], _Compressing]) -> None:
        """Plan that, after some products, the first of the forms that suits A takes the place of A's own columns."""

        def make() -> _Compressing:
            """Compress A's columns: yield the events to await; return the new recording, None if no form suits A."""
            for compress in forms:
                if (compressed := (yield from compress())) is not None:
                    return compressed
            return None

        self.upgrade = Upgrade("compressed columns", self.limits.narrow_after, self.expected, make)

    def _compress_to_16_bits(
        self,
        requested: Streamed | Chunked,
        cut: Callable[[Any], _Parts | None],
        launch: Callable[[Built, _Parts, cl_array.Array, cl_array.Array], Recording],
    ) -> _Compressing:
        """Compress A's columns to 16 bits; yield the event to await; return the new recording, None if it can't be made.

        It can't if columns need more bits, or the driver allows too few work-items.

        Parameters
        ----------
        requested : Streamed or Chunked
            The kernel that takes columns in 16 bits.
        cut : callable
            Returns the parts of A for the record that was built, or None if the driver allowed too few work-items.
        launch : callable
            Records the product, from the kernel, the parts, their columns, and the lowest column of each part.
        """
        inspected, queue = self.of, self.queue
        built, record = self._chain.build(requested)
        parts = cut(record)
        if parts is None:
            return None
        n_parts, (_, entries, _) = parts
        chain = Chain(queue, inspected.indices, entries)
        # A core of a CPU device reads the columns of a part of A from the part's first entry to its last.
        group = 1 if inspected.device.lanes_are_loops else min(256, inspected.device.max_work_group)
        kernel, _ = chain.build(Narrow(group, inspected.indices.dtype.name))
        columns = allocate(queue, "columns in 16 bits", inspected.features.nnz, np.dtype(np.uint16))
        lowest = allocate(queue, "lowest columns", n_parts, inspected.indices.dtype)
        too_wide = chain.scratch(n_parts, np.uint8)
        chain.launch(kernel, n_parts, entries, inspected.indices, columns, lowest, too_wide)
        chain.finish(columns, lowest)
        read_marks = chain.read_later(too_wide, n_parts)
        yield chain.events[-1]
        return None if read_marks().any() else Compressed("columns in 16 bits", launch(built, parts, columns, lowest))

    def _allocate_sums(self, recorder: Recorder, n_parts: int, *, is_read: bool) -> cl_array.Array:
        """Return an array for a sum of each part of A: scratch memory if a later launch reads it (``is_read``), or an array."""
        if is_read:
            return recorder.scratch(n_parts, self.arithmetic.result)
        return allocate(self.queue, "sums of parts", n_parts, self.arithmetic.result)

    def _add_balanced(self, built: Built, step: int, row_weight: int, slack: int) -> _Parts:
        """Add an SpMV kernel's launches for parts of equal weight (an entry 1, a row ``row_weight``), and return the parts."""
        inspected, index, record = self.of, self.index, built.parameters
        n_parts, (rows, entries, cuts) = inspected.cut(step, row_weight, slack)
        part_row = copy_to_host(rows)
        even = isinstance(record, Adaptive) and record.parts == "even"
        if not (row_weight or even) and np.diff(part_row).max() > self.limits.max_rows_by_step * step:
            # A part of A with many empty rows would take long: rows then count, like entries, in the equal weight of parts.
            row_weight = 1
            n_parts, (rows, entries, cuts) = inspected.cut(step, row_weight, slack)
            part_row = copy_to_host(rows)
        # A part of A that begins inside a row sums a later piece of that row; `part_row` is the number of the row behind it.
        cut = np.flatnonzero(copy_to_host(cuts))
        partial = self._allocate_sums(self.recorder, n_parts, is_read=cut.size > 0)
        structure = (partial, inspected.indptr, inspected.indices)
        if isinstance(record, Chunked):
            _launch(self.recorder, built, n_parts, index(n_parts), index(inspected.features.nnz), rows, entries, *structure)
        elif isinstance(record, Adaptive):
            # CSR-Adaptive with parts "rests": if rows have no weight, part p loads entries from p * step on, no `part_entry`.
            # A step of 0 tells CSR-Adaptive's kernel that rows have a weight: it reads a part's first entry in `part_entry`.
            steps = (np.uint32(0 if row_weight else step),) if record.parts == "rests" else ()
            _launch(
                self.recorder,
                built,
                n_parts * record.work_group,
                index(inspected.features.nnz),
                *steps,
                rows,
                entries,
                cuts,
                *structure,
            )
        else:
            _launch(self.recorder, built, n_parts * record.work_group, rows, entries, *structure)
        if cut.size:
            self.add_combine(part_row[cut] - 1, cut, partial)
        return n_parts, [rows, entries, cuts]

    def _add_vector_long(self, choice: KernelChoice, indptr: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> Built:
        """Add the launches of the SpMV kernel "vector_long" for ``rows``, a work-group to a piece of a row; return the kernel."""
        built, record = self._chain.build(choice.record(self.device, self.arithmetic, self.scaled))
        begin, end = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        piece = self.limits.piece
        n_pieces = np.maximum(1, -(-(end - begin) // piece))
        row = np.repeat(np.arange(rows.size), n_pieces)
        number = np.arange(row.size) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
        piece_begin = begin[row] + number * piece
        piece_end = np.minimum(piece_begin + piece, end[row])
        later = np.flatnonzero(number > 0)
        partial = self._allocate_sums(self.recorder, max(row.size, 1), is_read=later.size > 0)
        tables = (self._upload(rows[row]), self._upload(piece_begin), self._upload(piece_end))
        _launch(self.recorder, built, row.size * record.work_group, *tables, partial, self.of.indptr, self.of.indices)
        if later.size:
            self.add_combine(rows[row[later]], later, partial)
        return built

    def add_combine(
        self,
        rows: np.ndarray[Any, Any],
        pieces: np.ndarray[Any, Any],
        partial: cl_array.Array,
        record: Combine | None = None,
    ) -> None:
        """Add the launch that completes y in rows cut into pieces: it adds to y the sums of a row's second and later pieces.

        Parameters
        ----------
        rows, pieces : numpy.ndarray
            The row of each later piece, and the piece's number.
        partial : pyopencl.array.Array
            The sums of all pieces.
        record : Combine, optional
            The kernel; by default its lanes suit the numbers of pieces.
        """
        cut_rows = list_cut_rows(self.queue, self.of.indptr.dtype, rows, pieces, many=0)
        # Most cut rows have few pieces: lanes, work-items to a row, for the longest row would be idle, unless it is very long.
        lanes = 256 if cut_rows.most > 256 else 32 if rows.size >= 8 * cut_rows.n else 4
        built, _ = self._chain.build(record or Combine.legal(self.device, self.arithmetic, self.scaled, max(64, lanes), lanes))

        def launch(recorder: Recorder, partial: cl_array.Array) -> None:
            """Record the launch that adds to y, for each cut row, the sums of its second and later pieces, from ``partial``."""
            add_later_pieces(recorder, built, cut_rows, partial)

        launch(self.recorder, partial)
        self._combine = launch

    def add_all(self, decision: Decision) -> None:
        """Add the launches of the SpMV kernels of a decision, for all rows of A.

        Raises
        ------
        BuildError
            A kernel of the decision is refused.
        """
        if not self.n_rows:
            return
        if decision.scheme.name == "single":
            self.add_single(decision.kernels[0][0])
        else:
            self.add_binned(decision)

    def add_binned(self, decision: Decision, bins: Container[int] = range(N_BINS)) -> None:
        """Add a binned decision's SpMV launches for the rows of ``bins``: each bin's rows by the kernel chosen for the bin.

        Kernels of one work-group size and unrolling share a launch; "vector_long" has launches of its own.
        """
        inspected = self.of
        lists: list[_List] = []
        for side, choices in zip(decision.scheme.sides, decision.kernels, strict=True):
            counts = count_bins(self.queue, self.n_rows, inspected.indptr, side)
            counts[[number not in bins for number in range(N_BINS)]] = 0
            used_choices = [choice for choice, count in zip(choices, counts, strict=True) if count]
            kernels = list(dict.fromkeys(used_choices))
            if not kernels:
                continue
            number = {choice: i for i, choice in enumerate(kernels)}
            list_of_bin = np.array(
                [number.get(choice, -1) if count else -1 for choice, count in zip(choices, counts, strict=True)]
            )
            rows = list_rows(self.queue, self.n_rows, inspected.indptr, side, list_of_bin, int(counts.sum()))
            begin = 0
            for i, choice in enumerate(kernels):
                n_virtual = int(counts[list_of_bin == i].sum())
                if choice.name == "vector_long":
                    numbers = copy_to_host(rows)[begin : begin + n_virtual].astype(np.int64)
                    single = (numbers[:, None] * side.granularity + np.arange(side.granularity)).ravel()
                    single = single[single < self.n_rows]
                    built = self._add_vector_long(choice, copy_to_host(inspected.indptr, self.queue), single)
                    self._explain(single.size, str(choice), built, f"rows of more than {self.limits.piece} entries are cut")
                else:
                    lists.append(_List(choice, rows, begin, n_virtual, side))
                begin += n_virtual
        if lists:
            self._add_subvectors(lists)

    def _join_lists(self, arrays: list[cl_array.Array]) -> cl_array.Array:
        """Return a device array with a copy of several lists of rows, one after another."""
        chain, begin = Chain(self.queue, *arrays), 0
        all_rows = allocate(self.queue, "lists of rows", sum(array.size for array in arrays), self.index)
        for array in arrays:
            chain.copy(all_rows, array, array.size, begin)
            begin += array.size
        chain.finish(all_rows)
        return all_rows

    def _add_subvectors(self, lists: list[_List]) -> None:
        """Add the launches of SpMV kernels that take X work-items to a row: one launch for each work-group size and unrolling."""
        arrays = list({id(row_list.rows): row_list.rows for row_list in lists}.values())
        offsets = dict(zip((id(rows) for rows in arrays), np.cumsum([0] + [rows.size for rows in arrays]), strict=False))
        rows = arrays[0] if len(arrays) == 1 else self._join_lists(arrays)
        # Lists of long rows come first in a launch, so that the slowest work-groups begin first.
        lists = sorted(lists, key=lambda row_list: -row_list.choice.lanes)
        shapes = dict.fromkeys((row_list.choice.work_group, row_list.choice.unroll) for row_list in lists)
        for shape in shapes:
            lists_of_shape = [row_list for row_list in lists if (row_list.choice.work_group, row_list.choice.unroll) == shape]
            record = Subvector.legal(
                self.device, self.arithmetic, self.scaled, lists_of_shape[0].choice.lanes, *shape, binned=True
            )
            built, record = self._chain.build(record)
            bins: list[int] = []
            group = 0
            for row_list in lists_of_shape:
                lanes = min(row_list.choice.lanes, record.lanes)
                begin, granularity = row_list.begin + int(offsets[id(row_list.rows)]), row_list.side.granularity
                bins += [group, begin, row_list.n_virtual, granularity, lanes]
                group += -(-row_list.n_virtual * granularity * lanes // record.work_group)
                why = f"bins of granularity {granularity} that take X = {lanes}"
                self._explain(min(row_list.n_virtual * granularity, self.n_rows), f"X = {lanes}", built, why)
            structure = (self.of.indptr, self.of.indices)
            n_bins, work_items = self.index(len(lists_of_shape)), group * record.work_group
            _launch(self.recorder, built, work_items, self.index(self.n_rows), n_bins, self._upload(bins), rows, *structure)


def _launch(recorder: Recorder, built: Built, work_items: int, *own_arguments: Any) -> None:
    """Record the launch of an SpMV kernel; ``own_arguments`` are the kernel's arguments after the operands."""
    recorder.launch(built, -(-work_items // built.parameters.work_group), *list_arguments(recorder), *own_arguments)
