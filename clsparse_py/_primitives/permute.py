"""Values put into another order, or added at places, and the base of the records of kernels that move values."""

from __future__ import annotations

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure, WithValues
from clsparse_py._precision.arithmetic import MOVED_TYPES, Arithmetic, name_of
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import run

__all__ = ["PERMUTE", "AddAt", "Moving", "enqueue_add_at", "enqueue_permute"]

#: Work-groups to a compute unit at most.
_GROUPS_PER_UNIT = 64
_GROUPS_PER_CORE = 4


@dataclass(frozen=True)
class Moving(OfStructure):
    """Base of the records of kernels that move values.

    Attributes
    ----------
    value_bytes : int
        Bytes of a value; 0 where the positions of entries take their place.
    """

    value_bytes: int

    @property
    @override
    def prelude(self) -> str:
        moved = MOVED_TYPES[self.value_bytes] if self.value_bytes else "I"
        return f"{super().prelude}\ntypedef {moved} V;  // values, which are moved and not computed with"


PERMUTE = declare_loop(
    "primitives/permute",
    "out[k] = values[positions[k]]; the values begin offset entries into their buffer.",
    "const I *positions, const V *values, ulong offset, V *out",
    "out[k] = values[offset + positions[k]];",
    entry="k",
    types="I V",
)


@kernel
@dataclass(frozen=True)
class AddAt(WithValues):
    """Parameters of ``templates/primitives/add_at.mako``."""

    template = "primitives/add_at"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(min(256, device.max_work_group), arithmetic.index, arithmetic.result.name)


def enqueue_permute(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None = None
) -> None:
    """Enqueue ``out[k] = values[positions[k]]`` for n entries; ``values`` are contiguous and may begin inside their buffer."""
    run(chain, _enqueue, (positions, values, out), n, values.offset // values.dtype.itemsize, work_group)


def enqueue_add_at(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None = None
) -> None:
    """Enqueue ``out[positions[k]] += values[k]`` for n entries, whose positions are different; arrays begin their buffers."""
    run(chain, _enqueue_add_at, (positions, values, out), n, work_group)


def _enqueue(
    chain: Chain,
    positions: cl_array.Array,
    values: cl_array.Array,
    out: cl_array.Array,
    n: int,
    first: int,
    work_group: int | None,
) -> None:
    built, record = chain.build(
        PERMUTE.record(_group(chain, work_group), name_of(positions.dtype), MOVED_TYPES[values.dtype.itemsize])
    )
    groups, sizes = _shared(chain, n, record.work_group)
    chain.launch(built, groups, *sizes, positions, values, np.uint64(first), out)


def _enqueue_add_at(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None
) -> None:
    built, record = chain.build(AddAt(_group(chain, work_group), name_of(positions.dtype), name_of(out.dtype)))
    groups, sizes = _shared(chain, n, record.work_group)
    chain.launch(built, groups, *sizes, positions, values, out)


def _group(chain: Chain, wanted: int | None) -> int:
    return min(wanted or (1 if chain.device.lanes_are_loops else 256), chain.device.max_work_group)


def _shared(chain: Chain, n: int, work_group: int) -> tuple[int, tuple[np.uint64, ...]]:
    return spread(chain.device, n, work_group, _GROUPS_PER_CORE if chain.device.lanes_are_loops else _GROUPS_PER_UNIT)
