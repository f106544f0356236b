"""Expressions of several operations, put together by Hypothesis, against SciPy: formats, shapes, dtypes and values."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis
import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from hypothesis import strategies as st

import clsparse_py
from clsparse_py._arrays.base import SparseArray
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform

#: Of A, B and C.
DTYPES = (("float64", "int64", "float64"), ("int64", "int64", "bool"))
#: Side of the square matrices, so that all operations go together.
N = 7
#: Of one operand, which is called x; S is the package.
UNARY = (
    "{x}.T", "{x}.tocsr()", "{x}.tocsc()", "{x}.tocoo()", "abs({x})", "(-{x})", "({x} * 2)", "{x}.conj()", "{x}[::-1]",
    "{x}[:, [6, 0, 2, 1, 5, 4, 3]]", "{x}[[0, 0, 3, 2, 6, 5, 1]]", "{x}.multiply(w)", "{x}.maximum(1)", "({x} > 1)",
    "({x} != 0)", "S.tril({x}, 1)", "S.triu({x}, format='csr')", "{x}.power(2)", "{x}.copy()", "{x}.astype('float32')",
    "{x}.reshape(N, N)", "S.permute_dims({x})", "({x} * 0)", "{x}.sign()",
)  # fmt: skip
BINARY = (
    "{x} + {y}", "{x} - {y}", "{x}.multiply({y})", "{x} @ {y}", "{x}.maximum({y})", "{x}.minimum({y})", "({x} != {y})",
    "({x} < {y})",
)  # fmt: skip
#: At the end: those whose result is no square matrix.
LAST = (
    "{x}", "{x}", "{x}", "{x}.sum(axis=0)", "{x}.max(axis=1)", "{x}.argmax(axis=0)", "{x} @ v", "v @ {x}", "{x}[2]",
    "{x}[:, 3]", "{x}[1:5, ::2]", "S.hstack([{x}, {x}])", "S.vstack([{x}, {x}.T])", "S.kron({x}, {x}, format='csr')",
    "{x}.diagonal(1)", "S.find({x})", "{x}.count_nonzero()", "{x}.toarray()", "S.block_diag([{x}, {x}])", "{x}.mean()",
    "{x}[{x} > 1]", "{x} + D", "{x}.todense()",
)  # fmt: skip

#: These change A.
STATEMENTS = (
    "A[2] = 3", "A[:, 1] = 0", "A[1:4, ::2] = 2", "A[[0, 3], [5, 5]] = [4, 7]", "A[6, 6] += 1", "A[A > 1] = 1", "A.setdiag(2)",
    "A.setdiag(w, k=1)", "A *= 2", "A += B", "A -= C.tocsr()", "A.eliminate_zeros()", "A.sum_duplicates()", "A.sort_indices()",
    "A = A.T", "A = A.tocsr()", "A.data = A.data * 2", "A[::-1, 2] = w", "A[3:5] = B[1:3]", "A = A @ B", "A = A.tocsc()",
)  # fmt: skip


def expressions() -> st.SearchStrategy[str]:
    """Return expressions of A, B and C."""

    def longer(shorter: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        unary = st.builds(lambda form, x: form.format(x=x), st.sampled_from(UNARY), shorter)
        binary = st.builds(lambda form, x, y: f"({form.format(x=x, y=y)})", st.sampled_from(BINARY), shorter, shorter)
        return unary | binary

    whole = st.recursive(st.sampled_from(("A", "B", "C")), longer, max_leaves=4)
    return st.builds(lambda form, x: form.format(x=f"({x})"), st.sampled_from(LAST), whole)


def matrices(seed: int, dtypes: tuple[str, ...]) -> dict[str, Any]:
    """Return three small matrices of different formats; B has duplicates and is unsorted."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, dtype, form in zip("ABC", dtypes, ("csr", "csr", "csc"), strict=True):
        row, col = rng.integers(0, N, (2, 14))
        values = rng.integers(-3, 4, 14).astype(dtype)
        if name == "B":
            order = np.argsort(row, kind="stable")
            indptr = np.append(0, np.cumsum(np.bincount(row, minlength=N)))
            made[name] = scipy.sparse.csr_array((values, col[order], indptr), shape=(N, N))
        else:
            made[name] = scipy.sparse.coo_array((values, (row, col)), shape=(N, N)).asformat(form)
    return made


def value_of(expression: str, module: Any, operands: dict[str, Any]) -> Any:
    """Return the value of an expression, or its error."""
    others = {"S": module, "N": N, "v": np.arange(1, N + 1), "w": np.arange(N), "D": np.ones((N, N), np.int64)}
    try:
        return eval(expression, {**operands, **others})
    except (ValueError, TypeError, NotImplementedError) as error:
        return error


def assert_same(result: Any, wanted: Any) -> None:
    if isinstance(wanted, Exception):
        assert isinstance(result, Exception)
    elif isinstance(wanted, tuple):
        # Of `find`: SciPy's indices are wider if there are none.
        for one, other in zip(result, wanted, strict=True):
            assert one.dtype.kind == other.dtype.kind
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    elif scipy.sparse.issparse(wanted):
        assert isinstance(result, SparseArray)
        assert (result.format, result.shape, result.dtype) == (wanted.format, wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result.toarray(), wanted.toarray(), rtol=1e-6, atol=1e-9)
    else:
        assert np.asarray(result).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-9)


@hypothesis.settings(max_examples=40)
@hypothesis.given(
    expressions(), st.integers(0, 99), st.sampled_from((("float64", "int64", "float64"), ("int64", "int64", "bool")))
)
def test_expressions_of_several_operations(queue: cl.CommandQueue, expression: str, seed: int, dtypes: tuple[str, ...]) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    host = matrices(seed, dtypes)
    on_device = {name: getattr(clsparse_py, f"{matrix.format}_array")(matrix, queue=queue) for name, matrix in host.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(value_of(expression, clsparse_py, on_device), value_of(expression, scipy.sparse, host))


def after(statements: list[str], module: Any, operands: dict[str, Any]) -> Any:
    """Return A after some statements, and what a product with it and one with its transposed give after each."""
    names = {**operands, "S": module, "w": np.arange(N), "v": np.arange(1, N + 1)}
    seen = []
    for statement in statements:
        exec(statement, names)
        seen += [names["A"] @ names["v"], names["A"].T @ names["v"], names["A"].toarray()]
    return names["A"], seen


@hypothesis.settings(max_examples=20)
@hypothesis.given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=5), st.integers(0, 99))
def test_statements_one_after_another(queue: cl.CommandQueue, statements: list[str], seed: int) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    host = matrices(seed, DTYPES[0])
    on_device = {name: getattr(clsparse_py, f"{matrix.format}_array")(matrix, queue=queue) for name, matrix in host.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (result, of_found), (wanted, of_wanted) = after(statements, clsparse_py, on_device), after(statements, scipy.sparse, host)
    assert_same(result, wanted)
    for one, other in zip(of_found, of_wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
