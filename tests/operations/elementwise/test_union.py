"""Operators on two sparse matrices, entry by entry, against SciPy bit by bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import combinations
from platforms import PLATFORMS, has_fp64, queue_on
from supposed import suppose

from clsparse_py import csr_array
from clsparse_py._device.device import describe
from clsparse_py._operations.elementwise import union
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.union import combine
from clsparse_py._operations.elementwise.union_kernels import Thresholds

AXES: Mapping[str, Any] = {
    "operator": [operator.name for operator in OPERATORS.values() if not operator.opposite],
    "dtypes": [
        ("float32", "float32"), ("float64", "float64"), ("complex64", "complex64"), ("bool", "bool"), ("int8", "int8"),
        ("bool", "float32"), ("uint16", "int64"), ("float64", "complex64"),
    ],
    "index": ["int32", "int64"],
    "format": ["canonical", "unsorted with duplicates"],
    "platform": list(PLATFORMS),
}  # fmt: skip


TILES: Mapping[str, Any] = {
    "dtypes": [("float32", "float32"), ("bool", "complex64"), ("float64", "int8")],
    "index": ["int32", "int64"],
    "work_group": [1, 7, 64, 128, "max"],
    "span": [2, 3, 16],
    "tiles": ["one", "few", "many"],
    "platform": list(PLATFORMS),
}


def legal(case: Mapping[str, Any]) -> bool:
    return "float64" not in case["dtypes"] or has_fp64(case["platform"])


def matrix(dtype: str, shape: tuple[int, int], form: str, seed: int, index: str = "int32") -> sp.csr_array:
    """Return a matrix of small whole numbers, some of them 0, with empty rows, short ones and a full one."""
    rng = np.random.default_rng(seed)
    density = rng.choice([0, 0.02, 0.2, 0.9], shape[0])
    density[-1:] = 1
    pattern = rng.random(shape) < density[:, None]
    rows, cols = np.nonzero(pattern)
    if form != "canonical":
        order = rng.permutation(np.concatenate([np.arange(rows.size), rng.integers(0, max(rows.size, 1), rows.size // 3)]))
        order = order[np.argsort(rows[order], kind="stable")]
        rows, cols = rows[order], cols[order]
    values = rng.integers(-3, 4, rows.size) + (1j * rng.integers(-3, 4, rows.size) if dtype.startswith("complex") else 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    made = sp.csr_array((values.astype(dtype), cols, indptr), shape=shape)
    made.indices, made.indptr = cols.astype(index), indptr.astype(index)
    return made


def on(queue: cl.CommandQueue, host: sp.csr_array) -> csr_array:
    """Return the matrix on a device, with the index type that it has."""
    parts = (cl.array.to_device(queue, array) for array in (host.data.view(np.uint8), host.indices, host.indptr))
    data, indices, indptr = parts
    values = csr_array(host, queue=queue).data if host.dtype.kind == "b" else data.view(host.dtype)
    return csr_array((values, indices, indptr), shape=host.shape, queue=queue)


def assert_same(result: csr_array, wanted: Any) -> None:
    wanted = sp.csr_array(wanted)
    wanted.sum_duplicates()
    assert result.dtype == wanted.dtype
    assert result.has_canonical_format
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result.get(), part), getattr(wanted, part), err_msg=part)


@pytest.mark.parametrize("case", combinations(AXES, legal), ids=lambda case: "-".join(map(str, case.values())))
def test_operators(case: Mapping[str, Any]) -> None:
    queue = queue_on(case["platform"])
    # More than are united at once.
    A = matrix(case["dtypes"][0], (250, 45), case["format"], 1, case["index"])
    B = matrix(case["dtypes"][1], (250, 45), "canonical", 2, case["index"])
    result = combine(case["operator"], on(queue, A), on(queue, B))
    assert result.indices.dtype == case["index"]
    # SciPy adds duplicates up in place.
    assert_same(result, OPERATORS[case["operator"]].of_scipy(A.copy(), B))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (1, 3000), (3000, 1), (700, 9)], ids=str)
def test_shapes(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    A, B = (matrix("float32", shape, "canonical", seed) for seed in (1, 2))
    empty = sp.csr_array(shape, dtype=np.float32)
    for left, right in ((A, B), (A, A), (A, empty), (empty, B), (empty, empty)):
        result = combine("minus", csr_array(left, queue=queue), csr_array(right, queue=queue))
        assert_same(result, left - right)


@pytest.mark.any_platform
def test_entries_of_one_column_may_lie_on_both_sides_of_a_cut(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A, B = (matrix("float32", (40, 30), "canonical", seed) for seed in (3, 4))
    monkeypatch.setattr(union, "_combine_places", union._combine_by_chunks)
    monkeypatch.setattr(union, "_ITEMS_PER_CORE", 1 << 20)
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, single_group=0))
    for span in (1, 2, 3, 7, 64):
        monkeypatch.setattr(union, "_LEAST_SPAN", span)
        for operator in ("plus", "multiply"):
            result = combine(operator, csr_array(A, queue=queue), csr_array(B, queue=queue))
            assert_same(result, OPERATORS[operator].of_scipy(A, B))


@pytest.mark.parametrize("case", combinations(TILES, legal), ids=lambda case: "-".join(map(str, case.values())))
def test_work_groups_that_take_tiles(case: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_on(case["platform"])
    group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    one = case["tiles"] == "one"
    shapes = {"tile_group": group, "tile_span": case["span"], "single_group": group if one else 0, "single_span": case["span"]}
    few = 1 << 15 if case["tiles"] == "few" else 0
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_few_places=few, **shapes))
    monkeypatch.setattr(union, "_combine_places", union._combine_by_tiles)
    # A row has 91 places at most.
    n_rows = min(300, group * case["span"] // 91) if one else 300
    A = matrix(case["dtypes"][0], (n_rows, 45), "canonical", 1, case["index"])
    B = matrix(case["dtypes"][1], (n_rows, 45), "canonical", 2, case["index"])
    for operator in ("minus", "multiply"):
        result = combine(operator, on(queue, A), on(queue, B))
        assert_same(result, OPERATORS[operator].of_scipy(A, B))
    for left, right in ((A[:0], B[:0]), (A[:1, :1], B[:1, :1]), (A[:, :0], B[:, :0]), (A, sp.csr_array(A.shape, dtype=B.dtype))):
        assert_same(combine("minus", csr_array(left, queue=queue), csr_array(right, queue=queue)), left - right)


@pytest.mark.any_platform
def test_special_values(queue: cl.CommandQueue) -> None:
    """A missing entry is 0: infinity times 0 is NaN, which is kept; a NaN that comes first is the maximum."""
    values = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1], np.float32)
    A, B = np.meshgrid(values, values)
    left, right = sp.csr_array(A), sp.csr_array(np.where(np.arange(36).reshape(6, 6) % 5 == 0, 0, B))
    for operator in (operator for operator in OPERATORS.values() if not operator.opposite):
        with np.errstate(all="ignore"):
            wanted = operator.of_scipy(left, right)
        assert_same(combine(operator.name, csr_array(left, queue=queue), csr_array(right, queue=queue)), wanted)


@st.composite
def pairs_of_matrices(draw: st.DrawFn) -> tuple[sp.csr_array, sp.csr_array]:
    shape = draw(st.integers(0, 12)), draw(st.integers(1, 12))
    made = []
    for _ in range(2):
        entries = draw(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(-2, 2)), max_size=60))
        kept = [(row, col, value) for row, col, value in entries if row < shape[0] and col < shape[1]]
        rows, cols, values = (np.array([entry[i] for entry in kept], np.int32) for i in range(3))
        order = np.argsort(rows, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]).astype(np.int32)
        made.append(sp.csr_array((values[order].astype(np.float32), cols[order], indptr), shape=shape))
    return made[0], made[1]


@settings(deadline=None)
@given(pair=pairs_of_matrices())
def test_random_structures(queue: cl.CommandQueue, pair: tuple[sp.csr_array, sp.csr_array]) -> None:
    left, right = (csr_array(operand, queue=queue) for operand in pair)
    assert_same(left + right, pair[0] + pair[1])
    assert_same(left.multiply(right) - left, pair[0].multiply(pair[1]) - pair[0])
