"""Values and the structure that they belong to: put together in one place, and nowhere by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csr_array

PACKAGE = Path(clsparse_py.__file__).parent
#: Attributes of a structure.
_OF_STRUCTURE = ("indices", "indptr", "structure")
#: Attributes of values.
_OF_VALUES = ("data",)
#: Who puts values and a structure together; and who compares two results, part by part.
_EXEMPT = ("_matrix/matrix.py",)


def _pairs(source: str) -> Iterator[tuple[int, str]]:
    """Return where a source puts values and structure of two objects together, or does by hand what a method does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            given = {
                argument.arg: ast.unparse(argument.annotation or ast.Name(""))
                for argument in (*node.args.args, *node.args.kwonlyargs)
            }
            loose = [name for name in ("values", "data") if "Array" in given.get(name, "")]
            if loose and "Matrix" in given.values():
                yield node.lineno, f"{node.name}({', '.join(given)})"
            continue
        if isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            parts = [inner for part in parts for inner in (part.elts if isinstance(part, ast.Tuple) else [part])]
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = node.elts
        else:
            continue
        owners: dict[bool, set[str]] = {True: set(), False: set()}
        for part in parts:
            if isinstance(part, ast.Attribute) and part.attr.removeprefix("_") in (*_OF_STRUCTURE, *_OF_VALUES):
                of = ast.unparse(part.value).removesuffix(".structure").removesuffix("._structure")
                owners[part.attr.removeprefix("_") in _OF_VALUES].add(of)
        if owners[True] and owners[False] and owners[True] != owners[False]:
            yield node.lineno, ast.unparse(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        first = node.args[0]
        if node.func.attr == "assembled" and isinstance(first, ast.Attribute) and first.attr == "structure":
            yield node.lineno, ast.unparse(node)


def test_values_and_structures_of_different_objects_never_meet() -> None:
    assert [*_pairs("f(a.data, b.indices, b.indptr)")], "calls are seen"
    assert [*_pairs("parts = a.data, b.structure.indices")], "and tuples"
    assert [*_pairs("C = A.assembled(A.structure, values)")], "and what `with_values` is for"
    assert [*_pairs("def solver(queue: Queue, A: Matrix, values: Array | None): ...")], "and functions that take both apart"
    assert not [*_pairs("f(queue, (a.data, a.indices, a.indptr), b.data.dtype)")]
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() not in _EXEMPT:
            wrong = [*_pairs(path.read_text())]
            assert not wrong, f"{path}: use Matrix.with_values, sharing or parts: {wrong}"


def test_other_values_have_the_structure_and_its_plans(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array((np.float32([1, 2, 3, 4]), np.int32([2, 0, 0, 1]), np.int32([0, 2, 4])), shape=(2, 3))
    A = csr_array(host, queue=queue)
    for dtype in (np.float32, np.int64, np.complex64):
        values = np.array([5, 6, 7, 8], dtype)
        B = A.with_values(cl_array.to_device(queue, values))
        assert B.structure is A.structure
        assert B.spmv_plan() is A.with_values(B.data).spmv_plan()
        # Products of each dtype: a plan is chosen for one.
        x = np.arange(3, dtype=dtype)
        np.testing.assert_array_equal(B @ x, scipy.sparse.csr_array((values, host.indices, host.indptr), shape=(2, 3)) @ x)
    np.testing.assert_array_equal(A.toarray(), host.toarray())
    with pytest.raises(ValueError, match=r"^values: must have the 4 entries of the matrix, has 3$"):
        A.with_values(cl_array.to_device(queue, np.zeros(3, np.float32)))


def test_plans_refuse_values_of_a_matrix_that_has_another_structure_by_now(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array((np.float32([1, 2, 3, 4]), np.int32([2, 0, 0, 1]), np.int32([0, 2, 4, 4])), shape=(3, 3))
    for change in (lambda A: A.sort_indices(), lambda A: A.setdiag(9)):
        A, B = csr_array(host, copy=True, queue=queue), csr_array(host, copy=True, queue=queue)
        multiply, masked = clsparse_py.spgemm_plan(A, B), clsparse_py.spgemm_plan(B, B, mask=A, structural=False)
        transpose, wanted = clsparse_py.transpose_plan(A), A.T.toarray()
        np.testing.assert_array_equal(transpose(A.data).toarray(), wanted)
        multiply(a_data=A.data), masked(mask_data=A.data)
        change(A)
        for plan, name in ((multiply, "a_data"), (masked, "mask_data"), (transpose, "data")):
            with pytest.raises(ValueError, match=f"^{name}: the matrix has other indices than were planned for"):
                plan(**{name: A.data})
        # The values that were planned with, and others that come with no matrix, are in the order of its entries then.
        np.testing.assert_array_equal(transpose().toarray(), wanted)
        np.testing.assert_array_equal(transpose(2 * host.data).toarray(), 2 * wanted)
