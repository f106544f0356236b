"""The library itself as contestants."""

from __future__ import annotations

import pyopencl as cl

from bench import problems
from bench.contestants import Contestant
from bench.ours import elementwise, indexing, multigrid, primitives, sddmm, spgemm, spmm, spmv, sptrans, sptrsv, triangles
from bench.problems import sptrsv as sptrsv_of
from bench.problems import triangles as triangles_of

# Methods of the operations that have several.
METHODS = {"sptrans": sptrans.ALL, "spgemm": spgemm.ALL, "amg": spgemm.ALL}


def contestants(operation: str, queue: cl.CommandQueue, *, variants: list[str], methods: list[str] | None) -> list[Contestant]:
    """Return the contestants of an operation.

    Parameters
    ----------
    variants
        Of SpMV, as `bench.ours.spmv.Variant.parse` reads them.
    methods
        Of SpTRANS and SpGEMM, each of which takes those that are its own; None for what it takes by default.

    Raises
    ------
    ValueError
        If the operation has none of them.
    """
    if operation == "spmv":
        return spmv.contestants(queue, variants)
    if operation in METHODS:
        own = None if methods is None else [method for method in methods if method in METHODS[operation]]
        if methods and not own:
            raise ValueError(f"--methods: got {', '.join(methods)}, {operation} needs some of {', '.join(METHODS[operation])}")
        return (sptrans if operation == "sptrans" else spgemm).contestants(queue, own)
    if operation in problems.GROUPS["elementwise"]:
        return elementwise.contestants(operation, queue)
    if operation == triangles_of.OPERATION:
        return triangles.contestants(queue)
    if operation in sptrsv_of.OPERATIONS:
        return sptrsv.contestants(queue)
    if operation in problems.GROUPS["sddmm"]:
        return sddmm.contestants(queue)
    if operation in problems.GROUPS["spmm"]:
        return spmm.contestants(queue)
    if operation in problems.GROUPS["indexing"]:
        return indexing.contestants(queue)
    if operation in problems.GROUPS["multigrid"]:
        return multigrid.contestants(queue)
    return primitives.contestants(operation, queue)
