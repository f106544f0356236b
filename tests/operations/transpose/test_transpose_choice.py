"""How SpTRANS chooses: labels, the generic profiles on made-up devices, a made-up profile that decides, all that is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from platforms import PLATFORMS
from supposed import suppose

from clsparse_py import csr_array, transpose, transpose_plan
from clsparse_py._device.device import Device, describe
from clsparse_py._operations.transpose.choose import STRATEGIES, Strategy, Thresholds, parse
from clsparse_py._tuner.transpose_tunable import SpTransTunable

TUNABLE = SpTransTunable()
#: Symmetric, but not found at first; symmetric as grids are; any; with fewer entries than columns.
MATRICES = {
    "symmetric": sp.csr_array(sp.random_array((300, 300), density=0.02, rng=np.random.default_rng(1))),
    "grid": sp.csr_array(sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(500, 500))),
    "any": sp.csr_array(sp.random_array((40, 70), density=0.2, rng=np.random.default_rng(2))),
    "wide": sp.csr_array(sp.random_array((20, 900), density=0.01, rng=np.random.default_rng(3))),
}
MATRICES["symmetric"] = sp.csr_array(MATRICES["symmetric"] + MATRICES["symmetric"].T)


@pytest.fixture(autouse=True)
def _none_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are transposed as larger ones are."""
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_at_once=0))


def test_labels_are_what_they_name() -> None:
    assert parse("gather:900 atomics:256 binned") == Strategy((("gather", 900), ("atomics", 256)))
    assert parse("binned") == Strategy()
    assert [str(parse(label)) for label in STRATEGIES] == list(STRATEGIES)


@pytest.mark.parametrize(
    "label",
    ["", "gather", "gather:0", "gather:-1 binned", "gather binned", "gather:x binned", "fast:3 binned",
     "gather:1 gather:2 binned", "binned binned", "binned atomics:3"],
)  # fmt: skip
def test_what_is_no_label(label: str) -> None:
    with pytest.raises(ValueError, match=r"^strategy: (must |the limit of gather must be a number from 0 to 1024)"):
        parse(label)


def make_device(kind: str) -> Device:
    return replace(describe(next(iter(PLATFORMS.values()))), name="made up", platform="made up", vendor="made up", type=kind)


@pytest.mark.parametrize(
    ("kind", "mean_of_columns", "label"),
    [("gpu", 0.5, "gather:0 atomics:256 binned"), ("gpu", 1.0, "gather:0 binned"), ("cpu", 0.5, "gather:0 binned")],
)
def test_generic_profiles(kind: str, mean_of_columns: float, label: str) -> None:
    features = {
        "rows": 10,
        "columns": 10,
        "nnz": 10,
        "mean": 1,
        "mean_of_columns": mean_of_columns,
        "square": 1,
        "value_bytes": 8,
    }
    assert TUNABLE.default(make_device(kind), "any", "method", features) == label


@pytest.mark.parametrize(
    ("label", "name", "method"),
    [
        ("gather:0 binned", "symmetric", "gather"),
        ("gather:1024 binned", "symmetric", "binned"),
        ("binned", "symmetric", "binned"),
        ("gather:900 binned", "grid", "gather"),
        ("atomics:256 binned", "any", "atomics"),
        ("atomics:1 binned", "any", "binned"),
        ("gather:0 atomics:256 binned", "wide", "atomics"),
    ],
)
def test_a_profile_decides(
    queue: cl.CommandQueue,
    real: np.dtype[Any],
    decided_by: Callable[[Device, dict[str, Any]], None],
    label: str,
    name: str,
    method: str,
) -> None:
    matrix = MATRICES[name].astype(real)
    decided_by(describe(queue.device), {"transpose": {"any": {"method": {"take": label, "note": "so it was measured"}}}})
    explanation = transpose_plan(csr_array(matrix, queue=queue)).explain()
    assert explanation.method == method
    assert explanation.rule.startswith(f"{label}, by profile made-up")
    assert "so it was measured" in str(explanation)
    result, wanted = transpose(csr_array(matrix, queue=queue)), matrix.T.tocsr()
    np.testing.assert_array_equal(result.indices.get(), wanted.indices)
    np.testing.assert_array_equal(result.data.get(), wanted.data)


def test_a_structure_is_asked_for_symmetry_from_its_second_transposition_on(
    queue: cl.CommandQueue, decided_by: Callable[[Device, dict[str, Any]], None]
) -> None:
    """Where a profile leaves `gather` out, as the first transposition is sooner done without. CPU devices want a good guess."""
    decided_by(describe(queue.device), {"transpose": {"any": {"method": {"take": "binned"}}}})
    taken = ("grid",) if describe(queue.device).lanes_are_loops else ("grid", "symmetric")
    for name in ("symmetric", "grid", "any"):
        matrix = MATRICES[name].astype(np.float32)
        A = csr_array(matrix, queue=queue)
        for call in range(3):
            result = transpose(A)
            np.testing.assert_array_equal(result.toarray(), matrix.T.toarray())
            assert (result.indices is A.indices) == (name in taken and call > 0)
            if name != "any":
                assert (A.structure.symmetry is not None) == (call > 0)


def test_features_decide(
    queue: cl.CommandQueue,
    real: np.dtype[Any],
    decided_by: Callable[[Device, dict[str, Any]], None],
) -> None:
    split = {"feature": "columns", "at_most": 100, "then": {"take": "atomics:256 binned"}, "else": {"take": "binned"}}
    decided_by(describe(queue.device), {"transpose": {"any": {"method": split}}})
    methods = [transpose_plan(csr_array(MATRICES[name].astype(real), queue=queue)).explain().method for name in ("any", "wide")]
    assert methods == ["atomics", "binned"]


def test_a_named_method_says_so(queue: cl.CommandQueue, real: np.dtype[Any]) -> None:
    explanation = transpose_plan(csr_array(MATRICES["any"].astype(real), queue=queue), method="binned").explain()
    assert explanation.rule == "the method was named"


@pytest.mark.parametrize("name", MATRICES)
def test_all_that_is_declared_transposes(queue: cl.CommandQueue, real: np.dtype[Any], name: str) -> None:
    problem = TUNABLE.problem(queue, name, MATRICES[name].astype(real), "any")
    device = describe(queue.device)
    assert TUNABLE.dtypes(device) == ("any",)
    labels = TUNABLE.configurations(device, "any", "method")
    assert TUNABLE.default(device, "any", "method", TUNABLE.features(problem)) in labels
    for label in labels:
        assert str(TUNABLE.parse("method", label)) == label
        assert TUNABLE.prepare(problem, "method", label)()
        assert TUNABLE.verify(problem)
    assert problem.transposed is not None
    problem.transposed.moved.fill(0)
    assert not TUNABLE.verify(problem)


def test_nothing_to_tune_with(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has no entries"):
        TUNABLE.problem(queue, "empty", sp.csr_array((3, 3)), "any")
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_at_once=1 << 12))
    with pytest.raises(ValueError, match="is so small that one launch transposes it"):
        TUNABLE.problem(queue, "small", MATRICES["wide"].astype(np.float32), "any")
