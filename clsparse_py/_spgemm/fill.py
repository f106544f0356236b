"""C of a product whose entries are counted: allocated and made."""

from __future__ import annotations

from typing import Any

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._spgemm.bins import Rules
from clsparse_py._spgemm.count import Counted, counted, with_memory
from clsparse_py._spgemm.fallback import ONE_PHASE, RefusedError, until_built
from clsparse_py._spgemm.methods.base import Result
from clsparse_py._spgemm.new_arrays import new_part
from clsparse_py._spgemm.settings import Settings, Timer
from clsparse_py._spgemm.steps import enqueued
from clsparse_py._spgemm.upper_bound import enqueue_compaction
from clsparse_py.errors import BuildError
from clsparse_py.matrix import Matrix, Structure
from clsparse_py.structure import Facts
from clsparse_py.workspace import Workspace, counting

__all__ = ["multiplied", "structure_of"]


def multiplied(
    A: Matrix, B: Matrix, settings: Settings, rules: Rules | None, timer: Timer, workspace: Workspace | None = None
) -> tuple[Counted, Result]:
    """Return what is known of a product, with the steps that made it, and its arrays, which the device may still be writing.

    Parameters
    ----------
    A, B, settings, rules, timer
        As for `counted`.
    workspace : Workspace, optional
        Counts what is in use beside operands and results.

    Raises
    ------
    ValueError, MemoryError, BuildError
        As for `spgemm`.
    """
    with counting(workspace):
        found, C = until_built(lambda: _multiplied(A, B, settings, rules, timer))
    found.chain.finish(*C[:3])
    return found, C


def _multiplied(A: Matrix, B: Matrix, settings: Settings, rules: Rules | None, timer: Timer) -> tuple[Counted, Result]:
    found = with_memory(lambda by: counted(A, B, settings, by, timer), rules)
    chain, product, nnz = found.chain, found.product, found.nnz
    if settings.max_nnz is not None and nnz > settings.max_nnz:
        raise ValueError(f"max_nnz: the product has {nnz:,} entries, more than {settings.max_nnz:,}")
    try:
        arrays = _columns_and_values(found, A.data.allocator)
    except MemoryError:
        if found.made is None:
            raise
        # What its rows were made in may be what is missing: they are made again.
        found.made = None
        arrays = _columns_and_values(found, A.data.allocator)
    timer.ended("allocation")
    C = Result(found.indptr, *arrays)
    if found.made is None:
        found.steps = enqueued(chain, product, found.steps, C, "numeric")
    else:
        try:
            enqueue_compaction(chain, product, found.made, C, nnz)
        except BuildError as error:
            raise RefusedError(chain.device, product.form, ONE_PHASE, error) from error
    timer.ended("numeric")
    return found, C


def _columns_and_values(found: Counted, allocator: Any) -> tuple[cl_array.Array, cl_array.Array]:
    chain, shape, n = found.chain, found.product.shape, found.nnz
    indices = new_part(chain, "indices", shape, n, found.indptr.dtype, allocator)
    return indices, new_part(chain, "values", shape, n, found.product.kind.result, allocator)


def structure_of(queue: cl.CommandQueue, shape: tuple[int, int], C: Result) -> Structure:
    """Return the structure of a product."""
    return Structure(queue, shape, C.indices, C.indptr, Facts(C.indices.size, sorted=True, canonical=True))
