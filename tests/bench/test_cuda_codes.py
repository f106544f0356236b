"""The codes of papers in CUDA, without a device: who takes part, what is passed to their libraries, and what comes back."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.contestants import DeclinedError
from bench.peers import cuda, cuda_codes

FOLDER = Path(cuda_codes.__file__).parent
CODES = (*cuda_codes._SPGEMM, cuda_codes._SPMV)


def test_a_matrix_has_the_fields_of_the_header() -> None:
    (body,) = re.findall(r"struct Csr \{(.*?)\}", (FOLDER / "cuda_codes.cuh").read_text(), re.DOTALL)
    fields = [
        (name.strip("* "), "c_void_p" if "*" in name else "c_int")
        for line in re.findall(r"(?:int|void)\s*([^;]+);", body)
        for name in (f"*{part}" if "*" in line else part for part in line.split(","))
    ]
    assert fields == [(name, kind.__name__) for name, kind in cuda_codes._Csr._fields_]


def test_every_code_is_built_from_a_source_here() -> None:
    script = (FOLDER / "cuda_codes.sh").read_text()
    assert re.findall(r"^build (\w+)", script, re.MULTILINE) == [*CODES]
    assert {path.stem for path in FOLDER.glob("*.cu")} == {*CODES}


def test_codes_without_a_library_decline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda, "available", lambda: None)
    monkeypatch.setattr(cuda_codes, "_library", cuda_codes._library.__wrapped__)
    monkeypatch.setenv("CUDA_CODES", str(tmp_path))
    assert "CUDA_CODES" in str(cuda_codes.available())
    (tmp_path / "libhsmu.so").touch()
    assert cuda_codes.available() is None
    with pytest.raises(DeclinedError, match="libspeck"):
        cuda_codes._library("speck")


def test_what_a_library_says_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter((None, b"out of memory"))
    monkeypatch.setattr(cuda_codes, "_library", lambda _: SimpleNamespace(multiply_float64=lambda: next(said)))
    cuda_codes._call("speck", "multiply_float64")
    with pytest.raises(RuntimeError, match="speck: out of memory"):
        cuda_codes._call("speck", "multiply_float64")


def test_rows_of_dasp_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", np)
    made = cuda_codes._Dasp.__new__(cuda_codes._Dasp)
    made._plan, made._rows, made._empty = None, np.array([2, 0, 3, 1]), np.array([1])  # type: ignore[assignment]
    (y,) = made.unpack((np.array([3.0, 1.0, 4.0, np.nan]),))
    np.testing.assert_array_equal(y, [1, 0, 3, 4])
