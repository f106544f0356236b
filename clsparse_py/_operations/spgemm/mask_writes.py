"""Write a product under a mask: select the entries that it lets through, and accumulate them into C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._formats.canonical import Parts, with_marked
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate, shorten
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, conversion, needs_fp64, operation
from clsparse_py._primitives.permute import Moving
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = [
    "Accumulate",
    "Marked",
    "MaskedEntries",
    "accumulate",
    "accumulate_values",
    "apply_mask",
    "find_marked",
    "marked_pointers",
    "take_marked",
]

#: Most work-items in a work-group of the kernels that select and accumulate the entries of a product under a mask.
_WORK_GROUP = 128
#: Most work-groups to a compute unit in a launch of the kernels that write a product under a mask.
_GROUPS_PER_UNIT = 64
#: Number of a matrix's entries whose marks (let through by the mask, or not) one work-item counts.
_TILE = 64


#: Kernel that marks a matrix's entries: those at a mask's places or, if its argument ``there`` is 0, those at all other places.
MASK_MARKS = declare_loop(
    "spgemm/mask_marks",
    "Which entries of a matrix a mask, in canonical format, lets through: marks[k] is 1 if the mask has an entry at the "
    "place of entry k or, if there is 0, if it has none.",
    "uint there, const I *rows, const I *columns, const I *m_indptr, const I *m_indices, uchar *marks",
    "const I row = rows[k], column = columns[k], last = m_indptr[row + 1];",
    "const I at = first_from(m_indices, m_indptr[row], last, column);",
    "marks[k] = (at < last && m_indices[at] == column) == (there != 0);",
    counter="k",
    includes=("first_from.cl",),
)


@kernel
@dataclass(frozen=True)
class Accumulate(OfStructure):
    """Parameters of ``templates/spgemm/accumulate.mako``.

    Attributes
    ----------
    c, t : str
        NumPy's names of the dtypes of C's values, which the result has too, and of the other matrix' values.
    operator : str
        A name that `arithmetic.operation` takes.
    phase : str
        "old", "new" or "rows"; "values" if both have the same structure.
    """

    template = "spgemm/accumulate"

    c: str
    t: str
    operator: str
    phase: str

    @property
    @override
    def name(self) -> str:
        """The kernel's name: phase; operator and both dtypes of values, but in phase "rows"; index type; work-group size."""
        types = "" if self.phase == "rows" else f"_{self.operator}_{self.c}_{self.t}"
        return f"accumulate_{self.phase}{types}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the index type and, but in phase "rows", types, conversions and operation of values."""
        if self.phase == "rows":
            return super().prelude
        c, t = np.dtype(self.c), np.dtype(self.t)
        common = np.result_type(c, t)
        lines = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(c, t, common) else []
        lines += [
            super().prelude,
            f"typedef {OPENCL_TYPES[self.c]} A_VALUE;  // {self.c}",
            f"typedef {OPENCL_TYPES[self.t]} X_VALUE;  // {self.t}",
            f"typedef {OPENCL_TYPES[common.name]} T;  // {common.name}: values are computed in it",
            "typedef A_VALUE C_VALUE;",
            f"T from_a(const A_VALUE v) {{ return {conversion(c, common)}; }}",
            f"T from_x(const X_VALUE v) {{ return {conversion(t, common)}; }}",
            f"C_VALUE of_old(const A_VALUE v) {{ return {conversion(c, c)}; }}",
            f"C_VALUE of_new(const X_VALUE v) {{ return {conversion(t, c)}; }}",
            f"T operate(const T a, const T b) {{ return {operation(self.operator, common)}; }}",
            f"C_VALUE accumulate(const T a, const T b) {{ const T v = operate(a, b); return {conversion(common, c)}; }}",
        ]
        return "\n".join(lines)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size and the phase."""
        return {"work_group": self.work_group, "phase": self.phase}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "new", "values" and "rows"."""
        types = arithmetic.index, arithmetic.a, arithmetic.a
        for variant, phase in (("", "old"), ("new", "new"), ("values", "values"), ("rows", "rows")):
            yield variant, cls(min(128, device.max_work_group), *types, "plus", phase)


def apply_mask(
    queue: cl.CommandQueue,
    parts: Parts,
    mask: tuple[cl_array.Array, cl_array.Array],
    at_mask: bool,
) -> Parts:
    """Return the arrays of a matrix's entries at the places of a mask, or at all other places.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    parts : tuple of pyopencl.array.Array
        data, indices and indptr, of the mask's index type.
    mask : tuple of pyopencl.array.Array
        indptr and indices of the mask, in canonical format.
    at_mask : bool
        Whether the entries at the mask's places are kept.
    """
    indices, indptr, n = parts[1], parts[2], parts[1].size
    if not n:
        return parts
    rows = rows_of(queue, indptr, n)
    chain = Chain(queue, *parts, *mask, rows)
    built, record = chain.build(MASK_MARKS.record(min(_WORK_GROUP, chain.device.max_work_group), indptr.dtype.name))
    marks = allocate(queue, "marks", n, np.uint8)
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.uint32(at_mask), rows, indices, *mask, marks)
    chain.finish(marks)
    return with_marked(queue, parts, marks)


def accumulate(queue: cl.CommandQueue, old: Parts, new: Parts, operator: str) -> Parts:
    """Return the arrays of the union of two matrices' entries; an operation combines the values at places that both have.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    old, new : tuple of pyopencl.array.Array
        data, indices and indptr in canonical format, of one index type, which holds the entries of both. The result's values are
        of the dtype of the old ones.
    operator : str
        As of `Accumulate`; the old value is the first.
    """
    c_data, c_indices, c_indptr = old
    t_data, t_indices, t_indptr = new
    n_c, n_t, index, n_rows = c_indices.size, t_indices.size, c_indptr.dtype, c_indptr.size - 1
    if not n_t:
        return old
    c_rows, t_rows = rows_of(queue, c_indptr, n_c), rows_of(queue, t_indptr, n_t)
    chain = Chain(queue, *old, *new, c_rows, t_rows)
    group = min(_WORK_GROUP, chain.device.max_work_group)
    types = index.name, c_data.dtype.name, t_data.dtype.name, operator
    kernels = {phase: chain.build(Accumulate(group, *types, phase)) for phase in ("old", "new", "rows")}
    marking, record = chain.build(MASK_MARKS.record(group, index.name))
    marks, offsets = chain.scratch(n_t, np.uint8), chain.scratch(n_t + 1, index)
    groups, sizes = spread(chain.device, n_t, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(marking, groups, *sizes, np.uint32(0), t_rows, t_indices, c_indptr, c_indices, marks)
    enqueue_scan(chain, marks, offsets, n_t, kind="pointers")
    nnz = n_c + int(chain.read(offsets, 1, n_t)[0])
    allocator = c_data.allocator
    data, indices = allocate(queue, "data", nnz, c_data.dtype, allocator), allocate(queue, "indices", nnz, index, allocator)
    indptr = allocate(queue, "indptr", n_rows + 1, index, allocator)
    entries = c_indices, c_data, t_indices, t_data, indices, data
    for phase, n, arrays in (("old", n_c, (c_rows, *entries)), ("new", n_t, (t_rows, *entries)), ("rows", n_rows + 1, (indptr,))):
        built, kernel_record = kernels[phase]
        groups, sizes = spread(chain.device, n, kernel_record.work_group, _GROUPS_PER_UNIT)
        chain.launch(built, groups, *sizes, c_indptr, t_indptr, offsets, *arrays)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def accumulate_values(queue: cl.CommandQueue, values: cl_array.Array, new: cl_array.Array, operator: str) -> None:
    """Overwrite each of ``values`` by an operation of it and the new value of the same entry: both arrays have one structure."""
    if not values.size:
        return
    chain = Chain(queue, new, writes=(values,))
    group = min(_WORK_GROUP, chain.device.max_work_group)
    built, record = chain.build(Accumulate(group, "int32", values.dtype.name, new.dtype.name, operator, "values"))
    groups, sizes = spread(chain.device, values.size, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, new, values)
    chain.finish(values)


@kernel
@dataclass(frozen=True)
class MaskedEntries(Moving):
    """Parameters of ``templates/spgemm/masked_entries.mako``.

    Attributes
    ----------
    phase : str
        "count", "list", "move" or "rows"; values are of "move" alone.
    """

    template = "spgemm/masked_entries"
    variants: ClassVar[Variants] = {
        "": {"value_bytes": 0, "phase": "count"},
        "list": {"value_bytes": 0, "phase": "list"},
        "move": {"phase": "move"},
        "rows": {"value_bytes": 0, "phase": "rows"},
    }

    phase: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the record's fields, and ``tile``, the entries that a work-item counts."""
        return {**super().arguments(), "tile": _TILE}


class Marked(NamedTuple):
    """The marked entries of a matrix.

    Attributes
    ----------
    n : int
        Number of marked entries.
    positions : pyopencl.array.Array
        Ascending positions of the marked entries or, if these are fewer, of the others.
    there : bool
        Whether the positions are the marked entries'.
    """

    n: int
    positions: cl_array.Array
    there: bool


def find_marked(queue: cl.CommandQueue, marks: cl_array.Array, index: np.dtype[Any]) -> Marked:
    """Return how many entries are marked, and where they are (or the others, if fewer); ``marks``: bytes, 0 or 1. Waits."""
    n, n_tiles = marks.size, -(-marks.size // _TILE)
    chain = Chain(queue, marks)
    (counting, record), (listing, _) = (chain.build(_marked_record(chain, index, phase)) for phase in ("count", "list"))
    offsets, groups = chain.scratch(n_tiles + 1, index), -(-n_tiles // record.work_group)
    chain.launch(counting, groups, np.uint64(n), marks, offsets)
    enqueue_scan(chain, offsets, offsets, n_tiles, kind="pointers")
    n_marked = int(chain.read(offsets, 1, n_tiles)[0])
    lists_marked = 2 * n_marked <= n
    n_positions = n_marked if lists_marked else n - n_marked
    positions = allocate(queue, "positions", n_positions, index)
    if n_positions:
        chain.launch(listing, groups, np.uint64(n), np.uint32(lists_marked), marks, offsets, positions)
    chain.finish(positions)
    return Marked(n_marked, positions, lists_marked)


def _marked_record(chain: Chain, index: np.dtype[Any], phase: str, value_bytes: int = 0) -> MaskedEntries:
    """Return the parameters of the kernel that counts, lists or moves marked entries, or makes their row pointers, by phase."""
    return MaskedEntries(min(_WORK_GROUP, chain.device.max_work_group), index.name, value_bytes, phase)


def take_marked(
    queue: cl.CommandQueue, values: cl_array.Array, marked: Marked, allocator: Any, room: int | None = None
) -> cl_array.Array:
    """Return an array of the values of a matrix's marked entries alone, side by side.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        Values of all entries, from the beginning of their buffer.
    marked : Marked
    allocator : callable or None
        Of the result.
    room : int, optional
        Bytes that a new array may take. If these are too few, the result overwrites ``values``, part by part, and keeps all of
        their memory. By default a new array is returned.
    """
    n, item, positions = marked.n, values.dtype.itemsize, marked.positions
    in_place = room is not None and n * item > room
    chain = Chain(queue, positions, values, writes=(values,) if in_place else ())
    built, record = chain.build(_marked_record(chain, positions.dtype, "move", item))
    part = max((room or 0) // item, 1) if in_place else n
    entries = chain.scratch(part, values.dtype) if in_place else allocate(queue, "entries", n, values.dtype, allocator)
    # Marked entries' values move only towards the array's beginning: none overwrites a value that is still to be read.
    for first in range(0, n, max(part, 1)):
        n_moved = min(part, n - first)
        groups, sizes = spread(chain.device, n_moved, record.work_group, _GROUPS_PER_UNIT)
        marked_arguments = np.uint64(first), np.uint32(marked.there), np.uint64(positions.size), positions
        chain.launch(built, groups, *sizes, *marked_arguments, values, entries)
        if in_place:
            chain.copy(values, entries, n_moved, first)
    result = values if in_place else entries
    chain.finish(result)
    shorten(result, n)
    return result


def marked_pointers(queue: cl.CommandQueue, indptr: cl_array.Array, marked: Marked, allocator: Any) -> cl_array.Array:
    """Return the row pointers of the matrix that has the marked entries of another matrix alone."""
    n, positions = indptr.size, marked.positions
    chain = Chain(queue, indptr, positions)
    built, record = chain.build(_marked_record(chain, indptr.dtype, "rows"))
    new_indptr = allocate(queue, "indptr", n, indptr.dtype, allocator)
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.uint32(marked.there), np.uint64(positions.size), positions, indptr, new_indptr)
    chain.finish(new_indptr)
    return new_indptr
