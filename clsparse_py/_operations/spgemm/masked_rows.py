"""Kernels of C = A @ B at the places of a mask: the sum at each place, and whether the place has a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.built import Built
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._decisions.labels import number
from clsparse_py._decisions.profiles import decide
from clsparse_py._device.device import RESERVED, Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = [
    "LABELS",
    "Lookup",
    "Masked",
    "MaskedChunked",
    "MaskedTeam",
    "choose_masked_record",
    "enqueue_masked",
    "features_of",
    "parse",
    "record_of",
    "takes_teams",
    "workers_of",
]

#: Labels of the ways to find a product's column in the mask's row: a team's hash table of 128, 64 or 256 entries of the mask, a
#: worker's table of each column's place, or a worker's search by bisection.
LABELS = ("team:128", "team:64", "team:256", "chunked:places", "chunked:search")
#: Most entries of the mask whose columns a team of work-items puts into its hash table at a time.
_MAX_WINDOW = 1024
#: Most work-items in a work-group of the masked product's kernel in which teams of work-items have hash tables.
_WORK_GROUP = 256
#: Default number of entries of the mask whose columns a team of work-items puts into its hash table at a time.
_DEFAULT_WINDOW = 128
#: Most columns of C for the masked product's kernel with teams, which counts the products of a team's lanes in 32 bits.
_MAX_COLUMNS = 1 << 27
#: Most chunks of the mask's rows to a worker, a work-item that takes one chunk after another.
_CHUNKS_PER_WORKER = 64
#: Least entries of the mask in a chunk of rows that a worker, a work-item, takes at a time.
_MIN_CHUNK = 32
#: Most entries of a row of B that a masked product walks as a whole; longer rows are cut to the columns of the mask's row by
#: bisection.
_MAX_WALKED = 64
#: Number of workers, work-items that take chunks of the mask's rows, to a compute unit of a GPU.
_WORKERS_PER_UNIT = 64


@dataclass(frozen=True)
class Lookup:
    """The lookup of a product's column among the columns of the mask's row.

    Attributes
    ----------
    window : int
        Entries of the mask whose columns a team puts into a hash table, a power of two; 0 if workers take chunks of rows.
    places : bool
        Whether such a worker has the place of each column in the mask's row; else rows are searched.
    """

    window: int
    places: bool


def parse(label: str) -> Lookup:
    """Return the lookup of columns in the mask's row that a label names, such as "team:128".

    Raises
    ------
    ValueError
        The label names no lookup.
    """
    kind, _, shape = label.partition(":")
    if kind == "team":
        window = number(shape, "the window of team", 16, _MAX_WINDOW)
        if window.bit_count() != 1:
            raise ValueError(f"the window of team must be a power of two, is {window}")
        return Lookup(window, False)
    if kind == "chunked" and shape in ("places", "search"):
        return Lookup(0, shape == "places")
    raise ValueError(f"an accumulator of a mask must be one of {', '.join(LABELS)}, is {label[:80]!r}")


def _is_counted(arithmetic: Arithmetic) -> bool:
    """Return whether a product is 1 for every pair of factors, and sums are integers of at least 32 bits: counts of products."""
    result = arithmetic.result
    return arithmetic.semiring == "plus_pair" and result.kind in "iu" and result.itemsize >= 4


@dataclass(frozen=True)
class _OfMask(Parameters):
    """Base of the records of kernels under a mask.

    Attributes
    ----------
    arithmetic : Arithmetic
        Types of values and the semiring; ``x`` is B's dtype.
    counted : bool
        Whether products are 1, so that sums are counts.
    """

    arithmetic: Arithmetic
    counted: bool


@kernel
@dataclass(frozen=True)
class MaskedTeam(_OfMask):
    """Parameters of ``templates/spgemm/masked.mako``.

    Attributes
    ----------
    portability : Portability
        How lanes order local memory.
    lanes : int
        Work-items to a stretch of the mask's entries, at most a sub-group; 1 on devices whose lanes have no such order.
    window : int
        Entries of the mask to a stretch; a power of two.
    """

    template = "spgemm/masked"

    portability: Portability
    lanes: int
    window: int = _DEFAULT_WINDOW

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, window: int = _DEFAULT_WINDOW, *, by_rows: bool = False) -> Self:
        """Return the masked product's kernel parameters: as many teams of work-items to a group as local memory holds."""
        lanes, is_counted = _synchronised_lanes(device.portability), _is_counted(arithmetic) and not by_rows

        def candidates() -> Iterator[Self]:
            """Iterate over parameters of the masked product's kernel, the largest work-groups first."""
            group = min(_WORK_GROUP, device.max_work_group) if lanes > 1 else 1
            while group >= lanes:
                yield cls(group, arithmetic, is_counted, device.portability, lanes, window)
                group //= 2

        return device.fitting(candidates(), lambda record: record.local_bytes, RESERVED)

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory that a work-group of the masked product's kernel takes."""
        value, teams = self.arithmetic.result.itemsize, self.work_group // self.lanes
        return teams * (2 * self.window * (5 + value) + 4) + self.work_group * (16 + value)

    @property
    @override
    def name(self) -> str:
        """The kernel's name: whether values are counts, lanes, window, work-group size and arithmetic."""
        kind = "_counted" if self.counted else ""
        return f"spgemm_masked{kind}_x{self.lanes}_w{self.window}_wg{self.work_group}_{self.arithmetic.name}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: lanes' exchange, arithmetic, size and synchronisation of a team, and atomic counts."""
        sync = "none" if self.lanes == 1 else "ptx" if self.portability.match == "ptx" else "wave"
        lines = [
            self.portability.defines,
            self.arithmetic.prelude,
            f"#define TEAM {self.lanes}",
            f"#define TEAM_SYNC_BY_{sync.upper()}",
        ]
        if self.counted and self.arithmetic.result.itemsize == 8:
            lines += ["#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable", "#define COUNT(p) atom_inc(p)"]
        elif self.counted:
            lines.append("#define COUNT(p) atomic_inc(p)")
        return "\n".join(lines)

    @property
    @override
    def lane_width(self) -> int:
        """The number of lanes of a team, which exchange values."""
        return self.lanes

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the masked kernel for a work-group and a lane width; None if there are none."""
        return (
            replace(self, work_group=work_group // self.lanes * self.lanes) if self.lanes <= min(work_group, lane_width) else None
        )

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: lanes, teams of a work-group, window and slots, and whether values are counts."""
        return {
            "work_group": self.work_group,
            "lanes": self.lanes,
            "teams": self.work_group // self.lanes,
            "window": self.window,
            "slots": 2 * self.window,
            "counted": self.counted,
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "" and "counted"."""
        yield "", cls.legal(device, replace(arithmetic, x=arithmetic.a))
        yield "counted", cls.legal(device, Arithmetic("int32", "int32", arithmetic.index, "plus_pair"))


def _synchronised_lanes(portability: Portability) -> int:
    """Return the number of neighbouring lanes (work-items) that a device synchronises without a whole work-group; 1 if none."""
    if portability.match == "ptx":
        return min(portability.lane_width, 32)
    return portability.lane_width if portability.lanes == "bpermute" else 1


@kernel
@dataclass(frozen=True)
class MaskedChunked(_OfMask):
    """Parameters of ``templates/spgemm/masked_chunked.mako``; the work-group is one work-item.

    Attributes
    ----------
    places : bool
        Whether a worker has a table of each column's place in the mask's row; else rows are searched.
    """

    template = "spgemm/masked_chunked"

    places: bool

    @classmethod
    def legal(cls, arithmetic: Arithmetic, *, places: bool) -> Self:
        """Return the parameters of the masked product's kernel by chunks of rows, with a table of places or a search."""
        return cls(1, arithmetic, _is_counted(arithmetic), places)

    @property
    @override
    def name(self) -> str:
        """The kernel's name: whether columns are found in a table of places or by search, and the arithmetic."""
        return f"spgemm_masked_chunked_{'places' if self.places else 'search'}_{self.arithmetic.name}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: macros of a device whose lanes exchange nothing, and the arithmetic."""
        return f"{Portability().defines}\n{self.arithmetic.prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: whether there is a table of places, whether values are counts, longest walked row."""
        return {"work_group": self.work_group, "places": self.places, "counted": self.counted, "searched": _MAX_WALKED}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "search" and "counted"."""
        yield "", cls.legal(replace(arithmetic, x=arithmetic.a), places=True)
        yield "search", cls.legal(replace(arithmetic, x=arithmetic.a), places=False)
        yield "counted", cls.legal(Arithmetic("int32", "int32", arithmetic.index, "plus_pair"), places=True)


class Masked(NamedTuple):
    """A product under a mask: arrays in canonical format, with indices of one dtype.

    Attributes
    ----------
    n_columns : int
        Columns of C.
    a, b : tuple of pyopencl.array.Array
        indptr, indices and data of A and of B.
    mask : tuple of pyopencl.array.Array
        indptr and indices of the mask.
    arithmetic : Arithmetic
    """

    n_columns: int
    a: tuple[cl_array.Array, cl_array.Array, cl_array.Array]
    b: tuple[cl_array.Array, cl_array.Array, cl_array.Array]
    mask: tuple[cl_array.Array, cl_array.Array]
    arithmetic: Arithmetic


def choose_masked_record(device: Device, product: Masked, *, by_rows: bool = False) -> MaskedTeam | MaskedChunked:
    """Return the parameters of the kernel for a product under a mask, with the lookup that the device's profile chooses.

    ``by_rows``: a team walks one row of B after another, though products could be counted: for short rows of A and long ones of
    B, as in graphs whose edges lead to higher degrees (R-MAT 18 on an H200: 4.0 ms by rows with float32, 5.0 counted).
    """
    features = features_of(product, workers_of(device))
    return record_of(device, product, decide(device, "masked", "any", "accumulator", features, parse).value, by_rows=by_rows)


def record_of(device: Device, product: Masked, lookup: Lookup, *, by_rows: bool = False) -> MaskedTeam | MaskedChunked:
    """Return a masked product's kernel parameters for a lookup: by teams or, if lookup or device have none, by chunks of rows."""
    arithmetic = product.arithmetic
    wide = _is_counted(arithmetic) and arithmetic.result.itemsize == 8 and not device.int64_atomics
    if lookup.window and takes_teams(device) and not wide and product.n_columns <= _MAX_COLUMNS:
        return MaskedTeam.legal(device, arithmetic, lookup.window, by_rows=by_rows)
    return MaskedChunked.legal(arithmetic, places=lookup.places)


def takes_teams(device: Device) -> bool:
    """Return whether a device can run the masked product's kernel with teams, whose lanes synchronise among themselves."""
    return not device.lanes_are_loops and _synchronised_lanes(device.portability) > 1


def workers_of(device: Device) -> int:
    """Return the number of workers on a device: work-items that take one chunk of the mask's rows after another."""
    return device.compute_units + 1 if device.lanes_are_loops else device.compute_units * _WORKERS_PER_UNIT


def enqueue_masked(
    chain: Chain, product: Masked, record: MaskedTeam | MaskedChunked, sums: cl_array.Array, marks: cl_array.Array
) -> None:
    """Enqueue the sums of A @ B at the entries of the mask, and a byte for each: 1 if the place has a product, else 0."""
    indptr, indices = product.mask
    n_rows, n_entries, index = indptr.size - 1, indices.size, indptr.dtype
    if not n_entries:
        return
    built: Built
    built, record = chain.build(record)
    arrays = *product.a, *product.b, indptr, indices, sums, marks
    sizes = index.type(n_rows), index.type(n_entries)
    if isinstance(record, MaskedTeam):
        chain.launch(built, -(-n_entries // (record.window * (record.work_group // record.lanes))), *sizes, *arrays)
        return
    workers = workers_of(chain.device)
    chunk = max(-(-n_entries // (workers * _CHUNKS_PER_WORKER)), _MIN_CHUNK)
    n_chunks = -(-n_entries // chunk)
    workers = min(workers, n_chunks)
    more: tuple[Any, ...] = ()
    if record.places:
        places = chain.scratch(workers * product.n_columns, index)
        chain.fill(places, 0, workers * product.n_columns)
        more = np.uint64(product.n_columns), places
    claimed = chain.scratch(1, np.uint32)
    chain.fill(claimed, 0, 1)
    chain.launch(built, workers, *sizes, *arrays, np.uint32(n_chunks), np.uint64(chunk), claimed, *more)


def features_of(product: Masked, workers: int) -> Mapping[str, float]:
    """Return the features of a product under a mask, by the names that profiles have; ``workers``: see `workers_of`.

    Tables of places may take the bytes of the mask's structure less those of the marks, plus the bytes that operands save by
    sharing arrays: with the sums, all memory stays below A, B and twice M.
    """
    indptr, indices = product.mask
    rows, nnz = indptr.size - 1, indices.size
    arrays = (*product.a, *product.b, *product.mask)
    shared = sum(array.nbytes for array in arrays) - sum({id(array): array.nbytes for array in arrays}.values())
    room = indptr.nbytes + indices.nbytes + shared - nnz - 4  # 4 bytes for the counter of claimed chunks
    return {
        "rows": rows,
        "columns": product.n_columns,
        "nnz": nnz,
        "mean": nnz / max(rows, 1),
        "mean_of_a": product.a[1].size / max(rows, 1),
        "mean_of_b": product.b[1].size / max(product.b[0].size - 1, 1),
        "places_by_room": workers * product.n_columns * indptr.dtype.itemsize / max(room, 1),
    }
