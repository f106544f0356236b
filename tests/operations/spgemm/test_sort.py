"""Sorting accumulators in every shape of their kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from accumulators import check_accumulator
from pairs import combinations
from problems import device_matrix, rows_of

from clsparse_py._build import programs
from clsparse_py._device.device import Portability
from clsparse_py._operations.spgemm import spgemm
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.sort import Sort, SortKernel

#: Work-items to a row, and products of each.
SHAPES = ((1, 2), (1, 16), (1, 32), (2, 4), (4, 8), (32, 4), (64, 8))
AXES = {
    "shape": SHAPES,
    "registers": (True, False),
    "work_group": (1, 7, 48, 64, 1 << 20),
    "narrow": (None, 4, 1),
    "listed": (False, True),
    "columns": (None, 1 << 30),
}


def operands(products: int, listed: bool, rng: np.random.Generator) -> tuple[sp.csr_array, sp.csr_array]:
    """Return A and B with up to so many products a row, the first rows with all of them; where listed, some without."""
    of_b = np.array([0, 1, 2, 3, 5, 8] if listed else [1, 2, 3, 5, 8])
    B = rows_of(rng.permutation(np.repeat(of_b, 120)), 200, rng, np.float32)
    lengths, rows = np.diff(B.indptr), []
    for i in range(150):
        target = products if i < 3 else 0 if listed and i % 9 == 0 else rng.integers(1, products, endpoint=True)
        # Entries in any order until the products are enough, then the rows of B with one.
        chosen = rng.permutation(B.shape[0])[: products // 8]
        chosen = chosen[np.cumsum(lengths[chosen]) <= target]
        ones = np.setdiff1d(np.flatnonzero(lengths == 1), chosen)[: target - lengths[chosen].sum()]
        rows.append(np.sort(np.concatenate((chosen, ones)))[:products])
    indices = np.concatenate(rows).astype(np.int32)
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return sp.csr_array((rng.integers(1, 5, indices.size).astype(np.float32), indices, indptr), shape=(150, B.shape[0])), B


@pytest.mark.parametrize("case", combinations(AXES), ids=str)
def test_every_shape(queue: cl.CommandQueue, case: dict[str, Any], narrow_lanes: Callable[[int], None]) -> None:
    if case["narrow"]:
        narrow_lanes(case["narrow"])
    sort = Sort(*case["shape"], case["registers"], case["work_group"], case["columns"])
    with programs.recording() as built:
        check_accumulator(queue, sort, *operands(sort.products, case["listed"], np.random.default_rng(7)))
    records = [program.parameters for program in built if isinstance(program.parameters, SortKernel)]
    assert {record.types.phase for record in records} == {"symbolic", "numeric", "values"}
    assert {record.listed for record in records} == {case["listed"]}
    in_registers = case["registers"] and sort.items <= SortKernel.MAX_REGISTER_ITEMS
    assert {(record.products, record.registers) for record in records} == {(sort.products, in_registers)}
    narrow_words = {record.types.phase: record.word_bytes == 4 for record in records}
    few = case["columns"] is None
    assert narrow_words == {"symbolic": True, "numeric": few or sort.products <= 4, "values": few or sort.products <= 4}


@pytest.mark.parametrize("method", ["sort", "reg-sort"])
def test_products_are_added_in_the_order_of_a(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(8)
    A, B = rows_of(rng.integers(1, 60, 80), 90, rng, np.float32), rows_of(rng.integers(1, 9, 90), 40, rng, np.float32)
    for matrix in (A, B):
        matrix.data[:] = rng.standard_normal(matrix.nnz)
    # No products are added that round differently: b is a power of two.
    B.data[:] = np.exp2(rng.integers(-4, 5, B.nnz)).astype(np.float32)
    result = spgemm(device_matrix(queue, A), device_matrix(queue, B), method=method).get().toarray()
    dense, wanted = B.toarray(), np.zeros(result.shape, np.float32)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            wanted[i] += A.data[k] * dense[A.indices[k]]
    np.testing.assert_array_equal(result, wanted)


def test_fewer_work_items_have_more_products() -> None:
    asked = SortKernel(128, KernelTypes("symbolic", "int32"), False, Portability("ptx", 32), 16, 8, True, 4)
    assert asked.within(128, 32) == asked
    for work_group, lane_width, lanes, items in ((8, 32, 8, 16), (4, 2, 4, 32), (40, 8, 16, 8)):
        made = asked.within(work_group, lane_width)
        assert made is not None
        assert (made.lanes, made.items, made.lane_width) == (lanes, items, min(lane_width, 1 << work_group.bit_length() - 1))
        assert made.work_group % made.lanes == 0
        assert made.registers == (items <= SortKernel.MAX_REGISTER_ITEMS)
    assert asked.within(2, 32) is None
    assert asked.within(0, 32) is None
