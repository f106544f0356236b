"""Kernels that read only the structure of a matrix: the base of their records, and the check of a structure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build import programs
from clsparse_py._build.declaration import kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, define_numbers, needs_fp64
from clsparse_py._run.launch import Chain

__all__ = ["Check", "Facts", "OfNumbers", "OfStructure", "WithValues", "check_structure", "positions"]


@dataclass(frozen=True)
class OfStructure(programs.Parameters):
    """Base of the records of kernels that read only the structure of a matrix.

    Attributes
    ----------
    index : str
        "int32" or "int64": the dtype of ``indices`` and ``indptr``.
    """

    index: str

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: the type I of indices and row pointers."""
        return f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: indices and indptr"


@dataclass(frozen=True)
class WithValues(OfStructure):
    """Base of the records of kernels that read the structure of a matrix and its stored values.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of the values.
    """

    dtype: str

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: types I of indices and V of values, macro SUM of two values."""
        fp64 = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if needs_fp64(np.dtype(self.dtype)) else ""
        lines = [
            f"{fp64}{super().prelude}",
            f"typedef {OPENCL_TYPES[self.dtype]} V;  // {self.dtype}: values",
            f"#define SUM(a, b) ((a) {'||' if self.dtype == 'bool' else '+'} (b))",
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class OfNumbers(OfStructure):
    """Base of the records of kernels that compute with values as real or complex numbers.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of the values: float32, float64, complex64 or complex128.
    """

    dtype: str

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: the type T of values and functions of it, and the type I of indices."""
        return "\n".join([*define_numbers(np.dtype(self.dtype)), super().prelude])

    @classmethod
    @override
    def usual(cls, device: Device, arithmetic: Arithmetic) -> dict[str, Any]:
        """Return an example record's usual fields, with the arithmetic's floating type as the dtype."""
        return {**super().usual(device, arithmetic), "dtype": arithmetic.floating}


def positions(prefix: str, names: Iterable[str]) -> str:
    """Return OpenCL C macros PREFIX_NAME: the position, from 0 on, of each named number in an array that kernels write."""
    return "".join(f"#define {prefix}_{name.upper()} {position}\n" for position, name in enumerate(names))


class _Counts(NamedTuple):
    """The numbers that ``templates/csr/check.mako`` counts in a CSR structure, in the order of the kernel's output.

    Counts are summed over the work-groups, except for `longest`, whose largest value counts.
    """

    decreasing: Any
    outside: Any
    falls: Any
    not_rises: Any
    first: Any
    last: Any
    adjacent: Any
    longest: Any


@kernel
@dataclass(frozen=True)
class Check(OfStructure):
    """Parameters of ``templates/csr/check.mako``."""

    template = "csr/check"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: the position of each count in the output, and the type I of indices."""
        return f"{positions('COUNT', (*_Counts._fields, 'all'))}{super().prelude}"


@dataclass(frozen=True)
class Facts:
    """Facts about a structure, which `check_structure` measures.

    Attributes
    ----------
    nnz : int
        Stored entries: where ``indptr`` ends, which may be before the end of ``indices``.
    sorted : bool
        Whether the columns of each row ascend.
    canonical : bool
        Whether the columns of each row ascend strictly: sorted, and without duplicates.
    longest : int or None
        Entries of the longest row; None if the number is not known.
    adjacent : int
        Entries whose column is next to the column of the entry before; 0 if the number is not known.
    """

    nnz: int
    sorted: bool
    canonical: bool
    longest: int | None = None
    adjacent: int = 0


def _count_violations(
    chain: Chain, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array, work_group: int
) -> np.ndarray[Any, Any]:
    """Return the numbers that ``templates/csr/check.mako`` counts in a CSR structure: a row for each work-group."""
    built, record = chain.build(Check(min(work_group, chain.device.max_work_group), indptr.dtype.name))
    work = max(shape[0], indices.size, 1)
    groups = max(1, min(-(-work // record.work_group), chain.device.compute_units * 16))
    n_counts = len(_Counts._fields)
    counts = chain.scratch(groups * n_counts, np.int64)
    index = indptr.dtype.type
    sizes = index(shape[0]), index(shape[1]), index(indices.size), np.uint32(chain.device.lanes_are_loops)
    chain.launch(built, groups, *sizes, indptr, indices, counts)
    return chain.read(counts, groups * n_counts).reshape(groups, n_counts)


def check_structure(
    queue: cl.CommandQueue, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array, work_group: int = 128
) -> Facts:
    """Check a CSR structure by one kernel on the device and one read by the host, and return the `Facts` about it.

    Raises
    ------
    ValueError
        The arrays are no CSR structure of that shape; the message says why.
    """
    chain = Chain(queue, indptr, indices)
    counts = _count_violations(chain, shape, indices, indptr, work_group)
    total = _Counts(*counts.sum(axis=0).tolist())._replace(longest=int(counts[:, -1].max()))
    last, outside = total.last, total.outside
    if total.first != 0:
        raise ValueError(f"indptr: must start with 0, starts with {total.first} (index pointer should start with 0)")
    if total.decreasing:
        raise ValueError(f"indptr: must not decrease, does so in {total.decreasing} places")
    if last > indices.size:
        raise ValueError(f"indptr: ends with {last}, but there are only {indices.size} indices")
    if outside and last < indices.size:
        # Entries behind the last row are cut off, and need not have valid columns: the entries of the rows are counted again.
        return check_structure(queue, shape, indices[:last], indptr, work_group)
    if outside:
        raise ValueError(f"indices: must lie in [0, {shape[1]}), {outside} of {indices.size} do not")
    if last < indices.size and total.not_rises:
        return check_structure(queue, shape, indices[:last], indptr, work_group)
    is_sorted, is_canonical = total.falls == 0, total.not_rises == 0
    return Facts(last, sorted=is_sorted, canonical=is_canonical, longest=total.longest, adjacent=total.adjacent)
