"""Kernels that a compiler refuses: what is remembered of them, by whom it is believed, and what takes their place."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from platforms import PLATFORMS
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import BuildError
from clsparse_py._build import plain, programs, refusals
from clsparse_py._build.plain import explain_plain, plain_kernels
from clsparse_py._build.refusals import Refusal
from clsparse_py._command import cli
from clsparse_py._matrix.convert import Convert
from clsparse_py._primitives.radix_sort import Shape

pytestmark = [pytest.mark.any_platform, pytest.mark.refusals]

FAILED = "clBuildProgram failed: BUILD_PROGRAM_FAILURE"
LOG = (
    f"{FAILED} - {FAILED}\n\nBuild on <pyopencl.Device 'a' on 'b' at 0x1>:\n\n"
    "1:1: error: no such\nfailed\n\n(options: -I x)\n(source saved as y)"
)


class Verdict(cl.RuntimeError):
    """An error of the driver's, of a code and with a text of our own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self._code, self._text = code, text

    @property
    def code(self) -> int:
        return self._code

    def __str__(self) -> str:
        return self._text


REFUSED = cl.status_code.BUILD_PROGRAM_FAILURE


def test_what_the_compiler_said_is_told_apart_from_what_is_around_it() -> None:
    assert refusals.extract_log(Verdict(REFUSED, LOG)) == "1:1: error: no such\nfailed"
    assert refusals.extract_log(Verdict(REFUSED, LOG.replace("1:1: error: no such\nfailed", ""))) == ""
    assert refusals.extract_log(Verdict(-46, "clCreateKernel failed: INVALID_KERNEL_NAME")) == ""
    assert refusals.extract_log(Verdict(REFUSED, f"{FAILED} - planted")) == f"{FAILED} - planted"


@pytest.mark.parametrize(
    ("code", "text", "verdict"),
    [
        (REFUSED, LOG, True),
        (cl.status_code.INVALID_KERNEL_NAME, "clCreateKernel failed: INVALID_KERNEL_NAME", True),
        (REFUSED, LOG.replace("no such", "No space left on device"), False),
        (REFUSED, LOG.replace("no such", "std::bad_alloc"), False),
        (REFUSED, LOG.replace("no such", "the compiler timed out"), False),
        (cl.status_code.OUT_OF_HOST_MEMORY, LOG, False),
        (cl.status_code.OUT_OF_RESOURCES, LOG, False),
        (cl.status_code.DEVICE_NOT_AVAILABLE, LOG, False),
    ],
)
def test_only_a_verdict_of_the_compiler_counts(code: int, text: str, verdict: bool) -> None:
    assert refusals.is_verdict(Verdict(code, text)) == verdict


def test_a_second_process_has_to_see_it() -> None:
    once = refusals.with_refusal({}, "d", "k", "why", "process 1")
    assert not once["d"].trusted
    assert refusals.with_refusal(once, "d", "k", "why", "process 1") == once
    twice = refusals.with_refusal(once, "d", "k", "why", "process 2")
    assert twice["d"].trusted
    assert twice["d"].seen_by == ("process 1", "process 2")
    many = twice
    for number in range(1000):
        many = refusals.with_refusal(many, str(number), "k", "why" * 1000, "process 1")
    assert len(many) < 1000
    assert len(many["999"].reason) < 1000


@pytest.mark.parametrize(
    "payload",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"3",
        b'{"d": 1}',
        b'{"d": {"kernel": 1, "reason": "", "seen_by": []}}',
        b'{"d": {"kernel": "k"}}',
    ],
)
def test_what_is_malformed_is_no_refusal(payload: bytes | None) -> None:
    assert refusals.parse(payload) == {}
    whole = {"e": {"kernel": "k", "reason": "r", "seen_by": ["p"]}}
    assert refusals.parse(json.dumps({"d": 1, **whole}).encode()) == {"e": Refusal("k", "r", ("p",))}


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where refused sources are kept
    programs.forget_refused()
    return tmp_path


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Iterator[Callable[..., list[str]]]:  # noqa: ARG001 - kept from others
    """Have the compiler refuse all kernels in whose names a pattern is found; collect the names it was asked for."""
    compile_source, built = programs.compile_source, dict(programs._built)

    def planted(pattern: str, error: Exception | None = None) -> list[str]:
        asked: list[str] = []
        programs.forget_refused()

        def refusing(context: Any, device: Any, source: str, options: Any = ()) -> Any:
            results = [name for name in programs._KERNEL.findall(source) if re.search(pattern, name)]
            if results:
                asked.extend(results)
                raise error or Verdict(REFUSED, LOG)
            return compile_source(context, device, source, options)

        monkeypatch.setattr(programs, "compile_source", refusing)
        for key, program in list(programs._built.items()):
            if re.search(pattern, program.parameters.name):
                programs._built.pop(key, None)
                programs._alive.pop(key, None)
        return asked

    yield planted
    programs._built.update(built)


def matrix(n: int = 60, density: float = 0.1) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(scipy.sparse.random_array((n, n), density=density, rng=3, dtype=np.float32))


def read_refusals(queue: cl.CommandQueue) -> dict[str, Refusal]:
    refusals.clear()
    return dict(refusals.load(programs.identity(queue.device)))


CONVERSION = "csr_convert_"


def convert(queue: cl.CommandQueue) -> None:
    """Build a kernel, and nothing else if it is refused."""
    programs.build(queue.context, queue.device, Convert(min(64, queue.device.max_work_group_size), "float32", "float64"))


@pytest.fixture
def needs_conversion(queue: cl.CommandQueue) -> cl.CommandQueue:
    if not clsparse_py.describe(queue.device).fp64:
        pytest.skip("converts to double precision")
    return queue


def test_a_refusal_is_logged_once_and_kept(
    needs_conversion: cl.CommandQueue, plant: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    asked = plant(CONVERSION)
    for _ in range(2):
        with pytest.raises(BuildError, match=r"BUILD_PROGRAM_FAILURE: 1:1: error: no such"):
            convert(needs_conversion)
    assert len(asked) == len(read_refusals(needs_conversion))  # each work-group once
    assert len([record for record in caplog.records if "is refused" in record.message]) == 1
    (first, *_) = read_refusals(needs_conversion).values()
    assert first.kernel.startswith(CONVERSION)
    assert "no such" in first.reason
    assert not first.trusted


def test_a_kernel_is_named_once_a_device(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    asked, host = plant("elementwise_values_.*negative"), np.array([[1, 2], [0, 3]], np.float32)
    contexts = [cl.Context([queue.device]) for _ in range(2)]
    with caplog.at_level(logging.INFO):
        for context in (queue.context, *contexts):
            A = clsparse_py.csr_array(host, queue=cl.CommandQueue(context, queue.device))
            np.testing.assert_array_equal((-A).toarray(), -host)
            (refusals.clear(), asked.clear())
    refused = [record for record in caplog.records if "is refused by the compiler" in record.getMessage()]
    kernel = refused[0].getMessage().split()[1]
    of_kernel = [record.levelno for record in refused if f" {kernel} " in record.getMessage()]
    assert of_kernel == [logging.WARNING, logging.INFO, logging.INFO]


def test_what_two_processes_saw_is_not_tried_again(
    needs_conversion: cl.CommandQueue,
    plant: Callable[..., list[str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for process, tries in (("one", True), ("another", True), ("third", False)):
        monkeypatch.setattr(refusals, "_PROCESS", process)
        caplog.clear()
        asked = plant(CONVERSION)
        with pytest.raises(BuildError, match="no such"):
            convert(needs_conversion)
        assert bool(asked) == tries
        assert any(record.levelno >= logging.WARNING for record in caplog.records) == tries
    assert all(refusal.trusted for refusal in read_refusals(needs_conversion).values())
    # Another version of the package, and another driver, try again.
    identity = programs.identity(needs_conversion.device)
    assert refusals.load(identity + "1") == {}
    monkeypatch.setattr(clsparse_py, "__version__", "0")
    assert read_refusals(needs_conversion) == {}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (cl.MemoryError("clBuildProgram failed: OUT_OF_HOST_MEMORY"), MemoryError),
        (Verdict(REFUSED, LOG.replace("no such", "No space left on device")), BuildError),
        (Verdict(cl.status_code.DEVICE_NOT_AVAILABLE, "clBuildProgram failed: DEVICE_NOT_AVAILABLE"), BuildError),
    ],
    ids=["memory", "disk", "driver"],
)
def test_circumstances_are_not_kept(
    needs_conversion: cl.CommandQueue, plant: Callable[..., list[str]], error: Exception, raised: type[Exception]
) -> None:
    plant(CONVERSION, error)
    with pytest.raises(raised):
        convert(needs_conversion)
    assert read_refusals(needs_conversion) == {}


def test_nothing_is_kept_while_the_compiler_builds_nothing(
    needs_conversion: cl.CommandQueue, plant: Callable[..., list[str]]
) -> None:
    plant(f"{CONVERSION}|works_")
    with pytest.raises(BuildError, match="no such"):
        convert(needs_conversion)
    assert read_refusals(needs_conversion) == {}


def test_an_empty_log_is_said_to_be_empty(needs_conversion: cl.CommandQueue, plant: Callable[..., list[str]]) -> None:
    plant(CONVERSION, Verdict(REFUSED, FAILED))
    with pytest.raises(BuildError, match="says nothing but BUILD_PROGRAM_FAILURE") as caught:
        convert(needs_conversion)
    assert caught.value.log == ""


def test_a_broken_entry_of_a_cache_is_built_around(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compile_source, broken = programs.compile_source, "kernel void other(global int *out) { out[0] = 1; }"

    def from_cache(context: Any, device: Any, source: str, options: Any = ()) -> Any:
        return compile_source(context, device, source if programs._ANEW in options else broken, options)

    programs.clear()
    monkeypatch.setattr(programs, "compile_source", from_cache)
    host = matrix()
    np.testing.assert_allclose((clsparse_py.csr_array(host, queue=queue) @ np.ones(60, np.float32)), host.sum(axis=1), rtol=1e-5)
    assert "what a cache has of it is broken (INVALID_KERNEL_NAME): built anew" in caplog.text
    assert not list(programs.list_refusals())


def test_devices_shows_refusals_and_retry_forgets_them(
    needs_conversion: cl.CommandQueue,
    plant: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(CONVERSION)
    with pytest.raises(BuildError):
        convert(needs_conversion)
    assert cli.main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert CONVERSION in shown
    assert "seen by one process" in shown
    monkeypatch.setattr(clsparse_py, "warmup", lambda *_: 0)
    assert cli.main(["warmup", "--retry"]) == 0
    assert "refusals forgotten" in capsys.readouterr().out
    assert read_refusals(needs_conversion) == {}


SEES = """
import sys
import pyopencl as cl
from clsparse_py._build import programs, refusals
identity = sys.argv[1]
print(refusals.find(identity, "d") is not None)
refusals.note(identity, [("d", "kernel", "why")])
"""


def test_processes_share_what_they_saw(tmp_path: Path) -> None:
    results = [
        subprocess.run(
            [sys.executable, "-c", SEES, "a device"],
            env={**os.environ, "CLSPARSE_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout.strip()
        for _ in range(3)
    ]  # fmt: skip
    assert results == ["False", "False", "True"]


#: Methods of SpGEMM with the kernels that are refused, all or those of a phase, for a kind of device: plain kernels make C.
PRODUCTS = [
    ("auto", "spgemm_merge", "cpu"),
    ("auto", "spgemm_merge_speculative", "cpu"),
    ("auto", "spgemm_merge.*_values", "cpu"),
    ("reg-merge", "spgemm_merge", "cpu"),
    ("merge", "spgemm_merge", "cpu"),
    ("reg-sort", "spgemm_sort.*numeric", "cpu"),
    ("sort", "spgemm_sort", "cpu"),
    ("hash", "spgemm_hash", "cpu"),
    ("reg-hash", "spgemm_hash", "cpu"),
    ("large-hash", "spgemm_hash", "cpu"),
    ("esc-local", "spgemm_esc_(item|team)", "cpu"),
    ("esc", "spgemm_esc_contract", "cpu"),
    ("esc", "spgemm_esc_contract.*values", "cpu"),
    ("auto", "spgemm_(merge|sort|dense_span)", "gpu"),
    ("auto", "spgemm_(merge|compact)", "gpu"),
    ("dense", "spgemm_dense_(span|parts)", "gpu"),
]


@pytest.mark.parametrize(("method", "pattern", "kind"), PRODUCTS, ids=["-".join(product) for product in PRODUCTS])
def test_products_whose_kernels_are_refused_take_plain_ones(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], take_as: Callable[..., None],
    method: str, pattern: str, kind: str, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    take_as(type=kind)
    asked = plant(pattern)
    # Products that hardly contract are made in the room of their upper bound.
    host = matrix(12000, 2 / 12000) if "compact" in pattern else matrix()
    A = clsparse_py.csr_array(host, queue=queue)
    plan = clsparse_py.spgemm_plan(A, A, method=method)
    wanted = scipy.sparse.csr_array(host @ host)
    wanted.sort_indices()
    for result, factor in ((clsparse_py.spgemm(A, A, method=method), 1), (plan(), 1), (plan(A.data * 2), 2), (plan(), 1)):
        got = result.get()
        np.testing.assert_array_equal(got.indptr, wanted.indptr)
        np.testing.assert_array_equal(got.indices, wanted.indices)
        np.testing.assert_allclose(got.data, wanted.data * np.float32(factor), rtol=1e-4)
    assert asked
    assert len(asked) == len(set(asked))
    if "compact" not in pattern:  # plans count the entries of rows
        assert plan.explain().rule == explain_plain(method)
        assert all("spgemm_dense_chunked" not in name for name in asked)
    assert sum(f"kernel {asked[0]} is refused" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("pattern", ["spgemm_dense_chunked", "spgemm_(masks|merge)", "spgemm_analysis|spgemm_merge"])
def test_products_whose_plain_kernels_are_refused_are_scipys(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain._warn.cache_clear()
    asked, host = plant(f"spgemm_one_launch|spgemm_merge|{pattern}"), matrix()
    A = clsparse_py.csr_array(host, queue=queue)
    for _ in range(2):
        np.testing.assert_allclose((A @ A).toarray(), (host @ host).toarray(), rtol=1e-4)
    assert len(asked) == len(set(asked))
    assert sum("runs on the host, by SciPy" in record.message for record in caplog.records) == 1
    for call in (clsparse_py.spgemm, clsparse_py.spgemm_plan):
        with pytest.raises(BuildError) as refused:
            call(A, A)
        assert refused.value.kernel in asked


def test_products_under_a_mask_whose_kernels_are_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], take_as: Callable[..., None]
) -> None:
    if clsparse_py.describe(queue.device).portability.lane_width == 1:
        take_as(type="gpu")
    host = matrix()
    A = clsparse_py.csr_array(host, queue=queue)
    asked = plant("spgemm_masked_(x|counted)|spgemm_merge|spgemm_sort")
    wanted = (host @ host).multiply(host != 0).toarray()
    np.testing.assert_allclose(clsparse_py.spgemm(A, A, mask=A).toarray(), wanted, rtol=1e-4)
    plan = clsparse_py.spgemm_plan(A, A, mask=A)
    np.testing.assert_allclose(plan(A.data * 2).toarray(), 2 * wanted, rtol=1e-4)
    rest = clsparse_py.spgemm_plan(A, A, mask=A, complement=True)
    np.testing.assert_allclose(rest(A.data * 2).toarray() / 2 + wanted, (host @ host).toarray(), rtol=1e-4)
    assert asked


#: Kernels for all rows, bins, and what is refused of SpMV; of features, and where nothing of SpMV builds, too.
VECTORS = [
    ("single", "serial", "spmv_subvector"),
    ("single", "vector", "spmv_subvector"),
    ("single", "vector_long", "spmv_vector_long"),
    ("single", "adaptive", "spmv_adaptive|primitives_partition"),
    ("single", "nonzero_split", "spmv_adaptive"),
    ("single", "merge", "spmv_(merge|adaptive)"),
    ("single", "chunked", "spmv_chunked"),
    ("auto", None, "spmv_features"),
    ("auto", None, "spmv_(chunked|subvector|merge|adaptive|vector_long)|primitives_partition"),
    ("fine", None, "spmv_subvector"),
    ("coarse-10", None, "spmv_binning"),
]


@pytest.mark.parametrize(("scheme", "kernel", "pattern"), VECTORS)
def test_plain_kernels_or_scipy_make_products_where_others_are_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], scheme: str, kernel: str | None, pattern: str
) -> None:
    asked, host = plant(pattern), matrix()
    A = clsparse_py.csr_array(host, queue=queue)
    x = np.arange(60, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_allclose(A @ x, host @ x, rtol=1e-4)
    plans = [clsparse_py.spmv_plan(A, scheme=scheme, kernel=kernel), clsparse_py.spmv_plan(A, queues=[queue])]
    for plan in plans:
        if "subvector" in pattern and (scheme != "auto" or "chunked" in pattern):
            # The plain kernel is one of these, and SciPy has no function that takes a plan.
            with pytest.raises(BuildError, match=r"spmv_(subvector|chunked)"):
                clsparse_py.spmv(A, x, plan=plans[0])
        else:
            np.testing.assert_allclose(clsparse_py.spmv(A, x, plan=plan), host @ x, rtol=1e-4)
    assert asked
    with plain_kernels():
        # What was named, and is not taken, is told.
        ignored = explain_plain(*(name for name in (scheme, kernel or "auto") if name not in ("single", "serial")))
        assert clsparse_py.spmv_plan(A, scheme=scheme, kernel=kernel).explain().rule == ignored
        with pytest.raises(ValueError, match="scheme: "):
            clsparse_py.spmv_plan(A, scheme="none")
        for method, rule in (
            ("auto", "plain kernels"),
            ("binned", "plain kernels"),
            ("gather", "plain kernels, in place of gather"),
        ):
            assert clsparse_py.transpose_plan(A, method=method).explain().rule == rule


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scipy_checks_a_structure_too(queue: cl.CommandQueue, plant: Callable[..., list[str]], index: Any) -> None:
    asked, host = plant("csr_check"), matrix(40, 0.2)
    for part, place, value, message in (
        (0, 5, 40, "indices must be < 40"),
        (1, 2, 400, "must not decrease|non-decreasing"),
    ):
        arrays = [host.indices.astype(index), host.indptr.astype(index)]
        arrays[part][place] = value
        given = tuple(cl.array.to_device(queue, array) for array in (host.data, *arrays))
        with pytest.raises(ValueError, match=message):
            clsparse_py.csr_array(given, shape=host.shape)
    assert len(asked) == len(set(asked)) > 0
    np.testing.assert_allclose(clsparse_py.csr_array(host, queue=queue) @ np.ones(40, np.float32), host.sum(axis=1), rtol=1e-5)


#: Kernels that there is no other for: of conversion, of what makes a matrix canonical, and of new values for one; and all.
OF_SCIPY = [
    "csr_convert",
    "canonical_begins",
    "canonical_compact",
    "canonical_nonzeros",
    "canonical_range",
    "canonical_rows|canonical_regroup",
    "canonical_entries",
    "primitives_permute",
]
OF_SCIPY += ["sort_network|merge_", "|".join(OF_SCIPY)]


@pytest.mark.parametrize("dtype", ["int8", "float32", "bool", "complex64"])
def test_scipy_applies_operators_too(queue: cl.CommandQueue, plant: Callable[..., list[str]], dtype: str) -> None:
    asked = plant("union_|values_|dense_|pair_|complement_|scatter_|diagonal_|primitives_segmented_")
    host = scipy.sparse.csr_array(matrix().astype(dtype))
    A, B = (clsparse_py.csr_array(operand, queue=queue) for operand in (host, host[::-1]))
    dense = np.arange(host.shape[0] * host.shape[1]).reshape(host.shape).astype(dtype)
    for result, wanted in (
        (A + B, host + host[::-1]),
        (A.multiply(B), host.multiply(host[::-1])),
        (A * 2, host * 2),
        (abs(A), abs(host)),
    ):
        assert result.dtype == wanted.dtype
        assert abs(result.get().astype(np.complex64) - wanted.astype(np.complex64)).sum() == 0
    np.testing.assert_array_equal(A + dense, host + dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        for result, wanted in ((A == B, host == host[::-1]), (A != 2, host != 2)):
            np.testing.assert_array_equal(result.toarray(), wanted.toarray())
    np.testing.assert_array_equal(A == dense, host == dense)
    for result, wanted in ((A.sum(axis=1), host.sum(axis=1)), (A.sum(), host.sum()), (A.diagonal(2), host.diagonal(2))):
        np.testing.assert_allclose(result, wanted, rtol=1e-5)
    if dtype != "bool":
        given = cl.array.to_device(queue, np.asfortranarray(dense))
        np.testing.assert_array_equal((given[::-1] - A).get(), dense[::-1] - host.toarray())
        same = A
        A *= 2
        assert A is same
        np.testing.assert_array_equal(A.toarray(), (host * 2).toarray())
    assert asked


@pytest.mark.parametrize("dtype", ["int8", "float32", "bool", "complex64"])
@pytest.mark.parametrize("pattern", OF_SCIPY)
def test_scipy_does_what_no_other_kernel_does(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], pattern: str, dtype: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked, rng, n = plant(pattern), np.random.default_rng(3), 400
    # Some entries three times, some of them zeros; rows are not sorted.
    row, col = np.tile(rng.integers(0, 40, n), 3), np.tile(rng.integers(0, 50, n), 3)
    values = rng.integers(0, 3, 3 * n).astype(dtype)
    wanted = scipy.sparse.csr_array((values, (row, col)), shape=(40, 50))
    order = np.argsort(row, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=40))))
    shuffled = (values[order], col[order], indptr)

    def same(result: clsparse_py.csr_array, of: scipy.sparse.csr_array) -> None:
        got = result.get()
        assert got.dtype == of.dtype
        np.testing.assert_array_equal(got.indptr, of.indptr)
        np.testing.assert_array_equal(got.indices, of.indices)
        np.testing.assert_array_equal(got.data, of.data)

    for first in (True, False):
        same(clsparse_py.csr_array((values, (row, col)), shape=(40, 50), queue=queue), wanted)
        parts = [
            cl.array.to_device(queue, array) for array in (shuffled[0], *(indices.astype(np.int64) for indices in shuffled[1:]))
        ]
        A = clsparse_py.csr_array(tuple(parts), shape=(40, 50), queue=queue)
        # Unsorted, and with duplicates; SciPy drops zeros.
        eye = clsparse_py.csr_array(scipy.sparse.eye_array(50, dtype=dtype, format="csr"), queue=queue)
        np.testing.assert_array_equal((A @ eye).toarray(), wanted.toarray())
        A.sum_duplicates()
        same(A, wanted)
        A.eliminate_zeros()
        without = wanted.copy()
        without.eliminate_zeros()
        same(A, without)
        same(A.reshape(50, 40).tocsr(), without.reshape(50, 40).tocsr())
        dense = cl.array.to_device(queue, without.toarray())
        same(clsparse_py.csr_array(dense[::-1, ::2]), without[::-1, ::2])
        for to in ("float32", "complex64", "int16", "bool"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of NumPy's, that a complex loses its imaginary part
                np.testing.assert_array_equal(A.astype(to).data.get(), without.data.astype(to))
        assert bool(caplog.records) == first
        caplog.clear()
    assert asked
    assert len(asked) == len(set(asked))
    # In SciPy's words, where SciPy checks.
    with pytest.raises(ValueError, match=r"^row: must lie in \[0, 40\), 2 of 3 do not|^axis 0 index 40 exceeds"):
        clsparse_py.csr_array((np.ones(3, np.float32), ([40, 0, -1], [0, 1, 2])), shape=(40, 50), queue=queue)


TRANSPOSITIONS = [
    ("auto", "transpose_at_once"),
    ("auto", "radix_chunk|transpose_at_once"),
    ("auto", "radix_|transpose_at_once"),
    ("auto", "radix_|transpose_(at_once|count|insert)"),
    ("gather", "transpose_gather"),
    ("gather", "transpose_sample"),
    ("binned", "radix_|transpose_bucket_"),
    ("atomics", "transpose_insert"),
    ("binned", "primitives_permute"),
]


@pytest.mark.parametrize(("method", "pattern"), TRANSPOSITIONS)
def test_plain_kernels_or_scipy_transpose_where_others_are_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], method: str, pattern: str
) -> None:
    asked = plant(pattern)
    host = matrix()
    host = scipy.sparse.csr_array(host + host.T)
    A = clsparse_py.csr_array(host, queue=queue)
    assert abs(A.T.tocsr().get() - host.T).nnz == 0
    if re.search("radix_(chunk)?|permute", pattern):
        # The plain kernels are some of these.
        with contextlib.suppress(BuildError):
            assert abs(clsparse_py.transpose_plan(A, method=method)(A.data * 2).get() - host.T * np.float32(2)).nnz == 0
    else:
        plan = clsparse_py.transpose_plan(A, method=method)
        for result, factor in ((clsparse_py.transpose(A, method=method), 1), (plan(), 1), (plan(A.data * 2), 2)):
            assert abs(result.get() - host.T * np.float32(factor)).nnz == 0
    if not asked:
        pytest.skip("this device is given another method")


@pytest.mark.parametrize("pattern", ["spmm_parts_.*_c([248]|1_w[248])", "primitives_partition"])
def test_simpler_kernels_of_many_columns_where_others_are_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], pattern: str
) -> None:
    asked, host, X = plant(pattern), matrix(), np.ones((60, 5), np.float32)
    A = clsparse_py.csr_array(host, queue=queue)
    plan = clsparse_py.spmm_plan(A)
    np.testing.assert_allclose(clsparse_py.spmm(A, X, plan=plan), host @ X, rtol=1e-4)
    if not asked:
        pytest.skip("this device is given the simplest kernel, or one without a partition")


@pytest.mark.parametrize("pattern", ["spmm_same", "spmm_parts_.*_r3"])
def test_rows_stay_apart_where_what_computes_them_together_is_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], take_as: Callable[..., None], pattern: str
) -> None:
    take_as(type="gpu")
    asked, host = plant(pattern), scipy.sparse.csr_array(scipy.sparse.kron(scipy.sparse.eye_array(20), np.ones((3, 3)), "csr"))
    host = host.astype(np.float32)
    X = np.arange(60.0 * 32, dtype=np.float32).reshape(60, 32)
    A = clsparse_py.csr_array(host, queue=queue)
    x = cl_array.to_device(queue, X)
    for _ in range(24):
        np.testing.assert_array_equal((A @ x).get(), host @ X)
    assert asked


#: Primitives, and the kernels that are refused of them: some of them after others were built.
PRIMITIVES = [
    ("scan", "primitives_(scan|tile).*tile|primitives_scan_tiles"),
    ("segmented", "segmented_tiles|segment_sums"),
    ("segmented", "add_partials"),
    ("by_key", "scan_tiles_runs"),
    ("radix", "radix_(scatter|count)"),
    ("radix", "radix_starts"),
    ("sort", "sort_network"),
    ("sort", "merge_splits"),
    ("merge", "sort_network_tiles|sort_network_segments"),
]


@pytest.mark.parametrize(("primitive", "pattern"), PRIMITIVES, ids=["-".join(primitive) for primitive in PRIMITIVES])
def test_a_refused_primitive_takes_plain_kernels(
    queue: cl.CommandQueue,
    plant: Callable[..., list[str]],
    take_as: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    primitive: str,
    pattern: str,
) -> None:
    take_as(type="gpu")
    if pattern == "radix_starts":  # of more tiles than the keys here have
        monkeypatch.setattr(Shape, "is_few", lambda *_: False)
    asked, rng = plant(pattern), np.random.default_rng(5)
    n = 40_000 if primitive == "radix" else 20_000  # so that there are more than a few tiles
    keys, values = rng.integers(0, 1 << 30, n, dtype=np.int32), rng.integers(0, 9, n, dtype=np.int32)
    ptr = np.concatenate(([0], np.sort(rng.integers(0, n, 40)), [n])).astype(np.int32)
    ptr[5:35] = ptr[5]  # makes a segment long
    place = lambda array: cl.array.to_device(queue, array)  # noqa: E731 - said three times a line
    segment = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    for _ in range(2):
        if primitive == "scan":
            a = place(values)
            clsparse_py.primitives.inclusive_scan(a, out=a)
            np.testing.assert_array_equal(a.get(), np.cumsum(values))
        elif primitive == "segmented":
            result = clsparse_py.primitives.segmented_sum(place(ptr), place(values))
            np.testing.assert_array_equal(result.get(), np.bincount(segment, values, ptr.size - 1))
            a, sums = place(values), np.cumsum(values)
            clsparse_py.primitives.segmented_scan(place(ptr), a, out=a)
            np.testing.assert_array_equal(a.get(), sums - np.concatenate(([0], sums))[ptr[segment]])
        elif primitive == "by_key":
            unique, result = clsparse_py.primitives.reduce_by_key(place(segment.astype(np.int32)), place(values))
            np.testing.assert_array_equal(unique.get(), np.unique(segment))
            np.testing.assert_array_equal(result.get(), np.bincount(segment, values)[np.unique(segment)])
        elif primitive == "radix":
            a, b = place(keys), place(values)
            clsparse_py.primitives.radix_sort(a, b, out=(a, b))
            order = np.argsort(keys, kind="stable")
            np.testing.assert_array_equal(a.get(), keys[order])
            np.testing.assert_array_equal(b.get(), values[order])
        elif primitive == "sort":
            a, b = place(values), place(keys)
            clsparse_py.primitives.segmented_sort(place(ptr), a, b, out=(a, b))
            order = np.lexsort((values, segment))
            np.testing.assert_array_equal(a.get(), values[order])
            np.testing.assert_array_equal(b.get(), keys[order])
        else:
            starts = np.append(np.arange(0, n, 7), n).astype(np.int32)
            runs = keys[np.lexsort((keys, np.arange(n) // 7))]
            segments = np.array([0, 1, 3, 100, 101, starts.size - 1], np.int32)
            result = clsparse_py.primitives.segmented_merge(place(segments), place(starts), place(runs))
            bounds = starts[segments]
            wanted = [np.sort(runs[begin:end]) for begin, end in itertools.pairwise(bounds)]
            np.testing.assert_array_equal(result.get(), np.concatenate(wanted))
    assert asked
    assert len(asked) == len(set(asked))


FROM_POCLS_CACHE = """
import sys
import pyopencl as cl
from clsparse_py import devices
from clsparse_py._build import programs
from clsparse_py._matrix.structure import Check
device = next(each for each in devices() if programs.identity(each) == sys.argv[1])
built = programs.build(cl.Context([device]), device, Check(64, "int32"))
cl.Kernel(built.program, built.parameters.name)
"""


def test_an_empty_entry_of_pocls_cache_is_built_around(tmp_path: Path) -> None:
    if "pocl" not in PLATFORMS:
        pytest.skip("PoCL is not there")
    cached = tmp_path / "pocl"
    cached.mkdir()
    command = [sys.executable, "-c", FROM_POCLS_CACHE, programs.identity(PLATFORMS["pocl"])]
    environment = {**os.environ, "POCL_CACHE_DIR": str(cached), "CLSPARSE_CACHE_DIR": str(tmp_path / "ours")}
    said = []
    for _ in range(2):
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stderr)
        # As a process leaves it that ends while it writes.
        for entry in cached.rglob("program.bc"):
            entry.write_bytes(b"")
    assert "built anew" not in said[0]
    assert "built anew" in said[1]


@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("kernel", ["construct_" + name for name in ("kron", "block", "triangle", "diagonals")])
def test_scipy_puts_arrays_together_too(queue: cl.CommandQueue, plant: Callable[..., list[str]], kernel: str, dtype: str) -> None:
    asked = plant(kernel)
    host = scipy.sparse.csr_array(matrix().astype(dtype))
    A, few = clsparse_py.csr_array(host, queue=queue), host[:4, :6]
    of_few = clsparse_py.csr_array(few, queue=queue)
    grid = [[host, None], [None, few], [None, host[:, :6]]]
    of_grid = [[None if operand is None else clsparse_py.csr_array(operand, queue=queue) for operand in row] for row in grid]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        diagonals = {"offsets": [1, -2], "shape": (9, 8), "dtype": dtype}
        for result, wanted in (
            (clsparse_py.kron(A, of_few), scipy.sparse.kron(host, few)),
            (clsparse_py.kron(of_few, A, format="csr"), scipy.sparse.kron(few, host)),
            (clsparse_py.block_array(of_grid), scipy.sparse.block_array(grid)),
            (clsparse_py.hstack([A, A]), scipy.sparse.hstack([host, host])),
            (clsparse_py.tril(A, 2), scipy.sparse.tril(host, 2)),
            (
                clsparse_py.diags_array([np.arange(7), 2], queue=queue, **diagonals),
                scipy.sparse.diags_array([np.arange(7), 2], **diagonals),
            ),
        ):
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(result.toarray(), wanted.toarray())
    assert asked


@pytest.mark.parametrize("pattern", ["canonical_order", "canonical_row_begins", "canonical_rows"])
def test_scipy_numbers_rows_too(queue: cl.CommandQueue, plant: Callable[..., list[str]], pattern: str) -> None:
    asked = plant(pattern)
    host = matrix().tocoo()
    A = clsparse_py.coo_array(host, queue=queue)
    result, wanted = A.tocsr(), host.tocsr()
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result, part).get(), getattr(wanted, part))
    for copy in (True, False):
        for coord, of_host in zip(result.tocoo(copy=copy).coords, host.coords, strict=True):
            np.testing.assert_array_equal(coord.get(), of_host)
    assert asked
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("dtype", ["complex64", "bool"])
def test_scipy_indexes_too(queue: cl.CommandQueue, plant: Callable[..., list[str]], dtype: str) -> None:
    asked = plant("^(indexing|positions|lengths|points)_")
    host = scipy.sparse.csr_array(matrix().astype(dtype))
    rng = np.random.default_rng(3)
    places, mask = rng.integers(-60, 60, 40), rng.random(60) < 0.4
    on_device, marks = (cl.array.to_device(queue, array) for array in (places, mask))
    A = clsparse_py.csr_array(host, queue=queue)
    for key, of_device in (
        (places, on_device), (slice(3, 30), slice(3, 30)), ((slice(None), slice(50, 3, -2)), (slice(None), slice(50, 3, -2))),
        (mask, marks), ((slice(None), np.unique(places % 60)), (slice(None), np.unique(places % 60))),
    ):  # fmt: skip
        result, wanted = A[of_device], host[key]
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(result, part).get(), getattr(wanted, part))
    np.testing.assert_array_equal(A[on_device, on_device[::-1]].get(), host[places, places[::-1]])
    for key in ((places, places[::-1]), (slice(5, 9), slice(None, None, 3)), host.nonzero()):
        values = rng.integers(0, 2, np.shape(host.toarray()[key])).astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
            A[key] = host[key] = values
            A[2:4] = host[2:4] = host[7:9]
        np.testing.assert_array_equal(A.toarray(), host.toarray())
        assert A.nnz == host.nnz
    for key in (on_device, (slice(None), on_device), (on_device, on_device)):
        with pytest.raises(IndexError, match="out of range"):
            clsparse_py.csr_array(host[:20, :20], queue=queue)[key]
    assert asked


@pytest.mark.parametrize("kernel", ["", "gather", "from_csr", "to_csr", "nonzero", "multiply", "(product|columns)"])
def test_blocks_without_their_kernels(queue: cl.CommandQueue, plant: Callable[..., list[str]], kernel: str) -> None:
    asked, host = plant(f"^bsr_{kernel}"), matrix().tobsr((3, 2))
    host = scipy.sparse.bsr_array(
        (np.vstack((host.data, host.data)), np.tile(host.indices, 2), 2 * host.indptr), shape=host.shape
    )
    host.data[::4] = 0
    A, X = clsparse_py.bsr_array(host, queue=queue), np.arange(180, dtype=np.float32).reshape(60, 3)
    B = A.copy()
    B.sum_duplicates()
    B.eliminate_zeros()
    of_rows = A.tocsr()
    assert of_rows.tobsr().blocksize == host.tocsr().tobsr().blocksize
    for result, wanted in (
        (A @ X, host @ X), (A @ X[:, 0], host @ X[:, 0]), ((A @ A.T).toarray(), (host @ host.T).toarray()),
        (B.toarray(), host.toarray()), (of_rows.tobsr((2, 3)).toarray(), host.toarray()),
        (A.sorted_indices().toarray(), host.toarray()),
    ):  # fmt: skip
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)
    assert asked
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("name", ["csr.data", "csr.indices", "csr.indptr", "csc.indices", "coo.row"])
def test_arrays_are_set_where_their_conversion_is_refused(
    queue: cl.CommandQueue, plant: Callable[..., list[str]], name: str
) -> None:
    """Indices of another type and values of a strided view are converted on the host."""
    asked, (form, attribute) = plant("convert"), name.split(".")
    host = matrix().asformat(form)
    A = getattr(clsparse_py, f"{form}_array")(host, queue=queue)
    values = getattr(host, attribute)
    if attribute == "data":
        on_device = cl_array.to_device(queue, np.repeat(2 * values, 2, axis=0))[::2]
        host.data = 2 * values
    else:
        on_device = cl_array.to_device(queue, values.astype(np.int64))
    setattr(A, attribute, on_device)
    assert asked
    np.testing.assert_array_equal(A.toarray(), host.toarray())
