"""Plain kernels, and the doors through which they take the place of kernels that are refused."""

from __future__ import annotations

import importlib
import inspect
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py
import clsparse_py._build.plain
import clsparse_py._ground.errors
from clsparse_py import BuildError
from clsparse_py._build.plain import are_plain, door, plain_kernels
from clsparse_py._device.device import describe
from clsparse_py._solvers.linalg import solvers

#: Public functions without a door: they launch nothing, or call what has one.
WITHOUT = {
    "": {
        "default_queue", "describe", "devices", "eye_array", "free_memory", "issparse", "isspmatrix", "isspmatrix_bsr",
        "isspmatrix_coo", "isspmatrix_csc", "isspmatrix_csr", "isspmatrix_dia", "isspmatrix_dok", "isspmatrix_lil",
        "matrix_transpose", "memory_info", "permute_dims", "random_array", "record_use", "spmm", "spmv", "swapaxes", "warmup",
    },
    ".linalg": {"aslinearoperator", "chebyshev", "jacobi", "matrix_power", *solvers.__all__},
    ".amg": {"smoothed_aggregation_solver"},
    ".distributed": {"by_blocks", "by_entries", "by_graph", "by_rows", "mmread", "over", "petsc_mat", "spgemm_plan", "world"},
}  # fmt: skip


@pytest.mark.parametrize("module", ["", ".linalg", ".graph", ".csgraph", ".primitives", ".amg", ".distributed"])
def test_public_functions_have_doors(module: str) -> None:
    of = importlib.import_module(f"clsparse_py{module}")
    wrappers = tuple(Path(module.__file__ or "") for module in (clsparse_py._build.plain, clsparse_py._ground.errors))
    functions = {name: getattr(of, name) for name in of.__all__ if inspect.isfunction(getattr(of, name))}
    without = {name for name, function in functions.items() if Path(function.__code__.co_filename) not in wrappers}
    assert without == WITHOUT.get(module, set())


def refuse(name: str = "a kernel") -> BuildError:
    return BuildError(f"{name} does not build", log="", parameters=name, source=None)


def test_a_device_is_described_as_having_nothing(queue: cl.CommandQueue) -> None:
    before = describe(queue.device)
    with plain_kernels():
        result = describe(queue.device)
        assert (result.max_work_group, result.local_memory, result.portability.lane_width) == (1, 0, 1)
        assert result.lanes_are_loops
        with plain_kernels():
            assert describe(queue.device) == result
        assert are_plain()
    assert describe(queue.device) == before
    assert not are_plain()


def test_plain_kernels_come_before_scipy(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Any] = []

    @door(lambda x, *, y: ("SciPy", x, y))
    def run(x: int, *, y: int) -> Any:
        calls.append(are_plain())
        if x > are_plain():
            raise refuse()
        return "device", x, y

    assert run(0, y=5) == ("device", 0, 5)
    assert run(1, y=5) == ("device", 1, 5)
    with caplog.at_level(logging.WARNING):
        assert run(2, y=5) == run(2, y=5) == ("SciPy", 2, 5)
    assert calls == [False, False, True, *(False, True) * 2]
    assert sum("runs on the host, by SciPy" in record.message for record in caplog.records) == 1


def test_the_first_refusal_is_raised_where_there_is_no_other_way() -> None:
    @door()
    def run() -> None:
        raise refuse("plain" if are_plain() else "first")

    with pytest.raises(BuildError) as caught:
        run()
    assert caught.value.kernel == "first"
    with plain_kernels(), pytest.raises(BuildError, match="plain"):
        run()


def test_plans_of_plain_kernels_are_others(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array(np.eye(5, dtype=np.float32))
    A = clsparse_py.csr_array(host, queue=queue)
    before = A.spmv_plan()
    with plain_kernels():
        assert A.spmv_plan() is not before
        np.testing.assert_array_equal(A @ np.ones(5, np.float32), np.ones(5))
    assert A.spmv_plan() is before


@pytest.mark.filterwarnings("always")
def test_warnings_name_the_callers_line(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array(np.eye(4, dtype=np.float32))

    for form in ("csr", "csc", "coo"):
        A = getattr(clsparse_py, f"{form}_array")(host, queue=queue)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _ = A >= -1
            A.maximum(1)
            A.asformat("csr").copy()[0, 1:] = 2
            A.tocsr(copy=True)[0, 1:] = cl_array.to_device(queue, np.full(3, 2j, np.complex64))
            clsparse_py.diags_array([1, 2, 3])
        assert len(caught) >= 5
        assert {warning.filename for warning in caught} == {__file__}
