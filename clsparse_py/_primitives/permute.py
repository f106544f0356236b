"""Permutations and their inverses, addition of values at positions, numbering, and the base of kernels that move values."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop, enqueue_loop
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import MOVED_TYPES, name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, get_recording, run

__all__ = [
    "PERMUTE", "Moving", "enqueue_add_at", "enqueue_invert", "enqueue_number", "enqueue_permute", "enqueue_permute_two",
    "record_permute",
]  # fmt: skip


@dataclass(frozen=True)
class Moving(OfStructure):
    """Base of the records of kernels that move values.

    Attributes
    ----------
    value_bytes : int
        Bytes of a value; 0 if the positions of entries take the place of values.
    """

    value_bytes: int

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the type I of indices, and V of moved values, I if these have 0 bytes."""
        moved_type = MOVED_TYPES[self.value_bytes] if self.value_bytes else "I"
        return f"{super().prelude}\ntypedef {moved_type} V;  // values, which are moved and not computed with"


#: The kernel that gathers values by positions: ``out[k] = values[positions[k]]``.
PERMUTE = declare_loop(
    "primitives/permute",
    "out[k] = values[positions[k]]; the values begin offset entries into their buffer.",
    "const I *positions, const V *values, ulong offset, V *out",
    "out[k] = values[offset + positions[k]];",
    counter="k",
    types="I V",
)


#: The kernel that gathers values of two arrays by positions: those of the second array follow on those of the first.
PERMUTE_TWO = declare_loop(
    "primitives/permute_two",
    "out[k] = first[positions[k]], or second[positions[k] - n_first] from position n_first on; arrays begin offset entries into "
    "their buffers.",
    "const I *positions, ulong n_first, const V *first, ulong offset, const V *second, ulong second_offset, V *out",
    "const ulong position = positions[k];",
    "out[k] = position < n_first ? first[offset + position] : second[second_offset + position - n_first];",
    counter="k",
    types="I V",
)


#: The kernel that numbers the entries of an array: ``out[k] = lowest + k``.
NUMBER = declare_loop(
    "primitives/number", "out[k] = lowest + k.", "ulong lowest, I *out", "out[k] = (I)(lowest + k);", counter="k"
)


#: The kernel that inverts a permutation: ``out[permutation[k]] = k``.
INVERT = declare_loop(
    "primitives/invert", "out[permutation[k]] = k.", "const I *permutation, I *out", "out[permutation[k]] = (I)k;", counter="k"
)


#: The kernel that adds numbers to the entries of an array at different positions: ``out[positions[k]] += values[k]``.
ADD_AT = declare_loop(
    "primitives/add_at",
    "out[positions[k]] += values[k]; positions are different.",
    "const I *positions, const T *values, T *out",
    "out[positions[k]] += values[k];",
    counter="k",
    types="I T",
)


#: The kernel for booleans that sets ``out[positions[k]]`` to ``out[positions[k]] || values[k]``, a logical or.
ADD_BOOLEANS = declare_loop(
    "primitives/add_at:booleans",
    "out[positions[k]] = out[positions[k]] || values[k]; positions are different.",
    "const I *positions, const uchar *values, uchar *out",
    "out[positions[k]] = out[positions[k]] || values[k];",
    counter="k",
)


def enqueue_permute(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None = None
) -> None:
    """Enqueue ``out[k] = values[positions[k]]`` for n entries; ``values`` are contiguous and may begin inside their buffer."""
    run(chain, _enqueue_permute, (positions, values, out), n, values.offset // values.dtype.itemsize, work_group)


def enqueue_permute_two(
    chain: Chain,
    positions: cl_array.Array,
    first: cl_array.Array,
    second: cl_array.Array,
    out: cl_array.Array,
    work_group: int | None = None,
) -> None:
    """Enqueue ``out[k] = joined[positions[k]]``, where ``joined`` is ``first`` followed by ``second``, which is not made.

    ``first`` and ``second`` have entries, are contiguous, and may begin inside their buffers.
    """
    offsets = (first.offset // first.dtype.itemsize, second.offset // second.dtype.itemsize)
    run(chain, _enqueue_permute_two, (positions, first, second, out), positions.size, first.size, *offsets, work_group)


def enqueue_number(chain: Chain, out: cl_array.Array, lowest: int = 0, work_group: int | None = None) -> None:
    """Enqueue ``out[k] = lowest + k`` for all entries of an array of integers that begins its buffer."""
    run(chain, _enqueue_number, (out,), out.size, lowest, work_group)


def enqueue_invert(chain: Chain, permutation: cl_array.Array, out: cl_array.Array, work_group: int | None = None) -> None:
    """Enqueue ``out[permutation[k]] = k`` for all entries of a permutation, of out's dtype; both arrays begin their buffers."""
    enqueue_loop(chain, INVERT, permutation.size, (name_of(out.dtype),), permutation, out, work_group=work_group)


def record_permute(chain: Chain, index: np.dtype[Any], value_dtype: np.dtype[Any], n: int) -> Recording:
    """Return the recorded commands of ``out[k] = values[positions[k]]`` for ``n`` entries of arrays that begin their buffers."""
    return get_recording(chain, _enqueue_permute, (index, value_dtype, value_dtype), n, 0, None)


def enqueue_add_at(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None = None
) -> None:
    """Enqueue ``out[positions[k]] += values[k]`` (booleans: logical or) for n different positions; arrays begin their buffers."""
    run(chain, _enqueue_add_at, (positions, values, out), n, work_group)


def _enqueue_permute(
    chain: Chain,
    positions: cl_array.Array,
    values: cl_array.Array,
    out: cl_array.Array,
    n: int,
    first: int,
    work_group: int | None,
) -> None:
    """Enqueue the gather of values by positions, ``out[k] = values[positions[k]]``, in the form that `recording.run` takes."""
    types = name_of(positions.dtype), MOVED_TYPES[values.dtype.itemsize]
    enqueue_loop(chain, PERMUTE, n, types, positions, values, np.uint64(first), out, work_group=work_group)


def _enqueue_permute_two(
    chain: Chain,
    positions: cl_array.Array,
    first: cl_array.Array,
    second: cl_array.Array,
    out: cl_array.Array,
    n: int,
    n_first: int,
    offset: int,
    second_offset: int,
    work_group: int | None,
) -> None:
    """Enqueue the gather of values of two arrays by positions, in the form that `recording.run` takes."""
    types = name_of(positions.dtype), MOVED_TYPES[first.dtype.itemsize]
    arguments = positions, np.uint64(n_first), first, np.uint64(offset), second, np.uint64(second_offset), out
    enqueue_loop(chain, PERMUTE_TWO, n, types, *arguments, work_group=work_group)


def _enqueue_number(chain: Chain, out: cl_array.Array, n: int, lowest: int, work_group: int | None) -> None:
    """Enqueue the numbering of an array's entries, ``out[k] = lowest + k``, in the form that `recording.run` takes."""
    enqueue_loop(chain, NUMBER, n, (name_of(out.dtype),), np.uint64(lowest), out, work_group=work_group)


def _enqueue_add_at(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None
) -> None:
    """Enqueue ``out[positions[k]] += values[k]``, for booleans a logical or, in the form that `recording.run` takes."""
    addition = ADD_BOOLEANS if out.dtype.kind == "b" else ADD_AT
    types = (name_of(positions.dtype), name_of(out.dtype))[: len(addition.types.split())]
    enqueue_loop(chain, addition, n, types, positions, values, out, work_group=work_group)
