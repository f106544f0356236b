"""Cases of products under a mask, of what is written, and of products in some rows, by each kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from primitive_cases import to_device
from spgemm_cases import operand, random_rows
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import Semiring, plus_pair, plus_times, spgemm, spgemm_plan, spmv
from clsparse_py._matrix.given_semirings import SemiringCheck
from clsparse_py._operations.spgemm import mask as masks
from clsparse_py._operations.spgemm.masked_rows import MaskedChunked, MaskedTeam, enqueue_masked
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

Case = partial[None]

LEFT = random_rows((0, 1, 2, 3, 5, 0, 9, 20, 1, 4, 30, 2), 40)
RIGHT = random_rows(tuple(range(10)) * 4, 60)
MASK = random_rows((3, 0, 60, 20, 1, 0, 9, 30, 2, 0, 40, 7), 60)


def under_a_mask(kind: str, dtype: np.dtype[Any], index: type[Any], ring: Semiring) -> None:
    """Make a product by one kernel, and compare its sums and marks."""
    a, b = numbers(LEFT.nnz, dtype), numbers(RIGHT.nnz, dtype)
    A, B, M = operand(LEFT, a, index), operand(RIGHT, b, index), operand(MASK, np.ones(MASK.nnz, np.int8), index)
    product = masks.prepare_masked_product(A, B, M, ring)
    queue = clsparse_py.default_queue()
    chain = Chain(queue)
    records = {
        "team": MaskedTeam.legal(chain.device, product.arithmetic, 16),
        "places": MaskedChunked.legal(product.arithmetic, places=True),
        "search": MaskedChunked.legal(product.arithmetic, places=False),
    }
    sums, marks = to_device(np.zeros(MASK.nnz, product.arithmetic.result)), to_device(np.zeros(MASK.nnz, np.uint8))
    enqueue_masked(chain, product, records[kind], sums, marks)
    chain.finish(sums, marks)
    rows = np.repeat(np.arange(12), np.diff(MASK.indptr))
    same(marks, ((LEFT @ RIGHT).toarray()[rows, MASK.indices] > 0).astype(np.uint8))
    left, right = (scipy.sparse.csr_array((v, P.indices, P.indptr), shape=P.shape) for v, P in ((a, LEFT), (b, RIGHT)))
    wanted = (LEFT @ RIGHT if ring == plus_pair else left @ right).toarray()[rows, MASK.indices]
    same(sums, np.where(marks.get() != 0, wanted, 0).astype(product.arithmetic.result))


def write(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Write a product beside a mask into a matrix."""
    A, B, M = (
        operand(LEFT, numbers(LEFT.nnz, dtype), index),
        operand(RIGHT, numbers(RIGHT.nnz, dtype), index),
        operand(MASK, np.ones(MASK.nnz, np.int8), index),
    )
    C = operand(MASK, numbers(MASK.nnz, dtype), index)
    whole = spgemm(A, B).toarray()
    same(spgemm(A, B, mask=M).toarray(), np.where(MASK.toarray() != 0, whole, 0))
    wanted = np.where(MASK.toarray() != 0, 0, whole)
    kept = C.toarray()
    spgemm(A, B, mask=M, complement=True, out=C, accum="plus")
    same(C.toarray(), (kept + wanted).astype(dtype))
    plan = spgemm_plan(A, B, mask=M, accum="plus")
    made = plan()
    once = made.data.get()
    same(plan(out=made).data, once + once)


def in_some_rows(dtype: np.dtype[Any], index: type[Any], ring: Semiring) -> None:
    """Make some rows of a product with a vector."""
    x, mask = numbers(40, dtype), np.arange(12) % 3 > 0
    A = operand(LEFT, numbers(LEFT.nnz, dtype), index)
    whole = spmv(A, x, semiring=ring)
    same(spmv(A, to_device(x), mask=mask, semiring=ring), np.where(mask, whole, ring.identity(whole.dtype)).astype(whole.dtype))


def check_semiring(ring: Semiring) -> None:
    """Run the kernel that is compiled to check a semiring's expressions."""
    chain = Chain(clsparse_py.default_queue())
    built, _ = chain.build(SemiringCheck(1, Arithmetic("int32", "int32", "int32", ring.name)))
    a, x, result = (to_device(np.array([value], np.int32)) for value in (3, 5, 0))
    chain.launch(built, 1, a, x, result)
    chain.finish(result)
    same(result, np.array([15], np.int32))


def mask_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Kernels, dtypes and index types, in rotation."""
    for i, kind in enumerate(("team", "places", "search")):
        yield partial(under_a_mask, kind, np.dtype(np.int32), INDEX_TYPES[i % 2], plus_pair)
        for j, dtype in enumerate(dtypes[:3]):
            yield partial(under_a_mask, kind, dtype, INDEX_TYPES[(i + j) % 2], plus_times)
    for i, dtype in enumerate(dtypes[:3]):
        yield partial(write, dtype, INDEX_TYPES[i % 2])
        yield partial(in_some_rows, dtype, INDEX_TYPES[i % 2], plus_times)
    given = Semiring(plus="a > b ? a : b", times="a * b", zero=0)
    yield partial(in_some_rows, np.dtype(np.int32), np.int32, given)
    yield partial(check_semiring, given)
