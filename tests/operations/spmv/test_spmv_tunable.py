"""SpMV as the tuner takes it: what is measured is right, and schemes are composed of what was measured of bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array
from test_choose import CPU, GPU

from clsparse_py._decisions import profiles
from clsparse_py._decisions import tree as trees
from clsparse_py._device.device import describe
from clsparse_py._operations.spmv.binning import GRANULARITIES, N_BINS, Scheme, count_bins
from clsparse_py._operations.spmv.choose import BALANCED, Decision, KernelChoice, choose
from clsparse_py._operations.spmv.composition import CLASSES, Composer, Loads, class_of
from clsparse_py._operations.spmv.features import Features
from clsparse_py._tuner.spmv_tunable import SpmvProblem, SpmvTunable, Subject

TUNABLE = SpmvTunable()
Measured = dict[str, list[tuple[Mapping[str, float], Mapping[str, float]]]]


def matrix(seed: int = 0, n_rows: int = 1500, n_cols: int = 1400) -> Any:
    """Return a matrix with empty, short and long rows, unlike and alike ones side by side."""
    rng = np.random.default_rng(seed)
    lengths = np.concatenate((rng.integers(0, 9, n_rows // 3), rng.zipf(1.6, n_rows // 3) % 1300, np.full(n_rows // 3, 37)))
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    parts = (rng.standard_normal(indptr[-1]), rng.integers(0, n_cols, indptr[-1]).astype(np.int32), indptr)
    return scipy.sparse.csr_array(parts, shape=(lengths.size, n_cols))


@pytest.fixture
def profiling(queue: cl.CommandQueue) -> cl.CommandQueue:
    return cl.CommandQueue(queue.context, queue.device, cl.command_queue_properties.PROFILING_ENABLE)


def seconds(events: list[cl.Event]) -> float:
    cl.wait_for_events(events)
    return sum(event.profile.end - event.profile.start for event in events) * 1e-9


def test_every_question_is_measured_and_right(profiling: cl.CommandQueue) -> None:
    device, measured = describe(profiling.device), Measured()
    problem = TUNABLE.problem(profiling, "made up", matrix(), "float32")
    for question in TUNABLE.questions:
        subjects = TUNABLE.subjects(problem, question)
        assert 1 <= len(subjects) <= 8
        for subject in subjects:
            features = TUNABLE.features(subject)
            assert all(isinstance(value, (int, float)) for value in features.values())
            labels = TUNABLE.promising(device, "float32", subject, question, measured, False)
            assert 1 <= len(labels) <= len(TUNABLE.configurations(device, "float32", question))
            times = {}
            for label in dict.fromkeys((TUNABLE.default(device, "float32", question, features), *labels[:3])):
                run = TUNABLE.prepare(subject, question, label)
                assert not TUNABLE.verify(subject), "what an earlier run left must not pass"
                times[label] = seconds(run())
                assert TUNABLE.verify(subject), (question, label)
                assert seconds(run()) > 0
            measured.setdefault(question, []).append((features, times))


@pytest.mark.parametrize("question", ["single", "bin"])
@pytest.mark.parametrize("device_type", ["gpu", "cpu"])
def test_all_kernels_are_right(question: str, device_type: str, profiling: cl.CommandQueue) -> None:
    device = replace(describe(profiling.device), type=device_type)
    problem = TUNABLE.problem(profiling, "made up", matrix(1, 300), "float32")
    for subject in TUNABLE.subjects(problem, question)[::3]:
        for label in TUNABLE.configurations(device, "float32", question):
            TUNABLE.prepare(subject, question, label)()
            assert TUNABLE.verify(subject), label


def test_exhaustive_is_all_there_is(profiling: cl.CommandQueue) -> None:
    device = describe(profiling.device)
    problem = TUNABLE.problem(profiling, "made up", matrix(), "float32")
    for question in TUNABLE.questions:
        for subject in TUNABLE.subjects(problem, question)[:1]:
            asked = TUNABLE.promising(device, "float32", subject, question, {}, True)
            assert asked == TUNABLE.configurations(device, "float32", question)


def test_wrong_results_are_seen(profiling: cl.CommandQueue) -> None:
    problem = TUNABLE.problem(profiling, "made up", matrix(), "float32")
    run = TUNABLE.prepare(problem, "single", "serial/64/2")
    run()
    assert TUNABLE.verify(problem)
    y = problem.problem.y
    y[5:6] = y.get()[5] + np.float32(0.01)
    assert not TUNABLE.verify(problem)


def test_the_corpus_matrix_is_left_as_it_was(profiling: cl.CommandQueue) -> None:
    given = matrix()
    before = given.copy()
    problem = TUNABLE.problem(profiling, "made up", given, "float32")
    TUNABLE.prepare(problem, "single", "serial/64/2")()
    profiling.finish()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(given, name), getattr(before, name))
    with pytest.raises(ValueError, match=r"^empty: has no entries"):
        TUNABLE.problem(profiling, "empty", scipy.sparse.csr_array((3, 3)), "float32")


@pytest.mark.parametrize("device", [GPU, CPU, replace(GPU, max_work_group=256, local_memory=8 << 10)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_configurations_are_legal_and_parsed(device: Any, dtype: str) -> None:
    for question in TUNABLE.questions:
        labels = TUNABLE.configurations(device, dtype, question)
        assert len(set(labels)) == len(labels) > 3
        for label in labels:
            assert str(TUNABLE.parse(question, label)) if question == "scheme" else TUNABLE.parse(question, label)
            if question != "scheme":
                assert KernelChoice.parse(label).work_group <= device.max_work_group
        with pytest.raises(ValueError, match=r"^(scheme|kernel): must"):
            TUNABLE.parse(question, "no such")
    assert len(TUNABLE.configurations(device, dtype, "scheme")) == 2 + 2 * len(GRANULARITIES)


def test_defaults_are_among_the_configurations() -> None:
    features = choose_features(GPU)
    for device in (GPU, CPU):
        for question in ("single", "scheme"):
            assert TUNABLE.default(device, "float64", question, features) in TUNABLE.configurations(device, "float64", question)
    generic = {"gpu": GPU, "cpu": CPU}
    for device_type, device in generic.items():
        for question in TUNABLE.questions:
            tree = profiles.load(f"generic-{device_type}").tree("spmv", "float64", question)
            assert tree is not None
            assert {leaf.label for leaf in trees.leaves(tree)} <= {*TUNABLE.configurations(device, "float64", question)}
    assert TUNABLE.dtypes(replace(GPU, fp64=False)) == ("float32",)


def choose_features(device: Any) -> dict[str, float]:
    return Features(10, 10, 50, 5, 5, 0.0, (0, 0, 0, 0, 10)).numbers(device.compute_units, 8)


@pytest.mark.parametrize("scheme", ["fine", "coarse-10", "coarse-1000", "hybrid-20"])
def test_loads_are_those_of_the_bins(scheme: str, queue: cl.CommandQueue) -> None:
    host = matrix()
    lengths, indptr = np.diff(host.indptr).astype(np.int64), cl_array.to_device(queue, host.indptr)
    for side in Scheme.parse(scheme).sides:
        counts = count_bins(queue, lengths.size, indptr, side)
        result = Loads(lengths).of(side)
        assert result.size == len(CLASSES)
        for (begin, end), load in zip(CLASSES, result, strict=True):
            n_virtual = counts[begin:end].sum()
            assert (load > 0) == (n_virtual > 0)
            # A virtual row of bin b has from b to b + 1 entries for each of its rows, and each row counts for one more.
            assert load >= n_virtual * side.granularity * (begin + 1)
            if end <= N_BINS - 1:
                assert load <= n_virtual * side.granularity * (end + 1)
    assert [class_of(number) for number in (0, 1, 2, 3, 4, 99, 100)] == [0, 0, 1, 1, 2, 6, 7]


def test_blocks_of_blocks_are_blocks() -> None:
    lengths = np.diff(matrix().indptr).astype(np.int64)
    step_by_step = Loads(lengths)
    for granularity in GRANULARITIES:
        for name in ("coarse", "hybrid"):
            for side in Scheme(name, granularity).sides:
                np.testing.assert_allclose(step_by_step.of(side), Loads(lengths).of(side))


def test_schemes_are_composed_of_the_fastest_for_each_class() -> None:
    loads = Loads(np.array([3] * 500 + [40] * 500))
    measured: list[tuple[Mapping[str, float], Mapping[str, float]]] = [
        ({"granularity": 1, "bin": 3}, {"serial/64/2": 1e-6, "vector/64/2": 5e-6}),
        ({"granularity": 1, "bin": 40}, {"serial/64/2": 9e-6, "subvector8/64/2": 3e-6}),
        ({"granularity": 100, "bin": 40}, {"subvector16/64/2": 2e-6}),
        ({"granularity": 100, "bin": 0}, {}),
    ]
    composer = Composer.of(loads, measured)
    fine, coarse = Scheme("fine"), Scheme("coarse", 50)
    assert [composer.label(fine.sides[0], number) for number in (2, 3, 33, 63, 64)] == [
        "serial/64/2", "serial/64/2", "subvector8/64/2", "subvector8/64/2", None,
    ]  # fmt: skip
    assert composer.label(coarse.sides[0], 40) == "subvector16/64/2"
    assert composer.label(coarse.sides[0], 3) == "serial/64/2"
    np.testing.assert_allclose(composer.seconds(fine), 4e-6)
    np.testing.assert_allclose(composer.seconds(coarse), 3e-6)
    assert Composer.of(loads, []).seconds(fine) == float("inf")


def test_bins_of_any_shape_share_a_product(profiling: cl.CommandQueue) -> None:
    problem = SpmvProblem(profiling, "made up", matrix(2), "float32")
    labels = ["serial/64/2", "subvector4/32/1", "subvector16/64/4", "vector/32/2"]
    for text in ("fine", "coarse-10", "hybrid-20"):
        scheme = Scheme.parse(text)
        side = [KernelChoice.parse(labels[number % 4]) for number in range(N_BINS - 1)] + [KernelChoice.parse("vector_long/64/2")]
        events = problem.run(Decision(scheme, (tuple(side),) * len(scheme.sides), "made up"))()
        assert len(events) >= 4
        assert problem.is_right()


def test_rows_of_long_virtual_rows_may_be_cut(profiling: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    lengths = np.array([40_000, 0, 1, 17_000, 5, 16_384, 3])
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    host = scipy.sparse.csr_array(
        (rng.standard_normal(indptr[-1]), rng.integers(0, 99, indptr[-1]).astype(np.int32), indptr), shape=(7, 99)
    )
    problem = SpmvProblem(profiling, "long", host, "float32")
    for text in ("fine", "coarse-2", "coarse-5", "hybrid-3"):
        scheme = Scheme.parse(text)
        problem.run(Decision(scheme, ((KernelChoice("vector_long", 64),) * N_BINS,) * len(scheme.sides), "made up"))()
        assert problem.is_right(), text


def test_untuned_schemes_take_what_the_profile_says(profiling: cl.CommandQueue) -> None:
    subject = TUNABLE.problem(profiling, "made up", matrix(), "float32")
    assert isinstance(subject, Subject)
    for label in ("single", "coarse-50"):
        TUNABLE.prepare(subject, "scheme", label)()
        assert TUNABLE.verify(subject)
    untuned = choose(subject.problem.features, describe(profiling.device), "coarse-50", None, "float32")
    assert not {choice.name for side in untuned.kernels for choice in side} & set(BALANCED)
