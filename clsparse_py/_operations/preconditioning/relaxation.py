"""Steps of Gauss-Seidel's method, one colour of rows after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._operations.preconditioning.colouring import Colouring
from clsparse_py._operations.preconditioning.kernels import Relax
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import Bound

__all__ = ["bind_relaxation"]


def bind_relaxation(
    queue: cl.CommandQueue, A: Matrix, colouring: Colouring, colours: Iterable[int], b: cl_array.Array, x: cl_array.Array
) -> Bound:
    """Return the launches that relax the rows of colours, one after another, for ``A x = b``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order; the queue of all commands on b and x.
    A : Matrix
        Square; of the dtype of b and x. Its rows have these colours.
    colouring : Colouring
    colours : iterable of int
        One or more, in the order of the launches.
    b, x : pyopencl.array.Array
        Begin their buffers.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain = Chain(queue)
    built, record = chain.build(Relax(work_group_of(chain.device), name_of(A.indptr.dtype), A.dtype.name))
    arrays = [array.base_data for array in (colouring.rows, A.indptr, A.indices, A.data, b, x)]

    def launch(colour: int) -> tuple[Any, int, tuple[Any, ...]]:
        """Return the kernel, the work-groups and the arguments of the launch that relaxes the rows of a colour."""
        first, end = (int(place) for place in colouring.starts[colour : colour + 2])
        groups, sizes = spread(chain.device, end - first, record.work_group, 64)
        return built, groups, (*sizes, np.uint64(first), *arrays)

    return Bound(queue, *map(launch, colours))
