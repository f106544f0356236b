"""Products of small matrices in one launch, with memory for the upper bound of C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate_each, shorten
from clsparse_py._operations.spgemm.accumulator import Result
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfLanes
from clsparse_py._operations.spgemm.kind import Kind, kind_of
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = ["OneLaunch", "in_one_launch"]

#: Most work-items in a work-group of the kernel that makes a product of small matrices in one launch.
_WORK_GROUP = 256


@kernel
@dataclass(frozen=True)
class OneLaunch(OfLanes):
    """Parameters of ``templates/spgemm/one_launch.mako``.

    Attributes
    ----------
    words : int
        Most words of the pattern of B, and of C: four such arrays are in local memory.
    """

    template = "spgemm/one_launch"

    words: int

    #: Candidates for `words`, the number of 32-bit words of a pattern of bits in local memory, the largest first.
    WORDS: ClassVar[tuple[int, ...]] = (1024, 512)
    # The one-launch kernel makes an entry of C by a lookup in B for each entry of that row of A.
    # On two cores, one launch with 4,000 or 16,000 lookups a compute unit took half as long as symbolic and numeric phases.
    # On two cores, one launch with 27,000 lookups a compute unit took 1.1 to 1.6 times as long as symbolic and numeric phases.
    #: Most lookups in B to a compute unit for a product to be made in one launch: one for each entry of C and entry of its row of
    #: A.
    MAX_LOOKED_UP: ClassVar[int] = 1 << 14
    #: Work-items to a row of B while the pattern of C is built.
    LANES: ClassVar[int] = 8

    @classmethod
    def legal(cls, device: Device, types: KernelTypes) -> Self:
        """Return the one-launch kernel's parameters: room for the largest patterns of B and C that local memory holds."""
        words = device.fitting(cls.WORDS, lambda words: 16 * words, RESERVED)
        return cls(min(_WORK_GROUP, device.max_work_group), types, device.portability, words)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `OfProduct`, and ``lanes``, the work-items of a row."""
        lanes = 1 if self.work_group % self.LANES else self.LANES
        return {**super().arguments(), "lanes": lanes}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, KernelTypes.of_same(arithmetic))


def _kind_of_call(device: Device, A: Matrix, B: Matrix, request: Request) -> tuple[Kind, tuple[np.uint32, ...], str]:
    """Return a small product's `Kind`, first kernel arguments (rows of A, rows of B, words of a pattern), name in errors."""
    (m, k), n = A.shape, B.shape[1]
    sizes = np.uint32(m), np.uint32(k), np.uint32(_pattern_words(n))
    return kind_of(device, types_of(A, B, request.semiring)), sizes, f"the {m} x {n} product"


def _pattern_words(n_columns: int) -> int:
    """Return the number of 32-bit words in a row of a matrix's pattern, which has a bit for each column."""
    return (n_columns + 31) // 32


def in_one_launch(A: Matrix, B: Matrix, request: Request) -> Result | None:
    """Return the arrays of C = A @ B, made by one launch; None if A and B are not small, or not known to be canonical.

    None for plain kernels, operands without entries and requests that name a method, too. Waits for the device once.

    Parameters
    ----------
    A, B : Matrix
    request : Request
    """
    a, b = A.structure, B.structure
    (m, k), n = a.shape, b.shape[1]
    if max(m, k) * _pattern_words(n) > OneLaunch.WORDS[0] or not request.is_open:
        return None
    of_a, of_b, a_indptr, b_indptr = a.facts, b.facts, a.indptr, b.indptr
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical) or b_indptr.dtype != a_indptr.dtype:
        return None
    a_indices, b_indices = a.indices, b.indices
    a_data, b_data = A.data, B.data
    n_a, n_b, queue = a_indices.size, b_indices.size, a.queue
    if not (n_a and n_b):
        return None
    operands = a_indptr, a_indices, b_indptr, b_indices, a_data, b_data
    chain = Chain(queue, *operands)
    if chain.device.is_plain:
        return None
    key = _kind_of_call, m, k, n, a_data.dtype, b_data.dtype, a_indptr.dtype, request.semiring.name
    kind, sizes, name = chain.worked_out(key, lambda: _kind_of_call(chain.device, A, B, request))
    n_products, n_units = n_a * n_b // k, chain.device.compute_units
    n_looked_up = min(n_products, m * n) * n_a // m
    if n_products > kind.thresholds.max_small_products or n_looked_up > OneLaunch.MAX_LOOKED_UP * n_units:
        return None
    built, record = chain.build_once((OneLaunch, kind), lambda: OneLaunch.legal(kind.device, kind.types))
    if max(m, k) * _pattern_words(n) > record.words:
        return None
    room, allocator = min(m * n, n_a * min(n_b, of_b.longest or n)), a_data.allocator
    sizes_and_dtypes = (m + 1, kind.c_index), (room, kind.c_index), (room, kind.result)
    indptr, indices, data = allocate_each(queue, name, sizes_and_dtypes, allocator)
    # The launch has a work-item for each intermediate product, up to a work-group for each compute unit.
    groups = min(n_products // record.work_group + 1, n_units)
    arrays = [array.base_data for array in (*operands, indptr, indices, data)]
    chain.launch(built, groups, *sizes, *arrays)
    nnz = int(chain.read(indptr, 1, m)[0])
    shorten(indices, nnz)
    shorten(data, nnz)
    return Result(indptr, indices, data)
