"""Attributes of matrices and plans: which can be set; comparison; how they show."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from clsparse_py import csr_array, spgemm_estimate, spgemm_plan, transpose_plan
from clsparse_py._ground.tables import Table

S = sp.csr_array(np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0]], np.float32))


@pytest.mark.parametrize("name", ["shape", "queue", "context", "ndim", "dtype", "nnz", "structure", "T"])
def test_attributes_of_a_matrix_are_read_only(queue: cl.CommandQueue, name: str) -> None:
    A = csr_array(S, queue=queue)
    for change in (lambda: setattr(A, name, None), lambda: delattr(A, name)):
        with pytest.raises(AttributeError, match=name):
            change()
    np.testing.assert_array_equal(A @ np.ones(3, np.float32), S @ np.ones(3))


def test_attributes_of_plans_are_read_only(queue: cl.CommandQueue) -> None:
    A = csr_array(S, queue=queue)
    for plan in (A.spmv_plan(), A.spmm_plan(), transpose_plan(A), spgemm_plan(A, A)):
        public = [name for name in dir(plan) if not name.startswith("_")]
        assert {"queue", "shape", "indptr", "indices"} <= set(public)
        for name in public:
            for change in (lambda: setattr(plan, name, None), lambda: delattr(plan, name)):  # noqa: B023 - called at once
                with pytest.raises(AttributeError, match=rf"^{name}: is read-only, as the \w+Plan relies on it"):
                    change()


def test_what_is_no_array_is_another(queue: cl.CommandQueue) -> None:
    A = csr_array(S, queue=queue)
    assert (A == None, A != None, object() != A) == (False, True, True)  # noqa: E711 - what is tested
    with pytest.raises(TypeError, match="'<' not supported"):
        A < None  # noqa: B015 - what is tested
    assert A in [A]
    with pytest.raises(TypeError, match="unhashable type: 'csr_array'"):
        hash(A)


def test_truth_is_scipys(queue: cl.CommandQueue) -> None:
    with pytest.raises(ValueError, match=r"^truth value: ambiguous, as A is 3 x 3"):
        bool(csr_array(S, queue=queue))
    for one in (sp.csr_array([[2.0]], dtype=np.float32), sp.csr_array((1, 1), dtype=np.float32)):
        assert bool(csr_array(one, queue=queue)) is bool(one)


def test_plans_show_what_they_are(queue: cl.CommandQueue) -> None:
    A, device = csr_array(S, queue=queue), queue.device.name.strip()
    A @ np.ones(3, np.float32)
    shown = [repr(plan) for plan in (A.spmv_plan(), transpose_plan(A), spgemm_plan(A, A))]
    assert shown[0].startswith(f"<SpmvPlan of a 3 x 3 matrix with 4 entries on {device}: ")
    assert shown[1].startswith(f"<TransposePlan of a 3 x 3 matrix with 4 entries on {device}: ")
    assert shown[2] == f"<SpgemmPlan of a 3 x 3 product with {(S @ S).nnz} entries on {device}>"


def test_explanations_show_as_tables(queue: cl.CommandQueue) -> None:
    A = csr_array(S, queue=queue)
    A @ np.ones(3, np.float32)
    plans = {"SpMV: ": A.spmv_plan(), "SpTRANS: ": transpose_plan(A), "SpGEMM, method auto: ": spgemm_plan(A, A)}
    for title, plan in plans.items():
        explanation = plan.explain()
        assert repr(explanation) == str(explanation)
        assert title in repr(explanation)
        assert f"Decided: {explanation.rule}" in repr(explanation)
        shown = explanation._repr_html_()
        assert shown.startswith(f"<table><caption>{title}")
        assert shown.count("<tr>") == 1 + len(explanation.table.rows)


@pytest.mark.any_platform
def test_notebooks_show_matrices_plans_and_estimates_escaped(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A = csr_array(sp.csr_array((1000, 2000), dtype=np.float32), queue=queue)
    device = html.escape(queue.device.name)
    assert A._repr_html_() == (
        "<table><caption>csr_array</caption><thead><tr><th>rows</th><th>columns</th><th>stored entries</th><th>values</th>"
        "<th>indices</th><th>device</th></tr></thead><tbody><tr><td>1,000</td><td>2,000</td><td>0</td><td>float32</td>"
        f"<td>int32</td><td>{device}</td></tr></tbody></table>"
    )
    B = csr_array(S, queue=queue)
    for plan in (B.spmv_plan(), B.transpose_plan(), spgemm_plan(B, B)):
        assert plan._repr_html_() == f"<p>{html.escape(repr(plan))}</p>{plan.explain()._repr_html_()}"
        assert "<p>&lt;" in plan._repr_html_()
        assert "<Spmv" not in plan._repr_html_()
    monkeypatch.setattr(type(B.spmv_plan()), "__repr__", lambda _: "<script>")
    assert B.spmv_plan()._repr_html_().startswith("<p>&lt;script&gt;</p><table>")


@pytest.mark.any_platform
def test_estimates_show_as_tables(queue: cl.CommandQueue) -> None:
    A = csr_array(S, queue=queue)
    counted, bounded = spgemm_estimate(A, A, exact=True), spgemm_estimate(A, A)
    n_products, nnz = counted.n_products, counted.nnz
    assert repr(counted) == str(counted)
    assert "SpGEMM, estimate of a 3 x 3 product: " in one_line(counted)
    assert f": {n_products} products, {nnz} entries; bytes: C {counted.c_bytes}, " in one_line(counted)
    assert f"{n_products} products, at most {bounded.nnz} entries; bytes: C at most {bounded.c_bytes}" in one_line(bounded)
    assert bounded._repr_html_().count("<tr>") == 1 + len(bounded.histogram)
    assert replace(bounded, histogram=((-1, 7),)).table.rows == [("more", "7")]


def one_line(shown: object) -> str:
    """Return what is shown without its line breaks."""
    return " ".join(repr(shown).split())


def test_tables_are_what_they_say() -> None:
    table = Table("a [b]title[/b] & more", ("n", "<what>"), [("1", "[red]x[/red]"), ("22", "<i>")], "x < y", numbers="n")
    text = [line.strip() for line in table.as_text().splitlines()]
    assert [line for line in text if line and "──" not in line] == [
        "a [b]title[/b] & more",
        "n   <what>",
        "1   [red]x[/red]",
        "22   <i>",
        "Decided: x < y",
    ]
    assert table.as_html() == (
        "<table><caption>a [b]title[/b] &amp; more</caption><thead><tr><th>n</th><th>&lt;what&gt;</th></tr></thead>"
        "<tbody><tr><td>1</td><td>[red]x[/red]</td></tr><tr><td>22</td><td>&lt;i&gt;</td></tr></tbody></table>"
        "<p>Decided: x &lt; y</p>"
    )
    assert "Decided" not in Table("a", ("b",), []).as_html()
