"""Those who take part: ours and every peer that can run here, each right and timed in its ways."""

from __future__ import annotations

import _ctypes
import functools
from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from platforms import PLATFORMS, queue_on

from bench import opencl, opencl_calls, ours, peers, problems, runner
from bench.contestants import DeclinedError
from bench.ours import spmv
from bench.peers import cuda, cusparse_library
from bench.problems import Problem
from bench.problems.base import WrongResultError

WAYS = {"back_to_back", "single", "host", "wall"}
SMALL = [
    ("long_rows_40_tenth", "spmv", "float64"),
    ("long_rows_40_tenth", "spmv", "float32"),
    ("long_rows_40_tenth", "sptrans", "float64"),
    ("long_rows_40_tenth", "sptrans", "float32"),
    # Its pattern is symmetric.
    ("qcd4", "sptrans", "float32"),
    ("qcd4", "spgemm", "float64"),
    ("rmat12", "spgemm", "float32"),
    # Not square: times its transposed.
    ("P(fd2d5_100)", "spgemm", "float32"),
    ("AP(fd2d5_100)", "amg", "float64"),
    ("PTAP(fd2d5_100)", "amg", "float32"),
    *(
        (name.replace("1e5", "2e4"), operation, dtype)
        for name, operation, dtype in problems.tasks(problems.PRIMITIVES, [], [], "quick", cpu=True)
    ),
]
# Operations of which the library has a plain call, and of some a kept plan.
WITHOUT_POOL = [
    ("rmat12", "add", "float64"),
    ("rmat12", "spmm_4_columns", "float64"),
    ("rmat12", "sptrsv", "float64"),
    ("rmat12", "sptrsm_32", "float32"),
]


@pytest.fixture(scope="module")
def first_queue() -> cl.CommandQueue:
    """A queue on the last platform: PoCL, the first where it is, takes longer to build their kernels."""
    return queue_on([*PLATFORMS][-1])


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two calls a sample, in place of as many as take 0.4 s: no time is looked at."""
    monkeypatch.setattr(runner, "calls_a_sample", lambda _: 2)


#: Made once, with what their results are compared with: all contestants compute them.
make = functools.cache(problems.make)


def make_problem(task: problems.Task, queue: cl.CommandQueue) -> Problem:
    if "float64" in task and "cl_khr_fp64" not in queue.device.extensions.split():
        pytest.skip("no double precision")
    return make(*task)


@pytest.mark.parametrize("task", SMALL, ids=" ".join)
def test_ours_is_right_and_timed_in_every_way(task: problems.Task, first_queue: cl.CommandQueue) -> None:
    contestants = ours.contestants(
        task[1], first_queue, variants=["plain", "auto", "single:subvector4:work_group=64", "auto+row_patterns"], methods=None
    )
    records = runner.measure(make_problem(task, first_queue), contestants, rounds=2)
    names = ["clsparse/auto"] if problems.PRIMITIVES.get(task[1]) else ["clsparse/plain", "clsparse/auto"]
    assert [record["name"] for record in records[: len(names)]] == names
    assert "samples" in records[0], records[0]
    for record in records:
        assert "failure" not in record, record
        if "declined" not in record:
            by_plan = task[1] == "spmv" and record["name"] != "clsparse/plain"
            assert set(record["samples"]) == WAYS | (set() if by_plan else {"busy"})
            assert {len(samples) for samples in record["samples"].values()} == {2}
            assert {"transfer", "first_call"} <= set(record["once"]) <= {"transfer", "plan", "first_call"}


@pytest.mark.parametrize("task", WITHOUT_POOL, ids=" ".join)
def test_ours_is_right_without_a_pool(task: problems.Task, first_queue: cl.CommandQueue) -> None:
    contestants = ours.contestants(task[1], first_queue, variants=[], methods=None)
    records = runner.measure(make_problem(task, first_queue), contestants, rounds=1)
    assert records[0]["name"] == "clsparse/plain"
    for record in records:
        assert set(record["samples"]) == WAYS | {"busy"}, record


@pytest.mark.parametrize("task", SMALL + WITHOUT_POOL, ids=" ".join)
@pytest.mark.parametrize("name", peers.NAMES)
def test_every_peer_that_is_here_is_right(name: str, task: problems.Task, first_queue: cl.CommandQueue) -> None:
    if (reason := peers.load(name).available()) is not None:
        pytest.skip(reason)
    if not (contestants := peers.load(name).contestants(task[1], first_queue)):
        pytest.skip(f"{name} has no {task[1]}")
    for record in runner.measure(make_problem(task, first_queue), contestants, rounds=1):
        assert "failure" not in record, record


def test_hierarchies_of_ours_and_of_peers_solve_their_systems(first_queue: cl.CommandQueue) -> None:
    results = [peer for peer in map(peers.load, ("pyamg", "amgcl")) if peer.available() is None]
    for operation in problems.GROUPS["multigrid"]:
        task = make_problem(("fd2d5_100", operation, "float64"), first_queue)
        contestants = ours.contestants(operation, first_queue, variants=[], methods=None)
        contestants += [contestant for peer in results for contestant in peer.contestants(operation, first_queue)]
        for record in runner.measure(task, contestants, rounds=1):
            assert record["error"] <= 1, record
            assert "iterations of CG" in record["detail"]
        with pytest.raises(WrongResultError, match="residual"):
            task.error((task.reference[0] * 0,))


def test_peers_say_whether_they_can_run(first_queue: cl.CommandQueue) -> None:
    for name in peers.NAMES:
        peer = peers.load(name)
        reason = peer.available()
        assert reason is None or reason
        assert any(peer.contestants(operation, first_queue) for operation in problems.OPERATIONS)
        assert not peer.contestants("no such operation", first_queue)
        if reason is None:
            assert all(isinstance(version, str) for version in peer.versions().values())
    with pytest.raises(ValueError, match="nobody"):
        peers.load("nobody")


def test_functions_that_a_library_of_cuda_lacks_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    # Any library stands for one that a variable names.
    monkeypatch.setenv("CUSPARSE_LIBRARY", _ctypes.__file__)
    monkeypatch.setattr(cuda, "library", cuda.library.__wrapped__)
    cusparse_library.require(("PyInit__ctypes",))
    with pytest.raises(DeclinedError, match="has no cusparseSpGEAM"):
        cusparse_library.require(("PyInit__ctypes", "cusparseSpGEAM"))


def test_wrong_bits_are_found_on_the_device(first_queue: cl.CommandQueue) -> None:
    values = np.arange(1001, dtype=np.float32)
    values[-1] = np.nan
    a, b = (cla.to_device(first_queue, values) for _ in range(2))

    def digest(array: cla.Array) -> int:
        return opencl.digest(first_queue, array)

    assert digest(a) == digest(b)
    # The same elements at other places.
    b[1:3] = cla.to_device(first_queue, values[2:0:-1].copy())
    assert digest(a) != digest(b)
    assert digest(a[3:]) == digest(b[3:]) != digest(a[2:])
    b[500] = -1
    assert digest(a[3:]) != digest(b[3:])
    assert digest(a[:0]) == digest(b[:0])
    opencl.fill_with_ones(first_queue, a)
    assert np.isnan(a.get()).all()


def test_a_result_that_changes_is_checked_again(first_queue: cl.CommandQueue) -> None:
    task = make_problem(("qcd4", "spgemm", "float32"), first_queue)
    right = opencl_calls.to_device(
        first_queue, tuple(part.astype(like.dtype) for part, like in zip(task.reference, task.like, strict=True))
    )
    calls = opencl_calls.OpenclCalls(task, first_queue, lambda _: right, {})
    checks: list[int] = []
    check = type(task).error
    object.__setattr__(task, "error", lambda result: (checks.append(1), check(task, result))[1])
    assert calls.error() == calls.error() <= 1
    assert len(checks) == 1
    right[2][7] = 1e6
    with pytest.raises(WrongResultError, match="value 7"):
        calls.error()
    assert len(checks) == 2


def test_commands_are_timed_by_the_devices_clock(first_queue: cl.CommandQueue) -> None:
    profiling = opencl.profiling_queue(first_queue)
    buffer = cl.Buffer(first_queue.context, cl.mem_flags.READ_WRITE, 1 << 20)

    def fills(count: int) -> Callable[[], None]:
        def fill() -> None:
            for _ in range(count):
                cl.enqueue_fill_buffer(profiling, buffer, np.zeros(1, np.uint8), 0, buffer.size)

        return fill

    assert opencl.device_seconds(profiling, fills(0)) == (0, 0)
    for count in (1, 3):
        span, busy = opencl.device_seconds(profiling, fills(count))
        assert 0 < busy <= span
    before = cl.enqueue_fill_buffer
    with pytest.raises(ZeroDivisionError):
        opencl.device_seconds(profiling, lambda: 1 / 0)
    assert cl.enqueue_fill_buffer is before


@pytest.mark.parametrize("text", ["single:no_such_kernel:items=2", "single:serial:items", "single:serial:colour=1"])
def test_a_variant_that_cannot_be_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        spmv.Variant.parse(text)


def test_a_simple_merge_of_half_of_many_elements_is_declined_on_gpus(
    first_queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "is_cpu", lambda _: False)
    task = problems.make("skewed_2e6", "segmented_merge", "uint32-uint32")
    contestants = ours.contestants("segmented_merge", first_queue, variants=[], methods=None)
    (record,) = runner.measure(task, [contestant for contestant in contestants if contestant.name == "clsparse/simple"], rounds=1)
    assert "one work-item" in record["declined"]


def test_methods_are_those_of_the_operation(first_queue: cl.CommandQueue) -> None:
    def names(operation: str, methods: list[str] | None) -> list[str]:
        return [contestant.name for contestant in ours.contestants(operation, first_queue, variants=[], methods=methods)]

    assert names("spgemm", None) == ["clsparse/plain", "clsparse/auto", "clsparse/auto-loose", "clsparse/kept-plan"]
    assert names("amg", ["binned", "reg-merge", "auto"]) == ["clsparse/reg-merge", "clsparse/auto"]
    assert names("sptrans", ["binned", "reg-merge"]) == ["clsparse/binned"]
    with pytest.raises(ValueError, match="binned, spgemm needs some of plain"):
        names("spgemm", ["binned"])


def test_each_method_of_spgemm_is_right(first_queue: cl.CommandQueue) -> None:
    contestants = ours.contestants("spgemm", first_queue, variants=[], methods=list(ours.METHODS["spgemm"]))
    for record in runner.measure(make_problem(("small_100", "spgemm", "float32"), first_queue), contestants, rounds=1):
        assert "failure" not in record, record
