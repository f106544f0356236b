"""The matrices to tune with: valid, the same each time, and balanced from any beginning."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from clsparse_py._arrays import matrix_files
from clsparse_py._device.device import describe
from clsparse_py._tuner import corpus
from clsparse_py._tuner.corpus import TEST, TRAIN

_KINDS = len(corpus._KINDS)


@pytest.mark.parametrize("kind", list(corpus._KINDS))
def test_every_recipe_makes_a_valid_matrix_of_about_its_size(kind: str) -> None:
    _, recipes = corpus._KINDS[kind]
    for place, recipe in enumerate(recipes):
        for nnz in (100, 30_000):
            if not recipe.fits(nnz):
                continue
            made = corpus._case_of(kind, recipe, place, nnz).make()
            assert made.dtype == np.float32
            assert 0 < made.nnz <= 1.5 * nnz
            claimed = made.nnz
            # Without what it says of itself: sorted and distinct columns are found, not believed.
            made = sp.csr_array((made.data, made.indices, made.indptr), shape=made.shape)
            made.check_format(full_check=True)
            assert made.has_sorted_indices
            made.sum_duplicates()
            assert made.nnz == claimed


def test_a_matrix_is_a_function_of_its_name_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_CHUNK", 1000)
    chosen = [case for case in itertools.islice(corpus.generate(10_000), 2 * _KINDS) if case.nnz == 10_000]
    assert len(chosen) > 5
    for case in chosen:
        first = case.make()
        monkeypatch.setattr(corpus, "_count_cores", lambda: 1)
        again = case.make()
        np.testing.assert_array_equal(first.indices, again.indices)
        np.testing.assert_array_equal(first.indptr, again.indptr)


def test_blocks_and_grids_are_what_their_offsets_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_CHUNK", 70)
    made = corpus._Grid("5", corpus._five, 2).make(np.random.default_rng(0), 5 * 4 * 36)
    side = 6
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(side)
    wanted = sp.kron(sp.kron(line, eye) + sp.kron(eye, line) != 0, np.ones((2, 2)))
    np.testing.assert_array_equal(made.toarray() != 0, wanted.toarray() != 0)


def test_a_network_has_a_share_of_the_couplings_both_ways() -> None:
    made = [case.make() for case in corpus.generate(10**5) if case.family == "network" and case.nnz == 10**5]
    assert len(made) == 4
    for matrix in made:
        assert abs(matrix - matrix.T).nnz == 0
        assert matrix.diagonal().max() == 0
        assert 0.9 * 10**5 < matrix.nnz < 1.1 * 10**5


@pytest.mark.parametrize("largest", [10**4, 10**8])
def test_any_beginning_is_balanced(largest: int) -> None:
    made = list(corpus.generate(largest))
    sizes = len(corpus._sizes(largest))
    first = made[: _KINDS * sizes]
    share = sum(1 for case in first if case.split == TRAIN) / len(first)
    assert 0.7 <= share <= 0.8
    assert max(case.nnz for case in made) == largest
    of_size = Counter(case.nnz for case in first)
    assert max(of_size.values()) - min(of_size.values()) <= 5
    # No round, wherever it stands, is of one size or of one side.
    for begin in range(0, len(first) - _KINDS, _KINDS):
        part = first[begin : begin + _KINDS]
        assert {case.split for case in part} == {TRAIN, TEST}
        assert len({case.nnz for case in part}) >= min(3, sizes)


def test_families_are_on_one_side_of_the_split() -> None:
    sides: dict[str, set[str]] = {}
    for case in corpus.generate(10**7):
        sides.setdefault(case.family, set()).add(case.split)
    assert all(len(side) == 1 for side in sides.values())
    assert Counter(side for half in sides.values() for side in half) == {TRAIN: 11, TEST: 3}


def test_a_device_gets_what_its_memory_and_type_allow(queue: cl.CommandQueue) -> None:
    device = describe(queue.device)
    small = replace(device, type="gpu", global_memory=64 * 2000, max_allocation=1 << 20)
    assert max(case.nnz for case in corpus.cases(small)) == 1000
    large = replace(device, type="gpu", global_memory=1 << 36, max_allocation=1 << 34)
    assert max(case.nnz for case in corpus.cases(large)) == 10**8
    assert max(case.nnz for case in corpus.cases(replace(large, type="cpu"))) == 10**7
    assert max(case.nnz for case in corpus.cases(large, largest=300_000)) == 300_000
    names = [case.name for case in corpus.cases(large)]
    assert len(names) == len(set(names))


def test_a_folder_is_split_by_family_and_takes_turns(tmp_path: Path, queue: cl.CommandQueue) -> None:
    matrix = sp.csr_array(np.diag([3, 4, 5]))
    (tmp_path / "sub").mkdir()
    for name in ("road1.mtx", "road2.mtx.gz", "sub/mesh_7.npz", "gas.mtx", "web-a.mtx", "web-b.mtx"):
        matrix_files.write_matrix(tmp_path / name, matrix)
    (tmp_path / "README.txt").write_text("no matrix")
    result = corpus.from_folder(tmp_path)
    families = {case.family: case.split for case in result}
    assert set(families) == {"road", "mesh", "gas", "web"}
    assert Counter(families.values()) == {TRAIN: 3, TEST: 1}
    made = result[0].make()
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made.toarray(), np.eye(3))
    begin = [case.name for case in itertools.islice(corpus.cases(describe(queue.device), result), 4)]
    assert begin[1] == result[0].name
    with pytest.raises(ValueError, match="holds no file"):
        corpus.from_folder(tmp_path / "sub" / "none")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
def test_values_are_neither_zero_nor_large(dtype: str) -> None:
    matrix = corpus.with_values(sp.csr_array(np.eye(7, dtype=np.float32)), dtype)
    assert matrix.dtype == dtype
    if dtype != "int32":
        assert np.all((np.abs(matrix.data) >= 0.5) & (np.abs(matrix.data) <= 1.5))
    assert corpus.with_values(sp.csr_array((3, 3)), dtype).nnz == 0
