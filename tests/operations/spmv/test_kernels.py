"""Every kernel of a product against brute force, on rows of every length that a kernel treats in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from oracle import addition, check, expected_product, random_structure, random_values
from pairs import combinations, uncovered_pairs
from platforms import PLATFORMS, has_fp64, queue_on
from pyopencl import array as cl_array

from clsparse_py import csr_array, spmm, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._device.device import Device, Portability, describe
from clsparse_py._operations.parts import Combine
from clsparse_py._operations.spmv.builder import Builder
from clsparse_py._operations.spmv.choose import KERNELS, KernelChoice
from clsparse_py._operations.spmv.kernels import Adaptive, Merge, Streamed, Subvector, VectorLong, nearest_work_group
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS, plus_times
from clsparse_py._run.dense_product import DenseProduct

# One below, at and above what a tile, a unrolled loop, a work-group or a piece holds; then twice and three times the largest.
LENGTHS = (
    *range(10), 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513,
    639, 640, 641, 1023, 1024, 1025, 1279, 1280, 1281, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193,
    16383, 16384, 16385, 32769, 49153,
)  # fmt: skip
N_COLS = 5000

#: What a case calls a kernel, and how the name of what is built begins.
BUILT_AS = {
    **{name: "spmv_subvector" for name in KERNELS if name == "serial" or name.startswith("subvector")},
    "vector": "spmv_subvector",
    "vector_long": "spmv_vector_long",
    "adaptive": "spmv_adaptive_rests",
    "adaptive on short rows": "spmv_adaptive",
    "nonzero_split": "spmv_adaptive_even",
    "narrow on short rows": "spmv_streamed",
    "merge": "spmv_merge",
    "chunked": "spmv_chunked",
    "fine bins": "spmv_subvector",
    "parts of spmm": "spmm_parts",
    "combine": "spmv_combine",
}
AXES: Mapping[str, Any] = {
    "kernel": list(BUILT_AS),
    "dtypes": [
        ("float32", "float32"), ("float64", "float64"), ("complex64", "complex64"), ("complex128", "complex128"),
        ("int32", "int32"), ("bool", "bool"), ("float32", "float64"), ("int8", "uint8"),
    ],
    "algebra": ["plus_times", "scaled", *list(SEMIRINGS)[1:]],
    "work_group": [1, 7, 48, 64, "max"],
    "index": ["int32", "int64"],
    "lanes": ["own", 1],
    "platform": list(PLATFORMS),
}  # fmt: skip


def legal(case: Mapping[str, Any]) -> bool:
    """Complex values have no order; booleans no alpha but True; doubles need a device that has them."""
    complex_values = any(name.startswith("complex") for name in case["dtypes"])
    needs_fp64 = any(name in ("float64", "complex128") for name in case["dtypes"])
    if complex_values and case["algebra"] != "scaled" and SEMIRINGS[case["algebra"]].ordered:
        return False
    return not needs_fp64 or has_fp64(case["platform"])


CASES = combinations(AXES, legal)


def _name(case: Mapping[str, Any]) -> str:
    return "-".join("_".join(value) if isinstance(value, tuple) else str(value).replace(" ", "_") for value in case.values())


def test_cases_hold_every_pair() -> None:
    assert not uncovered_pairs(AXES, legal, CASES)


@pytest.fixture(scope="module")
def lengths() -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.permutation([*LENGTHS, *([0] * 40), *rng.integers(0, 40, 300)])


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_kernel(case: dict[str, Any], lengths: np.ndarray, narrow_lanes: Callable[[int], None]) -> None:
    rng = np.random.default_rng(7)
    queue = queue_on(case["platform"])
    if case["lanes"] == 1:
        narrow_lanes(1)
    work_group = describe(queue.device).max_work_group if case["work_group"] == "max" else case["work_group"]
    a, x_dtype = case["dtypes"]
    scaled = case["algebra"] == "scaled"
    semiring = plus_times if scaled else SEMIRINGS[case["algebra"]]
    dtype = semiring.result_dtype(np.dtype(a), np.dtype(x_dtype))
    scale = {}
    if scaled:
        pairs = {"b": (True, True), "i": (2, -3), "f": (-0.5, 2), "c": (0.5 - 2j, 1j)}
        scale = dict(zip(("alpha", "beta"), pairs[dtype.kind], strict=True))
    nonnegative = case["algebra"] == "max_times"
    if case["kernel"].endswith("on short rows"):
        lengths = np.minimum(lengths, 1 + work_group * 5 // 8)
    if case["kernel"] == "combine":
        _check_combine(queue, case, dtype, work_group, scale, rng)
        return
    indices, indptr = random_structure(lengths, N_COLS, rng, case["index"])
    parts = random_values(a, indices.size, rng, nonnegative=nonnegative), indices, indptr
    columns = (3,) if case["kernel"] == "parts of spmm" else ()
    x = random_values(x_dtype, (N_COLS, *columns), rng, nonnegative=nonnegative)
    y = random_values(dtype, (lengths.size, *columns), rng)
    A = csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=(lengths.size, N_COLS), check=False)
    assert A.indptr.dtype == case["index"]
    on_device = cl_array.to_device(queue, x)

    def multiply() -> np.ndarray:
        out = cl_array.to_device(queue, y)
        if columns:
            return spmm(A, on_device, out=out, semiring=semiring, work_group=work_group, **scale).get()
        return spmv(A, on_device, out=out, plan=plan, semiring=semiring, **scale).get()

    with programs.recording() as built:
        if not columns:
            if case["kernel"] == "fine bins":
                choice = KernelChoice("subvector8", work_group, unroll=2)
                plan = spmv_plan(A, scheme="fine", kernel=choice)
            else:
                plan = spmv_plan(A, kernel=KernelChoice(case["kernel"].split()[0], work_group, items=5, unroll=2))
        result = multiply()
    check(result, expected_product(parts, x, semiring, y=y, **scale))
    np.testing.assert_array_equal(result.view(np.uint8), multiply().view(np.uint8))  # bitwise
    _check_built(case, built, queue, work_group)


def _check_built(case: Mapping[str, Any], built: list[Built], queue: cl.CommandQueue, work_group: int) -> None:
    """Check that the kernel which ran is the one asked for, at the nearest legal work-group size."""
    records = [program.parameters for program in built if program.parameters.name.startswith(BUILT_AS[case["kernel"]])]
    assert records, [program.parameters.name for program in built]
    record: Any = records[-1]
    assert (record.portability.lane_width == 1) or case["lanes"] == "own"
    assert record.arithmetic.index == case["index"]
    assert record.scaled == (case["algebra"] == "scaled")
    most = describe(queue.device).max_work_group
    asked = min(work_group, most)
    if isinstance(record, Subvector):
        width = {"serial": 1, "fine bins": 8, "vector": 1 << asked.bit_length() - 1}.get(case["kernel"])
        width = width or int(case["kernel"].removeprefix("subvector"))
        asked = nearest_work_group(work_group, width, most)
        assert record.lanes == min(width, 1 << record.work_group.bit_length() - 1)
    elif isinstance(record, VectorLong):
        asked = 1 << asked.bit_length() - 1
    if case["work_group"] != "max":
        assert _is_taken(queue, record.work_group, asked)


def _is_taken(queue: cl.CommandQueue, work_group: int, asked: int) -> bool:
    """Return whether a kernel has the work-group size asked for, or the driver allows less than that to kernels."""
    if work_group == asked:
        return True
    head = f"kernel __attribute__((reqd_work_group_size({asked}, 1, 1)))"
    source = f"{head} void probe(global int *out) {{ out[get_global_id(0)] = 1; }}"
    kernel = cl.Kernel(programs.compile_source(queue.context, queue.device, source), "probe")
    limit = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, queue.device)
    return work_group <= limit < asked


def _check_combine(
    queue: cl.CommandQueue,
    case: Mapping[str, Any],
    dtype: np.dtype,
    work_group: int,
    scale: dict[str, Any],
    rng: np.random.Generator,
) -> None:
    """Add pieces to rows with the kernel itself: plans ask for one work-group size of it."""
    name = "plus_times" if scale else case["algebra"]
    # A T is added to a T: what matters is the type of the result.
    arithmetic = Arithmetic(case["dtypes"][0], case["dtypes"][1], case["index"], name)
    pieces_per_row = np.array([1, 2, 3, 31, 32, 33, 64, 65, 200, 1000, 1])
    ends = np.cumsum(pieces_per_row)
    partial = random_values(dtype, int(ends[-1]), rng, nonnegative=True)
    y = random_values(dtype, 64, rng, nonnegative=True)
    rows = rng.permutation(64)[: ends.size]
    record = Combine.legal(describe(queue.device), arithmetic, bool(scale), work_group, 32 if case["index"] == "int32" else 256)
    parts = np.ones(64, case["dtypes"][0]), np.zeros(64, case["index"]), np.arange(65, dtype=case["index"])
    A = csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=(64, 1), check=False)
    on_device, held = cl_array.to_device(queue, y), cl_array.to_device(queue, partial)
    builder = Builder(spmv_plan(A, kernel="serial").inspected, arithmetic, bool(scale))
    with programs.recording() as built:
        builder.add_combine(np.repeat(rows, pieces_per_row), np.arange(ends[-1]), held, record)
    assert case["work_group"] == "max" or _is_taken(queue, built[0].parameters.work_group, 1 << work_group.bit_length() - 1)
    alpha = scale.get("alpha", 1)
    scalars = (np.array(alpha, dtype)[()], np.array(5, dtype)[()]) if scale else ()
    # In place of A's values and of x, which this kernel does not read, stands y.
    DenseProduct(builder.recorder.recording(), queue).run(queue, (on_device,) * 3, scalars)
    ring = SEMIRINGS[name]
    # The rows as a matrix of ones... of every ring: the pieces of a row, and then the row itself.
    wanted = y.copy()
    add = addition(ring, dtype)
    for row, last, n in zip(rows, ends, pieces_per_row, strict=True):
        part = partial[last - n : last]
        if add is np.add:
            wide = part.astype({"f": np.longdouble, "c": np.clongdouble}.get(dtype.kind, np.int64)).sum()
            wanted[row] = (y[row] + wide * alpha).astype(dtype)
        else:
            for piece in part:
                wanted[row] = add(wanted[row], piece)
    result = on_device.get()
    if dtype.kind in "fc":
        np.testing.assert_allclose(result, wanted, rtol=1100 * np.finfo(dtype).eps)
    else:
        np.testing.assert_array_equal(result, wanted)


MADE_UP = Device(
    name="made up", platform="none", driver_version="1", type="gpu", compute_units=4, max_work_group=256, local_memory=32 << 10,
    max_allocation=1 << 28, global_memory=1 << 30, preferred_multiple=32, sub_group_sizes=(), fp64=True, fp16=False,
    int64_atomics=False, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False, svm=(),
    portability=Portability("sub_group", 16),
)  # fmt: skip
DOUBLE = Arithmetic("float64", "float64")


def test_empty_rows_behind_a_long_one(queue: cl.CommandQueue) -> None:
    # The last part begins inside a long row, which an earlier part takes to its end: it has nothing but empty rows.
    rng = np.random.default_rng(11)
    x = random_values("float32", N_COLS, rng)
    built = []
    for lead, long in ((0, 700), (10, 600), (900, 1500), (2040, 2500), (319, 321), (319, 322)):
        lengths = np.array([1] * lead + [long] + [0] * 3000)
        indices, indptr = random_structure(lengths, N_COLS, rng, "int32")
        parts = random_values("float32", indices.size, rng), indices, indptr
        A = csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=(lengths.size, N_COLS), check=False)
        for choice in (KernelChoice("adaptive", 64, items=5), KernelChoice("adaptive", 256, items=4)):
            with programs.recording() as record:
                result = spmv(A, x, plan=spmv_plan(A, kernel=choice))
            check(result, expected_product(parts, x, plus_times))
            built += [program.parameters.name for program in record]
    assert any(name.startswith(BUILT_AS["adaptive"]) for name in built)


@pytest.mark.parametrize(
    ("asked", "multiple", "most", "nearest"),
    [(1, 1, 256, 1), (7, 1, 256, 7), (48, 32, 256, 64), (47, 32, 256, 32), (7, 8, 256, 8), (1, 128, 256, 128),
     (9999, 32, 256, 256),      (9999, 48, 256, 240), (64, 64, 1, 64)],
)  # fmt: skip
def test_nearest_work_group(asked: int, multiple: int, most: int, nearest: int) -> None:
    assert nearest_work_group(asked, multiple, most) == nearest


@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 256, 5000])
@pytest.mark.parametrize("most", [1, 7, 128, 256])
def test_legal_records_keep_within_the_device(work_group: int, most: int) -> None:
    device = replace(MADE_UP, max_work_group=most)
    for width in (1, 2, 32, 128):
        record = Subvector.legal(device, DOUBLE, False, width, work_group, 2, binned=False)
        assert record.work_group <= most
        assert record.work_group % record.lanes == 0
        assert record.lanes & (record.lanes - 1) == 0
    pieces = VectorLong.legal(device, DOUBLE, False, work_group, 2)
    assert pieces.work_group <= min(work_group, most) < 2 * pieces.work_group
    combine = Combine.legal(device, DOUBLE, False, work_group)
    assert combine.work_group <= min(work_group, most) < 2 * combine.work_group
    assert combine.work_group % combine.lanes == 0


@pytest.mark.parametrize("local_memory", [64, 1 << 10, 16 << 10, 1 << 20])
@pytest.mark.parametrize("items", [1, 5, 40])
def test_balanced_records_fit_in_local_memory(local_memory: int, items: int) -> None:
    device = replace(MADE_UP, local_memory=local_memory)
    for kind in (Adaptive, Merge, Streamed):
        record = kind.legal(device, DOUBLE, False, 256, items)
        assert record.local_memory <= local_memory
        assert record.capacity >= 1
        # No smaller than it has to be.
        unbounded = type(record).legal(replace(device, local_memory=1 << 30), DOUBLE, False, 256, items)
        larger = (
            replace(record, items=record.items + 1)
            if record.work_group == 256
            else replace(record, work_group=record.work_group * 2)
        )
        assert record == unbounded or larger.local_memory > local_memory
    adaptive = Adaptive.legal(device, DOUBLE, False, 256, items)
    assert adaptive.work_group % adaptive.lanes == 0


def test_within_gives_the_nearest_legal_record() -> None:
    subvector = Subvector.legal(MADE_UP, DOUBLE, False, 64, 256, 2, binned=False)
    smaller = subvector.within(100, 8)
    assert (smaller.work_group, smaller.lanes, smaller.lane_width) == (64, 64, 8)
    tiny = subvector.within(1, 1)
    assert (tiny.work_group, tiny.lanes, tiny.portability.lanes) == (1, 1, "local")
    assert subvector.within(0, 1) is None
    assert VectorLong.legal(MADE_UP, DOUBLE, False, 256, 2).within(100, 16).work_group == 64
    assert Adaptive.legal(MADE_UP, DOUBLE, False, 256, 2).within(12, 16).lanes == 4
    fewer = Combine.legal(MADE_UP, DOUBLE, False).within(12, 16)
    assert (fewer.work_group, fewer.columns, fewer.lanes) == (8, 1, 8)
    wide = Combine.legal(MADE_UP, DOUBLE, False, 256, 256, 32)
    assert (wide.columns, wide.lanes, wide.within(16, 16).columns, wide.within(16, 16).lanes) == (32, 8, 16, 1)
    assert Merge.legal(MADE_UP, DOUBLE, False, 256, 2).within(0, 16) is None
    for kind in (VectorLong, Adaptive, Streamed):
        assert kind.legal(MADE_UP, DOUBLE, False, 256, 2).within(0, 16) is None
    assert Streamed.legal(MADE_UP, DOUBLE, False, 256, 2).for_rows(70).lanes == 32


def test_names_tell_records_apart() -> None:
    records = {
        Subvector.legal(MADE_UP, arithmetic, scaled, width, 64, unroll, binned=binned)
        for arithmetic in (DOUBLE, Arithmetic("float32", "float64"), Arithmetic("float64", "float64", "int64", "min_plus"))
        for scaled in (False, True)
        for width in (1, 8)
        for unroll in (1, 4)
        for binned in (False, True)
    }
    assert len({record.name for record in records}) == len(records) == 48
