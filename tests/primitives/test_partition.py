"""The cut of a matrix into parts of equal weight, against a walk over its rows."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import array as cl_array

from clsparse_py._primitives.partition import enqueue_partition
from clsparse_py._run.launch import Chain


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_partition(queue: cl.CommandQueue, index: str, work_group: int) -> None:
    rng = np.random.default_rng(3)
    lengths = np.concatenate(([0, 0, 7, 1, 900, 0], rng.integers(0, 30, 300), [0, 0, 0, 64, 63]))
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    n_rows, nnz = lengths.size, int(indptr[-1])
    on_device = cl_array.to_device(queue, indptr)
    for row_weight, step, slack in ((0, 64, 0), (0, 64, 8), (1, 64, 0), (1, 64, 8), (1, 1, 0), (1, 10_000, 0)):
        n_parts = -(-(nnz + row_weight * n_rows) // step)
        results = [cl_array.zeros(queue, n_parts + 1, index) for _ in range(3)]
        chain = Chain(queue, on_device, writes=tuple(results))
        enqueue_partition(
            chain, on_device, n_rows, nnz, n_parts, step, results, row_weight=row_weight, slack=slack, work_group=work_group
        )
        chain.finish(*results)
        part_row, part_entry, cut = (array.get() for array in results)
        for part in range(n_parts + 1):
            # Walk the rows: row r begins at weight indptr[r] + row_weight * r.
            starts = indptr[:-1].astype(np.int64) + row_weight * np.arange(n_rows)
            row = int(np.searchsorted(starts, part * step)) if part < n_parts else n_rows
            entry, inside = int(indptr[row]), 0
            if part < n_parts and row > 0:
                at = max(part * step - row_weight * row, int(indptr[row - 1]))
                if entry - at > slack:
                    entry, inside = at, 1
            assert (part_row[part], part_entry[part], cut[part]) == (row, entry, inside), (part, row_weight, step, slack)
        weights = np.diff(part_entry.astype(np.int64)) + row_weight * np.diff(part_row.astype(np.int64))
        assert weights.max() <= step + slack
        assert np.diff(part_entry.astype(np.int64)).min() >= 0
