"""An operator on two sparse matrices, entry by entry, on the union of their patterns; results that are 0 are left out."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import OPENCL_TYPES, conversion, name_of, needs_fp64
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.canonical import with_sorted_rows, without_duplicates
from clsparse_py.convert import converted
from clsparse_py.device import Device, describe
from clsparse_py.elementwise.operators import OPERATORS
from clsparse_py.errors import DtypeError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix, MatrixT, Structure
from clsparse_py.memory import allocated
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure
from clsparse_py.transfer import fetched

__all__ = ["Union", "canonical_parts", "combined"]

Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]

#: Places that a work-item takes where local memory stages them: an odd number, so that no two of them meet in a bank.
_SPAN = 11
#: Work-items to a core of a CPU: enough of them that rows of any length balance.
_ITEMS_PER_CORE = 16


@dataclass(frozen=True)
class Union(OfStructure):
    """Parameters of ``templates/elementwise/union.mako``.

    Attributes
    ----------
    a, b : str
        NumPy's names of the dtypes of both matrices' values.
    operator : str
        A name in `OPERATORS`.
    phase : str
        "count" or "fill".
    span : int
        Places that a work-item takes, if a work-group stages those of its work-items in local memory; 0 if it does not, and the
        kernel is told.
    """

    template = "elementwise/union"

    a: str
    b: str
    operator: str
    phase: str
    span: int

    @property
    def tile(self) -> int:
        """Places that a work-group takes."""
        return self.work_group * self.span

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group."""
        if not self.span:
            return 0
        index, result = np.dtype(self.index).itemsize, OPERATORS[self.operator].result_dtype(self.dtype).itemsize
        staged = (self.tile + self.span + 2) * (index + self.dtype.itemsize)
        return staged + 4 * index + (self.tile * (index + result) if self.phase == "fill" else 0)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which is computed."""
        return np.result_type(self.a, self.b)

    @property
    @override
    def name(self) -> str:
        types = self.a if self.a == self.b else f"{self.a}_{self.b}"
        staged = f"_x{self.span}" if self.span else ""
        return f"union_{self.operator}_{self.phase}_{types}_{self.index}{staged}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        a, b, operator = np.dtype(self.a), np.dtype(self.b), OPERATORS[self.operator]
        result = operator.result_dtype(self.dtype)
        lines = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(a, b, self.dtype) else []
        lines += [
            super().prelude,
            f"#define I_MAX {'LONG_MAX' if self.index == 'int64' else 'INT_MAX'}",
            f"typedef {OPENCL_TYPES[a.name]} A_VALUE;  // {a.name}",
            f"typedef {OPENCL_TYPES[b.name]} B_VALUE;  // {b.name}",
            f"typedef {OPENCL_TYPES[self.dtype.name]} T;  // {self.dtype.name}: values are computed in it",
            f"typedef {OPENCL_TYPES[result.name]} C_VALUE;  // {result.name}",
            f"T from_a(const A_VALUE v) {{ return {conversion(a, self.dtype)}; }}",
            f"T from_b(const B_VALUE v) {{ return {conversion(b, self.dtype)}; }}",
            f"C_VALUE operate(const T a, const T b) {{ return {operator.expression(self.dtype)}; }}",
        ]
        return "\n".join(lines)

    @override
    def arguments(self) -> Mapping[str, object]:
        is_complex = OPERATORS[self.operator].result_dtype(self.dtype).kind == "c"
        kept = "result.x != 0 || result.y != 0" if is_complex else "result != 0"
        shape = {"staged": self.span > 0, "span": self.span, "tile": self.tile}
        return {**super().arguments(), **shape, "phase": self.phase, "is_kept": kept}

    @classmethod
    def legal(
        cls, device: Device, index: str, a: str, b: str, operator: str, phase: str, work_group: int = 0, span: int = _SPAN
    ) -> Union:
        """Return the nearest legal record: on CPU devices a work-item by itself, by default."""
        if not work_group and device.is_cpu:
            return cls(1, index, a, b, operator, phase, 0)
        widest = (
            cls(group, index, a, b, operator, "fill", span) for group in _halved(min(work_group or 128, device.max_work_group))
        )
        fits = next(each for each in widest if each.local_memory <= device.local_memory or each.work_group == 1)
        return replace(fits, phase=phase)


def _halved(number: int) -> Iterator[int]:
    """Iterate over a number, its half, and so on down to 1."""
    while number:
        yield number
        number //= 2


def combined(operator: str, A: MatrixT, B: Matrix) -> MatrixT:
    """Return the matrix of an operator's results on two matrices, in canonical format; it has no entry that is 0.

    Waits for the device once, to learn how many entries there are.

    Parameters
    ----------
    operator : str
        A name in `OPERATORS`.
    A, B : Matrix
        Of one shape, in one context; the result is on A's queue. Neither is changed: an operand that is not in canonical format
        is copied.

    Raises
    ------
    TypeError
        The values are of dtypes that need double precision, which the device lacks.
    MemoryError
        The device has not the memory for the result.
    """
    queue, dtype = A.queue, np.result_type(A.dtype, B.dtype)
    if needs_fp64(dtype) and not describe(queue.device).fp64:
        raise DtypeError(f"{A.dtype} and {B.dtype} give {dtype}, which {queue.device.name} lacks; use float32")
    of_a, of_b = canonical_parts(A, dtype), canonical_parts(B, dtype)
    wide = max(A.shape[1], of_a[1].size + of_b[1].size) > np.iinfo(np.int32).max
    index = np.dtype(np.int64) if wide else np.result_type(of_a[1].dtype, of_b[1].dtype)
    parts = _united(queue, (*_with_index(queue, of_a, index), *_with_index(queue, of_b, index)), operator, A.shape)
    data, indices, indptr = parts
    return A.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)


def canonical_parts(A: Matrix, dtype: np.dtype[Any]) -> Parts:
    """Return the parts of a matrix in canonical format: its own if it is in that format.

    Otherwise duplicates are added up as values of ``dtype``, as SciPy does: two booleans that are True make 2 beside numbers.
    """
    parts = A.data, A.indices, A.indptr
    if A.has_canonical_format:
        return parts
    if A.dtype != dtype:
        parts = converted(A.queue, "data", A.data, dtype), A.indices, A.indptr
    if not A.has_sorted_indices:
        parts = with_sorted_rows(A.queue, parts)
    return without_duplicates(A.queue, parts)


def _with_index(queue: cl.CommandQueue, parts: Parts, index: np.dtype[Any]) -> Parts:
    """Return parts whose indices have a dtype."""
    data, indices, indptr = parts
    if indices.dtype == index:
        return parts
    return data, converted(queue, "indices", indices, index), converted(queue, "indptr", indptr, index)


def _united_by_host(queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], operator: str, shape: tuple[int, int]) -> Parts:
    """Return the result of `_united`, computed by SciPy."""
    host = [fetched(part, queue) for part in parts]
    A, B = (scipy.sparse.csr_array(tuple(host[i : i + 3]), shape=shape) for i in (0, 3))
    C = scipy.sparse.csr_array(OPERATORS[operator].of_scipy(A, B))
    index = parts[1].dtype
    values = {"data": C.data, "indices": C.indices.astype(index), "indptr": C.indptr.astype(index)}
    data, indices, indptr = (placed(queue, name, each, parts[0].allocator) for name, each in values.items())
    return data, indices, indptr


@or_by_host(_united_by_host)
def _united(queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], operator: str, shape: tuple[int, int]) -> Parts:
    """Return the parts of the result, of two matrices' parts with one dtype of indices."""
    a_data, a_indices, a_indptr, b_data, b_indices, b_indptr = parts
    chain, index, n_places = Chain(queue, *parts), a_indptr.dtype, shape[0] + a_indices.size + b_indices.size
    types = name_of(index), name_of(a_data.dtype), name_of(b_data.dtype)
    count, fill = (chain.build(_record(chain.device, *types, operator, phase)) for phase in ("count", "fill"))
    groups, told = _cut(chain.device, n_places, count[1])
    n_items = groups * count[1].work_group
    sizes = index.type(shape[0]), np.uint64(n_places), *told
    operands = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    starts = chain.scratch(n_items + 1, index)
    chain.launch(count[0], groups, *sizes, *operands, starts)
    enqueue_scan(chain, starts, starts, n_items, kind="pointers")
    nnz = int(chain.read(starts, 1, n_items)[0]) if n_items else 0
    result = OPERATORS[operator].result_dtype(np.result_type(a_data.dtype, b_data.dtype))
    allocator = a_data.allocator
    data = allocated(queue, "data of the result", nnz, result, allocator)
    indices = allocated(queue, "indices of the result", nnz, index, allocator)
    indptr = allocated(queue, "indptr of the result", shape[0] + 1, index, allocator)
    chain.fill(indptr, 0, 1)
    chain.launch(fill[0], groups, *sizes, *operands, starts, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


# Kept: to make a record takes longer than to launch its kernel.
_record = functools.lru_cache(maxsize=256)(Union.legal)


def _cut(device: Device, n_places: int, record: Union) -> tuple[int, tuple[np.uint64, ...]]:
    """Return the work-groups, and the places of a work-item if the kernel has to be told."""
    if record.span:
        return -(-n_places // record.tile), ()
    span = max(-(-n_places // (device.compute_units * _ITEMS_PER_CORE)), _SPAN)
    return -(-n_places // (span * record.work_group)), (np.uint64(span),)
