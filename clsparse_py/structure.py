"""The structure of a CSR matrix on a device: what kernels that read it alone share, and the check of one from outside."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py import programs
from clsparse_py.arithmetic import OPENCL_TYPES
from clsparse_py.device import in_order
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain

if TYPE_CHECKING:
    from clsparse_py.spmv.plan import SpmvPlan
    from clsparse_py.transpose.plan import TransposePlan
from clsparse_py.records import dataclass

__all__ = ["Check", "OfStructure", "Plans", "Structure", "Symmetry", "check_structure"]


@dataclass(frozen=True)
class OfStructure(programs.Parameters):
    """What kernels that read the structure alone share.

    Attributes
    ----------
    index : str
        "int32" or "int64": the dtype of ``indices`` and ``indptr``.
    """

    index: str

    @property
    @override
    def name(self) -> str:
        return f"{self.template.replace('/', '_')}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: indices and indptr"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group) if work_group else None


@dataclass(frozen=True)
class Check(OfStructure):
    """Parameters of ``templates/csr/check.mako``."""

    template = "csr/check"


@dataclass(frozen=True)
class Structure:
    """What `check_structure` found.

    Attributes
    ----------
    nnz : int
        Stored entries: where ``indptr`` ends, which may be before the end of ``indices``.
    sorted : bool
        Whether the columns of each row ascend.
    canonical : bool
        Whether they do so strictly.
    longest : int or None
        Entries of the longest row; None where nothing has looked at all rows.
    adjacent : int
        Entries whose column is the one behind that of the entry before; 0 where nothing has looked.
    """

    nnz: int
    sorted: bool
    canonical: bool
    longest: int | None = None
    adjacent: int = 0


@dataclass(frozen=True)
class Symmetry:
    """Whether the pattern of a square matrix is symmetric, as its first transposition by `gather` found it.

    Attributes
    ----------
    sampled, missing, at_guess : int
        Entries of the sample; how many of them have no mirror image; how many have theirs at the first place that is looked at.
    verified : bool
        Whether every entry has its mirror image; False as well if the sample decided and the others were not looked at.
    missed : bool
        Whether one beside the sample has none.
    flags : pyopencl.array.Array
        What ``templates/transpose/sample.mako`` put out: the kernels read there that they are to gather.
    """

    sampled: int
    missing: int
    at_guess: int
    verified: bool
    missed: bool
    flags: cl_array.Array


@dataclasses.dataclass
class Plans:
    """The plans of a structure, and what transpositions found out about it, for all matrices that share its arrays.

    Attributes
    ----------
    spmv, transpose
        The plans; None before they are asked for.
    symmetry : Symmetry or None
        None before a transposition by `gather`.
    longest_column : int or None
        Entries of the column that has most; None before a transposition by `atomics`.
    """

    spmv: SpmvPlan | None = None
    transpose: TransposePlan | None = None
    symmetry: Symmetry | None = None
    longest_column: int | None = None


def _counted(
    chain: Chain, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array, work_group: int
) -> np.ndarray[Any, Any]:
    """Return what ``templates/csr/check.mako`` counts, a row for each work-group."""
    built, record = chain.build(Check(min(work_group, chain.device.max_work_group), indptr.dtype.name))
    work = max(shape[0], indices.size, 1)
    groups = max(1, min(-(-work // record.work_group), chain.device.compute_units * 16))
    counts = chain.scratch(groups * 8, np.int64)
    index = indptr.dtype.type
    sizes = index(shape[0]), index(shape[1]), index(indices.size), np.uint32(chain.device.is_cpu)
    chain.launch(built, groups, *sizes, indptr, indices, counts)
    return chain.read(counts, groups * 8).reshape(groups, 8)


def counted_by_host(shape: tuple[int, int], indices: np.ndarray[Any, Any], indptr: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same for a structure on the host, as if one work-group had counted all."""
    columns, lengths = indices.astype(np.int64), np.diff(indptr.astype(np.int64))
    steps = np.diff(columns)
    begins = indptr[:-1][lengths > 0]
    # Entries behind another row's: what falls there is no fault.
    behind = steps[begins[(begins > 0) & (begins < columns.size)] - 1]
    falls, not_rises = (int(np.sum(test(steps, 0)) - np.sum(test(behind, 0))) for test in (np.less, np.less_equal))
    outside, adjacent = np.sum((columns < 0) | (columns >= shape[1])), np.sum((steps == 1) & (columns[1:] > 0))
    longest = lengths.max(initial=0)
    return np.array([[np.sum(lengths < 0), outside, falls, not_rises, indptr[0], indptr[-1], adjacent, longest]], np.int64)


def check_structure(
    queue: cl.CommandQueue, shape: tuple[int, int], indices: cl_array.Array, indptr: cl_array.Array, work_group: int = 128
) -> Structure:
    """Check a structure on the device, with one kernel and one read.

    Raises
    ------
    ValueError
        It is no CSR structure of that shape; the message says why.
    """
    chain = Chain(in_order(queue), indptr, indices)
    try:
        found = _counted(chain, shape, indices, indptr, work_group)
    except BuildError:
        # Without the kernel the host looks at the structure, which has to be copied to it.
        found = counted_by_host(shape, chain.read(indices, indices.size), chain.read(indptr, shape[0] + 1))
    decreasing, outside, falls, not_rises, first, last, adjacent = (int(total) for total in found[:, :7].sum(axis=0))
    if first != 0:
        raise ValueError(f"indptr: must start with 0, starts with {first}")
    if decreasing:
        raise ValueError(f"indptr: must not decrease, does so in {decreasing} places")
    if last > indices.size:
        raise ValueError(f"indptr: ends with {last}, but there are only {indices.size} indices")
    if outside and last < indices.size:
        # What lies behind the last row is pruned and need not be columns.
        return check_structure(queue, shape, indices[:last], indptr, work_group)
    if outside:
        raise ValueError(f"indices: must lie in [0, {shape[1]}), {outside} of {indices.size} do not")
    if last < indices.size and not_rises:
        return check_structure(queue, shape, indices[:last], indptr, work_group)
    return Structure(last, sorted=falls == 0, canonical=not_rises == 0, longest=int(found[:, 7].max()), adjacent=adjacent)
