"""Semirings by the names of their operations, and by expressions in OpenCL C."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pyopencl as cl
import pytest

from clsparse_py import Semiring, csr_array, min_plus, or_and, plus_times, spgemm, spmm, spmv
from clsparse_py._precision.semiring import ADDITIONS, MULTIPLICATIONS

A = np.array([[1, 0, 5], [0, 0, 0], [2, 7, 0]])
X = np.array([10, 20, 3])


def test_names() -> None:
    assert Semiring("lor_land") == or_and
    assert Semiring("land_lxor").name == "and_xor"
    assert repr(Semiring("max_min")) == "semiring.max_min"
    given = Semiring(plus="max(a, b)", times="a - b", zero=-math.inf, one=0)
    for ring in (given, min_plus, Semiring("any_pair")):
        assert pickle.loads(pickle.dumps(ring)) == ring
    assert given == Semiring(plus="max(a, b)", times="a - b", zero=-math.inf, one=0)
    assert given != Semiring(plus="max(a, b)", times="a - b", zero=0, one=0)
    assert given.unit(np.dtype(float)) == 0
    assert min_plus.unit(np.dtype(np.int32)) == 0


def test_what_is_no_semiring() -> None:
    for error, message, named in (
        (ValueError, r"^semiring: must be one of plus, .*is 'minus'", {"name": "minus_times"}),
        (ValueError, r"^semiring: must be one of times, .*is ''", {"name": "plus"}),
        (ValueError, r"^semiring: and is of truth values", {"name": "plus_and"}),
        (TypeError, r"^semiring: must be a name, is int", {"name": 3}),
        (ValueError, r"^semiring: takes a name or expressions", {"name": "min_plus", "plus": "a", "times": "b"}),
        (ValueError, r"^semiring: times is missing", {"plus": "a + b"}),
        (ValueError, r"^semiring: plus must be one expression in OpenCL C, has ';'", {"plus": "a; b", "times": "a"}),
        (TypeError, r"^semiring: zero must be a real number", {"plus": "a + b", "times": "a", "zero": "0"}),
        (ValueError, r"^semiring: zero and one belong to the expressions", {"name": "min_plus", "zero": 0}),
    ):
        with pytest.raises(error, match=message):
            Semiring(**named)
    with pytest.raises(ValueError, match=r"^semiring: zero is 0.5, which int32 does not hold"):
        Semiring(plus="a + b", times="a", zero=0.5).identity(np.dtype(np.int32))
    with pytest.raises(ValueError, match=r"has no identity of multiplication"):
        Semiring("plus_first").unit(np.dtype(float))


def test_identities_of_all_names() -> None:
    for dtype in (np.dtype(np.int16), np.dtype(np.float32), np.dtype(bool)):
        for plus in ADDITIONS:
            for times in MULTIPLICATIONS:
                if times not in ("or", "and", "xor") or plus in ("or", "and", "xor"):
                    assert np.asarray(Semiring(f"{plus}_{times}").identity(dtype)).dtype == dtype


def test_products(queue: cl.CommandQueue) -> None:
    D = csr_array(A, queue=queue)
    low = np.iinfo(A.dtype).min
    for ring, wanted in (
        ("max_plus", [11, low, 27]), ("plus_first", [6, 0, 9]), ("plus_second", [13, 0, 30]), ("min_max", [5, 2**63 - 1, 10]),
        ("any_pair", [1, 0, 1]), ("plus_min", [4, 0, 9]),
    ):  # fmt: skip
        result = spmv(D, X, semiring=Semiring(ring))
        assert result.dtype == A.dtype
        assert result.tolist() == wanted, ring
    assert spmv(D, X, semiring=Semiring("xor_and")).tolist() == [False, False, False]
    given = Semiring(plus="min(a, b)", times="a + b", zero=math.inf)
    for dtype in (np.int32, np.float32):
        typed = D.astype(dtype)
        np.testing.assert_array_equal(
            spmv(typed, X.astype(dtype), semiring=given), spmv(typed, X.astype(dtype), semiring=min_plus)
        )
    both = np.stack((X, X[::-1]), axis=1)
    np.testing.assert_array_equal(spmm(D, both, semiring=given), spmm(D, both, semiring=min_plus))
    assert (spgemm(D, D, semiring=given).get() != spgemm(D, D, semiring=min_plus).get()).nnz == 0
    assert spgemm(D, D, mask=D, semiring=Semiring(plus="a > b ? a : b", times="a * b")).toarray().tolist() == [
        [10, 0, 5], [0, 0, 0], [2, 0, 0],
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_expressions_that_do_not_compile(queue: cl.CommandQueue) -> None:
    D = csr_array(A, queue=queue)
    wrong = Semiring(plus="a + b", times="a +* c", zero=0)
    for product in (
        lambda: spmv(D, X, semiring=wrong),
        lambda: spgemm(D, D, semiring=wrong),
        lambda: spgemm(D, D, mask=D, semiring=wrong),
    ):
        with pytest.raises(
            ValueError, match=r"(?s)^semiring: .*does not compile for int64.*T MULTIPLY\(T a, T b\) \{ return a \+\* c; \}.*error"
        ):
            product()


def test_an_identity_is_needed(queue: cl.CommandQueue) -> None:
    D, ring = csr_array(A, queue=queue), Semiring(plus="min(a, b)", times="a + b")
    for product in (
        lambda: spmv(D, X, semiring=ring),
        lambda: spgemm(D, D, semiring=ring),
        lambda: spmm(D, X[:, None], semiring=ring),
    ):
        with pytest.raises(ValueError, match=r"^semiring: needs zero, the identity of plus"):
            product()
    assert spgemm(D, D, mask=D, semiring=ring).toarray()[0, 0] == 2
    complex_one = D.astype(np.complex64)
    with pytest.raises(TypeError, match="orders its values"):
        spgemm(complex_one, complex_one, mask=D, semiring=ring)
    assert spmv(D, X, semiring=plus_times).tolist() == (A @ X).tolist()
