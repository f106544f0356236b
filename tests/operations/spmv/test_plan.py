"""Plans: kept, executed again with new values, explained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected_product, host, random_structure, random_values
from pyopencl import array as cl_array

from clsparse_py import csr_array, or_and, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._operations.spmv import Explanation, SpmvPlan


def random_csr(seed: int, lengths: Any = None) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 60, 400) if lengths is None else lengths
    indices, indptr = random_structure(lengths, 300, rng)
    return sp.csr_array((random_values(np.float32, indices.size, rng), indices, indptr), shape=(len(lengths), 300))


def test_plan_takes_new_x_and_new_values(queue: cl.CommandQueue) -> None:
    matrix = random_csr(0)
    A = csr_array(matrix, queue=queue, copy=True)
    plan = spmv_plan(A, scheme="fine")
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.int8, np.float32):
        for _ in range(2):
            x = random_values(dtype, 300, rng)
            check(spmv(A, x, plan=plan), expected_product(host(matrix), x))
        matrix.data[:] = random_values(np.float32, matrix.nnz, rng)
        A.data = cl_array.to_device(queue, matrix.data)
    # Any matrix that shares the structure.
    B = csr_array((A.data * 2, A.indices, A.indptr), shape=A.shape)
    matrix.data *= 2
    x = random_values(np.float32, 300, rng)
    check(spmv(B, x, plan=plan), expected_product(host(matrix), x))
    assert len(plan._products) == 2


def test_plan_is_kept_on_the_matrix(queue: cl.CommandQueue) -> None:
    A = csr_array(random_csr(0), queue=queue)
    x = np.ones(300, np.float32)
    A @ x
    plan = A.spmv_plan()
    A @ x
    assert A.spmv_plan() is plan
    assert isinstance(plan, SpmvPlan)


def test_plan_of_another_structure_is_refused(queue: cl.CommandQueue) -> None:
    A, B = csr_array(random_csr(0), queue=queue), csr_array(random_csr(1), queue=queue)
    with pytest.raises(ValueError, match=r"^plan: was made for another structure than A's"):
        spmv(A, np.ones(300, np.float32), plan=spmv_plan(B))


@pytest.mark.parametrize("scheme", ["single", "fine", "coarse-10", "hybrid-20"])
def test_explanation_says_what_was_built(queue: cl.CommandQueue, scheme: str) -> None:
    lengths = np.random.default_rng(3).permutation(
        np.concatenate((np.random.default_rng(2).integers(0, 60, 397), [20_000, 0, 17_000]))
    )
    A = csr_array(random_csr(0, lengths), queue=queue)
    plan = spmv_plan(A, scheme=scheme)
    before = plan.explain()
    assert isinstance(before, Explanation)
    assert before.launches == 0
    assert all(not share.built for share in before.shares)
    x = np.ones(300, np.float32)
    with programs.recording() as built:
        spmv(A, x, plan=plan)
    after = plan.explain()
    names = {program.parameters.name for program in built}
    assert {share.built for share in after.shares} <= names
    (product,) = plan._products.values()
    assert after.launches == product.recording.n_commands <= 4
    assert {built.parameters.name for built in product.recording.kernels} <= names
    assert after.scheme == scheme
    text = str(after)
    # The rule that decided is a line of its own, which terminals wrap.
    assert all(len(line) <= 140 for line in text.splitlines() if not line.startswith("Decided: "))
    for part in (scheme, f"Launches: {after.launches}", "rows", "kernel", "why", *(f"{share.rows:,}" for share in after.shares)):
        assert part in text
    assert sum(share.rows for share in after.shares) >= A.shape[0]
    if scheme == "fine":
        assert sum(share.rows for share in after.shares) == A.shape[0]
    assert str(plan).startswith(f"{scheme}: ")


def test_rows_of_one_kernel_share_a_launch(queue: cl.CommandQueue) -> None:
    # 100 different bins.
    A = csr_array(random_csr(0, np.arange(300)), queue=queue)
    for scheme, most in (("fine", 3), ("coarse-10", 2), ("hybrid-10", 3)):
        plan = spmv_plan(A, scheme=scheme)
        A_x = spmv(A, np.ones(300, np.float32), plan=plan)
        assert A_x.shape == (300,)
        assert plan.explain().launches <= most


def test_products_of_several_kinds_share_a_plan(queue: cl.CommandQueue) -> None:
    matrix = random_csr(0)
    A = csr_array(matrix, queue=queue)
    plan = spmv_plan(A)
    x = random_values(np.float32, 300, np.random.default_rng(4))
    y = np.zeros(400, np.float32)
    for _ in range(2):
        check(spmv(A, x, plan=plan), expected_product(host(matrix), x))
        check(spmv(A, x, plan=plan, alpha=2, beta=0, out=y), expected_product(host(matrix), x, alpha=2))
        check(spmv(A, x, plan=plan, semiring=or_and), expected_product(host(matrix), x, or_and))


def test_features_and_decision_are_told(queue: cl.CommandQueue) -> None:
    matrix = random_csr(0)
    plan = spmv_plan(csr_array(matrix, queue=queue))
    lengths = np.diff(matrix.indptr)
    assert (plan.features.nnz, plan.features.longest, plan.features.shortest) == (matrix.nnz, lengths.max(), lengths.min())
    assert plan.decision.rule
    assert plan.shape == matrix.shape


def test_profile_is_a_time(queue: cl.CommandQueue) -> None:
    A = csr_array(random_csr(0), queue=queue)
    plan = spmv_plan(A)
    x, y = cl_array.zeros(queue, 300, np.float32), cl_array.zeros(queue, 400, np.float32)
    queue.finish()
    assert 0 < plan.profile(A, x, y) < 10


def test_a_matrix_without_rows_has_a_plan(queue: cl.CommandQueue) -> None:
    A = csr_array(sp.csr_array((0, 5), dtype=np.float32), queue=queue)
    for scheme in ("auto", "single", "fine", "coarse-10", "hybrid-10"):
        plan = spmv_plan(A, scheme=scheme)
        assert spmv(A, np.ones(5, np.float32), plan=plan).shape == (0,)
        assert plan.explain().launches == 0
        assert str(plan.explain())


def test_bad_input(queue: cl.CommandQueue) -> None:
    A = csr_array(random_csr(0), queue=queue)
    for options, error, message in (
        ({"scheme": "best"}, ValueError, r'^scheme: must be "auto", .*, is \'best\''),
        ({"kernel": "best"}, ValueError, r"^kernel: must be one of serial, .*, is 'best'"),
        ({"kernel": "merge", "scheme": "fine"}, ValueError, r"^kernel: merge balances rows by itself"),
    ):
        with pytest.raises(error, match=message):
            spmv_plan(A, **options)
    with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array, is scipy.sparse._csr.csr_array"):
        spmv_plan(A.get())
