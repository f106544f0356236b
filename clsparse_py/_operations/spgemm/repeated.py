"""C = A @ B of structures that were multiplied before: the same commands with other values.

What is decided, and what the host reads, depends on the structures alone; so an earlier product tells all of it.
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

#: The names of C's arrays.
PARTS = ("indptr", "indices", "values")


class RecordedProduct(NamedTuple):
    """The commands of a product.

    Attributes
    ----------
    recording : Recording
        Of A's arrays, B's if it is another matrix, and C's.
    sizes : tuple
        The entries of each of C's arrays, and their dtype.
    decided : tuple
        The thresholds that were tried then, if any, and how often profiles had been forgotten.
    """

    recording: Recording
    sizes: tuple[tuple[int, np.dtype[Any]], ...]
    decided: tuple[object, int]

    def repeat(self, A: Matrix, B: Matrix) -> Result | None:
        """Return C's arrays, which the device may still be writing; None if thresholds are others now, or memory is missing."""
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
    """The former products of two structures and dtypes: how many there were, and the commands of one, if they are to be had."""

    def __init__(self) -> None:
        self.calls = 0
        self.product: RecordedProduct | None = None


_Formers = weakref.WeakKeyDictionary[Structure, dict[Hashable, Former]]


def _arrays(A: Matrix) -> tuple[Any, Any, Any]:
    """Return a matrix's indptr, indices and values, in the order of `PARTS`."""
    data, indices, indptr = A.parts
    return indptr, indices, data


def former_of(A: Matrix, B: Matrix, request: Request) -> Former | None:
    """Return what is known of former products like this one; None if these tell nothing."""
    of_a, of_b = A.facts, B.facts
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical):
        return None
    if A.data.allocator is not None or current() is not None:
        return None  # memory is another's, or counted array by array
    if request.strategy is not None or request.bins is not None or request.choices is not None:
        return None  # as tuners ask, who time what is decided
    if A is not B and A.data.base_data is B.data.base_data:
        return None  # two slots cannot be told apart by their memory
    values = {id(array.base_data) for array in (A.data, B.data)}
    if values & {id(array.base_data) for array in (A.indices, A.indptr, B.indices, B.indptr)}:
        return None  # other values would be taken for indices
    # Kept by A's structure, as long as B's is there.
    of_structure: _Formers = A.structure.get_plan(Former, weakref.WeakKeyDictionary)
    formers = of_structure.setdefault(B.structure, {})
    return formers.setdefault((request, A.data.dtype, B.data.dtype, A is B), Former())


def take_recording(A: Matrix, B: Matrix, operands: Operands, C: Result) -> RecordedProduct | None:
    """Return the commands of a product on a `Tape`, whose results are C's arrays; None if they are not to be had."""
    chain, product = operands.chain, operands.product
    assert isinstance(chain, Tape)
    tape, operand_arrays = chain.to_recording(), (*_arrays(A), *_arrays(B))
    # Indices may have been converted for kernels.
    if tape is None or any(array is not expected for array, expected in zip(operand_arrays, product[1:7], strict=True)):
        return None
    return RecordedProduct(tape, tuple((array.size, array.dtype) for array in C[:3]), (supposed(), profiles.forgotten))
