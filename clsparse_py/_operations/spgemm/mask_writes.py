"""Write a product under a mask, and accumulate it into C."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._formats.canonical import Parts, with_marked
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, conversion, needs_fp64, operation
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = ["Accumulate", "accumulate", "accumulate_values", "apply_mask"]

#: Work-items of a work-group, at most.
_WORK_GROUP = 128
#: Work-groups to a compute unit, at most.
_GROUPS_PER_UNIT = 64


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
        NumPy's names of the dtypes of the values of C, which is that of the result, and of the other matrix.
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
        types = "" if self.phase == "rows" else f"_{self.operator}_{self.c}_{self.t}"
        return f"accumulate_{self.phase}{types}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
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
        return {"work_group": self.work_group, "phase": self.phase}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        types = arithmetic.index, arithmetic.a, arithmetic.a
        for variant, phase in (("", "old"), ("new", "new"), ("values", "values"), ("rows", "rows")):
            yield variant, cls(min(128, device.max_work_group), *types, "plus", phase)


def apply_mask(
    queue: cl.CommandQueue,
    parts: Parts,
    mask: tuple[cl_array.Array, cl_array.Array],
    at_mask: bool,
) -> Parts:
    """Return the parts of the entries of a matrix at places of a mask, or of those at other places.

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
    """Return the parts of the union of two matrices, with an operation of the values at places that both have.

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
    """Write an operation of old and new values over the old ones, entry by entry of one structure; the old value is the first."""
    if not values.size:
        return
    chain = Chain(queue, new, writes=(values,))
    group = min(_WORK_GROUP, chain.device.max_work_group)
    built, record = chain.build(Accumulate(group, "int32", values.dtype.name, new.dtype.name, operator, "values"))
    groups, sizes = spread(chain.device, values.size, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, new, values)
    chain.finish(values)
