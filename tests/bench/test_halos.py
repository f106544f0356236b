"""The traffic of ranks: the computed one equals that of the patterns and that of products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from bench.halos import count_traffic, of_grid, of_matrix
from clsparse_py.distributed import by_rows


@pytest.mark.parametrize("points", [7, 27])
def test_grids_are_computed_without_their_matrix(points: int) -> None:
    n = 6
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    if points == 27:
        S = scipy.sparse.kron(scipy.sparse.kron(line, line), line).tocsr()
    else:
        S = scipy.sparse.kronsum(scipy.sparse.kronsum(line, line), line).tocsr()
    for size in (1, 2, 5, 50, 300):
        division = by_rows(n**3, size)
        for rank, wanted in enumerate(of_matrix(S, division)):
            if division.length(rank):
                result = of_grid(n, points, division, rank)
                assert (result.halo, result.sources, result.rows) == (wanted.halo, wanted.sources, wanted.rows)


def test_products_send_as_much(capsys: pytest.CaptureFixture[str]) -> None:
    count_traffic(3)
    assert capsys.readouterr().out.count("counted") == 2
    assert np.isfinite(of_grid(256, 27, by_rows(256**3, 1024), 512).seconds)
