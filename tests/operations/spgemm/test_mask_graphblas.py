"""Products under a mask beside python-graphblas, where it is installed: the same entries and values in 500 random cases."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from problems import device_matrix, random_matrix

from clsparse_py import Semiring, spgemm

graphblas = pytest.importorskip("graphblas", reason="python-graphblas is the optional peer: the extra `graphblas`")

# max_times is for values that are not negative; any_pair has one value, so that any of them is the same.
RINGS = ("plus_times", "min_plus", "max_plus", "max_min", "plus_pair", "any_pair", "plus_first", "min_second", "max_times",
         "lor_land", "land_lor", "lxor_land")  # fmt: skip
ACCUM = (None, "plus", "min", "times", "first", "second")


def theirs(A: scipy.sparse.csr_array) -> graphblas.Matrix:
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return graphblas.Matrix.from_coo(rows, A.indices, A.data, nrows=A.shape[0], ncols=A.shape[1], dtype=A.dtype)


def test_500_products_are_those_of_graphblas(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(23)
    for case in range(500):
        name = RINGS[case % len(RINGS)]
        of_truth = name.startswith("l")
        dtype = bool if of_truth else (np.int32, np.float32)[case % 2]
        m, k, n = rng.integers(1, 24, 3)
        A, B, M = (
            random_matrix(shape, int(rng.integers(0, min(shape[1], 6) + 1)), rng, dtype if at < 2 else np.int32)
            for at, shape in enumerate(((m, k), (k, n), (m, n)))
        )
        if name == "max_times":
            A.data, B.data = abs(A.data), abs(B.data)
        M.data[rng.random(M.nnz) < 0.3] = 0
        complement, structural, replace, has_out = (bool(flag) for flag in rng.random(4) < 0.5)
        accum = ACCUM[rng.integers(len(ACCUM))] if has_out and not of_truth else None
        out = random_matrix((m, n), int(min(n, 5)), rng, dtype) if has_out else None

        wanted = graphblas.Matrix(A.dtype, m, n) if out is None else theirs(out)
        mask = theirs(M).S if structural else theirs(M).V
        product = getattr(graphblas.semiring, name)(theirs(A) @ theirs(B))
        binary = [getattr(graphblas.binary, accum)] if accum else []
        wanted(~mask if complement else mask, *binary, replace=replace and has_out) << product

        result = spgemm(
            device_matrix(queue, A), device_matrix(queue, B), mask=M, complement=complement, structural=structural, accum=accum,
            out=None if out is None else device_matrix(queue, out), replace=replace and has_out, semiring=Semiring(name),
        ).get()  # fmt: skip
        rows, columns, values = wanted.to_coo()
        entries = f"case {case}, {name}"
        np.testing.assert_array_equal(np.repeat(np.arange(m), np.diff(result.indptr)), rows, entries)
        np.testing.assert_array_equal(result.indices, columns, entries)
        np.testing.assert_array_equal(result.data.astype(float), values.astype(float), entries)
