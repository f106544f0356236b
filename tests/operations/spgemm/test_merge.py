"""Merging accumulators in every shape of their kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from accumulators import check_accumulator
from pairs import combinations
from problems import rows_of

from clsparse_py._build import programs
from clsparse_py._device.device import Portability, describe
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.merge import Merge, MergeKernel
from clsparse_py._precision.arithmetic import Arithmetic

#: Lanes and heads of each.
SHAPES = ((1, 1), (1, 5), (1, 16), (2, 4), (4, 8), (8, 3), (32, 1))
AXES = {
    "shape": SHAPES,
    "registers": (True, False),
    "work_group": (1, 7, 48, 64, 1 << 20),
    "narrow": (None, 4, 1),
    "listed": (False, True),
    "staged_c": (None, 0, 1, 8),
    "staged_b": (0, 150),
}


def operands(longest: int, listed: bool, rng: np.random.Generator) -> tuple[sp.csr_array, sp.csr_array]:
    """Return A with rows of up to so many entries, and B; some rows of C are empty where they are to be listed."""
    lengths = rng.integers(0 if listed else 1, longest, 150, endpoint=True)
    lengths[:3] = longest
    B = rows_of(rng.integers(0 if listed else 1, 9, 90), 200, rng, np.float32)
    return rows_of(lengths, 90, rng, np.float32), B


@pytest.mark.parametrize("case", combinations(AXES), ids=str)
def test_every_shape(queue: cl.CommandQueue, case: dict[str, Any], narrow_lanes: Callable[[int], None]) -> None:
    if case["narrow"]:
        narrow_lanes(case["narrow"])
    lanes, items = case["shape"]
    merge = Merge(lanes, items, case["registers"], case["work_group"], case["staged_c"], case["staged_b"])
    with programs.recording() as built:
        check_accumulator(queue, merge, *operands(merge.length, case["listed"], np.random.default_rng(7)))
    records = [program.parameters for program in built if isinstance(program.parameters, MergeKernel)]
    assert {record.types.phase for record in records} == {"symbolic", "numeric", "values"}
    assert {record.listed for record in records} == {case["listed"]}
    assert all(record.lanes * record.items == merge.length for record in records)
    assert all(record.registers == case["registers"] for record in records)


def test_rows_of_c_that_are_not_staged(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(8)
    # Work-groups whose rows of C have fewer entries than are staged, as many, and more.
    lengths = np.concatenate([np.full(32, 1), np.full(32, 2), np.full(32, 8), np.tile([1, 2, 3, 4, 0, 8], 5)])
    B = rows_of(np.full(60, 4), 4000, rng, np.float32)
    for staged_c in (4, 8, 12, 32):
        check_accumulator(queue, Merge(1, 8, True, 16, staged_c), rows_of(lengths, 60, rng, np.float32), B)


def test_rows_of_one_work_item_are_staged_on_gpus(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    rng = np.random.default_rng(9)
    A = rows_of(np.full(100, 3), 80, rng, np.float32)
    short, long = (rows_of(np.full(80, n), 900, rng, np.float32) for n in (2, 30))
    for device, B, staged in (("gpu", short, 8), ("gpu", long, 0), ("cpu", short, 0)):
        take_as(type=device)
        with programs.recording() as built:
            check_accumulator(queue, Merge(1, 4), A, B)
        results = {
            program.parameters.types.phase: program.parameters.staged_c
            for program in built
            if isinstance(program.parameters, MergeKernel)
        }
        assert results == {"symbolic": 0, "numeric": staged, "values": staged}


def stencil(n: int, offsets: tuple[int, ...], columns: int, rng: np.random.Generator) -> sp.csr_array:
    """Return n rows with an entry at each of some distances from the diagonal, as far as there are columns."""
    pattern = sp.csr_array(sp.diags_array([np.ones(n)] * len(offsets), offsets=offsets, shape=(n, columns)))
    pattern.data = rng.integers(1, 5, pattern.nnz).astype(np.float32)
    return pattern


@pytest.mark.parametrize("case", ["grid", "wide", "scattered", "long", "empty"])
def test_rows_of_b_that_neighbours_name(queue: cl.CommandQueue, case: str) -> None:
    """All of them are staged, or none: in few ranges, as far as there is room."""
    rng = np.random.default_rng(10)
    grid = stencil(500, (-40, -1, 0, 1, 40), 500, rng)
    # More ranges than there may be; rows of no order; rows of B that do not fit; rows of both that have no entry.
    A, B = {
        "grid": (grid, grid),
        "wide": (stencil(500, tuple(range(0, 1200, 100)), 2000, rng), stencil(2000, (0, 1, 7), 2000, rng)),
        "scattered": (rows_of(rng.integers(0, 5, 500, endpoint=True), 300, rng, np.float32), stencil(300, (-1, 0), 300, rng)),
        "long": (grid, rows_of(np.where(np.arange(500) < 250, 2, 90), 400, rng, np.float32)),
        "empty": (
            sp.csr_array(grid * (np.arange(500) % 3 > 0)[:, None]),
            sp.csr_array(grid * (np.arange(500) % 5 > 1)[:, None]),
        ),
    }[case]
    for staged_c, staged_b in ((8, 512), (0, 1024), (16, 100)):
        merge = Merge(1, 12, True, 64, staged_c, staged_b)
        with programs.recording() as built:
            check_accumulator(queue, merge, A.astype(np.float32), B.astype(np.float32))
        records = [program.parameters for program in built if isinstance(program.parameters, MergeKernel)]
        width = describe(queue.device).portability.lane_width
        staged = {record.types.phase: record for record in records if record.staged_b}
        assert staged.keys() == ({"numeric", "values"} if width > 1 else set())
        assert all((kernel.staged_b, kernel.work_group) == (staged_b, kernel.lane_width) for kernel in staged.values())


def test_nothing_of_b_is_staged_where_it_does_not_fit() -> None:
    portability = Portability("ptx", 32)

    def staged(arithmetic: Arithmetic, staged_b: int, work_group: int = 32, lane_width: int = 32) -> int:
        types = KernelTypes("numeric", "int32", arithmetic=arithmetic, c_index="int32")
        made = MergeKernel(32, types, False, portability, 1, 7, True, 8, staged_b).within(work_group, lane_width)
        assert made is not None
        return made.staged_b

    double = Arithmetic("float64", "float64")
    assert staged(double, 1024) == 1024
    assert staged(double, 4864) == 0
    # A result may be narrower than what is stored of B.
    wide = Arithmetic("complex128", "complex128", semiring="or_and")
    assert staged(wide, 1024) == 1024
    assert staged(wide, 1500) == 0
    # A compiler that took narrower sub-groups, and one that refused a whole one.
    assert staged(double, 1024, 64, 16) == 1024
    assert staged(double, 1024, 16, 32) == 0


def test_fewer_lanes_have_more_heads() -> None:
    asked = MergeKernel(64, KernelTypes("symbolic", "int32"), False, Portability("ptx", 32), 16, 8, True, 0)
    for width, items in ((16, 8), (8, 16), (2, 64)):
        made = asked.within(64, width)
        assert made is not None
        assert (made.lanes, made.items, made.registers) == (width, items, True)
    made = asked.within(64, 1)
    assert made is not None
    assert (made.lanes, made.items, made.registers) == (1, 128, False)
    assert made.work_group * 128 * 12 <= MergeKernel.LOCAL_MEMORY
    assert asked.within(0, 16) is None
