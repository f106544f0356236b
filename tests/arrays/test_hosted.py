"""Names that always run on the host: each says so once a process, and docs/supported.md lists them."""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pages import DOCS
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import HostFallbackWarning, csr_array
from clsparse_py._device.device import describe
from clsparse_py._ground import errors

pytestmark = pytest.mark.any_platform

#: Modules with names that may run on the host, by what stands before these.
MODULES = {"": clsparse_py, "csgraph.": clsparse_py.csgraph, "io.": clsparse_py.io, "linalg.": clsparse_py.linalg}


def public() -> Iterator[tuple[str, Any]]:
    """Yield public functions and the methods of arrays, each by its name in docs/supported.md."""
    for before, module in MODULES.items():
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield before + name, getattr(module, name)
    for cls in (clsparse_py.csr_array, clsparse_py.csc_array, clsparse_py.coo_array, clsparse_py.bsr_array):
        yield from ((f"A.{name}", method) for name, method in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_")


def test_each_says_so_once() -> None:
    there = dict(public())
    assert there.keys() >= errors.ON_HOST
    errors.warn_of_fallback.cache_clear()
    for name in errors.ON_HOST:
        for expected in (True, False):
            with warnings.catch_warnings(record=True) as caught, contextlib.suppress(TypeError, AttributeError):
                warnings.simplefilter("always")
                there[name]()
            told = [warning for warning in caught if warning.category is HostFallbackWarning]
            assert [str(warning.message).partition(" runs on the host")[0] for warning in told] == [name] * expected
            assert {warning.filename for warning in told} <= {__file__}


def test_what_docstrings_say_of_the_host_is_what_warns() -> None:
    of_host = re.compile(r"(Runs|is made|, made) on the host")
    said = {name for name, function in public() if of_host.search(inspect.getdoc(function) or "")}
    assert said == errors.ON_HOST
    # SciPy's own function would take arrays of the device without a word.
    ours = (getattr(module, name) for module in MODULES.values() for name in module.__all__ if name[:9] != "isspmatri")
    assert [result for result in ours if inspect.isfunction(result) and result.__module__.startswith("scipy")] == []


def test_the_page_lists_them() -> None:
    section = (DOCS / "supported.md").read_text("utf-8").partition("## On the host")[2].partition("\n## ")[0]
    listed = re.findall(r"`([\w.]+)`", section.partition("| names |")[2])
    # Older versions of SciPy lack some.
    assert sorted(name for name in listed if name in dict(public())) == sorted(errors.ON_HOST)


def test_dense_results_are_where_dense_operands_are(queue: cl.CommandQueue) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    linalg, csgraph = clsparse_py.linalg, clsparse_py.csgraph
    S = scipy.sparse.diags_array([-1.0, 4.0, -2.0], offsets=[-1, 0, 3], shape=(20, 20), format="csr")
    A, b = csr_array(S, queue=queue), np.arange(20.0)
    there = cl_array.to_device(queue, b)
    of_both = {
        "expm_multiply": lambda x: linalg.expm_multiply(A * 0.1, x),
        "construct_dist_matrix": lambda x: csgraph.construct_dist_matrix(A, x),
        "spsolve": lambda x: linalg.spsolve(A, x),
        "spsolve of SciPy's": lambda x: linalg.spsolve(S, x),
        "splu": lambda x: linalg.splu(A).solve(x),
        "svds": lambda x: linalg.svds(A, k=2, v0=x)[1],
    }
    for name in ("bicg", "cgs", "gcrotmk", "lgmres", "qmr", "tfqmr"):
        solver = getattr(linalg, name)
        of_both[name] = lambda x, solver=solver: solver(A, x, x0=x, rtol=1e-10)[0]
        assert solver(A, there, rtol=1e-10)[1] == 0
        with pytest.raises(ValueError, match=r"shape|mismatch|dimension"):
            solver(A, there[:3])
    _, predecessors = csgraph.shortest_path(abs(A), return_predecessors=True)
    for name, function in of_both.items():
        operand = (there, b) if name != "construct_dist_matrix" else (cl_array.to_device(queue, predecessors), predecessors)
        on_device, on_host = map(function, operand)
        assert isinstance(on_device, cl_array.Array), name
        assert on_device.queue == queue
        assert isinstance(on_host, np.ndarray), name
        np.testing.assert_array_equal(on_device.get(), on_host)


def test_formats_of_the_host_are_made_of_arrays_of_the_device(queue: cl.CommandQueue) -> None:
    S = scipy.sparse.csr_array(np.array([[0, 1, 0], [2, 0, 3]], np.float32))
    for name in ("dia_array", "dok_array", "lil_array"):
        cls, scipys = getattr(clsparse_py, name), getattr(scipy.sparse, name)
        for A in (csr_array(S, queue=queue), csr_array(S, queue=queue).T, csr_array(S, queue=queue).tocoo(), S):
            result = cls(A, dtype=np.float64)
            assert type(result) is scipys
            assert result.dtype == np.float64
            np.testing.assert_array_equal(result.toarray(), A.toarray())
            assert isinstance(result, cls)
            assert isinstance(getattr(A, f"to{name[:3]}")(), cls)
            assert not isinstance(A, cls)
        assert cls((2, 3)).shape == (2, 3)
        assert issubclass(scipys, cls)
        assert not issubclass(scipy.sparse.csr_array, cls)
        assert cls.toarray is scipys.toarray
