"""Operators on two small matrices, by one launch."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from supposed import suppose

from clsparse_py import csr_array
from clsparse_py._build import programs
from clsparse_py._operations.elementwise.union import combine
from clsparse_py._operations.elementwise.union_kernels import Thresholds


def kernels(left: csr_array, right: csr_array) -> tuple[csr_array, list[str]]:
    """Return the sum of two matrices, and the templates of the kernels that were asked for."""
    with programs.recording() as asked:
        result = combine("plus", left, right)
    return result, list(dict.fromkeys(program.parameters.template for program in asked))


def test_up_to_a_tile_of_rows_and_entries(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, single_group=16))
    rng = np.random.default_rng(1)
    for n, taken in ((17, True), (42, True), (43, False)):
        # n rows, and two times n entries: 127 places are all that there are.
        S, T = (sp.csr_array((np.ones(n, np.float32), rng.integers(0, 9, n), np.arange(n + 1)), shape=(n, 9)) for _ in range(2))
        result, asked = kernels(csr_array(S, queue=queue), csr_array(T, queue=queue))
        assert (asked == ["elementwise/union_at_once"]) == taken
        wanted = S + T
        wanted.sum_duplicates()
        assert result.has_canonical_format
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(result.get(), part), getattr(wanted, part))


@pytest.mark.any_platform
def test_only_what_is_known_to_be_canonical(queue: cl.CommandQueue) -> None:
    S = sp.csr_array((np.ones(3, np.float32), [1, 0, 1], [0, 3]), shape=(1, 2))
    A, B = csr_array(S, queue=queue), csr_array(S.toarray(), queue=queue)
    for left, right in ((A, B), (B, A), (A, A)):
        result, asked = kernels(left, right)
        assert "elementwise/union_at_once" not in asked
        np.testing.assert_array_equal(result.toarray(), [[2, 4]])
    _, asked = kernels(B, B)
    assert asked == ["elementwise/union_at_once"]


@pytest.mark.any_platform
def test_nothing_is_left(queue: cl.CommandQueue) -> None:
    A = csr_array(np.arange(6, dtype=np.float32).reshape(2, 3), queue=queue)
    result = A - A
    assert result.nnz == 0
    assert result.data.shape == result.indices.shape == (0,)
    np.testing.assert_array_equal((result + A).toarray(), A.toarray())
    empty = csr_array((2, 3), dtype=np.float32, queue=queue)
    np.testing.assert_array_equal((empty - A).toarray(), -A.toarray())
