"""Programs as users of SciPy have them: each gives the same with `scipy.sparse` and with `clsparse_py` in its place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py._arrays.base import SparseArray
from clsparse_py._device.device import describe

pytestmark = pytest.mark.any_platform


def web(sp: ModuleType, n: int = 300) -> Any:
    return sp.random_array((n, n), density=0.02, format="csr", rng=np.random.default_rng(0))


def laplacian(sp: ModuleType, n: int = 12) -> Any:
    """Return the five-point Laplacian of an n x n grid."""
    T = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    return (sp.kron(T, sp.eye_array(n)) + sp.kron(sp.eye_array(n), T)).tocsr()


def rank_of_pages(sp: ModuleType) -> Any:
    """Rank pages by power iteration."""
    A = web(sp)
    degrees = A.sum(axis=1)
    share = np.where(degrees > 0, 1 / np.maximum(degrees, 1e-300), 0)
    P = (sp.diags_array(share) @ A).T.tocsr()
    x = np.full(A.shape[0], 1 / A.shape[0])
    for _ in range(60):
        y = 0.85 * (P @ x)
        x = y + (1 - y.sum()) / A.shape[0]
    return x


def by_conjugate_gradients(sp: ModuleType) -> Any:
    """Solve with the Laplacian, preconditioned by its diagonal, by hand and by a library."""
    A = laplacian(sp)
    M, b = sp.diags_array(1 / A.diagonal()), np.ones(A.shape[0])
    x = np.zeros_like(b)
    r = b - A @ x
    p = z = M @ r
    for _ in range(60):
        q = A @ p
        step = (r @ z) / (p @ q)
        x, r, old = x + step * p, r - step * q, r @ z
        z = M @ r
        if np.linalg.norm(r) < 1e-12:
            break
        p = z + (r @ z) / old * p
    return x, sp.linalg.cg(A, b, M=M, rtol=1e-12)[0], float(sp.linalg.norm(A)), abs(A).sum(axis=1)


def finite_elements(sp: ModuleType) -> Any:
    """Assemble a stiffness matrix of coordinates with duplicates, take the inner nodes, and solve."""
    n = 101
    h, left = 1 / (n - 1), np.arange(n - 1)
    rows, columns = np.concatenate([left, left, left + 1, left + 1]), np.concatenate([left, left + 1, left, left + 1])
    values = np.repeat([1 / h, -1 / h, -1 / h, 1 / h], n - 1)
    K = sp.csr_array((values, (rows, columns)), shape=(n, n))
    inner = np.arange(1, n - 1)
    K_inner = K[inner][:, inner]
    return sp.linalg.spsolve(K_inner.tocsc(), np.full(n - 2, h)), K_inner


def triangles(sp: ModuleType) -> Any:
    """Count the triangles of a graph."""
    A = ((web(sp) + web(sp).T) != 0).astype(np.int64).tocsr()
    A.setdiag(0)
    A.eliminate_zeros()
    return int(A.multiply(A @ A).sum()) // 6, A


def words(sp: ModuleType) -> Any:
    """Weigh words by how rare they are, scale documents to length 1, and find the nearest of each."""
    counts = sp.csr_array((abs(web(sp)) * 10).astype(np.int64))
    idf = np.log(counts.shape[0] / (1 + counts.count_nonzero(axis=0)))
    weights = counts.multiply(idf[None, :]).tocsr()
    lengths = np.sqrt(weights.multiply(weights).sum(axis=1))
    scaled = sp.diags_array(1 / np.maximum(lengths, 1)) @ weights
    alike = (scaled @ scaled.T).tocsr()
    alike.setdiag(0)
    return alike.max(axis=1).toarray(), np.asarray(alike.argmax(axis=1))


def blocks(sp: ModuleType) -> Any:
    """Put together a saddle point problem, and look at its parts."""
    A, B = laplacian(sp, 6), web(sp)[:5, :36]
    S = sp.block_array([[A, B.T], [B, None]], format="csr")
    lower, upper = sp.tril(S, format="csr"), sp.triu(S, k=1, format="csr")
    rows, columns, values = sp.find(S)
    both = sp.vstack([lower, upper]), sp.hstack([lower, upper])
    return S, (lower + upper - S).count_nonzero(), rows, columns, values, *both, sp.csgraph.connected_components(A)[0]


def markov_chain(sp: ModuleType) -> Any:
    """Let a chain run for some steps, and cut off what is unlikely."""
    P = web(sp) + sp.eye_array(300)
    P = P.multiply(1 / P.sum(axis=1)[:, None]).tocsr()
    for _ in range(2):
        P = P @ P
        P.data[:] *= 1.0
        P = P.multiply(P > 1e-3).tocsr()
    return P, P.nnz, P.power(2).sum(), (P**2).mean(), P.trace()


PROGRAMS = (rank_of_pages, by_conjugate_gradients, finite_elements, triangles, words, blocks, markov_chain)

#: A, B: csr arrays of 60 x 60; x: ones; sp: the package. The value is that of the last line.
EXPRESSIONS = (
    "A + B", "2 * A", "A / 2", "abs(A)", "-A", "A.multiply(B)", "A.multiply(x[:, None])", "A.power(2)", "A - 2 * B",
    "0.5 * (A + A.T)", "A.dot(B)", "A @ x", "x @ A", "A @ np.eye(60)", "A @ B @ A", "A.sqrt()", "A.minimum(B)",
    "A.maximum(0.5)", "A.sign()", "A.imag", "A.conj()", "A.expm1()", "A.floor()", "A == B", "A != B", "A < 0.5",
    "(A != A.T).nnz", "A.astype(bool)", "A.count_nonzero()", "A.ndim", "A.sum(axis=0)", "A.sum(axis=1)",
    "A.mean(axis=0)", "A.max()", "A.min(axis=0)", "A.argmax(axis=0)", "A.diagonal()", "A.diagonal(k=2)", "A.trace()",
    "sp.linalg.norm(A)", "sp.linalg.norm(A, 1)", "A[3, 4]", "A[3]", "A[:, 3]", "A[2:10]", "A[2:10, 5:20]", "A[::2]", "A[::-1]",
    "A[[1, 5, 7]]", "A[:, [4, 2, 4]]", "A[np.ix_([1, 2], [3, 4])]", "A[x > 0]", "A[-1]", "A[[0, 1], [2, 3]]", "A[A > 0.5]",
    "A[..., 2]", "A.T", "A.tocsc()", "A.tocoo()", "A.todense()", "A.asformat('csc')", "A.T.tocsr()", "A.sorted_indices()",
    "sp.csc_array(A)", "sp.coo_array(A)", "sp.csr_array(A.tocoo())", "A.reshape(30, 120)", "sp.issparse(A)",
    "sp.vstack([A, B])", "sp.hstack([A, B], format='csc')", "sp.block_array([[A, None], [None, B]])", "sp.tril(A)",
    "sp.triu(A, 1)", "sp.find(A)", "sp.kron(A, sp.eye_array(2))", "sp.kronsum(A, B)", "sp.block_diag([A, B])",
    "sp.eye_array(60) - A", "sp.linalg.aslinearoperator(A) @ x", "sp.linalg.gmres(A + 60 * sp.eye_array(60), x)[1]",
    "sp.linalg.expm_multiply(A, x)", "sp.linalg.inv(sp.csc_array(A + 60 * sp.eye_array(60))).toarray()",
    "sp.linalg.splu((A + 60 * sp.eye_array(60)).tocsc()).solve(x)", "sp.csgraph.connected_components(A)[0]",
    "sp.csgraph.shortest_path(A)", "sp.linalg.matrix_power(A, 3)", "np.abs(A)", "np.sqrt(A)", "np.sin(A)", "A.copy()",
    "list(A)[2]", "A.nonzero()", "A.matvec(x) if hasattr(A, 'matvec') else A @ x", "A.T @ x", "A.T @ A", "x @ A @ x",
    "sp.diags_array(x) @ A", "A @ sp.diags_array(x)", "A.multiply(x)", "A / x[:, None]", "A > B", "A.nanmax(axis=1)",
)  # fmt: skip
#: These change A: the value is A.
STATEMENTS = (
    "A[0, 0] = 5.0", "A[2] = 1.0", "A[:, 3] = 0.0", "A[[1, 2], [3, 4]] = [7, 8]", "A[A > 0.5] = 0.5", "A.setdiag(1.0)",
    "A.setdiag(x, k=1)", "A.resize((40, 70))", "A.eliminate_zeros()", "A.sum_duplicates()", "A.sort_indices()", "A *= 2",
    "A /= 2", "A += B", "A -= B", "A.data *= 2", "A.data = A.data * 2",
)  # fmt: skip


def same(result: Any, wanted: Any, what: str) -> None:
    """Check that two results are alike: formats, shapes, dtypes and values."""
    if isinstance(wanted, (tuple, list)):
        assert len(result) == len(wanted), what
        for one, other in zip(result, wanted, strict=True):
            same(one, other, what)
        return
    if scipy.sparse.issparse(wanted):
        assert isinstance(result, SparseArray), what
        assert result.format == {"dia": "csr", "bsr": "csr"}.get(wanted.format, wanted.format), what
        result, wanted = result.toarray(), wanted.toarray()
    result = result.get() if isinstance(result, cl_array.Array) else result
    assert np.shape(result) == np.shape(wanted), what
    assert np.asarray(result).dtype.kind == np.asarray(wanted).dtype.kind, what
    np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12, err_msg=what)


@pytest.fixture
def wide(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a queue of a device with double precision the default one."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    for module in ("_matrix.placement", "_arrays.functions.operands", "_arrays.functions.diagonals", "_device.device"):
        monkeypatch.setattr(f"clsparse_py.{module}.default_queue", lambda: queue)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[[ModuleType], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program(clsparse_py), program(scipy.sparse), program.__name__)


def evaluate(sp: ModuleType, text: str, *, is_statement: bool) -> Any:
    """Return the value of an expression, or A after a statement."""
    A, B = (sp.random_array((60, 60), density=0.1, format="csr", rng=np.random.default_rng(seed)) for seed in (1, 2))
    names = {"A": A, "B": B, "x": np.ones(60), "sp": sp, "np": np}
    if not is_statement:
        return eval(text, names)
    exec(text, names)
    return names["A"]


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("is_statement", [False, True])
def test_expressions(is_statement: bool) -> None:
    wrong = []
    for text in STATEMENTS if is_statement else EXPRESSIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = evaluate(scipy.sparse, text, is_statement=is_statement)
            try:
                same(evaluate(clsparse_py, text, is_statement=is_statement), wanted, text)
            except Exception as error:
                wrong.append(f"{text}: {type(error).__name__}: {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
