"""Types: what mypy knows of the public functions, and names that are types."""

from __future__ import annotations

import contextlib
import itertools
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
import typed
from pyopencl import array as cl_array

from clsparse_py import csr_array
from clsparse_py._operations.spgemm import METHODS as PRODUCT_METHODS
from clsparse_py._operations.spgemm import Method as ProductMethod
from clsparse_py._operations.spmv import Scheme
from clsparse_py._operations.transpose import METHODS, Method
from clsparse_py._precision.semiring import ADDITIONS, MULTIPLICATIONS, SEMIRINGS, LogicalName, Semiring, SemiringName

ROOT = Path(__file__).parents[1]


def test_mypy_knows_what_functions_give() -> None:
    """One run; it uses what ``make lint`` has kept."""
    api = pytest.importorskip("mypy.api")
    limit = sys.getrecursionlimit()
    try:
        result, errors, status = api.run(
            ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), typed.__file__]
        )
    finally:
        sys.setrecursionlimit(limit)  # mypy raises it, and other tests count on it
    assert (status, errors) == (0, ""), result


@pytest.mark.any_platform
def test_functions_give_what_mypy_knows(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(value: Any, of: Any) -> None:
        alike = get_args(of) if get_origin(of) in (Union, UnionType) else (of,)
        named = [getattr(get_origin(alias), "__value__", alias) for alias in alike]  # of NumPy's aliases from 2.5 on
        # Some results have a type but for cases, or versions of SciPy.
        assert Any in alike or isinstance(value, tuple(get_origin(name) or name for name in named)), of
        seen.append(of)

    monkeypatch.setattr(typed, "assert_type", look)
    S = sp.csr_array(np.array([[1, 2, 0], [0, 3, 0], [4, 0, 5]], np.float32))
    A, host = csr_array(S, queue=queue), np.ones(3, np.float32)
    x, X = (cl_array.to_device(queue, array) for array in (host, np.ones((3, 2), np.float32)))
    keys, ptr = (cl_array.to_device(queue, np.arange(n, dtype=np.int32)) for n in (3, 4))
    typed.products(A, x, X, host)
    typed.products_of_other_formats(A, x, host)
    typed.sparse_products(A, profile=False)
    typed.matrices(A)
    square = cl_array.to_device(queue, np.ones((3, 3), np.float32))
    typed.entries(A, square, x, host)
    typed.arrays(ptr, keys)
    typed.parts(A, x, host)
    typed.of_other_formats(A)
    typed.systems(csr_array(sp.diags_array(np.array([1, 2, 3], np.float32)), queue=queue), x, host)
    typed.check_constructions(A)
    # Loops: of 2, 11, 4 with 12 lines, 11, 7, 5, 4, 4, 2 and 3.
    assert len(seen) == Path(typed.__file__).read_text().count("assert_type(") + 1 + 10 + 12 * 3 + 10 + 6 + 4 + 3 + 3 + 1 + 2


def test_types_of_names_are_the_names() -> None:
    assert get_args(Method) == ("auto", *METHODS)
    assert get_args(ProductMethod) == ("auto", *PRODUCT_METHODS)


def test_types_of_semirings_are_what_is_understood() -> None:
    understood = []
    for plus, times in itertools.product(ADDITIONS, MULTIPLICATIONS):
        with contextlib.suppress(ValueError):
            understood.append(Semiring(cast("SemiringName", f"{plus}_{times}")).name)
    assert list(get_args(SemiringName)) == understood
    assert set(SEMIRINGS) <= set(understood)
    logical = {name: Semiring(name).name for name in get_args(LogicalName)}
    assert len(set(logical.values())) == len(logical) == 3 * len(MULTIPLICATIONS)
    assert {name.replace("lor", "or").replace("land", "and").replace("lxor", "xor") for name in logical} == set(logical.values())


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^semiring: must be one of plus, .*, is 'best'"):
        Semiring("best_plus")
    with pytest.raises(ValueError, match=r"^scheme: must be one of single, fine, coarse, hybrid, is 'best'"):
        Scheme("best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^scheme: the granularity of 'fine' must be from 1 to 1, is 2"):
        Scheme("fine", 2)
    with pytest.raises(ValueError, match=r"^scheme: the granularity of 'coarse' must be from 1 to .*, is 0"):
        Scheme("coarse", 0)
