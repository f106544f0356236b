"""The gallery's matrices against the table that defines them, and its names, suites and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from bench import gallery
from bench.generators import aggregation, graphs, grids, meshes, patterns

# name: rows, columns, nnz, shortest and longest row; what the table gives as "about" is checked within 2 %.
EXACT = {
    "fd2d5_1024": (1_048_576, 1_048_576, 5_238_784, 3, 5),
    "fd3d7_101": (1_030_301, 1_030_301, 7_150_901, 4, 7),
    "fe3d27_60": (216_000, 216_000, 5_639_752, 8, 27),
    "cantilever": (62_400, 62_400, 4_388_832, 24, 81),
    "epidemiology": (525_825, 525_825, 2_100_225, 2, 4),
    "qcd": (49_152, 49_152, 1_916_928, 39, 39),
    "qcd8": (16_384, 16_384, 589_824, 36, 36),
    "butterfly_12": (49_152, 49_152, 196_608, 4, 4),
    "chessboard_7_9": (105_840, 17_640, 423_360, 4, 4),
    "uniform16_200k": (200_000, 200_000, 3_200_000, 16, 16),
    "dense_row": (1_000_000, 1_000_000, 1_999_999, 1, 1_000_000),
    "dense_col": (1_000_000, 1_000_000, 1_999_999, 1, 2),
    "tall": (1_000_000, 2_000, 8_000_000, 8, 8),
}
ABOUT = {
    "spheres": (83_334, 6.0e6, 1, 81),
    "accelerator": (121_192, 2.6e6, 0, 81),
    "economics": (206_500, 1.27e6, 1, 44),
    "protein": (36_417, 4.0e6, 42, 120),
    "wind_tunnel": (217_918, 11.6e6, 2, 180),
    "webbase": (1_000_005, 3.0e6, 1, 4_600),
    "long_rows_40": (300_000, 1.67e6, 2, 19_400),
    "hypersparse": (4_000_000, 0.8e6, 0, 2),
    "blocks": (58_000, 20e6, 1, 512),
}


@pytest.mark.parametrize("name", EXACT)
def test_counts_are_those_of_the_table(name: str) -> None:
    matrix = gallery.load(name)
    lengths = np.diff(matrix.indptr)
    assert (*matrix.shape, matrix.nnz, lengths.min(), lengths.max()) == EXACT[name]


@pytest.mark.parametrize("name", ABOUT)
def test_counts_are_about_those_of_the_table(name: str) -> None:
    rows, nnz, shortest, longest = ABOUT[name]
    matrix = gallery.load(name)
    lengths = np.diff(matrix.indptr)
    assert matrix.shape[0] == pytest.approx(rows, rel=0.02)
    assert matrix.nnz == pytest.approx(nnz, rel=0.02)
    assert abs(int(lengths.min()) - shortest) <= 3
    assert lengths.max() == pytest.approx(longest, rel=0.1)


@pytest.mark.parametrize("name", gallery.suite("quick", cpu=True))
def test_matrices_are_canonical_and_the_same_each_time(name: str) -> None:
    matrix, again = gallery.load(name), gallery.load(name)
    assert matrix.dtype == np.float64
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    unvouched = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert unvouched.has_canonical_format
    assert matrix.indices.min() >= 0
    assert matrix.indices.max() < matrix.shape[1]
    assert np.all(matrix.data)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, part), getattr(again, part))


def test_small_matrices_are_sparser_the_larger_they_are() -> None:
    members = gallery.suite("small", cpu=False)
    assert [gallery.load(name).shape for name in members] == [(n, n) for n in range(10, 101, 10)]
    smallest, largest = (gallery.load(name) for name in (members[0], members[-1]))
    assert smallest.nnz == pytest.approx(100 / 5, rel=0.4)
    assert largest.nnz == pytest.approx(10_000 / 23, rel=0.2)


@pytest.mark.parametrize("name", ["bin_2", "bin_32", "bin_512"])
def test_every_row_of_a_bin_has_as_many_products(name: str) -> None:
    matrix = gallery.load(name)
    lengths = np.diff(matrix.indptr)
    products = np.add.reduceat(lengths[matrix.indices], matrix.indptr[:-1])
    assert set(products) == {int(name.removeprefix("bin_"))}


def test_rmat_keeps_its_mean_row_and_its_products() -> None:
    matrix = gallery.load("rmat14")
    lengths = np.diff(matrix.indptr)
    assert 13.5 < lengths.mean() < 15
    assert lengths[matrix.indices].sum() == pytest.approx(52.8e6, rel=0.01)


def test_a_power_law_is_cut_where_it_should_be() -> None:
    lengths = graphs.power_law_lengths(np.random.default_rng(0), 200_000, exponent=2.0, longest=40)
    assert lengths.min() == 1
    assert lengths.max() == 40
    assert (lengths >= 4).mean() == pytest.approx(1 / 16, rel=0.05)


def test_grids_are_tensor_products() -> None:
    tridiagonal = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(5, 5))
    expected = sp.kron(sp.kron(tridiagonal, tridiagonal), tridiagonal).tocsr()
    pattern = grids.grid((5, 5, 5), grids.box((1, 1, 1)))
    np.testing.assert_array_equal(pattern.with_values(np.ones(pattern.nnz)).toarray(), expected.toarray())


def test_a_periodic_grid_has_the_same_row_everywhere() -> None:
    lattice = grids.grid((4, 5), grids.star(2), periodic=True)
    dense = lattice.with_values(np.ones(lattice.nnz)).toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert set(dense.sum(axis=0)) == {5.0}
    assert dense[0].nonzero()[0].tolist() == [0, 1, 4, 5, 15]


def test_linear_elements_know_constants_and_straight_lines() -> None:
    rng = np.random.default_rng(1)
    points = meshes.scatter(rng, 700, 2)
    matrix = meshes.mesh(np.random.default_rng(1), 700, 2)
    assert points.shape == (700, 2)
    np.testing.assert_allclose(matrix @ np.ones(700), 0, atol=1e-12)
    inside = ((points > 0.15) & (points < 0.85)).all(axis=1)
    np.testing.assert_allclose((matrix @ (points @ [2.0, -3.0]))[inside], 0, atol=1e-12)
    lengths = np.diff(matrix.indptr)
    assert lengths.min() >= 3
    assert lengths.max() <= 12
    assert lengths.mean() == pytest.approx(7, rel=0.05)


def test_meshes_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLSPARSE_GALLERY", str(tmp_path))
    monkeypatch.setitem(gallery._MESHES, "small", lambda rng: meshes.mesh(rng, 100, 2))
    monkeypatch.setitem(gallery._ALL, "small", gallery._MESHES["small"])
    built = gallery.load("small")
    assert [path.name for path in tmp_path.iterdir()] == ["small.npz"]
    monkeypatch.delitem(gallery._ALL, "small")
    kept = gallery.load("small")
    np.testing.assert_array_equal(built.toarray(), kept.toarray())


def test_prolongator_reproduces_constants_away_from_the_boundary() -> None:
    matrix = gallery.load("fd2d5_256")
    prolongator = gallery.load("P(fd2d5_256)")
    assert prolongator.shape[0] == matrix.shape[0]
    assert 2 < prolongator.nnz / prolongator.shape[0] < 4
    # Columns of the tentative prolongator have length one, so its coarse constant is the root of each aggregate's size.
    aggregates, count = aggregation.distance_two_aggregates(matrix, np.random.default_rng(0))
    assert aggregates.min() == 0
    assert aggregates.max() == count - 1
    inner = np.zeros((256, 256), dtype=bool)
    inner[2:-2, 2:-2] = True
    coarse = np.sqrt(np.bincount(gallery_aggregates("fd2d5_256")))
    np.testing.assert_allclose((prolongator @ coarse)[inner.ravel()], 1.0)


def gallery_aggregates(name: str) -> patterns.Integers:
    return aggregation.distance_two_aggregates(gallery.load(name), gallery._generator(f"P({name})"))[0]


def test_suites_hold_what_they_should() -> None:
    everything = gallery.names()
    for suite in ("quick", "paper-spmv", "paper-spgemm", "paper-amg", "triangular"):
        for cpu in (True, False):
            members = gallery.suite(suite, cpu=cpu)
            assert set(members) <= set(everything)
            assert len(set(members)) == len(members)
    gpu, cpu = gallery.suite("paper-spmv", cpu=False), gallery.suite("paper-spmv", cpu=True)
    assert set(gpu) - set(cpu) == {"long_rows", "fe3d27_120"}
    assert "rmat12" not in gpu
    assert "rmat14" in gpu
    assert len(gallery.suite("quick", cpu=True)) == 8
    assert "rmat18" in gallery.suite("paper-spgemm", cpu=False)
    assert "rmat18" not in gallery.suite("paper-spgemm", cpu=True)
    with pytest.raises(ValueError, match="slow"):
        gallery.suite("slow", cpu=True)


def test_table2_takes_real_matrices_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLSPARSE_MATRICES", raising=False)
    generated = gallery.suite("table2", cpu=True)
    assert len(generated) == 16
    assert set(generated) <= set(gallery.names())
    scipy.io.mmwrite(tmp_path / "bfly.mtx", sp.eye_array(3).tocoo())
    monkeypatch.setenv("CLSPARSE_MATRICES", str(tmp_path))
    assert [gallery.title(name) for name in gallery.suite("table2", cpu=True)].count("bfly") == 1
    assert str(tmp_path / "bfly.mtx") in gallery.suite("full", cpu=True)


def test_files_are_read_and_made_canonical(tmp_path: Path) -> None:
    with_duplicates = sp.coo_array(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    scipy.io.mmwrite(tmp_path / "a.mtx", with_duplicates)
    sp.save_npz(tmp_path / "b.npz", with_duplicates.tocsc())
    sp.save_npz(tmp_path / "complex.npz", with_duplicates * (1 + 2j))
    for file in gallery.expand(str(tmp_path)):
        matrix = gallery.load(file)
        assert matrix.has_canonical_format
        assert matrix.data.flags.c_contiguous
        np.testing.assert_array_equal(matrix.toarray(), [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0]])
    assert gallery.title(str(tmp_path / "a.b.mtx.gz")) == "a"
    with pytest.raises(ValueError, match="no_such_matrix"):
        gallery.load("no_such_matrix")
