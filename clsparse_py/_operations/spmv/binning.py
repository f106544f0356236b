"""Binning schemes, and the lists of rows that they make, on the device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._decisions.labels import MOST, number
from clsparse_py._device.device import Device
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import from_host

__all__ = ["GRANULARITIES", "N_BINS", "Scheme", "SchemeName", "Side", "count_bins", "list_rows"]

#: The granularities U that the paper has for coarse binning: numbers of adjacent rows that are binned as one virtual row (Hou,
#: Feng and Che, Section III-B).
GRANULARITIES = (*(factor * 10**power for power in range(1, 6) for factor in (1, 2, 5)), 10**6)
#: Number of bins, classes of rows by length: one for each of 0 to 99 entries, and one for longer rows. A virtual row (adjacent
#: rows binned as one) counts by its mean row length, rounded down.
N_BINS = 101
#: Least mean row length, in entries, of a block of adjacent rows for hybrid binning to bin the block as one virtual row; rows of
#: other blocks are binned one by one.
HYBRID_THRESHOLD = 32

#: Names of the binning schemes.
SchemeName = Literal["single", "fine", "coarse", "hybrid"]


@dataclass(frozen=True)
class Scheme:
    """A binning scheme of SpMV: how rows go to bins, classes of rows by size.

    Attributes
    ----------
    name : {"single", "fine", "coarse", "hybrid"}
        "single": one bin, rows in order. "fine": every row on its own. "coarse": ``granularity`` adjacent rows form one virtual
        row. "hybrid": rows of blocks with short rows on their own, of blocks with long ones as virtual rows.
    granularity : int
        U; 1 for "single" and "fine".
    """

    name: SchemeName
    granularity: int = 1

    def __post_init__(self) -> None:
        require_name("scheme", self.name, get_args(SchemeName))
        most = MOST if self.name in ("coarse", "hybrid") else 1
        if not isinstance(self.granularity, (int, np.integer)) or not 1 <= self.granularity <= most:
            raise ValueError(f"scheme: the granularity of {self.name!r} must be from 1 to {most}, is {self.granularity!r}")

    @classmethod
    def parse(cls, text: str) -> Scheme:
        """Return the binning scheme that "single", "fine", "coarse-U" or "hybrid-U" names; U is 100 where it is left out.

        Raises
        ------
        ValueError
            It names none.
        """
        match = re.fullmatch(r"(single|fine)|(coarse|hybrid)(?:-([0-9]+))?", text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f'scheme: must be "auto", "single", "fine", "coarse-U", "hybrid-U" or a Scheme, is {text!r}')
        name = cast("SchemeName", match[1] or match[2])
        return cls(name) if match[1] else cls(name, number(match[3] or "100", "scheme: U", 1, MOST))

    def __str__(self) -> str:
        return f"{self.name}-{self.granularity}" if self.name in ("coarse", "hybrid") else self.name

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sets of virtual rows (adjacent rows as one) that are binned apart: two of "hybrid", none of "single", else one."""
        if self.name == "fine":
            return (Side(1, 1, -1, 0),)
        if self.name == "coarse":
            return (Side(self.granularity, self.granularity, -1, 0),)
        if self.name == "hybrid":
            return (Side(1, self.granularity, HYBRID_THRESHOLD, 0), Side(self.granularity, self.granularity, HYBRID_THRESHOLD, 1))
        return ()


@dataclass(frozen=True)
class Side:
    """A set of virtual rows of one granularity, by the workload of their blocks; see ``templates/spmv/binning.mako``."""

    granularity: int
    block: int
    threshold: int
    side: int


@kernel
@dataclass(frozen=True)
class Binning(OfStructure):
    """Parameters of ``templates/spmv/binning.mako``.

    Attributes
    ----------
    step : str
        "histogram", "count" or "place".
    """

    template = "spmv/binning"
    variants: ClassVar[Variants] = {step: {"step": step or "histogram"} for step in ("", "histogram", "count", "place")}

    step: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the record's fields, and ``n_bins``, the number of bins (rows by length)."""
        return {**super().arguments(), "n_bins": N_BINS}


def _count_chunks(device: Device, n_virtual: int) -> int:
    """Return the number of chunks of virtual rows, one to a work-item: at most 8 to a CPU's core, 512 to a GPU's."""
    max_chunks = device.compute_units * (8 if device.lanes_are_loops else 512)
    return max(1, min(max_chunks, -(-n_virtual // 16)))


def _side_arguments(n_rows: int, side: Side) -> tuple[Any, ...]:
    """Return the binning kernel's arguments: A's row count, and a set of virtual rows' granularity, block, threshold, side."""
    return np.int64(n_rows), np.int64(side.granularity), np.int64(side.block), np.int64(side.threshold), np.int32(side.side)


def count_bins(
    queue: cl.CommandQueue, n_rows: int, indptr: cl_array.Array, side: Side, work_group: int = 128
) -> np.ndarray[Any, Any]:
    """Return, for each bin, the number of its virtual rows (adjacent rows as one) in the set that ``side`` describes."""
    chain = Chain(queue, indptr)
    device = chain.device
    built, record = chain.build(Binning(min(work_group, device.max_work_group), indptr.dtype.name, "histogram"))
    n_virtual = -(-n_rows // side.granularity)
    groups = max(1, min(-(-n_virtual // record.work_group), device.compute_units * 8))
    counts = chain.scratch(groups * N_BINS, np.int32)
    chain.launch(built, groups, *_side_arguments(n_rows, side), indptr, counts)
    return np.asarray(chain.read(counts, groups * N_BINS).reshape(groups, N_BINS).sum(axis=0, dtype=np.int64))


def list_rows(
    queue: cl.CommandQueue,
    n_rows: int,
    indptr: cl_array.Array,
    side: Side,
    list_of_bin: np.ndarray[Any, Any],
    n_virtual: int,
    work_group: int = 128,
) -> cl_array.Array:
    """Return one array of lists of virtual rows, one list after another, rows ascending; a list has the rows of one or more bins.

    Parameters
    ----------
    queue, n_rows, indptr, side
        As for `count_bins`.
    list_of_bin : numpy.ndarray of int32
        The number of each bin's list, from 0 on; -1 for none.
    n_virtual : int
        Number of virtual rows of all lists.
    """
    chain = Chain(queue, indptr)
    work_group = min(work_group, chain.device.max_work_group)
    index = indptr.dtype
    chunks = _count_chunks(chain.device, -(-n_rows // side.granularity))
    n_lists = int(list_of_bin.max()) + 1
    to_list = from_host(queue, list_of_bin.astype(np.int32), copy=True)
    counts = chain.scratch(n_lists * chunks, index)
    rows = allocate(queue, "lists of rows", max(n_virtual, 1), index)
    shared = (*_side_arguments(n_rows, side), indptr, np.int64(chunks), np.int32(n_lists), to_list, counts)
    counting, placing = (chain.build(Binning(work_group, index.name, step))[0] for step in ("count", "place"))
    chain.launch(counting, -(-chunks // counting.parameters.work_group), *shared)
    enqueue_scan(chain, counts, counts, counts.size, kind="exclusive")
    chain.launch(placing, -(-chunks // placing.parameters.work_group), *shared, rows)
    chain.finish(rows)
    return rows
