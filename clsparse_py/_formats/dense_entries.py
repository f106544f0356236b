"""Conversion of a dense matrix on the device to CSR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Parts
from clsparse_py._matrix.placement import index_dtype
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.overlap import require_inside
from clsparse_py._precision.arithmetic import OPENCL_TYPES, name_of, needs_fp64
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import contexts_match, copy_to_device

__all__ = ["Entries", "entries_of"]


@kernel
@dataclass(frozen=True)
class Entries(OfStructure):
    """Parameters of ``templates/canonical/entries.mako``.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of the values.
    phase : str
        "mark", which marks the entries that are not 0, or "place", which moves them to their positions.
    """

    template = "canonical/entries"
    variants: ClassVar[Variants] = {"": {"phase": "mark"}, "place": {"phase": "place"}}

    dtype: str
    phase: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, the values' OpenCL type, whether they are complex, whether they need fp64."""
        dtype = np.dtype(self.dtype)
        value_arguments = {"number": OPENCL_TYPES[self.dtype], "is_complex": dtype.kind == "c", "fp64": needs_fp64(dtype)}
        return {**super().arguments(), **value_arguments}


def _extract_entries(queue: cl.CommandQueue, dense: cl_array.Array, index: np.dtype[Any]) -> Parts:
    """Return the CSR arrays of the nonzeros of a dense device matrix, in an index dtype that holds rows times columns."""
    rows, columns = dense.shape
    n, item, chain = rows * columns, dense.dtype.itemsize, Chain(queue, dense)
    types = min(128, chain.device.max_work_group), name_of(index), name_of(dense.dtype)
    (mark_kernel, record), (place_kernel, _) = (chain.build(Entries(*types, phase)) for phase in ("mark", "place"))
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    origin = (np.uint64(columns), *(np.int64(number // item) for number in (dense.offset, *dense.strides)))
    marks, positions = chain.scratch(n, np.uint8), chain.scratch(n + 1, index)
    chain.launch(mark_kernel, groups, *sizes, *origin, dense, marks)
    enqueue_scan(chain, marks, positions, n, kind="pointers")
    n_entries = int(chain.read(positions, 1, n)[0])
    data = allocate(queue, "data", n_entries, dense.dtype, dense.allocator)
    indices, indptr = (allocate(queue, *size, index) for size in (("indices", n_entries), ("indptr", rows + 1)))
    chain.launch(place_kernel, groups, *sizes, *origin, dense, positions, indices, data)
    begins = copy_to_device(queue, "beginnings of rows", np.arange(rows + 1, dtype=index) * index.type(columns))
    enqueue_permute(chain, begins, positions, indptr, rows + 1)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def entries_of(queue: cl.CommandQueue, dense: cl_array.Array) -> Parts:
    """Return the CSR arrays of the entries of a dense matrix that are not 0. The host waits to read the number of entries.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    dense : pyopencl.array.Array
        A matrix of any strides, with rows and columns, of a dtype that kernels take.

    Raises
    ------
    ValueError
        The dense matrix lives in another context, reaches past its buffer, or begins between two values.
    """
    if not contexts_match(dense, queue.context):
        raise ValueError("arg1: lives in another context than the queue of the matrix")
    require_inside("arg1", dense)
    item = dense.dtype.itemsize
    if any(number % item for number in (dense.offset, *dense.strides)):
        raise ValueError(f"arg1: values must stand at multiples of {item} bytes in its buffer")
    data, indices, indptr = _extract_entries(queue, dense, index_dtype((), (math.prod(dense.shape),)))
    index = index_dtype((), (*dense.shape, data.size))
    if indices.dtype != index:
        indices, indptr = (convert(queue, "indices", part, index) for part in (indices, indptr))
    return data, indices, indptr
