"""Device arrays of another dtype, or in a buffer of their own, without PyOpenCL's own kernels and their cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py import programs
from clsparse_py.arithmetic import OPENCL_TYPES
from clsparse_py.device import describe
from clsparse_py.records import dataclass
from clsparse_py.transfer import pending

__all__ = ["converted"]


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
        return f"csr_convert_{self.source}_{self.target}_wg{self.work_group}"

    def arguments(self) -> dict[str, object]:
        source, target = np.dtype(self.source), np.dtype(self.target)
        to, is_complex = OPENCL_TYPES[target.name], source.kind == "c"
        if source == target:
            expression = "v"
        elif target.kind == "b":
            expression = "v.x != 0 || v.y != 0" if is_complex else "v != 0"
        elif target.kind == "c":
            expression = f"convert_{to}(v)" if is_complex else f"({to})(v, 0)"
        else:
            expression = f"({to})v.x" if is_complex else f"({to})v"
        return {
            "work_group": self.work_group,
            "source_type": OPENCL_TYPES[source.name],
            "target_type": to,
            "converted": expression,
            "fp64": any(dtype.name in ("float64", "complex128") for dtype in (source, target)),
        }

    def within(self, work_group: int, lane_width: int) -> Self | None:  # noqa: ARG002 - it exchanges no lanes
        return type(self)(work_group, self.source, self.target) if work_group else None


def converted(
    queue: cl.CommandQueue, name: str, values: cl_array.Array, dtype: np.dtype[Any], work_group: int = 64
) -> cl_array.Array:
    """Return a new contiguous device array with the values of a one-dimensional one, converted to ``dtype``.

    Raises
    ------
    ValueError
        ``values``, which the message calls ``name``, is a view that begins between two entries of its buffer.
    """
    item = values.dtype.itemsize
    if values.offset % item or values.strides[0] % item:
        raise ValueError(f"{name}: must begin at a multiple of {item} bytes in its buffer, begins at {values.offset}")
    result = cl_array.empty(queue, values.size, dtype)
    if not values.size:
        return result
    device = describe(queue.device)
    built = programs.build(
        queue.context, queue.device, Convert(min(work_group, device.max_work_group), values.dtype.name, dtype.name)
    )
    group = built.parameters.work_group
    groups = min(-(-values.size // group), device.compute_units * 64)
    begin, step = (np.int64(number // item) for number in (values.offset, values.strides[0]))
    kernel = built.kernel(np.uint64(values.size), values.base_data, begin, step, result.data)
    _, wait_for = pending(queue, values)
    result.add_event(cl.enqueue_nd_range_kernel(queue, kernel, (groups * group,), (group,), wait_for=wait_for))
    return result
