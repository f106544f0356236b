"""The library itself as contestants."""

from __future__ import annotations

import pyopencl as cl

from bench.contestants import Contestant
from bench.ours import primitives, spmv, sptrans

METHODS = sptrans.ALL


def contestants(operation: str, queue: cl.CommandQueue, *, variants: list[str], methods: list[str] | None) -> list[Contestant]:
    """Return those of an operation.

    Parameters
    ----------
    variants
        Of SpMV, as `bench.ours.spmv.Variant.parse` reads them.
    methods
        Of SpTRANS; None for all.
    """
    if operation == "spmv":
        return spmv.contestants(queue, variants)
    if operation == "sptrans":
        return sptrans.contestants(queue, methods)
    return primitives.contestants(operation, queue)
