"""Cases of SpGEMM: every method in every phase, with dtypes and index types in rotation, on rows short and long."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from primitive_cases import to_device
from supposed import describe_as
from transpose_cases import on_device
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import csr_array, describe
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm import METHODS, SpgemmPlan, decide, spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._operations.spgemm.accumulator import Accumulator
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.methods.dense import DenseSpan, DenseWindows
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.esc_local import EscGroup, EscTeam
from clsparse_py._operations.spgemm.methods.hash import Hash
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.thresholds import override_thresholds, thresholds_of

Case = partial[None]


def random_rows(lengths: tuple[int, ...], n_cols: int) -> scipy.sparse.csr_array:
    """Return a pattern with rows of these lengths, sorted and without duplicates."""
    rng = np.random.default_rng(len(lengths))
    columns = [np.sort(rng.choice(n_cols, length, replace=False)) for length in lengths]
    indices = np.concatenate(columns)
    return scipy.sparse.csr_array((np.ones(indices.size), indices, np.cumsum((0, *lengths))), shape=(len(lengths), n_cols))


LEFT = random_rows((0, 1, 2, 3, 5, 0, 9, 20, 1, 4, 30, 2), 40)
#: Rows that one bin takes, so that they are not listed.
EVEN = random_rows((6,) * 20, 40)
#: Rows so short that a symbolic phase is chosen without analysis.
SHORT = random_rows((4,) * 20, 40)
RIGHT = random_rows(tuple(range(10)) * 4, 60)
#: The same with more columns, for methods that sort by row and column in global memory: two passes of few bits in place of one of
#: many, which takes a simulator longest.
WIDE = scipy.sparse.csr_array((RIGHT.data, RIGHT.indices, RIGHT.indptr), shape=(40, 200))
#: Entries of the product with more products than a small tile has room for, and with few.
LONG = random_rows((150, 3, 0, 130, 40, 1, 150), 150)
NARROW = random_rows((3,) * 150, 3)


def operand(pattern: scipy.sparse.csr_array, values: np.ndarray[Any, Any], index: type[Any]) -> csr_array:
    """Return a matrix that is known to be canonical: the kernel that finds out has cases of its own."""
    data, indices, indptr = (to_device(part) for part in (values, pattern.indices.astype(index), pattern.indptr.astype(index)))
    facts = Facts(pattern.nnz, sorted=True, canonical=True)
    return csr_array.assembled(Structure(clsparse_py.default_queue(), pattern.shape, indices, indptr, facts), data)


def product(
    method: str,
    dtype: np.dtype[Any],
    index: type[Any],
    deterministic: bool,
    rows_of_a: scipy.sparse.csr_array = LEFT,
    rows_of_b: scipy.sparse.csr_array = RIGHT,
) -> None:
    """Make a product by a method in all three phases, symbolic, numeric and values, and compare."""
    a, b = numbers(rows_of_a.nnz, dtype), numbers(rows_of_b.nnz, dtype)
    pattern = scipy.sparse.csr_array(rows_of_a @ rows_of_b)
    pattern.sort_indices()
    left, right = (matrix.copy() for matrix in (rows_of_a, rows_of_b))
    left, right = left.astype(dtype), right.astype(dtype)
    left.data, right.data = a, b
    wanted = left.toarray() @ right.toarray() if dtype.kind != "b" else (left.toarray() @ right.toarray()) > 0
    A, B = operand(rows_of_a, a, index), operand(rows_of_b, b, index)
    plan = SpgemmPlan(A, B, Request(method, deterministic=deterministic))
    for C in (plan(), plan()):
        same(C.indptr.get(), pattern.indptr.astype(C.indptr.dtype))
        same(C.indices.get(), pattern.indices.astype(C.indices.dtype))
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        same(C.data.get(), wanted[rows, pattern.indices].astype(C.dtype))


def by(accumulator: Accumulator, dtype: np.dtype[Any], index: type[Any], deterministic: bool) -> None:
    """Make a product by an accumulator that the device's methods may not choose, for rows that it holds."""
    METHODS["given"] = lambda *_: (Bin("given", accumulator, getattr(accumulator, "products", None)),)
    try:
        product("given", dtype, index, deterministic, rows_of_b=WIDE if isinstance(accumulator, Esc) else RIGHT)
    finally:
        del METHODS["given"]


def as_on_gpus(method: str, dtype: np.dtype[Any], index: type[Any]) -> None:
    """Make a product by the kernels that look at rows on GPUs."""
    with describe_as(type="gpu"):
        product(method, dtype, index, True)


def by_upper_bound(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Make products whose rows have room for all their products first, however much they contract."""
    of_gpus = [
        (Bin("given", Sort(4, 4), 16, 16), Bin("given", last))
        for last in (EscTeam(512, lanes=8), EscGroup(1024, 64, entries=512))
    ]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("row_partition.suits_upper_bound", True),
            ("count.upper_bound_fits", True),
            ("count.speculation_for", None),
        ):
            patch.setattr(f"clsparse_py._operations.spgemm.{name}", lambda *_, value=value: value)
        for of, making in (*(("gpu", step) for step in of_gpus), ("cpu", (Bin("given", DenseChunked()),))):
            bins = Bins((EMPTY, *making))
            patch.setattr(decide, "bins_for", lambda *_, bins=bins: bins)
            A, B = (on_device(matrix, numbers(matrix.nnz, dtype), index) for matrix in (LEFT, RIGHT))
            known = thresholds_of(describe(A.queue.device), types_of(A, B))
            with describe_as(type=of), override_thresholds(replace(known, max_small_products=0)):
                same(spgemm(A, B).toarray(), (A.get() @ B.get()).toarray())


def by_list(dtype: np.dtype[Any], index: type[Any], rows_of_a: scipy.sparse.csr_array, rows_of_b: scipy.sparse.csr_array) -> None:
    """Make new values of a plan by a list of its products, as GPUs do after some of them, in tiles small enough to be several."""
    A, B = (operand(matrix, numbers(matrix.nnz, dtype), index) for matrix in (rows_of_a, rows_of_b))
    plan = spgemm_plan(A, B)
    plan()
    plan._list, plan._list_undecided = plan._start_list(1), False
    known = thresholds_of(describe(A.queue.device), types_of(A, B))
    with override_thresholds(replace(known, list_group=16)):
        made = plan._list.now()
        assert made is not None
        assert made.n_tiles > 1
        for step in (-1, 1):
            left, right = A.get(), B.get()
            left.data, right.data = left.data[::step].copy(), right.data[::step].copy()
            C = plan(left.data, right.data)
            same(C.toarray(), (left @ right).toarray())


def functions() -> None:
    """Call the public functions, which give a plan its bins."""
    A, B = (on_device(matrix, numbers(matrix.nnz, np.dtype(np.float32)), np.int32) for matrix in (LEFT, RIGHT))
    wanted = (A.get() @ B.get()).toarray()
    for C in (spgemm(A, B, method="merge"), spgemm_plan(A, B, method="merge")()):
        same(C.toarray(), wanted)


def in_one_launch(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Make a product of small matrices, and compare."""
    A, B = (operand(matrix, numbers(matrix.nnz, dtype), index) for matrix in (LEFT, RIGHT))
    same(spgemm(A, B).toarray(), (A.get() @ B.get()).toarray())


def estimate(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Estimate the product, and compare."""
    A, B = (on_device(matrix, numbers(matrix.nnz, dtype), index) for matrix in (LEFT, RIGHT))
    products = np.add.reduceat(np.append(np.diff(RIGHT.indptr)[LEFT.indices], 0), LEFT.indptr[:-1]) * (np.diff(LEFT.indptr) > 0)
    result = spgemm_estimate(A, B)
    assert result.n_products == products.sum()
    assert result.nnz == np.minimum(products, RIGHT.shape[1]).sum()


def spgemm_cases(dtypes: tuple[np.dtype[Any], ...]) -> list[Case]:
    """Return the cases: estimates; each method; those again that have other kernels where results need not be deterministic."""
    dtype, index = itertools.cycle(dtypes), itertools.cycle(INDEX_TYPES)
    estimates = [partial(estimate, next(dtype), next(index)) for _ in INDEX_TYPES]
    products = [
        partial(product, method, next(dtype), next(index), True, rows_of_b=WIDE if method == "esc" else RIGHT)
        for method in ("auto", *METHODS)
    ]
    # There are atomics for values of 4 and of 8 bytes.
    atomic = itertools.cycle([dtype for dtype in dtypes if dtype.itemsize in (4, 8)])
    loose = [partial(product, method, next(atomic), next(index), False) for method in ("dense", "hash", "reg-hash", "large-hash")]
    even = [partial(product, method, next(dtype), next(index), True, EVEN) for method in ("reg-merge", "merge")]
    even.append(partial(product, "auto", next(dtype), next(index), True, SHORT))
    windows, hashes, tiles = DenseWindows(32, 32, 16, 2, 3), Hash(128, 16, 2, 32), Esc(work_group=8)
    spans = DenseSpan(64, lanes=8, entries=8, ahead=2)
    given = [
        partial(by, accumulator, next(dtype), next(index), True)
        for accumulator in (DenseChunked(), windows, spans, hashes, tiles)
    ]
    # A device that is no CPU looks at rows so anyway.
    cpu = describe(clsparse_py.default_queue().device).lanes_are_loops
    gpus = [partial(as_on_gpus, method, next(dtype), next(index)) for method in ("auto", "reg-sort") if cpu]
    gpus.append(partial(by_upper_bound, next(dtype), next(index)))
    small = [partial(in_one_launch, next(dtype), next(index)) for _ in INDEX_TYPES]
    of_lists = ((LEFT, RIGHT), (LONG, NARROW), (LONG, NARROW))
    listed = [partial(by_list, next(dtype), next(index), *case) for case in of_lists]
    return [partial(functions), *small, *estimates, *products, *loose, *even, *given, *gpus, *listed]
