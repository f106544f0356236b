"""Products of any two matrices, by any method: what hypothesis makes up against brute force."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from platforms import PLATFORMS, queue_on
from problems import assert_product

from clsparse_py import csr_array, spgemm, spgemm_plan
from clsparse_py._operations.spgemm import METHODS
from clsparse_py._precision.semiring import SEMIRINGS

#: Shapes come from few sizes, so that no method builds more than a few kernels.
SIZES = st.sampled_from((0, 1, 2, 3, 17, 40))


@st.composite
def operands(draw: st.DrawFn) -> tuple[sp.csr_array, sp.csr_array]:
    """Return matrices whose shapes go together: random, with rows or columns that are full or empty."""
    m, k, n = draw(SIZES), draw(SIZES), draw(SIZES)
    made = []
    for shape in ((m, k), (k, n)):
        density = draw(st.sampled_from((0, 0.03, 0.3, 1)))
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        dense = rng.integers(-2, 3, shape) * (rng.random(shape) < density)
        for axis in (0, 1):
            if shape[axis]:
                line = draw(st.integers(0, shape[axis] - 1))
                full = draw(st.sampled_from((None, 0, 2)))
                if full is not None:
                    dense[(slice(None), line) if axis else (line, slice(None))] = full
        made.append(sp.csr_array(dense.astype(np.float32)))
    return made[0], made[1]


@given(
    product=operands(),
    method=st.sampled_from(("auto", *METHODS)),
    semiring=st.sampled_from(("plus_times", "min_plus")),
    platform=st.sampled_from(list(PLATFORMS)),
)
@settings(max_examples=60)
def test_any_product(product: tuple[sp.csr_array, sp.csr_array], method: str, semiring: str, platform: str) -> None:
    A, B = product
    left, right = (csr_array(matrix, queue=queue_on(platform)) for matrix in (A, B))
    assert_product(spgemm(left, right, method=method, semiring=SEMIRINGS[semiring]), A, B, SEMIRINGS[semiring])


@given(product=operands(), method=st.sampled_from(("auto", *METHODS)), platform=st.sampled_from(list(PLATFORMS)), data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.data_too_large])
def test_any_values(product: tuple[sp.csr_array, sp.csr_array], method: str, platform: str, data: st.DataObject) -> None:
    """A plan takes whatever values, and a plan and a product of the same values give the same bits."""
    A, B = product
    left, right = (csr_array(matrix, queue=queue_on(platform)) for matrix in product)
    plan = spgemm_plan(left, right, method=method)
    a, b = (data.draw(hnp.arrays(np.float32, matrix.nnz, elements=st.integers(-9, 9).map(float))) for matrix in product)
    A, B = (sp.csr_array((v, matrix.indices, matrix.indptr), shape=matrix.shape) for v, matrix in ((a, A), (b, B)))
    result = plan(a, b)
    assert_product(result, A, B)
    again = spgemm(csr_array(A, queue=queue_on(platform)), csr_array(B, queue=queue_on(platform)), method=method)
    assert again.data.get().tobytes() == result.data.get().tobytes()
