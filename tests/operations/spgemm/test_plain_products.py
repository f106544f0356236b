"""Products by plain kernels: as others make them, without local memory, in work-groups of one work-item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, pattern_product, random_matrix, rows_of

from clsparse_py import min_plus, plus_pair, plus_times, spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._build import programs
from clsparse_py._build.plain import plain_kernels
from clsparse_py._operations.spgemm import METHODS

pytestmark = pytest.mark.any_platform

Operands = tuple[sp.csr_array, sp.csr_array]


@pytest.fixture(params=["random", "uneven", "unsorted"])
def operands(request: pytest.FixtureRequest) -> Operands:
    """Return matrices: random ones; with long rows and empty ones; and with rows that are not sorted."""
    rng = np.random.default_rng(3)
    if request.param == "uneven":
        return rows_of([0, 300, 1, 0, 7, 180, *[2] * 200], 400, rng, np.float32), random_matrix((400, 300), 3, rng, np.float32)
    A, B = random_matrix((90, 70), 5, rng, np.float32), random_matrix((70, 200), 6, rng, np.float32)
    if request.param == "unsorted":
        for row in range(90):
            part = slice(*A.indptr[row : row + 2])
            A.indices[part], A.data[part] = A.indices[part][::-1].copy(), A.data[part][::-1].copy()
        A.has_sorted_indices = False
    return A, B


@pytest.fixture
def plainly(queue: cl.CommandQueue) -> Iterator[None]:
    """Have plain kernels make all products, and see that they are plain."""
    programs.forget_refused()  # and what is worked out
    with plain_kernels(), programs.recording() as built:
        yield
    assert any(program.parameters.template.startswith("spgemm/") for program in built)
    for program in built:
        if program.parameters.template.startswith("spgemm/"):
            kernel = cl.Kernel(program.program, program.parameters.name)
            assert program.parameters.work_group == 1
            # NVIDIA's driver names one byte for kernels without any.
            assert kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, queue.device) <= 1


@pytest.mark.usefixtures("plainly")
def test_products_of_all_methods(queue: cl.CommandQueue, operands: Operands) -> None:
    A, B = operands
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    for method in ("auto", *METHODS):
        for semiring in (plus_times, min_plus, plus_pair):
            assert_product(spgemm(left, right, method=method, semiring=semiring), A, B, semiring)


@pytest.mark.usefixtures("plainly")
def test_plans_and_new_values(queue: cl.CommandQueue, operands: Operands) -> None:
    A, B = operands
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    plan = spgemm_plan(left, right, method="hash")
    assert_product(plan(), A, B)
    C = plan(left.data * 2)
    assert_product(C, sp.csr_array(A * 2), B)
    plan(left.data, out=C)
    assert_product(C, A, B)
    assert plan.explain().rule == "plain kernels, in place of hash"
    assert spgemm_estimate(left, right, exact=True).nnz == plan.nnz


@pytest.mark.parametrize("columns", [False, True])
def test_a_plan_of_other_kernels_is_made_anew(queue: cl.CommandQueue, operands: Operands, columns: bool) -> None:
    A, B = operands
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    plan = spgemm_plan(left, right)
    if columns:
        plan()
    assert plan.explain().rule != "plain kernels"
    with plain_kernels():
        assert_product(plan(left.data * 2), sp.csr_array(A * 2), B)
    # It keeps to them.
    assert plan.explain().rule == "plain kernels"
    for _ in range(30):
        C = plan()
    assert_product(C, A, B)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("complement", [False, True])
def test_products_under_a_mask(queue: cl.CommandQueue, complement: bool) -> None:
    rng = np.random.default_rng(4)
    A, B, M = (random_matrix(shape, 6, rng, np.float32) for shape in ((60, 50), (50, 70), (60, 70)))
    left, right, mask = (device_matrix(queue, matrix) for matrix in (A, B, M))
    there = (M.toarray() != 0) != complement
    wanted = (A @ B).toarray() * there
    C = spgemm(left, right, mask=mask, complement=complement)
    np.testing.assert_array_equal(C.toarray(), wanted)
    assert C.nnz == (there & (pattern_product(A, B).toarray() != 0)).sum()
    plan = spgemm_plan(left, right, mask=mask, complement=complement, accum="plus")
    C = plan(left.data * 2)
    np.testing.assert_array_equal(C.toarray(), 2 * wanted)
    plan(out=C)
    np.testing.assert_array_equal(C.toarray(), 3 * wanted)
    out = device_matrix(queue, M)
    spgemm(left, right, mask=mask, complement=complement, accum="plus", out=out)
    np.testing.assert_array_equal(out.toarray(), M.toarray() + wanted)
