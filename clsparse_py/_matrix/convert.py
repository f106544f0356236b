"""Conversion of device arrays to another dtype, and copies, without PyOpenCL's own kernels and their cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build import programs
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, conversion, needs_fp64
from clsparse_py._run.launch import Chain

__all__ = ["convert", "copied", "with_index"]


@kernel
@dataclass(frozen=True)
class Convert(programs.Parameters):
    """Parameters of ``templates/csr/convert.mako``.

    Attributes
    ----------
    source, target : str
        NumPy's names of the dtypes.
    """

    template = "csr/convert"

    source: str
    target: str

    @property
    def name(self) -> str:
        """The name of the conversion kernel: its dtypes and work-group size."""
        return f"csr_convert_{self.source}_{self.target}_wg{self.work_group}"

    def arguments(self) -> dict[str, object]:
        """Return the template's arguments: work-group size, both types, the converting expression, whether doubles occur."""
        source, target = np.dtype(self.source), np.dtype(self.target)
        return {
            "work_group": self.work_group,
            "source_type": OPENCL_TYPES[source.name],
            "target_type": OPENCL_TYPES[target.name],
            "converted": conversion(source, target),
            "fp64": needs_fp64(source, target),
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(64, device.max_work_group), arithmetic.a, arithmetic.result.name)


def convert(
    queue: cl.CommandQueue, name: str, values: cl_array.Array, dtype: np.dtype[Any], work_group: int = 64
) -> cl_array.Array:
    """Return a new contiguous device array with the values of a one-dimensional device array, converted to ``dtype``.

    Raises
    ------
    ValueError
        ``values``, which the message calls ``name``, is a view that begins between two entries of its buffer.
    """
    item = values.dtype.itemsize
    if values.offset % item or values.strides[0] % item:
        raise ValueError(f"{name}: must begin at a multiple of {item} bytes in its buffer, begins at {values.offset}")
    result = allocate(queue, name, values.size, dtype)
    if values.size:
        chain = Chain(queue, values)
        built, record = chain.build(Convert(min(work_group, chain.device.max_work_group), values.dtype.name, dtype.name))
        groups = min(-(-values.size // record.work_group), chain.device.compute_units * 64)
        begin, step = (np.int64(number // values.dtype.itemsize) for number in (values.offset, values.strides[0]))
        chain.launch(built, groups, np.uint64(values.size), values, begin, step, result)
        chain.finish(result)
    return result


def copied(queue: cl.CommandQueue, name: str, values: cl_array.Array) -> cl_array.Array:
    """Return a copy of a contiguous device array, of the same strides, in a buffer of its own."""
    result = allocate(queue, name, values.shape, values.dtype, values.allocator)
    result.strides = values.strides
    if values.nbytes:
        chain = Chain(queue, values)
        # The copy command counts bytes, not entries, as a view may begin between two entries of its buffer.
        chain.copy_bytes(result.base_data, values.base_data, values.nbytes, 0, values.offset)
        chain.finish(result)
    return result


def with_index(
    queue: cl.CommandQueue, parts: tuple[cl_array.Array, cl_array.Array, cl_array.Array], index: np.dtype[Any]
) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
    """Return the data, indices and indptr of a matrix, both index arrays converted to an index dtype if they have another."""
    data, indices, indptr = parts
    if indices.dtype == index:
        return parts
    return data, convert(queue, "indices", indices, index), convert(queue, "indptr", indptr, index)
