"""Run each operation once on small matrices on the default device, compare with SciPy, and print what ran as a line of JSON.

For processors that take a hundred times as long, so few kernels are built: values of one kind, matrices of one shape; with
``--few-declarations`` as `few_declarations` says.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import few_declarations
import numpy as np
import scipy.sparse
from pyopencl import array as cl_array
from values import same
from workload import Report

import clsparse_py
from clsparse_py import csr_array, describe, primitives, spgemm, spmv, spmv_plan, transpose
from clsparse_py._build import programs
from clsparse_py._primitives import reference


def sparse(result: csr_array, wanted: scipy.sparse.csr_array) -> None:
    """Raise where two matrices differ."""
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(result, name).get(), getattr(wanted, name))


def main() -> None:
    """Run SpMV, SpTRANS, SpGEMM and a segmented merge, and print the report."""
    if "--few-declarations" in sys.argv:
        few_declarations.install()
    queue = clsparse_py.default_queue()
    device = describe(queue.device)
    # Whole numbers, whose products and sums are exact whatever their order. Rows of a few lengths, some of which are empty.
    rng = np.random.default_rng(0)
    wanted = scipy.sparse.random_array(
        (60, 50), density=0.1, format="csr", rng=rng, data_sampler=lambda size: rng.integers(1, 5, size)
    )
    wanted = wanted.astype(np.float64 if device.fp64 else np.float32)
    x = rng.integers(0, 5, 50).astype(wanted.dtype)
    ptr, segments = np.array([0, 9, 9, 20, 40, 41], np.int32), np.array([0, 3, 3, 5], np.int32)
    keys = np.concatenate([np.sort(rng.integers(0, 9, n)) for n in np.diff(ptr)]).astype(np.int32)
    with programs.recording() as built:
        A = csr_array(wanted)
        same(A @ x, wanted @ x)
        sparse(transpose(A), wanted.T.tocsr())
        product = (wanted @ wanted.T.tocsr()).sorted_indices()
        sparse(A @ A.T, product)
        # The kernels of larger matrices on CPU devices.
        same(spmv(A, x, plan=spmv_plan(A, kernel="chunked")), wanted @ x)
        sparse(spgemm(A, A.T, method="dense"), product)
        given = (cl_array.to_device(queue, part) for part in (segments, ptr, keys))
        same(primitives.segmented_merge(*given), reference.segmented_merge(segments, ptr, keys))
    report = Report(f"{device.platform} {device.driver_version}, {device.name}", device.fp64, cases=6)
    report.kernels = {program.parameters.name: program.parameters.template for program in built}
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
