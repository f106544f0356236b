"""What is measured: operations and inputs by name, references, bounds and floors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bench import problems
from bench.problems import primitives, spgemm, sptrsv
from bench.problems.base import WrongResultError
from clsparse_py._primitives import reference


def test_the_bound_of_a_product_allows_for_rounding_alone() -> None:
    task = problems.make("webbase_100k", "spmv", "float32")
    # Summed backwards: another order, the same bound.
    backwards = task.matrix[:, ::-1] @ task.x[::-1]
    assert 0 < task.error((backwards,)) <= 1
    longest = int(np.argmax(np.diff(task.matrix.indptr)))
    backwards[longest] += 4 * task.bound[longest]
    with pytest.raises(WrongResultError, match=f"row {longest}"):
        task.error((backwards,))


@pytest.mark.parametrize("dtype", problems.DTYPES)
def test_a_transposed_is_read_and_written_once(dtype: str) -> None:
    task = problems.make("long_rows_40_tenth", "sptrans", dtype)
    a = task.matrix
    assert a.dtype == dtype
    assert task.minimal_bytes == 2 * ((a.shape[0] + 1) * 4 + a.nnz * (4 + np.dtype(dtype).itemsize))
    indptr, indices, data = task.reference
    transposed = a.T.tocsr()
    assert task.error((transposed.indptr, transposed.indices, transposed.data)) == 0
    for part in range(3):
        wrong = [indptr.copy(), indices.copy(), data.copy()]
        wrong[part][7] += 1
        with pytest.raises(WrongResultError, match=f"1 of .* array {part} .* element 7"):
            task.error(tuple(wrong))
    with pytest.raises(WrongResultError, match="needs int32"):
        task.error((indptr, indices))


@pytest.mark.parametrize("operation", problems.GROUPS["elementwise"])
def test_operators_and_reductions_are_right_if_they_are_as_the_reference(operation: str) -> None:
    made = problems.make("rmat12", operation, "float32")
    right = tuple(part.astype(np.float32) if part.dtype == np.float64 else part.copy() for part in made.reference)
    assert made.error(right) <= 1
    assert made.minimal_bytes >= made.matrix.data.nbytes
    right[-1][3] += 1
    with pytest.raises(WrongResultError):
        made.error(right)


def test_triangles_and_products_at_places() -> None:
    counted = problems.make("rmat12", "triangles", "float32")
    closed = (counted.matrix.astype(np.int64) @ counted.matrix.astype(np.int64)).multiply(counted.matrix).sum()
    assert counted.reference[0].tolist() == [closed // 6]
    assert counted.edges.nnz == counted.ordered.nnz == counted.matrix.nnz // 2
    assert sp.tril(counted.ordered).nnz == 0
    made = problems.make("fd3d7_40", "sddmm_16", "float32")
    rows = np.repeat(np.arange(made.matrix.shape[0]), np.diff(made.matrix.indptr))
    result = np.einsum("ek,ek->e", made.X[rows], made.Z[made.matrix.indices])
    assert 0 < made.error((result,)) <= 1
    result[9] += 1
    with pytest.raises(WrongResultError, match="value 9"):
        made.error((result,))


@pytest.mark.parametrize("operation", sptrsv.OPERATIONS)
@pytest.mark.parametrize("dtype", problems.DTYPES)
def test_solutions_with_a_triangle_are_right_by_their_residuals(operation: str, dtype: str) -> None:
    made = problems.make("rmat12", operation, dtype)
    L = made.matrix
    assert sp.triu(L, 1).nnz == 0
    assert made.minimal_bytes == (L.shape[0] + 1) * 4 + L.nnz * (4 + np.dtype(dtype).itemsize) + 2 * made.b.nbytes
    result = sp.linalg.spsolve_triangular(L.astype(np.float64), made.b.astype(np.float64))
    np.testing.assert_allclose(result, made.reference[0], rtol=1e-3, atol=1e-5)
    result = result.astype(dtype)
    assert made.error((result,)) <= 1
    result[7] += 1
    with pytest.raises(WrongResultError, match=r"row \d+: .* times"):
        made.error((result,))


@pytest.mark.parametrize("task", [("rmat12", "spgemm"), ("PTAP(fd2d5_256)", "amg")], ids=" ".join)
def test_a_product_of_matrices_is_right_in_any_order_of_summation(task: tuple[str, str]) -> None:
    made = problems.make(*task, "float32")
    a, b = made.matrix, made.right
    assert made.described()["products"] == np.diff(b.indptr)[a.indices].sum()
    assert made.described()["entries"] == made.reference[1].size
    # Taken apart by columns of A: another order, the same bound.
    halves = [(a[:, part] @ b[part]).astype(np.float64) for part in (slice(None, None, 2), slice(1, None, 2))]
    result = made.with_cancelled(_parts((halves[0] + halves[1]).astype(np.float32)))
    assert 0 < made.error(result) <= 1
    indptr, indices, values = (part.copy() for part in result)
    values[7] += 4 * made.bound[7] + 1e-3
    with pytest.raises(WrongResultError, match=r"1 of \d+ values are off; value 7"):
        made.error((indptr, indices, values))
    indices[5] += 1
    with pytest.raises(WrongResultError, match="indices: 1 of"):
        made.error((indptr, indices, result[2]))
    with pytest.raises(WrongResultError, match="needs int32"):
        made.error(result[:2])


def _parts(matrix: sp.csr_array) -> tuple[np.ndarray, ...]:
    return matrix.indptr, matrix.indices, matrix.data


def test_what_cancels_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    a = sp.csr_array(np.array([[1.0, 1.0], [1.0, -1.0]]))
    monkeypatch.setattr(spgemm, "load", lambda _: a)
    made = problems.make("a", "spgemm", "float64")
    assert made.reference[1].tolist() == [0, 1, 0, 1]
    assert made.reference[2].tolist() == [2, 0, 0, 2]
    assert made.minimal_bytes == 3 * (3 * 4 + 4 * (4 + 8))
    product = a @ a
    product.eliminate_zeros()
    assert made.error(made.with_cancelled(_parts(product))) == 0
    with pytest.raises(WrongResultError, match=r"needs int32 \(3,\), int32 \(4,\)"):
        made.error(_parts(product))


def test_products_of_multigrid_have_names() -> None:
    tasks = problems.tasks(["amg"], ["a"], ["float64"], "paper-amg", cpu=True)
    assert tasks == [("AP(a)", "amg", "float64"), ("PTAP(a)", "amg", "float64")]
    with pytest.raises(ValueError, match=r"needs one of AP\(matrix\), PTAP\(matrix\)"):
        problems.make("a", "amg", "float64")


@pytest.mark.parametrize("task", problems.tasks(problems.PRIMITIVES, [], [], "quick", cpu=True), ids=" ".join)
def test_references_of_the_primitives_are_those_of_the_library(task: problems.Task) -> None:
    name, operation, dtype = task
    made = problems.make(name.replace("1e5", "3e3"), operation, dtype)
    expected = getattr(reference, operation)(**made.operands)
    assert made.error(expected if isinstance(expected, tuple) else (expected,)) == 0
    assert made.sizes["elements"] == 3000
    assert made.minimal_bytes > 0
    again = problems.make(made.input, operation, dtype)
    assert again.error(made.reference) == 0


def test_half_of_a_skewed_input_is_one_segment() -> None:
    for operation in ("segmented_sum", "segmented_merge"):
        operands = problems.make("skewed_1e5", operation, next(iter(primitives.PRIMITIVES[operation].makes))).operands
        pointer = operands["segment_ptr"]
        bounds = operands.get("subsegment_ptr", np.arange(pointer[-1] + 1))[pointer]
        assert bounds[:2].tolist() == [0, 50_000]
        assert (np.diff(bounds) > 0).all()


def test_merges_take_rounds_by_their_subsegments() -> None:
    sizes = problems.make("uniform_32e3", "segmented_merge", "uint32-uint32").sizes
    assert sizes == {"elements": 32_000, "segments": 2, "subsegments": 32, "rounds": 4.0}
    # Sixteen thousand elements in one segment take four rounds, and the others, in one of sixteen pieces, four as well.
    assert problems.make("skewed_32e3", "segmented_merge", "uint32-uint32").sizes["rounds"] == 4.0


def test_tasks_are_listed_matrix_by_matrix() -> None:
    operations = problems.expand(["sptrans", "primitives", "spmv"])
    assert operations == ["sptrans", *problems.PRIMITIVES, "spmv"]
    tasks = problems.tasks(operations, ["a", "b"], ["float64", "float32"], "paper", cpu=False)
    assert [task[0] for task in tasks[:8]] == ["a"] * 4 + ["b"] * 4
    assert ("uniform_1e8", "segmented_merge", "uint32-uint32") in tasks
    assert {task[0].rpartition("_")[2] for task in tasks[8:]} == {"1e6", "1e7", "1e8"}


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="dance"):
        problems.expand(["spmv", "dance"])
    with pytest.raises(ValueError, match="int8"):
        problems.tasks(["spmv"], ["a"], ["int8"], "quick", cpu=True)
    with pytest.raises(ValueError, match="odd_1e3"):
        problems.make("odd_1e3", "segmented_sum", "float32")
