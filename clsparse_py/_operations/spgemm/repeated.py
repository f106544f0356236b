"""Repeated products of two structures: the recorded commands of an earlier product, with other values.

All decisions, and all numbers that the host reads, depend on the structures alone: an earlier product has them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from clsparse_py._build.programs import note_asked
from clsparse_py._decisions import profiles
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocate_each
from clsparse_py._memory.workspace import current
from clsparse_py._operations.spgemm.accumulator import Result
from clsparse_py._operations.spgemm.operands import Operands
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.thresholds import supposed
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, Tape

__all__ = ["PARTS", "Former", "RecordedProduct", "former_of", "take_recording"]

#: Names of the three arrays of a product C on a `Tape`, which records commands: row pointers, columns, values.
PARTS = ("indptr", "indices", "values")


class RecordedProduct(NamedTuple):
    """The recorded commands of a product, and what they depend on.

    Attributes
    ----------
    recording : Recording
        Its slots are A's arrays, B's if it is another matrix, and C's.
    sizes : tuple
        Length and dtype of each of C's arrays.
    decided : tuple
        The supposed thresholds while recording, if any, and the generation of profiles.
    """

    recording: Recording
    sizes: tuple[tuple[int, np.dtype[Any]], ...]
    decided: tuple[object, int]

    def repeat(self, A: Matrix, B: Matrix) -> Result | None:
        """Return A @ B by recorded commands, with no wait; None if profiles or thresholds changed, or memory ran out."""
        if self.decided != (supposed(), profiles.forgotten):
            return None
        operands = _arrays(A) if A is B else (*_arrays(A), *_arrays(B))
        chain = Chain(A.queue, *operands)
        try:
            C = allocate_each(A.queue, "the product", self.sizes)
            self.recording.enqueue(chain, (*operands, *C))
        except MemoryError:
            return None
        chain.finish(*C)
        note_asked(self.recording.kernels)
        return Result(*C)


class Former:
    """The former products of two structures and dtypes: their number, and the recorded commands of one of them, if any."""

    def __init__(self) -> None:
        self.calls = 0
        self.product: RecordedProduct | None = None


#: For each structure of B: the `Former` of each kind of request (arguments, dtypes, whether A is B).
_Formers = weakref.WeakKeyDictionary[Structure, dict[Hashable, Former]]


def _arrays(A: Matrix) -> tuple[Any, Any, Any]:
    """Return the indptr, indices and values of a matrix, in the order of `PARTS`."""
    data, indices, indptr = A.parts
    return indptr, indices, data


def former_of(A: Matrix, B: Matrix, request: Request) -> Former | None:
    """Return the `Former`, count and record of earlier products of two structures; None if commands cannot be repeated."""
    of_a, of_b = A.facts, B.facts
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical):
        return None
    if A.data.allocator is not None or current() is not None:
        return None  # memory comes from the user's allocator, or is counted array by array
    if request.strategy is not None or request.bins is not None or request.choices is not None:
        return None  # a tuner's request, which measures decisions
    if A is not B and A.data.base_data is B.data.base_data:
        return None  # a recording tells its slots apart by their memory
    values = {id(array.base_data) for array in (A.data, B.data)}
    if values & {id(array.base_data) for array in (A.indices, A.indptr, B.indices, B.indptr)}:
        return None  # a recording would take new values for indices
    # A's structure keeps the `Former`, the record of earlier products with B, as long as B's structure is alive.
    of_structure: _Formers = A.structure.get_plan(Former, weakref.WeakKeyDictionary)
    formers = of_structure.setdefault(B.structure, {})
    return formers.setdefault((request, A.data.dtype, B.data.dtype, A is B), Former())


def take_recording(A: Matrix, B: Matrix, operands: Operands, C: Result) -> RecordedProduct | None:
    """Return the recorded commands of a product that was enqueued on a `Tape`; None if the tape cannot be replayed."""
    chain, product = operands.chain, operands.product
    assert isinstance(chain, Tape)
    tape, operand_arrays = chain.to_recording(), (*_arrays(A), *_arrays(B))
    # Recorded operands whose indices were converted for kernels are other arrays than A's and B's, and cannot be exchanged.
    if tape is None or any(array is not expected for array, expected in zip(operand_arrays, product[1:7], strict=True)):
        return None
    return RecordedProduct(tape, tuple((array.size, array.dtype) for array in C[:3]), (supposed(), profiles.forgotten))
