"""Matrix Market files read in slices, and rows divided by a graph partitioner."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.io
import scipy.sparse

from clsparse_py import distributed
from clsparse_py.distributed import by_entries, by_graph

HEAD = "%%MatrixMarket matrix coordinate"


@pytest.fixture
def team(queue: cl.CommandQueue) -> Any:
    with distributed.over([queue] * 3, time_limit=30) as result:
        yield result


def write(path: Path, symmetry: str, dtype: Any) -> Any:
    """Write a matrix with long and empty rows, and return it as SciPy reads it."""
    S = scipy.sparse.random_array((40, 40), density=0.1, rng=np.random.default_rng(2), format="lil")
    S[3], S[20:30] = 1.5, 0
    S = S.tocsr().astype(np.complex128 if symmetry == "hermitian" else np.float64)
    S.data += 1
    if symmetry == "hermitian":
        S.data *= 1 + 2j
    turned = {"symmetric": S.T, "skew-symmetric": -S.T, "hermitian": S.conj().T}.get(symmetry)
    scipy.io.mmwrite(path, (S if turned is None else S + turned).astype(dtype), symmetry=symmetry)
    return scipy.io.mmread(path, spmatrix=False).tocsr()


@pytest.mark.any_platform
def test_files_are_read_in_slices(tmp_path: Path, queue: cl.CommandQueue) -> None:
    path = tmp_path / "a.mtx"
    cases = (("general", "f8"), ("symmetric", "f8"), ("skew-symmetric", "f8"), ("hermitian", "c16"), ("general", "i8"))
    for size in (1, 3, 7):
        with distributed.over([queue] * size, time_limit=30) as team:
            for symmetry, dtype in cases:
                wanted = write(path, symmetry, dtype)
                A = team.run_with(distributed.mmread, path)
                assert A.rows == by_entries(wanted.indptr, size)
                result = A.gather()
                assert result.dtype == wanted.dtype
                assert (result.indices == wanted.indices).all()
                np.testing.assert_allclose(result.data, wanted.data)
    cuts = [0, 0, 5, 5, 5, 40, 40, 40]
    with distributed.over([queue] * 7, time_limit=30) as team:
        A = team.run_with(distributed.mmread, str(path), division=cuts)
        assert A.rows.boundaries.tolist() == cuts
        assert (A.gather() != wanted).nnz == 0
        # Duplicates, empty lines, spaces, comments, a last line without an end; more ranks than lines; rectangular.
        path.write_text(f"{HEAD} pattern general\n% one\n\n%two\n 3 9 4\n1 9\n\n  3 1\n1 9\n2 2")
        A = team.run_with(distributed.mmread, path, division="rows")
        assert (A.gather() != scipy.io.mmread(path, spmatrix=False).tocsr()).nnz == 0
        path.write_text(f"{HEAD} real general\n3 9 0\n")
        assert team.run_with(distributed.mmread, path).nnz == 0


@pytest.mark.any_platform
def test_files_that_cannot_be_read(tmp_path: Path, team: Any) -> None:
    path = tmp_path / "a.mtx"
    for text, message in (
        ("nothing", "no Matrix Market file"),
        (f"{HEAD} real general\n3 3 3\n1 1 1\n2 2 2\n", "has 2 entries, its head says 3"),
        (f"{HEAD} real general\n3 3 2\n1 1 1\n4 2 2\n", "are no entries of the matrix"),
        (f"{HEAD} real general\n3 3 2\n1 1 1\n3 x 2\n", "are no entries of the matrix"),
        (f"{HEAD.replace('coordinate', 'array')} real general\n1 1\n1\n", "dense"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            team.run_with(distributed.mmread, path)
    path.write_bytes(gzip.compress(b"x"))
    with pytest.raises(ValueError, match="compressed"):
        team.run_with(distributed.mmread, path)
    with pytest.raises(OSError, match="none"):
        team.run_with(distributed.mmread, tmp_path / "none.mtx")
    path.write_text(f"{HEAD} real general\n3 3 1\n1 1 1\n")
    with pytest.raises(ValueError, match="division"):
        team.run_with(distributed.mmread, path, division="columns")


def test_a_graph_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymetis")
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(400, 400)).tocsr()
    mixed = np.random.default_rng(0).permutation(400)
    S = line[mixed][:, mixed]
    order, division = by_graph(S, 4)
    assert np.sort(order).tolist() == list(range(400))
    assert max(map(division.length, range(4))) < 120
    ranks = division.owner(np.arange(400))
    entries = S[order][:, order].tocoo()
    assert np.count_nonzero(ranks[entries.row] != ranks[entries.col]) < 40
    assert by_graph(S, 1)[1].boundaries.tolist() == [0, 400]
    assert by_graph(scipy.sparse.csr_array((0, 0)), 2)[1].n == 0
    for wrong, error in ((S[:3], ValueError), (np.eye(3), TypeError)):
        with pytest.raises(error, match="S: must"):
            by_graph(wrong, 2)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match="pip install pymetis"):
        by_graph(S, 2)
