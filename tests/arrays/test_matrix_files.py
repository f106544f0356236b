"""Matrices from files: what is read is what was written, and what is no matrix says so."""

from __future__ import annotations

import gzip
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse as sp

from clsparse_py._arrays.matrix_files import SUFFIXES, read_matrix, write_matrix

MATRIX = sp.csr_array(np.array([[0.0, 1.5, 0, 0], [0, 0, 0, 0], [-2, 0, 0, 1e-300]]))
HEADER = b"%%MatrixMarket matrix coordinate real general\n"


def write(path: Path, matrix: Any = MATRIX, **options: Any) -> Path:
    if path.suffix == ".npz":
        sp.save_npz(path, matrix)
        return path
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    scipy.io.mmwrite(plain, matrix, **options)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


def equal(a: sp.csr_array, b: Any) -> bool:
    return a.shape == b.shape and np.array_equal(a.toarray(), b.toarray())


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
def test_reads_what_was_written(tmp_path: Path, name: str) -> None:
    result = read_matrix(write(tmp_path / name))
    assert isinstance(result, sp.csr_array)
    assert result.has_canonical_format
    assert equal(result, MATRIX)
    assert equal(read_matrix(str(tmp_path / name)), MATRIX)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_reads_every_format_that_scipy_saves(tmp_path: Path, form: str) -> None:
    assert equal(read_matrix(write(tmp_path / "a.npz", MATRIX.asformat(form))), MATRIX)


@pytest.mark.parametrize("field", ["pattern", "integer", "complex"])
def test_reads_every_field(tmp_path: Path, field: str) -> None:
    values = sp.coo_array(np.array([[1, 0], [3, 4]]).astype(complex if field == "complex" else int))
    result = read_matrix(write(tmp_path / "a.mtx", values, field=field))
    assert equal(result, values if field != "pattern" else values.astype(bool).astype(int))


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_scipy_is_asked_for_an_array(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions warn if they are not told which of their kinds to give."""
    path, mmread = tmp_path / name, scipy.io.mmread
    write_matrix(path, sp.csr_array(np.eye(2)))
    asked: list[Any] = []
    monkeypatch.setattr(scipy.io, "mmread", lambda source, **options: (asked.append(options), mmread(source, **options))[1])
    read_matrix(path)
    assert asked == [{"spmatrix": False} if "spmatrix" in inspect.signature(mmread).parameters else {}]


def test_symmetry_is_expanded_and_duplicates_are_summed(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_bytes(HEADER.replace(b"general", b"symmetric") + b"3 3 3\n2 1 1\n2 1 1\n3 3 1\n")
    assert np.array_equal(read_matrix(tmp_path / "a.mtx").toarray(), [[0, 2, 0], [2, 0, 0], [0, 0, 1]])


def test_a_dense_matrix_gives_its_nonzeros(tmp_path: Path) -> None:
    assert equal(read_matrix(write(tmp_path / "a.mtx", MATRIX.toarray())), MATRIX)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_reads_empty_matrices(tmp_path: Path, shape: tuple[int, int]) -> None:
    assert read_matrix(write(tmp_path / "a.npz", sp.csr_array(shape))).shape == shape


BROKEN = {
    "empty.mtx": b"",
    "words.mtx": b"hello\n",
    "cut.mtx": HEADER + b"3 3 2\n1 1 1\n",
    "outside.mtx": HEADER + b"3 3 1\n9 1 1\n",
    "from-zero.mtx": HEADER + b"3 3 1\n0 1 1\n",
    "negative.mtx": HEADER + b"-3 3 0\n",
    "claims-more-than-memory.mtx": HEADER + b"9 9 1000000000000000\n1 1 1\n",
    "huge.mtx": HEADER + b"1000000000000000 9 1\n1 1 1\n",
    "plain.mtx.gz": HEADER + b"1 1 1\n1 1 1\n",
    "cut.mtx.gz": gzip.compress(HEADER + b"1 1 1\n1 1 1\n")[:-9],
    "words.npz": b"hello",
    "matrix.txt": HEADER + b"1 1 1\n1 1 1\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_matrix_says_so_in_a_line_that_names_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    with pytest.raises(ValueError, match="matrix") as caught:
        read_matrix(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
def test_indices_out_of_range_are_found_before_they_are_used(tmp_path: Path, form: str) -> None:
    path = write(tmp_path / "a.npz", MATRIX.asformat(form))
    with np.load(path) as file:
        parts = dict(file)
    for name in ("indices", "row"):
        if name in parts:
            parts[name] = parts[name] + 1_000_000
    np.savez(path, **parts)
    with pytest.raises(ValueError, match=r"a\.npz"):
        read_matrix(path)


@pytest.mark.parametrize(
    "parts",
    [
        {"a": np.ones(3)},
        {"format": b"csr", "shape": (1, 1), "data": np.array([None]), "indices": [0], "indptr": [0, 1]},
        {"format": b"csr", "shape": (1, 1), "data": np.ones(1, np.longdouble), "indices": [0], "indptr": [0, 1]},
        {"format": b"csr", "shape": (1, 1), "data": np.array(["a"]), "indices": [0], "indptr": [0, 1]},
        {"format": b"coo", "shape": (2,), "data": np.ones(1), "coords": np.array([[0]]), "_is_array": True},
    ],
    ids=["no matrix", "objects", "longdouble", "strings", "one dimension"],
)
def test_files_of_other_arrays_are_refused(tmp_path: Path, parts: dict[str, Any]) -> None:
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(ValueError, match=r"a\.npz"):
        read_matrix(tmp_path / "a.npz")


def test_missing_files_and_folders_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_matrix(tmp_path / "none.mtx")
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(OSError, match="folder"):
        read_matrix(tmp_path / "folder.mtx")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str, dtype: str) -> None:
    matrix = sp.csr_array(np.array([[0, 1, 0], [2, 0, 3]], dtype))
    write_matrix(tmp_path / f"a{suffix}", matrix)
    result = read_matrix(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(result.toarray(), matrix.toarray())


def test_a_name_that_is_none_of_a_matrix_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a name of a matrix file"):
        write_matrix(tmp_path / "a.txt", sp.csr_array((2, 2)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["A.NPZ", "A.MTX", "A.MTX.GZ", "a.Mtx.gZ"])
def test_suffixes_are_read_and_written_in_any_case(tmp_path: Path, name: str) -> None:
    write_matrix(tmp_path / name, MATRIX)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert equal(read_matrix(tmp_path / name), MATRIX)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"a{suffix}"
    write_matrix(path, MATRIX)
    before = path.read_bytes()

    def full(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scipy.sparse, "save_npz", full)
    monkeypatch.setattr(scipy.io, "mmwrite", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_matrix(path, MATRIX * 2)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write_matrix(path, MATRIX)


def test_a_file_of_many_rows_and_few_entries_is_read_by_its_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "%%MatrixMarket matrix coordinate real general\n"
    path = tmp_path / "long.mtx"
    path.write_text(f"{head}40000 30 6\n40000 2 1.5\n7 30 2\n7 3 4\n1 1 8\n7 30 3\n40000 1 0.5\n")
    usual = scipy.sparse.csr_array(scipy.io.mmread(path))
    usual.sum_duplicates()
    # SciPy's conversion passes over all rows, again and again: 10^9 of them took it 20 s.
    monkeypatch.setattr(scipy.sparse.coo_array, "tocsr", None)
    result = read_matrix(path)
    assert result.has_canonical_format
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(result, name), getattr(usual, name))
        assert getattr(result, name).dtype == getattr(usual, name).dtype
    path.write_text(f"{head}40000 30 0\n")
    assert read_matrix(path).nnz == 0
    path.write_text(f"{head}900000000000000000 3 1\n5 1 1\n")
    with pytest.raises(ValueError, match=r"long.mtx: holds no sparse matrix that can be read: .*allocate"):
        read_matrix(path)
