"""Triangular systems: a launch for each wide level, and for each stretch of narrow ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._build.plain import door
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfNumbers
from clsparse_py._operations.triangular.levels import get_levels, work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["Solve", "solver"]

#: Work-groups of a launch to a compute unit at most.
_GROUPS_PER_UNIT = 8


@kernel
@dataclass(frozen=True)
class Solve(OfNumbers):
    """Parameters of ``templates/triangular/solve.mako``.

    Attributes
    ----------
    upper, unit : bool
        Whether the matrix is upper triangular, and whether its diagonal is 1, whatever is stored.
    """

    template = "triangular/solve"
    variants: ClassVar[Variants] = {"": {"upper": False, "unit": False}, "unit": {"upper": True, "unit": True}}

    upper: bool
    unit: bool


@door()
def solver(queue: cl.CommandQueue, A: Matrix, *, upper: bool, unit: bool) -> Callable[[cl_array.Array, cl_array.Array], None]:
    """Return the function that enqueues ``x = T^-1 b`` for b and x of n entries, or of n x columns, row by row.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        It has the triangle T, in the dtype of b and x; entries on the other side of the diagonal are passed over. In any format.
    upper, unit : bool
        Whether T is upper triangular, and whether its diagonal is 1, whatever is stored.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    sets, chain = get_levels(A, upper), Chain(queue)
    parts = A.indptr, A.indices, A.data
    for part in parts:
        # Waited for once, as each solution would ask again.
        for event in part.events:
            event.wait()
    record = Solve(work_group_of(chain.device), name_of(A.indptr.dtype), A.dtype.name, upper, unit)
    built, record = chain.build(record)
    n, most = A.shape[0], chain.device.compute_units * _GROUPS_PER_UNIT

    def solve(b: cl_array.Array, x: cl_array.Array) -> None:
        """Enqueue ``x = T^-1 b``, level by level."""
        columns, launches = b.size // n, Chain(queue)
        for first, last, widest in sets.launches:
            groups = 1 if last - first > 1 else min(-(-widest * columns // record.work_group), most)
            numbers = np.uint32(first), np.uint32(last), np.uint64(columns)
            launches.launch(built, groups, *numbers, sets.starts, sets.order, *parts, b, x)

    return solve
