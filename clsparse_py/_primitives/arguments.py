"""Arguments of the primitives: checked, and copied if needed, before any kernel that trusts them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.overlap import overlap, require_inside, require_writable
from clsparse_py._precision.arithmetic import OPENCL_TYPES, name_of, needs_fp64, unsupported_dtype
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import contexts_match

__all__ = [
    "CheckPointers",
    "Output",
    "check_pointers",
    "deliver",
    "find_queue",
    "prepare_elements",
    "prepare_keys",
    "prepare_output",
    "prepare_pointers",
    "prepare_values",
    "split_outputs",
    "start_chain",
]

#: NumPy's names of the dtypes of keys that sorts, merges and reductions by key take.
KEY_DTYPES = ("int32", "uint32", "int64", "uint64")
#: NumPy's names of the dtypes of pointers to segments that primitives take.
POINTER_DTYPES = ("int32", "int64")


@kernel
@dataclass(frozen=True)
class CheckPointers(OfStructure):
    """Parameters of ``templates/primitives/check_pointers.mako``.

    Attributes
    ----------
    adjacent : bool
        Whether a work-item takes adjacent pointers, which suits work-items that are iterations of a core's loop.
    """

    template = "primitives/check_pointers"
    variants: ClassVar[Variants] = {"": {"adjacent": False}, "adjacent": {"adjacent": True}}

    adjacent: bool


def _check_vector(name: str, array: Any) -> None:
    """Raise an error unless an argument is a one-dimensional device array, in the host's byte order and inside its buffer."""
    if not isinstance(array, cl_array.Array):
        raise TypeError(f"{name}: must be a pyopencl.array.Array, is {type(array).__name__}")
    if array.ndim != 1:
        raise ValueError(f"{name}: must have one dimension, has {array.ndim} (shape {array.shape})")
    if not array.dtype.isnative:
        raise TypeError(f"{name}: must be in the host's byte order, is {array.dtype.str}")
    require_inside(name, array)


def find_queue(**arrays: Any) -> cl.CommandQueue:
    """Return the queue on which a primitive runs: the queue of the first of its array arguments, given by name, that has one.

    Arguments that are None are left out: `prepare_keys`, `prepare_pointers` and `prepare_values` refuse them.

    Raises
    ------
    TypeError, ValueError
        An argument is no one-dimensional `pyopencl.array.Array` in native byte order, they do not all live in one context, or
        none has a queue.
    """
    present = {name: array for name, array in arrays.items() if array is not None}
    for name, array in present.items():
        _check_vector(name, array)
    if not present:
        _check_vector(next(iter(arrays)), None)
    owner = next((name for name, array in present.items() if array.queue is not None), None)
    if owner is None:
        raise ValueError(f"{next(iter(present))}: has no queue; use its with_queue(queue)")
    queue: cl.CommandQueue = present[owner].queue
    for name, array in present.items():
        if array.queue is not queue and not contexts_match(array, queue.context):
            raise ValueError(f"{name}: lives in another context than {owner}")
    return queue


def start_chain(queue: cl.CommandQueue, *operands: Any, outs: tuple[Any, ...] = ()) -> Chain:
    """Return a primitive's chain of commands, whose first command waits for earlier commands on its operands and outputs.

    Operands and outputs that are no device arrays are left out.
    """
    inputs, outputs = (tuple([array for array in arrays if isinstance(array, cl_array.Array)]) for arrays in (operands, outs))
    return Chain(queue, *inputs, writes=outputs)


def _make_contiguous(queue: cl.CommandQueue, name: str, array: cl_array.Array) -> cl_array.Array:
    """Return the array itself if it is contiguous from the beginning of its buffer on, else a copy of it that is."""
    if array.offset or (array.size > 1 and array.strides != (array.dtype.itemsize,)):
        return convert(queue, name, array, array.dtype)
    return array


def prepare_keys(queue: cl.CommandQueue, name: str, array: cl_array.Array) -> cl_array.Array:
    """Return an array of keys, which `find_queue` checked, as kernels take it: contiguous from the beginning of its buffer on.

    Raises
    ------
    TypeError
        The dtype is none of `KEY_DTYPES`.
    """
    if array is None:
        _check_vector(name, array)
    if name_of(array.dtype) not in KEY_DTYPES:
        raise TypeError(f"{name}: must be one of {', '.join(KEY_DTYPES)}, is {array.dtype}")
    return _make_contiguous(queue, name, array)


def prepare_pointers(queue: cl.CommandQueue, name: str, array: cl_array.Array) -> cl_array.Array:
    """Return an array of pointers to segments as kernels take it: contiguous from the beginning of its buffer on.

    `find_queue` checked the array before; `check_pointers` checks the pointers' values after.

    Raises
    ------
    TypeError
        The dtype is none of `POINTER_DTYPES`.
    ValueError
        The array is empty.
    """
    if array is None:
        _check_vector(name, array)
    if name_of(array.dtype) not in POINTER_DTYPES:
        raise TypeError(f"{name}: must be one of {', '.join(POINTER_DTYPES)}, is {array.dtype}")
    if not array.size:
        raise ValueError(f"{name}: must have an entry for each segment and one more, is empty")
    return _make_contiguous(queue, name, array)


def prepare_values(
    queue: cl.CommandQueue, name: str, array: cl_array.Array, *, beside: tuple[str, int] | None = None, added: bool = False
) -> cl_array.Array:
    """Return an array of values, which `find_queue` checked, as kernels take it: contiguous from the beginning of its buffer on.

    Parameters
    ----------
    queue, name, array
        The queue, and the argument with its name.
    beside : tuple of str and int, optional
        The name and the length of an argument that has to be as long.
    added : bool
        Whether kernels add values up, and do not just move them.

    Raises
    ------
    TypeError
        The dtype is not supported, or needs double precision that the device lacks.
    ValueError
        The array has another length.
    """
    if array is None:
        _check_vector(name, array)
    if name_of(array.dtype) not in OPENCL_TYPES:
        raise unsupported_dtype(name, array.dtype)
    if added and needs_fp64(array.dtype) and not describe(queue.device).fp64:
        raise TypeError(f"{name}: {array.dtype} needs double precision, which {queue.device.name} lacks; use single precision")
    if beside is not None and array.size != beside[1]:
        raise ValueError(f"{name}: must have as many entries as {beside[0]}, {beside[1]}, has {array.size}")
    return _make_contiguous(queue, name, array)


def prepare_elements(queue: cl.CommandQueue, keys: cl_array.Array, values: cl_array.Array | None) -> tuple[cl_array.Array, ...]:
    """Return the arrays of keys and, if there are any, of values for kernels: each contiguous from the start of its buffer.

    `find_queue` checked both arrays before.
    """
    contiguous_keys = prepare_keys(queue, "keys", keys)
    if values is None:
        return (contiguous_keys,)
    return contiguous_keys, prepare_values(queue, "values", values, beside=("keys", keys.size))


def check_pointers(
    chain: Chain, name: str, array: cl_array.Array, end: int, into: str = "the length of values", work_group: int = 128
) -> None:
    """Raise an error unless pointers to segments begin with 0, never decrease and end with ``end``; a kernel checks all of them.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    name, array
        The name of the argument, and the array as `prepare_pointers` returned it.
    end : int
        The value of the last pointer.
    into : str
        The name of that value, for the error.

    Raises
    ------
    ValueError
        The pointers do not begin with 0, decrease, or end with another value.
    """
    device = chain.device
    kind = CheckPointers, min(work_group, device.max_work_group), array.dtype, device.lanes_are_loops
    built, record = chain.build_once(kind, lambda: CheckPointers(kind[1], name_of(kind[2]), kind[3]))
    groups = max(1, min(-(-array.size // record.work_group), device.compute_units * 16))
    counts = chain.scratch(3 * groups, np.int64)
    chain.launch(built, groups, np.uint64(array.size - 1), array, counts)
    decreasing, first, last = chain.read(counts, 3 * groups).reshape(groups, 3).sum(axis=0).tolist()
    require_pointers(name, decreasing, first, last, end, into)


def require_pointers(name: str, decreasing: int, first: int, last: int, end: int, into: str) -> None:
    """Raise an error unless pointers to segments, by three numbers about them, begin with 0, never decrease and end with ``end``.

    The numbers are how often the pointers decrease, the first pointer and the last.

    Raises
    ------
    ValueError
        The pointers do not begin with 0, decrease, or do not end with ``end``, which is ``into``.
    """
    if first != 0:
        raise ValueError(f"{name}: must begin with 0, begins with {first}")
    if decreasing:
        raise ValueError(f"{name}: must not decrease, does so in {decreasing} places")
    if last != end:
        raise ValueError(f"{name}: must end with {into}, {end}, ends with {last}")


class Output:
    """The array that takes a primitive's result, and the caller's ``out`` if the result has to be copied to it.

    Attributes
    ----------
    array : pyopencl.array.Array
        The array that the kernels write to; it begins its buffer.
    """

    def __init__(self, array: cl_array.Array, out: cl_array.Array | None) -> None:
        self.array = array
        self._out = out

    def deliver(self, chain: Chain) -> cl_array.Array:
        """Return the array of a primitive's result, new or the caller's ``out``, without waiting for the device."""
        result = self.array
        if self._out is not None:
            result = self._out
            chain.copy(result, self.array, result.size, result.offset // result.dtype.itemsize)
        chain.finish(result)
        return result


def prepare_output(
    chain: Chain,
    name: str,
    out: Any,
    n: int,
    dtype: np.dtype[Any],
    *operands: cl_array.Array,
    in_place: cl_array.Array | None = None,
) -> Output:
    """Return the `Output` of ``n`` entries of a result: a new array, the caller's ``out``, or scratch memory to copy to ``out``.

    Parameters
    ----------
    chain : Chain
        The primitive's chain, which was made with ``out`` as an operand too.
    name, out
        The name and value of the argument; None asks for a new array. An array that begins inside its buffer, or that overlaps an
        operand, is written by a copy at the end.
    n, dtype
        The length and dtype of the result.
    operands : pyopencl.array.Array
        The arrays that the kernels read.
    in_place : pyopencl.array.Array, optional
        The operand that the kernels may write to while they read it, if it has the result's dtype.

    Raises
    ------
    TypeError, ValueError
        ``out`` is no contiguous array of that length and dtype in the operation's context.
    MemoryError
        There is no room for a new array.
    """
    if out is None:
        return Output(allocate(chain.queue, "the result", n, dtype, operands[0].allocator if operands else None), None)
    _check_output(chain, name, out, n, dtype)
    is_in_place = in_place is not None and in_place.dtype == dtype and in_place.base_data == out.base_data
    if out.offset or any(overlap(out, operand) for operand in operands if not (is_in_place and operand is in_place)):
        return Output(chain.scratch(n, dtype), out)
    return Output(out, None)


def _check_output(chain: Chain, name: str, out: Any, n: int, dtype: np.dtype[Any]) -> None:
    """Raise an error unless ``out`` is a contiguous, writable array in the chain's context, of ``n`` entries of ``dtype``."""
    if not isinstance(out, cl_array.Array):
        raise TypeError(f"{name}: must be a pyopencl.array.Array, is {type(out).__name__}")
    if out.shape != (n,):
        raise ValueError(f"{name}: must have shape {(n,)}, has {out.shape}")
    if out.dtype != dtype:
        raise TypeError(f"{name}: must have the result's dtype {dtype}, has {out.dtype}")
    if not contexts_match(out, chain.queue.context):
        raise ValueError(f"{name}: lives in another context than the operands")
    if n > 1 and out.strides != (dtype.itemsize,):
        raise ValueError(f"{name}: must be contiguous, has strides {out.strides}")
    if out.offset % dtype.itemsize:
        raise ValueError(f"{name}: must begin at a multiple of {dtype.itemsize} bytes in its buffer, begins at {out.offset}")
    require_inside(name, out)
    require_writable(out, name)


def split_outputs(out: Any, second: bool) -> tuple[Any, Any]:
    """Return the argument ``out`` of a primitive as two output arrays: of keys and, if ``second`` says so, of values (else None).

    Raises
    ------
    TypeError
        There are values, and ``out`` is no pair.
    ValueError
        The arrays of the pair overlap.
    """
    if out is None or not second:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(f"out: must be a tuple (keys, values), is {type(out).__name__}")
    if all(isinstance(array, cl_array.Array) for array in out) and overlap(*out):
        raise ValueError("out: its two arrays overlap")
    return out


def deliver(chain: Chain, results: Sequence[Output]) -> cl_array.Array | tuple[cl_array.Array, cl_array.Array]:
    """Return the result of a sort or a merge: an array of keys, or a pair of keys and values, without waiting for the device."""
    arrays = [result.deliver(chain) for result in results]
    return arrays[0] if len(arrays) == 1 else (arrays[0], arrays[1])
