"""Intel MKL: one-shot products as ``sparse_dot_mkl`` makes them, and a handle optimised beforehand."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.metadata
import os
import time
from types import ModuleType
from typing import Any

import numpy as np

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problem import Array, Problem

_NON_TRANSPOSE = 10
_ZERO_BASED = 0
# What the handle is told to expect; the cost of optimising it is reported apart, so it may as well do its best.
_EXPECTED_PRODUCTS = 1000
_LETTERS = {"float64": "d", "float32": "s"}
_SCALARS: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}


class _Description(ctypes.Structure):
    """``struct matrix_descr``: a general matrix; the other two fields then do not count."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]


_GENERAL = _Description(20, 40, 50)


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    try:
        _interface()
    except ImportError as error:
        return str(error)
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {name: machine.version_of(name) or "unknown" for name in ("mkl", "sparse_dot_mkl")}


def contestants(operation: str) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("mkl/one-shot", _one_shot), Contestant("mkl/handle", _handle)] if operation == "spmv" else []


def _one_shot(problem: Problem) -> HostPrepared:
    dot = _interface().dot_product_mkl
    y = np.empty(problem.reference.shape, problem.dtype)
    return HostPrepared(problem, lambda: dot(problem.matrix, problem.x, out=y, out_scalar=0.0), f"{machine.threads()} threads")


def _handle(problem: Problem) -> HostPrepared:
    start = time.perf_counter()
    handle = _Handle(problem)
    created = time.perf_counter() - start
    prepared = HostPrepared(problem, handle.product, f"{machine.threads()} threads, {_EXPECTED_PRODUCTS} products expected")
    prepared.once["plan"] = created
    return prepared


class _Handle:
    """An inspected matrix, kept for as long as the arrays that it points into."""

    def __init__(self, problem: Problem) -> None:
        self._library = _library()
        self._problem = problem
        self._letter = _LETTERS[problem.dtype.name]
        self._scalar = _SCALARS[problem.dtype.name]
        self._handle = ctypes.c_void_p()
        self._y = np.empty(problem.reference.shape, problem.dtype)
        a = problem.matrix
        # LP64: MKL's integers are 32 bits wide.
        self._indptr, self._indices = a.indptr.astype(np.int32, copy=False), a.indices.astype(np.int32, copy=False)
        starts = self._indptr.ctypes.data
        self._call(
            f"mkl_sparse_{self._letter}_create_csr",
            ctypes.byref(self._handle),
            _ZERO_BASED,
            *a.shape,
            ctypes.c_void_p(starts),
            ctypes.c_void_p(starts + self._indptr.itemsize),
            ctypes.c_void_p(self._indices.ctypes.data),
            ctypes.c_void_p(a.data.ctypes.data),
        )
        self._call("mkl_sparse_set_mv_hint", self._handle, _NON_TRANSPOSE, _GENERAL, _EXPECTED_PRODUCTS)
        self._call("mkl_sparse_optimize", self._handle)

    def product(self) -> Array:
        """Compute y = A @ x."""
        self._call(
            f"mkl_sparse_{self._letter}_mv",
            _NON_TRANSPOSE,
            self._scalar(1.0),
            self._handle,
            _GENERAL,
            ctypes.c_void_p(self._problem.x.ctypes.data),
            self._scalar(0.0),
            ctypes.c_void_p(self._y.ctypes.data),
        )
        return self._y

    def __del__(self) -> None:
        if self._handle:
            self._library.mkl_sparse_destroy(self._handle)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} returned status {status}")


@functools.cache
def _interface() -> ModuleType:
    # Workers that spin for 200 ms after a product, MKL's default, would slow down whoever is measured next; 1 ms still spans
    # the gap between products that follow one another.
    os.environ.setdefault("KMP_BLOCKTIME", "1")
    if "MKL_RT" not in os.environ and ctypes.util.find_library("mkl_rt") is None and (path := _runtime_of_wheel()):
        os.environ["MKL_RT"] = path
    import sparse_dot_mkl

    sparse_dot_mkl.mkl_set_num_threads(machine.threads())
    module: ModuleType = sparse_dot_mkl
    return module


@functools.cache
def _library() -> ctypes.CDLL:
    _interface()
    from sparse_dot_mkl._mkl_interface._cfunctions import mkl_library_name

    # The same runtime as the one-shot products', through objects of our own: that package declares argument types on its own.
    return ctypes.CDLL(mkl_library_name())


def _runtime_of_wheel() -> str | None:
    """Return where pip put MKL's runtime: a virtual environment's ``lib`` is not on the loader's path."""
    try:
        files = importlib.metadata.files("mkl") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name.startswith("libmkl_rt.so")), None)
