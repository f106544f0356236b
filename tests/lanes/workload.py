"""Run every kernel on small inputs on the default device, compare with SciPy, and print what ran as a line of JSON.

Lanes run it in a process of its own, on a device of theirs. ``--simulated``: fewer cases and smaller work-groups, for a simulator
that takes a thousand times as long. ``--third``: every third case. All values are small whole numbers, so that every dtype's
results are exact whatever the order of a sum.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal
from unittest import mock

import few_declarations
import numpy as np
import pyopencl as cl
import scipy.sparse
import unoptimised
from amg_cases import amg_cases
from bsr_cases import bsr_cases
from construct_cases import construct_cases
from elementwise_cases import elementwise_cases
from graph_cases import graph_cases
from indexing_cases import indexing_cases
from krylov_cases import krylov_cases
from mask_cases import mask_cases
from oracle import addition, multiply
from pairs import exhaustive
from primitive_cases import primitive_cases
from pyopencl import array as cl_array
from radix_cases import radix_cases
from segment_cases import segment_cases
from spgemm_cases import spgemm_cases
from supposed import describe_as, suppose
from transpose_cases import transpose_cases
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import csr_array, describe, spmm, spmm_plan, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._device.device import Device
from clsparse_py._matrix.structure import check_structure
from clsparse_py._memory import pool
from clsparse_py._memory.pool import Lent
from clsparse_py._operations.spmm import plan as spmm_of_plans
from clsparse_py._operations.spmm.choose import Shape
from clsparse_py._operations.spmm.choose import choose as choose_shape
from clsparse_py._operations.spmv import KERNELS, KernelChoice, Scheme
from clsparse_py._operations.spmv.binning import N_BINS, count_bins, list_rows
from clsparse_py._operations.spmv.choose import Thresholds
from clsparse_py._operations.spmv.features import inspect
from clsparse_py._precision import semiring

Array = np.ndarray[Any, Any]
Case = partial[None]

FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Axes:
    """The axes that cases rotate through."""

    work_groups: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]
    semirings: int  # how many of them each kernel takes

    @classmethod
    def of(cls, device: Device, simulated: bool) -> Axes:
        # As many as work-group sizes, and of every size of a value.
        wide = ("complex128", "float64") if device.fp64 else ("complex64", "bool")
        dtypes = tuple(np.dtype(name) for name in ("float32", "uint8", wide[0], "int64", wide[1]))
        work_groups = (min(size, device.max_work_group) for size in (1, 7, 48, 64, 16 if simulated else 1024))
        return cls(tuple(work_groups), dtypes, 1 if simulated else 2)


@dataclass
class Report:
    """The report of a run of the workload to its lane."""

    device: str
    fp64: bool
    cases: int = 0
    kernels: dict[str, str] = field(default_factory=dict)  # name -> template
    skipped: dict[str, str] = field(default_factory=dict)  # what -> reason
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Matrix:
    """Row lengths, and columns at random: neither sorted nor unique."""

    lengths: tuple[int, ...]
    n_cols: int
    name: str

    def __repr__(self) -> str:
        return self.name

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.lengths), self.n_cols

    @functools.cached_property
    def structure(self) -> tuple[Array, Array]:
        rng = np.random.default_rng(len(self.lengths))
        return rng.integers(0, max(self.n_cols, 1), sum(self.lengths)), np.cumsum((0, *self.lengths))

    def values(self, dtype: np.dtype[Any]) -> Array:
        return numbers(self.structure[0].size, dtype)


#: Empty rows at the beginning, at the end and between, and rows that one, few and many work-items sum.
RAGGED = Matrix((0, 3, 1, 0, 0, 40, 2, 9, 17, 1, 90, 0, 5, 0), 23, "ragged")
#: Rows that are cut, also into more than two parts, and mostly empty ones.
CUT = Matrix((300, 0, 0, 90, 3, 0, 0, 0, 0, 600, 0), 50, "cut")
#: A row in several pieces, one in a piece, and an empty one.
PIECES = Matrix((20, 17_000, 0, 400), 60, "pieces")
NOTHING = (Matrix((), 5, "no rows"), Matrix((0, 0, 0), 4, "no entries"), Matrix((0, 0, 0), 0, "no columns"))
DIAGONAL = Matrix((1,) * 9, 12, "one entry a row")


def expected(matrix: Matrix, a: Array, x: Array, ring: semiring.Semiring) -> Array:
    """Return the product of a matrix with values ``a`` and a vector, entry by entry where SciPy has no such product."""
    indices, indptr = matrix.structure
    if ring == semiring.plus_times:
        return np.asarray(scipy.sparse.csr_array((a, indices, indptr), shape=matrix.shape) @ x)
    dtype = ring.result_dtype(a.dtype, x.dtype)
    y = np.full(matrix.shape[0], ring.identity(dtype), dtype)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(indptr))
    addition(ring, dtype).at(y, rows, multiply(ring, a, x[indices], dtype))
    return y


def on_device(matrix: Matrix, a: Array, index: type[Any] = np.int32) -> csr_array:
    """Return a matrix whose index type is ``index``. The kernel that checks structures has cases of its own."""
    queue = clsparse_py.default_queue()
    parts = (a, *(part.astype(index) for part in matrix.structure))
    return csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=matrix.shape, check=False)


def product(
    matrix: Matrix,
    kernel: KernelChoice | str | None,
    dtype: np.dtype[Any],
    index: type[Any] = np.int32,
    scheme: str = "auto",
    ring: semiring.Semiring = semiring.plus_times,
    scaled: bool = False,
) -> None:
    """Multiply on the device with a kernel and compare, by the scaled form of the kernel where that is asked for."""
    a, x = matrix.values(dtype), numbers(matrix.n_cols, dtype)
    A = on_device(matrix, a, index)
    plan = spmv_plan(A, scheme=scheme, kernel=kernel)
    wanted = expected(matrix, a, x, ring)
    # A device array that begins inside its buffer.
    x_device = cl_array.to_device(A.queue, np.concatenate((x[:1], x)))[1:] if x.size else cl_array.to_device(A.queue, x)
    if not scaled:
        same(spmv(A, x_device, plan=plan, semiring=ring), wanted)
        return
    # With beta 0, what is in y is not read: nothing was ever written there.
    y = cl_array.empty(A.queue, matrix.shape[0], wanted.dtype)
    same(spmv(A, x_device, alpha=2, beta=0, out=y, plan=plan), (wanted * wanted.dtype.type(2)).astype(wanted.dtype))
    before = numbers(matrix.shape[0], dtype)
    y = cl_array.to_device(A.queue, before)
    same(spmv(A, x_device, alpha=1, beta=3, out=y, plan=plan), (wanted + before * dtype.type(3)).astype(dtype))


def choice(name: str, work_group: int) -> KernelChoice:
    """Return a kernel with a work-group size, few entries to a work-item so that rows are cut."""
    return KernelChoice(name, work_group, items=3, unroll=2)


def product_cases(axes: Axes) -> Iterator[Case]:
    """Every template with every dtype, work-group size, index type and semiring, rotated against each other."""
    rings = [ring for ring in semiring.SEMIRINGS.values() if ring != semiring.plus_times]
    for k, name in enumerate(KERNELS):
        yield partial(product, RAGGED, name, FLOAT32)
        for i, dtype in enumerate(axes.dtypes):
            # Seven widths of one template: two dtypes each.
            if name.startswith("subvector") and (i - k) % 5 > 1:
                continue
            kernel, index = choice(name, axes.work_groups[(i + k) % 5]), INDEX_TYPES[(i + k // 5) % 2]
            yield partial(product, RAGGED if i % 2 else CUT, kernel, dtype, index, scaled=dtype.kind != "b" and i % 3 != 1)
        for i in range(k, k + axes.semirings):
            dtype = np.dtype(("float32", "int32", "uint8")[i % 3])
            yield partial(product, RAGGED, choice(name, (48, 64)[i % 2]), dtype, ring=rings[i % len(rings)])


def plan_cases(axes: Axes) -> Iterator[Case]:
    """Binning schemes, rows that several work-groups share, and matrices with nothing in them."""
    for i, scheme in enumerate(("auto", "single", "fine", "coarse-10", "coarse-2", "hybrid-10", "hybrid-2")):
        dtype = axes.dtypes[i % len(axes.dtypes)]
        for matrix, index in ((RAGGED, np.int32), (CUT, np.int64)):
            yield partial(product, matrix, None, dtype, index, scheme, scaled=dtype.kind != "b")
    schemes, names = ("fine", "coarse-2", "hybrid-2"), ("serial", "subvector8", "subvector64")
    for i, (scheme, name) in enumerate(itertools.product(schemes, names)):
        yield partial(product, RAGGED, choice(name, axes.work_groups[i % 4]), FLOAT32, scheme=scheme)
    yield partial(product, PIECES, choice("vector_long", 64), np.dtype(np.int32))
    yield partial(product, PIECES, None, np.dtype(np.int32), scheme="fine")
    for i, kernel in enumerate((*KERNELS, *(None for _ in NOTHING))):
        yield partial(product, NOTHING[i % len(NOTHING)], kernel, FLOAT32, scaled=True)


def compress(dtype: np.dtype, index: type[Any], work_group: int, max_patterned_row: int) -> None:
    """Multiply short rows with columns in 16 bits or, if these are looked for, by row patterns, and compare."""
    matrix = Matrix(tuple(i % 4 for i in range(60)), 12, "up to three entries a row")
    a = matrix.values(dtype)
    A, x = on_device(matrix, a, index), numbers(matrix.n_cols, dtype)
    plan, operand = spmv_plan(A, kernel=KernelChoice("narrow", work_group, items=4)), cl_array.to_device(A.queue, x)
    with mock.patch.object(Thresholds, "of", suppose(Thresholds, min_patterned_rows=1, max_patterned_row=max_patterned_row)):
        plan.settle(A, operand, cl_array.zeros(A.queue, matrix.shape[0], dtype))
    assert ("row patterns" in plan.explain().shares[0].why) == (max_patterned_row > 0)
    same(spmv(A, operand, plan=plan), expected(matrix, a, x, semiring.plus_times))


def compressed_cases(axes: Axes, max_patterned_row: int) -> Iterator[Case]:
    """The kernels of compressed columns: columns in 16 bits or, with longer patterned rows than 0, row patterns."""
    for i, dtype in enumerate(axes.dtypes[:3]):
        yield partial(compress, dtype, INDEX_TYPES[i % 2], (7, 48, 64)[i], max_patterned_row)


def structure(matrix: Matrix, index: type[Any], work_group: int) -> None:
    """Run the kernels that read the structure alone, and compare with NumPy."""
    A = on_device(matrix, matrix.values(np.dtype(np.float32)), index)
    indices, indptr = matrix.structure
    lengths, n_rows = np.diff(indptr), matrix.shape[0]
    result = check_structure(A.queue, A.shape, A.indices, A.indptr, work_group)
    reference = scipy.sparse.csr_array((np.ones(indices.size), indices, indptr), shape=matrix.shape)
    assert (result.sorted, result.canonical) == (reference.has_sorted_indices, reference.has_canonical_format)
    features = inspect(A.queue, A.shape, A.nnz, A.indptr, A.indices, work_group)
    assert (features.shortest, features.longest) == (lengths.min(), lengths.max())
    assert np.isclose(features.variance, lengths.var())
    assert np.isclose(features.jumps, np.abs(np.diff(lengths)).sum() / indices.size)
    assert sum(features.classes) == n_rows
    assert inspect(A.queue, A.shape, A.nnz, A.indptr, A.indices, work_group, few_groups=0) == features
    for side in Scheme("coarse", 2).sides + Scheme("fine").sides:
        work = np.add.reduceat(lengths, np.arange(0, n_rows, side.granularity))
        bins = np.minimum(work // side.granularity, N_BINS - 1)
        counts = count_bins(A.queue, n_rows, A.indptr, side, work_group)
        np.testing.assert_array_equal(counts, np.bincount(bins, minlength=N_BINS))
        list_of_bin = (np.arange(N_BINS) > 2).astype(np.int32)
        rows = list_rows(A.queue, n_rows, A.indptr, side, list_of_bin, bins.size, work_group)
        np.testing.assert_array_equal(rows.get(), np.argsort(list_of_bin[bins], kind="stable"))


def structure_cases(axes: Axes) -> Iterator[Case]:
    """The kernels of checking and planning, with every work-group size."""
    for i, work_group in enumerate(axes.work_groups):
        yield partial(structure, RAGGED, INDEX_TYPES[i % 2], work_group)
    for index in INDEX_TYPES:
        yield partial(structure, DIAGONAL, index, 7)


def many_columns(
    dtype: np.dtype[Any],
    n_columns: int,
    order: Literal["C", "F"],
    work_group: int,
    index: type[Any],
    scaled: bool,
    matrix: Matrix = RAGGED,
) -> None:
    """Multiply with a dense matrix and compare."""
    a, X = matrix.values(dtype), numbers((matrix.n_cols, n_columns), dtype)
    A = on_device(matrix, a, index)
    indices, indptr = matrix.structure
    wanted = scipy.sparse.csr_array((a, indices, indptr), shape=matrix.shape) @ X
    X_device = cl_array.to_device(A.queue, np.asarray(X, order=order))
    same(spmm(A, X_device, work_group=work_group), wanted)
    if scaled:
        out = cl_array.empty(A.queue, wanted.shape, wanted.dtype)
        same(spmm(A, X_device, alpha=2, beta=0, out=out, work_group=work_group), (wanted * dtype.type(2)).astype(dtype))


def multiply_strided() -> None:
    """Multiply with a vector of every second entry of an array."""
    A, x = on_device(RAGGED, RAGGED.values(FLOAT32)), numbers(2 * RAGGED.n_cols, FLOAT32)
    wanted = expected(RAGGED, RAGGED.values(FLOAT32), x[::2], semiring.plus_times)
    same(spmv(A, cl_array.to_device(A.queue, x)[::2]), wanted)


def teams(dtype: str, n_columns: int, order: Literal["C", "F"]) -> None:
    """Multiply with a dense matrix as on a GPU, whatever the device is: parts staged, rows cut, X packed."""

    def chosen(device: Device, *product: Any) -> tuple[Shape, str]:
        return choose_shape(replace(device, type="gpu"), *product)

    with mock.patch.object(spmm_of_plans, "choose", chosen):
        many_columns(np.dtype(dtype), n_columns, order, 32, np.int32, dtype == "float32", CUT)


def together(index: type[Any]) -> None:
    """Multiply with a dense matrix as on a GPU: rows one by one, and then those with the same columns together."""
    S = scipy.sparse.csr_array(
        np.kron(np.eye(6, dtype=np.int32), np.ones((3, 4), np.int32))[:17] * np.arange(1, 25), dtype=FLOAT32
    )
    A = csr_array((S.data, S.indices.astype(index), S.indptr.astype(index)), shape=S.shape)
    with describe_as(type="gpu"):
        plans = spmm_plan(A), spmm_plan(A, expected_calls=1 << 20)
        for n_columns in (32, 20):
            X = numbers((24, n_columns), FLOAT32)
            for plan in plans:
                same(spmm(A, cl_array.to_device(A.queue, X), plan=plan), S @ X)
    assert all("3 rows together" in explanation.kernel for explanation in plans[1].explain().products)


def spmm_cases(axes: Axes) -> Iterator[Case]:
    """Products with several columns in either order, and with a vector of any stride."""
    for index in INDEX_TYPES:
        yield partial(together, index)
    for dtype, n_columns, order in (("float32", 8, "C"), ("int32", 6, "F"), ("float32", 3, "C")):
        yield partial(teams, dtype, n_columns, order)
    for i, dtype in enumerate(axes.dtypes):
        n_columns, order, index = (1, 2, 3, 4, 6)[i % 5], "CF"[i % 2], INDEX_TYPES[i // 2 % 2]
        yield partial(many_columns, dtype, n_columns, order, axes.work_groups[i % 4], index, scaled=dtype.kind != "b")
    yield partial(multiply_strided)


def multiply_mixed(a_dtype: str, x_dtype: str, kernel: str) -> None:
    """Multiply operands of two dtypes, from the host, and compare."""
    a, x = RAGGED.values(np.dtype(a_dtype)), numbers(RAGGED.n_cols, np.dtype(x_dtype))
    A = on_device(RAGGED, a)
    same(spmv(A, x, plan=spmv_plan(A, kernel=choice(kernel, 48))), expected(RAGGED, a, x, semiring.plus_times))


def mixed_cases(fp64: bool) -> Iterator[Case]:
    """Operands of different dtypes, in rotation."""
    pairs = [("float32", "complex64"), ("int8", "int32"), ("bool", "float32")]
    pairs += [("float32", "float64"), ("int32", "float32"), ("complex64", "float64")] if fp64 else []
    kernels = ("chunked", "adaptive", "nonzero_split", "merge", "subvector4", "vector_long")
    for i, kernel in enumerate(kernels):
        yield partial(multiply_mixed, *pairs[i % len(pairs)], kernel)


def views(target: str, step: int) -> None:
    """Make a matrix of parts that are views of device arrays, and compare."""
    indices, indptr = (part.astype(np.int32) for part in RAGGED.structure)
    a = RAGGED.values(FLOAT32)
    queue = clsparse_py.default_queue()
    parts = [cl_array.to_device(queue, np.repeat(part, step)) for part in (a, indices, indptr)]
    A = csr_array(tuple(part[::step] for part in parts), shape=RAGGED.shape, dtype=target)
    same(A.data, a.astype(target))
    same(A.indices, indices)
    same(A.indptr, indptr)


def view_cases(axes: Axes) -> Iterator[Case]:
    """Views and conversions of what is on the device."""
    for i, dtype in enumerate(axes.dtypes):
        if dtype.kind != "b":
            yield partial(views, dtype.name, 1 + i % 3)


def expect_refusal(a_dtype: str, operation: Callable[[csr_array], object]) -> None:
    """Expect what needs double precision to be refused, with an error that says so."""
    try:
        operation(csr_array(scipy.sparse.eye_array(3, dtype=a_dtype)))
    except TypeError as error:
        if "double precision" not in str(error):
            raise
    else:
        raise AssertionError("was not refused")


def refusal_cases() -> Iterator[Case]:
    """The cases that a device without double precision refuses."""
    for dtype in ("float64", "complex128"):
        yield partial(expect_refusal, dtype, repr)
        yield partial(expect_refusal, "float32", partial(csr_array.astype, dtype=dtype))
        yield partial(expect_refusal, "float32", partial(spmv, x=np.ones(3, dtype)))
        yield partial(expect_refusal, "float32", partial(spmm, X=np.ones((3, 2), dtype)))
    # int32 times float32 is float64, in SciPy and here.
    yield partial(expect_refusal, "int32", partial(spmv, x=np.ones(3, np.float32)))


def make_writes_visible() -> None:
    """Work around false reports of uninitialised reads (quirk 26): Oclgrind loses track of writes in three cases.

    A buffer in the place of a freed smaller one has entries that no write initialises: so none is freed. A copy to a part
    of a buffer initialises other bytes than its own: so the whole buffer is written. Filling a buffer initialises nothing: so it
    is written too.
    """
    make, create, copy = cl_array.Array.__init__, pool._create, cl.enqueue_copy
    kept: list[Any] = []

    def init_array(self: cl_array.Array, *args: Any, **named: Any) -> None:
        make(self, *args, **named)
        if not isinstance(self.base_data, Lent):  # the pool keeps its own
            kept.append(self.base_data)

    def create_buffer(*args: Any) -> cl.Buffer:
        kept.append(create(*args))
        return cl.Buffer.from_int_ptr(kept[-1].int_ptr, retain=True)

    def enqueue_copy(queue: cl.CommandQueue, to: Any, source: Any, **named: Any) -> cl.Event:
        if not isinstance(to, cl.MemoryObject) or not isinstance(source, cl.MemoryObject):
            return copy(queue, to, source, **named)
        first, begin, size = named.get("src_offset", 0), named.get("dst_offset", 0), named.get("byte_count", source.size)
        before, whole = np.empty(source.size, np.uint8), np.empty(to.size, np.uint8)
        copy(queue, before, source)
        copy(queue, whole, to)
        whole[begin : begin + size] = before[first : first + size]
        return copy(queue, to, whole)

    def enqueue_fill(queue: cl.CommandQueue, to: Any, pattern: Any, begin: int, size: int, wait_for: Any = None) -> cl.Event:
        whole = np.empty(to.size, np.uint8)
        copy(queue, whole, to, wait_for=wait_for)
        whole[begin : begin + size] = np.resize(np.frombuffer(pattern, np.uint8), size)
        return copy(queue, to, whole)

    cl_array.Array.__init__ = init_array
    pool._create = create_buffer
    cl.enqueue_copy = enqueue_copy
    cl.enqueue_fill_buffer = enqueue_fill


def main() -> None:
    """Run all cases and print the report."""
    simulated = "--simulated" in sys.argv
    if simulated:
        make_writes_visible()
    if not exhaustive():
        few_declarations.install()
        unoptimised.install()
    device = describe(clsparse_py.default_queue().device)
    axes = Axes.of(device, simulated)
    report = Report(f"{device.platform} {device.driver_version}, {device.name}", device.fp64)
    cases = [
        *compressed_cases(axes, 3),
        *product_cases(axes),
        *plan_cases(axes),
        *structure_cases(axes),
        *spmm_cases(axes),
        *view_cases(axes),
    ]
    # Oclgrind 21.10 takes memory that one kernel wrote and another reads for unwritten, if buffers were let go before.
    cases += [] if simulated else compressed_cases(axes, 0)
    cases += primitive_cases(axes.dtypes, axes.work_groups)
    cases += radix_cases(axes.dtypes, simulated=simulated)
    cases += segment_cases(axes.dtypes, axes.work_groups)
    cases += transpose_cases(axes.dtypes, axes.work_groups, simulated=simulated)
    cases += spgemm_cases(axes.dtypes)
    cases += elementwise_cases(axes.dtypes)
    cases += construct_cases(axes.dtypes)
    cases += bsr_cases(axes.dtypes)
    cases += indexing_cases(axes.dtypes[:2] if simulated else axes.dtypes)
    cases += krylov_cases(axes.dtypes, simulated=simulated)
    cases += amg_cases(axes.dtypes, simulated=simulated)
    cases += mask_cases(axes.dtypes)
    cases += graph_cases(axes.dtypes)
    cases += mixed_cases(device.fp64)
    if not device.fp64:
        cases += refusal_cases()
        report.skipped["float64 and complex128"] = "the device has no double precision; that they are refused was tested"
    if "--third" in sys.argv:
        cases = cases[::3]
    with programs.recording() as built:
        for case in cases:
            try:
                case()
            except Exception:  # noqa: PERF203 - a case that fails must not hide the others
                named = ", ".join(f"{name}={value}" for name, value in case.keywords.items())
                what = f"{case.func.__name__}{case.args} {named}"
                report.failures.append(f"{what}\n{traceback.format_exc(limit=-3)}")
    # Another method may have taken its place.
    report.failures += [f"refused: {error}" for error in programs.list_refusals()]
    report.cases = len(cases)
    report.kernels = {program.parameters.name: program.parameters.template for program in built}
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
